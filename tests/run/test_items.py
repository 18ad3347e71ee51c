"""Run items and what reads them: messages, what becomes a model's input, what does not."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.agent import Agent
from antiphon.exceptions import AgentsException
from antiphon.items import ItemHelpers, MessageOutputItem, RunItem, ToolApprovalItem, ToolCallItem, ToolCallOutputItem
from antiphon.models import ModelResponse
from antiphon.run import Runner
from antiphon.testing import assistant_message, function_call
from antiphon.usage import Usage

from .scenarios import World, agent, two_tools_two_turns


def text(said: str) -> dict[str, Any]:
    return {"type": "output_text", "text": said, "annotations": []}


def message(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": list(parts)}


REFUSED = {"type": "refusal", "refusal": "I will not"}
# message -> its last content, its last text, all of its text, its refusal
READ: list[tuple[Any, str, str | None, str | None, str | None]] = [
    (message(text("a"), text("b")), "b", "b", "ab", None),
    (message(text("a"), REFUSED), "I will not", None, "a", "I will not"),
    (message(REFUSED), "I will not", None, None, "I will not"),
    (message(text("")), "", "", None, None),
    (message(), "", None, None, None),
    (assistant_message("a"), "a", "a", "a", None),
    (function_call("look", {}, call_id="c"), "", None, None, None),
]


@pytest.mark.parametrize(("given", "last", "last_text", "whole", "refusal"), READ)
def test_readers(given: Any, last: str, last_text: str | None, whole: str | None, refusal: str | None) -> None:
    assert ItemHelpers.extract_last_content(given) == last
    assert ItemHelpers.extract_last_text(given) == last_text
    assert ItemHelpers.extract_text(given) == whole
    assert ItemHelpers.extract_refusal(given) == refusal


def test_texts_of_items() -> None:
    a = Agent("A")
    items: list[RunItem] = [
        MessageOutputItem(a, assistant_message("a")),
        ToolCallItem(a, function_call("f", {}, call_id="c")),
    ]
    assert ItemHelpers.text_message_outputs([*items, MessageOutputItem(a, assistant_message("b"))]) == "ab"


CALL = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}", "provider_data": {"k": 1}}
PIECE = {"stdout": "x", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}, "created_by": "m"}
SHELL = {"type": "shell_call_output", "call_id": "c", "output": [PIECE], "status": "completed", "shell_output": [PIECE]}
AS_INPUT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (CALL, CALL),
    ({**CALL, "created_by": "m", "parsed_arguments": {}}, CALL),
    (
        {**SHELL, "provider_data": {"k": 1}},
        {
            "type": "shell_call_output",
            "call_id": "c",
            "output": [{"stdout": "x", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        },
    ),
]


@pytest.mark.parametrize(("raw", "said"), AS_INPUT)
def test_what_becomes_input(raw: dict[str, Any], said: dict[str, Any]) -> None:
    before = dict(raw)
    assert ToolCallOutputItem(Agent("A"), raw, "x").to_input_item() == said
    assert ModelResponse([raw], Usage(), None).to_input_items() == [said]
    assert raw == before


@pytest.mark.parametrize("raw", [None, 3, "text", [], {}])
def test_what_is_no_item(raw: Any) -> None:
    with pytest.raises(AgentsException, match="a raw item is"):
        ToolCallItem(Agent("A"), raw).to_input_item()


def test_a_call_that_waits() -> None:
    one, other = (ToolApprovalItem(Agent("A"), function_call("look", {"x": 1}, call_id="c")) for _ in range(2))
    assert len({one, other, one}) == 2
    assert (one.name, one.call_id, one.qualified_name) == ("look", "c", "look")
    with pytest.raises(AgentsException):
        one.to_input_item()


def test_an_item_is_shown_without_its_agent() -> None:
    item = ToolCallOutputItem(Agent("A", instructions="Keep it to yourself."), {"type": "function_call_output"}, "x")
    assert repr(item).startswith("ToolCallOutputItem(raw_item={'type': 'function_call_output'}, output='x'")
    assert "Keep it to yourself" not in repr(item)


async def test_what_is_done_to_input_is_not_done_to_items() -> None:
    """A caller may change the lists that are given out, at any depth."""
    result = await Runner.run(two_tools_two_turns(World()), "go")
    before = result.to_input_list()
    for item in result.to_input_list():
        for part in item["content"] if isinstance(item.get("content"), list) else ():
            part.clear()
        item.clear()
    assert result.to_input_list() == before


async def test_what_is_done_to_items_is_seen() -> None:
    """Such as taking out what must not be kept."""
    result = await Runner.run(agent("A", [assistant_message("secret")]), "go")
    result.new_items[0].raw_item.content[0].text = "taken out"
    assert result.to_input_list()[-1]["content"][0]["text"] == "taken out"
