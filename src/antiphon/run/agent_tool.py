"""An agent as a tool of another: the call's arguments are its input, its final output is the call's."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, TypedDict

from pydantic import BaseModel, TypeAdapter

from antiphon.exceptions import ModelBehaviorError, UserError
from antiphon.logger import logger
from antiphon.tools.docstrings import function_style
from antiphon.tools.function_tool import forgiving
from antiphon.tools.schema import QuietSchema, Unfit, fitting
from antiphon.tools.strict import ensure_strict_json_schema
from antiphon.tools.tool import FunctionTool, ToolOrigin, ToolOriginType

from .agent import Agent, AgentToolOptions
from .awaiting import settled
from .config import DEFAULT_MAX_TURNS, RunConfig
from .context import RunContextWrapper, ToolContext
from .events import AgentUpdatedStreamEvent, StreamEvent
from .execute import Waits
from .items import ItemHelpers, MessageOutputItem, ToolCallOutputItem
from .reading import Json
from .result import AgentToolInvocation, RunResultBase, RunResultStreaming
from .runner import RunOptions, drained, make_run, start
from .state import RunState


class AgentAsToolInput(BaseModel):
    """What an agent tool takes where nothing else is said."""

    input: str


class AgentToolStreamEvent(TypedDict):
    """An event of the run inside an agent tool: `agent` is the one that runs there, `tool_call` what is answered."""

    event: StreamEvent
    agent: Agent[Any]
    tool_call: Any


class StructuredToolInput(TypedDict):
    """What an `input_builder` is given: the arguments, and the schema where it was asked for."""

    params: Any
    summary: str | None
    json_schema: Json | None


def agent_tool(agent: Agent[Any], options: AgentToolOptions) -> FunctionTool:
    """Return the tool. Raises TypeError for parameters that are no dataclass or pydantic model."""
    name = options.tool_name or function_style(agent.name)
    adapter: TypeAdapter[Any] = TypeAdapter(_parameters(options.parameters))
    schema = ensure_strict_json_schema(adapter.json_schema(schema_generator=QuietSchema))
    caller = AgentCaller(agent, options, adapter, schema)
    return FunctionTool(
        name=name,
        description=options.tool_description or "",
        params_json_schema=schema,
        on_invoke_tool=forgiving(caller.invoke, options.failure_error_function),
        is_enabled=options.is_enabled,
        needs_approval=options.needs_approval,
        origin=ToolOrigin(ToolOriginType.AGENT_AS_TOOL, agent_name=agent.name, agent_tool_name=name),
        agent=agent,
    )


def _parameters(given: Any) -> Any:
    if given is None:
        return AgentAsToolInput
    if isinstance(given, type) and (dataclasses.is_dataclass(given) or issubclass(given, BaseModel)):
        return given
    raise TypeError(f"Agent tool parameters must be a dataclass or Pydantic model type, got {given!r}")


@dataclass(frozen=True, slots=True)
class AgentCaller:
    """Runs the agent for one call, or goes on with a run that waited."""

    agent: Agent[Any]
    options: AgentToolOptions
    adapter: TypeAdapter[Any]
    schema: Json

    async def invoke(self, ctx: ToolContext[Any], arguments: str) -> Any:
        """Return the final output of the run; `Waits` where a call inside it waits."""
        ledger = ctx._ledger  # pyright: ignore[reportPrivateUsage]  # a part of the same thing
        waiting: RunState[Any] | None = ledger.nested.get(ctx.tool_call_id)
        state = await self._begun(ctx, arguments) if waiting is None else waiting.copy()
        inner = state.context
        inner.context, inner.usage = ctx.context, ctx.usage
        inner._progress = ctx._progress  # pyright: ignore[reportPrivateUsage]  # as above
        state.agent_tool_invocation = AgentToolInvocation(ctx.tool_name, ctx.tool_call_id, ctx.tool_arguments)
        ledger.nested[ctx.tool_call_id] = state  # whoever keeps the state of the outer run keeps how far this one is
        result = await self._run(ctx, state)
        ledger.keep(ctx.qualified_tool_name, result.context_wrapper._ledger)  # pyright: ignore[reportPrivateUsage]  # as above
        if result.interruptions:
            ledger.nested[ctx.tool_call_id] = result.to_state()
            return Waits(tuple(result.interruptions))
        if self.options.custom_output_extractor is not None:
            return await settled(self.options.custom_output_extractor(result))
        return _output(result)

    async def _begun(self, ctx: ToolContext[Any], arguments: str) -> RunState[Any]:
        params = self._params(ctx, arguments)
        structured = self.options.parameters is not None or self.options.input_builder is not None
        ledger = ctx._ledger.inner(ctx.qualified_tool_name)  # pyright: ignore[reportPrivateUsage]  # as above
        context = RunContextWrapper(ctx.context, tool_input=params if structured else None)
        asked: RunOptions = {
            "context": context,
            "max_turns": DEFAULT_MAX_TURNS if self.options.max_turns is None else self.options.max_turns,
            "conversation_id": self.options.conversation_id,
            "previous_response_id": self.options.previous_response_id,
        }
        state = start(self.agent, await self._input(params), asked)
        state.context._ledger = ledger  # pyright: ignore[reportPrivateUsage]  # as above
        return state

    def _params(self, ctx: ToolContext[Any], arguments: str) -> Any:
        """Return the arguments as JSON data. Raises ModelBehaviorError, without them, where they do not fit."""
        read = fitting(self.adapter.validate_json, arguments or "{}")
        if isinstance(read, Unfit):
            raise ModelBehaviorError(f"Invalid JSON input for tool {ctx.tool_name}: {read.why}")
        return self.adapter.dump_python(read, mode="json")

    async def _input(self, params: Any) -> str | list[Any]:
        """Return the input of the run."""
        schema = self.schema if self.options.include_input_schema and self.options.parameters is not None else None
        if self.options.input_builder is not None:
            given = StructuredToolInput(params=params, summary=None, json_schema=schema)
            made: Any = await settled(self.options.input_builder(given))
            if not isinstance(made, str | list):
                raise UserError(f"input_builder returned {type(made).__name__}: text or input items are expected")
            return made  # pyright: ignore[reportUnknownVariableType]
        if self.options.parameters is None:
            return str(params["input"])
        told = f"You are called as a tool, with this input:\n{json.dumps(params, ensure_ascii=False, indent=2)}"
        return told if schema is None else f"{told}\n\nIts JSON schema:\n{json.dumps(schema, ensure_ascii=False)}"

    async def _run(self, ctx: ToolContext[Any], state: RunState[Any]) -> RunResultBase:
        options = self.options
        config = RunConfig.of(options.run_config) if options.run_config is not None else ctx.run_config
        asked: RunOptions = {"hooks": options.hooks, "run_config": config, "session": options.session}
        run = make_run(state, state.original_input, asked)
        if options.on_stream is None:
            return await drained(run)
        run.streamed = True
        result, agent = RunResultStreaming(run), state.current_agent
        async with result.stream_events() as events:
            async for event in events:
                agent = event.new_agent if isinstance(event, AgentUpdatedStreamEvent) else agent
                await _told(options.on_stream, AgentToolStreamEvent(event=event, agent=agent, tool_call=ctx.tool_call))
        return result


async def _told(on_stream: Any, event: AgentToolStreamEvent) -> None:
    """Tell the caller's function of an event; what it raises is its own affair."""
    try:
        await settled(on_stream(event))
    except Exception as error:  # noqa: BLE001  # as the docstring says
        logger.error("on_stream of the agent tool %s failed: %s", event["agent"].name, type(error).__name__)


def _output(result: RunResultBase) -> Any:
    """Return the final output; where it is empty, the last text or tool output of the run, unless guardrails watch it.

    They saw the final output alone.
    """
    if result.final_output not in (None, "") or result.output_guardrail_results:
        return result.final_output
    for item in reversed(result.new_items):
        if isinstance(item, MessageOutputItem) and (text := ItemHelpers.text_message_output(item)):
            return text
        if isinstance(item, ToolCallOutputItem) and item.output:
            return item.output
    return result.final_output
