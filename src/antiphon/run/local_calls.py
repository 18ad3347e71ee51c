"""Calls of the API's own kinds of tools that the caller runs: a computer, shells, patches, free-form tools.

Source of the output items: openai 3.57, `ResponseInputItemParam` (computer_call_output, shell_call_output, …).
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from antiphon.exceptions import AgentsException, ModelBehaviorError, UserError

from .awaiting import settled
from .computer import AsyncComputer, Computer, ComputerProvider
from .editor import ApplyPatchOperation, ApplyPatchResult
from .items import with_caller
from .local_tools import (
    ApplyPatchTool,
    ComputerTool,
    ComputerToolSafetyCheckData,
    CustomTool,
    LocalShellCommandRequest,
    LocalShellTool,
    ShellActionRequest,
    ShellCallData,
    ShellCommandOutput,
    ShellCommandRequest,
    ShellResult,
    ShellTool,
)
from .reading import is_list
from .tool_context import ToolContext

Json: TypeAlias = dict[str, Any]
Local: TypeAlias = CustomTool | ComputerTool[Any] | LocalShellTool | ShellTool | ApplyPatchTool

logger = logging.getLogger("antiphon")

OPERATIONS = ("create_file", "update_file", "delete_file")
# action of a computer -> the names of what it takes. Source: openai 3.57, `ComputerAction`.
ACTIONS: dict[str, tuple[str, ...]] = {
    "click": ("x", "y", "button"),
    "double_click": ("x", "y"),
    "drag": ("path",),
    "keypress": ("keys",),
    "move": ("x", "y"),
    "screenshot": (),
    "scroll": ("x", "y", "scroll_x", "scroll_y"),
    "type": ("text",),
    "wait": (),
}


@dataclass(frozen=True, slots=True)
class Made:
    """What came of a call: the item for the model, what the tool returned, and what the caller keeps beside it."""

    raw_item: Json
    output: Any
    custom_data: Json | None = None


@dataclass(frozen=True)
class LocalToolCustomDataContext:
    """What the `custom_data_extractor` of such a tool is given."""

    tool_context: ToolContext[Any]
    tool: Any
    tool_call: Json
    output: Any
    raw_item: Json


async def make(call: Json, tool: Any, context: ToolContext[Any], computers: Computers) -> Made:
    """Return what came of a call. What a shell, an editor or a free-form tool raises is told to the model."""
    extractor = getattr(tool, "custom_data_extractor", None)  # the shells have none
    match tool:
        case ComputerTool():
            made = await _computer(call, tool, context, computers)  # pyright: ignore[reportUnknownArgumentType]  # of any computer
        case LocalShellTool():
            output: Any = await settled(tool.executor(LocalShellCommandRequest(context, context.tool_call)))
            made = Made({"type": "local_shell_call_output", "call_id": context.tool_call_id, "output": output}, output)
        case ShellTool():
            made = await _shell(call, tool, context)
        case ApplyPatchTool():
            made = await _patch(call, tool, context)
        case CustomTool():
            made = await _custom(call, tool, context)
        case _:
            raise AssertionError(f"{type(tool).__name__} is no tool that the caller runs")
    made = replace(made, raw_item=with_caller(call, made.raw_item))
    if extractor is None:
        return made
    about = LocalToolCustomDataContext(context, tool, call, made.output, dict(made.raw_item))  # pyright: ignore[reportUnknownArgumentType]  # of any computer
    told = await settled(extractor(about))
    return replace(made, custom_data=None if told is None else dict(told))


def refused(call: Json, tool: Any, message: str) -> Made:
    """Return what the model is told of a call that was rejected."""
    held: Json = {"call_id": call.get("call_id") or call.get("id")}
    match tool:
        case ShellTool():
            failed = {"stdout": "", "stderr": message, "outcome": {"type": "exit", "exit_code": 1}}
            raw = {"type": "shell_call_output", **held, "output": [failed]}
        case ApplyPatchTool():
            raw = {"type": "apply_patch_call_output", **held, "output": message, "status": "failed"}
        case _:
            raw = {"type": "custom_tool_call_output", **held, "output": message}
    return Made(with_caller(call, raw), message)


def asked(call: Json, tool: Any, context: Any) -> Any:
    """Return what a call asks for, as the question whether it needs approval is given it."""
    match tool:
        case ShellTool():
            return shell_action(call)
        case ApplyPatchTool():
            return operation(call, context)
        case _:
            return call.get("input")


# --- a computer ------------------------------------------------------------------------------------------------------


class Computers:
    """The computers of a run: each is made once, when it is first used, and cleared away at the end."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, Any]] = {}

    async def of(self, tool: ComputerTool[Any], context: Any) -> Computer | AsyncComputer:
        """Return the computer of a tool. Raises UserError where there is none."""
        if id(tool) not in self._made:
            self._made[id(tool)] = (tool, await _created(tool.computer, context))
        found = self._made[id(tool)][1]
        if not isinstance(found, Computer | AsyncComputer):
            raise UserError(
                f"a ComputerTool has {type(found).__name__}: a Computer, an AsyncComputer or what makes one"
            )
        return found

    async def dispose(self, context: Any) -> None:
        """Clear away the computers that a provider made."""
        made, self._made = self._made, {}
        for tool, computer in made.values():
            provider: Any = tool.computer
            if isinstance(provider, ComputerProvider) and provider.dispose is not None:
                await settled(provider.dispose(run_context=context, computer=computer))


async def _created(given: Any, context: Any) -> Any:
    if isinstance(given, ComputerProvider):
        given = given.create
    return await settled(given(run_context=context)) if callable(given) else given


async def _computer(call: Json, tool: ComputerTool[Any], context: ToolContext[Any], computers: Computers) -> Made:
    acknowledged = await _acknowledged(call, tool, context)
    computer = await computers.of(tool, context)
    actions: list[Json] = call.get("actions") or ([call["action"]] if call.get("action") else [])
    shot: Any = None
    for action in actions:
        shot = await _act(computer, action)
    if not actions or actions[-1].get("type") != "screenshot":
        shot = await _act(computer, {"type": "screenshot"})
    url = f"data:image/png;base64,{shot}" if shot else ""
    raw: Json = {
        "call_id": context.tool_call_id,
        "output": {"type": "computer_screenshot", "image_url": url},
        "type": "computer_call_output",
        **({"acknowledged_safety_checks": acknowledged} if acknowledged else {}),
    }
    return Made(raw, url)


async def _acknowledged(call: Json, tool: ComputerTool[Any], context: ToolContext[Any]) -> list[Json]:
    """Return the safety checks of a call, acknowledged. Raises UserError where one is not."""
    checks: list[Json] = call.get("pending_safety_checks") or []
    if checks and tool.on_safety_check is None:
        raise UserError(
            "a computer call has pending safety checks, and ComputerTool has no on_safety_check: give one that "
            "returns whether a check is acknowledged"
        )
    for check in checks:
        data = ComputerToolSafetyCheckData(context, context.agent, context.tool_call, check)
        if tool.on_safety_check is None or not await settled(tool.on_safety_check(data)):
            raise UserError("Computer tool safety check was not acknowledged")
    return checks


async def _act(computer: Any, action: Json) -> Any:
    kind = str(action.get("type"))
    if kind not in ACTIONS:
        raise ModelBehaviorError(f"a computer was asked for {kind!r}: it can {', '.join(ACTIONS)}")
    values = [action.get(name) for name in ACTIONS[kind]]
    if kind == "drag":
        values = [[(point["x"], point["y"]) for point in action.get("path") or ()]]
    method: Callable[..., Any] = getattr(computer, kind)  # the table has the names of `Computer`
    held = action.get("keys") if kind != "keypress" else None
    if held and "keys" in inspect.signature(method).parameters:
        return await settled(method(*values, keys=held))
    return await settled(method(*values))


# --- shells ----------------------------------------------------------------------------------------------------------


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


async def _shell(call: Json, tool: ShellTool, context: ToolContext[Any]) -> Made:
    action = shell_action(call)
    status = call.get("status")
    data = ShellCallData(
        context.tool_call_id, action, status if status in ("in_progress", "completed") else None, context.tool_call
    )
    run = tool.executor
    if run is None:
        raise ModelBehaviorError("Shell tool has no local executor configured.")
    result, failed = await _tried(lambda: run(ShellCommandRequest(context, data)), "shell executor")
    entries, limit, provider = _entries(result, action.max_output_length, failed=failed)
    raw: Json = {
        "type": "shell_call_output",
        "call_id": context.tool_call_id,
        "output": [_for_model(one) for one in entries],
        "status": "failed" if failed else "completed",
        **({"max_output_length": limit} if limit is not None else {}),
        **({"shell_output": [_kept(one) for one in entries]} if entries else {}),
        **({"provider_data": provider} if provider else {}),
    }
    text = _rendered(entries) if isinstance(result, ShellResult) else "".join(one.stdout for one in entries)
    return Made(raw, text if limit is None else text[:limit])


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


# --- patches and free-form tools -------------------------------------------------------------------------------------


def operation(call: Json, context: Any) -> ApplyPatchOperation:
    """Return the change that a call asks for. Raises ModelBehaviorError where it is none."""
    held: Json = call.get("operation") or {}
    kind, path, diff, move_to = (held.get(name) for name in ("type", "path", "diff", "move_to"))
    needs_diff = kind != "delete_file"
    if kind not in OPERATIONS or not isinstance(path, str) or not path or (needs_diff and not isinstance(diff, str)):
        raise ModelBehaviorError(
            f"an apply_patch call asks for {kind!r} of {path!r}{' without a diff' if needs_diff and not diff else ''}: "
            f"one of {', '.join(OPERATIONS)} with a path is expected, and a diff but for a deletion"
        )
    return ApplyPatchOperation(kind, path, diff if needs_diff else None, context, move_to)


async def _patch(call: Json, tool: ApplyPatchTool, context: ToolContext[Any]) -> Made:
    change = operation(call, context)
    method: Callable[..., Any] = getattr(tool.editor, change.type)  # the types are the names of the methods
    result, failed = await _tried(lambda: method(change), "editor")
    if isinstance(result, Mapping):
        result = ApplyPatchResult(**cast("Json", result))
    if isinstance(result, ApplyPatchResult):
        failed, result = failed or result.status == "failed", result.output
    text = "" if result is None else str(result)
    status = "failed" if failed else "completed"
    raw = {"type": "apply_patch_call_output", "call_id": context.tool_call_id, "status": status}
    return Made({**raw, "output": text} if text else raw, text)


async def _custom(call: Json, tool: CustomTool, context: ToolContext[Any]) -> Made:
    said = call.get("input")
    if not isinstance(said, str):
        raise ModelBehaviorError(f"a call of {tool.name!r} has input of type {type(said).__name__}: text is expected")
    result, _ = await _tried(lambda: tool.on_invoke_tool(context, said), tool.name)
    text = str(result)
    return Made({"type": "custom_tool_call_output", "call_id": context.tool_call_id, "output": text}, text)


async def _tried(job: Callable[[], Any], what: str) -> tuple[Any, bool]:
    """Return what a tool returns; or what it raises, as text, and True."""
    try:
        return await settled(job()), False
    except AgentsException:
        raise
    except Exception as error:  # noqa: BLE001  # whatever a tool raises is told to the model
        logger.warning("the %s failed: %s", what, type(error).__name__)
        return str(error) or type(error).__name__, True
