"""Walks of the tables, and the items and parts that are walked.

A long stream has one `Item` and one `Part` or two for each thing it tells, and all of them are there until the stream
is judged. So each is one object with slots that is its own walk, and what few of them have is `()` or None until then:
Python's collector walks every list and dict that is kept, again and again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from .events import BY_PART, CALLS, FAMILIES, Place
from .grammar import TABLES, Illegal, State
from .pieces import Pieces, appended
from .read import Json, listed, mapping, text

Key: TypeAlias = tuple[str, int]

# what numbers the parts that are added and done -> what the events that do so are called
_PARTED = {"content_index": "content_part", "summary_index": "reasoning_summary_part"}


class Breach(NamedTuple):
    """An illegal move, or another fault seen while walking: the rule that says so, where, and what."""

    code: str
    at: int
    message: str
    about: int = -1  # the place where its item began, -1 for the response


class Walk:
    """A place in one table. Knows which roles were leapt over, and says each kind of fault once."""

    __slots__ = ("_said", "code", "owed", "state", "table")

    def __init__(self, table: str, start: State) -> None:
        self.table, self.code = TABLES[table]
        self.state = start
        self.owed: tuple[str, ...] = ()
        self._said: tuple[tuple[State, str], ...] = ()

    def step(self, role: str) -> tuple[State, Illegal] | None:
        """Move by `role`. Return the state before it and the illegal move, or None where there is nothing to say."""
        cell = self.table[self.state][role]
        if isinstance(cell, State):
            self.state = cell
            return None
        return self._illegal(role, cell)

    def _illegal(self, role: str, cell: Illegal) -> tuple[State, Illegal] | None:
        before, self.state = self.state, cell.to
        if role in self.owed:
            self.owed = tuple(one for one in self.owed if one != role)
            return None
        self.owed += tuple(one for one in cell.owed if one not in self.owed)
        if (before, role) in self._said:
            return None
        self._said += ((before, role),)
        return before, cell

    def allowed(self, state: State) -> str:
        """Return the roles that are legal in `state`, for a message."""
        roles = [role for role, cell in self.table[state].items() if isinstance(cell, State)]
        return ", ".join(roles) or "nothing"


class Part(Walk):
    """A part of an item, or the one text of an item that has no parts. `key` is what numbers it, and its number."""

    __slots__ = (
        "_joined",
        "added",
        "annotations",
        "deltas",
        "done",
        "done_at",
        "done_text",
        "family",
        "first_at",
        "foreign",
        "has_parts",
        "key",
        "logprobs",
        "text_done",
        "text_done_at",
        "whole",
    )

    def __init__(self, table: str, start: State, key: Key, first_at: int, family: str, *, whole: bool) -> None:
        Walk.__init__(self, table, start)
        self.key, self.first_at, self.family = key, first_at, family
        self.whole = whole  # False where a resumed stream may have missed its beginning
        self.has_parts = key[0] in _PARTED  # whether `part.added` and `part.done` are about it
        self.added: Json | None = None
        self.deltas: Pieces = ()
        self.logprobs: list[object] | tuple[()] = ()
        self.annotations: list[tuple[int, Json]] | tuple[()] = ()
        self.text_done_at: int | None = None
        self.text_done: Json | None = None
        self.done_text: str | None = None
        self.foreign: tuple[int, str] | None = None  # the first event of another kind of text than the part's
        self.done_at: int | None = None
        self.done: Json | None = None
        self._joined: str | None = ""

    def take(self, event: Json) -> None:
        """Keep what a delta says."""
        deltas, delta = self.deltas, text(event.get("delta"))
        if isinstance(deltas, list):
            deltas.append(delta)
        else:
            self.deltas = appended(deltas, delta)
        self._joined = None
        logprobs = event.get("logprobs")
        if logprobs and isinstance(logprobs, list):
            self.logprobs = self.logprobs or []
            self.logprobs += logprobs

    def event(self, role: str) -> str:
        """Return how a message names what comes to the part: the type of event, without `response.`."""
        match role:
            case "text_done":
                return f"{self.family or 'text'}.done"
            case "added" | "part_done" if self.key[0] in _PARTED:
                return f"{_PARTED[self.key[0]]}.{role.removeprefix('part_')}"
            case "item_done":
                return "output_item.done"
            case "annotation":
                return "output_text.annotation.added"
            case _:
                return f"{self.family or 'text'}.{role}"

    def allowed(self, state: State) -> str:
        """Return the events that are legal in `state`, for a message."""
        roles = [role for role, cell in self.table[state].items() if isinstance(cell, State)]
        return ", ".join(map(self.event, roles)) or "nothing"

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


class Item(Walk):
    """An output item as the events tell it. `output_index` and `id` are those it was announced with; `type` is what
    added and done say. Where these differ, or neither is there, it is what its texts imply; else done's."""

    __slots__ = ("added", "added_at", "done", "done_at", "first_at", "id", "misfits", "output_index", "parts", "type")

    def __init__(self, output_index: int | None, id: str, start: State, first_at: int) -> None:
        Walk.__init__(self, "item", start)
        self.output_index, self.id, self.first_at = output_index, id, first_at
        self.type = ""
        self.added_at: int | None = None
        self.added: Json | None = None
        self.done_at: int | None = None
        self.done: Json | None = None
        self.parts: dict[Key, Part] = {}
        self.misfits: list[tuple[int, str, str]] | tuple[()] = ()

    def misfit(self, at: int, code: str, message: str) -> None:
        """Keep where an event does not name the item as it was announced, and the rule that says so."""
        self.misfits = self.misfits or []
        self.misfits.append((at, code, message))

    def announce(self, at: int, told: Json | None) -> None:
        """Keep what `added` says."""
        self.added_at, self.added = at, told
        if told is not None and self.done is None:
            self.type = text(told.get("type"))
        else:
            self.settle()

    def close(self, at: int, told: Json | None) -> None:
        """Keep what `done` says."""
        self.done_at, self.done = at, told
        self.settle()

    def settle(self) -> None:
        """Keep the type that follows from what came so far: called where that may be another than before."""
        added, done = self.added, self.done
        only = added if done is None else done if added is None or added.get("type") == done.get("type") else None
        if only is not None:
            self.type = text(only.get("type"))
            return
        implied = next((FAMILIES[part.family].items[0] for part in self.parts.values() if part.family), "")
        told = [text(one.get("type")) for one in (done, added) if one is not None]
        self.type = implied if not told or implied in told else told[0]

    @property
    def announced(self) -> bool:
        """Whether its `added` came."""
        return self.added_at is not None

    @property
    def real(self) -> bool:
        """Whether it was announced or done; not something that one stray event names."""
        return self.added_at is not None or self.done_at is not None

    @property
    def open(self) -> bool:
        """Whether it was begun and is not done."""
        return self.state is State.OPEN

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
        for field in ("summary", "content"):
            for part in listed(self.done.get(field)):
                family = BY_PART.get(text(mapping(part).get("type")))
                if family is not None:
                    yield family, text(part.get(FAMILIES[family].text))

    def in_space(self, name: str) -> list[Part]:
        """Return its parts numbered by `name`, in order of appearance."""
        return [part for (space, _), part in self.parts.items() if space == name]


def owed_texts(item: Item) -> tuple[str, ...]:
    """Return the texts that a done item of this type must have had, by family."""
    return _OWED.get(item.type, ())


# type of call -> the families of its texts
_OWED = {kind: tuple(name for name, family in FAMILIES.items() if kind in family.items) for kind in CALLS}
