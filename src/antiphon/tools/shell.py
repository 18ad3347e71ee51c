"""Shells: what is asked of one, what it wrote, and the two tools that a model knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from antiphon.exceptions import ModelBehaviorError, UserError
from antiphon.run.awaiting import MaybeAwaitable, settled
from antiphon.run.context import RunContextWrapper, ToolContext
from antiphon.run.reading import Json, is_list

from .computer import Computers
from .local import ApprovableTool, LocalTool, NeedsApproval, OnApproval, tried
from .tool import ToolCaller


@dataclass
class LocalShellCommandRequest:
    """A command of the older shell tool: `data` is the call item."""

    ctx_wrapper: RunContextWrapper[Any]
    data: Any


LocalShellExecutor: TypeAlias = Callable[[LocalShellCommandRequest], MaybeAwaitable[str]]


@dataclass
class LocalShellTool(LocalTool, kind="shell", call="local_shell_call"):
    """The older shell: `executor` runs a command and returns its output."""

    type = name = "local_shell"
    executor: LocalShellExecutor

    async def answer(self, call: Json, context: ToolContext[Any], computers: Computers) -> tuple[Json, Any]:
        """Return what the executor returned."""
        output: Any = await settled(self.executor(LocalShellCommandRequest(context, context.tool_call)))
        return {"output": output}, output


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
class ShellTool(ApprovableTool, kind="shell", call="shell_call"):
    """A shell. In a local environment `executor` runs its commands; elsewhere the API does, and nothing is approved."""

    type = "shell"
    told = ("environment", "allowed_callers")
    executor: ShellExecutor | None = None
    name: str = "shell"
    needs_approval: NeedsApproval = False
    on_approval: OnApproval | None = None
    environment: Mapping[str, Any] | None = None
    allowed_callers: list[ToolCaller] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.environment = {"type": "local", **(self.environment or {})}
        local = self.environment["type"] == "local"
        if local and self.executor is None:
            raise UserError(f"the shell {self.name!r} is local and has no executor: give one, or a hosted environment")
        if not local and (self.executor or self.needs_approval is not False or self.on_approval):
            raise UserError(
                f"the shell {self.name!r} runs in a hosted environment, so it takes no executor, needs_approval or "
                'on_approval: leave them out, or let its environment be {"type": "local"}'
            )

    def asked(self, call: Json, context: Any) -> ShellActionRequest:
        """Return the commands of a call. Raises ModelBehaviorError where there are none."""
        return shell_action(call)

    def refusal(self, message: str) -> Json:
        """Return what the output item of a rejected call says: that it failed."""
        return {"output": [{"stdout": "", "stderr": message, "outcome": {"type": "exit", "exit_code": 1}}]}

    async def answer(self, call: Json, context: ToolContext[Any], computers: Computers) -> tuple[Json, Any]:
        """Return what the commands wrote, and the same as text. Raises ModelBehaviorError where nothing runs them."""
        action, status, run = shell_action(call), call.get("status"), self.executor
        known = status if status in ("in_progress", "completed") else None
        data = ShellCallData(context.tool_call_id, action, known, context.tool_call)
        if run is None:
            raise ModelBehaviorError("Shell tool has no local executor configured.")
        result, failed = await tried(lambda: run(ShellCommandRequest(context, data)), "shell executor")
        entries, limit, provider = _entries(result, action.max_output_length, failed=failed)
        told: Json = {
            "output": [_for_model(one) for one in entries],
            "status": "failed" if failed else "completed",
            **({"max_output_length": limit} if limit is not None else {}),
            **({"shell_output": [_kept(one) for one in entries]} if entries else {}),
            **({"provider_data": provider} if provider else {}),
        }
        text = _rendered(entries) if isinstance(result, ShellResult) else "".join(one.stdout for one in entries)
        return told, text if limit is None else text[:limit]


def shell_action(call: Json) -> ShellActionRequest:
    """Return the commands of a call. Raises ModelBehaviorError where there are none."""
    action: Json = call.get("action") or {}
    given: Any = action.get("commands") or action.get("command")
    commands = [str(one) for one in given if one is not None] if is_list(given) else []
    timeout = action.get("timeout_ms") or None
    if not commands or (timeout is not None and (not isinstance(timeout, int) or timeout < 0)):
        raise ModelBehaviorError(
            f"a shell call has commands {given!r} and timeout_ms {timeout!r}: a list of texts with at least one, and "
            "milliseconds or nothing, are expected"
        )
    most = action.get("max_output_length")
    return ShellActionRequest(commands, timeout, int(most) if isinstance(most, int | float) else None)


def _entries(result: Any, asked: int | None, *, failed: bool) -> tuple[list[ShellCommandOutput], int | None, Json]:
    """Return what each command wrote, no longer than allowed; how long that is; and what the provider adds."""
    if isinstance(result, ShellResult):
        limits = [max(0, one) for one in (result.max_output_length, asked) if one is not None]
        limit = min(limits) if limits else None
        return _cut(result.output, limit), limit, dict(result.provider_data or {})
    text = str(result) if asked is None else str(result)[: max(0, asked)]
    made = ShellCommandOutput(stdout=text)
    made.outcome.exit_code = 1 if failed else 0
    return [made] if text else [], None if asked is None else max(0, asked), {}


def _cut(outputs: Sequence[ShellCommandOutput], limit: int | None) -> list[ShellCommandOutput]:
    if limit is None:
        return list(outputs)
    left, cut = limit, list[ShellCommandOutput]()
    for one in outputs:
        stdout = one.stdout[:left]
        stderr = one.stderr[: left - len(stdout)]
        left -= len(stdout) + len(stderr)
        cut.append(replace(one, stdout=stdout, stderr=stderr))
    return cut


def _for_model(output: ShellCommandOutput) -> Json:
    outcome: Json = {"type": output.outcome.type}
    if output.outcome.type == "exit":
        outcome["exit_code"] = output.exit_code or 0
    return {"stdout": output.stdout, "stderr": output.stderr, "outcome": outcome}


def _kept(output: ShellCommandOutput) -> Json:
    more = {"command": output.command, "provider_data": output.provider_data}
    held = {**_for_model(output), "status": output.status}
    return held | {name: value for name, value in more.items() if value is not None}


def _rendered(outputs: Sequence[ShellCommandOutput]) -> str:
    """Return what the commands wrote as text for people."""
    return "\n\n".join(_told(one) for one in outputs) or "(no output)"


def _told(output: ShellCommandOutput) -> str:
    lines = [
        f"$ {output.command}" if output.command else "",
        output.stdout.rstrip("\n"),
        f"stderr:\n{output.stderr.rstrip()}" if output.stderr.strip() else "",
        f"exit code: {output.exit_code}" if output.exit_code else "",
        "status: timeout" if output.status == "timeout" else "",
    ]
    return "\n".join(line for line in lines if line) or "(no output)"
