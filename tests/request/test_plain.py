"""Plain histories take a quicker way: it gives what the other way gives, and shares the text instead of copying it."""

from __future__ import annotations

import tracemalloc
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon import Profile
from antiphon.request import BadRequest, to_chat_request

Json = dict[str, Any]

IDS = st.sampled_from(["c1", "c2", "", "c3"])
TEXT = st.sampled_from(["a", "b", "", " ", "two\nlines"])
ARGUMENTS = st.sampled_from(["{}", '{"a": 1}', "", "[1]", "{", None, {"a": 1}, ' {"a": 1e999} '])


def part(kind: str, text: Any) -> Json:
    return {"type": kind, "text": text, "annotations": []}


def message(role: str, content: Any) -> Json:
    return {"role": role, "content": content}


def thought(text: str, extra: Json) -> Json:
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}], **extra}


def call(id: str, arguments: Any, extra: Json) -> Json:
    return {"type": "function_call", "call_id": id, "name": "f", "arguments": arguments, **extra}


ROLES = st.sampled_from(["user", "assistant", "user", "assistant", "system", "developer"])
KINDS = st.sampled_from(["input_text", "output_text", "text", "refusal", "input_image"])
CONTENTS = TEXT | st.lists(st.builds(part, KINDS, TEXT), max_size=3)
EXTRAS = st.sampled_from(
    [{}, {}, {}, {"namespace": "n"}, {"provider_data": {"thought_signature": "T"}}, {"namespace": None}]
)
SIGNED = st.sampled_from([{}, {}, {}, {"encrypted_content": "x"}, {"provider_data": {"family": "p"}}, {"content": []}])
ITEMS = st.one_of(
    st.builds(message, ROLES, CONTENTS),
    st.builds(call, IDS, ARGUMENTS, EXTRAS),
    st.builds(lambda id, text: {"type": "function_call_output", "call_id": id, "output": text}, IDS, CONTENTS),
    st.builds(thought, TEXT, SIGNED),
    st.sampled_from(
        [
            {"type": "item_reference", "id": "x"},
            {"type": "message", "role": "assistant", "content": [], "refusal": "no"},
        ]
    ),
)
TURN = st.sampled_from(
    [
        [message("user", "q")],
        [thought("t", {}), call("c1", "{}", {}), {"type": "function_call_output", "call_id": "c1", "output": "1"}],
        [
            call("c1", "{}", {}),
            call("c2", '{"a": 1}', {}),
            {"type": "function_call_output", "call_id": "c1", "output": "1"},
            {"type": "function_call_output", "call_id": "c2", "output": "2"},
        ],
        [thought("t", {}), {"type": "message", **message("assistant", [part("output_text", "a")])}],
        [
            message("assistant", "a"),
            call("c3", "{}", {}),
            {"type": "function_call_output", "call_id": "c3", "output": ""},
        ],
    ]
)
PROFILES = [
    Profile("p"),
    Profile("p", developer_role=False, null_content_with_calls=False),
    Profile("p", single_leading_system=True),
    Profile("p", reasoning_replay="reasoning_content"),
    Profile("p", reasoning_replay="reasoning"),
    Profile("p", reasoning_replay="reasoning_content", reasoning_replay_always=True),
    Profile("p", reasoning_replay="reasoning_details"),
    Profile("p", reasoning_replay="thinking_blocks"),
    Profile("p", reasoning_replay="typed_content"),
    Profile("p", thought_signatures=True),
    Profile("p", call_id_pattern="[a-z0-9]{9}"),
]


def outcome(items: list[Any], profile: Profile, strict: bool) -> Any:
    request = {"model": "m", "input": items, "instructions": "be good", "tools": [{"type": "function", "name": "f"}]}
    try:
        chat = to_chat_request(request, profile=profile, strict=strict)
    except BadRequest as problem:
        return str(problem)
    return chat.body, chat.report, chat.restore


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.one_of(TURN, TURN, TURN, st.lists(ITEMS, max_size=2)), max_size=6),
    st.sampled_from(PROFILES),
    st.booleans(),
)
def test_the_quicker_way_gives_the_same(turns: list[list[Json]], profile: Profile, strict: bool) -> None:
    items = [item for turn in turns for item in turn]
    slowly = [MappingProxyType(item) for item in items]  # a mapping that is no dict is never plain
    assert outcome(items, profile, strict) == outcome(slowly, profile, strict)


def test_what_is_plain_shares_its_text() -> None:
    items = [message(("user", "assistant")[number % 2], f"{number} " * 5000) for number in range(200)]
    size = sum(len(item["content"]) for item in items)
    to_chat_request({"input": items})
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    chat = to_chat_request({"input": items})
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert peak < size / 20
    assert all(made["content"] is item["content"] for made, item in zip(chat.body["messages"], items, strict=True))


@pytest.mark.parametrize("turn", ["agent", "chat", "tools"])
def test_the_bench_of_conversions_runs(turn: str) -> None:
    from tests.bench.conversion import copied, history, measured

    costs = measured(turn, 20, rounds=1, least=0.0)
    assert {"to_chat_request", "Converter"} <= {cost.subject for cost in costs}
    assert len(history(turn, 20)) == 20
    assert copied(20) < 0.1
