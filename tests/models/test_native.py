"""A server that speaks the Responses API: requests and events pass, errors are typed, streams are held to the rules."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import threading
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI

from antiphon import BadInput, convert
from antiphon.errors import (
    AuthenticationFailed,
    BadAnswer,
    BadRequest,
    ConnectionFailed,
    ContextLengthExceeded,
    NotFound,
    ProviderError,
    RateLimited,
    ServerFailed,
    TimedOut,
)
from antiphon.ids import RandomIds
from antiphon.models import (
    EventsBroken,
    ModelResponse,
    ModelRetrySettings,
    ModelSettings,
    ModelTracing,
    OpenAIResponsesModel,
    Usage,
    retry_policies,
)
from antiphon.models.native_input import native_input
from tests.providers.backends.loopback import Act, Pause, Request, Script, answer, chunked, data, free_port, serve

from .scripted import calls, collect, reasoning, text

REQUEST = {"input": "hello"}
RETRY = ModelRetrySettings(2, {"initial_delay": 0}, retry_policies.provider_suggested())


def events_of(chunks: Any) -> list[dict[str, Any]]:
    return list(convert(chunks, events="dict", ids="counted", created_at=0, request={"model": "tiny"}))


def events_as_bytes(events: list[dict[str, Any]]) -> list[bytes]:
    return [b"event: %b\n%b" % (event["type"].encode(), data(event)) for event in events]


def told(events: list[dict[str, Any]]) -> Script:
    return chunked(events_as_bytes(events))


def server_of(events: list[dict[str, Any]]) -> Any:
    """Return the script of a server that gives these events, or the response at their end."""

    def script(request: Request) -> Script:
        return told(events) if request.body.get("stream") else answer(events[-1]["response"])

    return script


async def ask(model: OpenAIResponsesModel, settings: ModelSettings | None = None) -> ModelResponse:
    said = ("be good", "hello", settings or ModelSettings(), [], None, [], ModelTracing.DISABLED)
    return await model.get_response(*said)


async def listen(model: OpenAIResponsesModel, settings: ModelSettings | None = None) -> list[Any]:
    said = ("be good", "hello", settings or ModelSettings(), [], None, [], ModelTracing.DISABLED)
    return [event async for event in model.stream_response(*said)]


@pytest.mark.parametrize("turn", [text("Hel", "lo"), reasoning("think", calls(("call_1", "f", "{}")))])
async def test_both_ways_give_the_same(turn: Any) -> None:
    events = events_of(turn.chunks)
    async with serve(server_of(events)) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", check=True)
        asked, heard = await ask(model), await listen(model)
        await model.close()
    assert [event.to_dict() for event in heard] == events
    assert [item.to_dict() for item in asked.output] == events[-1]["response"]["output"]
    assert asked.usage == Usage.of(heard[-1].response)
    assert server.requests[0].body == {"model": "tiny", "input": "hello", "instructions": "be good", "stream": False}


async def test_what_the_server_is_sent() -> None:
    async with (
        serve(server_of(events_of(text("Hello").chunks))) as server,
        AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k") as client,
    ):
        model = OpenAIResponsesModel("tiny", client)
        settings = ModelSettings(
            extra_headers={"x-a": "1"}, extra_query={"q": "2"}, extra_args={"seed": 3}, frequency_penalty=1.0
        )
        item = {"role": "user", "content": "hello", "provider_data": {"a": 1}}
        await model.get_response(None, [item], settings, [], None, [], ModelTracing.DISABLED)
        await model.create(REQUEST, headers={"x-b": "1"}, timeout=5)
    first, second = server.requests
    assert (first.target, first.headers["x-a"]) == ("/v1/responses?q=2", "1")
    assert first.body == {
        "model": "tiny",
        "input": [{"role": "user", "content": "hello"}],
        "seed": 3,
        "stream": False,
    }
    assert second.headers["x-b"] == "1"


STATUSES: list[tuple[str, dict[str, Any], type[ProviderError]]] = [
    ("400 Bad Request", {"message": "no", "param": "input"}, BadRequest),
    ("400 Bad Request", {"message": "too long", "code": "context_length_exceeded"}, ContextLengthExceeded),
    ("401 Unauthorized", {"message": "Incorrect API key provided: sk-abcdefghijklmnop"}, AuthenticationFailed),
    ("404 Not Found", {"message": "no such model"}, NotFound),
    ("429 Too Many Requests", {"message": "slow down"}, RateLimited),
    ("503 Service Unavailable", {"message": "away"}, ServerFailed),
]


@pytest.mark.parametrize(("status", "error", "kind"), STATUSES)
async def test_errors_are_typed(status: str, error: dict[str, Any], kind: type[ProviderError]) -> None:
    async with serve(answer({"error": error}, status, retry_after="3")) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1")
        with pytest.raises(kind) as caught:
            await model.create(REQUEST)
        with pytest.raises(kind):
            await model.create(REQUEST, stream=True)
        await model.close()
    assert type(caught.value) is kind
    assert (caught.value.status_code, caught.value.retry_after) == (int(status[:3]), 3.0)
    assert caught.value.param == error.get("param")
    assert "abcdefghij" not in str(caught.value)


LONG = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."
# name -> status, body, what is raised, its words, its code and parameter
BODIES: dict[str, tuple[str, Any, type[ProviderError], str, tuple[Any, Any]]] = {
    "numbers": (
        "400 Bad Request",
        {"error": {"message": "no", "code": 400, "param": 3}},
        BadRequest,
        "no",
        ("400", "3"),
    ),
    "words that tell": (
        "400 Bad Request",
        {"message": LONG, "code": 400},
        ContextLengthExceeded,
        "8192",
        ("400", None),
    ),
    "a text": ("404 Not Found", {"error": "model 'tiny' not found"}, NotFound, "model 'tiny' not found", (None, None)),
    "a detail": ("404 Not Found", {"detail": "Not Found"}, NotFound, "404 - Not Found", (None, None)),
    "a page": ("502 Bad Gateway", "<html>away</html>", ServerFailed, "away", (None, None)),
    "nothing": ("503 Service Unavailable", "", ServerFailed, "503", (None, None)),
    "a key": ("401 Unauthorized", {"detail": "sk-abcdefghijklmnop"}, AuthenticationFailed, "401 - ", (None, None)),
}


@pytest.mark.parametrize("name", BODIES)
async def test_what_the_body_of_an_error_says(name: str) -> None:
    status, body, kind, words, said = BODIES[name]
    async with serve(answer(body, status)) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1")
        with pytest.raises(kind, match=words) as caught:
            await model.create(REQUEST)
        await model.close()
    assert (caught.value.code, caught.value.param) == said
    assert "abcdefghij" not in str(caught.value)


# name -> what the server streams instead of an answer, what is raised
IN_STREAMS: dict[str, tuple[dict[str, Any], type[ProviderError]]] = {
    "a status": ({"error": {"message": "slow down", "code": 429}}, RateLimited),
    "a code": ({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, RateLimited),
    "words": ({"error": {"message": LONG, "code": 400}}, ContextLengthExceeded),
    "a text": ({"error": "it broke"}, ServerFailed),
    "an event": ({"type": "error", "message": "slow down", "code": "rate_limit_exceeded"}, RateLimited),
    "an event with a status": ({"type": "error", "message": LONG, "code": "400"}, ContextLengthExceeded),
    "a failed response": (
        {"type": "response.failed", "response": {"status": "failed", "error": {"code": "429", "message": "slow down"}}},
        RateLimited,
    ),
    "a failed response that says nothing": (
        {"type": "response.failed", "response": {"status": "failed", "error": None}},
        ServerFailed,
    ),
}


@pytest.mark.parametrize("repair", [False, True])
@pytest.mark.parametrize("name", IN_STREAMS)
async def test_what_fails_in_the_stream_is_typed(name: str, repair: bool) -> None:
    said, kind = IN_STREAMS[name]
    async with serve(chunked([data(said)])) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", repair=repair)
        with pytest.raises(kind) as caught:
            await model.create(REQUEST, stream=True)
        await model.close()
    assert type(caught.value) is kind
    assert "None" not in str(caught.value)


async def test_no_connection() -> None:
    model = OpenAIResponsesModel("tiny", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ConnectionFailed):
        await model.create(REQUEST)
    await model.close()


async def test_too_slow() -> None:
    async with serve([Act.HANG]) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1")
        with pytest.raises(TimedOut):
            await model.create(REQUEST, timeout=0.05)
        await model.close()


async def _heard(model: OpenAIResponsesModel, heard: list[Any]) -> None:
    await collect(await model.create(REQUEST, stream=True, timeout=0.3), heard)


@pytest.mark.parametrize("repair", [False, True])
@pytest.mark.parametrize("stream", [False, True])
async def test_the_timeout_is_that_of_the_whole_attempt(stream: bool, repair: bool) -> None:
    """A server that always says something, and never comes to an end, is left too."""
    said = events_as_bytes(events_of(text("Hello").chunks)[:5]) if stream else [b"{"]
    alive = [b": alive\n\n" if stream else b" ", Pause(0.02)] * 500
    async with serve(
        chunked([*said, *alive], content_type="text/event-stream" if stream else "application/json")
    ) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", repair=repair)
        heard: list[Any] = []
        with pytest.raises(TimedOut, match=r"within 0.3 s"):
            await (_heard(model, heard) if stream else model.create(REQUEST, timeout=0.3))
        await server.until(lambda now: now.open == 0)
        await model.close()
    assert [event.type for event in heard[-1:]] == (
        [] if not stream else ["response.failed"] if repair else [heard[4].type]
    )


async def test_a_model_in_many_event_loops() -> None:
    """Each has its own connections; what one of them closes is open in the others."""
    events = events_of(text("Hello").chunks)
    async with serve(server_of(events)) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1")
        answers: list[str] = []

        async def ask() -> None:
            answers.extend([(await model.create(REQUEST)).output_text for _ in range(2)])
            await model.close()

        threads = [threading.Thread(target=lambda: asyncio.run(ask())) for _ in range(4)]
        for thread in threads:
            thread.start()
        await ask()
        await asyncio.to_thread(lambda: [thread.join(20) for thread in threads])
    assert answers == ["Hello"] * 10


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_model_in_one_event_loop_after_another() -> None:
    """As programs have it that call `asyncio.run` again and again, and close at the end, if ever."""
    port = free_port()
    model = OpenAIResponsesModel("tiny", base_url=f"http://127.0.0.1:{port}/v1")
    answer_of = server_of(events_of(text("Hello").chunks))
    wrong: list[dict[str, Any]] = []

    async def ask(close: bool) -> str:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: wrong.append(context))
        async with serve(answer_of, port):
            said = (await model.create(REQUEST)).output_text
            gc.collect()
            await asyncio.sleep(0)
            if close:
                await model.close()
            return str(said)

    assert [asyncio.run(ask(close)) for close in (False, False, True)] == ["Hello"] * 3
    gc.collect()
    assert wrong == []


async def test_the_number_of_a_request_that_was_tried_again() -> None:
    events = events_of(text("Hello").chunks)
    refusal = answer({"error": {"message": "away"}}, "503 Service Unavailable", retry_after="0")
    scripts = iter([refusal, chunked(events_as_bytes(events), x_request_id="req_2")])
    async with serve(lambda request: next(scripts)) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", retry=RETRY)
        stream = await model.create(REQUEST, stream=True)
        last = [event async for event in stream][-1]
        await model.close()
    assert (ModelResponse.of(last.response).request_id, stream.request_id, stream.requests) == ("req_2", "req_2", 2)


async def test_a_failed_response_raises() -> None:
    late = events_of([*text("Hel").chunks[:2], {"error": {"code": 429, "message": "slow down"}}])
    async with serve(server_of(late)) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1")
        heard: list[Any] = []
        stream = await model.create(REQUEST, stream=True)
        with pytest.raises(ProviderError):
            await collect(stream, heard)
        with pytest.raises(RateLimited):
            await model.create(REQUEST)
        await model.close()
    assert heard


async def test_a_stream_without_an_end() -> None:
    events = events_of(text("Hello").chunks)[:-1]
    async with serve(told(events)) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1")
        with pytest.raises(ServerFailed, match="without a terminal event"):
            await listen(model)
        await model.close()


@pytest.mark.parametrize("stream", [False, True])
async def test_what_showed_nothing_is_tried_again(stream: bool) -> None:
    events = events_of(text("Hello").chunks)
    refusal = answer({"error": {"message": "away"}}, "503 Service Unavailable", retry_after="0")
    scripts = iter([refusal, told(events) if stream else answer(events[-1]["response"])])
    async with serve(lambda request: next(scripts)) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", retry=RETRY)
        answered = await model.create(REQUEST, stream=stream)
        response = [event async for event in answered][-1].response if stream else answered
        await model.close()
    assert Usage.of(response).requests == 2


SSE = b"".join(events_as_bytes(events_of(text("Hello").chunks)))
DRESSES = ["text/plain", "text/html", "application/json", "application/octet-stream"]


@pytest.mark.parametrize("repair", [False, True])
@pytest.mark.parametrize("dress", [*DRESSES, ""])
async def test_events_in_another_dress(dress: str, repair: bool) -> None:
    headers = {"content_type": dress} if dress else {}
    async with serve(answer(SSE, **headers)) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", repair=repair)
        heard = [event.type async for event in await model.create(REQUEST, stream=True)]
        await model.close()
    assert (heard[0], heard[-1]) == ("response.created", "response.completed")


@pytest.mark.parametrize("dress", DRESSES)
async def test_events_in_another_dress_come_as_they_are_sent(dress: str) -> None:
    script = chunked(
        [SSE[:40], SSE[40 : SSE.index(b"event: response.output_text.delta")], Act.HANG], content_type=dress
    )
    async with serve(script) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1")
        stream = await model.create(REQUEST, stream=True)
        assert (await anext(stream)).type == "response.created"
        await stream.aclose()
        await server.until(lambda now: now.open == 0)
        await model.close()


@pytest.mark.parametrize("dress", [*DRESSES, "text/event-stream", ""])
@pytest.mark.parametrize("body", ["It works!", "<html><title>Sign in</title></html>", '{"detail": "no such route"}'])
async def test_what_is_no_stream_is_shown(body: str, dress: str) -> None:
    headers = {"content_type": dress} if dress else {}
    async with serve(answer(body, **headers)) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1")
        with pytest.raises(BadAnswer) as caught:
            await model.create(REQUEST, stream=True)
        await model.close()
    assert f"the server sent {dress or 'no content type'} and no stream: {body!r}" in str(caught.value)
    assert not caught.value.transient


async def test_checked_streams_raise_for_what_they_break() -> None:
    events = events_of(text("Hello").chunks)
    broken = [event for event in events if event["type"] != "response.output_text.done"]
    async with serve(told(broken)) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", check=True)
        heard: list[Any] = []
        stream = await model.create(REQUEST, stream=True)
        with pytest.raises(EventsBroken) as caught:
            await collect(stream, heard)
        await model.close()
    assert len(heard) == len(broken)
    assert caught.value.findings
    assert "the stream breaks" in str(caught.value)


async def test_closing_the_events_closes_the_connection() -> None:
    events = events_of(text("Hello").chunks)
    async with serve([*told(events[:5])[:-1], Act.HANG]) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1")
        stream = await model.create(REQUEST, stream=True)
        await anext(stream)
        await stream.aclose()
        await server.until(lambda now: now.open == 0)
        await model.close()


def test_options_that_are_none() -> None:
    with pytest.raises(BadInput, match="made already"):
        OpenAIResponsesModel("tiny", AsyncOpenAI(api_key="k"), base_url="http://127.0.0.1")


async def test_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(BadInput, match="OpenAI SDK"):
        await OpenAIResponsesModel("tiny").create(REQUEST)


# --- histories of chat backends ------------------------------------------------------------------------------------

OWN = "rs_0df93c0bb83a72f20068c979db90b4819e94cedbfda2d49af6"  # of the server


def remembering(known: set[str], events: list[dict[str, Any]]) -> Any:
    """Return the script of a server that refuses what it does not know, as OpenAI's does."""
    begins = {"message": "msg_", "reasoning": "rs_", "function_call": "fc_", "custom_tool_call": "ctc_"}

    def fault(item: dict[str, Any]) -> str:
        kind, name = item.get("type", "message"), item.get("id")
        if not set(item) <= {"type", "id", "role", "content", "status", "summary", "encrypted_content", *CALL_KEYS}:
            return f"Unknown parameter in {sorted(item)}"
        if name is not None and not name.startswith(begins.get(kind, "")):
            return f"Expected an ID that begins with {begins[kind]!r}: {name!r}"
        if kind in ("reasoning", "item_reference") and name not in known:
            return f"Item with id {name!r} not found"
        if item.get("encrypted_content") not in (None, "gAAAA"):
            return "The encrypted content could not be verified"
        return ""

    def script(request: Request) -> Script:
        given = request.body["input"]
        faults = [found for found in map(fault, given if isinstance(given, list) else ()) if found]
        if faults:
            return answer({"error": {"message": faults[0], "type": "invalid_request_error"}}, "400 Bad Request")
        return server_of(events)(request)

    return script


CALL_KEYS = ("call_id", "name", "arguments", "output", "input")


def chat_history(ids: Any) -> list[dict[str, Any]]:
    """Return what a chat backend's answer looks like as items, and the output of its call."""
    turn = reasoning("think", calls(("call_1", "f", "{}")))
    items = list(convert(turn.chunks, events="dict", ids=ids, created_at=0))[-1]["response"]["output"]
    spoken = list(convert(text("Hello").chunks, events="dict", ids=ids, created_at=0))[-1]["response"]["output"]
    return [*items, {"type": "function_call_output", "call_id": "call_1", "output": "1"}, *spoken]


async def test_a_history_of_a_chat_backend_goes_to_a_server_that_knows_its_own_ids_alone() -> None:
    history = json.loads(json.dumps(chat_history("random")))
    kept = {"type": "reasoning", "id": OWN, "summary": [], "encrypted_content": "gAAAA"}
    fake = {"type": "message", "id": "__fake_id__", "role": "assistant", "status": "completed", "content": []}
    signed = {**history[0], "encrypted_content": "foreign", "provider_data": {"reasoning_details": []}}
    given = [
        {"role": "user", "content": "q"},
        *history,
        signed,
        kept,
        fake,
        {"type": "item_reference", "id": history[0]["id"]},
    ]
    async with serve(remembering({OWN}, events_of(text("Hello").chunks))) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1")
        said = ("be good", given, ModelSettings(), [], None, [], ModelTracing.DISABLED)
        assert (await model.get_response(*said)).output
        assert (await model.create({"input": given})).status == "completed"
        await model.close()
    sent, raw = (request.body["input"] for request in server.requests)
    assert sent == raw
    assert [item.get("type") for item in sent] == [
        *(None, "function_call", "function_call_output", "message", "reasoning", "message")
    ]
    assert [item["id"] for item in sent if "id" in item] == [OWN]
    made, report = native_input(given)
    assert made == sent
    assert [(change.kind, change.path) for change in report] == [
        ("ignored", "input[1]"),
        ("changed", "input[2].id"),
        ("changed", "input[4].id"),
        ("ignored", "input[5]"),
        ("changed", "input[7].id"),
        ("dropped", "input[8]"),
    ]


def test_what_a_server_gave_is_shared_and_goes_as_it_came() -> None:
    gateway = RandomIds()  # it gives ids of its own, and opens the reasoning that it sealed
    items = [
        {"type": "reasoning", "id": gateway.make("rs_"), "summary": [], "encrypted_content": "antiphon1.W10="},
        {"type": "item_reference", "id": "msg_7"},
        {"type": "reasoning", "id": OWN, "summary": []},
        {"type": "message", "id": "msg_0df93c0bb83a72f20068c979db90b4819e94cedbfda2d49af6", "role": "assistant"},
        "odd",
    ]
    made, report = native_input(items)
    assert all(one is item for one, item in zip(made, items, strict=True))
    assert report == []
    assert native_input("hello") == ("hello", [])
    assert native_input(one for one in items) == (items, [])


SEALED: dict[str, Any] = {
    "type": "reasoning",
    "id": RandomIds().make("rs_"),
    "summary": [],
    "encrypted_content": "antiphon1.W10=",
}
NAMELESS: dict[str, Any] = {
    key: value for key, value in SEALED.items() if key != "id"
}  # as clients keep it that store nothing
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
GAVE = {"type": "function_call_output", "call_id": "c", "output": "1"}


@pytest.mark.parametrize("item", [SEALED, NAMELESS])
def test_what_antiphon_sealed_stays_out_where_it_cannot_be_opened(item: dict[str, Any]) -> None:
    own = {**item, "id": OWN, "encrypted_content": "gAAAA"}
    made, report = native_input([item, own, CALL, GAVE], opens=False)
    assert made == [own, CALL, GAVE]
    assert [(change.kind, change.path, change.came) for change in report] == [("ignored", "input[0]", "reasoning")]


@pytest.mark.parametrize(
    ("base_url", "sent"),
    [
        ("https://api.openai.com/v1", 0),
        ("https://eu.api.openai.com/v1", 0),
        ("https://choir.openai.azure.com/openai/v1", 0),
        ("https://api.x.ai/v1", 0),
        ("http://127.0.0.1:8080/v1", 1),
        ("https://gateway.choir.example/v1", 1),
    ],
)
async def test_who_is_sent_what_antiphon_sealed(base_url: str, sent: int) -> None:
    asked: list[Any] = []

    def remember(request: httpx2.Request) -> httpx2.Response:
        asked.append(json.loads(request.content))
        return httpx2.Response(200, json=events_of(text("Hello").chunks)[-1]["response"])

    async with AsyncOpenAI(
        base_url=base_url, api_key="k", http_client=httpx2.AsyncClient(transport=httpx2.MockTransport(remember))
    ) as client:
        await OpenAIResponsesModel("tiny", client).create({"input": [SEALED, CALL, GAVE]})
    assert asked[0]["input"] == [SEALED] * sent + [CALL, GAVE]


@pytest.mark.parametrize("stream", [False, True])
async def test_who_refuses_what_antiphon_sealed_is_asked_without_it(
    stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "antiphon")
    async with serve(remembering({SEALED["id"]}, events_of(text("Hello").chunks))) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1")
        answers = [await model.create({"input": [SEALED, CALL, GAVE]}, stream=stream) for _ in range(2)]
        said = [[event async for event in one][-1].response for one in answers] if stream else answers
        with pytest.raises(BadRequest, match="could not be verified"):
            await model.create({"input": [{**SEALED, "encrypted_content": "foreign"}]}, stream=stream)
        await model.close()
    assert [request.body["input"][:-2] for request in server.requests[:3]] == [[SEALED], [], []]
    assert len(server.requests) == 4
    assert [Usage.of(one).requests for one in said] == [2, 1]
    assert "antiphon sealed it" in caplog.text


# --- keys -------------------------------------------------------------------------------------------------------------

KEY = "tk-4711-verysecret-abcdef"  # it does not look like one
REFUSAL = {"error": {"message": f"Incorrect key {KEY}", "code": KEY, "param": KEY, "type": "invalid_request_error"}}
FAILED = {"status": "failed", "error": {"code": "server_error", "message": f"upstream refused {KEY}"}}


def failing(*more: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of an answer that fails after its first words, with these events before its end."""
    events = events_of(text("Hel").chunks)
    begun = [event for event in events if not event["type"].endswith((".done", ".completed"))]
    numbered = [{**event, "sequence_number": len(begun) + at} for at, event in enumerate(more)]
    end = {"type": "response.failed", "sequence_number": len(begun) + len(more)}
    return [*begun, *numbered, {**end, "response": {**events[-1]["response"], **FAILED}}]


def cut_at(place: int) -> str:
    """Return a text with the key where an excerpt of that length ends."""
    return f"{'x' * (place - len(KEY) // 2)}{KEY}"


# name -> what the server sends, to requests of both kinds
SAYING: dict[str, Script] = {
    "401": answer(REFUSAL, "401 Unauthorized"),
    "401, of another form": answer({"detail": f"no: {KEY}"}, "401 Unauthorized"),
    "401, a text": answer(cut_at(300), "401 Unauthorized", content_type="text/plain"),
    "a good status": answer(REFUSAL),
    "a good status, of another form": answer({"detail": f"no: {KEY}"}),
    "a failed response": answer({**events_of(text("Hel").chunks)[-1]["response"], **FAILED}),
    "a page": answer(f"<html>{cut_at(294)}</html>", content_type="text/html"),
    "a page, cut later": answer(f"<html>{cut_at(310)}</html>", content_type="text/html"),
    "JSON, cut": answer({"x": cut_at(290)}),
    "a failed event": told(failing()),
    "an error event": told(failing({"type": "error", "code": "x", "message": f"no: {KEY}", "param": None})),
    "a nested error event": told(failing({"type": "error", "error": {"message": f"no: {KEY}", "code": "401"}})),
    "an unknown event": told(failing({"type": "response.warning", "notes": [{"text": f"about {KEY}"}]})),
    "an event without a type": chunked([data({"no": f"{'y' * 40}{KEY}"})]),
    "an error without a type": chunked([data(REFUSAL)]),
    "a line that is no JSON": chunked([f"data: {{bad {KEY}\n\n".encode()]),
}


def clients_of(url: str) -> dict[str, OpenAIResponsesModel]:
    """Return models that send the key in different places."""
    made: dict[str, dict[str, Any]] = {
        "api_key": {"api_key": KEY},
        "a header of all requests": {"api_key": "k", "default_headers": {"x-api-key": f"Bearer {KEY}"}},
        "a parameter of all requests": {"api_key": "k", "default_query": {"token": KEY}},
    }
    return {name: OpenAIResponsesModel("tiny", base_url=f"{url}/v1", **how) for name, how in made.items()}


async def shown_by(model: OpenAIResponsesModel, request: dict[str, Any]) -> str:
    """Return all that is shown of an answer: its events, its response, its error."""
    heard: list[Any] = []
    try:
        answered = await model.create(request)
        if request["stream"]:
            await collect(answered, heard)
    except ProviderError as error:
        return f"{[event.to_dict() for event in heard]}{error!r}{vars(error)}{error.__cause__!r}{error.__context__!r}"
    raise AssertionError("it failed nowhere")


@pytest.mark.parametrize("repair", [False, True], ids=["as it is", "repaired"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("script", SAYING.values(), ids=SAYING)
async def test_no_key_is_said(script: Script, stream: bool, repair: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "antiphon")
    async with serve(script) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", api_key=KEY, repair=repair)
        shown = await shown_by(model, {"input": "hello", "stream": stream})
        await model.close()
    assert KEY[:8] not in shown + caplog.text


@pytest.mark.parametrize("name", ["a failed event", "401", "a page"])
async def test_no_key_is_said_wherever_it_is_sent(name: str) -> None:
    async with serve(SAYING[name]) as server:
        models = clients_of(server.url)
        shown = [await shown_by(model, {"input": "hello", "stream": True}) for model in models.values()]
        shown.append(
            await shown_by(models["api_key"], {"input": "a", "stream": True, "extra_headers": {"authorization": KEY}})
        )
        given = AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0)
        shown.append(await shown_by(OpenAIResponsesModel("tiny", given), {"input": "hello", "stream": True}))
        for model in models.values():
            await model.close()
        await given.close()
    assert [one for one in shown if KEY[:8] in one] == []


async def test_what_the_model_says_stays() -> None:
    """A key may be a word, as local servers want it; and an event in which nothing is hidden is the one that came."""
    events = events_of(text("ollama runs", " ollama").chunks)
    async with serve(told([*events[:-1], {"type": "response.note", "said": "ollama"}, events[-1]])) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", api_key="ollama")
        heard = [event.to_dict() async for event in await model.create(REQUEST, stream=True)]
        await model.close()
    assert heard == [*events[:-1], {"type": "response.note", "said": "***"}, events[-1]]


@pytest.mark.parametrize("repair", [False, True], ids=["as it is", "repaired"])
async def test_no_key_is_said_by_a_response_that_did_not_fail(repair: bool) -> None:
    cut = {**events_of(text("Hel").chunks)[-1]["response"], **FAILED, "status": "incomplete"}
    async with serve(answer(cut)) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", api_key=KEY, repair=repair)
        response = await model.create(REQUEST)
        await model.close()
    assert (response.status, response.output_text) == ("incomplete", "Hel")
    assert KEY[:8] not in response.to_json()


# what a server does to the second request on a connection, and how often it is sent then
KEPT: dict[str, tuple[Script, int]] = {
    "closes it": ([Act.CLOSE], 2),
    "resets it": ([Act.RESET], 2),
    "closes it after a letter": ([b"H", Act.CLOSE], 1),
    "resets it in the head": ([b"HTTP/1.1 200 OK\r\nContent", Pause(0.02), Act.RESET], 1),
    "closes it after hints": ([b"HTTP/1.1 103 Early Hints\r\n\r\n", Act.CLOSE], 1),
}


@pytest.mark.parametrize(("fate", "sent"), KEPT.values(), ids=KEPT)
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
async def test_a_kept_connection_that_is_gone_is_made_again(fate: Script, sent: int, streamed: bool) -> None:
    """And where anything of an answer came, that is an error."""
    whole: dict[str, Any] = {"id": "resp_1", "object": "response", "status": "completed", "model": "tiny", "output": []}
    good = chunked([data({"type": "response.completed", "sequence_number": 0, "response": whole})])

    def script(_: Request) -> Script:
        return fate if len(server.requests) == 2 else good if streamed else answer(whole)

    async def asked() -> str:
        try:
            created = await model.create({"input": "hi"}, stream=streamed)
            last = [event async for event in created][-1].response if streamed else created
        except ConnectionFailed as error:
            return str(error)
        return str(last.status)

    async with serve(script) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", api_key="k")
        first, second, third = [await asked() for _ in range(3)]
        await model.close()
        assert (first, third, len(server.requests), server.connections) == ("completed", "completed", 2 + sent, 2)
        assert second == "completed" if sent == 2 else "the connection to the server failed: " in second


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("script", [
    pytest.param(answer("not gzip", content_type="application/json", content_encoding="gzip"), id="not compressed as it says"),
    pytest.param(answer("", "307 Temporary Redirect", location="/v1/responses"), id="a circle"),
])  # fmt: skip
async def test_what_asking_again_does_not_mend(script: Script, streamed: bool) -> None:
    async with serve(script) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", api_key="k")
        with pytest.raises(BadAnswer, match="cannot be read"):
            await (listen(model) if streamed else ask(model))
        await model.close()
