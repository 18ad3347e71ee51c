"""`ToolContext`: what a tool is given of the run, and of the call that it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from antiphon.models.usage import Usage
from antiphon.stream.chunk import fields, text_of

from .approvals import qualified
from .context import RunContextWrapper, TContext


@dataclass(eq=False, init=False)
class ToolContext(RunContextWrapper[TContext]):
    """The run's context during one call of a tool.

    `tool_arguments`: JSON text, as the model wrote it. `tool_call`: the call item; None outside of a run. `agent`: who
    called. `run_config`: that of the run.
    """

    tool_name: str = ""
    tool_call_id: str = ""
    tool_arguments: str = ""
    tool_call: Any = None
    tool_namespace: str | None = None
    agent: Any = None
    run_config: Any = None

    def __init__(
        self,
        context: TContext,
        usage: Usage | None = None,
        tool_name: str | None = None,
        tool_call_id: str | None = None,
        tool_arguments: str | None = None,
        tool_call: Any = None,
        *,
        tool_namespace: str | None = None,
        agent: Any = None,
        run_config: Any = None,
        turn_input: list[Any] | None = None,
        tool_input: Any = None,
    ) -> None:
        super().__init__(context, Usage() if usage is None else usage, list(turn_input or ()), tool_input)
        self.tool_name = _given("tool_name", tool_name)
        self.tool_call_id = _given("tool_call_id", tool_call_id)
        self.tool_arguments = _given("tool_arguments", tool_arguments)
        self.tool_call = tool_call
        self.tool_namespace = tool_namespace or fields(tool_call).get("namespace")
        self.agent, self.run_config = agent, run_config

    @property
    def qualified_tool_name(self) -> str:
        """Return the tool's name with its namespace, where it has one."""
        return qualified(self.tool_name, self.tool_namespace)

    @classmethod
    def from_agent_context(
        cls,
        context: RunContextWrapper[TContext],
        tool_call_id: str,
        tool_call: Any = None,
        agent: Any = None,
        *,
        tool_name: str | None = None,
        tool_arguments: str | None = None,
        tool_namespace: str | None = None,
        run_config: Any = None,
    ) -> ToolContext[TContext]:
        """Return the context of one call in a run: it shares the run's usage and decisions.

        Name and arguments are the call's where they are not given. Raises ValueError where nothing has them.
        """
        held = fields(tool_call)
        outer = context if isinstance(context, ToolContext) else None
        made = cls(
            context.context,
            context.usage,
            tool_name if tool_name is not None else held.get("name"),
            tool_call_id,
            tool_arguments if tool_arguments is not None else _said(held.get("arguments")),
            tool_call,
            tool_namespace=tool_namespace,
            agent=agent if agent is not None or outer is None else outer.agent,
            run_config=run_config if run_config is not None or outer is None else outer.run_config,
            tool_input=context.tool_input,
        )
        made.turn_input = context.turn_input
        made._ledger = context._ledger  # pyright: ignore[reportPrivateUsage]  # what a subclass shares
        made._progress = context._progress  # pyright: ignore[reportPrivateUsage]  # as above
        return made


def _given(name: str, value: str | None) -> str:
    if value is None:
        raise ValueError(f"{name} must be passed to ToolContext: no call item has it")
    return value


def _said(arguments: Any) -> str | None:
    return None if arguments is None else text_of(arguments)
