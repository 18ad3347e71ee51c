"""Changes to files: what a model asks for, who makes them, and the tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, cast, get_args, runtime_checkable

from antiphon.exceptions import ModelBehaviorError
from antiphon.run.awaiting import MaybeAwaitable
from antiphon.run.context import ToolContext
from antiphon.run.reading import Json

from .computer import Computers
from .local import ApprovableTool, CustomDataExtractor, NeedsApproval, OnApproval, tried
from .tool import ToolCaller

ApplyPatchOperationType: TypeAlias = Literal["create_file", "update_file", "delete_file"]
OPERATIONS: tuple[ApplyPatchOperationType, ...] = get_args(ApplyPatchOperationType)


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


@dataclass
class ApplyPatchTool(ApprovableTool, kind="apply_patch", call="apply_patch_call"):
    """Changes to files, which `editor` makes."""

    type = "apply_patch"
    told = ("allowed_callers",)
    editor: ApplyPatchEditor
    name: str = "apply_patch"
    needs_approval: NeedsApproval = False
    on_approval: OnApproval | None = None
    custom_data_extractor: CustomDataExtractor | None = field(default=None, kw_only=True)
    allowed_callers: list[ToolCaller] | None = field(default=None, kw_only=True)

    def asked(self, call: Json, context: Any) -> ApplyPatchOperation:
        """Return the change that a call asks for. Raises ModelBehaviorError where it is none."""
        held: Json = call.get("operation") or {}
        kind, path, diff, move_to = (held.get(name) for name in ("type", "path", "diff", "move_to"))
        needs_diff = kind != "delete_file"
        if (
            kind not in OPERATIONS
            or not isinstance(path, str)
            or not path
            or (needs_diff and not isinstance(diff, str))
        ):
            without = " without a diff" if needs_diff and not diff else ""
            raise ModelBehaviorError(
                f"an apply_patch call asks for {kind!r} of {path!r}{without}: one of {', '.join(OPERATIONS)} with a "
                "path is expected, and a diff but for a deletion"
            )
        return ApplyPatchOperation(kind, path, diff if needs_diff else None, context, move_to)

    def refusal(self, message: str) -> Json:
        """Return what the output item of a rejected call says: that it failed."""
        return {"output": message, "status": "failed"}

    async def answer(self, call: Json, context: ToolContext[Any], computers: Computers) -> tuple[Json, Any]:
        """Return how the change went, and what the model is told of it."""
        change = self.asked(call, context)
        method: Callable[..., Any] = getattr(self.editor, change.type)  # the types are the names of the methods
        result, failed = await tried(lambda: method(change), "editor")
        if isinstance(result, Mapping):
            result = ApplyPatchResult(**cast("Json", result))
        if isinstance(result, ApplyPatchResult):
            failed, result = failed or result.status == "failed", result.output
        text = "" if result is None else str(result)
        return {"status": "failed" if failed else "completed", **({"output": text} if text else {})}, text
