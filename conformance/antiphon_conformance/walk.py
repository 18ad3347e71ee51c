"""Walks of the tables, and the items and parts that are walked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from .events import CALLS, FAMILIES
from .grammar import TABLES, Illegal, State
from .read import Json, mapping, text


class Breach(NamedTuple):
    """An illegal move, or another fault seen while walking: the rule that says so, where, and what."""

    code: str
    at: int
    message: str
    about: int = -1  # the place where its item began, -1 for the response


class Walk:
    """A place in one table. Knows which roles were leapt over, and says each kind of fault once."""

    def __init__(self, table: str, start: State) -> None:
        self.table, self.code = TABLES[table]
        self.state = start
        self.owed: set[str] = set()
        self._said: set[tuple[State, str]] = set()

    def step(self, role: str) -> tuple[State, Illegal] | None:
        """Move by `role`. Return the state before it and the illegal move, or None where there is nothing to say."""
        before, cell = self.state, self.table[self.state][role]
        if isinstance(cell, State):
            self.state = cell
            return None
        self.state = cell.to
        if role in self.owed:
            self.owed.discard(role)
            return None
        self.owed.update(cell.owed)
        if (before, role) in self._said:
            return None
        self._said.add((before, role))
        return before, cell

    def allowed(self, state: State) -> str:
        """Return the roles that are legal in `state`, for a message."""
        roles = [role for role, cell in self.table[state].items() if isinstance(cell, State)]
        return ", ".join(roles) or "nothing"


@dataclass(slots=True)
class Part:
    """A part of an item, or the one text of an item that has no parts. `key` is what numbers it, and its number."""

    key: tuple[str, int]
    walk: Walk
    first_at: int
    family: str = ""
    added: Json | None = None
    deltas: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    logprobs: list[object] = field(default_factory=list[object])
    text_done_at: int | None = None
    text_done: Json | None = None
    done_text: str | None = None
    foreign: tuple[int, str] | None = None  # the first event of another kind of text than the part's
    done_at: int | None = None
    done: Json | None = None
    annotations: list[tuple[int, Json]] = field(default_factory=list[tuple[int, Json]])
    whole: bool = True  # False where a resumed stream may have missed its beginning

    @property
    def joined(self) -> str:
        """The deltas joined."""
        return "".join(piece for _, piece in self.deltas)

    @property
    def has_parts(self) -> bool:
        """Whether `part.added` and `part.done` are about it."""
        return self.key[0] in ("content_index", "summary_index")


@dataclass(slots=True)
class Item:
    """An output item as the events tell it. `output_index` and `id` are those it was announced with."""

    output_index: int | None
    id: str
    walk: Walk
    first_at: int
    added_at: int | None = None
    added: Json | None = None
    done_at: int | None = None
    done: Json | None = None
    parts: dict[tuple[str, int], Part] = field(default_factory=dict[tuple[str, int], Part])
    misfits: list[tuple[int, str, str]] = field(default_factory=list[tuple[int, str, str]])

    @property
    def type(self) -> str:
        """The item's type. Where added and done differ, or neither is there, what its texts imply; else done's."""
        told = [text(mapping(one).get("type")) for one in (self.done, self.added) if one is not None]
        if len(told) > 1 and told[0] == told[1]:
            return told[0]
        implied = next((FAMILIES[part.family].items[0] for part in self.parts.values() if part.family), "")
        return implied if len(told) != 1 and implied in (told or [implied]) else told[0] if told else implied

    @property
    def announced(self) -> bool:
        """Whether its `added` came."""
        return self.added_at is not None

    @property
    def real(self) -> bool:
        """Whether it was announced or done; not something that one stray event names."""
        return self.announced or self.done_at is not None

    @property
    def open(self) -> bool:
        """Whether it was begun and is not done."""
        return self.walk.state is State.OPEN

    @property
    def said(self) -> Json:
        """The item as it was last told: done, or else added."""
        return self.done if self.done is not None else mapping(self.added)

    def label(self) -> str:
        """Return how a message names the item."""
        return f"{self.type or 'item'} {self.id or '(no id)'}"

    def in_space(self, name: str) -> list[Part]:
        """Return its parts numbered by `name`, in order of appearance."""
        return [part for part in self.parts.values() if part.key[0] == name]


def owed_texts(item: Item) -> tuple[str, ...]:
    """Return the texts that a done item of this type must have had, by family."""
    return tuple(name for name, family in FAMILIES.items() if item.type in CALLS and item.type in family.items)
