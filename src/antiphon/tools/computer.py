"""A computer that a model uses: what the tool acts on, and what it does. A screenshot is base64 data of a PNG image."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias

from typing_extensions import TypeVar

from antiphon.exceptions import ModelBehaviorError, UserError
from antiphon.run.awaiting import MaybeAwaitable, settled
from antiphon.run.context import RunContextWrapper, ToolContext
from antiphon.run.reading import Json

from .local import CustomDataExtractor, LocalTool

Environment: TypeAlias = Literal["mac", "windows", "ubuntu", "browser"]
Button: TypeAlias = Literal["left", "right", "wheel", "back", "forward"]
ComputerT = TypeVar("ComputerT", default=Any)
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


class _Screen:
    """What both kinds of computer may say of themselves; the API needs it only for its preview tool."""

    @property
    def environment(self) -> Environment | None:
        """Return what kind of system it is."""
        return None

    @property
    def dimensions(self) -> tuple[int, int] | None:
        """Return width and height in pixels."""
        return None


class Computer(_Screen, ABC):
    """A computer whose actions are plain functions."""

    @abstractmethod
    def screenshot(self) -> str: ...
    @abstractmethod
    def click(self, x: int, y: int, button: Button) -> None: ...
    @abstractmethod
    def double_click(self, x: int, y: int) -> None: ...
    @abstractmethod
    def scroll(self, x: int, y: int, scroll_x: int, scroll_y: int) -> None: ...
    @abstractmethod
    def type(self, text: str) -> None: ...
    @abstractmethod
    def wait(self) -> None: ...
    @abstractmethod
    def move(self, x: int, y: int) -> None: ...
    @abstractmethod
    def keypress(self, keys: list[str]) -> None: ...
    @abstractmethod
    def drag(self, path: list[tuple[int, int]]) -> None: ...


class AsyncComputer(_Screen, ABC):
    """A computer whose actions are awaited."""

    @abstractmethod
    async def screenshot(self) -> str: ...
    @abstractmethod
    async def click(self, x: int, y: int, button: Button) -> None: ...
    @abstractmethod
    async def double_click(self, x: int, y: int) -> None: ...
    @abstractmethod
    async def scroll(self, x: int, y: int, scroll_x: int, scroll_y: int) -> None: ...
    @abstractmethod
    async def type(self, text: str) -> None: ...
    @abstractmethod
    async def wait(self) -> None: ...
    @abstractmethod
    async def move(self, x: int, y: int) -> None: ...
    @abstractmethod
    async def keypress(self, keys: list[str]) -> None: ...
    @abstractmethod
    async def drag(self, path: list[tuple[int, int]]) -> None: ...


@dataclass
class ComputerProvider(Generic[ComputerT]):
    """Makes a computer for each run, `create(run_context=…)`, and clears it away, `dispose(run_context=…, computer=…)`."""

    create: Callable[..., Any]
    dispose: Callable[..., Any] | None = None


@dataclass
class ComputerToolSafetyCheckData:
    """A safety check that the API asks to acknowledge before a computer acts."""

    ctx_wrapper: RunContextWrapper[Any]
    agent: Any
    tool_call: Any
    safety_check: Any


@dataclass(eq=False)
class ComputerTool(LocalTool, Generic[ComputerT], kind="computer", call="computer_call"):
    """A computer that the model uses: an instance, or what makes one for each run."""

    type, name = "computer", "computer_use_preview"
    computer: ComputerT | Callable[..., Any] | ComputerProvider[Any]
    on_safety_check: Callable[[ComputerToolSafetyCheckData], MaybeAwaitable[bool]] | None = None
    custom_data_extractor: CustomDataExtractor | None = field(default=None, kw_only=True)

    async def answer(self, call: Json, context: ToolContext[Any], computers: Computers) -> tuple[Json, Any]:
        """Return the screenshot after the actions, and its URL. Raises UserError for a check that is not acknowledged."""
        acknowledged = await self._acknowledged(call, context)
        computer = await computers.of(self, context)
        actions: list[Json] = call.get("actions") or ([call["action"]] if call.get("action") else [])
        shot: Any = None
        for action in actions:
            shot = await _act(computer, action)
        if not actions or actions[-1].get("type") != "screenshot":
            shot = await _act(computer, {"type": "screenshot"})
        url = f"data:image/png;base64,{shot}" if shot else ""
        told: Json = {"output": {"type": "computer_screenshot", "image_url": url}}
        return told | ({"acknowledged_safety_checks": acknowledged} if acknowledged else {}), url

    async def _acknowledged(self, call: Json, context: ToolContext[Any]) -> list[Json]:
        """Return the safety checks of a call, acknowledged. Raises UserError where one is not."""
        checks: list[Json] = call.get("pending_safety_checks") or []
        if checks and self.on_safety_check is None:
            raise UserError(
                "a computer call has pending safety checks, and ComputerTool has no on_safety_check: give one that "
                "returns whether a check is acknowledged"
            )
        for check in checks:
            data = ComputerToolSafetyCheckData(context, context.agent, context.tool_call, check)
            if self.on_safety_check is None or not await settled(self.on_safety_check(data)):
                raise UserError("Computer tool safety check was not acknowledged")
        return checks


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
