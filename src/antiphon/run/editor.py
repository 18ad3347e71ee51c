"""What an apply-patch tool asks for, and who does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from .awaiting import MaybeAwaitable

ApplyPatchOperationType: TypeAlias = Literal["create_file", "update_file", "delete_file"]


@dataclass(slots=True)
class ApplyPatchOperation:
    """One change to one file. `diff`: in V4A form, for a new file its lines. `move_to`: the file's new path."""

    type: ApplyPatchOperationType
    path: str
    diff: str | None = None
    ctx_wrapper: Any = None
    move_to: str | None = None


@dataclass(slots=True)
class ApplyPatchResult:
    """How a change went, and what the model is told of it."""

    status: Literal["completed", "failed"] | None = None
    output: str | None = None


@runtime_checkable
class ApplyPatchEditor(Protocol):
    """Makes changes to files. What it raises is told to the model as a failure."""

    def create_file(self, operation: ApplyPatchOperation) -> MaybeAwaitable[ApplyPatchResult | str | None]: ...
    def update_file(self, operation: ApplyPatchOperation) -> MaybeAwaitable[ApplyPatchResult | str | None]: ...
    def delete_file(self, operation: ApplyPatchOperation) -> MaybeAwaitable[ApplyPatchResult | str | None]: ...
