"""Ten turns with a scripted backend: what it said comes back to it word for word, turn after turn."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest

from antiphon import Profile
from antiphon.request import to_chat_request

from .backend import answered
from .build import Json, asked, assistant, free, space, tool, user
from .validator import faults

TOOLS = [tool("look"), free("edit"), space("wiki", tool("ask"))]
TURNS = 10


@dataclass(frozen=True)
class Family:
    """A backend: what it takes back, and the fields with which its nth answer shows its reasoning."""

    profile: Profile

    def thinks(self, n: int) -> Json:
        text = f"thought {n}: é\n"
        match self.profile.reasoning_replay:
            case "reasoning_content" | "reasoning" as field:
                return {field: text}
            case "reasoning_details":
                signed = {"type": "reasoning.text", "text": text, "signature": f"S{n}", "format": "f", "index": 0}
                return {"reasoning_details": [signed]}
            case "thinking_blocks":
                block = {"type": "thinking", "thinking": text, "signature": f"S{n}"}
                return {"thinking_blocks": [block, {"type": "redacted_thinking", "data": f"R{n}"}]}
            case _:
                return {}

    def content(self, n: int, text: str) -> Any:
        if self.profile.reasoning_replay != "typed_content":
            return text
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": f"thought {n}"}]}
        return [thinking, *([{"type": "text", "text": text}] if text else [])]

    def call(self, call_id: str, name: str, arguments: str, *, first: bool) -> Json:
        signed = self.profile.thought_signatures and first
        extra = {"extra_content": {"google": {"thought_signature": f"T{call_id}"}}} if signed else {}
        return asked(call_id, name, arguments, **extra)


FAMILIES = {
    "reasoning_content": Family(Profile("deep", reasoning_replay="reasoning_content", reasoning_replay_always=True)),
    "reasoning": Family(Profile("bare", reasoning_replay="reasoning", reasoning_replay_always=True)),
    "reasoning_details": Family(Profile("router", reasoning_replay="reasoning_details", reasoning_replay_always=True)),
    "thinking_blocks": Family(Profile("blocks", reasoning_replay="thinking_blocks", reasoning_replay_always=True)),
    "typed_content": Family(Profile("typed", reasoning_replay="typed_content", reasoning_replay_always=True)),
    "thought signatures": Family(Profile("signing", thought_signatures=True)),
    "none": Family(Profile("plain", single_leading_system=True, developer_role=False, max_tokens_field="max_tokens")),
}


def says(family: Family, n: int) -> list[Json]:
    """Return the messages of turn `n`: one with text and parallel calls, then one with text alone."""
    calls = [
        family.call(f"a{n}", "look", '{"at":"é"}', first=True),
        family.call(f"b{n}", "wiki__ask", "{}", first=False),
        family.call(f"c{n}", "edit", json.dumps({"input": f'"{n}"\n'}), first=False),
    ]
    text = f"I look {n}." if n % 2 else ""
    first = assistant(family.content(n, text) or None, *calls, **family.thinks(n))
    return [first, assistant(family.content(n, f"Done {n}."), **family.thinks(n))]


def outputs(items: list[Json]) -> list[Json]:
    """Return an output for each call among the items."""
    kinds = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
    return [
        {"type": kinds[item["type"]], "call_id": item["call_id"], "output": f"seen {item['call_id']}"}
        for item in items
        if item["type"] in kinds
    ]


def kept(items: list[Json], *, strict: bool) -> list[Json]:
    """Return items as a client stores them; a strict one keeps the published fields alone."""
    dropped = {"provider_data"} if strict else set[str]()
    return json.loads(json.dumps([{key: item[key] for key in item.keys() - dropped} for item in items]))


# A call has no published field for its signature.
CLIENTS = [(name, strict) for name in FAMILIES for strict in (False, True) if not (strict and "signatures" in name)]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("name", "strict"), CLIENTS, ids=[f"{name}, strict={strict}" for name, strict in CLIENTS])
def test_what_was_said_comes_back_word_for_word(name: str, strict: bool, streamed: bool) -> None:
    family = FAMILIES[name]
    items: list[Json] = []
    said: list[Json] = []
    before: list[Json] = []
    for n in range(TURNS):
        items.append(user(f"question {n}"))
        for message in says(family, n):
            chat = to_chat_request(
                {"model": "m", "instructions": "Base.", "input": items, "tools": TOOLS},
                profile=family.profile,
                stream=streamed,
            )
            assert faults(chat.body) == []
            messages = chat.body["messages"]
            assert messages[: len(before)] == before
            assert [one for one in messages if one["role"] == "assistant"] == said
            assert {change.kind for change in chat.report} <= {"changed"}
            before = deepcopy(messages)
            answer = answered(chat, deepcopy(message), streamed=streamed)
            said.append(message)
            items += kept(answer, strict=strict)
            items += outputs(answer)
    kinds = {item.get("type", "message") for item in items}
    assert {"message", "function_call", "custom_tool_call", "custom_tool_call_output"} <= kinds
    assert any(item.get("namespace") == "wiki" for item in items)
    assert ("reasoning" in kinds) == (name not in ("thought signatures", "none"))
