"""Tools that the API knows by their types and that the caller runs: what all have, and those that take free text.

A computer, shells and patches have modules of their own.
Source of the parameters and of the output items: openai 3.57, `openai.types.responses`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NotRequired, TypeAlias, TypedDict

from antiphon.exceptions import AgentsException, ModelBehaviorError
from antiphon.logger import logger
from antiphon.run.awaiting import MaybeAwaitable, settled
from antiphon.run.items import ToolCallOutputItem, with_caller
from antiphon.run.reading import Json, said

from .tool import ApiTool, ToolCaller, checked_callers, custom_data

if TYPE_CHECKING:
    from antiphon.run.context import RunContextWrapper, ToolContext
    from antiphon.run.items import ToolApprovalItem

    from .computer import Computers


Kind: TypeAlias = Literal["function", "computer", "shell", "apply_patch", "custom"]


class OnApprovalResult(TypedDict):
    """Whether a call may go on, and if not, why."""

    approve: bool
    reason: NotRequired[str]


OnApproval: TypeAlias = Callable[["RunContextWrapper[Any]", "ToolApprovalItem"], MaybeAwaitable[OnApprovalResult]]
# a function of the context, of what is asked for (an action, an operation, a text) and of the call's id
NeedsApproval: TypeAlias = bool | Callable[["RunContextWrapper[Any]", Any, str], MaybeAwaitable[bool]]
CustomDataExtractor: TypeAlias = Callable[[Any], MaybeAwaitable[Mapping[str, Any] | None]]


@dataclass(frozen=True)
class LocalToolCustomDataContext:
    """What the `custom_data_extractor` of such a tool is given."""

    tool_context: ToolContext[Any]
    tool: Any
    tool_call: Json
    output: Any
    raw_item: Json


class LocalTool(ApiTool, ABC):
    """A tool that the caller runs. `kind`: what `tool_error_formatter` is told of it. `call`: the type of its calls."""

    kind: ClassVar[Kind]
    call: ClassVar[str]
    name: str
    custom_data_extractor: CustomDataExtractor | None = None

    def __init_subclass__(cls, kind: Kind | None = None, call: str | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if kind is not None and call is not None:  # else they are those of its base
            cls.kind, cls.call = kind, call

    @abstractmethod
    async def answer(self, call: Json, context: ToolContext[Any], computers: Computers) -> tuple[Json, Any]:
        """Return what the output item of a call says, and what the tool returned."""

    async def answered(self, call: Json, context: ToolContext[Any], computers: Computers) -> ToolCallOutputItem:
        """Return the output of a call. What a shell, an editor or a free-form tool raises is told to the model."""
        told, output = await self.answer(call, context, computers)
        item = self.output_item(call, context, told, output)
        about = LocalToolCustomDataContext(context, self, call, output, dict(item.raw_item))
        item.custom_data = await custom_data(self.custom_data_extractor, about)
        return item

    def output_item(self, call: Json, context: ToolContext[Any], told: Json, output: Any) -> ToolCallOutputItem:
        """Return the output of a call that says `told`."""
        raw = {"type": f"{self.call}_output", "call_id": context.tool_call_id, **told}
        return ToolCallOutputItem(context.agent, with_caller(call, raw), output)


class ApprovableTool(LocalTool):
    """One whose calls may need approval, and that programs may call."""

    needs_approval: NeedsApproval = False
    on_approval: OnApproval | None = None
    allowed_callers: list[ToolCaller] | None = None

    def __post_init__(self) -> None:
        self.allowed_callers = checked_callers(self.allowed_callers, self.name)

    def asked(self, call: Json, context: Any) -> Any:
        """Return what a call asks for, as the question whether it needs approval is given it."""
        return call.get("input")

    def refusal(self, message: str) -> Json:
        """Return what the output item of a rejected call says."""
        return {"output": message}


@dataclass
class CustomTool(ApprovableTool, kind="custom", call="custom_tool_call"):
    """A tool that takes free text instead of JSON, perhaps text of a grammar that `format` has."""

    type = "custom"
    told = ("name", "description", "format", "allowed_callers")
    name: str
    description: str
    on_invoke_tool: Callable[[Any, str], MaybeAwaitable[Any]]
    format: Any = None
    needs_approval: NeedsApproval = False
    on_approval: OnApproval | None = None
    defer_loading: bool = False
    custom_data_extractor: CustomDataExtractor | None = field(default=None, kw_only=True)
    allowed_callers: list[ToolCaller] | None = field(default=None, kw_only=True)

    @property
    def tool_config(self) -> Json:
        """Return the tool as the API has it."""
        return self.to_responses_tool()

    def to_responses_tool(self) -> Json:
        """Return the tool as the API has it."""
        return super().to_responses_tool() | said(defer_loading=self.defer_loading or None)

    async def answer(self, call: Json, context: ToolContext[Any], computers: Computers) -> tuple[Json, Any]:
        """Return the text of what the function returned. Raises ModelBehaviorError for a call without text."""
        text = call.get("input")
        if not isinstance(text, str):
            raise ModelBehaviorError(
                f"a call of {self.name!r} has input of type {type(text).__name__}: text is expected"
            )
        result, _ = await tried(lambda: self.on_invoke_tool(context, text), self.name)
        return {"output": str(result)}, str(result)


async def tried(job: Callable[[], Any], what: str) -> tuple[Any, bool]:
    """Return what a tool returns; or what it raises, as text, and True."""
    try:
        return await settled(job()), False
    except AgentsException:
        raise
    except Exception as error:  # noqa: BLE001  # whatever a tool raises is told to the model
        logger.warning("the %s failed: %s", what, type(error).__name__)
        return str(error) or type(error).__name__, True
