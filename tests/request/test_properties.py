"""Random histories: a strict backend takes what they become, and nothing in them is lost without a word."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon import Profile
from antiphon.request import BadRequest, to_chat_request

from .build import Json, call, free, output, said, space, thought, tool, typed, user
from .validator import faults

IDS = st.sampled_from(["a", "b", "functions.f:0", "call_" + "x" * 60, "", "é"])
NAMES = st.sampled_from(["f", "g", "wiki.ask", "n" * 70, "edit", "ask"])
ARGUMENTS = st.sampled_from(["", "{}", '{"a": 1}', '{"a": ', "[1]", "null", "text", '{"é": "\\u00e9"}'])
PROFILES = [
    Profile("plain"),
    Profile("system-first", developer_role=False, single_leading_system=True, images=False, files=False),
    Profile("nine", call_id_pattern="[a-zA-Z0-9]{9}", null_content_with_calls=False, strict_tools=False),
    Profile("deep", reasoning_replay="reasoning_content", reasoning_replay_always=True),
    Profile("current", reasoning_replay="reasoning"),
    Profile("router", reasoning_replay="reasoning_details", reasoning_replay_always=True),
    Profile("blocks", reasoning_replay="thinking_blocks", reasoning_replay_always=True),
    Profile("typed", reasoning_replay="typed_content", reasoning_replay_always=True),
    Profile("signing", thought_signatures=True, tool_choice_modes=frozenset({"auto"})),
]
SIGNED = {"type": "reasoning.text", "text": "T", "signature": "S"}
BLOCK = {"type": "thinking", "thinking": "T", "signature": "S"}


def marked(kind: str, draw: Any, mark: str) -> Json:
    """Return an item of that kind; whatever of it is carried has `mark` in it."""
    match kind:
        case "user" | "system" | "developer":
            return {"role": kind, "content": draw(st.sampled_from([mark, [{"type": "input_text", "text": mark}]]))}
        case "picture":
            return user([{"type": "input_image", "image_url": f"data:{mark}"}, {"type": "input_text", "text": mark}])
        case "said":
            return said(mark, "more")
        case "easy":
            return {"role": "assistant", "content": mark}
        case "refused":
            return {**said(), "content": [{"type": "refusal", "refusal": mark}]}
        case "thought":
            return thought(mark, **draw(st.sampled_from([{}, {"encrypted_content": "FOREIGN"}])))
        case "signed":
            piece = {**draw(st.sampled_from([SIGNED, BLOCK])), "text": mark, "thinking": mark, "signature": mark}
            return thought("s", provider_data={"reasoning_details": [piece]})
        case "call":
            return call(draw(IDS), draw(NAMES), draw(ARGUMENTS), provider_data={"mark": mark})
        case "typed":
            return typed(draw(IDS), draw(NAMES), mark)
        case "output":
            picture = [{"type": "input_text", "text": mark}, {"type": "input_image", "image_url": "data:x"}]
            return output(draw(IDS), draw(st.sampled_from([mark, picture, {"said": mark}])))
        case _:
            return {"type": kind, "id": mark}


KINDS = st.sampled_from(
    [
        *("user", "system", "developer", "picture", "said", "easy", "refused", "thought", "signed"),
        *(["call"] * 4),
        *(["output"] * 4),
        *("typed", "item_reference", "web_search_call", "compaction", "song"),
    ]
)


@st.composite
def histories(draw: Any) -> list[Json]:
    kinds = draw(st.lists(KINDS, max_size=12))
    return [user("<begin>"), *(marked(kind, draw, f"<mark{n}>") for n, kind in enumerate(kinds, 1))]


TOOLS = st.lists(
    st.sampled_from(
        [
            tool("f", strict=True),
            tool("wiki.ask"),
            tool("wiki__ask"),
            free("edit", format={"type": "grammar", "syntax": "regex", "definition": ".*"}),
            space("wiki", tool("ask"), free("edit"), description="W"),
            space("n" * 70, tool("f"), tool("g")),
            {"type": "web_search"},
            {"type": "tool_search", "execution": "client"},
            {"type": "local_shell"},
        ]
    ),
    max_size=6,
)
CHOICES = st.sampled_from([None, "auto", "none", "required"])


@settings(max_examples=250, deadline=None)
@given(items=histories(), tools=TOOLS, choice=CHOICES, profile=st.sampled_from(PROFILES), stream=st.booleans())
def test_a_strict_backend_takes_any_history(
    items: list[Json], tools: list[Json], choice: Any, profile: Profile, stream: bool
) -> None:
    request = {"model": "m", "input": items, "tools": tools, "tool_choice": choice, "instructions": "Base."}
    before = deepcopy(request)
    chat = to_chat_request(request, profile=profile, stream=stream)
    assert faults(chat.body, system_first=profile.single_leading_system, call_id=profile.call_id_pattern) == []
    assert request == before
    named = {int(found[1]) for change in chat.report if (found := re.match(r"input\[(\d+)\]", change.path))}
    body = json.dumps(chat.body, ensure_ascii=False)
    calls = sum(len(message.get("tool_calls", ())) for message in chat.body["messages"])
    assert calls == sum(item.get("type") in ("function_call", "custom_tool_call") for item in items)
    for n, item in enumerate(items[1:], 1):
        if item.get("type") != "function_call":
            assert f"<mark{n}>" in body or n in named, item
    assert "FOREIGN" not in body
    assert not any("<mark" in str(change) for change in chat.report)


@settings(max_examples=80, deadline=None)
@given(items=histories(), profile=st.sampled_from(PROFILES))
def test_strict_raises_where_something_is_lost_and_only_there(items: list[Json], profile: Profile) -> None:
    chat = to_chat_request({"input": items}, profile=profile)
    lost = [change.path for change in chat.report if change.kind in ("dropped", "weakened")]
    if not lost:
        assert to_chat_request({"input": items}, profile=profile, strict=True) == chat
        return
    with pytest.raises(BadRequest) as raised:
        to_chat_request({"input": items}, profile=profile, strict=True)
    assert raised.value.param == lost[0]


@settings(max_examples=80, deadline=None)
@given(items=histories(), profile=st.sampled_from(PROFILES))
def test_a_history_that_grows_keeps_its_beginning(items: list[Json], profile: Profile) -> None:
    """What a backend was sent is what it is sent again, as far as no output came late and no call was left open."""
    profile = replace(profile, single_leading_system=False, reasoning_replay_always=True)
    settled = [
        item for item in items if item.get("type") not in ("function_call", "custom_tool_call", "function_call_output")
    ]
    settled = [item for item in settled if item.get("type") != "reasoning"]
    first = to_chat_request({"input": [*settled, user("next")]}, profile=profile).body["messages"]
    more = [*settled, user("next"), call("a"), output("a"), said("done")]
    assert to_chat_request({"input": more}, profile=profile).body["messages"][: len(first)] == first
