"""What may come in: bodies, parameters, items; what is refused reaches no backend, what is not carried is told."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from typing import Any

import httpx2
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.routing import Mount

from antiphon.gateway import create_app
from antiphon.gateway.transport import AppTransport
from tests.providers.backends import loopback

from .asking import TOOL, Json, asked, asking, shape, streamed, whole
from .conftest import over
from .scripted_backend import Scripted

JSON = {"content-type": "application/json"}
# body -> the parameter that is named, and the code
WRONG: list[tuple[Any, str | None, str]] = [
    ({"input": "x"}, "model", "missing_required_parameter"),
    ({"model": "text"}, "input", "missing_required_parameter"),
    ({"model": 7, "input": "x"}, "model", "invalid_type"),
    ({"model": "", "input": "x"}, "model", "invalid_value"),
    ({"model": "text", "input": 7}, "input", "invalid_type"),
    ({"model": "text", "input": ["x"]}, "input[0]", "invalid_type"),
    ({"model": "text", "input": []}, "input", "invalid_value"),
    (
        {"model": "text", "input": [{"type": "message", "role": "wizard", "content": "x"}]},
        "input[0].role",
        "invalid_value",
    ),
    ({"model": "text", "input": [{"type": "nonsense"}]}, "input", "invalid_value"),
    (
        {"model": "text", "input": [{"type": "function_call", "call_id": "c", "arguments": "{}"}]},
        "input[0].name",
        "invalid_value",
    ),
    ({"model": "text", "input": [{"type": "item_reference", "id": "rs_9"}]}, "input[0]", "item_not_found"),
    ({"model": "text", "input": [{"id": "rs_9"}]}, "input[0]", "item_not_found"),
    ({"model": "text", "input": "x", "temperature": 3}, "temperature", "value_out_of_range"),
    ({"model": "text", "input": "x", "temperature": "hot"}, "temperature", "invalid_type"),
    ({"model": "text", "input": "x", "temperature": True}, "temperature", "invalid_type"),
    ({"model": "text", "input": "x", "top_p": -0.1}, "top_p", "value_out_of_range"),
    ({"model": "text", "input": "x", "max_output_tokens": 0}, "max_output_tokens", "value_out_of_range"),
    ({"model": "text", "input": "x", "max_output_tokens": 1.5}, "max_output_tokens", "invalid_type"),
    ({"model": "text", "input": "x", "top_logprobs": 21}, "top_logprobs", "value_out_of_range"),
    ({"model": "text", "input": "x", "stream": "yes"}, "stream", "invalid_type"),
    ({"model": "text", "input": "x", "store": 1}, "store", "invalid_type"),
    ({"model": "text", "input": "x", "truncation": "maybe"}, "truncation", "invalid_value"),
    ({"model": "text", "input": "x", "metadata": {"a": 1}}, "metadata.a", "invalid_type"),
    ({"model": "text", "input": "x", "metadata": {str(one): "" for one in range(17)}}, "metadata", "invalid_value"),
    ({"model": "text", "input": "x", "include": "all"}, "include", "invalid_type"),
    ({"model": "text", "input": "x", "tools": {}}, "tools", "invalid_type"),
    ({"model": "text", "input": "x", "tools": [{"type": "function"}]}, "tools[0].name", "invalid_value"),
    ({"model": "text", "input": "x", "tool_choice": "sometimes"}, "tool_choice", "invalid_value"),
    (
        {"model": "text", "input": "x", "text": {"format": {"type": "json_schema", "name": "n"}}},
        "text.format.schema",
        "invalid_value",
    ),
    ({"model": "text", "input": "x", "reasoning": "much"}, "reasoning", "invalid_type"),
    ({"model": "text", "input": "x", "conversation": {}}, "conversation.id", "missing_required_parameter"),
    ({"model": "text", "previous_response_id": "resp_no"}, "previous_response_id", "previous_response_not_found"),
    ({"model": "text", "previous_response_id": "r", "conversation": "c"}, "previous_response_id", "invalid_value"),
    ([], None, "invalid_json"),
    ("text", None, "invalid_json"),
]


@pytest.mark.parametrize(
    ("body", "param", "code"), WRONG, ids=[f"{param}-{code}-{at}" for at, (_, param, code) in enumerate(WRONG)]
)
async def test_bad_input_is_named_and_reaches_no_backend(
    body: Any, param: str | None, code: str, scripted: Scripted
) -> None:
    async with asking(over(scripted)) as client:
        answers = [await client.post("/v1/responses", json=body)]
        if isinstance(body, dict) and "stream" not in body:
            answers.append(await client.post("/v1/responses", json={**body, "stream": True}))
    for answer in answers:
        error = answer.json()["error"]
        assert (answer.status_code, error["type"], error["param"], error["code"]) == (
            400,
            "invalid_request_error",
            param,
            code,
        )
    assert scripted.asked == []


RAW: dict[str, tuple[bytes, dict[str, str], int, str]] = {
    "no JSON": (b"{", JSON, 400, "invalid_json"),
    "empty": (b"", JSON, 400, "invalid_json"),
    "no UTF-8": (b'{"model": "\xff"}', JSON, 400, "invalid_json"),
    "deep": (b'{"model": "text", "input": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", JSON, 400, "invalid_json"),
    "rather deep": (
        b'{"model": "text", "input": "x", "tools": ' + b"[" * 300 + b"]" * 300 + b"}",
        JSON,
        400,
        "invalid_value",
    ),
    "another type": (b"{}", {"content-type": "text/plain"}, 415, "unsupported_media_type"),
    "another coding": (b"{}", {**JSON, "content-encoding": "br"}, 415, "unsupported_encoding"),
    "no gzip": (b"{}", {**JSON, "content-encoding": "gzip"}, 400, "invalid_encoding"),
    "no zstd": (b"{}", {**JSON, "content-encoding": "zstd"}, 400, "invalid_encoding"),
    "large": (b" " * 200_001, JSON, 413, "request_too_large"),
    "a gzip bomb": (gzip.compress(b" " * 5_000_000), {**JSON, "content-encoding": "gzip"}, 413, "request_too_large"),
    "a zstd bomb": (
        zstandard.compress(b" " * 5_000_000),
        {**JSON, "content-encoding": "zstd"},
        413,
        "request_too_large",
    ),
}


@pytest.mark.parametrize("case", RAW)
async def test_bodies_that_are_none(case: str, scripted: Scripted) -> None:
    body, headers, status, code = RAW[case]
    async with asking(over(scripted, limits={"body_bytes": 200_000})) as client:
        answer = await client.post("/v1/responses", content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert scripted.asked == []


PACKED = {
    "": lambda data: data,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("coding", PACKED)
async def test_packed_bodies(coding: str, scripted: Scripted) -> None:
    body = PACKED[coding](json.dumps({"model": "history", "input": "x" * 40_000}).encode())
    async with asking(over(scripted)) as client:
        answer = await client.post(
            "/v1/responses", content=body, headers={**JSON, "content-encoding": coding} if coding else JSON
        )
    assert shape(answer.json())["output"] == [["message", "user | " + "x" * 40_000]]


async def test_tolerated_input(scripted: Scripted) -> None:
    """Nulls, items without types, ids and statuses, strings as content: what real clients send."""
    nulls = dict.fromkeys(
        ("instructions", "tools", "tool_choice", "temperature", "reasoning", "text", "metadata", "previous_response_id")
    )
    given: list[Json] = [
        {"role": "system", "content": "S"},
        {"id": "msg_1", "role": "user", "content": [{"type": "input_text", "text": "U"}], "status": "completed"},
        {"id": "msg_2", "type": "message", "role": "assistant", "content": "A", "status": "completed"},
        {
            "id": "fc_1",
            "type": "function_call",
            "call_id": "c1",
            "name": "weather",
            "arguments": "{}",
            "parsed_arguments": {},
            "status": "completed",
        },
        {"id": "fco_1", "type": "function_call_output", "call_id": "c1", "output": "sun", "status": "completed"},
        {"role": "user", "content": "Q"},
    ]
    async with asking(over(scripted)) as client:
        events = await streamed(client, "history", **{**nulls, "input": given})
    assert shape(events[-1]["response"])["output"] == [["message", "system,user,assistant,tool,user | Q"]]


async def test_the_response_repeats_the_request(scripted: Scripted) -> None:
    params: Json = {
        "temperature": 0.5,
        "top_p": 0.25,
        "max_output_tokens": 99,
        "tools": [TOOL],
        "tool_choice": {"type": "function", "name": "weather"},
        "parallel_tool_calls": False,
        "metadata": {"a": "b"},
        "instructions": "Be brief.",
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "truncation": "disabled",
        "store": False,
        "user": "u",
        "service_tier": "auto",
        "prompt_cache_key": "k",
        "safety_identifier": "s",
    }
    async with asking(over(scripted)) as client:
        response = whole((await asked(client, "text", **params)).json())
    tool = {**TOOL, "strict": None}
    wanted = {**params, "tools": [tool], "model": "text", "service_tier": response["service_tier"]}
    assert {name: response[name] for name in wanted} == wanted
    assert response["background"] is False


HOSTED: Json = {"type": "web_search"}


async def test_what_is_not_carried_is_told(scripted: Scripted) -> None:
    async with asking(over(scripted)) as client:
        params: Json = {
            "tools": [HOSTED, TOOL],
            "truncation": "auto",
            "extra_headers": {"x": "y"},
            "made_up": 1,
        }
        answer = await asked(client, "text", **params)
        streaming = await asked(client, "text", stream=True, **params)
        forced = await asked(client, "text", tools=[HOSTED], tool_choice=HOSTED)
    for one in (answer, streaming):
        told = " ".join(one.headers.get_list("warning"))
        assert one.status_code == 200
        assert all(name in told for name in ("web_search", "truncation", "extra_headers", "made_up"))
        assert all(part.startswith("299 antiphon ") for part in one.headers.get_list("warning"))
    assert [tool["function"]["name"] for tool in scripted.asked[0]["tools"]] == ["weather"]
    assert (forced.status_code, forced.json()["error"]["param"]) == (400, "tool_choice")


# path -> what is said of it
PATHS = {
    "/v1/response": "there is no such path: did you mean /v1/responses? GET /openapi.json lists all",
    "/v1/v1/responses": "there is no such path: did you mean /v1/responses? GET /openapi.json lists all",
    "/v1/model": "there is no such path: did you mean /v1/models? GET /openapi.json lists all",
    "/v1/completions": "there is no such path. GET /openapi.json lists all",
    "/": "there is no such path. GET /openapi.json lists all",
    "/v1/" + "a" * 500: "there is no such path. GET /openapi.json lists all",
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("inside", ["", "/inside"])
async def test_a_path_that_there_is_not_is_told_with_the_one_that_is_meant(path: str, inside: str) -> None:
    """Also where the gateway is mounted in another app."""
    app = create_app()
    outer = Starlette(routes=[Mount(inside, app)]) if inside else app
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(outer), base_url="http://gateway") as client:
        answer = await client.post(f"{inside}{path}", json={"model": "echo", "input": "x"})
    assert (answer.status_code, answer.json()["error"]["message"]) == (404, PATHS[path])
    await app.state.gateway.aclose()


@pytest.mark.parametrize("body", ["<html>Not Found</html>", {"detail": "Not Found"}])
async def test_a_backend_without_that_path_or_model_is_told_as_both(body: Any) -> None:
    """Where it does not say which: a URL that lacks `/v1` is what newcomers give."""
    lost = loopback.answer(body, "404 Not Found")
    async with loopback.serve(lost) as server, asking({"backends": {"a": {"url": f"{server.url}/api"}}}) as client:
        answers = [await asked(client, "m"), await asked(client, "m", stream=True)]
    for answer in answers:
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (404, "model_not_found")
        assert error["message"].endswith("or its configured URL is not the base of its API, which mostly ends with /v1")


NO_SUCH = "the Responses API has no such parameter"
# parameter -> its value, and what is told of it
LEFT_OUT: dict[str, tuple[Any, str]] = {
    "tempratur": (1, f"dropped: the value 1 ({NO_SUCH}; did you mean 'temperature'?)"),
    "max_tokens": (5, f"dropped: the value 5 ({NO_SUCH}; did you mean 'max_output_tokens'?)"),
    "messages": ([], f"dropped: messages ({NO_SUCH}; did you mean 'input'?)"),
    "reasoning_effort": ("low", f"dropped: reasoning_effort ({NO_SUCH}; did you mean 'reasoning.effort'?)"),
    "songs": (["a", {"b": 1}], f"dropped: songs ({NO_SUCH})"),
    'a "quoted\\one"': (True, f"dropped: the value True ({NO_SUCH})"),
    "größe": (2, f"dropped: the value 2 ({NO_SUCH})"),
}
# Source: RFC 7234, section 5.5, `warning-value`, and RFC 9110, section 5.6.4, `quoted-string`.
WARNING = re.compile(r'299 antiphon "((?:[\t !#-\[\]-~]|\\[\t -~])*)"')


@pytest.mark.parametrize("name", LEFT_OUT)
async def test_a_parameter_that_nobody_knows_is_told_with_the_one_that_is_meant(name: str, scripted: Scripted) -> None:
    value, said = LEFT_OUT[name]
    async with asking(over(scripted)) as client:
        answer = await asked(client, "text", **{name: value})
    [warning] = answer.headers.get_list("warning")
    found = WARNING.fullmatch(warning)
    assert found is not None
    plain = "".join(one if one.isascii() else "?" for one in name)
    assert re.sub(r"\\(.)", r"\1", found[1]) == f"{plain}: {said}"
    assert answer.status_code == 200


@pytest.mark.parametrize("came", ["messages", "inputs", "inptu"])
async def test_a_missing_parameter_is_told_with_what_came_in_its_place(came: str, scripted: Scripted) -> None:
    async with asking(over(scripted)) as client:
        answer = await client.post("/v1/responses", json={"model": "text", came: "x", "temperature": 1})
    error = answer.json()["error"]
    assert error["message"] == f"Missing required parameter: 'input'. {came!r} came: did you mean 'input'?"
    assert (answer.status_code, error["param"], error["code"]) == (400, "input", "missing_required_parameter")


async def test_strict_refuses_what_is_not_carried(scripted: Scripted) -> None:
    async with asking(over(scripted, strict=True)) as client:
        answer = await asked(client, "text", tools=[HOSTED, TOOL])
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "tools[0]")
    assert scripted.asked == []


async def test_the_body_reaches_the_backend_by_no_side_door(scripted: Scripted) -> None:
    side_doors: Json = {
        "extra_body": {"model": "other"},
        "extra_headers": {"Authorization": "Bearer x"},
        "extra_query": {"a": "b"},
        "timeout": 0.001,
    }
    async with asking(over(scripted)) as client:
        answer = await asked(client, "text", **side_doors)
    assert answer.status_code == 200
    assert scripted.asked[0]["model"] == "text"
    assert "authorization" not in scripted.server.requests[0].headers


async def test_done_is_sent_where_it_is_asked_for(scripted: Scripted) -> None:
    async with asking(over(scripted, done_marker=True)) as client:
        answer = await asked(client, "text", stream=True)
        background = await asked(client, "text", stream=True, background=True)
        name = background.content.partition(b'"id":"')[2].partition(b'"')[0].decode()
        again = await client.get(f"/v1/responses/{name}?stream=true")
    assert answer.content.endswith(b"\n\ndata: [DONE]\n\n")
    assert background.content.endswith(b"\n\ndata: [DONE]\n\n")
    assert again.content == background.content


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nothing", 404, "unknown_url"),
        ("GET", "/v1/responses", 405, "method_not_allowed"),
        ("GET", "/v1/responses/resp_no", 404, "not_found"),
        ("GET", f"/v1/responses/{'resp_no' * 5000}", 404, "not_found"),
        ("DELETE", "/v1/responses/resp_no", 404, "not_found"),
        ("POST", "/v1/responses/resp_no/cancel", 404, "not_found"),
        ("GET", "/v1/responses/resp_no/input_items", 404, "not_found"),
        ("GET", "/v1/models/none", 404, "model_not_found"),
        ("GET", "/v1/conversations/conv_no", 404, "not_found"),
    ],
)
async def test_what_is_not_there(method: str, path: str, status: int, code: str, scripted: Scripted) -> None:
    async with asking(over(scripted)) as client:
        answer = await client.request(method, path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert len(answer.content) < 1000


METHODS = [
    ("/v1/responses", "POST"),
    ("/responses/", "POST"),
    ("/v1/responses/resp_no", "DELETE, GET, HEAD, POST"),
    ("/v1/responses/resp_no/cancel", "POST"),
    ("/v1/conversations/conv_no", "DELETE, GET, HEAD, POST"),
    ("/v1/conversations/conv_no/items/item_no", "DELETE, GET, HEAD"),
    ("/v1/models/a/b", "GET, HEAD"),
    ("/healthz", "GET, HEAD"),
]


@pytest.mark.parametrize(("path", "methods"), METHODS)
@pytest.mark.parametrize("method", ["PATCH", "OPTIONS", "PUT", "TRACE", "BREW"])
async def test_a_method_that_is_not_possible(method: str, path: str, methods: str) -> None:
    """All those are told that are, and it is counted as any request is."""
    async with asking() as client:
        answer = await client.request(method, path)
        counted = (await client.get("/metrics")).text
    assert (answer.status_code, answer.headers["allow"]) == (405, methods)
    assert answer.json()["error"]["code"] == "method_not_allowed"
    assert answer.headers["x-request-id"].startswith("req_")
    assert 'antiphon_http_requests_total{route="none",status="405"} 1' in counted


async def test_a_slash_at_the_end_changes_nothing() -> None:
    """There is no redirect: it would name another scheme where something in front ends TLS."""
    mounted = Starlette(routes=[Mount("/llm", app := create_app())])
    async with asking() as client, httpx2.AsyncClient(transport=AppTransport(app), base_url="http://a.test") as inner:
        made = await client.post("/v1/responses/", json={"model": "echo", "input": "Hi"})
        got = [await client.get(f"/v1/responses/{made.json()['id']}{end}") for end in ("", "/", "//")]
        models = [await client.get(f"/v1/models{end}") for end in ("", "/")]
        nothing = [(await client.get(path)).status_code for path in ("/v1/", "/v1/responses/a%2F..%2F", "/nothing/")]
        below = httpx2.ASGITransport(app=mounted)
        async with httpx2.AsyncClient(transport=below, base_url="http://a.test") as outer:
            under = [(await outer.get(f"/llm/v1/models{end}")).json() for end in ("", "/")]
        assert (await inner.get("/v1/models/")).json() == under[0]
    assert made.status_code == 200
    assert [one.json() for one in got] == [made.json()] * 3
    assert models[0].json() == models[1].json()
    assert under[0] == under[1]
    assert nothing == [404] * 3


# --- anything at all ---------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(
    [
        "model",
        "input",
        "tools",
        "tool_choice",
        "text",
        "reasoning",
        "metadata",
        "include",
        "instructions",
        "conversation",
        "stream",
        "type",
        "role",
        "content",
        "name",
        "id",
        "call_id",
        "arguments",
        "output",
        "format",
        "schema",
        "encrypted_content",
        "summary",
    ]
)
WORDS = st.sampled_from(
    [
        "message",
        "function_call",
        "function_call_output",
        "reasoning",
        "item_reference",
        "input_text",
        "input_image",
        "json_schema",
        "function",
        "custom",
        "namespace",
        "tool_search",
        "user",
        "assistant",
        "m",
        "",
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=20,
)
ITEM_FIELDS = st.dictionaries(NAMES, VALUES, max_size=5)
REQUESTS = st.builds(
    lambda more, items: {"model": "echo", "input": "x", **({"input": items} if items else {}), **more},
    st.dictionaries(NAMES, VALUES, max_size=6),
    st.lists(st.builds(lambda kind, more: {"type": kind, **more}, WORDS, ITEM_FIELDS), max_size=3),
)


@settings(max_examples=200, deadline=None)
@given(body=REQUESTS)
def test_no_request_makes_the_gateway_fail(body: Json) -> None:
    """Whatever is in a request, it is answered, or refused with an error object; never by a fault of the gateway."""
    import asyncio

    async def ask() -> httpx2.Response:
        async with httpx2.AsyncClient(
            transport=AppTransport(create_app({"store": {"url": "none"}})), base_url="http://x"
        ) as client:
            return await client.post("/v1/responses", json=body)

    answer = asyncio.run(ask())
    assert answer.status_code in (200, 400, 404), (body, answer.text)
    if answer.status_code != 200:
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
