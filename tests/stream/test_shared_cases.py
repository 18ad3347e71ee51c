"""Real faults of other converters, as small inputs with the right outcome, from the folder beside the checkout."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from antiphon import ChatCmplStreamHandler, convert, convert_sse, to_response

from .cases.build import DONE, sse
from .summary import SHARED, Json, Summary, anonymous, differences, flat_usage, heard, kept, of_response, plain, told

SAME_EVERY_TIME: dict[str, Any] = {"events": "dict", "ids": "counted", "created_at": 0}
AREAS = ("stream", "usage", "nonstream", "errors")


def shared_cases() -> dict[str, Json]:
    """Return the cases of our areas by id; none where the folder is not there."""
    found = [json.loads(path.read_text()) for path in sorted((SHARED / "cases" / "bugs").glob("*.json"))]
    return {case["id"]: case for case in found if case["area"] in AREAS}


CASES = shared_cases()

if not CASES:
    pytest.skip("no shared cases beside the checkout", allow_module_level=True)

CHECKED = [case for case in CASES.values() if "check" in case["expected"]]


class Broken(Exception):
    """What the source raises in a case of the form chunks+raise."""


def broken(chunks: list[Json], message: str) -> Iterator[Json]:
    yield from chunks
    raise Broken(message)


def events_of(case: Json) -> list[Json]:
    """Return the events that the input of a case becomes, by its form."""
    given = case["input"]
    match case["input_form"]:
        case "chunks":
            source: Any = given
        case "chunks+raise":
            source = broken(given["chunks"], given["then_raise"])
        case "scenario":
            source = broken(given["first"], given["then_raise"])
        case "http":
            body = sse(*given["chunks"], *([DONE] if given["done_seen"] else []))
            return list(convert_sse([body], **SAME_EVERY_TIME))
        case other:
            raise AssertionError(f"no chunks in a case of the form {other}")
    return list(convert(source, **SAME_EVERY_TIME))


def misfits(check: Json, summary: Summary) -> list[str]:
    """Return in words where the summary is not as the case's check says."""
    terminals = check.get("terminal_any_of") or [check.get("terminal", f"response.{summary.terminal}")]
    found = differences(_items(check["output"]), summary.output) if "output" in check else []
    if f"response.{summary.terminal}" not in terminals:
        found.append(f"terminal is {summary.terminal}, not one of {terminals}")
    if summary.reason != check.get("incomplete_reason"):
        found.append(f"reason is {summary.reason}")
    if "usage" in check and not _counts(check["usage"], summary.response):
        found.append(f"usage is {flat_usage(summary.response)}, not {check['usage']}")
    return found


def _items(output: list[Json]) -> list[Json]:
    """Return the items; one of a call without `call_id` must have a made one, so it is asked for."""
    return [{"call_id": None, **item} if item["type"] == "function_call" else item for item in output]


def _counts(expected: Json | None, response: Json) -> bool:
    usage = flat_usage(response)
    return usage == expected if expected is None or usage is None else expected.items() <= usage.items()


@pytest.mark.parametrize("case", CHECKED, ids=lambda case: case["id"])
def test_the_outcome_is_the_right_one(case: Json) -> None:
    events = events_of(case)
    assert misfits(case["expected"]["check"], told(events)) == []
    assert heard(events) == told(events).output


# What the cases assert beyond their check, or without one: id -> what must hold of the events.


def joined(events: list[Json], kind: str) -> str:
    return "".join(event["delta"] for event in events if event["type"] == kind)


def types(events: list[Json]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


def late_named_calls(events: list[Json]) -> None:
    added = [event for event in events if event["type"] == "response.output_item.added"]
    assert [event["output_index"] for event in added] == [0, 1]
    announced = [event["item"]["call_id"] for event in added]
    assert announced == [item["call_id"] for item in told(events).output]


def reasoning_after_text(events: list[Json]) -> None:
    assert joined(events, "response.output_text.delta") == "Let me check. Done."
    assert joined(events, "response.reasoning_summary_text.delta") == "compare both"
    output = told(events).response["output"]
    for event in events:
        if event["type"] == "response.output_item.added":
            assert output[event["output_index"]]["id"] == event["item"]["id"]


def one_part(events: list[Json]) -> None:
    assert {event["content_index"] for event in events if "content_index" in event} == {0}
    assert types(events).count("content_part.added") == types(events).count("content_part.done") == 1


def done_is_adjacent(events: list[Json]) -> None:
    at = types(events).index("output_text.done")
    assert types(events)[at + 1 : at + 3] == ["content_part.done", "output_item.done"]
    assert events[at]["text"] == events[at + 1]["part"]["text"] == "4"


def one_done(events: list[Json]) -> None:
    dones = [event for event in events if event["type"].endswith("function_call_arguments.done")]
    assert [event["arguments"] for event in dones] == ['{"x":1,"y":2}']
    assert [event["item"] for event in events if event["type"].endswith("item.done")] == told(events).response["output"]


def reasoning_lifecycle(events: list[Json]) -> None:
    order = types(events)
    assert order.index("reasoning_summary_part.added") < order.index("reasoning_summary_text.delta")
    assert order.index("output_item.done") < order.index("output_item.added", order.index("output_item.added") + 1)


def call_and_item_id(events: list[Json]) -> None:
    item = told(events).response["output"][0]
    assert item["id"].startswith("fc_")
    assert item["id"] != item["call_id"]


def annotations_everywhere(events: list[Json]) -> None:
    owners = [event["part"] for event in events if "part" in event]
    owners += [part for event in events if "item" in event for part in event["item"]["content"]]
    assert [owner["annotations"] for owner in owners] == [[]] * len(owners)
    assert len(owners) == 3


def failed_with_the_words(words: str) -> Callable[[list[Json]], None]:
    def holds(events: list[Json]) -> None:
        assert types(events)[-2:] == ["error", "failed"]
        assert words in told(events).message.lower()

    return holds


def verbatim(events: list[Json]) -> None:
    assert [item["type"] for item in told(events).output] == ["message"]
    assert joined(events, "response.output_text.delta") in (
        "<think>plan</think>Answer <b>ok</b>",
        '<tool_call>\n{"name":"f","arguments":{"a":1}}\n</tool_call>',
    )


def refusal_streamed(events: list[Json]) -> None:
    assert types(events).count("refusal.delta") == 2
    assert types(events).count("refusal.done") == 1
    assert "output_text.delta" not in types(events)


def nothing_said(events: list[Json]) -> None:
    assert types(events) == ["created", "in_progress", "completed"]


def one_annotation(events: list[Json]) -> None:
    added = [event for event in events if event["type"] == "response.output_text.annotation.added"]
    assert [(event["annotation_index"], event["content_index"]) for event in added] == [(0, 0)]
    assert (
        added[0]["annotation"].items()
        >= {"url": "https://example.org/a", "title": "A", "start_index": 5, "end_index": 8}.items()
    )
    assert told(events).output[0]["annotations"] == [added[0]["annotation"]]


def logprobs_everywhere(events: list[Json]) -> None:
    deltas = [event["logprobs"] for event in events if event["type"] == "response.output_text.delta"]
    assert [len(one) for one in deltas] == [1, 1]
    assert [one["token"] for one in told(events).output[0]["logprobs"]] == ["Hi", "!"]


def signature_kept(events: list[Json]) -> None:
    assert "SIG==" in kept(told(events).response)


def details_merged(events: list[Json]) -> None:
    details = told(events).output[0]["details"]
    assert details == [
        {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1", "text": "I plan", "signature": "S1"}
    ]


def encrypted_item(events: list[Json]) -> None:
    first, second = told(events).output
    assert (first["type"], first["text"], first["encrypted"]) == ("reasoning", "", "ENC")
    assert second["parts"] == [["output_text", "ok"]]
    done = next(event for event in events if event["type"] == "response.output_item.done")
    assert done["item"]["encrypted_content"] == "ENC"


def completed_by_done(events: list[Json]) -> None:
    assert told(events).terminal == "completed"
    assert differences([{"type": "message", "text": "ok", "status": "completed"}], told(events).output) == []


def broken_once(events: list[Json]) -> None:
    assert types(events)[-2:] == ["error", "failed"]
    assert told(events).message
    assert joined(events, "response.output_text.delta") == "abc"
    assert differences([{"type": "message", "text": "abc", "status": "incomplete"}], told(events).output) == []


BEYOND: dict[str, Callable[[list[Json]], None]] = {
    "001-two-late-named-calls-share-index": late_named_calls,
    "003-reasoning-after-text-index": reasoning_after_text,
    "005-content-index-grows-per-delta": one_part,
    "011-missing-output-text-done": done_is_adjacent,
    "012-missing-arguments-done": one_done,
    "013-reasoning-then-text-lifecycle": reasoning_lifecycle,
    "042-call-id-vs-item-id": call_and_item_id,
    "045-annotations-missing-in-parts": annotations_everywhere,
    "056-done-marker-without-finish-reason": completed_by_done,
    "057-empty-stream": failed_with_the_words("empty"),
    "062-finish-reason-error": failed_with_the_words("provider disconnected"),
    "063-error-chunk-without-choices": failed_with_the_words("request limit reached"),
    "065-upstream-iterator-raises": broken_once,
    "071-think-tags-split": verbatim,
    "074-tool-xml-as-text": verbatim,
    "076-refusal-only": refusal_streamed,
    "081-role-only-and-empty-deltas": nothing_said,
    "090-annotation-only-chunk": one_annotation,
    "091-logprobs-stream": logprobs_everywhere,
    "094-gemini-thought-signature": signature_kept,
    "095-openrouter-reasoning-details-merge": details_merged,
    "096-encrypted-only-reasoning": encrypted_item,
    "157-retry-after-partial-stream": broken_once,
}


@pytest.mark.parametrize("name", BEYOND)
def test_what_the_case_asserts_holds(name: str) -> None:
    BEYOND[name](events_of(CASES[name]))


def test_no_case_is_left_out() -> None:
    told_apart = {"053-content-filter-empty", "128-nonstream-order-reasoning-text-calls"}
    assert set(CASES) == {case["id"] for case in CHECKED} | set(BEYOND) | told_apart


def test_an_empty_filtered_answer_is_incomplete() -> None:
    summary = of_response(plain(to_response(CASES["053-content-filter-empty"]["input"], **SAME_EVERY_TIME)))
    assert (summary.terminal, summary.reason, summary.output) == ("incomplete", "content_filter", [])


def test_a_whole_answer_has_the_order_of_the_stream() -> None:
    answer = CASES["128-nonstream-order-reasoning-text-calls"]["input"]
    at_once = plain(to_response(answer, **SAME_EVERY_TIME))
    assert [item["type"] for item in at_once["output"]] == ["reasoning", "message", "function_call"]
    choice = answer["choices"][0]
    chunk = {**answer, "choices": [{"index": 0, "delta": choice["message"], "finish_reason": choice["finish_reason"]}]}
    streamed = list(convert([chunk], **SAME_EVERY_TIME))[-1]["response"]
    assert anonymous([at_once["output"]]) == anonymous([streamed["output"]])


def test_the_exception_is_there_for_callers_in_the_process() -> None:
    given = CASES["065-upstream-iterator-raises"]["input"]
    handler = ChatCmplStreamHandler(**SAME_EVERY_TIME)
    for chunk in given["chunks"]:
        list(handler.feed(chunk))
    fault = Broken(given["then_raise"])
    list(handler.fail(fault))
    assert handler.error is fault
    seen: list[Json] = []
    with pytest.raises(Broken):
        note(convert(broken(given["chunks"], "peer closed"), raise_on_error=True, **SAME_EVERY_TIME), seen)
    broken_once(seen)


def note(events: Iterable[Json], seen: list[Json]) -> None:
    """Write down each event as it comes, so that what came before an exception is known."""
    for event in events:
        seen.append(event)  # noqa: PERF402
