"""`check`: what good streams, broken streams, and things that are no stream at all give; and what a rule must have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from antiphon import Profile, convert
from antiphon_conformance import (
    TABLES,
    Client,
    Finding,
    Level,
    Recording,
    Report,
    Schema,
    all_rules,
    check,
    find,
    same_output,
)
from antiphon_conformance.grammar import Illegal, State
from antiphon_conformance.rule import RuleError, rule

from .broken import BROKEN, CALLING, CALLS, CUSTOM, HELLO, LINKS, LOGS, RAW, SEARCH, TEXT, THINKING, THOUGHT, Broken
from .building import (
    ECHO,
    Events,
    call,
    chunk,
    custom_call,
    fragment,
    message,
    numbered,
    reasoning,
    searched,
    stream,
    usage_chunk,
)

GOOD: dict[str, Events] = {
    "text": TEXT,
    "text with logprobs": LOGS,
    "text with annotations": LINKS,
    "text without usage": stream(message("Hello"), usage=None),
    "an empty answer": stream(),
    "refusal": stream(message(refusal=("I ", "won't"))),
    "text, then refusal": stream(message("Hm. ", refusal=("No",))),
    "two messages": stream(message("a"), message("b")),
    "reasoning in summary parts": THOUGHT,
    "reasoning in a text part": RAW,
    "sealed reasoning": stream(reasoning(sealed="gAAA"), message("Hi")),
    "calls": CALLS,
    "custom call": CUSTOM,
    "hosted search": SEARCH,
    "everything": stream(
        reasoning(("hm",)), message("a"), call("f", "{}"), custom_call("g", "x"), searched("q"), message("b")
    ),
    "cut in text": stream(message("a", status="incomplete"), ending="incomplete"),
    "cut in a call": stream(message("a"), call("f", '{"a', status="incomplete"), ending="incomplete"),
    "cut before anything": stream(ending="incomplete"),
    "filtered": stream(message("a", status="incomplete"), ending="incomplete", reason="content_filter"),
    "failed": stream(ending="failed"),
    "failed in text": stream(message("a", status="incomplete"), ending="failed"),
}


def shown(report: Report) -> list[str]:
    return [str(finding) for finding in report.findings]


# Good streams


@pytest.mark.parametrize("name", GOOD)
def test_a_good_stream_gives_no_finding(name: str) -> None:
    report = check(GOOD[name])
    assert shown(report) == []
    assert report.ok


@pytest.mark.parametrize("name", GOOD)
def test_dicts_objects_and_both_mixed_are_one(name: str) -> None:
    reader: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    objects = [reader.validate_python(event) for event in GOOD[name]]
    mixed = (one if n % 2 else other for n, (one, other) in enumerate(zip(objects, GOOD[name], strict=True)))
    assert shown(check(objects)) == shown(check(mixed)) == []


@pytest.mark.parametrize("name", GOOD)
def test_a_resumed_stream_gives_no_finding(name: str) -> None:
    events = GOOD[name]
    broken = {at: shown(check(events[at + 1 :], starting_after=at)) for at in range(len(events) - 1)}
    assert {at: found for at, found in broken.items() if found} == {}


def test_a_background_response_is_queued() -> None:
    events = json.loads(json.dumps(TEXT))
    for event in events:
        if "response" in event:
            event["response"]["background"] = True
    queued = {**events[0], "type": "response.queued", "response": {**events[0]["response"], "status": "queued"}}
    events[0]["response"]["status"] = "queued"
    assert shown(check(numbered([events[0], queued, *events[1:]]))) == []


def test_numbers_that_no_event_has_are_not_judged() -> None:
    events = [{key: value for key, value in event.items() if key != "sequence_number"} for event in TEXT]
    report = check(events)
    assert shown(report) == []
    assert report.not_applicable["SEQ001"] == "no event has a sequence_number"


def test_what_recordings_excuse_is_no_must() -> None:
    sealed = json.loads(json.dumps(stream(reasoning(sealed="one"), message("Hi"))))
    sealed[-1]["response"]["output"][0]["encrypted_content"] = "another"
    sealed[-1]["response"]["service_tier"] = "priority"
    del sealed[-1]["response"]["usage"]["input_tokens_details"]["cache_write_tokens"]
    keepalive = numbered([*sealed[:2], {"type": "keepalive"}, *sealed[2:]])
    failed = json.loads(json.dumps(stream(ending="failed")))
    for holder in (failed[-2], failed[-2]["error"], failed[-1]["response"]["error"]):
        holder["code"] = "insufficient_quota"
    assert (shown(check(keepalive)), shown(check(failed))) == ([], [])


# Broken streams


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: f"{one.code} {one.what}")
def test_a_broken_stream_breaks_these_rules(broken: Broken) -> None:
    report = check(broken.events, **broken.given)
    assert report.codes == broken.codes, shown(report)


def test_each_rule_is_broken_by_a_stream() -> None:
    assert {one.code for one in all_rules()} == {one.code for one in BROKEN}


@pytest.mark.parametrize("name", GOOD)
def test_one_event_lost_repeated_or_swapped_is_at_most_two_findings(name: str) -> None:
    many = {what: shown(report) for what, report in _single_faults(GOOD[name]) if len(report.findings) > 2}
    assert many == {}


def _single_faults(events: Events) -> Iterator[tuple[str, Report]]:
    for at in range(len(events)):
        yield f"without {at}", check([*events[:at], *events[at + 1 :]])
        yield f"{at} twice", check([*events[: at + 1], *events[at:]])
        yield f"{at} and {at + 1} swapped", check([*events[:at], *events[at : at + 2][::-1], *events[at + 2 :]])


def test_a_finding_says_where_and_what() -> None:
    report = check(numbered([*TEXT[:1], *TEXT[2:]]))
    assert report.findings == (
        Finding(
            "STR001",
            Level.MUST,
            1,
            "`response.output_item.added` came when the response was created; allowed then: queued, in_progress",
        ),
    )
    assert not report.ok


def test_a_should_leaves_the_report_ok() -> None:
    report = check(stream(call("f", '{"a":')))
    assert [finding.level for finding in report.findings] == [Level.SHOULD]
    assert report.ok


def test_rules_that_lack_what_they_need_are_not_applicable() -> None:
    left_out = check(TEXT).not_applicable
    assert {code for code in left_out if code.startswith("FTH")} == {f"FTH00{n}" for n in range(1, 6)}
    assert left_out["STR008"] == "no request was given"
    report = check(TEXT, request={"instructions": "Sing."}, **HELLO)
    assert (shown(report), dict(report.not_applicable)) == ([], {})
    assert set(report.ran) == {one.code for one in all_rules()}


# Chunks

FAITHFUL: dict[str, tuple[Events, list[Any]]] = {
    "text": (TEXT, list(HELLO["chunks"])),
    "calls": (CALLS, list(CALLING)),
    "reasoning": (stream(reasoning(("hmmso",)), message("Hi")), list(THINKING)),
    "reasoning in two fields counts once": (
        stream(reasoning(("hm",)), message("Hi")),
        [
            chunk(reasoning="hm", reasoning_details=[{"type": "reasoning.text", "text": "hm"}]),
            chunk("stop", content="Hi"),
            usage_chunk(),
        ],
    ),
    "white space between items may go": (
        stream(message("a"), call("f", "{}")),
        [chunk(content="a"), fragment(0, "call_1", "f", "{}"), chunk(content="\n"), chunk("stop"), usage_chunk()],
    ),
    "white space in an item stays": (
        stream(message("a", "\n", "b")),
        [chunk(content="a"), chunk(content="\n"), chunk(content="b"), chunk("stop"), usage_chunk()],
    ),
    "interleaved calls": (
        CALLS,
        [
            fragment(0, "call_0", "f", '{"a"'),
            fragment(1, "call_1", "g"),
            fragment(1, arguments="{}"),
            fragment(0, arguments=":1}"),
            chunk("tool_calls"),
            usage_chunk(),
        ],
    ),
    "calls without index": (
        CALLS,
        [
            chunk(
                tool_calls=[
                    {"id": "call_0", "function": {"name": "f", "arguments": '{"a":1}'}},
                    {"id": "call_1", "function": {"name": "g", "arguments": "{}"}},
                ]
            ),
            chunk("stop"),
            usage_chunk(),
        ],
    ),
    "calls on one index": (
        CALLS,
        [fragment(0, "call_0", "f", '{"a":1}'), fragment(0, "call_1", "g", "{}"), chunk("stop"), usage_chunk()],
    ),
    "one id for two calls": (
        CALLS,
        [fragment(0, "call_0", "f", '{"a":1}'), fragment(1, "call_0", "g", "{}"), chunk("stop"), usage_chunk()],
    ),
    "a name in pieces, arguments as an object": (
        stream(call("get_x", '{"a": 1}')),
        [
            fragment(0, "call_0", "get"),
            fragment(0, name="_x"),
            chunk("stop", tool_calls=[{"index": 0, "function": {"arguments": {"a": 1}}}]),
            usage_chunk(),
        ],
    ),
    "a call without arguments": (
        stream(call("f", "{}")),
        [fragment(0, "call_0", "f"), chunk("tool_calls"), usage_chunk()],
    ),
    "a legacy call": (
        stream(call("f", "{}")),
        [chunk(function_call={"name": "f", "arguments": "{}"}), chunk("function_call"), usage_chunk()],
    ),
    "a custom call": (
        CUSTOM,
        [
            chunk(
                tool_calls=[{"index": 0, "id": "call_0", "type": "custom", "custom": {"name": "sing", "input": "lala"}}]
            ),
            chunk("tool_calls"),
            usage_chunk(),
        ],
    ),
    "typed content": (
        stream(reasoning(("hm",)), message("Hi")),
        [
            chunk(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]),
            chunk("stop", content=[{"type": "text", "text": "Hi"}]),
            usage_chunk(),
        ],
    ),
    "a message for a delta": (
        stream(message("Hi")),
        [{"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]}, usage_chunk()],
    ),
    "other choices do not count": (
        stream(message("Hi")),
        [
            chunk("stop", content="Hi"),
            {"choices": [{"index": 1, "delta": {"content": "Ho"}, "finish_reason": "length"}]},
            usage_chunk(),
        ],
    ),
    "the gravest finish wins": (
        stream(message("a", status="incomplete"), ending="incomplete"),
        [chunk("stop", content="a"), chunk("LENGTH"), usage_chunk()],
    ),
    "usage last, and no finish": (stream(message("a")), [chunk(content="a"), usage_chunk()]),
    "an error": (
        stream(message("a", status="incomplete"), ending="failed"),
        [chunk("stop", content="a"), {"error": {"message": "overloaded"}}, chunk(content="b")],
    ),
    "no chunks": (stream(ending="failed"), []),
}


@pytest.mark.parametrize("name", FAITHFUL)
def test_a_faithful_stream_gives_no_finding(name: str) -> None:
    events, chunks = FAITHFUL[name]
    assert shown(check(events, chunks=chunks)) == []


def test_done_and_profile_say_how_a_stream_without_a_finish_ends() -> None:
    events, chunks = stream(message("a"), usage=None), [chunk(content="a")]
    assert check(events, chunks=chunks).codes == ("END009",)
    assert check(events, chunks=chunks, done=True).ok
    assert check(events, chunks=chunks, profile=Profile(finish_reason_optional=True)).ok


def test_a_profile_with_quirks_decides_what_is_reasoning() -> None:
    class Tags:
        def start(self) -> Any:
            raise NotImplementedError

    profile = Profile("tagged", quirks=(Tags(),))
    chunks = [chunk(content="<think>hm</think>\nHi"), chunk("stop"), usage_chunk()]
    events = stream(reasoning(("hm",)), message("Hi"))
    assert shown(check(events, chunks=chunks, profile=profile)) == []
    assert not check(events, chunks=chunks).ok
    assert check(stream(message("Hi")), chunks=chunks, profile=profile).codes == ("FTH001",)


def test_same_output_is_blind_to_ids_and_cuts_only() -> None:
    one, other = stream(message("Hel", "lo"), call("f", "{}")), stream(message("H", "ello"), call("f", "{", "}"))
    renamed = json.loads(json.dumps(other).replace("msg_0", "msg_x").replace("resp_1", "resp_2"))
    assert same_output(one, renamed) == []
    assert same_output(one, stream(message("Hello"))) == ["2 items and 1"]
    assert same_output(one, stream(message("Halo"), call("f", "{}"))) == ["item 0: text: 'Hello' and 'Halo'"]


# What is no stream

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*sorted(ECHO), "type", "id"]), inner),
    max_leaves=6,
)
FIELDS = st.sampled_from(sorted({key for events in GOOD.values() for event in events for key in event}))
TYPES = st.sampled_from(sorted({event["type"] for events in GOOD.values() for event in events}))
EVENTS = st.builds(
    lambda type, fields: {**fields, "type": type},
    TYPES | JUNK,
    st.dictionaries(FIELDS, JUNK | st.integers(0, 1), max_size=6),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENTS | JUNK, max_size=6), st.none() | st.lists(JUNK, max_size=3), st.none() | st.integers(-1, 2))
def test_garbage_never_raises(events: list[Any], chunks: list[Any] | None, starting_after: int | None) -> None:
    report = check(events, chunks=chunks, starting_after=starting_after)
    assert report.findings


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_one_field_of_another_type_never_raises(data: st.DataObject) -> None:
    events = json.loads(json.dumps(data.draw(st.sampled_from(list(GOOD.values())))))
    holder, key = data.draw(st.sampled_from(list(_fields(events))))
    holder[key] = data.draw(JUNK)
    check(events)


def _fields(value: Any) -> Iterator[tuple[Any, Any]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in inner:
        yield value, key
        yield from _fields(held)


@pytest.mark.parametrize("event", [None, "delta", 7, [], {}, {"type": None}, {"type": ["x"]}, object()])
def test_what_is_no_event_is_a_finding_of_the_schema(event: Any) -> None:
    report = check([*TEXT[:4], event, *TEXT[4:]])
    assert "SCH001" in report.codes
    assert [finding.index for finding in report.findings if finding.code == "SCH001"] == [4]


# Rules


@pytest.mark.parametrize("one", all_rules(), ids=lambda one: one.code)
def test_a_rule_has_a_text_and_a_source(one: Any) -> None:
    assert one.text.endswith(".")
    assert one.sources
    assert one.level is not Level.MUST or any(not isinstance(source, Schema) for source in one.sources)
    assert find(one.code.lower()) is find(one.name) is one


@pytest.mark.parametrize(
    ("sources", "text", "code", "message"),
    [
        ((Recording("x"),), None, "ZZZ001", "no text"),
        ((), "Text.", "ZZZ001", "no source"),
        ((Schema("x"),), "Text.", "ZZZ001", "the schema alone"),
        ((Client("x", "y"),), "Text.", "ITM001", "is taken"),
        ((Client("x", "y"),), "Text.", "itm1", "not a code"),
    ],
)
def test_a_rule_that_lacks_something_is_refused(sources: Any, text: str | None, code: str, message: str) -> None:
    def body(trace: Any) -> Iterator[Any]:
        yield from ()

    body.__doc__ = text
    with pytest.raises(RuleError, match=message):
        rule(code, "a-name", Level.MUST, since="1.0", sources=sources)(body)


def test_names_and_codes_differ_and_areas_are_known() -> None:
    areas = {"STR", "SEQ", "ITM", "PRT", "DLT", "CAL", "RSN", "END", "USE", "SCH", "FTH"}
    assert {one.code[:3] for one in all_rules()} == areas
    assert len({one.name for one in all_rules()}) == len(all_rules())


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_total(name: str) -> None:
    table, code = TABLES[name]
    roles = {role for row in table.values() for role in row}
    assert find(code) is not None
    for state, row in table.items():
        assert set(row) == roles, f"{state} lacks {roles - set(row)}"
        for cell in row.values():
            move = Illegal(cell) if isinstance(cell, State) else cell
            assert move.to in table
            assert set(move.owed) <= roles
            assert not move.code or find(move.code) is not None


@pytest.mark.parametrize("content", [7, -1.5, 0])
def test_a_number_in_the_place_of_a_text_is_its_digits(content: float) -> None:
    chunks = [
        {"choices": [{"index": 0, "delta": {"content": content}}]},
        {"choices": [{"index": 0, "delta": {"content": " bells"}, "finish_reason": "stop"}]},
    ]
    events = list(convert(chunks, events="dict"))
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == f"{content} bells"
    assert check(events, chunks=chunks).findings == ()


@pytest.mark.parametrize("patch", ["{}[", "{} {}", "[1][2]"])
def test_a_custom_tool_may_be_given_what_looks_like_two_json_texts(patch: str) -> None:
    call = {"index": 0, "id": "call_1", "type": "custom", "custom": {"name": "patch", "input": patch}}
    chunks = [{"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}]
    assert check(convert(chunks, events="dict")).findings == ()
