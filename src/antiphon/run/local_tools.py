"""Tools that the API knows by their types and that the caller runs: a computer, shells, patches, free-form tools.

Source of the parameters: the tool types of openai 3.57, `openai.types.responses`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NotRequired, TypeAlias, TypedDict

from typing_extensions import TypeVar

from antiphon.exceptions import UserError

from .awaiting import MaybeAwaitable
from .computer import AsyncComputer, Computer, ComputerProvider
from .editor import ApplyPatchEditor
from .hosted_tools import Json, said
from .tool import ToolCaller, checked_callers

if TYPE_CHECKING:
    from .context import RunContextWrapper
    from .items import ToolApprovalItem

ComputerT = TypeVar("ComputerT", bound=Computer | AsyncComputer, default=Any)


class OnApprovalResult(TypedDict):
    """Whether a call may go on, and if not, why."""

    approve: bool
    reason: NotRequired[str]


OnApproval: TypeAlias = Callable[["RunContextWrapper[Any]", "ToolApprovalItem"], MaybeAwaitable[OnApprovalResult]]
# a function of the context, of what is asked for (an action, an operation, a text) and of the call's id
NeedsApproval: TypeAlias = bool | Callable[["RunContextWrapper[Any]", Any, str], MaybeAwaitable[bool]]
CustomDataExtractor: TypeAlias = Callable[[Any], MaybeAwaitable[Mapping[str, Any] | None]]


@dataclass
class ComputerToolSafetyCheckData:
    """A safety check that the API asks to acknowledge before a computer acts."""

    ctx_wrapper: RunContextWrapper[Any]
    agent: Any
    tool_call: Any
    safety_check: Any


@dataclass(eq=False)
class ComputerTool(Generic[ComputerT]):
    """A computer that the model uses: an instance, or what makes one for each run."""

    name: ClassVar[str] = "computer_use_preview"
    computer: ComputerT | Callable[..., Any] | ComputerProvider[Any]
    on_safety_check: Callable[[ComputerToolSafetyCheckData], MaybeAwaitable[bool]] | None = None
    custom_data_extractor: CustomDataExtractor | None = field(default=None, kw_only=True)

    def to_responses_tool(self) -> Json:
        """Return the tool as the API has it."""
        return {"type": "computer"}


@dataclass
class LocalShellCommandRequest:
    """A command of the older shell tool: `data` is the call item."""

    ctx_wrapper: RunContextWrapper[Any]
    data: Any


LocalShellExecutor: TypeAlias = Callable[[LocalShellCommandRequest], MaybeAwaitable[str]]


@dataclass
class LocalShellTool:
    """The older shell: `executor` runs a command and returns its output."""

    name: ClassVar[str] = "local_shell"
    executor: LocalShellExecutor

    def to_responses_tool(self) -> Json:
        """Return the tool as the API has it."""
        return {"type": "local_shell"}


@dataclass
class ShellCallOutcome:
    """How a command ended: with an exit code, or by its time."""

    type: Literal["exit", "timeout"]
    exit_code: int | None = None


@dataclass
class ShellCommandOutput:
    """What one command wrote, and how it ended."""

    stdout: str = ""
    stderr: str = ""
    outcome: ShellCallOutcome = field(default_factory=lambda: ShellCallOutcome("exit"))
    command: str | None = None
    provider_data: dict[str, Any] | None = None

    @property
    def exit_code(self) -> int | None:
        """Return the exit code; None where there is none."""
        return self.outcome.exit_code

    @property
    def status(self) -> Literal["completed", "timeout"]:
        """Return "completed", or "timeout" for a command that took too long."""
        return "timeout" if self.outcome.type == "timeout" else "completed"


@dataclass
class ShellResult:
    """What the commands of a call wrote; of each at most `max_output_length` characters are sent."""

    output: list[ShellCommandOutput]
    max_output_length: int | None = None
    provider_data: dict[str, Any] | None = None


@dataclass
class ShellActionRequest:
    """The commands of a call, run one after the other, and their limits."""

    commands: list[str]
    timeout_ms: int | None = None
    max_output_length: int | None = None


@dataclass
class ShellCallData:
    """A call of the shell; `raw` is the call item."""

    call_id: str
    action: ShellActionRequest
    status: Literal["in_progress", "completed"] | None = None
    raw: Any = None


@dataclass
class ShellCommandRequest:
    """What the executor of a shell is given."""

    ctx_wrapper: RunContextWrapper[Any]
    data: ShellCallData


ShellExecutor: TypeAlias = Callable[[ShellCommandRequest], MaybeAwaitable[str | ShellResult]]


@dataclass
class ShellTool:
    """A shell. In a local environment `executor` runs its commands; elsewhere the API does, and nothing is approved."""

    type: ClassVar[str] = "shell"
    executor: ShellExecutor | None = None
    name: str = "shell"
    needs_approval: NeedsApproval = False
    on_approval: OnApproval | None = None
    environment: Mapping[str, Any] | None = None
    allowed_callers: list[ToolCaller] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self.allowed_callers = checked_callers(self.allowed_callers, self.name)
        self.environment = {"type": "local", **(self.environment or {})}
        local = self.environment["type"] == "local"
        if local and self.executor is None:
            raise UserError(f"the shell {self.name!r} is local and has no executor: give one, or a hosted environment")
        if not local and (self.executor or self.needs_approval is not False or self.on_approval):
            raise UserError(
                f"the shell {self.name!r} runs in a hosted environment, so it takes no executor, needs_approval or "
                'on_approval: leave them out, or let its environment be {"type": "local"}'
            )

    def to_responses_tool(self) -> Json:
        """Return the tool as the API has it."""
        return {"type": "shell", **said(environment=self.environment, allowed_callers=self.allowed_callers)}


@dataclass
class ApplyPatchTool:
    """Changes to files, which `editor` makes."""

    type: ClassVar[str] = "apply_patch"
    editor: ApplyPatchEditor
    name: str = "apply_patch"
    needs_approval: NeedsApproval = False
    on_approval: OnApproval | None = None
    custom_data_extractor: CustomDataExtractor | None = field(default=None, kw_only=True)
    allowed_callers: list[ToolCaller] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self.allowed_callers = checked_callers(self.allowed_callers, self.name)

    def to_responses_tool(self) -> Json:
        """Return the tool as the API has it."""
        return {"type": "apply_patch", **said(allowed_callers=self.allowed_callers)}


@dataclass
class CustomTool:
    """A tool that takes free text instead of JSON, perhaps text of a grammar that `format` has."""

    type: ClassVar[str] = "custom"
    name: str
    description: str
    on_invoke_tool: Callable[[Any, str], MaybeAwaitable[Any]]
    format: Any = None
    needs_approval: NeedsApproval = False
    on_approval: OnApproval | None = None
    defer_loading: bool = False
    custom_data_extractor: CustomDataExtractor | None = field(default=None, kw_only=True)
    allowed_callers: list[ToolCaller] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self.allowed_callers = checked_callers(self.allowed_callers, self.name)

    @property
    def tool_config(self) -> Json:
        """Return the tool as the API has it."""
        return self.to_responses_tool()

    def to_responses_tool(self) -> Json:
        """Return the tool as the API has it."""
        more = said(format=self.format, defer_loading=self.defer_loading or None, allowed_callers=self.allowed_callers)
        return {"type": "custom", "name": self.name, "description": self.description, **more}
