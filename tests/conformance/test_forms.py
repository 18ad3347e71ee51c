"""Forms: what is derived says the same, or is broken off."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_conformance.case import Case, Raises, load_cases, read_case
from antiphon_conformance.forms import FORMS, derive
from antiphon_conformance.said import listen

CASES = [case for case in load_cases() if isinstance(case, Case)]
SAME = ("characters", "interleaved", "usage-alone", "usage-on-finish", "empty", "nulls")
HEAD = {"id": "chatcmpl-case", "object": "chat.completion.chunk", "created": 1700000000, "model": "case-model"}


def case_of(*chunks: dict[str, Any], **more: Any) -> Case:
    import json

    written = {"id": "a/b", "title": "t", "source": "s", "rules": [], "chunks": chunks, **more}
    case = read_case(json.dumps({**written, "expect": {"status": "completed", "output": []}}).encode(), "a/b")
    assert isinstance(case, Case)
    return case


def one(delta: dict[str, Any], finish: str | None = None, **top: Any) -> dict[str, Any]:
    return {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **top}


def formed(case: Case, name: str) -> list[Case]:
    return list(FORMS[name](case))


def calls(*fragments: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": list(fragments)}


def test_text_reasoning_and_arguments_are_cut_into_characters() -> None:
    case = case_of(
        {"delta": {"role": "assistant", "content": "Hi"}},
        {"delta": {"reasoning": "ab", "reasoning_content": "ab"}},
        {"delta": calls({"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}})},
        {"delta": {"content": "x", "refusal": "y"}},
        {"delta": {"content": "Yo"}, "finish_reason": "stop", "usage": {"prompt_tokens": 1, "completion_tokens": 1}},
    )
    (made,) = formed(case, "characters")
    assert made.chunks == (
        one({"role": "assistant", "content": "H"}),
        one({"content": "i"}),
        one({"reasoning": "a", "reasoning_content": "a"}),
        one({"reasoning": "b", "reasoning_content": "b"}),
        one(calls({"index": 0, "id": "c", "function": {"name": "f", "arguments": "{"}})),
        one(calls({"index": 0, "function": {"arguments": "}"}})),
        one({"content": "x", "refusal": "y"}),
        one({"content": "Y"}),
        one({"content": "o"}, "stop", usage={"prompt_tokens": 1, "completion_tokens": 1}),
    )
    assert (made.form, made.expect, made.id) == ("characters", case.expect, case.id)


def test_calls_take_turns() -> None:
    case = case_of(
        {"delta": {"content": "T"}},
        {"delta": calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x":1}'}})},
        {"delta": calls({"index": 1, "id": "b", "function": {"name": "g", "arguments": '{"y"'}})},
        {"delta": calls({"index": 1, "function": {"arguments": ":2}"}})},
        {"finish_reason": "tool_calls"},
    )
    (made,) = formed(case, "interleaved")
    assert made.chunks == (
        one({"content": "T"}),
        one(calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x"'}})),
        one(calls({"index": 1, "id": "b", "function": {"name": "g", "arguments": '{"y"'}})),
        one(calls({"index": 0, "function": {"arguments": ":1}"}})),
        one(calls({"index": 1, "function": {"arguments": ":2}"}})),
        one({}, "tool_calls"),
    )


NO_TURNS = {
    "one call": [calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}})],
    "no index": [calls({"id": n, "function": {"name": n, "arguments": "{}"}}) for n in "ab"],
    "one index": [calls({"index": 0, "id": n, "function": {"name": n, "arguments": "{}"}}) for n in "ab"],
    "no id": [calls({"index": n, "function": {"name": "f", "arguments": "{}"}}) for n in (0, 1)],
    "no name": [calls({"index": n, "id": f"{n}", "function": {"arguments": "{}"}}) for n in (0, 1)],
    "objects": [calls({"index": n, "id": f"{n}", "function": {"name": "f", "arguments": {}}}) for n in (0, 1)],
}


@pytest.mark.parametrize("deltas", NO_TURNS.values(), ids=NO_TURNS)
def test_calls_that_nothing_tells_apart_take_no_turns(deltas: list[dict[str, Any]]) -> None:
    assert formed(case_of(*({"delta": delta} for delta in deltas), {"finish_reason": "stop"}), "interleaved") == []


def test_broken_off_after_each_chunk_and_by_an_exception() -> None:
    case = case_of({"delta": {"content": "a"}}, {"delta": {"content": "b"}}, {"finish_reason": "stop"})
    first, second, raising = formed(case, "broken")
    assert (first.chunks, second.chunks, raising.chunks) == (case.chunks[:1], case.chunks[:2], case.chunks[:1])
    assert {made.expect for made in (first, second, raising)} == {None}
    assert not any(made.done or "errors" not in made.needs for made in (first, second, raising))
    assert (first.raises, raising.raises) == (None, Raises("the peer closed the connection"))


def test_usage_moves_to_a_chunk_of_its_own_and_back() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2}
    on_finish = case_of({"delta": {"content": "a"}}, {"finish_reason": "stop", "usage": usage})
    (alone,) = formed(on_finish, "usage-alone")
    assert alone.chunks == (one({"content": "a"}), one({}, "stop"), {**HEAD, "choices": [], "usage": usage})
    (back,) = formed(replace(alone, form=""), "usage-on-finish")
    assert back.chunks == on_finish.chunks
    assert formed(on_finish, "usage-on-finish") == formed(replace(alone, form=""), "usage-alone") == []


def test_not_as_leaves_a_form_out() -> None:
    case = case_of({"delta": {"content": "ab"}}, {"finish_reason": "stop"})
    assert {made.form.split(" ")[0] for made in derive(case)} == {"characters", "broken", "raises", "empty", "nulls"}
    assert {made.form for made in derive(replace(case, not_as=frozenset({"broken", "nulls"})))} == {
        "characters",
        "empty",
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_form_of_the_same_meaning_says_what_its_case_says(case: Case) -> None:
    """Read by the suite's own reader: the same text of each kind, the same calls, the same end, the same usage."""
    for made in derive(case):
        assert made.chunks != case.chunks
        if made.expect is not None:
            assert told(made) == told(case)


def told(case: Case) -> Any:
    said = listen(case.chunks, None, case.done)
    calls = [(call.name, call.arguments.strip(), call.call_id) for call in said.calls]
    return (
        [said.joined(kind) for kind in ("text", "refusal", "reasoning")],
        calls,
        said.finishes,
        said.usage,
        said.error,
    )


def test_every_form_comes_of_some_case() -> None:
    forms = Counter(made.form.split(" ")[0] for case in CASES for made in derive(case))
    assert set(forms) == {*SAME, "broken", "raises"}
    assert min(forms.values()) >= 5


KEYS = [
    "choices",
    "delta",
    "index",
    "content",
    "tool_calls",
    "function",
    "arguments",
    "id",
    "name",
    "usage",
    "finish_reason",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4), max_size=4))
def test_no_chunk_is_too_odd_to_be_derived_from(chunks: list[dict[str, Any]]) -> None:
    case = replace(case_of(), chunks=tuple(chunks))
    for made in derive(case):
        assert made.form
        assert made.id == case.id
