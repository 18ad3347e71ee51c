"""`Computer` and `AsyncComputer`: what a computer tool acts on. A screenshot is base64 data of a PNG image."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias

from typing_extensions import TypeVar

Environment: TypeAlias = Literal["mac", "windows", "ubuntu", "browser"]
Button: TypeAlias = Literal["left", "right", "wheel", "back", "forward"]
ComputerT = TypeVar("ComputerT", default=Any)


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
