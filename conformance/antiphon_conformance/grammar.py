"""The order of events as tables: response, item, part, and text without a part; each `state -> role -> state`.

The tables are total: every cell is the state after the move, or an `Illegal` move. An illegal move says where the
event would have led, so that the walk goes on from there, and which roles it leapt over: these are forgiven when
they come late, since that is the same fault.

Source: the recordings under `responses/openai` and `responses/azure-openai`, which make no illegal move.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple, TypeAlias


class State(Enum):
    """Where a response, an item or a part is in its life. The value is how a message says it."""

    RESUMED = "the stream was resumed"
    START = "nothing came yet"
    CREATED = "the response was created"
    QUEUED = "the response is queued"
    RUNNING = "the response is in progress"
    ERRORED = "an error was reported"
    ENDED = "the response has ended"
    UNSEEN = "it was not announced"
    OPEN = "it is open"
    TEXT_DONE = "its text is done"
    DONE = "it is done"
    GONE = "its item is done"

    # Members are alone of their kind, and the tables are looked into for every event.
    __hash__ = object.__hash__


class Illegal(NamedTuple):
    """A move that is a breach. `owed` are the roles leapt over; `code` is the rule, where it is not the table's own."""

    to: State
    owed: tuple[str, ...] = ()
    code: str = ""


Cell: TypeAlias = State | Illegal
Table: TypeAlias = Mapping[State, Mapping[str, Cell]]

_HEAD = ("created", "in_progress")

RESPONSE: Table = {
    State.RESUMED: {
        "created": State.CREATED,
        "queued": State.QUEUED,
        "in_progress": State.RUNNING,
        "item": State.RUNNING,
        "error": State.ERRORED,
        "failed": State.ENDED,
        "ended": State.ENDED,
    },
    State.START: {
        "created": State.CREATED,
        "queued": Illegal(State.QUEUED, ("created",)),
        "in_progress": Illegal(State.RUNNING, ("created",)),
        "item": Illegal(State.RUNNING, _HEAD),
        "error": Illegal(State.ERRORED, _HEAD),
        "failed": Illegal(State.ENDED, (*_HEAD, "error")),
        "ended": Illegal(State.ENDED, _HEAD),
    },
    State.CREATED: {
        "created": Illegal(State.CREATED),
        "queued": State.QUEUED,
        "in_progress": State.RUNNING,
        "item": Illegal(State.RUNNING, ("in_progress",)),
        "error": Illegal(State.ERRORED, ("in_progress",)),
        "failed": Illegal(State.ENDED, ("in_progress", "error")),
        "ended": Illegal(State.ENDED, ("in_progress",)),
    },
    State.QUEUED: {
        "created": Illegal(State.QUEUED),
        "queued": Illegal(State.QUEUED),
        "in_progress": State.RUNNING,
        "item": Illegal(State.RUNNING, ("in_progress",)),
        "error": Illegal(State.ERRORED, ("in_progress",)),
        "failed": Illegal(State.ENDED, ("in_progress", "error")),
        "ended": Illegal(State.ENDED, ("in_progress",)),
    },
    State.RUNNING: {
        "created": Illegal(State.RUNNING),
        "queued": Illegal(State.RUNNING),
        "in_progress": Illegal(State.RUNNING),
        "item": State.RUNNING,
        "error": State.ERRORED,
        "failed": Illegal(State.ENDED, ("error",), "END007"),
        "ended": State.ENDED,
    },
    State.ERRORED: {
        "created": Illegal(State.ERRORED),
        "queued": Illegal(State.ERRORED),
        "in_progress": Illegal(State.ERRORED),
        "item": Illegal(State.RUNNING, ("failed", "error")),
        "error": Illegal(State.ERRORED),
        "failed": State.ENDED,
        "ended": Illegal(State.ENDED),
    },
    # A second terminal event is STR003's, which counts them.
    State.ENDED: {
        "created": Illegal(State.ENDED),
        "queued": Illegal(State.ENDED),
        "in_progress": Illegal(State.ENDED),
        "item": Illegal(State.ENDED),
        "error": Illegal(State.ENDED),
        "failed": State.ENDED,
        "ended": State.ENDED,
    },
}

ITEM: Table = {
    State.RESUMED: {"added": State.OPEN, "event": State.OPEN, "done": State.DONE},
    State.UNSEEN: {
        "added": State.OPEN,
        "event": Illegal(State.OPEN, ("added",)),
        "done": Illegal(State.DONE, ("added",)),
    },
    State.OPEN: {"added": Illegal(State.OPEN, (), "ITM003"), "event": State.OPEN, "done": State.DONE},
    State.DONE: {
        "added": Illegal(State.DONE, (), "ITM003"),
        "event": Illegal(State.DONE),
        "done": Illegal(State.DONE, (), "ITM003"),
    },
}

# What comes about a part after its item is done is ITM004's. An annotation after the text is done is ITM008's.
PART: Table = {
    State.RESUMED: {
        "added": State.OPEN,
        "delta": State.OPEN,
        "annotation": State.OPEN,
        "text_done": State.TEXT_DONE,
        "part_done": State.DONE,
        "item_done": State.GONE,
    },
    State.UNSEEN: {
        "added": State.OPEN,
        "delta": Illegal(State.OPEN, ("added",)),
        "annotation": Illegal(State.OPEN, ("added",)),
        "text_done": Illegal(State.TEXT_DONE, ("added",)),
        "part_done": Illegal(State.DONE, ("added", "text_done")),
        "item_done": State.GONE,
    },
    State.OPEN: {
        "added": Illegal(State.OPEN),
        "delta": State.OPEN,
        "annotation": State.OPEN,
        "text_done": State.TEXT_DONE,
        "part_done": Illegal(State.DONE, ("text_done",)),
        "item_done": Illegal(State.GONE, ("text_done", "part_done")),
    },
    State.TEXT_DONE: {
        "added": Illegal(State.TEXT_DONE),
        "delta": Illegal(State.TEXT_DONE),
        "annotation": State.TEXT_DONE,
        "text_done": Illegal(State.TEXT_DONE),
        "part_done": State.DONE,
        "item_done": Illegal(State.GONE, ("part_done",)),
    },
    State.DONE: {
        "added": Illegal(State.DONE),
        "delta": Illegal(State.DONE),
        "annotation": Illegal(State.DONE),
        "text_done": Illegal(State.DONE),
        "part_done": Illegal(State.DONE),
        "item_done": State.GONE,
    },
    State.GONE: {
        "added": State.GONE,
        "delta": State.GONE,
        "annotation": State.GONE,
        "text_done": State.GONE,
        "part_done": State.GONE,
        "item_done": State.GONE,
    },
}

# Text that belongs to the item itself: the arguments of a call, the code of an interpreter, the diff of a patch.
BARE: Table = {
    State.RESUMED: {"added": State.OPEN, "delta": State.OPEN, "text_done": State.TEXT_DONE, "item_done": State.GONE},
    State.UNSEEN: {
        "added": State.OPEN,
        "delta": State.OPEN,
        "text_done": State.TEXT_DONE,
        "item_done": Illegal(State.GONE, ("text_done",)),
    },
    State.OPEN: {
        "added": Illegal(State.OPEN),
        "delta": State.OPEN,
        "text_done": State.TEXT_DONE,
        "item_done": Illegal(State.GONE, ("text_done",)),
    },
    State.TEXT_DONE: {
        "added": Illegal(State.TEXT_DONE),
        "delta": Illegal(State.TEXT_DONE),
        "text_done": Illegal(State.TEXT_DONE),
        "item_done": State.GONE,
    },
    State.GONE: {"added": State.GONE, "delta": State.GONE, "text_done": State.GONE, "item_done": State.GONE},
}

# name of the table -> the table, and the code of its rule
TABLES: dict[str, tuple[Table, str]] = {
    "response": (RESPONSE, "STR001"),
    "item": (ITEM, "ITM004"),
    "part": (PART, "PRT001"),
    "bare": (BARE, "CAL001"),
    "hosted": (BARE, "ITM011"),
}
