"""Handoffs: how they are offered and called, what they pass on, and that no error repeats what was passed."""

from __future__ import annotations

import gc
import logging
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, Field, field_validator

from antiphon.exceptions import ModelBehaviorError, UserError
from antiphon.extensions.handoff_filters import remove_all_tools
from antiphon.extensions.handoff_prompt import RECOMMENDED_PROMPT_PREFIX, prompt_with_handoff_instructions
from antiphon.handoffs import Handoff, HandoffInputData, handoff
from antiphon.models.params import create_params
from antiphon.run.agent import Agent
from antiphon.run.awaiting import is_on
from antiphon.run.context import RunContextWrapper
from antiphon.run.handoffs import filtered
from antiphon.run.items import (
    CompactionItem,
    HandoffCallItem,
    HandoffOutputItem,
    InputItem,
    MCPApprovalRequestItem,
    MCPApprovalResponseItem,
    MCPListToolsItem,
    MessageOutputItem,
    ReasoningItem,
    RunItem,
    ToolApprovalItem,
    ToolCallItem,
    ToolCallOutputItem,
    ToolSearchCallItem,
    ToolSearchOutputItem,
)

SECRET = "geheim-4711"
CONTEXT = RunContextWrapper("ctx")
BILLING = Agent[Any](name="Billing Support", handoff_description="Knows invoices.")


class Free(BaseModel):
    labels: dict[str, int] = Field(default_factory=dict)


class Sensitive(BaseModel):
    reason: str
    amount: int = 0

    @field_validator("reason")
    @classmethod
    def _checked(cls, value: str) -> str:
        if value == "refuse":
            raise ValueError(f"not {value}: {SECRET}")
        if value == "break":
            raise LookupError(SECRET)
        return value


class Plain(BaseModel):
    reason: str
    amount: int = 0


def message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


# --- offered ---------------------------------------------------------------------------------------------------------


def test_a_handoff_is_a_strict_function_without_arguments() -> None:
    made = handoff(BILLING)
    assert create_params(handoffs=[made])["tools"] == [
        {
            "type": "function",
            "name": "transfer_to_billing_support",
            "description": "Handoff to the Billing Support agent to handle the request. Knows invoices.",
            "parameters": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
            "strict": True,
        }
    ]
    kept = (made.agent_name, made.input_filter, made.nest_handoff_history, made.is_enabled)
    assert kept == ("Billing Support", None, None, True)
    assert made.get_transfer_message(BILLING) == '{"assistant": "Billing Support"}'


@pytest.mark.parametrize(
    ("name", "tool", "warned"),
    [
        ("Billing", "transfer_to_billing", False),
        ("Billing  Support", "transfer_to_billing__support", False),
        ("Ärzte/Team-1", "transfer_to__rzte_team_1", True),
    ],
)
def test_the_tool_is_named_after_the_agent(
    name: str, tool: str, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "antiphon"):
        made = Handoff.default_tool_name(Agent(name=name))
    assert (made, bool(caplog.records)) == (tool, warned)


def test_a_handoff_holds_its_agent_weakly_and_what_it_calls_holds_it() -> None:
    agent = Agent[Any](name="a")
    made = handoff(agent)
    bare = Handoff("t", "d", {}, made.on_invoke_handoff, "a")
    assert (made.agent, bare.agent) == (agent, None)
    del made.on_invoke_handoff, bare, agent
    gc.collect()
    assert made.agent is None


def _of_context(ctx: Any, agent: Any) -> bool:
    return bool(ctx.context == "ctx" and agent is BILLING)


async def _async_of_context(ctx: Any, agent: Any) -> bool:
    return _of_context(ctx, agent)


@pytest.mark.parametrize(
    ("switch", "on"), [(True, True), (False, False), (_of_context, True), (_async_of_context, True)]
)
async def test_is_enabled(switch: Any, on: bool) -> None:
    made = handoff(BILLING, is_enabled=switch)
    assert await is_on(made.is_enabled, CONTEXT, BILLING) is on
    assert not await is_on(made.is_enabled, CONTEXT, None) or switch is True
    assert isinstance(switch, bool) or await made.is_enabled(CONTEXT, BILLING)  # type: ignore[operator, misc]  # a function


# --- called ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", ["", "{}", '{"reason": "ignored"}'])
async def test_the_agent_captured_is_the_one_that_goes_on(arguments: str) -> None:
    seen: list[Any] = []

    def note(ctx: Any) -> Agent[Any]:
        seen.append(ctx.context)
        return Agent(name="another")

    async def note_async(ctx: Any) -> None:
        seen.append(ctx.context)

    for on_handoff in (None, note, note_async):
        assert await handoff(BILLING, on_handoff=on_handoff).on_invoke_handoff(CONTEXT, arguments) is BILLING
    assert seen == ["ctx", "ctx"]


async def test_arguments_are_passed_on_as_the_input_type() -> None:
    seen: list[Any] = []

    async def note(ctx: Any, given: Any) -> None:
        seen.append(given)

    made = handoff(BILLING, on_handoff=note, input_type=Plain)
    assert made.input_json_schema["required"] == ["reason", "amount"]
    assert made.input_json_schema["additionalProperties"] is False
    assert await made.on_invoke_handoff(CONTEXT, '{"reason": "invoice", "amount": 3}') is BILLING
    assert seen == [Plain(reason="invoice", amount=3)]


WRONG: list[tuple[str, Callable[[], Any], str]] = [
    ("input without a function", lambda: handoff(BILLING, input_type=Plain), "needs on_handoff"),
    ("no function", lambda: handoff(BILLING, on_handoff="f"), "callable"),  # type: ignore[arg-type]  # what is refused
    ("too few", lambda: handoff(BILLING, on_handoff=lambda ctx: None, input_type=Plain), "takes 1 parameters"),
    ("too many", lambda: handoff(BILLING, on_handoff=lambda ctx, given: None), "takes 2 parameters"),
    ("free-form input", lambda: handoff(BILLING, on_handoff=lambda c, i: None, input_type=Free), "additionalProp"),
]


@pytest.mark.parametrize(("name", "make", "words"), WRONG, ids=[one[0] for one in WRONG])
def test_a_wrong_handoff_is_refused(name: str, make: Callable[[], Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        make()


UNFIT: list[tuple[str, str | None, str]] = [
    ("no JSON", '{"reason": ' + SECRET, "arguments: json_invalid"),
    ("missing", f'{{"amount": 1, "other": "{SECRET}"}}', "reason: missing"),
    ("coerced", f'{{"reason": "{SECRET}", "amount": "1"}}', "amount: int_type"),
    ("no object", f'["{SECRET}"]', "arguments: model_type"),
    ("refused", '{"reason": "refuse"}', "reason: value_error"),
    ("validator breaks", '{"reason": "break"}', "a validator raised LookupError"),
    ("nothing", None, "there are none"),
]


@pytest.mark.parametrize(("name", "arguments", "words"), UNFIT, ids=[one[0] for one in UNFIT])
async def test_arguments_that_do_not_fit_are_not_repeated_anywhere(
    name: str, arguments: Any, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    called: list[Any] = []
    made = handoff(BILLING, on_handoff=lambda ctx, given: called.append(given), input_type=Sensitive)
    with caplog.at_level(logging.DEBUG), pytest.raises(ModelBehaviorError, match=words) as caught:
        await made.on_invoke_handoff(CONTEXT, arguments)
    error = caught.value
    assert (error.__cause__, error.__context__, called) == (None, None, [])
    ours = [one for one in traceback.walk_tb(error.__traceback__) if "antiphon/run" in one[0].f_code.co_filename]
    told = "".join(traceback.format_exception(error))
    held = [repr(frame.f_locals) for frame, _ in ours]
    assert ours
    assert not [one for one in (str(error), told, caplog.text, *held) if SECRET in one]


async def test_a_key_of_the_models_own_is_not_repeated() -> None:
    class Closed(BaseModel, extra="forbid"):
        reason: str

    made = handoff(BILLING, on_handoff=lambda ctx, given: None, input_type=Closed)
    with pytest.raises(ModelBehaviorError, match="…: extra_forbidden"):
        await made.on_invoke_handoff(CONTEXT, f'{{"reason": "r", "{SECRET}": 1}}')


# --- filters ---------------------------------------------------------------------------------------------------------

KINDS: list[tuple[type[Any], dict[str, Any], bool]] = [
    (MessageOutputItem, message("kept"), True),
    (InputItem, {"role": "user", "content": "kept"}, True),
    (CompactionItem, {"type": "compaction", "encrypted_content": "x"}, True),
    (ReasoningItem, {"type": "reasoning", "summary": []}, False),
    (ToolCallItem, {"type": "function_call", "call_id": "c"}, False),
    (ToolApprovalItem, {"type": "function_call", "call_id": "c", "name": "f"}, False),
    (HandoffCallItem, {"type": "function_call", "call_id": "h"}, False),
    (ToolSearchCallItem, {"type": "tool_search_call"}, False),
    (ToolSearchOutputItem, {"type": "tool_search_output"}, False),
    (MCPListToolsItem, {"type": "mcp_list_tools"}, False),
    (MCPApprovalRequestItem, {"type": "mcp_approval_request"}, False),
    (MCPApprovalResponseItem, {"type": "mcp_approval_response"}, False),
]
INPUTS: list[tuple[dict[str, Any], bool]] = [
    ({"role": "user", "content": "kept"}, True),
    (message("kept"), True),
    ({"type": "compaction", "encrypted_content": "x"}, True),
    ({"type": "item_reference", "id": "msg_1"}, True),
    ({"type": "item_reference", "id": "fc_1"}, False),
    *(
        ({"type": kind}, False)
        for kind in [
            "function_call",
            "function_call_output",
            "computer_call",
            "computer_call_output",
            "file_search_call",
            "web_search_call",
            "code_interpreter_call",
            "image_generation_call",
            "local_shell_call",
            "local_shell_call_output",
            "shell_call",
            "shell_call_output",
            "apply_patch_call",
            "apply_patch_call_output",
            "custom_tool_call",
            "custom_tool_call_output",
            "mcp_call",
            "mcp_list_tools",
            "mcp_approval_request",
            "mcp_approval_response",
            "tool_search_call",
            "tool_search_output",
            "reasoning",
            "program",
            "program_output",
            "hosted_tool_call",
            "some_later_call",
            "some_later_call_output",
        ]
    ),
]


def test_remove_all_tools_leaves_what_was_said() -> None:
    agent = Agent[Any](name="a")
    items: list[RunItem] = [kind(agent, raw) for kind, raw, _ in KINDS]
    output = {"type": "function_call_output", "call_id": "c", "output": "o"}
    items += [ToolCallOutputItem(agent, output, "o"), HandoffOutputItem(agent, output, agent, agent)]
    kept = tuple(item for item, (_, _, stays) in zip(items, KINDS, strict=False) if stays)
    data = HandoffInputData(tuple(raw for raw, _ in INPUTS), tuple(items), tuple(items), CONTEXT, tuple(items))
    history = tuple(raw for raw, stays in INPUTS if stays)
    assert remove_all_tools(data) == HandoffInputData(history, kept, kept, CONTEXT, kept)
    text = HandoffInputData("only text", (), ())
    assert remove_all_tools(text) == text


async def _async_filter(data: HandoffInputData) -> HandoffInputData:
    return data.clone(input_history="changed")


@pytest.mark.parametrize("input_filter", [lambda data: data.clone(input_history="changed"), _async_filter])
async def test_a_filter_may_be_async(input_filter: Any) -> None:
    data = HandoffInputData("text", (), ())
    assert await filtered(data, input_filter) == HandoffInputData("changed", (), ())


@pytest.mark.parametrize(("input_filter", "words"), [("no", "callable"), (lambda data: None, "returned NoneType")])
async def test_a_filter_that_is_none_is_refused(input_filter: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        await filtered(HandoffInputData("text", (), ()), input_filter)


def test_the_recommended_prompt_comes_first() -> None:
    assert prompt_with_handoff_instructions("Do it.") == f"{RECOMMENDED_PROMPT_PREFIX}\n\nDo it."
