"""The calls of a turn: asked about, made, and their outputs as items, in the model's order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from antiphon.exceptions import (
    AgentsException,
    ModelBehaviorError,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
    UserError,
)
from antiphon.stream.chunk import fields, plain

from .approvals import Invocation
from .awaiting import settled
from .classify import ApprovalRequest, HandoffRun, LocalTool, ToolRun, UnknownTool, Work
from .config import ToolErrorFormatterArgs, ToolExecutionConfig
from .function_tool import FunctionInvoker
from .hosted_tools import MCPToolApprovalRequest
from .items import (
    ItemHelpers,
    MCPApprovalResponseItem,
    RunItem,
    ToolApprovalItem,
    ToolCallOutputItem,
    call_id_of,
)
from .local_calls import Made, asked, make, refused
from .local_tools import ApplyPatchTool, ComputerTool, CustomTool, LocalShellTool, ShellTool
from .reading import is_dict
from .together import together
from .tool import (
    DEFAULT_APPROVAL_REJECTION_MESSAGE,
    ErrorText,
    FunctionTool,
    FunctionToolCustomDataContext,
    FunctionToolResult,
    ToolOriginType,
    default_tool_error_function,
    invoke_function_tool,
)
from .tool_context import ToolContext
from .tool_guardrails import (
    ToolInputGuardrailData,
    ToolInputGuardrailResult,
    ToolOutputGuardrailData,
    ToolOutputGuardrailResult,
)

if TYPE_CHECKING:
    from .agent import Agent
    from .running import Run

Kind: TypeAlias = Literal["function", "computer", "shell", "apply_patch", "custom"]
# class of a tool -> what `tool_error_formatter` is told of it
KINDS: dict[type[Any], Kind] = {
    FunctionTool: "function",
    CustomTool: "custom",
    ComputerTool: "computer",
    ShellTool: "shell",
    LocalShellTool: "shell",
    ApplyPatchTool: "apply_patch",
}


@dataclass(frozen=True, slots=True)
class Paused:
    """What an agent tool returns where the run inside it waits: for these calls."""

    pending: tuple[ToolApprovalItem, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """A call was answered. `result` is there for a function that ran."""

    item: RunItem
    result: FunctionToolResult | None = None


@dataclass(frozen=True, slots=True)
class Waits:
    """A call waits, for a decision about itself or about calls inside it."""

    pending: tuple[ToolApprovalItem, ...]


Done: TypeAlias = Output | Waits


@dataclass(slots=True)
class Executed:
    """What the calls of a turn came to."""

    pending: list[ToolApprovalItem] = field(default_factory=list[ToolApprovalItem])
    results: list[FunctionToolResult] = field(default_factory=list[FunctionToolResult])


async def execute(run: Run, agent: Agent[Any], work: Sequence[Work]) -> Executed:
    """Make the calls, all functions at once, and put their outputs into the turn, in the order of the calls.

    Calls that were answered before are not made; what functions returned then is among the results. What was answered
    is in the turn also where another call fails.
    """
    state, ledger = run.state, run.ledger
    done: dict[int, Done] = {place: one for place, one in enumerate(_earlier(run, work)) if one is not None}
    made = frozenset(done)

    async def note(place: int, job: Coroutine[Any, Any, Done]) -> None:
        done[place] = await job

    calls = [(place, one) for place, one in enumerate(work) if not isinstance(one, HandoffRun)]
    todo = [(place, one) for place, one in calls if not ledger.register(one.call).completed]
    jobs = [note(place, _job(run, agent, one)) for place, one in todo]
    executed = Executed()
    try:
        if jobs:
            await together(jobs)
    finally:
        for place in sorted(done):
            match done[place]:
                case Output(item, result):
                    executed.results.extend(() if result is None else (result,))
                    if place not in made:
                        state.turn.append(item)
                        ledger.complete(call_id_of(work[place].call) or "")
                case Waits(pending):
                    executed.pending.extend(pending)
    return executed


def _earlier(run: Run, work: Sequence[Work]) -> list[Output | None]:
    """Return what the functions among the calls returned when an earlier run made them, at their places."""
    outputs = {item.call_id: item for item in run.state.turn if isinstance(item, ToolCallOutputItem)}
    if not outputs:
        return []
    found: list[Output | None] = []
    for one in work:
        item = outputs.get(call_id_of(one.call))
        rejected = run.ledger.status(Invocation.of(one.call).tool, call_id_of(one.call) or "") is False
        if item is None or not isinstance(one, ToolRun) or not isinstance(one.tool, FunctionTool) or rejected:
            found.append(None)
        else:
            found.append(Output(item, FunctionToolResult(one.tool, item.output, item)))
    return found


def _job(run: Run, agent: Agent[Any], work: Work) -> Coroutine[Any, Any, Done]:
    match work:
        case ToolRun(call, FunctionTool() as tool):
            return _function(run, agent, call, tool)
        case ToolRun(call, tool):
            return _local(run, agent, call, tool)
        case UnknownTool():
            return _unknown(run, agent, work)
        case ApprovalRequest():
            return _mcp_request(run, agent, work)
        case HandoffRun():
            raise AssertionError("a handoff is no call of a tool")


# --- functions -------------------------------------------------------------------------------------------------------


async def _function(run: Run, agent: Agent[Any], call: Any, tool: FunctionTool) -> Done:
    one = Invocation.of(call)
    context = ToolContext.from_agent_context(
        run.state.context,
        one.call_id,
        call,
        agent,
        tool_name=tool.name,
        tool_arguments="" if fields(call).get("arguments") is None else None,
        run_config=run.config,
    )
    checked = False
    if run.ledger.status(one.tool, one.call_id) is None and await _function_needs(tool, context):
        if (run.config.tool_execution or ToolExecutionConfig()).pre_approval_tool_input_guardrails:
            refusal = await _check_input(run, agent, tool, context)
            if refusal is not None:
                return await _output(agent, call, tool, context, refusal)
            checked = True
        if run.ledger.status(one.tool, one.call_id) is None:
            return Waits((ToolApprovalItem(agent, call, tool.name, tool_origin=tool.origin),))
    if run.ledger.status(one.tool, one.call_id) is False:
        message = await _rejection(run, call, one, tool)
        item = ToolCallOutputItem(agent, ItemHelpers.tool_call_output_item(call, message), message)
        return Output(item)
    with run.tracing.tool(tool.qualified_name, one.call_id, tool.description) as span:
        span.content("gen_ai.tool.call.arguments", context.tool_arguments)
        async with run.gate:
            with span.current():
                output = await _run_function(run, agent, tool, context, checked=checked)
        if isinstance(output, Paused):
            return Waits(output.pending)
        span.content("gen_ai.tool.call.result", output)
        return await _output(agent, call, tool, context, output)


async def _run_function(
    run: Run, agent: Agent[Any], tool: FunctionTool, context: ToolContext[Any], *, checked: bool
) -> Any:
    """Return what the tool returned, or what its guardrails say instead."""
    refusal = None if checked else await _check_input(run, agent, tool, context)
    if refusal is not None:
        return refusal
    if _is_cut(tool, context.tool_arguments):
        problem = ModelBehaviorError(f"Invalid JSON input for tool {tool.name}: the arguments are no JSON text")
        return ErrorText(default_tool_error_function(context, problem))
    await run.hooks.tool_start(context, agent, tool)
    try:
        output = await invoke_function_tool(function_tool=tool, context=context, arguments=context.tool_arguments)
    except AgentsException:
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise UserError(f"Error running tool {tool.name}: it was cancelled from inside") from error
    except Exception as error:
        raise UserError(f"Error running tool {tool.name}: {error}") from error
    if not isinstance(output, Paused):
        output = await _check_output(run, agent, tool, context, output)
        await run.hooks.tool_end(context, agent, tool, output)
    return output


def _is_cut(tool: FunctionTool, arguments: str) -> bool:
    """Whether a call's arguments were cut off; tools that read them themselves say so in their own way."""
    if isinstance(tool.on_invoke_tool, FunctionInvoker) or tool.origin.type is not ToolOriginType.FUNCTION:
        return False
    try:
        json.loads(arguments or "{}")
    except (ValueError, RecursionError):  # not whole, or nested too deep to be read
        return True
    return False


async def _output(agent: Agent[Any], call: Any, tool: FunctionTool, context: ToolContext[Any], output: Any) -> Output:
    text = isinstance(output, ErrorText)
    raw = ItemHelpers.tool_call_output_item(
        call,
        str(output) if text else output,
        output_json_schema=None if text else tool.output_json_schema,
        output_type_adapter=None if text else tool.output_type_adapter,
    )
    item = ToolCallOutputItem(agent, raw, output, tool_origin=tool.origin)
    if tool.custom_data_extractor is not None:
        told = await settled(tool.custom_data_extractor(FunctionToolCustomDataContext(context, tool, output, raw)))
        item.custom_data = None if told is None else dict(told)
    return Output(item, FunctionToolResult(tool, output, item))


async def _check_input(run: Run, agent: Agent[Any], tool: FunctionTool, context: ToolContext[Any]) -> ErrorText | None:
    """Return what the model is told where a guardrail refuses the call; None where none does."""
    for guardrail in tool.tool_input_guardrails or ():
        found = await guardrail.run(ToolInputGuardrailData(context, agent))
        run.state.tool_input_guardrail_results.append(ToolInputGuardrailResult(guardrail, found))
        if found.behavior["type"] == "raise_exception":
            raise ToolInputGuardrailTripwireTriggered(guardrail, found)
        if found.behavior["type"] == "reject_content":
            return ErrorText(str(found.behavior.get("message", "")))
    return None


async def _check_output(run: Run, agent: Agent[Any], tool: FunctionTool, context: ToolContext[Any], output: Any) -> Any:
    for guardrail in tool.tool_output_guardrails or ():
        found = await guardrail.run(ToolOutputGuardrailData(context, agent, output))
        run.state.tool_output_guardrail_results.append(ToolOutputGuardrailResult(guardrail, found))
        if found.behavior["type"] == "raise_exception":
            raise ToolOutputGuardrailTripwireTriggered(guardrail, found)
        if found.behavior["type"] == "reject_content":
            return ErrorText(str(found.behavior.get("message", "")))
    return output


# --- approvals -------------------------------------------------------------------------------------------------------


async def _function_needs(tool: FunctionTool, context: ToolContext[Any]) -> bool:
    """Whether a call needs approval. One with arguments that nobody can judge does, unless it cannot run with them."""
    if isinstance(tool.needs_approval, bool):
        return tool.needs_approval
    try:
        read: Any = json.loads(context.tool_arguments or "{}")
    except (ValueError, RecursionError):  # no JSON text: the model is told so, and the tool does not run
        return False
    return not is_dict(read) or await _needs(tool, context, read, context.tool_call_id)


async def _needs(tool: Any, context: Any, asked: Any, call_id: str) -> bool:
    needs: bool | Callable[..., Any] = tool.needs_approval
    return bool(await settled(needs(context, asked, call_id))) if callable(needs) else needs


async def _rejection(run: Run, call: Any, one: Invocation, tool: LocalTool) -> str:
    """Return what the model is told of a rejected call: the reviewer's words, the run's, or the default ones."""
    said = run.ledger.message(one.tool, one.call_id)
    if said is not None:
        return said
    kind = KINDS[type(tool)]
    return await _formatted(run, "approval_rejected", kind, one, DEFAULT_APPROVAL_REJECTION_MESSAGE)


async def _formatted(
    run: Run, kind: Literal["approval_rejected", "tool_not_found"], tool_type: Kind, one: Invocation, default: str
) -> str:
    formatter = run.config.tool_error_formatter
    if formatter is None:
        return default
    args = ToolErrorFormatterArgs(kind, tool_type, one.tool, one.call_id, default, run.state.context)
    said: Any = await settled(formatter(args))
    return said if isinstance(said, str) else default


async def _unknown(run: Run, agent: Agent[Any], work: UnknownTool) -> Done:
    one = Invocation.of(work.call)
    said = await _formatted(run, "tool_not_found", "function", one, f"Tool '{work.name}' not found.")
    return Output(ToolCallOutputItem(agent, ItemHelpers.tool_call_output_item(work.call, said), said))


async def _mcp_request(run: Run, agent: Agent[Any], work: ApprovalRequest) -> Done:
    """Answer a hosted MCP server, by the tool's own function or by what was decided."""
    one = Invocation.of(work.call)
    status, reason = run.ledger.status(one.tool, one.call_id), run.ledger.message(one.tool, one.call_id)
    if status is None and work.tool.on_approval_request is not None:
        found = await settled(work.tool.on_approval_request(MCPToolApprovalRequest(run.state.context, work.call)))
        status, reason = bool(found["approve"]), found.get("reason")
    if status is None:
        return Waits((ToolApprovalItem(agent, work.call, str(fields(work.call).get("name"))),))
    raw = {"type": "mcp_approval_response", "approval_request_id": one.call_id, "approve": status}
    return Output(MCPApprovalResponseItem(agent, {**raw, "reason": reason} if reason and not status else raw))


# --- the other kinds of tools ----------------------------------------------------------------------------------------


async def _local(run: Run, agent: Agent[Any], call: Any, tool: LocalTool) -> Done:
    one = Invocation.of(call, tool.name)
    held: dict[str, Any] = plain(call)
    context = ToolContext.from_agent_context(
        run.state.context,
        one.call_id,
        call,
        agent,
        tool_name=tool.name,
        tool_arguments=held["input"] if isinstance(held.get("input"), str) else json.dumps(_action(held)),
        run_config=run.config,
    )
    if isinstance(tool, CustomTool | ShellTool | ApplyPatchTool):
        status = await _status(run, agent, call, tool, context, one)
        if isinstance(status, Waits):
            return status
        if status is False:
            made = refused(held, tool, await _rejection(run, call, one, tool))
            return Output(ToolCallOutputItem(agent, made.raw_item, made.output))
    with run.tracing.tool(tool.name, one.call_id):
        made = await _make(run, agent, held, tool, context)
    return Output(ToolCallOutputItem(agent, made.raw_item, made.output, custom_data=made.custom_data))


async def _make(run: Run, agent: Agent[Any], held: dict[str, Any], tool: LocalTool, context: ToolContext[Any]) -> Made:
    async with run.one_by_one:
        await run.hooks.tool_start(context, agent, tool)
        made = await make(held, tool, context, run.computers)
        await run.hooks.tool_end(context, agent, tool, made.output)
        return made


async def _status(
    run: Run,
    agent: Agent[Any],
    call: Any,
    tool: CustomTool | ShellTool | ApplyPatchTool,
    context: ToolContext[Any],
    one: Invocation,
) -> bool | Waits:
    status = run.ledger.status(one.tool, one.call_id)
    if status is not None or not await _needs(tool, context, asked(plain(call), tool, context), one.call_id):
        return status is not False
    item = ToolApprovalItem(agent, call, tool.name)
    if tool.on_approval is not None:
        found = await settled(tool.on_approval(run.state.context, item))
        run.ledger.decide(call, bool(found["approve"]), always=False, message=found.get("reason"), nameless=tool.name)
    status = run.ledger.status(one.tool, one.call_id)
    return Waits((item,)) if status is None else status


def _action(held: dict[str, Any]) -> Any:
    """Return what a call asks for: an action, actions or an operation."""
    return held.get("action") or held.get("actions") or held.get("operation")
