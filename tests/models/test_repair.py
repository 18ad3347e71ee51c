"""Streams of servers that deviate, repaired: no rule finds anything, and nothing that was said is lost."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon import convert
from antiphon.errors import BadAnswer, ProviderError
from antiphon.models import ModelSettings, ModelTracing, OpenAIResponsesModel
from antiphon.stream.native import Repairer, repair
from antiphon.stream.sse import SSEDecoder, SSEMessage
from antiphon_conformance import Level, check
from tests.providers.backends.loopback import Act, Request, Script, answer, chunked, data, head, serve

from .native_streams import HELLO, STREAMS, Native, added, begin, done, end, message, text
from .scripted import calls, reasoning
from .scripted import text as said

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
NATIVE = sorted(
    str(path.relative_to(CORPUS)) for path in (*CORPUS.glob("responses/*/*.jsonl"), *CORPUS.glob("wire/*/resp_*.sse"))
)


def broken(events: list[Any]) -> list[str]:
    return [str(one) for one in check(events).findings if one.level is Level.MUST]


def said_by(item: dict[str, Any]) -> str:
    parts = [*(item.get("content") or ()), *(item.get("summary") or ())]
    texts = [part.get("text") or part.get("refusal") or "" for part in parts]
    return "".join(texts) or str(item.get("arguments") or item.get("input") or item.get("encrypted_content") or "")


# --- by hand -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STREAMS)
def test_what_is_repaired(name: str) -> None:
    native = STREAMS[name]
    events = list(repair(native.events, request={"model": "tiny"}))
    response = events[-1]["response"]
    assert broken(events) == []
    assert events[-1]["type"] == f"response.{native.ending}"
    assert [(one["type"], said_by(one), one.get("status")) for one in response["output"]] == native.items
    assert {key: response[key] for key in native.more} == native.more


def test_what_a_server_says_beside_is_kept() -> None:
    item = {**message("Hello"), "phase": "final_answer"}
    annotation = {"type": "url_citation", "url": "u"}
    usage = {"input_tokens": 3, "output_tokens": 4, "cost": 0.1}
    events = list(
        repair(
            [
                *begin(model="a", moderation="low"),
                added(item, output_index=0),
                text("Hello", output_index=0),
                {"type": "response.output_text.annotation.added", "output_index": 0, "annotation": annotation},
                done({**item, "id": "msg_2"}, output_index=0),
                end(item, id="resp_2", model="b", service_tier="standard", usage=usage, background=False),
            ]
        )
    )
    response = events[-1]["response"]
    kept = {"id": "msg_2", "annotations": [annotation]}
    assert (response["id"], response["model"], response["moderation"]) == ("resp_1", "a", "low")
    assert response["provider_data"] == {"id": "resp_2", "model": "b", "service_tier": "standard"}
    assert (response["usage"]["cost"], response["usage"]["total_tokens"]) == (0.1, 7)
    assert (response["output"][0]["phase"], response["output"][0]["provider_data"]) == ("final_answer", kept)


def test_text_is_live_while_items_close_only_at_the_end() -> None:
    repairer = Repairer()
    seen = []
    for event in STREAMS["no indexes, no numbers, no arguments.done, items closed at the end"].events:
        deltas = [one["delta"] for one in repairer.feed(event) if one["type"].endswith(".delta")]
        seen.append((event["type"], deltas))
    live = [(kind, deltas) for kind, deltas in seen if kind.endswith(".delta")]
    assert [deltas for _, deltas in live] == [["Hmm"], ["Hel"], ["lo"], ['{"a"'], [":1}"]]


def test_what_ends_is_not_repaired_further() -> None:
    repairer = Repairer()
    for event in STREAMS["a refusal"].events:
        repairer.feed(event)
    assert (repairer.feed(text("more")), repairer.finish(), repairer.fail(OSError())) == ([], [], [])
    assert repairer.error is None


def test_what_the_source_raises_ends_the_response() -> None:
    def source() -> Iterator[Any]:
        yield from [*begin(), added(HELLO), text("Hel")]
        raise OSError("gone")

    events = list(repair(source()))
    assert broken(events) == []
    assert events[-1]["response"]["error"] == {"code": "server_error", "message": "OSError: gone"}
    assert said_by(events[-1]["response"]["output"][0]) == "Hel"


# --- properties --------------------------------------------------------------------------------------------------------

ANY_EVENT = st.sampled_from([event for native in STREAMS.values() for event in native.events])


@settings(max_examples=1500, deadline=None)
@given(st.lists(ANY_EVENT, max_size=25))
def test_whatever_comes_is_canonical(events: list[Any]) -> None:
    assert broken(list(repair(events, request={"model": "tiny"}))) == []


WRONG = st.sampled_from([None, 3, -1, "x", "", [], {}, True, [1], {"type": "text"}, 1e400, [None], {"id": {}}])


def wronged(value: Any, keys: frozenset[str], wrong: Any) -> Any:
    """Return JSON data with something else at some keys, at any depth."""
    if isinstance(value, list):
        return [wronged(one, keys, wrong) for one in value]
    if not isinstance(value, dict):
        return value
    return {key: wrong if key in keys else wronged(one, keys, wrong) for key, one in value.items()}


KEYS = sorted(
    {key for native in STREAMS.values() for event in native.events for key in event}
    | {"id", "item", "content", "summary", "name", "call_id", "output", "usage", "text", "role", "annotations", "error"}
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(STREAMS)), st.frozensets(st.sampled_from(KEYS), max_size=3), WRONG)
def test_whatever_stands_there_is_canonical(name: str, keys: frozenset[str], wrong: Any) -> None:
    events = [wronged(event, keys, wrong) for event in STREAMS[name].events]
    assert broken(list(repair(events, request={"model": "tiny"}))) == []


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([said("Hel", "lo"), reasoning("think", calls(("call_1", "f", '{"a":1}')))]))
def test_what_is_left_out_or_said_twice_changes_no_text(draw: st.DataObject, turn: Any) -> None:
    events = list(convert(turn.chunks, events="dict", ids="counted", created_at=0, request={"model": "tiny"}))
    optional = [one for one in events if one["type"].rpartition(".")[2] in ("done", "in_progress")]
    left = draw.draw(st.lists(st.sampled_from(optional), unique_by=id))
    thinned = [one for one in events if not any(one is gone for gone in left)]
    keys = draw.draw(st.sets(st.sampled_from(["output_index", "sequence_number", "content_index", "summary_index"])))
    stripped = [{key: value for key, value in one.items() if key not in keys} for one in thinned]
    repaired = list(repair(stripped, request={"model": "tiny"}))
    assert broken(repaired) == []
    assert [said_by(item) for item in repaired[-1]["response"]["output"]] == [
        said_by(item) for item in events[-1]["response"]["output"]
    ]


@pytest.mark.parametrize("turn", [said("Hel", "lo"), reasoning("think", calls(("call_1", "f", "{}"), ("c2", "g", "")))])
def test_a_canonical_stream_stays_as_it_is(turn: Any) -> None:
    events = list(convert(turn.chunks, events="dict", ids="counted", created_at=0, request={"model": "tiny"}))
    assert list(repair(events, created_at=0)) == events


# --- recordings --------------------------------------------------------------------------------------------------------


def recorded(path: str) -> list[Any]:
    """Return the events of a recording; an exception in it is what a line cannot be read for."""
    body = (CORPUS / path).read_bytes()
    if path.endswith(".jsonl"):
        return [json.loads(line) for line in body.splitlines()]
    decoder, events = SSEDecoder(), []
    for told in [*decoder.feed(body), *decoder.finish()]:
        payload = (told.data if isinstance(told, SSEMessage) else told).strip()
        if payload not in (b"", b"[DONE]"):
            try:
                events.append(json.loads(payload))
            except ValueError as problem:
                return [*events, problem]
    return events


def raising(events: list[Any]) -> Iterator[Any]:
    for event in events:
        if isinstance(event, Exception):
            raise event
        yield event


def all_said(events: list[Any]) -> tuple[dict[str, str], Counter[str]]:
    """Return all text by its kind, as the deltas or, where there are none, the done events have it; and the items."""
    texts: dict[str, str] = defaultdict(str)
    items: Counter[str] = Counter()
    streamed: set[tuple[str, Any]] = set()
    for event in (one for one in events if isinstance(one, dict)):
        name, _, step = str(event.get("type")).rpartition(".")
        place = (name, event.get("item_id"))
        if step == "delta" and isinstance(event["delta"], str):
            texts[name] += event["delta"]
            streamed.add(place)
        elif name == "response.function_call_arguments" and step == "done" and place not in streamed:
            texts[name] += event["arguments"]
        elif event.get("type") == "response.output_item.added":
            items[event["item"]["type"]] += 1
    return dict(texts), items


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus does not lie beside the checkout")
@pytest.mark.parametrize("path", NATIVE)
def test_recordings_are_repaired_and_keep_what_they_say(path: str) -> None:
    events = recorded(path)
    if events and isinstance(events[0], dict) and events[0].get("object") == "response":
        events = [{"type": "response.completed", "response": events[0]}]
        repaired = list(repair(events))
        assert [said_by(one) for one in repaired[-1]["response"]["output"]] == [
            said_by(one) for one in events[0]["response"]["output"]
        ]
    else:
        repaired = list(repair(raising(events)))
        assert all_said(repaired) == all_said(events)
    assert broken(repaired) == []


# --- the model ---------------------------------------------------------------------------------------------------------


def server_of(native: Native) -> Any:
    def script(request: Request) -> Script:
        if request.body.get("stream"):
            return chunked([data(event) for event in native.events])
        return answer(native.events[-1].get("response") or {})

    return script


async def ask(model: OpenAIResponsesModel) -> Any:
    return await model.get_response(None, "hello", ModelSettings(), [], None, [], ModelTracing.DISABLED)


async def listen(model: OpenAIResponsesModel, into: list[Any]) -> None:
    events = model.stream_response(None, "hello", ModelSettings(), [], None, [], ModelTracing.DISABLED)
    async for event in events:
        into.append(event)  # noqa: PERF401  # those before a failure count


WHOLE = [
    name for name, native in STREAMS.items() if native.ending != "failed" and native.events[-1]["response"]["output"]
]


@pytest.mark.parametrize("name", STREAMS)
async def test_the_model_repairs_streams(name: str) -> None:
    native = STREAMS[name]
    heard: list[Any] = []
    async with serve(server_of(native)) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", repair=True, check=True)
        if native.ending == "failed":
            with pytest.raises(ProviderError):
                await listen(model, heard)
        else:
            await listen(model, heard)
            assert [(one.type, said_by(one.to_dict())) for one in heard[-1].response.output] == [
                item[:2] for item in native.items
            ]
        await model.close()


@pytest.mark.parametrize("name", WHOLE)
async def test_whole_as_streamed(name: str) -> None:
    native = STREAMS[name]
    heard: list[Any] = []
    async with serve(server_of(native)) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", repair=True)
        asked = await ask(model)
        await listen(model, heard)
        await model.close()
    streamed = heard[-1].response
    assert Counter(said_by(one.to_dict()) for one in asked.output if said_by(one.to_dict())) >= Counter(
        said_by(one.to_dict()) for one in streamed.output if one.type == "function_call"
    )
    assert (asked.status, asked.usage.total_tokens) == (streamed.status, streamed.usage.total_tokens)


PAGE = b"<html><title>Sign in</title></html>"
BAD: dict[str, tuple[Script, type[ProviderError]]] = {
    "a web page": ([head(content_type="text/html", content_length=str(len(PAGE))), PAGE], BadAnswer),
    "an error object": (answer({"error": {"message": "no"}}), BadAnswer),
    "something else": (answer(b"[1, 2]", content_type="application/json"), BadAnswer),
}


@pytest.mark.parametrize("repairs", [False, True])
@pytest.mark.parametrize("name", BAD)
async def test_what_is_no_answer(name: str, repairs: bool) -> None:
    script, kind = BAD[name]
    async with serve(script) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", repair=repairs)
        with pytest.raises(kind):
            await listen(model, [])
        with pytest.raises(kind):
            await ask(model)
        await model.close()


@pytest.mark.parametrize("repairs", [False, True])
@pytest.mark.parametrize("last", [b"data: {\n\n", Act.RESET, Act.CLOSE], ids=["half a line", "reset", "closed"])
async def test_streams_that_break(last: Any, repairs: bool) -> None:
    script = chunked([data(event) for event in [*begin(), added(HELLO, output_index=0), text("Hel", output_index=0)]])
    heard: list[Any] = []
    async with serve([*script[:-1], last if isinstance(last, Act) else b"%x\r\n%b\r\n" % (len(last), last)]) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", repair=repairs)
        with pytest.raises(ProviderError) as caught:
            await listen(model, heard)
        await server.until(lambda now: now.open == 0)
        await model.close()
    if repairs:
        assert broken([event.to_dict() for event in heard]) == []
        assert str(caught.value) in heard[-1].response.error.message
