"""Every sentence about chunks, items and endings, as cases; each case through every way in."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from antiphon import ChatCmplStreamHandler, StrictError, convert, convert_sse, to_response

from .cases import attribution, calls, endings, extras, items, reasoning, whole
from .cases.build import (
    DONE,
    UNSAID,
    Case,
    Json,
    bare,
    call,
    chunk,
    counted,
    custom,
    end,
    role,
    sse,
    text,
    think,
    tokens,
)
from .cases.build import calls as chunk_of_calls
from .rules import findings
from .summary import Summary, anonymous, differences, flat_usage, heard, kept, of_response, plain, told, within

SAME_EVERY_TIME: dict[str, Any] = {"events": "dict", "ids": "counted", "created_at": 0}

CASES = [
    pytest.param(case, id=f"{group}: {case.name}")
    for module in (attribution, calls, items, reasoning, extras, endings)
    for group, cases in module.GROUPS.items()
    for case in cases
]
BODIES = [pytest.param(body, case, id=case.name) for body, case in endings.BODIES]

# The keys that every snapshot of a response has: those the Open Responses schema requires.
SNAPSHOT_KEYS = frozenset(
    [
        "background",
        "completed_at",
        "created_at",
        "error",
        "frequency_penalty",
        "id",
        "incomplete_details",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "model",
        "object",
        "output",
        "parallel_tool_calls",
        "presence_penalty",
        "previous_response_id",
        "prompt_cache_key",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "status",
        "store",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "usage",
    ]
)


def by_hand(case: Case) -> tuple[list[Json], ChatCmplStreamHandler]:
    """Return the events of a handler that is fed chunk by chunk, and the handler."""
    handler = ChatCmplStreamHandler(**SAME_EVERY_TIME, **case.options)
    events = [event for one in case.chunks for event in handler.feed(one)]
    events += handler.finish(done=case.done) if case.fail is None else handler.fail(case.fail)
    return events, handler


def source(case: Case) -> Iterator[Any]:
    yield from case.chunks
    if case.fail is not None:
        raise case.fail


def misfits(case: Case, events: list[Json]) -> list[str]:
    """Return in words where the events are not what the case says."""
    summary = told(events)
    found = [] if case.output is None else differences(case.output, summary.output)
    expected = {"terminal": case.terminal, "reason": case.reason}
    found += [
        f"{key} is {getattr(summary, key)!r}, not {value!r}"
        for key, value in expected.items()
        if getattr(summary, key) != value
    ]
    found += _of_error(case, summary)
    found += _of_extras(case, summary)
    if case.usage is not UNSAID and not within(case.usage, flat_usage(summary.response)):
        found.append(f"usage is {flat_usage(summary.response)}, not {case.usage}")
    return found


def _of_error(case: Case, summary: Summary) -> list[str]:
    message = summary.message.lower()
    found = [f"{word!r} is not in {summary.message!r}" for word in case.says if word.lower() not in message]
    found += [f"{word!r} is in {summary.message!r}" for word in case.hides if word.lower() in message]
    if case.code is not None and summary.code != case.code:
        found.append(f"code is {summary.code!r}, not {case.code!r}")
    if case.terminal == "failed" and not (summary.code and summary.message):
        found.append(f"the error says nothing: {summary.code!r}, {summary.message!r}")
    return found


def _of_extras(case: Case, summary: Summary) -> list[str]:
    everywhere = kept(summary.response)
    of_calls = [item.get("provider_data") for item in summary.response["output"] if item["type"] == "function_call"]
    found = [f"{one!r} is not in {everywhere}" for one in case.keeps if one not in everywhere]
    found += [f"{one!r} is not in {of_calls}" for one in case.call_keeps if one not in json.dumps(of_calls)]
    found += [
        f"{key} is {summary.response.get(key)!r}, not {value!r}"
        for key, value in case.response.items()
        if summary.response.get(key) != value
    ]
    return found


@pytest.mark.parametrize("case", CASES)
def test_a_handler_says_what_the_grammar_says(case: Case) -> None:
    events, handler = by_hand(case)
    assert misfits(case, events) == []
    if isinstance(case.warned, bool):
        assert bool(handler.warnings) is case.warned, handler.warnings
    elif case.warned is not None:
        assert len(handler.warnings) == case.warned, handler.warnings


@pytest.mark.parametrize("case", CASES)
def test_the_deltas_say_what_the_end_says(case: Case) -> None:
    events, _ = by_hand(case)
    assert heard(events) == told(events).output
    ids = [item["call_id"] for item in told(events).output if "call_id" in item]
    assert len(set(ids)) == len(ids)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


@pytest.mark.parametrize("case", CASES)
def test_every_way_in_says_the_same(case: Case) -> None:
    events, handler = by_hand(case)
    if not case.done:
        assert list(convert(source(case), **SAME_EVERY_TIME, **case.options)) == events
    if case.fail is None and not handler.warnings:
        body = sse(*case.chunks, *([DONE] if case.done else []))
        assert list(convert_sse([body], **SAME_EVERY_TIME, **case.options)) == events


@pytest.mark.parametrize("case", CASES)
def test_every_snapshot_is_whole(case: Case) -> None:
    snapshots = [event["response"] for event in by_hand(case)[0] if "response" in event]
    assert [SNAPSHOT_KEYS - set(snapshot) for snapshot in snapshots] == [frozenset()] * len(snapshots)
    assert len({(one["id"], one["created_at"], one["model"]) for one in snapshots}) == 1
    assert snapshots[0]["id"].startswith("resp_")


@pytest.mark.parametrize("case", CASES)
def test_every_snapshot_fits_the_open_responses_schema(case: Case) -> None:
    resource = pytest.importorskip("openresponses_types").types.ResponseResource
    for event in by_hand(case)[0]:
        if "response" in event:
            # The schema does not know custom tool calls.
            output = [item for item in event["response"]["output"] if item["type"] != "custom_tool_call"]
            resource.model_validate({**event["response"], "output": output})


@pytest.mark.parametrize("case", CASES)
def test_the_rules_find_nothing(case: Case) -> None:
    # The chunks alone do not tell that `[DONE]` came, that the source raised, or what strict refuses.
    alone = not (case.done or case.fail or case.options.get("strict"))
    assert findings(by_hand(case)[0], case.chunks if alone else None, case.options) == []


@pytest.mark.parametrize(("body", "case"), BODIES)
def test_a_body_says_what_the_grammar_says(body: bytes, case: Case) -> None:
    whole_body = list(convert_sse([body], **SAME_EVERY_TIME, **case.options))
    assert misfits(case, whole_body) == []
    assert heard(whole_body) == told(whole_body).output
    one_by_one = convert_sse((body[n : n + 1] for n in range(len(body))), **SAME_EVERY_TIME, **case.options)
    assert list(one_by_one) == whole_body


# What is out after each chunk.

HEAD = ["response.created", "response.in_progress"]
A1 = '{"a":1}'

# Nothing is handed out before the first item, error or end.
SILENT = [
    pytest.param(role(), id="role"),
    pytest.param(bare([], model="", id=""), id="no choices"),
    pytest.param(counted(tokens(1, 0)), id="usage"),
    pytest.param(text(""), id="empty text"),
    pytest.param(text("\n"), id="white space"),
    pytest.param(think("\n"), id="white space of reasoning"),
    pytest.param(chunk({"mood": "glad"}), id="unknown"),
    pytest.param(call(0, "call_x", "f", ""), id="a head"),
    pytest.param(call(0, "call_x", args=A1), id="arguments without a name"),
    pytest.param(end(), id="finish"),
]


@pytest.mark.parametrize("quiet", SILENT)
def test_the_head_waits_for_the_first_item(quiet: Json) -> None:
    handler = ChatCmplStreamHandler(**SAME_EVERY_TIME)
    assert list(handler.feed(quiet)) == []
    assert [event["type"] for event in handler.feed(text("Hi"))][:3] == [*HEAD, "response.output_item.added"]


def test_the_head_comes_with_an_error() -> None:
    handler = ChatCmplStreamHandler(**SAME_EVERY_TIME)
    types = [event["type"] for event in handler.feed({"error": {"message": "broken"}})]
    types += [event["type"] for event in handler.finish()]
    assert types == [*HEAD, "error", "response.failed"]


# chunks, and the text and arguments that are out after each of them
LIVE = [
    pytest.param([(text("a"), "a"), (text("b"), "b"), (text("\n"), "\n")], id="text"),
    pytest.param([(text("\n"), ""), (text("a"), "\na")], id="white space that waited"),
    pytest.param([(think("a"), "a"), (text("b"), "b")], id="reasoning, then text"),
    pytest.param(
        [(call(0, "call_x", "f", ""), ""), (call(0, args='{"a"'), '{"a"'), (call(0, args=":1}"), ":1}")],
        id="arguments",
    ),
    pytest.param(
        [(call(0, "call_x", "f", '{"a":'), '{"a":'), (text("b"), ""), (call(0, args="1}"), "1}b")],
        id="held text",
    ),
    pytest.param([(call(0, "call_x", "f", A1), A1), (text("b"), "b")], id="text after complete arguments"),
    pytest.param([(call(0, "call_x", "f", "[1]"), "[1]"), (text("b"), "b")], id="text after an array"),
    pytest.param([(call(0, "call_x", "f", '"a"'), '"a"'), (text("b"), "b")], id="text after a string"),
    pytest.param([(call(0, "call_x", "f", "7"), "7"), (text("b"), "")], id="text after a number"),
    pytest.param(
        [(call(0, "call_x", args='{"a":'), ""), (call(0, name="f"), '{"a":'), (call(0, args="1}"), "1}")],
        id="arguments that waited for the name",
    ),
    pytest.param(
        [(call(0, "call_x", "f", ""), ""), (text("b"), "b"), (call(0, args=A1), A1)], id="text while a head waits"
    ),
    pytest.param(
        [
            (call(0, "call_x", "f", '{"a":'), '{"a":'),
            (call(1, "call_y", "g", '{"b":'), ""),
            (call(0, args="1}"), '1}{"b":'),
            (call(1, args="2}"), "2}"),
        ],
        id="the second call as soon as the first is complete",
    ),
    pytest.param(
        [(call(0, "call_x", "f", ""), ""), (call(1, "call_y", "g", A1), ""), (call(0, args=A1), A1 + A1)],
        id="a call that waited for a head",
    ),
]


@pytest.mark.parametrize("steps", LIVE)
def test_what_can_be_said_is_out_before_the_next_chunk(steps: list[tuple[Json, str]]) -> None:
    handler = ChatCmplStreamHandler(**SAME_EVERY_TIME)
    for one, expected in steps:
        said_now = [event["delta"] for event in handler.feed(one) if "delta" in event]
        # Joined: how the pieces that were held back are cut is free.
        assert "".join(said_now) == expected


# The request's echo.

REQUEST: dict[str, Any] = {
    "model": "asked",
    "input": "How is the weather?",
    "instructions": "Be brief.",
    "tools": [{"type": "function", "name": "f", "description": None, "parameters": {"type": "object"}, "strict": True}],
    "tool_choice": "required",
    "parallel_tool_calls": False,
    "text": {"format": {"type": "json_object"}},
    "reasoning": {"effort": "low"},
    "metadata": {"k": "v"},
    "temperature": 0.25,
    "top_p": 0.5,
    "max_output_tokens": 99,
    "truncation": "auto",
    "top_logprobs": 3,
    "safety_identifier": "someone",
    "prompt_cache_key": "key",
    "previous_response_id": "resp_before",
}
ECHOED = sorted(set(REQUEST) - {"input", "reasoning"})

DEFAULTS: dict[str, Any] = {
    "temperature": 1.0,
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "truncation": "disabled",
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "tools": [],
    "background": False,
    "service_tier": "default",
    "metadata": {},
    "instructions": None,
    "previous_response_id": None,
    "max_output_tokens": None,
}

ENDS = [
    pytest.param([text("Hi"), end()], id="completed"),
    pytest.param([text("Hi"), end("length")], id="incomplete"),
    pytest.param([text("Hi")], id="failed"),
    pytest.param([], id="empty"),
]


@pytest.mark.parametrize("chunks", ENDS)
def test_the_request_is_echoed_in_all_snapshots(chunks: list[Json]) -> None:
    events = list(convert(chunks, request=REQUEST, **SAME_EVERY_TIME))
    snapshots = [event["response"] for event in events if "response" in event]
    assert len(snapshots) == 3
    for snapshot in snapshots:
        assert {key: snapshot[key] for key in ECHOED} == {key: REQUEST[key] for key in ECHOED}
        assert snapshot["reasoning"]["effort"] == "low"
    assert {**snapshots[0], "status": ""} == {**snapshots[1], "status": ""}


@pytest.mark.parametrize("chunks", ENDS)
def test_a_silent_request_has_the_defaults(chunks: list[Json]) -> None:
    events = list(convert(chunks, **SAME_EVERY_TIME))
    for snapshot in (event["response"] for event in events if "response" in event):
        assert {key: snapshot[key] for key in DEFAULTS} == DEFAULTS
        assert snapshot["text"]["format"] == {"type": "text"}
        assert isinstance(snapshot["store"], bool)


@pytest.mark.parametrize("chunks", ENDS)
def test_the_heads_are_empty(chunks: list[Json]) -> None:
    for event in list(convert(chunks, **SAME_EVERY_TIME))[:2]:
        head = event["response"]
        assert (head["status"], head["output"], head["usage"], head["error"]) == ("in_progress", [], None, None)


# Ids.


def test_made_ids_are_unique_over_responses() -> None:
    chunks = [think("hm"), text("Hi"), call(0, name="f", args=A1), call(1, name="g", args=A1), end()]
    responses = [list(convert(chunks, events="dict"))[-1]["response"] for _ in range(50)]
    ids = [one["id"] for response in responses for one in (response, *response["output"])]
    call_ids = [item["call_id"] for response in responses for item in response["output"] if "call_id" in item]
    assert len(set(ids)) == len(ids) == 250
    assert len(set(call_ids)) == len(call_ids) == 100


def test_item_ids_have_their_prefix() -> None:
    chunks = [
        think("hm"),
        text("Hi"),
        call(0, "fc_theirs", "f", A1),
        chunk_of_calls(custom(1, "call_y", "grep", "x")),
        end(),
    ]
    output = list(convert(chunks, **SAME_EVERY_TIME))[-1]["response"]["output"]
    assert [item["id"].split("_")[0] for item in output] == ["rs", "msg", "fc", "ctc"]
    assert all(item["id"] != item.get("call_id") for item in output)


def test_the_clock_is_the_shells() -> None:
    begun = int(time.time())
    events = list(convert([text("Hi", created=1234), end(created=1234)], events="dict"))
    assert {begun <= event["response"]["created_at"] <= time.time() for event in events if "response" in event} == {
        True
    }


def test_counted_ids_are_the_same_every_time() -> None:
    chunks = [think("hm"), text("Hi"), call(0, name="f", args=A1), end()]
    assert list(convert(chunks, **SAME_EVERY_TIME)) == list(convert(chunks, **SAME_EVERY_TIME))


# Exceptions.


def test_the_exception_is_on_the_handler() -> None:
    fault = ConnectionError("the peer left")
    handler = ChatCmplStreamHandler(**SAME_EVERY_TIME)
    list(handler.feed(text("Hi")))
    assert told(list(handler.fail(fault))).terminal == "failed"
    assert handler.error is fault


def test_a_good_stream_leaves_no_error() -> None:
    handler = ChatCmplStreamHandler(**SAME_EVERY_TIME)
    events = [event for one in (text("Hi"), end()) for event in handler.feed(one)] + list(handler.finish())
    assert handler.error is None
    assert handler.warnings == []
    assert plain(handler.response)["output"] == events[-1]["response"]["output"]


def test_strict_leaves_a_strict_error() -> None:
    handler = ChatCmplStreamHandler(**SAME_EVERY_TIME, strict=True)
    for one in (chunk({"content": "X"}, index=1), end()):
        list(handler.feed(one))
    list(handler.finish())
    assert isinstance(handler.error, StrictError)


# Fields of every wrong type never crash, and what is around them is kept.

WILD: list[Any] = [None, True, 0, -1, 2.5, "", "x", [], ["x"], [None], [[]], {}, {"x": 1}, [{}], [{"x": 1}]]
DELTA_FIELDS = [
    "content",
    "refusal",
    "reasoning",
    "reasoning_content",
    "reasoning_text",
    "reasoning_details",
    "thinking_blocks",
    "tool_calls",
    "function_call",
    "annotations",
    "audio",
    "images",
    "role",
    "provider_data",
]
CHOICE_FIELDS = ["delta", "message", "logprobs", "finish_reason", "native_finish_reason", "content_filter_results"]
CHUNK_FIELDS = [
    "choices",
    "usage",
    "x_groq",
    "id",
    "model",
    "created",
    "object",
    "service_tier",
    "system_fingerprint",
    "citations",
]
CALL_FIELDS = ["index", "type", "function", "custom", "extra_content"]


def strange() -> Iterator[tuple[str, Any, Json]]:
    """Yield each field with each value it should not have."""
    for value in WILD:
        yield from ((field, value, chunk({field: value})) for field in DELTA_FIELDS)
        yield from ((field, value, bare([{"index": 0, "delta": {}, field: value}])) for field in CHOICE_FIELDS)
        yield from ((field, value, {**chunk({}), field: value}) for field in CHUNK_FIELDS)
        # `error` is left out: almost any value of it is an error.


@pytest.mark.parametrize(("field", "value", "one"), [pytest.param(*it, id=f"{it[0]}={it[1]!r}") for it in strange()])
def test_nothing_is_lost_around_a_strange_field(field: str, value: Any, one: Json) -> None:
    events = list(convert([role(), text("Hi "), one, text("there"), end()], **SAME_EVERY_TIME))
    texts = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert "".join(texts).startswith("Hi ")
    assert "".join(texts).endswith("there")
    assert heard(events) == told(events).output


@pytest.mark.parametrize("value", WILD, ids=repr)
@pytest.mark.parametrize("field", CALL_FIELDS)
def test_no_call_is_lost_around_a_strange_field(field: str, value: Any) -> None:
    odd = {"index": 0, "function": {"arguments": ""}, field: value}
    chunks = [call(0, "call_x", "f", ""), chunk({"tool_calls": [odd]}), call(0, "call_x", args=A1), end("tool_calls")]
    output = told(list(convert(chunks, **SAME_EVERY_TIME))).output
    assert ("f", "call_x") in [(item.get("name"), item.get("call_id")) for item in output]


@pytest.mark.parametrize("output", ["dict", "openai", "sse"])
def test_half_a_character_raises_nothing(output: str) -> None:
    """Servers that cut an emoji at its surrogates send each half as an escape of its own."""
    chunks = [text("Hi \ud83d"), text("\ude00!"), end()]
    options: dict[str, Any] = {**SAME_EVERY_TIME, "events": output}
    made = [*convert(chunks, **options), *convert_sse([sse(*chunks, DONE)], **options)]
    assert made


# Whole answers.


@pytest.mark.parametrize("answer", [pytest.param(one, id=one.name) for one in whole.ANSWERS])
def test_a_whole_answer_is_the_streamed_one(answer: whole.Answer) -> None:
    streamed = list(convert(answer.chunks, **SAME_EVERY_TIME, **answer.options))[-1]
    at_once = plain(to_response(answer.whole, **SAME_EVERY_TIME, **answer.options))
    assert anonymous([at_once]) == anonymous([streamed["response"]])
    assert of_response(at_once).terminal == streamed["type"].removeprefix("response.")
