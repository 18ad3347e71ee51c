"""What odd chunks say: the rules about faithfulness read them as the grammar does, and still find what is left out."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon import convert
from antiphon_conformance import check

Chunk = dict[str, Any]


def chunk(delta: Chunk, index: Any = 0, finish: Any = None, **more: Any) -> Chunk:
    return {"choices": [{"index": index, "delta": delta, "finish_reason": finish}], **more}


def call(arguments: str, index: Any = 0, **head: Any) -> Chunk:
    return chunk({"tool_calls": [{"index": index, **head, "function": {"arguments": arguments, **head}}]})


HELLO, STOP = chunk({"content": "Hello"}), chunk({}, finish="stop")
SIGNED = {"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]}
# name -> the odd chunks, and the rule that finds their content missing from the events of a stream that only says Hello
CASES: dict[str, tuple[list[Chunk], str]] = {
    "object error": ([HELLO, {"object": "error", "message": "gone", "code": 500}], "END003"),
    "detail": ([HELLO, {"detail": "gone"}], "END003"),
    "errors": ([HELLO, {"success": False, "errors": [{"code": 1, "message": "gone"}]}], "END003"),
    "x_groq": ([HELLO, {"choices": [], "x_groq": {"error": "gone"}}], "END003"),
    "finish word of a server that is out of room": ([HELLO, chunk({}, finish="model_length")], "END001"),
    "finish word of a filter": ([HELLO, chunk({}, finish="sensitive")], "END002"),
    "counts as text": (
        [HELLO, STOP, {"choices": [], "usage": {"prompt_tokens": "5", "completion_tokens": "7"}}],
        "USE001",
    ),
    "counts as floats": ([HELLO, STOP, {"choices": [], "usage": {"prompt_tokens": 5.0, "total_tokens": 12}}], "USE001"),
    "counts of Anthropic": ([HELLO, STOP, {"choices": [], "usage": {"input_tokens": 5, "output_tokens": 7}}], "USE001"),
    "a total alone": ([HELLO, STOP, {"choices": [], "usage": {"total_tokens": 12}}], "USE001"),
    "reasoning in an object": ([chunk({"reasoning": {"content": "hm"}}), HELLO, STOP], "FTH003"),
    "nested thinking blocks": ([chunk({"provider_specific_fields": SIGNED}), HELLO, STOP], "FTH003"),
    "an index as text": ([chunk({"content": "Ah. "}, index="0"), HELLO, STOP], "FTH001"),
    "a float as index of a call": ([call("{", 0.0, id="a", name="f"), call("}"), HELLO, STOP], "FTH002"),
    "a name between spaces": ([call("{}", id="a", name=" f "), HELLO, STOP], "FTH002"),
}


@pytest.mark.parametrize("name", CASES)
def test_our_events_are_faithful(name: str) -> None:
    chunks, _ = CASES[name]
    report = check(convert(chunks, events="dict"), chunks=chunks)
    assert report.ok, report.findings


@pytest.mark.parametrize("name", CASES)
def test_what_is_left_out_is_found(name: str) -> None:
    chunks, code = CASES[name]
    found = {finding.code for finding in check(convert([HELLO, STOP], events="dict"), chunks=chunks).findings}
    assert code in found


def test_another_choice_is_no_content() -> None:
    chunks = [chunk({"content": "another"}, index="1"), HELLO, STOP]
    assert check(convert([HELLO, STOP], events="dict"), chunks=chunks).ok
