"""The calls of a turn: asked about, made, and their outputs as items, in the model's order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

from antiphon.exceptions import AgentsException, ModelBehaviorError, UserError
from antiphon.stream.chunk import fields, plain
from antiphon.tools.function_tool import FunctionInvoker
from antiphon.tools.hosted import HostedMCPTool, MCPToolApprovalRequest
from antiphon.tools.local import ApprovableTool, Kind, LocalTool
from antiphon.tools.tool import (
    DEFAULT_APPROVAL_REJECTION_MESSAGE,
    ErrorText,
    FunctionTool,
    FunctionToolCustomDataContext,
    FunctionToolResult,
    ToolOrigin,
    ToolOriginType,
    custom_data,
    default_tool_error_function,
    invoke_function_tool,
)

from .agent import Agent
from .approvals import Invocation
from .awaiting import being_cancelled, settled, together
from .classify import ApprovalRequest, ToolRun, UnknownTool, Work
from .config import ToolErrorFormatterArgs, ToolExecutionConfig
from .context import ToolContext
from .guardrails import ToolInputGuardrailData, ToolOutputGuardrailData
from .items import ItemHelpers, MCPApprovalResponseItem, RunItem, ToolApprovalItem, ToolCallOutputItem, call_id_of
from .reading import is_dict
from .running import Run

NO_JSON = object()  # of arguments that cannot be read


@dataclass(frozen=True, slots=True)
class Output:
    """A call was answered. `result` is there for a function that ran."""

    item: RunItem
    result: FunctionToolResult | None = None


@dataclass(frozen=True, slots=True)
class Waits:
    """A call waits, for a decision about itself or about calls inside it. An agent tool returns it instead of an output."""

    pending: tuple[ToolApprovalItem, ...]


Done: TypeAlias = Output | Waits
Ran: TypeAlias = Callable[[Output], None]  # told of an output once it is there: what hooks do then does not undo it


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
    done = _earlier(run, work)
    made = frozenset(done)

    async def note(place: int, one: Work) -> None:
        done[place] = await _job(run, agent, one, partial(done.__setitem__, place))

    todo = [(place, one) for place, one in enumerate(work) if ledger.is_due(one.call)]
    jobs = [note(place, one) for place, one in todo]
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


def _earlier(run: Run, work: Sequence[Work]) -> dict[int, Done]:
    """Return what the functions among the calls returned when an earlier run made them, by their places."""
    outputs = {item.call_id: item for item in run.state.turn if isinstance(item, ToolCallOutputItem)}
    found: dict[int, Done] = {}
    for place, one in enumerate(work if outputs else ()):
        item = outputs.get(call_id_of(one.call))
        if item is not None and isinstance(one, ToolRun) and isinstance(one.tool, FunctionTool):
            call = Invocation.of(one.call)
            if run.ledger.status(call.tool, call.call_id, item.agent.name) is not False:
                found[place] = Output(item, FunctionToolResult(one.tool, item.output, item))
    return found


def _job(run: Run, agent: Agent[Any], work: Work, ran: Ran) -> Coroutine[Any, Any, Done]:
    match work:
        case ToolRun(call, tool):
            if isinstance(tool, FunctionTool):
                return _function(_Call(run, agent, call, Invocation.of(call)), tool, ran)
            return _local(_Call(run, agent, call, Invocation.of(call, tool.name)), tool, ran)
        case UnknownTool(call, name):
            return _unknown(_Call(run, agent, call, Invocation.of(call)), name)
        case ApprovalRequest(call, server):
            return _mcp_request(_Call(run, agent, call, Invocation.of(call)), server)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that is to be answered, as `one` it is decided about."""

    run: Run
    agent: Agent[Any]
    call: Any
    one: Invocation

    @property
    def status(self) -> bool | None:
        """True for approved, False for rejected, None for undecided."""
        return self.run.ledger.status(self.one.tool, self.one.call_id, self.agent.name)

    def context(self, name: str, arguments: str | None) -> ToolContext[Any]:
        """Return what a tool is given; the arguments are the call's where they are None."""
        given = (self.run.state.context, self.one.call_id, self.call, self.agent)
        named: dict[str, Any] = {"tool_name": name, "tool_arguments": arguments, "run_config": self.run.config}
        return ToolContext.from_agent_context(*given, **named)

    def said(self, text: str, origin: ToolOrigin | None = None) -> Output:
        """Return a text as the output of a call of a function."""
        raw = ItemHelpers.tool_call_output_item(self.call, text)
        return Output(ToolCallOutputItem(self.agent, raw, text, tool_origin=origin))

    async def rejection(self, kind: Kind) -> str:
        """Return what the model is told of a rejected call: the reviewer's words, the run's, or the default ones."""
        said = self.run.ledger.message(self.one.tool, self.one.call_id, self.agent.name)
        if said is not None:
            return said
        return await self.formatted("approval_rejected", kind, DEFAULT_APPROVAL_REJECTION_MESSAGE)

    async def formatted(self, why: Literal["approval_rejected", "tool_not_found"], kind: Kind, default: str) -> str:
        """Return what the run says instead of an output, or the default."""
        formatter = self.run.config.tool_error_formatter
        if formatter is None:
            return default
        context = self.run.state.context
        said: Any = await settled(
            formatter(ToolErrorFormatterArgs(why, kind, self.one.tool, self.one.call_id, default, context))
        )
        return said if isinstance(said, str) else default


async def _needs(tool: Any, context: Any, asked: Any, call_id: str) -> bool:
    needs: bool | Callable[..., Any] = tool.needs_approval
    return bool(await settled(needs(context, asked, call_id))) if callable(needs) else needs


# --- functions -------------------------------------------------------------------------------------------------------


async def _function(call: _Call, tool: FunctionTool, ran: Ran) -> Done:
    run = call.run
    context = call.context(tool.name, "" if fields(call.call).get("arguments") is None else None)
    checked = False
    if call.status is None and await _function_needs(tool, context):
        if (run.config.tool_execution or ToolExecutionConfig()).pre_approval_tool_input_guardrails:
            refusal = await _check_input(run, tool, context)
            if refusal is not None:
                return await _told(_output(tool, context, refusal), tool, context)
            checked = True
        if call.status is None:
            return Waits((ToolApprovalItem(call.agent, call.call, tool.name, tool_origin=tool.origin),))
    if call.status is False:
        return call.said(_failure(tool, call.call, await call.rejection("function")), tool.origin)
    with run.tracing.tool(tool.qualified_name, call.one.call_id, tool.description) as span:
        span.content("gen_ai.tool.call.arguments", context.tool_arguments)
        async with run.gate:
            with span.current():
                done = await _run_function(run, tool, context, ran, checked=checked)
        if isinstance(done, Output) and done.result is not None:
            span.content("gen_ai.tool.call.result", done.result.output)
        return done


async def _run_function(run: Run, tool: FunctionTool, context: ToolContext[Any], ran: Ran, *, checked: bool) -> Done:
    """Return what the tool returned, or what its guardrails say instead. A tool that waited inside has begun before."""
    begun = context.tool_call_id in run.ledger.nested
    refusal = None if checked or begun else await _check_input(run, tool, context)
    if refusal is None and _is_cut(tool, context.tool_arguments):
        problem = ModelBehaviorError(f"Invalid JSON input for tool {tool.name}: the arguments are no JSON text")
        refusal = ErrorText(default_tool_error_function(context, problem))
    if refusal is not None:
        return await _told(_output(tool, context, refusal), tool, context)
    if not begun:
        await run.hooks.tool_start(context, context.agent, tool)
    with run.ledger.once(context.tool_call_id):
        output = await _invoked(tool, context)
        if isinstance(output, Waits):
            return output
        output = await _check_output(run, tool, context, output)
    done = _output(tool, context, output)
    ran(done)
    await run.hooks.tool_end(context, context.agent, tool, output)
    return await _told(done, tool, context)


async def _invoked(tool: FunctionTool, context: ToolContext[Any]) -> Any:
    try:
        return await invoke_function_tool(function_tool=tool, context=context, arguments=context.tool_arguments)
    except AgentsException:
        raise
    except asyncio.CancelledError as error:
        if being_cancelled():
            raise
        raise UserError(f"Error running tool {tool.name}: it was cancelled from inside") from error
    except Exception as error:
        raise UserError(f"Error running tool {tool.name}: {error}") from error


async def _function_needs(tool: FunctionTool, context: ToolContext[Any]) -> bool:
    """Whether a call needs approval. One with arguments that nobody can judge does, unless it cannot run with them."""
    if isinstance(tool.needs_approval, bool):
        return tool.needs_approval
    read = _read(context.tool_arguments)
    if read is NO_JSON:  # the model is told so, and the tool does not run
        return False
    return not is_dict(read) or await _needs(tool, context, read, context.tool_call_id)


def _is_cut(tool: FunctionTool, arguments: str) -> bool:
    """Whether a call's arguments were cut off; tools that read them themselves say so in their own way."""
    if isinstance(tool.on_invoke_tool, FunctionInvoker) or tool.origin.type is not ToolOriginType.FUNCTION:
        return False
    return _read(arguments) is NO_JSON


def _read(arguments: str) -> Any:
    odd: list[str] = []
    try:
        read = json.loads(arguments or "{}", parse_constant=odd.append)
    except (ValueError, RecursionError):  # not whole, or nested too deep to be read
        return NO_JSON
    return None if odd else read  # NaN and Infinity compare as nobody expects


def _output(tool: FunctionTool, context: ToolContext[Any], output: Any) -> Output:
    text = isinstance(output, ErrorText)
    declares = {"output_json_schema": tool.output_json_schema, "output_type_adapter": tool.output_type_adapter}
    declared: dict[str, Any] = {} if text else declares
    told = _failure(tool, context.tool_call, str(output)) if text else output
    raw = ItemHelpers.tool_call_output_item(context.tool_call, told, **declared)
    item = ToolCallOutputItem(context.agent, raw, output, tool_origin=tool.origin)
    return Output(item, FunctionToolResult(tool, output, item))


async def _told(done: Output, tool: FunctionTool, context: ToolContext[Any]) -> Output:
    """Return an output, with what the tool's own function says about it beside."""
    item: Any = done.item
    about = FunctionToolCustomDataContext(context, tool, item.output, dict(item.raw_item))
    item.custom_data = await custom_data(tool.custom_data_extractor, about)
    return done


def _failure(tool: FunctionTool, call: Any, text: str) -> str:
    """Return what is told of a failure: the text, or an object with it for a program, which reads the tool's JSON."""
    by_program = fields(fields(call).get("caller")).get("type") == "program"
    return json.dumps({"error": text}) if by_program and tool.output_json_schema is not None else text


async def _check_input(run: Run, tool: FunctionTool, context: ToolContext[Any]) -> ErrorText | None:
    data = ToolInputGuardrailData(context, context.agent)
    return await _refused(tool.tool_input_guardrails, data, run.state.tool_input_guardrail_results)


async def _check_output(run: Run, tool: FunctionTool, context: ToolContext[Any], output: Any) -> Any:
    data = ToolOutputGuardrailData(context, context.agent, output)
    refusal = await _refused(tool.tool_output_guardrails, data, run.state.tool_output_guardrail_results)
    return output if refusal is None else refusal


async def _refused(guardrails: Sequence[Any] | None, data: Any, results: list[Any]) -> ErrorText | None:
    """Return what the model is told where a guardrail refuses; None where none does."""
    for guardrail in guardrails or ():
        refusal = await guardrail.refusal(data, results)
        if refusal is not None:
            return ErrorText(refusal)
    return None


# --- the others ------------------------------------------------------------------------------------------------------


async def _local(call: _Call, tool: LocalTool, ran: Ran) -> Done:
    run, held = call.run, plain(call.call)
    asked = held.get("action") or held.get("actions") or held.get("operation")
    context = call.context(tool.name, held["input"] if isinstance(held.get("input"), str) else json.dumps(asked))
    if isinstance(tool, ApprovableTool):
        status = await _status(call, tool, held, context)
        if isinstance(status, Waits):
            return status
        if not status:
            message = await call.rejection(tool.kind)
            return Output(tool.output_item(held, context, tool.refusal(message), message))
    with run.tracing.tool(tool.name, call.one.call_id):
        async with run.one_by_one:
            await run.hooks.tool_start(context, call.agent, tool)
            with run.ledger.once(call.one.call_id):
                item = await tool.answered(held, context, run.computers)
            ran(Output(item))
            await run.hooks.tool_end(context, call.agent, tool, item.output)
    return Output(item)


async def _status(call: _Call, tool: ApprovableTool, held: Any, context: ToolContext[Any]) -> bool | Waits:
    """Return whether a call is made, or that it waits; the tool's own function is asked before anybody else."""
    if call.status is not None or not await _needs(tool, context, tool.asked(held, context), call.one.call_id):
        return call.status is not False
    item = ToolApprovalItem(call.agent, call.call, tool.name)
    if tool.on_approval is not None:
        found = await settled(tool.on_approval(call.run.state.context, item))
        told = {"message": found.get("reason"), "nameless": tool.name}
        call.run.ledger.decide(call.call, bool(found["approve"]), always=None, **told)
    return Waits((item,)) if call.status is None else call.status


async def _unknown(call: _Call, name: str) -> Done:
    return call.said(await call.formatted("tool_not_found", "function", f"Tool '{name}' not found."))


async def _mcp_request(call: _Call, tool: HostedMCPTool) -> Done:
    """Answer a hosted MCP server, by the tool's own function or by what was decided."""
    status, reason = call.status, call.run.ledger.message(call.one.tool, call.one.call_id, call.agent.name)
    if status is None and tool.on_approval_request is not None:
        found = await settled(tool.on_approval_request(MCPToolApprovalRequest(call.run.state.context, call.call)))
        status, reason = bool(found["approve"]), found.get("reason")
    if status is None:
        return Waits((ToolApprovalItem(call.agent, call.call, str(fields(call.call).get("name"))),))
    raw = {"type": "mcp_approval_response", "approval_request_id": call.one.call_id, "approve": status}
    return Output(MCPApprovalResponseItem(call.agent, {**raw, "reason": reason} if reason and not status else raw))
