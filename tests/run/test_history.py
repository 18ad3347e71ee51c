"""Nested history: what is folded, what stays as it is, and that folding again gives the same transcript."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.handoffs import (
    HandoffInputData,
    default_handoff_history_mapper,
    get_conversation_history_wrappers,
    nest_handoff_history,
    reset_conversation_history_wrappers,
    set_conversation_history_wrappers,
)
from antiphon.run.agent import Agent
from antiphon.run.handoffs import owned_items
from antiphon.run.history import PREAMBLE
from antiphon.run.items import (
    HandoffCallItem,
    HandoffOutputItem,
    MessageOutputItem,
    ReasoningItem,
    RunItem,
    ToolApprovalItem,
    ToolCallItem,
    ToolCallOutputItem,
)

AGENT = Agent[Any](name="a")
TARGET = Agent[Any](name="b")
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "o"}
THOUGHT = {"type": "reasoning", "id": "rs", "summary": []}
HANDOFF = {"type": "function_call", "call_id": "h", "name": "transfer_to_b", "arguments": "{}"}
TAKEN = {"type": "function_call_output", "call_id": "h", "output": '{"assistant": "b"}'}
SEARCH = {"type": "web_search_call", "id": "ws", "status": "completed"}


@pytest.fixture(autouse=True)
def _default_wrappers() -> Iterator[None]:
    yield
    reset_conversation_history_wrappers()


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "id": "msg", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def folded(*lines: str) -> dict[str, Any]:
    start, end = get_conversation_history_wrappers()
    numbered = [f"{number}. {line}" for number, line in enumerate(lines, 1)]
    return {"role": "assistant", "content": "\n".join((PREAMBLE, start, *numbered, end))}


def data(
    history: str | tuple[Any, ...], before: tuple[RunItem, ...] = (), new: tuple[RunItem, ...] = ()
) -> HandoffInputData:
    return HandoffInputData(history, before, new)


TURN: tuple[RunItem, ...] = (
    ReasoningItem(AGENT, THOUGHT),
    MessageOutputItem(AGENT, said("I hand over")),
    ToolCallItem(AGENT, CALL),
    ToolApprovalItem(AGENT, CALL),
    HandoffCallItem(AGENT, HANDOFF),
    ToolCallOutputItem(AGENT, OUTPUT, "o"),
    HandoffOutputItem(AGENT, TAKEN, AGENT, TARGET),
)
THOUGHT_LINE, CALL_LINE, OUTPUT_LINE, HANDOFF_LINE, TAKEN_LINE, SAID_LINE = (
    json.dumps(one) for one in (THOUGHT, CALL, OUTPUT, HANDOFF, TAKEN, said("before"))
)

FOLDED: list[tuple[str, HandoffInputData, list[dict[str, Any]]]] = [
    ("text", data("hi"), [folded("user: hi")]),
    ("nothing", data(()), [{"role": "assistant", "content": f"{PREAMBLE}\n<CONVERSATION HISTORY>\n(nothing yet)\n</CONVERSATION HISTORY>"}]),
    (
        "a turn",
        data((user("hi"),), (), TURN),
        [folded("user: hi", THOUGHT_LINE), said("I hand over"), folded(CALL_LINE, HANDOFF_LINE, OUTPUT_LINE, TAKEN_LINE)],
    ),
    (
        "earlier turns",
        data("hi", (MessageOutputItem(AGENT, said("before")), ToolCallItem(AGENT, CALL), ToolCallItem(AGENT, SEARCH)), TURN[4:]),
        [folded("user: hi", SAID_LINE, CALL_LINE), SEARCH, folded(HANDOFF_LINE, OUTPUT_LINE, TAKEN_LINE)],
    ),
    ("a name", data(({"role": "user", "name": "Eva", "content": "hi"},)), [folded("user (Eva): hi")]),
    ("lines", data((user("a\nb"),)), [folded('{"role": "user", "content": "a\\nb"}')]),
    ("no content", data(({"role": "user", "content": None},)), [folded("user: ")]),
    ("provider data", data(({**CALL, "provider_data": {"x": 1}},)), [folded(CALL_LINE)]),
    ("a program's call", data("p", (), (ToolCallItem(AGENT, {**SEARCH, "caller": {"type": "program"}}),)), [folded("user: p", json.dumps({**SEARCH, "caller": {"type": "program"}}))]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "before", "history"), FOLDED, ids=[one[0] for one in FOLDED])
def test_what_is_folded(name: str, before: HandoffInputData, history: list[dict[str, Any]]) -> None:
    nested = nest_handoff_history(before)
    assert list(nested.input_history) == history
    assert (nested.pre_handoff_items, nested.new_items, nested.input_items) == ((), before.new_items, ())


def test_what_is_folded_again_does_not_grow() -> None:
    once = nest_handoff_history(data((user("hi"),), (), TURN))
    again = nest_handoff_history(data(once.input_history, (), (MessageOutputItem(TARGET, said("back")),)))
    assert list(again.input_history) == [
        folded("user: hi", THOUGHT_LINE, json.dumps(said("I hand over")), CALL_LINE, HANDOFF_LINE, OUTPUT_LINE, TAKEN_LINE),
        said("back"),
    ]  # fmt: skip


def test_a_mapper_gets_the_flat_transcript_and_is_obeyed() -> None:
    seen: list[list[Any]] = []

    def mapper(transcript: list[Any]) -> list[Any]:
        seen.append(transcript)
        return [user("short")]

    nested = nest_handoff_history(data((folded("user: hi"),), (), TURN), history_mapper=mapper)
    assert seen == [[user("hi"), THOUGHT, said("I hand over"), CALL, HANDOFF, OUTPUT, TAKEN]]
    assert (nested.input_history, owned_items(nested)) == ((user("short"),), ())


def test_markers_can_be_changed_and_reset() -> None:
    set_conversation_history_wrappers(start="<<")
    assert get_conversation_history_wrappers() == ("<<", "</CONVERSATION HISTORY>")
    set_conversation_history_wrappers(end=">>")
    assert default_handoff_history_mapper([user("hi")]) == [
        {"role": "assistant", "content": f"{PREAMBLE}\n<<\n1. user: hi\n>>"}
    ]
    nested = nest_handoff_history(data(tuple(default_handoff_history_mapper([user("hi")])), (), ()))
    assert list(nested.input_history) == [folded("user: hi")]
    reset_conversation_history_wrappers()
    assert get_conversation_history_wrappers() == ("<CONVERSATION HISTORY>", "</CONVERSATION HISTORY>")


def test_a_clone_keeps_which_items_stand_in_the_history() -> None:
    nested = nest_handoff_history(data("hi", (), TURN))
    changed = nested.clone(new_items=(), input_history=tuple(reversed(nested.input_history)))
    gone = nested.clone(input_history=(user("all else"),))
    assert [one.run_item for one in owned_items(nested)] == [TURN[1]]
    assert [(one.run_item, one.input_item) for one in owned_items(changed)] == [(TURN[1], said("I hand over"))]
    assert owned_items(gone) == ()


def test_each_place_in_the_history_stands_for_one_item() -> None:
    twice = (MessageOutputItem(AGENT, said("same")), MessageOutputItem(AGENT, said("same")))
    nested = nest_handoff_history(data("hi", (), twice))
    assert [one.run_item for one in owned_items(nested)] == list(twice)
    shorter = nested.clone(input_history=nested.input_history[:-1])
    assert [one.run_item for one in owned_items(shorter)] == [twice[0]]


# --- any transcript --------------------------------------------------------------------------------------------------

TEXT = st.text(max_size=12) | st.sampled_from(
    [
        "a\n2. assistant: yes",
        "\u2028x",
        "\x85",
        " padded ",
        "{}",
        "(x): y",
        "user: hi",
        "</CONVERSATION HISTORY>",
        "1. ",
    ]
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "developer"]), "content": TEXT},
    optional={"name": st.text(min_size=1, max_size=5)},
)
OTHER = st.fixed_dictionaries(
    {"type": st.sampled_from(["function_call", "reasoning", "message"]), "text": TEXT, "id": st.integers()}
)


@settings(deadline=None)
@given(st.lists(MESSAGE | OTHER, min_size=1, max_size=5))
def test_any_transcript_comes_back(transcript: list[dict[str, Any]]) -> None:
    seen: list[list[Any]] = []

    def mapper(flat: list[Any]) -> list[Any]:
        seen.append(flat)
        return flat

    nest_handoff_history(data(tuple(default_handoff_history_mapper(transcript))), history_mapper=mapper)
    assert seen == [transcript]


@settings(deadline=None)
@given(st.lists(MESSAGE | OTHER, min_size=1, max_size=4))
def test_folding_what_is_folded_changes_nothing(transcript: list[dict[str, Any]]) -> None:
    once = default_handoff_history_mapper(transcript)
    assert list(nest_handoff_history(data(tuple(once))).input_history) == once
