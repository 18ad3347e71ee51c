"""`RunContextWrapper` and `ToolContext`: what the caller's code is given of a run, and of a call that a tool answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypedDict, TypeGuard

from typing_extensions import TypeVar, Unpack

from antiphon.models.usage import Usage
from antiphon.stream.chunk import fields, text_of

from .approvals import Ledger, qualified
from .items import ToolApprovalItem

TContext = TypeVar("TContext", default=Any)


class Where(TypedDict, total=False):
    """What else is known of a call that is asked about."""

    tool_namespace: str | None
    existing_pending: ToolApprovalItem | None


@dataclass(eq=False)
class RunContextWrapper(Generic[TContext]):
    """The context object that was given to the run, its usage so far, and what was decided about its calls.

    `turn_input`: what the model was given in this turn. `tool_input`: the structured input of an agent that runs as a
    tool. The context is never sent to a model.
    """

    context: TContext
    usage: Usage = field(default_factory=Usage)
    turn_input: list[Any] = field(default_factory=list[Any])
    tool_input: Any = None
    _ledger: Ledger = field(default_factory=Ledger, repr=False)
    _progress: Any = field(default=None, repr=False)  # a function of context and progress; no schema has functions

    def approve_tool(self, approval_item: ToolApprovalItem, always_approve: bool = False) -> None:
        """Let a pending call run; with `always_approve`, and all later calls of its agent's tool in this run."""
        whose = _agent_of(approval_item) if always_approve else None
        self._ledger.decide(approval_item.raw_item, True, always=whose, nameless=approval_item.tool_name)

    def reject_tool(
        self, approval_item: ToolApprovalItem, always_reject: bool = False, rejection_message: str | None = None
    ) -> None:
        """Refuse a pending call; the model is told `rejection_message`. With `always_reject`, all later ones too."""
        self._ledger.decide(
            approval_item.raw_item,
            False,
            always=_agent_of(approval_item) if always_reject else None,
            message=rejection_message,
            nameless=approval_item.tool_name,
        )

    def is_tool_approved(self, tool_name: str, call_id: str) -> bool | None:
        """Return True for approved, False for rejected, None for undecided. `tool_name` is the qualified one."""
        return self._ledger.status(tool_name, call_id)

    def get_approval_status(self, tool_name: str, call_id: str, **where: Unpack[Where]) -> bool | None:
        """Return the same for a name and its namespace, or for the pending item."""
        return self._ledger.status(_decided_under(tool_name, **where), call_id)

    def get_rejection_message(self, tool_name: str, call_id: str, **where: Unpack[Where]) -> str | None:
        """Return what the reviewer said of a rejected call; None where nothing was said."""
        return self._ledger.message(_decided_under(tool_name, **where), call_id)

    def report(self, progress: Any) -> None:
        """Tell those who read the stream how far a tool is: they get a `ToolProgressStreamEvent`. From any thread.

        A run whose events nobody asked for drops it.
        """
        if self._progress is not None:
            self._progress(self, progress)


def _decided_under(
    name: str, tool_namespace: str | None = None, existing_pending: ToolApprovalItem | None = None
) -> str:
    own = None if existing_pending is None else existing_pending.qualified_name
    return own or qualified(name, tool_namespace)


def _agent_of(item: ToolApprovalItem) -> str:
    return item.agent.name


def is_context(value: object) -> TypeGuard[RunContextWrapper[Any]]:
    """Return whether `value` is the context of a run."""
    return isinstance(value, RunContextWrapper)


@dataclass(eq=False)
class AgentHookContext(RunContextWrapper[TContext]):
    """What the hooks at the start and the end of an agent are given."""


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
        self._answer(tool_name, tool_call_id, tool_arguments, tool_call, tool_namespace)
        self.agent, self.run_config = agent, run_config

    def _answer(
        self, name: str | None, call_id: str | None, arguments: str | None, call: Any, space: str | None
    ) -> None:
        """Note the call that is answered."""
        self.tool_name = _given("tool_name", name)
        self.tool_call_id = _given("tool_call_id", call_id)
        self.tool_arguments = _given("tool_arguments", arguments)
        self.tool_call = call
        self.tool_namespace = space or fields(call).get("namespace")

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
        name = held.get("name") if tool_name is None else tool_name
        arguments = _said(held.get("arguments")) if tool_arguments is None else tool_arguments
        made = cls.__new__(cls)
        vars(made).update(vars(context))
        made._answer(name, tool_call_id, arguments, tool_call, tool_namespace)
        made.agent = made.agent if agent is None else agent
        made.run_config = made.run_config if run_config is None else run_config
        return made


def _given(name: str, value: str | None) -> str:
    if value is None:
        raise ValueError(f"{name} must be passed to ToolContext: no call item has it")
    return value


def _said(arguments: Any) -> str | None:
    return None if arguments is None else text_of(arguments)
