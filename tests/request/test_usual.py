"""Items in their usual form cost little: they give what items in any other form give, and text is shared, not copied."""

from __future__ import annotations

import tracemalloc
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon import Profile
from antiphon.request import BadRequest, to_chat_request
from tests.bench.conversion import TURNS, copied, history, measured

from .validator import faults

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


def output(id: str, value: Any, kind: str = "function_call_output") -> Json:
    return {"type": kind, "call_id": id, "output": value}


def custom(id: str, text: Any, extra: Json) -> Json:
    return {"type": "custom_tool_call", "call_id": id, "name": "f", "input": text, **extra}


IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AA"}
PARTS = st.sampled_from(
    [
        IMAGE,
        {**IMAGE, "detail": "low"},
        {**IMAGE, "detail": "original"},
        {**IMAGE, "detail": None},
        {"type": "input_image", "file_id": "f"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"},
        {"type": "input_file", "file_url": "https://a.example/a.pdf"},
        {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
        {"type": "refusal", "refusal": "No."},
        {"type": "text", "text": "t", "prompt_cache_breakpoint": {}},
        {"type": "video", "url": "x"},
        "bare",
    ]
)
DETAIL = {"type": "reasoning.text", "text": "hm", "signature": "S", "index": 0}
ROLES = st.sampled_from(["user", "assistant", "user", "assistant", "system", "developer"])
KINDS = st.sampled_from(["input_text", "output_text", "text", "refusal", "input_image"])
CONTENTS = TEXT | st.lists(st.builds(part, KINDS, TEXT) | PARTS, max_size=3)
EXTRAS = st.sampled_from(
    [
        *({}, {}, {}, {"namespace": "n"}, {"namespace": None}),
        *({"provider_data": {"thought_signature": "T"}}, {"provider_data": {"extra_content": {"google": {"a": "T"}}}}),
        *(
            {"provider_data": {"family": "q", "thought_signature": "T"}},
            {"provider_data": {"reasoning_details": [DETAIL]}},
        ),
    ]
)
SIGNED = st.sampled_from(
    [
        *(
            {},
            {},
            {},
            {"encrypted_content": "x"},
            {"content": []},
            {"summary": []},
            {"summary": "odd"},
            {"encrypted_content": "antiphon1.!"},
        ),
        *({"provider_data": {"family": "p"}}, {"provider_data": {"family": "q"}}, {"provider_data": None}),
        *(
            {"provider_data": {"reasoning_details": [DETAIL]}},
            {"provider_data": {"reasoning_details": [DETAIL, DETAIL]}},
        ),
        {"provider_data": {"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "S"}]}},
    ]
)
OUTPUTS = st.sampled_from(["function_call_output", "function_call_output", "custom_tool_call_output"])
ITEMS = st.one_of(
    st.builds(message, ROLES, CONTENTS),
    st.builds(call, IDS, ARGUMENTS, EXTRAS),
    st.builds(custom, IDS, TEXT | st.sampled_from([None, 5]), EXTRAS),
    st.builds(output, IDS, CONTENTS | st.sampled_from([None, {"a": 1}]), OUTPUTS),
    st.builds(thought, TEXT, SIGNED),
    st.sampled_from(
        [
            {"type": "item_reference", "id": "x"},
            {"type": "message", "role": "assistant", "content": [], "refusal": "no"},
            {"role": "assistant", "content": "a", "reasoning_content": "t"},
            {"role": "assistant", "content": "a", "reasoning": "t", "reasoning_details": [DETAIL]},
            {"role": "assistant", "content": [{"type": "reasoning_text", "text": "t"}]},
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
    Profile("p", call_id_pattern=".{1,40}", audio=True),
    Profile("p", images=False, files=False),
    Profile(
        "p", tool_parts=frozenset({"image_url"}), reasoning_replay="reasoning_details", reasoning_replay_always=True
    ),
]


def outcome(items: list[Any], profile: Profile, strict: bool) -> Any:
    request = {"model": "m", "input": items, "instructions": "be good", "tools": [{"type": "function", "name": "f"}]}
    try:
        chat = to_chat_request(request, profile=profile, strict=strict)
    except BadRequest as problem:
        return str(problem)
    wanted = {"call_id": profile.call_id_pattern, "tool_parts": profile.tool_parts}
    signs = profile.thought_signatures  # which no strict backend but theirs takes
    assert signs or faults(chat.body, system_first=profile.single_leading_system, **wanted) == []
    assert [change for change in chat.report if change.kind in ("dropped", "weakened")] == chat.losses
    return chat.body, chat.report, chat.restore


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.one_of(TURN, TURN, TURN, st.lists(ITEMS, max_size=2)), max_size=6),
    st.sampled_from(PROFILES),
    st.booleans(),
)
def test_the_usual_form_gives_the_same(turns: list[list[Json]], profile: Profile, strict: bool) -> None:
    items = [item for turn in turns for item in turn]
    before = deepcopy(items)
    unusual = [SimpleNamespace(**item) for item in items]  # an object is never as usual
    assert outcome(items, profile, strict) == outcome(unusual, profile, strict)
    assert items == before


def test_the_text_is_shared() -> None:
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


@pytest.mark.parametrize("turn", TURNS)
def test_the_bench_of_conversions_runs(turn: str) -> None:
    costs = measured(turn, 20, rounds=1, least=0.0)
    assert "to_chat_request" in {cost.subject for cost in costs}
    assert 15 < len(history(turn, 20)) <= 20
    assert copied(20) < 0.1
