"""Walks of the tables, and the items and parts that are walked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .events import BY_PART, CALLS, FAMILIES, Place
from .grammar import TABLES, Illegal, State
from .read import Json, listed, mapping, mappings, text


class Breach(NamedTuple):
    """An illegal move, or another fault seen while walking: the rule that says so, where, and what."""

    code: str
    at: int
    message: str
    about: int = -1  # the place where its item began, -1 for the response


_NOTHING: frozenset[Any] = frozenset()


class Walk:
    """A place in one table. Knows which roles were leapt over, and says each kind of fault once."""

    __slots__ = ("_said", "code", "owed", "state", "table")

    def __init__(self, table: str, start: State) -> None:
        self.table, self.code = TABLES[table]
        self.state = start
        self.owed: frozenset[str] = _NOTHING
        self._said: frozenset[tuple[State, str]] = _NOTHING

    def step(self, role: str) -> tuple[State, Illegal] | None:
        """Move by `role`. Return the state before it and the illegal move, or None where there is nothing to say."""
        before, cell = self.state, self.table[self.state][role]
        if isinstance(cell, State):
            self.state = cell
            return None
        self.state = cell.to
        if role in self.owed:
            self.owed -= {role}
            return None
        self.owed |= frozenset(cell.owed)
        if (before, role) in self._said:
            return None
        self._said |= {(before, role)}
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
    deltas: list[str] = field(default_factory=list[str])
    logprobs: list[object] | tuple[()] = ()
    text_done_at: int | None = None
    text_done: Json | None = None
    done_text: str | None = None
    foreign: tuple[int, str] | None = None  # the first event of another kind of text than the part's
    done_at: int | None = None
    done: Json | None = None
    annotations: list[tuple[int, Json]] | tuple[()] = ()
    whole: bool = True  # False where a resumed stream may have missed its beginning
    _joined: str | None = None

    def take(self, event: Json) -> None:
        """Keep what a delta says."""
        self._joined = None
        self.deltas.append(text(event.get("delta")))
        if logprobs := listed(event.get("logprobs")):
            self.logprobs = self.logprobs or []
            self.logprobs += logprobs

    def annotate(self, at: int, event: Json) -> None:
        """Keep an annotation."""
        self.annotations = self.annotations or []
        self.annotations.append((at, event))

    @property
    def joined(self) -> str:
        """The deltas joined."""
        if self._joined is None:
            self._joined = "".join(self.deltas)
        return self._joined

    @property
    def has_parts(self) -> bool:
        """Whether `part.added` and `part.done` are about it."""
        return self.key[0] in ("content_index", "summary_index")


class Run(NamedTuple):
    """Deltas of one text, one after another: each but the first moves nothing. The last three are as the events have
    them."""

    place: Place
    part: Part
    output_index: object
    item_id: object
    number: object

    def goes_on(self, event: Json) -> bool:
        """Whether a delta names just what those before it named; 1, 1.0 and True are not the same."""
        output_index, given = event.get("output_index"), event.get(self.place.numbered_by)
        return (
            output_index == self.output_index
            and event.get("item_id") == self.item_id
            and given == self.number
            and output_index.__class__ is self.output_index.__class__
            and given.__class__ is self.number.__class__
        )


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
    misfits: list[tuple[int, str, str]] | tuple[()] = ()
    _settled: str | None = None

    @property
    def type(self) -> str:
        """The item's type. Where added and done differ, or neither is there, what its texts imply; else done's."""
        return self._told_type() if self._settled is None else self._settled

    def misfit(self, at: int, code: str, message: str) -> None:
        """Keep where an event does not name the item as it was announced, and the rule that says so."""
        self.misfits = self.misfits or []
        self.misfits.append((at, code, message))

    def settle(self) -> None:
        """Keep the type as it is: no event is left that could change it."""
        self._settled = self._told_type()

    def _told_type(self) -> str:
        done, added = _type_of(self.done), _type_of(self.added)
        if done == added and done is not None:
            return done
        told = [one for one in (done, added) if one is not None]
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

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield each text of a part and its family: as the item was done, or as its deltas have it where it was not."""
        if self.done is None:
            yield from ((part.family, part.joined) for part in self.parts.values())
            return
        for part in (*mappings(self.done.get("summary")), *mappings(self.done.get("content"))):
            family = BY_PART.get(text(part.get("type")))
            if family is not None:
                yield family, text(part.get(FAMILIES[family].text))

    def in_space(self, name: str) -> list[Part]:
        """Return its parts numbered by `name`, in order of appearance."""
        return [part for part in self.parts.values() if part.key[0] == name]


def _type_of(told: Json | None) -> str | None:
    """Return the type that an event says an item has, None where no event says so."""
    return None if told is None else text(told.get("type"))


def owed_texts(item: Item) -> tuple[str, ...]:
    """Return the texts that a done item of this type must have had, by family."""
    return _OWED.get(item.type, ())


# type of call -> the families of its texts
_OWED = {kind: tuple(name for name, family in FAMILIES.items() if kind in family.items) for kind in CALLS}
