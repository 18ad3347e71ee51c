"""`accumulate`: a whole stream gives its terminal response, a cut one the response so far."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai.types.responses import Response

from antiphon import BadInput, accumulate
from antiphon.stream.accumulate import Accumulator
from antiphon.stream.sse import encode_event, read_events

Json = dict[str, Any]

RECORDINGS = sorted((Path(__file__).parents[3] / "shared" / "corpus" / "responses" / "openai").glob("*.jsonl"))
needs_recordings = pytest.mark.skipif(not RECORDINGS, reason="the recorded streams are not beside this checkout")

HEAD = {"id": "resp_1", "object": "response", "created_at": 0, "model": "m", "status": "in_progress", "output": []}
LOGPROB = {"token": "Hi", "logprob": -0.1, "bytes": [72, 105], "top_logprobs": []}
CITATION = {"type": "url_citation", "url": "http://a.invalid", "title": "A", "start_index": 0, "end_index": 2}


def at(output_index: int, kind: str, **fields: Any) -> Json:
    return {"type": f"response.{kind}", "output_index": output_index, "item_id": f"item_{output_index}", **fields}


def item(output_index: int, kind: str, **fields: Any) -> Json:
    return {"id": f"item_{output_index}", "type": kind, **fields}


def text_part(text: str, **fields: Any) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": [], **fields}


REASONING = [
    at(0, "output_item.added", item=item(0, "reasoning", summary=[])),
    at(0, "reasoning_summary_part.added", summary_index=0, part={"type": "summary_text", "text": ""}),
    at(0, "reasoning_summary_text.delta", summary_index=0, delta="Let me "),
    at(0, "reasoning_summary_text.delta", summary_index=0, delta="think"),
    at(0, "reasoning_summary_text.done", summary_index=0, text="Let me think"),
    at(0, "reasoning_summary_part.done", summary_index=0, part={"type": "summary_text", "text": "Let me think"}),
    at(0, "reasoning_summary_part.added", summary_index=1, part={"type": "summary_text", "text": ""}),
    at(0, "reasoning_summary_text.delta", summary_index=1, delta="again"),
    at(0, "content_part.added", content_index=0, part={"type": "reasoning_text", "text": ""}),
    at(0, "reasoning_text.delta", content_index=0, delta="raw"),
]
MESSAGE = [
    at(1, "output_item.added", item=item(1, "message", role="assistant", status="in_progress", content=[])),
    at(1, "content_part.added", content_index=0, part=text_part("")),
    at(1, "output_text.delta", content_index=0, delta="Hi", logprobs=[LOGPROB]),
    at(1, "output_text.delta", content_index=0, delta=" there", logprobs=[]),
    at(1, "output_text.annotation.added", content_index=0, annotation_index=0, annotation=CITATION),
    at(1, "output_text.done", content_index=0, text="Hi there", logprobs=[LOGPROB]),
    at(1, "content_part.done", content_index=0, part=text_part("Hi there", annotations=[CITATION])),
    at(1, "content_part.added", content_index=1, part={"type": "refusal", "refusal": ""}),
    at(1, "refusal.delta", content_index=1, delta="No"),
]
CALL = [
    at(
        2, "output_item.added", item=item(2, "function_call", call_id="c", name="f", arguments="", status="in_progress")
    ),
    at(2, "function_call_arguments.delta", delta='{"a"'),
    at(2, "function_call_arguments.delta", delta=":1}"),
]
CUSTOM = [
    at(3, "output_item.added", item=item(3, "custom_tool_call", call_id="d", name="g", input="")),
    at(3, "custom_tool_call_input.delta", delta="ab"),
    at(3, "custom_tool_call_input.done", input="abc"),
]
CUT = [
    {"type": "response.created", "response": HEAD},
    {"type": "response.in_progress", "response": HEAD},
    *(*REASONING, *MESSAGE, *CALL, *CUSTOM),
]
SO_FAR = [
    item(
        0,
        "reasoning",
        summary=[{"type": "summary_text", "text": "Let me think"}, {"type": "summary_text", "text": "again"}],
        content=[{"type": "reasoning_text", "text": "raw"}],
    ),
    item(
        1,
        "message",
        role="assistant",
        status="in_progress",
        content=[
            text_part("Hi there", annotations=[CITATION], logprobs=[LOGPROB]),
            {"type": "refusal", "refusal": "No"},
        ],
    ),
    item(2, "function_call", call_id="c", name="f", arguments='{"a":1}', status="in_progress"),
    item(3, "custom_tool_call", call_id="d", name="g", input="abc"),
]
FINAL = {**HEAD, "status": "completed", "output": [item(2, "function_call", arguments="{}", status="completed")]}


def numbered(events: list[Json]) -> list[Json]:
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def as_objects(events: list[Json]) -> list[Any]:
    """Return `events` as the official client reads them."""
    return list(client(events).responses.create(model="m", input="x", stream=True))


def client(events: list[Json]) -> openai.OpenAI:
    body = b"".join(encode_event(event["type"], json.dumps(event).encode()) for event in events)
    answer = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    transport = httpx2.MockTransport(lambda request: answer)
    return openai.OpenAI(api_key="-", base_url="http://api.invalid", http_client=httpx2.Client(transport=transport))


def without_parsed(value: Any) -> Any:
    """Return `value` without what the official accumulator adds."""
    if isinstance(value, dict):
        return {key: without_parsed(one) for key, one in value.items() if key not in ("parsed", "parsed_arguments")}
    return [without_parsed(one) for one in value] if isinstance(value, list) else value


def test_a_cut_stream_gives_the_response_so_far() -> None:
    assert accumulate(CUT) == {**HEAD, "output": SO_FAR}


def test_events_are_left_as_they_were() -> None:
    before = json.dumps(CUT)
    accumulate(CUT)
    assert json.dumps(CUT) == before


def test_openai_objects_give_an_openai_response() -> None:
    response = accumulate(as_objects(numbered(CUT)))
    assert isinstance(response, Response)
    assert response.to_dict() == {**HEAD, "output": SO_FAR}


def test_the_terminal_response_is_preferred() -> None:
    events = [*CUT, {"type": "response.completed", "response": FINAL}]
    assert accumulate(events) == FINAL
    response = accumulate(as_objects(numbered(events)))
    assert isinstance(response, Response)
    assert response.to_dict() == FINAL


def test_a_terminal_response_without_items_gets_those_of_the_stream() -> None:
    final = {**HEAD, "status": "completed", "usage": {"total_tokens": 3}}
    events = [*CUT, {"type": "response.completed", "response": final}]
    assert accumulate(events) == {**final, "output": SO_FAR}
    assert accumulate(as_objects(numbered(events))).to_dict() == {**final, "output": SO_FAR}


def test_a_done_item_replaces_what_was_built() -> None:
    done = item(2, "function_call", call_id="c", name="f", arguments="{}", status="completed")
    assert accumulate([*CUT, at(2, "output_item.done", item=done)])["output"][2] == done


@pytest.mark.parametrize(
    "error",
    [{"code": "rate_limit_exceeded", "message": "slow"}, {"error": {"code": "rate_limit_exceeded", "message": "slow"}}],
)
def test_an_error_that_no_terminal_event_follows(error: Json) -> None:
    response = accumulate([*CUT, {"type": "error", **error}])
    assert (response["status"], response["error"]) == (
        "failed",
        {"code": "rate_limit_exceeded", "message": "slow"},
    )


def test_text_without_an_announced_part() -> None:
    events = [*CUT[:2], MESSAGE[0], at(1, "output_text.delta", content_index=0, delta="Hi")]
    events[2] = {**events[2], "output_index": 1}
    assert accumulate(events)["output"][0]["content"] == [{"type": "output_text", "text": "Hi"}]


UNREADABLE: dict[str, tuple[list[Any], str]] = {
    "no events": ([], "none came: no events"),
    "no created": (CUT[1:], r"none came: \d+ events, the first is response.in_progress"),
    "an item that was not announced": (
        [CUT[0], MESSAGE[2]],
        r"event 1 \(response.output_text.delta\) is about item 1",
    ),
    "a field is missing": (
        [CUT[0], {"type": "response.output_item.added"}],
        "event 1 .*: `item` is an object, and here is None",
    ),
    "no type": ([{"a": 1}], "event 0 has no `type`"),
    "not an event": ([7], "here is 7"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_named(name: str) -> None:
    events, message = UNREADABLE[name]
    with pytest.raises(BadInput, match=message):
        accumulate(events)


def test_dicts_need_neither_openai_nor_pydantic() -> None:
    program = (
        "import sys; from antiphon import accumulate; accumulate([{'type': 'response.created', 'response': {}}]);"
        "assert not {'openai', 'pydantic'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def recorded(path: Path) -> list[Json]:
    return list(read_events(path.read_bytes()))


def completed_recordings() -> Iterator[list[Json]]:
    for path in RECORDINGS:
        events = recorded(path)
        if events[0]["type"] == "response.created" and events[-1]["type"] == "response.completed":
            yield events


@needs_recordings
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # that accumulator dumps items without asking not to
def test_the_official_accumulator_agrees() -> None:
    """Its final response on whole streams, and its text and argument snapshots at every delta."""
    for events in completed_recordings():
        with client(events).responses.stream(model="m", input="x") as stream:
            snapshots = [getattr(one, "snapshot", None) for one in stream]
            theirs = stream.get_final_response()
        objects = as_objects(events)
        ours = accumulate(objects)
        assert without_parsed(ours.to_dict(warnings=False)) == without_parsed(theirs.to_dict(warnings=False))
        assert_snapshots(objects, snapshots)


def assert_snapshots(objects: list[Any], snapshots: list[str | None]) -> None:
    accumulator = Accumulator()
    for event, snapshot in zip(objects, snapshots, strict=True):
        accumulator.feed(event)
        if snapshot is not None:
            grown = accumulator.response().output[event.output_index]
            text = grown.arguments if grown.type == "function_call" else grown.content[event.content_index].text
            assert text == snapshot


# What only the done event of an item tells, such as the result of a hosted tool.
LATE = {"status", "id", "phase", "encrypted_content", "logprobs"}


def without_late(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_late(one) for key, one in value.items() if key not in LATE}
    return [without_late(one) for one in value] if isinstance(value, list) else value


@needs_recordings
def test_the_deltas_alone_rebuild_what_the_recorded_terminal_says() -> None:
    kinds = ("message", "reasoning", "function_call", "custom_tool_call")
    for events in completed_recordings():
        deltas = [event for event in events if not event["type"].endswith((".done", ".completed"))]
        rebuilt, final = accumulate(deltas), accumulate(events)
        assert rebuilt["status"] == "in_progress"
        for ours, theirs in zip(rebuilt["output"], final["output"], strict=True):
            if theirs["type"] in kinds:
                assert without_late(ours) == without_late(theirs)
