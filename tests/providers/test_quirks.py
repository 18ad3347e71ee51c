"""Quirks: what stands in the text as reasoning or as a call becomes that, however the text is cut."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from antiphon import Profile, Quirk, convert
from antiphon_conformance import Level, check
from antiphon_providers.quirks import CumulativeText, SplitTags, ToolCallTags

THINK, OPENED, CALLS = SplitTags(), SplitTags(opened_by_prompt=True), ToolCallTags()
BOTH = (THINK, CALLS)


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def texts(*pieces: str) -> list[dict[str, Any]]:
    return [chunk(content=piece) for piece in pieces]


def converted(chunks: Sequence[dict[str, Any]], *quirks: Quirk) -> list[dict[str, Any]]:
    """Return the events, in which the rules of strength MUST find nothing."""
    profile = Profile("quirky", quirks=quirks)
    events = list(convert(chunks, profile=profile, events="dict", ids="counted", created_at=0))
    assert [str(one) for one in check(events).at(Level.MUST)] == []
    return events


def output(chunks: Sequence[dict[str, Any]], *quirks: Quirk) -> list[tuple[str, ...]]:
    """Return the items: their kind, and their text, or the call's name and arguments."""
    items = converted(chunks, *quirks)[-1]["response"]["output"]
    return [(_kind(item), *_told(item)) for item in items]


def _kind(item: dict[str, Any]) -> str:
    return {"message": "text", "function_call": "call"}.get(item["type"], item["type"])


def _told(item: dict[str, Any]) -> tuple[str, ...]:
    if item["type"] == "function_call":
        return item["name"], item["arguments"]
    return ("".join(part.get("text", part.get("refusal", "")) for part in item.get("content") or item["summary"]),)


def said(text: str, *quirks: Quirk, finish: str | None = "stop") -> list[tuple[str, ...]]:
    """Return the items of `text`, which are the same whole and cut into characters."""
    end = [chunk(finish)] if finish else []
    whole = output([*texts(text), *end], *quirks)
    assert output([*texts(*text), *end], *quirks) == whole
    return whole


# --- tags ----------------------------------------------------------------------------------------------------------

# text -> the items
SPLIT: dict[str, list[tuple[str, ...]]] = {
    "<think>plan</think>Answer <b>ok</b>": [("reasoning", "plan"), ("text", "Answer <b>ok</b>")],
    "<think>\n plan \n\nit\n</think>\n\nAnswer\n": [("reasoning", "plan \n\nit"), ("text", "Answer\n")],
    " \n <think>plan</think>A": [("reasoning", "plan"), ("text", "A")],
    "<think>plan</think>": [("reasoning", "plan")],
    "<think></think>A": [("text", "A")],
    "<think>\n\n</think>\n\nA": [("text", "A")],
    "<think>a</think>b<think>c</think>": [("reasoning", "a"), ("text", "b<think>c</think>")],
    "<think>a<think>b</think>c</think>": [("reasoning", "a<think>b"), ("text", "c</think>")],
    "A <think>b</think>": [("text", "A <think>b</think>")],
    "</think>A": [("text", "</think>A")],
    "  A ": [("text", "  A ")],
    "<thin": [("text", "<thin")],
    " <thinker>": [("text", " <thinker>")],
    "<think>plan": [("reasoning", "plan")],
    "<think>plan</thi": [("reasoning", "plan</thi")],
    "<think>1 < 2 </ 3</think>so": [("reasoning", "1 < 2 </ 3"), ("text", "so")],
    "<think>": [],
    "": [],
}
PROMPTED: dict[str, list[tuple[str, ...]]] = {
    "plan\n</think>\n\nA": [("reasoning", "plan"), ("text", "A")],
    "<think>plan</think>A": [("reasoning", "plan"), ("text", "A")],
    "</think>A": [("text", "A")],
    "<": [("text", "<")],
    "plan": [("reasoning", "plan")],
    "\nplan</think>A</think>": [("reasoning", "plan"), ("text", "A</think>")],
}


@pytest.mark.parametrize("finish", ["stop", None])
@pytest.mark.parametrize("text", SPLIT)
def test_text_between_tags_at_the_start_is_reasoning(text: str, finish: str | None) -> None:
    assert said(text, THINK, finish=finish) == SPLIT[text]


@pytest.mark.parametrize("text", PROMPTED)
def test_the_prompt_may_have_opened_the_tag(text: str) -> None:
    assert said(text, OPENED) == PROMPTED[text]


def test_other_tags() -> None:
    quirk = SplitTags("<reasoning>", "</reasoning>")
    assert said("<reasoning>a</reasoning>b", quirk) == [("reasoning", "a"), ("text", "b")]
    assert said("<think>a</think>b", quirk) == [("text", "<think>a</think>b")]


def test_reasoning_goes_on_as_it_comes() -> None:
    events = converted([*texts("<think>", "one ", "two", "</think>", "\n", "A", "B"), chunk("stop")], THINK)
    deltas = [(event["type"].split(".")[1], event["delta"]) for event in events if event["type"].endswith(".delta")]
    expected = [("reasoning_summary_text", "one"), ("reasoning_summary_text", " two")]
    assert deltas == [*expected, ("output_text", "A"), ("output_text", "B")]


def test_a_native_field_switches_tags_off() -> None:
    native = [chunk(reasoning_content="r"), *texts("<think>x</think>"), chunk("stop")]
    assert output(native, THINK) == [("reasoning", "r"), ("text", "<think>x</think>")]
    begun = [*texts("<thi"), chunk(reasoning="r"), *texts("nk>x"), chunk("stop")]
    assert output(begun, THINK) == [("text", "<thi"), ("reasoning", "r"), ("text", "nk>x")]
    inside = [*texts("<think>a"), chunk(reasoning="r"), *texts("b</think>"), chunk("stop")]
    assert output(inside, THINK) == [("reasoning", "ar"), ("text", "b</think>")]


def test_calls_and_refusals_pass() -> None:
    call = {"index": 0, "id": "call_1", "function": {"name": "f", "arguments": "{}"}}
    chunks = [*texts("<think>", "a"), chunk(tool_calls=[call]), *texts("</think>\n"), chunk("tool_calls")]
    assert output(chunks, THINK) == [("reasoning", "a"), ("call", "f", "{}")]
    refused = [*texts("<think>a</think>"), chunk(refusal="no"), chunk("stop")]
    assert output(refused, THINK) == [("reasoning", "a"), ("text", "no")]


def test_an_error_lets_go_what_is_held() -> None:
    chunks = [*texts("<think>a", "</th"), {"error": {"message": "overloaded"}}]
    events = converted(chunks, THINK)
    assert events[-1]["type"] == "response.failed"
    assert output(chunks, THINK) == [("reasoning", "a</th")]
    assert output([*texts("a <tool_ca"), {"error": {"message": "overloaded"}}], CALLS) == [("text", "a <tool_ca")]


def token(text: str) -> dict[str, Any]:
    return {"token": text, "logprob": -0.5, "bytes": None, "top_logprobs": []}


def with_logprobs(text: str, *tokens: str) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text}, "logprobs": {"content": [token(one) for one in tokens]}}
    return {"choices": [{**choice, "finish_reason": None}]}


def spelled(entries: Sequence[dict[str, Any]]) -> list[str]:
    return [one["token"] for one in entries]


@pytest.mark.parametrize("cut", [True, False])
def test_log_probabilities_go_where_their_text_goes(cut: bool) -> None:
    tokens = ["<th", "ink>", "a", " b", "</think>", "\n\n", "Hi", " <"]
    pieces = [with_logprobs(one, one) for one in tokens] if cut else [with_logprobs("".join(tokens), *tokens)]
    final = converted([*pieces, chunk("stop")], THINK)[-1]["response"]
    assert spelled(final["output"][1]["content"][0]["logprobs"]) == ["Hi", " <"]
    assert spelled(final["provider_data"]["logprobs"]["reasoning"]) == tokens[:5]


def test_log_probabilities_that_do_not_spell_the_text_are_kept() -> None:
    chunks = [with_logprobs("<think>a</think>", "<|analysis|>", "a"), with_logprobs("Hi", "<|final|>", "Hi")]
    final = converted([*chunks, chunk("stop")], THINK)[-1]["response"]
    assert spelled(final["provider_data"]["logprobs"]["reasoning"]) == ["<|analysis|>", "a"]
    assert spelled(final["output"][1]["content"][0]["logprobs"]) == ["<|final|>", "Hi"]


# --- calls ---------------------------------------------------------------------------------------------------------


def tagged(payload: str) -> str:
    return f"<tool_call>{payload}</tool_call>"


WEATHER = tagged('\n{"name": "weather", "arguments": {"city": "Oslo"}}\n')
CALL: dict[str, list[tuple[str, ...]]] = {
    WEATHER: [("call", "weather", '{"city": "Oslo"}')],
    f"Let me see.\n{WEATHER}": [("text", "Let me see."), ("call", "weather", '{"city": "Oslo"}')],
    f"{WEATHER}\n{WEATHER}\n": [("call", "weather", '{"city": "Oslo"}')] * 2,
    f"\n{WEATHER}\n\nAfter": [("text", "After"), ("call", "weather", '{"city": "Oslo"}')],
    f"A\n{WEATHER}\nB ": [("text", "A\n\nB "), ("call", "weather", '{"city": "Oslo"}')],
    tagged('{"name": "f", "arguments": "{\\"a\\": 1}"}'): [("call", "f", '{"a": 1}')],
    tagged('{"arguments": {}, "name": "f"}'): [("call", "f", "{}")],
    tagged('{"name": "f"}'): [("call", "f", "{}")],
    tagged('{"name": "f", "arguments": ""}'): [("call", "f", "{}")],
    tagged('{"name": "f", "arguments": {"s": "</tool_call> \\" <tool_call>"}}'): [
        ("call", "f", '{"s": "</tool_call> \\" <tool_call>"}')
    ],
    # what is no call stays as it is
    tagged('{"name": f}'): [("text", tagged('{"name": f}'))],
    tagged('{"name": ""}') + " x": [("text", tagged('{"name": ""}') + " x")],
    tagged('{"name": 1}'): [("text", tagged('{"name": 1}'))],
    tagged('{"name": "f", "arguments": [1]}'): [("text", tagged('{"name": "f", "arguments": [1]}'))],
    tagged('{"name": "f", "arguments": "no JSON"}'): [("text", tagged('{"name": "f", "arguments": "no JSON"}'))],
    tagged('["f"]'): [("text", tagged('["f"]'))],
    tagged(" "): [("text", tagged(" "))],
    tagged("<function=f></function>"): [("text", tagged("<function=f></function>"))],
    "Use a <tool_call> tag.\n": [("text", "Use a <tool_call> tag.\n")],
    f"<tool_call>{WEATHER}": [("text", "<tool_call>"), ("call", "weather", '{"city": "Oslo"}')],
    f"{tagged('{')} {WEATHER}": [("text", tagged("{")), ("call", "weather", '{"city": "Oslo"}')],
    # an end in the middle
    '<tool_call>{"name": "f"}': [("call", "f", "{}")],
    '<tool_call>{"name": "f"}\n</tool': [("text", '<tool_call>{"name": "f"}\n</tool')],
    'A <tool_call>{"name": "f", "argu': [("text", 'A <tool_call>{"name": "f", "argu')],
    "A <tool_c": [("text", "A <tool_c")],
    " A \n": [("text", " A \n")],
}


@pytest.mark.parametrize("finish", ["stop", None])
@pytest.mark.parametrize("text", CALL)
def test_calls_in_the_text(text: str, finish: str | None) -> None:
    assert said(text, CALLS, finish=finish) == CALL[text]


def test_calls_get_ids_of_their_own_and_places_beside_native_ones() -> None:
    native = {"index": 0, "id": "call_n", "function": {"name": "n", "arguments": "{}"}}
    chunks = [chunk(tool_calls=[native]), *texts(WEATHER, WEATHER), chunk("tool_calls")]
    items = converted(chunks, CALLS)[-1]["response"]["output"]
    assert [item["name"] for item in items] == ["n", "weather", "weather"]
    assert len({item["call_id"] for item in items}) == 3


def test_text_before_a_call_goes_on_as_it_comes() -> None:
    chunks = [*texts("One", " two", " <", "tool_call>{", '"name"'), chunk("length")]
    events = converted(chunks, CALLS)
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert deltas == ["One", " two", ' <tool_call>{"name"']
    assert events[-1]["type"] == "response.incomplete"


def test_long_arguments_are_read_once() -> None:
    arguments = {"text": "x" * 20_000}
    text = tagged(json.dumps({"name": "f", "arguments": arguments}))
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
    assert output([*texts(*pieces), chunk("stop")], CALLS) == [("call", "f", json.dumps(arguments))]


def test_tags_within_reasoning_are_reasoning() -> None:
    text = f"<think>\nI use {WEATHER}.\n</think>\n\n{WEATHER}"
    assert said(text, *BOTH) == [("reasoning", f"I use {WEATHER}."), ("call", "weather", '{"city": "Oslo"}')]


@pytest.mark.parametrize("cut", [True, False])
def test_log_probabilities_of_a_call_are_kept_apart(cut: bool) -> None:
    tokens = ["Hi", "\n", "<tool_call>", '{"name": "f"}', "</tool_call>", "\n", "Bye"]
    pieces = [with_logprobs(one, one) for one in tokens] if cut else [with_logprobs("".join(tokens), *tokens)]
    final = converted([*pieces, chunk("stop")], CALLS)[-1]["response"]
    assert spelled(final["output"][0]["content"][0]["logprobs"]) == ["Hi", "\n", "\n", "Bye"]
    assert spelled(final["provider_data"]["logprobs"]["reasoning"]) == tokens[2:5]


# --- text so far ---------------------------------------------------------------------------------------------------


def test_text_so_far_is_said_once() -> None:
    chunks = [*texts("He", "Hello", "Hello", "Hel", "Hello there"), chunk("stop", content="Hello there")]
    assert output(chunks, CumulativeText()) == [("text", "Hello there")]


def test_each_kind_is_counted_apart() -> None:
    chunks = [chunk(reasoning="a"), chunk(reasoning="ab"), *texts("a", "abc"), chunk(refusal="n"), chunk(refusal="no")]
    assert output([*chunks, chunk("stop")], CumulativeText()) == [("reasoning", "ab"), ("text", "abcno")]


def test_a_piece_that_continues_nothing_is_kept() -> None:
    assert output([*texts("abc", "xyz", "abcxyz!"), chunk("stop")], CumulativeText()) == [("text", "abcxyz!")]


def test_signed_pieces_so_far_are_kept_once() -> None:
    details = [{"type": "reasoning.text", "text": "a", "signature": "s"}, {"type": "reasoning.encrypted", "data": "d"}]
    chunks = [chunk(reasoning="a", reasoning_details=details[:1]), chunk(reasoning="a", reasoning_details=details)]
    item = converted([*chunks, chunk("stop")], CumulativeText())[-1]["response"]["output"][0]
    assert item["provider_data"]["reasoning_details"] == details


def test_log_probabilities_so_far_are_kept_once() -> None:
    chunks = [with_logprobs("He", "He"), with_logprobs("Hello", "He", "llo"), chunk("stop")]
    final = converted(chunks, CumulativeText())[-1]["response"]
    assert spelled(final["output"][0]["content"][0]["logprobs"]) == ["He", "llo"]


# --- however it is cut ---------------------------------------------------------------------------------------------

FRAGMENTS = [
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    '{"name": "f", "arguments": {"a": 1}}',
    '{"name": "g"}',
    '"',
    "\\",
    "{",
    "}",
    "<",
    "</",
    "t",
    " ",
    "\n",
    "Hello",
    "🌟",
    *SPLIT,
    *CALL,
]
TEXTS = st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("".join)
QUIRKS: dict[str, tuple[Quirk, ...]] = {
    "think": (THINK,),
    "opened": (OPENED,),
    "calls": (CALLS,),
    "both": BOTH,
    "opened and calls": (OPENED, CALLS),
}


@st.composite
def cuts(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Return a text, and the same in pieces."""
    text = draw(TEXTS)
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    bounds = [0, *places, len(text)]
    return text, [text[begin:end] for begin, end in pairwise(bounds)]


@pytest.mark.parametrize("name", QUIRKS)
@given(cut=cuts(), finish=st.sampled_from(["stop", None]))
@settings(max_examples=60, deadline=None)
@example(cut=("<think>a</think>\n<tool_call>", ["<think>a</think>\n<tool_", "call>"]), finish="stop")
def test_however_text_is_cut_the_output_is_the_same(name: str, cut: tuple[str, list[str]], finish: str | None) -> None:
    text, pieces = cut
    assert output([*texts(*pieces), *([chunk(finish)] if finish else [])], *QUIRKS[name]) == said(
        text, *QUIRKS[name], finish=finish
    )


@given(cut=cuts())
@settings(max_examples=60, deadline=None)
def test_however_text_so_far_is_cut_it_is_said_once(cut: tuple[str, list[str]]) -> None:
    text, pieces = cut
    so_far = ["".join(pieces[: size + 1]) for size in range(len(pieces))]
    assert output([*texts(*so_far), chunk("stop")], CumulativeText()) == output([*texts(text), chunk("stop")])


@pytest.mark.parametrize("quirk", [THINK, CALLS, CumulativeText()], ids=lambda one: type(one).__name__)
def test_a_quirk_is_a_value_that_starts_a_transducer_for_each_stream(quirk: Quirk) -> None:
    assert isinstance(quirk, Quirk)
    assert hash(quirk) == hash(type(quirk)())
    assert quirk == type(quirk)()
    assert quirk.start() is not quirk.start()


def test_a_quirk_is_idle_once_it_can_change_nothing() -> None:
    chunks = [*texts("<think>a</think>\n", "A"), chunk("stop")]
    assert output(chunks, THINK) == [("reasoning", "a"), ("text", "A")]
    work = THINK.start()
    assert not work.idle
    assert not CALLS.start().idle
    assert not CumulativeText().start().idle
