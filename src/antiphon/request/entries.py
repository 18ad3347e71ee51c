"""What a chat history knows: the closed union `Entry`, which items are read as."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

import msgspec

from .content import ChatPart, Content, Scope
from .read import Json
from .report import Place, path_of

Role: TypeAlias = Literal["user", "system", "developer"]


class Message(msgspec.Struct, frozen=True):
    """What the user, the system or the developer said."""

    role: Role
    content: Content
    place: Place


class Answer(msgspec.Struct, frozen=True):
    """Text of the assistant. `refusal`: where what was refused has a field of its own; else it is in the text."""

    text: str
    place: Place
    refusal: str = ""


class Thought(msgspec.Struct, frozen=True):
    """A reasoning item, as it came: `replay` reads it where it is wanted."""

    item: Json
    place: Place

    @property
    def path(self) -> str:
        """Where it is, as the report says it."""
        return path_of(self.place)


class Call(msgspec.Struct, frozen=True):
    """A call of the assistant. `call_id` is the client's, "" where it gave none; `name` is the chat name."""

    call_id: str
    name: str
    arguments: str  # the JSON text of an object
    data: Json  # provider_data
    place: Place


class Output(msgspec.Struct, frozen=True):
    """What a call gave back: what its tool message holds, and the parts that it cannot hold."""

    call_id: str
    content: Content
    place: Place
    shown: tuple[ChatPart, ...] = ()


Entry: TypeAlias = Message | Answer | Thought | Call | Output
Reader: TypeAlias = Callable[[Json, str, Scope], Iterable[Entry]]  # of an item, by its path
