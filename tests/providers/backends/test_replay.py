"""The backend without a model: scenarios, recordings, answers made from the request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from antiphon import BadInput, aconvert_sse, convert, convert_sse, errors, to_response
from antiphon.backend import begin
from antiphon_conformance import check
from antiphon_providers.backends import ReplayBackend

from .kinds import Made, events_of, text_of

SHARED = Path(__file__).parents[4] / "shared" / "corpus"
REPLAY = ReplayBackend()
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": CITY}}
CLOCK = {"type": "function", "function": {"name": "get_time"}}
PATCH = {"type": "custom", "custom": {"name": "apply_patch"}}


def asked(text: str, *later: Mapping[str, Any], model: str = "echo", **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}, *later], **more}


async def streamed(body: Mapping[str, Any], backend: ReplayBackend = REPLAY) -> dict[str, Any]:
    """Return the response of a streamed answer; its events keep the rules."""
    response: dict[str, Any] = (await events_of(Made(backend, ""), body))[-1]["response"]
    return response


async def whole(body: Mapping[str, Any], backend: ReplayBackend = REPLAY) -> dict[str, Any]:
    response: dict[str, Any] = to_response(await backend.complete(body), events="dict")
    return response


def said(response: Mapping[str, Any]) -> list[Any]:
    """Return what the output says, without ids."""
    kept = ("type", "name", "arguments", "input", "summary", "status")
    return [
        {
            **{key: item[key] for key in kept if key in item},
            "parts": [(part["type"], part.get("text", part.get("refusal"))) for part in item.get("content", ())],
        }
        for item in response["output"]
    ]


def calls(response: Mapping[str, Any]) -> list[tuple[str, str]]:
    items = (item for item in response["output"] if item["type"] in ("function_call", "custom_tool_call"))
    return [(item["name"], item.get("arguments", item.get("input"))) for item in items]


# --- answers made from the request -----------------------------------------------------------------------------------


async def test_the_last_user_message_is_echoed() -> None:
    body = asked("hello there", {"role": "assistant", "content": "x"}, {"role": "user", "content": "Good bye, all"})
    assert text_of(await streamed(body)) == text_of(await whole(body)) == "You said: Good bye, all"


@pytest.mark.parametrize(
    ("text", "tools", "more", "called"),
    [
        ("use a tool", [WEATHER, CLOCK], {}, [("get_weather", '{"city": "text"}')]),
        ("what does get_time say?", [WEATHER, CLOCK], {}, [("get_time", "{}")]),
        ("please GET TIME", [WEATHER, CLOCK], {}, [("get_time", "{}")]),
        ('call it with {"city": "Rome"}', [WEATHER], {}, [("get_weather", '{"city": "Rome"}')]),
        ("hello", [WEATHER], {"tool_choice": "required"}, [("get_weather", '{"city": "text"}')]),
        ("hello", [WEATHER, CLOCK], {"tool_choice": CLOCK}, [("get_time", "{}")]),
        ("call apply_patch", [PATCH], {}, [("apply_patch", "call apply_patch")]),
        ("use a tool", [WEATHER], {"tool_choice": "none"}, []),
        ("use a tool", [], {}, []),
        ("hello", [WEATHER], {}, []),
    ],
)
async def test_a_tool_is_called_if_the_message_asks_for_it(
    text: str, tools: list[Any], more: dict[str, Any], called: list[Any]
) -> None:
    body = asked(text, tools=tools, **more)
    streaming, plain = await streamed(body), await whole(body)
    assert calls(streaming) == called
    assert said(streaming) == said(plain)
    assert [item.get("call_id") for item in streaming["output"]] == [item.get("call_id") for item in plain["output"]]


async def test_after_a_tool_output_it_is_quoted() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    outputs = [{"role": "tool", "tool_call_id": "call_1", "content": one} for one in ("sunny", "warm")]
    body = asked("use the tool", {"role": "assistant", "tool_calls": [call]}, *outputs, tools=[WEATHER])
    assert text_of(await streamed(body)) == "The tool said: sunny; warm"


async def test_the_same_request_gets_the_same_answer_and_another_another_call_id() -> None:
    body = asked("use a tool", tools=[WEATHER])
    assert [one async for one in REPLAY.stream(body)] == [one async for one in REPLAY.stream(body)]
    other = await streamed(asked("use a tool!", tools=[WEATHER]))
    assert other["output"][0]["call_id"] != (await streamed(body))["output"][0]["call_id"]


async def test_text_comes_in_small_pieces() -> None:
    text = "one two  three\n\nincomprehensibilities 🎶🎶🎶🎶🎶🎶🎶🎶 "
    deltas = [
        one["delta"] for one in await events_of(Made(REPLAY, ""), asked(text)) if one["type"].endswith("text.delta")
    ]
    assert "".join(deltas) == f"You said: {text}"
    assert max(map(len, deltas)) <= 10


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("tools", [[], [WEATHER]])
async def test_the_token_limit(name: str, tools: list[Any]) -> None:
    body = asked("call me anything that is long enough", tools=tools) | {name: 3}
    streaming, plain = await streamed(body), await whole(body)
    assert streaming["status"] == "incomplete"
    assert streaming["incomplete_details"] == {"reason": "max_output_tokens"}
    assert said(streaming) == said(plain)
    assert plain["usage"]["output_tokens"] == 3


async def test_usage_comes_if_asked_for() -> None:
    assert (await streamed(asked("hi there")))["usage"] is None
    wanted = await streamed(asked("hi there", stream_options={"include_usage": True}))
    assert wanted["usage"] == (await whole(asked("hi there")))["usage"]
    assert wanted["usage"]["input_tokens"] == 2


async def test_more_choices_are_not_given() -> None:
    completion = await REPLAY.complete(asked("hi", n=3))
    assert len(completion["choices"]) == 1


async def test_a_json_object() -> None:
    response = await streamed(asked("hi", response_format={"type": "json_object"}))
    assert json.loads(text_of(response)) == {"answer": "You said: hi"}


SCHEMAS: Mapping[str, Any] = {
    "flat": CITY,
    "types": {
        "type": "object",
        "properties": {
            "s": {"type": "string", "minLength": 9, "maxLength": 10},
            "i": {"type": "integer", "minimum": 7, "multipleOf": 5},
            "n": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "b": {"type": "boolean"},
            "z": {"type": "null"},
            "e": {"enum": ["red", "green"]},
            "c": {"const": 42},
            "o": {"type": ["null", "string"]},
        },
        "required": ["s", "i", "n", "b", "z", "e", "c", "o"],
        "additionalProperties": False,
    },
    "lists": {
        "type": "array",
        "minItems": 3,
        "maxItems": 4,
        "uniqueItems": True,
        "items": {"type": "integer", "minimum": 1},
    },
    "tuples": {
        "type": "array",
        "prefixItems": [{"type": "string"}, {"type": "integer"}],
        "items": False,
        "minItems": 2,
    },
    "references": {
        "$defs": {
            "name": {"type": "string", "minLength": 1},
            "one": {"allOf": [{"$ref": "#/$defs/part"}]},
            "part": CITY,
        },
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/name"}, "b": {"type": "array", "items": {"$ref": "#/$defs/one"}}},
        "required": ["a", "b"],
    },
    "either": {
        "anyOf": [{"type": "null"}, {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}]
    },
    "endless": {
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "value": {"type": "integer"},
                    "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                },
                "required": ["value", "next", "children"],
                "additionalProperties": False,
            }
        },
        "$ref": "#/$defs/node",
    },
    "merged": {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"b": {"type": "integer"}}, "required": ["b"]},
        ]
    },
    "formats": {
        "type": "object",
        "properties": {
            name: {"type": "string", "format": name}
            for name in ("date", "date-time", "email", "uuid", "uri", "ipv4", "ipv6", "hostname")
        },
    },
    "patterns": {"type": "string", "pattern": "^[A-Z]{3}$"},
    "counted keys": {"type": "object", "additionalProperties": {"type": "boolean"}, "minProperties": 2},
    "anything": {},
    "true": True,
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
async def test_a_json_schema_is_kept_to(schema: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    format = {"type": "json_schema", "json_schema": {"name": "it", "schema": schema, "strict": True}}
    made = json.loads(text_of(await streamed(asked("hi", response_format=format))))
    jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(made)


# --- scenarios -------------------------------------------------------------------------------------------------------


async def names() -> list[str]:
    return [one["id"] for one in await REPLAY.models() if one["id"].startswith("replay/")]


# scenario -> how its response ends
ENDS_OTHERWISE = {
    **dict.fromkeys(("length", "length-empty", "length-call"), "max_output_tokens"),
    "content-filter": "content_filter",
    **dict.fromkeys(("error", "error-finish", "cut", "silent-end", "malformed", "empty"), "failed"),
    **dict.fromkeys(("rate-limit", "context-length", "bad-key", "bad-request", "bad-gateway"), "failed"),
}


async def test_every_scenario_ends_as_it_says_and_keeps_the_rules() -> None:
    found = await names()
    assert len(found) > 30
    for model in found:
        response = await streamed(asked("hello", model=model, stream_options={"include_usage": True}))
        ending = (response["incomplete_details"] or {}).get("reason", response["status"])
        assert ending == ENDS_OTHERWISE.get(model.removeprefix("replay/"), "completed"), model
        if response["status"] != "failed":
            plain = await whole(asked("hello", model=model))
            assert said(plain) == said(response), model
            assert plain["usage"] == response["usage"], model


@pytest.mark.parametrize(
    "name",
    ["tools", "text-and-tool", "parallel", "interleaved", "whole-calls", "late-name", "legacy-call", "reasoning-tools"],
)
async def test_a_scenario_with_tools_goes_on_after_the_outputs(name: str) -> None:
    model = f"replay/{name}"
    first = await streamed(asked("the weather?", model=model))
    assert {name for name, _ in calls(first)} == {"get_weather"}
    assert all(json.loads(arguments)["city"] in ("Paris", "Rome") for _, arguments in calls(first))
    later: list[dict[str, Any]] = [{"role": "assistant", "tool_calls": []}, {"role": "tool", "content": "sunny"}]
    assert text_of(await streamed(asked("the weather?", *later, model=model))) == "The tool says: sunny"
    again = asked(
        "the weather?", *later, {"role": "assistant", "content": "x"}, {"role": "user", "content": "?"}, model=model
    )
    assert calls(await streamed(again)) == calls(first)


async def test_the_user_is_quoted_as_data() -> None:
    text = 'a "quote" {output} \\ \n'
    assert text_of(await streamed(asked(text, model="replay/text"))).endswith(f"You called: {text}")


@pytest.mark.parametrize(
    ("name", "error", "status"),
    [
        ("rate-limit", errors.RateLimited, 429),
        ("context-length", errors.ContextLengthExceeded, 400),
        ("bad-key", errors.AuthenticationFailed, 401),
        ("bad-request", errors.BadRequest, 422),
        ("bad-gateway", errors.ServerFailed, 502),
        ("there-is-none", errors.NotFound, 404),
    ],
)
async def test_a_scenario_that_is_refused(name: str, error: type[errors.ProviderError], status: int) -> None:
    body = asked("hello", model=f"replay/{name}")
    with pytest.raises(error) as caught:
        await begin(REPLAY.stream(body))
    assert caught.value.status_code == status
    with pytest.raises(error):
        await REPLAY.complete(body)


async def test_a_broken_connection_is_raised_in_the_middle() -> None:
    body = asked("hello", model="replay/cut")
    events = aconvert_sse(REPLAY.stream(body), events="dict", raise_on_error=True)
    seen: list[str] = []

    async def listen() -> None:
        async for event in events:
            seen.append(event["type"])  # noqa: PERF401  # what came before the error is what is looked at

    with pytest.raises(errors.ConnectionFailed):
        await listen()
    assert seen[-1] == "response.failed"
    assert "response.output_text.delta" in seen


async def test_the_token_limit_cuts_a_scenario() -> None:
    body = asked("hello", model="replay/reasoning", max_tokens=4)
    response = await streamed(body)
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert [item["type"] for item in response["output"]] == ["reasoning"]


# --- recordings ------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a recording of each kind."""
    choice = {"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}
    chunk = json.dumps({"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]})
    answer = {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}
    completion = json.dumps({"id": "c1", "object": "chat.completion", "model": "m", "choices": [answer]})
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "chunks.jsonl").write_text(f"{chunk}\n\n")
    (tmp_path / "body.sse").write_bytes(f": hi\r\n\r\ndata: {chunk}\r\n\r\ndata: [DONE]".encode())
    (tmp_path / "whole.json").write_text(completion)
    (tmp_path / "refused.sse").write_text('{"error": {"message": "slow down"}}')
    meta = {"status": 429, "headers": {"Retry-After": "3"}}
    (tmp_path / "refused.meta.json").write_text(json.dumps(meta))
    return tmp_path


async def test_recordings_are_played_by_their_names(folder: Path) -> None:
    backend = ReplayBackend.from_dir(folder)
    assert {"replay/deep/chunks", "replay/body", "replay/whole"} <= {one["id"] for one in await backend.models()}
    for name in ("replay/deep/chunks", "deep/chunks", "replay/body", "replay/whole"):
        body = asked("?", model=name)
        assert text_of(await streamed(body, backend)) == text_of(await whole(body, backend)) == "Hello"
    assert text_of(await streamed(asked("hi"), backend)) == "You said: hi"
    assert text_of(await streamed(asked("hi", model="replay/refusal"), backend)) == ""


async def test_a_recorded_refusal(folder: Path) -> None:
    with pytest.raises(errors.RateLimited) as caught:
        await ReplayBackend.from_dir(folder).complete(asked("?", model="replay/refused"))
    assert caught.value.retry_after == 3


async def test_a_single_file_always_answers(folder: Path) -> None:
    backend = ReplayBackend.from_dir(folder / "body.sse")
    assert text_of(await streamed(asked("?", model="gpt-5"), backend)) == "Hello"
    assert b"".join([one async for one in backend.stream(asked("?"))]) == (folder / "body.sse").read_bytes()


def test_a_folder_without_recordings(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no recording"):
        ReplayBackend.from_dir(tmp_path)


@pytest.mark.skipif(not SHARED.is_dir(), reason="no recordings beside the checkout")
async def test_recorded_streams_come_through_unchanged() -> None:
    same: dict[str, Any] = {"events": "dict", "ids": "counted", "created_at": 0}
    paths = [*sorted(SHARED.glob("wire/*/*.sse"))[::4], *sorted(SHARED.glob("chat/*/*.jsonl"))[::8]]
    for path in paths:
        stream = ReplayBackend.from_dir(path).stream(asked("?"))
        try:
            events = [one async for one in aconvert_sse(stream, raise_on_error=True, **same)]
        except (errors.ProviderError, errors.SourceError):
            continue
        if path.suffix == ".sse":
            assert events == list(convert_sse(path.read_bytes(), **same)), path
        else:
            assert events == list(convert(map(json.loads, filter(None, path.read_text().splitlines())), **same)), path
        assert check(events).ok, path
