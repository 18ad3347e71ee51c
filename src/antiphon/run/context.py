"""`RunContextWrapper`: what the caller's code is given of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeGuard

from typing_extensions import TypeVar

from antiphon.models.usage import Usage

from .approvals import Ledger, qualified

if TYPE_CHECKING:
    from .items import ToolApprovalItem

TContext = TypeVar("TContext", default=Any)


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
    _progress: Callable[[Any, Any], None] | None = field(default=None, repr=False)

    def approve_tool(self, approval_item: ToolApprovalItem, always_approve: bool = False) -> None:
        """Let a pending call run; with `always_approve`, and all later calls of its tool in this run."""
        self._ledger.decide(approval_item.raw_item, True, always=always_approve, nameless=approval_item.tool_name)

    def reject_tool(
        self,
        approval_item: ToolApprovalItem,
        always_reject: bool = False,
        rejection_message: str | None = None,
    ) -> None:
        """Refuse a pending call; the model is told `rejection_message`. With `always_reject`, all later ones too."""
        self._ledger.decide(
            approval_item.raw_item,
            False,
            always=always_reject,
            message=rejection_message,
            nameless=approval_item.tool_name,
        )

    def is_tool_approved(self, tool_name: str, call_id: str) -> bool | None:
        """Return True for approved, False for rejected, None for undecided. `tool_name` is the qualified one."""
        return self._ledger.status(tool_name, call_id)

    def get_approval_status(
        self,
        tool_name: str,
        call_id: str,
        *,
        tool_namespace: str | None = None,
        existing_pending: ToolApprovalItem | None = None,
    ) -> bool | None:
        """Return the same for a name and its namespace, or for the pending item."""
        return self._ledger.status(_decided_under(tool_name, tool_namespace, existing_pending), call_id)

    def get_rejection_message(
        self,
        tool_name: str,
        call_id: str,
        *,
        tool_namespace: str | None = None,
        existing_pending: ToolApprovalItem | None = None,
    ) -> str | None:
        """Return what the reviewer said of a rejected call; None where nothing was said."""
        return self._ledger.message(_decided_under(tool_name, tool_namespace, existing_pending), call_id)

    def report(self, progress: Any) -> None:
        """Tell those who read the stream how far a tool is: they get a `ToolProgressStreamEvent`. From any thread.

        A run whose events nobody asked for drops it.
        """
        if self._progress is not None:
            self._progress(self, progress)


def _decided_under(name: str, namespace: str | None, pending: ToolApprovalItem | None) -> str:
    own = None if pending is None else pending.qualified_name
    return own or qualified(name, namespace)


def is_context(value: object) -> TypeGuard[RunContextWrapper[Any]]:
    """Return whether `value` is the context of a run."""
    return isinstance(value, RunContextWrapper)


@dataclass(eq=False)
class AgentHookContext(RunContextWrapper[TContext]):
    """What the hooks at the start and the end of an agent are given."""
