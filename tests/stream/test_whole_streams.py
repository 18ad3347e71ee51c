"""Whole event streams, written out by hand from the description of the grammar. Made ids are renamed in order of appearance.

Of a response snapshot only what changes is shown; its other keys are looked at in `test_grammar_cases.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antiphon import ChatCmplStreamHandler

from .cases.build import (
    Json,
    call,
    calls,
    chunk,
    counted,
    custom,
    detail,
    details,
    end,
    frag,
    refuse,
    role,
    text,
    think,
    tokens,
)
from .summary import anonymous, is_list, is_object

CHANGING = ("status", "output", "usage", "error", "incomplete_details")
ASIDE = ("provider_data",)  # what is kept for the next turn has cases of its own


def stream(chunks: Sequence[Json], fail: BaseException | None = None, **options: Any) -> list[Json]:
    """Return the events, renamed and pared."""
    handler = ChatCmplStreamHandler(events="dict", ids="random", created_at=0, **options)
    events = [event for one in chunks for event in handler.feed(one)]
    events += handler.finish() if fail is None else handler.fail(fail)
    return [_pared(event) for event in anonymous(events)]


def _pared(value: Any) -> Any:
    if is_list(value):
        return [_pared(inner) for inner in value]
    if not is_object(value):
        return value
    if value.get("object") == "response":
        return {key: _pared(value[key]) for key in CHANGING if value[key] is not None}
    return {key: _pared(inner) for key, inner in value.items() if key not in ASIDE}


def test_text() -> None:
    chunks = [role(), text("It is"), text(" noon."), end(), counted(tokens(8, 4))]
    assert stream(chunks) == [
        {"type": "response.created", "sequence_number": 0, "response": {"status": "in_progress", "output": []}},
        {"type": "response.in_progress", "sequence_number": 1, "response": {"status": "in_progress", "output": []}},
        {
            "type": "response.output_item.added",
            "sequence_number": 2,
            "output_index": 0,
            "item": {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []},
        },
        {
            "type": "response.content_part.added",
            "sequence_number": 3,
            "output_index": 0,
            "item_id": "msg_1",
            "content_index": 0,
            "part": {"type": "output_text", "text": "", "annotations": [], "logprobs": []},
        },
        {
            "type": "response.output_text.delta",
            "sequence_number": 4,
            "output_index": 0,
            "item_id": "msg_1",
            "content_index": 0,
            "delta": "It is",
            "logprobs": [],
        },
        {
            "type": "response.output_text.delta",
            "sequence_number": 5,
            "output_index": 0,
            "item_id": "msg_1",
            "content_index": 0,
            "delta": " noon.",
            "logprobs": [],
        },
        {
            "type": "response.output_text.done",
            "sequence_number": 6,
            "output_index": 0,
            "item_id": "msg_1",
            "content_index": 0,
            "text": "It is noon.",
            "logprobs": [],
        },
        {
            "type": "response.content_part.done",
            "sequence_number": 7,
            "output_index": 0,
            "item_id": "msg_1",
            "content_index": 0,
            "part": {"type": "output_text", "text": "It is noon.", "annotations": [], "logprobs": []},
        },
        {
            "type": "response.output_item.done",
            "sequence_number": 8,
            "output_index": 0,
            "item": {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "It is noon.", "annotations": [], "logprobs": []}],
            },
        },
        {
            "type": "response.completed",
            "sequence_number": 9,
            "response": {
                "status": "completed",
                "output": [
                    {
                        "id": "msg_1",
                        "type": "message",
                        "role": "assistant",
                        "status": "completed",
                        "content": [{"type": "output_text", "text": "It is noon.", "annotations": [], "logprobs": []}],
                    }
                ],
                "usage": {
                    "input_tokens": 8,
                    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                    "output_tokens": 4,
                    "output_tokens_details": {"reasoning_tokens": 0},
                    "total_tokens": 12,
                },
            },
        },
    ]


def test_reasoning_then_two_interleaved_calls() -> None:
    chunks = [
        think("Two "),
        think("cities."),
        calls(frag(0, "call-oslo", "look_up", ""), frag(1, "call-rome", "look_up", "")),
        call(0, args='{"city":'),
        call(1, args='{"city":"Rome"}'),
        call(0, args='"Oslo"}'),
        end("tool_calls"),
    ]
    reasoning: Json = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Two cities."}]}
    oslo: Json = {
        "id": "fc_1",
        "type": "function_call",
        "call_id": "call-oslo",
        "name": "look_up",
        "arguments": '{"city":"Oslo"}',
        "status": "completed",
    }
    rome = {**oslo, "id": "fc_2", "call_id": "call-rome", "arguments": '{"city":"Rome"}'}
    assert stream(chunks) == [
        {"type": "response.created", "sequence_number": 0, "response": {"status": "in_progress", "output": []}},
        {"type": "response.in_progress", "sequence_number": 1, "response": {"status": "in_progress", "output": []}},
        {
            "type": "response.output_item.added",
            "sequence_number": 2,
            "output_index": 0,
            "item": {"id": "rs_1", "type": "reasoning", "summary": []},
        },
        {
            "type": "response.reasoning_summary_part.added",
            "sequence_number": 3,
            "output_index": 0,
            "item_id": "rs_1",
            "summary_index": 0,
            "part": {"type": "summary_text", "text": ""},
        },
        {
            "type": "response.reasoning_summary_text.delta",
            "sequence_number": 4,
            "output_index": 0,
            "item_id": "rs_1",
            "summary_index": 0,
            "delta": "Two ",
        },
        {
            "type": "response.reasoning_summary_text.delta",
            "sequence_number": 5,
            "output_index": 0,
            "item_id": "rs_1",
            "summary_index": 0,
            "delta": "cities.",
        },
        {
            "type": "response.reasoning_summary_text.done",
            "sequence_number": 6,
            "output_index": 0,
            "item_id": "rs_1",
            "summary_index": 0,
            "text": "Two cities.",
        },
        {
            "type": "response.reasoning_summary_part.done",
            "sequence_number": 7,
            "output_index": 0,
            "item_id": "rs_1",
            "summary_index": 0,
            "part": {"type": "summary_text", "text": "Two cities."},
        },
        {"type": "response.output_item.done", "sequence_number": 8, "output_index": 0, "item": reasoning},
        {
            "type": "response.output_item.added",
            "sequence_number": 9,
            "output_index": 1,
            "item": {**oslo, "arguments": "", "status": "in_progress"},
        },
        {
            "type": "response.function_call_arguments.delta",
            "sequence_number": 10,
            "output_index": 1,
            "item_id": "fc_1",
            "delta": '{"city":',
        },
        {
            "type": "response.function_call_arguments.delta",
            "sequence_number": 11,
            "output_index": 1,
            "item_id": "fc_1",
            "delta": '"Oslo"}',
        },
        {
            "type": "response.function_call_arguments.done",
            "sequence_number": 12,
            "output_index": 1,
            "item_id": "fc_1",
            "arguments": '{"city":"Oslo"}',
        },
        {"type": "response.output_item.done", "sequence_number": 13, "output_index": 1, "item": oslo},
        {
            "type": "response.output_item.added",
            "sequence_number": 14,
            "output_index": 2,
            "item": {**rome, "arguments": "", "status": "in_progress"},
        },
        {
            "type": "response.function_call_arguments.delta",
            "sequence_number": 15,
            "output_index": 2,
            "item_id": "fc_2",
            "delta": '{"city":"Rome"}',
        },
        {
            "type": "response.function_call_arguments.done",
            "sequence_number": 16,
            "output_index": 2,
            "item_id": "fc_2",
            "arguments": '{"city":"Rome"}',
        },
        {"type": "response.output_item.done", "sequence_number": 17, "output_index": 2, "item": rome},
        {
            "type": "response.completed",
            "sequence_number": 18,
            "response": {"status": "completed", "output": [reasoning, oslo, rome]},
        },
    ]


def test_text_refusal_text() -> None:
    chunks = [text("Yes: "), refuse("no."), text("Sorry."), end()]
    head = {"output_index": 0, "item_id": "msg_1"}
    parts: list[Json] = [
        {"type": "output_text", "text": "Yes: ", "annotations": [], "logprobs": []},
        {"type": "refusal", "refusal": "no."},
        {"type": "output_text", "text": "Sorry.", "annotations": [], "logprobs": []},
    ]
    message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": parts}
    assert stream(chunks) == [
        {"type": "response.created", "sequence_number": 0, "response": {"status": "in_progress", "output": []}},
        {"type": "response.in_progress", "sequence_number": 1, "response": {"status": "in_progress", "output": []}},
        {
            "type": "response.output_item.added",
            "sequence_number": 2,
            "output_index": 0,
            "item": {**message, "status": "in_progress", "content": []},
        },
        {
            "type": "response.content_part.added",
            "sequence_number": 3,
            **head,
            "content_index": 0,
            "part": {"type": "output_text", "text": "", "annotations": [], "logprobs": []},
        },
        {
            "type": "response.output_text.delta",
            "sequence_number": 4,
            **head,
            "content_index": 0,
            "delta": "Yes: ",
            "logprobs": [],
        },
        {
            "type": "response.output_text.done",
            "sequence_number": 5,
            **head,
            "content_index": 0,
            "text": "Yes: ",
            "logprobs": [],
        },
        {"type": "response.content_part.done", "sequence_number": 6, **head, "content_index": 0, "part": parts[0]},
        {
            "type": "response.content_part.added",
            "sequence_number": 7,
            **head,
            "content_index": 1,
            "part": {"type": "refusal", "refusal": ""},
        },
        {"type": "response.refusal.delta", "sequence_number": 8, **head, "content_index": 1, "delta": "no."},
        {"type": "response.refusal.done", "sequence_number": 9, **head, "content_index": 1, "refusal": "no."},
        {"type": "response.content_part.done", "sequence_number": 10, **head, "content_index": 1, "part": parts[1]},
        {
            "type": "response.content_part.added",
            "sequence_number": 11,
            **head,
            "content_index": 2,
            "part": {"type": "output_text", "text": "", "annotations": [], "logprobs": []},
        },
        {
            "type": "response.output_text.delta",
            "sequence_number": 12,
            **head,
            "content_index": 2,
            "delta": "Sorry.",
            "logprobs": [],
        },
        {
            "type": "response.output_text.done",
            "sequence_number": 13,
            **head,
            "content_index": 2,
            "text": "Sorry.",
            "logprobs": [],
        },
        {"type": "response.content_part.done", "sequence_number": 14, **head, "content_index": 2, "part": parts[2]},
        {"type": "response.output_item.done", "sequence_number": 15, "output_index": 0, "item": message},
        {
            "type": "response.completed",
            "sequence_number": 16,
            "response": {"status": "completed", "output": [message]},
        },
    ]


def test_the_limit_inside_a_call() -> None:
    chunks = [call(0, "call-a", "dig", '{"dep'), text("Held."), end("length")]
    dig: Json = {
        "id": "fc_1",
        "type": "function_call",
        "call_id": "call-a",
        "name": "dig",
        "arguments": '{"dep',
        "status": "incomplete",
    }
    part: Json = {"type": "output_text", "text": "Held.", "annotations": [], "logprobs": []}
    message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "status": "incomplete", "content": [part]}
    assert stream(chunks) == [
        {"type": "response.created", "sequence_number": 0, "response": {"status": "in_progress", "output": []}},
        {"type": "response.in_progress", "sequence_number": 1, "response": {"status": "in_progress", "output": []}},
        {
            "type": "response.output_item.added",
            "sequence_number": 2,
            "output_index": 0,
            "item": {**dig, "arguments": "", "status": "in_progress"},
        },
        {
            "type": "response.function_call_arguments.delta",
            "sequence_number": 3,
            "output_index": 0,
            "item_id": "fc_1",
            "delta": '{"dep',
        },
        {
            "type": "response.function_call_arguments.done",
            "sequence_number": 4,
            "output_index": 0,
            "item_id": "fc_1",
            "arguments": '{"dep',
        },
        {"type": "response.output_item.done", "sequence_number": 5, "output_index": 0, "item": dig},
        {
            "type": "response.output_item.added",
            "sequence_number": 6,
            "output_index": 1,
            "item": {**message, "status": "in_progress", "content": []},
        },
        {
            "type": "response.content_part.added",
            "sequence_number": 7,
            "output_index": 1,
            "item_id": "msg_1",
            "content_index": 0,
            "part": {**part, "text": ""},
        },
        {
            "type": "response.output_text.delta",
            "sequence_number": 8,
            "output_index": 1,
            "item_id": "msg_1",
            "content_index": 0,
            "delta": "Held.",
            "logprobs": [],
        },
        {
            "type": "response.output_text.done",
            "sequence_number": 9,
            "output_index": 1,
            "item_id": "msg_1",
            "content_index": 0,
            "text": "Held.",
            "logprobs": [],
        },
        {
            "type": "response.content_part.done",
            "sequence_number": 10,
            "output_index": 1,
            "item_id": "msg_1",
            "content_index": 0,
            "part": part,
        },
        {"type": "response.output_item.done", "sequence_number": 11, "output_index": 1, "item": message},
        {
            "type": "response.incomplete",
            "sequence_number": 12,
            "response": {
                "status": "incomplete",
                "output": [dig, message],
                "incomplete_details": {"reason": "max_output_tokens"},
            },
        },
    ]


def test_a_source_that_breaks() -> None:
    part: Json = {"type": "output_text", "text": "It", "annotations": [], "logprobs": []}
    message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "status": "incomplete", "content": [part]}
    events = stream([text("It")], ConnectionError("the peer left"))
    words = events[-2]["message"]
    assert "the peer left" in words
    events[-2]["error"].pop("type", None)  # the nested form may name a type, as the recordings do
    assert events == [
        {"type": "response.created", "sequence_number": 0, "response": {"status": "in_progress", "output": []}},
        {"type": "response.in_progress", "sequence_number": 1, "response": {"status": "in_progress", "output": []}},
        {
            "type": "response.output_item.added",
            "sequence_number": 2,
            "output_index": 0,
            "item": {**message, "status": "in_progress", "content": []},
        },
        {
            "type": "response.content_part.added",
            "sequence_number": 3,
            "output_index": 0,
            "item_id": "msg_1",
            "content_index": 0,
            "part": {**part, "text": ""},
        },
        {
            "type": "response.output_text.delta",
            "sequence_number": 4,
            "output_index": 0,
            "item_id": "msg_1",
            "content_index": 0,
            "delta": "It",
            "logprobs": [],
        },
        {
            "type": "response.output_text.done",
            "sequence_number": 5,
            "output_index": 0,
            "item_id": "msg_1",
            "content_index": 0,
            "text": "It",
            "logprobs": [],
        },
        {
            "type": "response.content_part.done",
            "sequence_number": 6,
            "output_index": 0,
            "item_id": "msg_1",
            "content_index": 0,
            "part": part,
        },
        {"type": "response.output_item.done", "sequence_number": 7, "output_index": 0, "item": message},
        {
            "type": "error",
            "sequence_number": 8,
            "code": "server_error",
            "message": words,
            "param": None,
            "error": {"code": "server_error", "message": words, "param": None},
        },
        {
            "type": "response.failed",
            "sequence_number": 9,
            "response": {
                "status": "failed",
                "output": [message],
                "error": {"code": "server_error", "message": words},
            },
        },
    ]


def test_an_empty_stream() -> None:
    events = stream([])
    words = events[-1]["response"]["error"]["message"]
    assert "empty" in words.lower()
    events[-2]["error"].pop("type", None)
    assert events == [
        {"type": "response.created", "sequence_number": 0, "response": {"status": "in_progress", "output": []}},
        {"type": "response.in_progress", "sequence_number": 1, "response": {"status": "in_progress", "output": []}},
        {
            "type": "error",
            "sequence_number": 2,
            "code": "server_error",
            "message": words,
            "param": None,
            "error": {"code": "server_error", "message": words, "param": None},
        },
        {
            "type": "response.failed",
            "sequence_number": 3,
            "response": {"status": "failed", "output": [], "error": {"code": "server_error", "message": words}},
        },
    ]


def test_annotations_and_logprobs() -> None:
    note: Json = {
        "type": "url_citation",
        "url": "https://example.org/one",
        "title": "One",
        "start_index": 0,
        "end_index": 4,
    }
    nested = {"type": "url_citation", "url_citation": {key: value for key, value in note.items() if key != "type"}}
    prob: Json = {"token": "Rain", "logprob": -0.25, "bytes": [82, 97, 105, 110], "top_logprobs": []}
    chunks = [
        text("Rain", choice={"logprobs": {"content": [prob]}}),
        chunk({"annotations": [nested]}),
        chunk({"annotations": [nested]}),
        end(),
    ]
    place: Json = {"output_index": 0, "item_id": "msg_1", "content_index": 0}
    part: Json = {"type": "output_text", "text": "Rain", "annotations": [note], "logprobs": [prob]}
    message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    assert stream(chunks) == [
        {"type": "response.created", "sequence_number": 0, "response": {"status": "in_progress", "output": []}},
        {"type": "response.in_progress", "sequence_number": 1, "response": {"status": "in_progress", "output": []}},
        {
            "type": "response.output_item.added",
            "sequence_number": 2,
            "output_index": 0,
            "item": {**message, "status": "in_progress", "content": []},
        },
        {
            "type": "response.content_part.added",
            "sequence_number": 3,
            **place,
            "part": {"type": "output_text", "text": "", "annotations": [], "logprobs": []},
        },
        {"type": "response.output_text.delta", "sequence_number": 4, **place, "delta": "Rain", "logprobs": [prob]},
        {
            "type": "response.output_text.annotation.added",
            "sequence_number": 5,
            **place,
            "annotation_index": 0,
            "annotation": note,
        },
        {"type": "response.output_text.done", "sequence_number": 6, **place, "text": "Rain", "logprobs": [prob]},
        {
            "type": "response.content_part.done",
            "sequence_number": 7,
            **place,
            "part": {**part, "logprobs": []},
        },
        {"type": "response.output_item.done", "sequence_number": 8, "output_index": 0, "item": message},
        {
            "type": "response.completed",
            "sequence_number": 9,
            "response": {"status": "completed", "output": [message]},
        },
    ]


def test_raw_reasoning() -> None:
    place: Json = {"output_index": 0, "item_id": "rs_1", "content_index": 0}
    item: Json = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hm."}],
    }
    events = stream([think("Hm."), end()], reasoning="text")
    events[2]["item"].pop("content", None)  # an empty list may be there from the start
    assert events == [
        {"type": "response.created", "sequence_number": 0, "response": {"status": "in_progress", "output": []}},
        {"type": "response.in_progress", "sequence_number": 1, "response": {"status": "in_progress", "output": []}},
        {
            "type": "response.output_item.added",
            "sequence_number": 2,
            "output_index": 0,
            "item": {"id": "rs_1", "type": "reasoning", "summary": []},
        },
        {
            "type": "response.content_part.added",
            "sequence_number": 3,
            **place,
            "part": {"type": "reasoning_text", "text": ""},
        },
        {"type": "response.reasoning_text.delta", "sequence_number": 4, **place, "delta": "Hm."},
        {"type": "response.reasoning_text.done", "sequence_number": 5, **place, "text": "Hm."},
        {
            "type": "response.content_part.done",
            "sequence_number": 6,
            **place,
            "part": {"type": "reasoning_text", "text": "Hm."},
        },
        {"type": "response.output_item.done", "sequence_number": 7, "output_index": 0, "item": item},
        {"type": "response.completed", "sequence_number": 8, "response": {"status": "completed", "output": [item]}},
    ]


def test_encrypted_reasoning_and_a_custom_call() -> None:
    chunks = [
        details(detail("encrypted", index=0, data="c2VhbGVk")),
        calls(custom(0, "call-a", "grep", "-rn")),
        calls(custom(0, text=" x")),
        end("tool_calls"),
    ]
    reasoning: Json = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "c2VhbGVk"}
    grep: Json = {
        "id": "ctc_1",
        "type": "custom_tool_call",
        "call_id": "call-a",
        "name": "grep",
        "input": "-rn x",
        "status": "completed",
    }
    events = stream(chunks)
    events[2]["item"].pop("encrypted_content", None)  # it may be there from the start
    assert events == [
        {"type": "response.created", "sequence_number": 0, "response": {"status": "in_progress", "output": []}},
        {"type": "response.in_progress", "sequence_number": 1, "response": {"status": "in_progress", "output": []}},
        {
            "type": "response.output_item.added",
            "sequence_number": 2,
            "output_index": 0,
            "item": {"id": "rs_1", "type": "reasoning", "summary": []},
        },
        {"type": "response.output_item.done", "sequence_number": 3, "output_index": 0, "item": reasoning},
        {
            "type": "response.output_item.added",
            "sequence_number": 4,
            "output_index": 1,
            "item": {**grep, "input": "", "status": "in_progress"},
        },
        {
            "type": "response.custom_tool_call_input.delta",
            "sequence_number": 5,
            "output_index": 1,
            "item_id": "ctc_1",
            "delta": "-rn",
        },
        {
            "type": "response.custom_tool_call_input.delta",
            "sequence_number": 6,
            "output_index": 1,
            "item_id": "ctc_1",
            "delta": " x",
        },
        {
            "type": "response.custom_tool_call_input.done",
            "sequence_number": 7,
            "output_index": 1,
            "item_id": "ctc_1",
            "input": "-rn x",
        },
        {"type": "response.output_item.done", "sequence_number": 8, "output_index": 1, "item": grep},
        {
            "type": "response.completed",
            "sequence_number": 9,
            "response": {"status": "completed", "output": [reasoning, grep]},
        },
    ]
