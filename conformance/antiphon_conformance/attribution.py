"""Which tool call a fragment belongs to, for streams that leave out, repeat or mix up index, id and name.

This is the judge's own reading of the table in GRAMMAR ("Which call does a fragment belong to?"), written apart from
the engine's, so that the two can differ.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import NamedTuple


class Fragment(NamedTuple):
    """What one entry of `tool_calls` says; "" and None are "not given"."""

    slot: int | None  # `index` in the chunks
    id: str
    name: str
    arguments: str
    custom: bool = False


_OPENING, _SIGN, _WITHIN = re.compile(r'[{\["]'), re.compile(r'[{}\[\]"]'), re.compile(r'["\\]')


class Scan:
    """Follows JSON text that comes in pieces, and knows when a whole object, array or string is there. Linear."""

    def __init__(self) -> None:
        self.closed = False  # one value is there; what comes after it makes it more than one
        self.spoilt = False
        self._depth = 0
        self._string = self._escaped = self._begun = False

    @property
    def in_string(self) -> bool:
        """Whether a string is open, in which white space counts."""
        return self._string

    def feed(self, piece: str) -> None:
        """Take the next piece."""
        at = 0
        while at < len(piece):
            at = self._in_string(piece, at) if self._string else self._outside(piece, at)

    def _outside(self, piece: str, at: int) -> int:
        """Go on to behind the next sign that counts outside of strings, and return that place."""
        if self.closed:
            self.spoilt = self.spoilt or bool(piece[at:].strip())
            return len(piece)
        found = (_SIGN if self._begun else _OPENING).search(piece, at)
        end = len(piece) if found is None else found.start()
        if not self._begun and piece[at:end].strip():
            self.spoilt = True
        if found is not None:
            self._sign(found.group())
        return end + 1

    def _sign(self, char: str) -> None:
        if char in "}]":
            self._depth -= 1
            self.closed = self._depth <= 0
            return
        self._begun = True
        if char == '"':
            self._string = True
        else:
            self._depth += 1

    def _in_string(self, piece: str, at: int) -> int:
        """Go on to behind the next sign that counts within strings, and return that place."""
        if self._escaped:
            self._escaped = False
            return at + 1
        found = _WITHIN.search(piece, at)
        if found is None:
            return len(piece)
        if found.group() == "\\":
            self._escaped = True
        else:
            self._string = False
            self.closed = self._depth == 0
        return found.end()


@dataclass(slots=True, eq=False)
class CallSaid:
    """One call as the chunks tell it. `announced_id` is the id it had when name and arguments were first there."""

    number: int  # in order of appearance, from 0
    slot: int | None
    custom: bool = False
    id: str = ""
    ids: set[str] = field(default_factory=set[str])
    raw_name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    announced_id: str | None = None
    unclear: bool = False  # more came when its arguments were complete, or a fragment that may be another's: not judged
    shared_id: bool = False  # another call had this id before, so its call_id is made
    overtaken: bool = False  # something else came after its arguments were complete
    _scan: Scan = field(default_factory=Scan)
    _whole: bool | None = None
    _spoken: bool = False  # some piece is not white space

    @property
    def name(self) -> str:
        """The name without what models leave behind of their control tokens (`<|…`)."""
        return self.raw_name.partition("<|")[0]

    @property
    def arguments(self) -> str:
        """The arguments; a first fragment `{}` is only a placeholder where more comes."""
        pieces = [piece for piece in self.pieces if piece]
        return "".join(pieces[1:] if len(pieces) > 1 and pieces[0] == "{}" and not self.custom else pieces)

    @property
    def begun(self) -> bool:
        """Whether name and arguments are there, so that its name is final."""
        return self.announced_id is not None

    @property
    def complete(self) -> bool:
        """Whether it has a name, and its arguments are a whole JSON object, array or string."""
        if self.custom or not self.raw_name or not self._scan.closed or self._scan.spoilt:
            return False
        if self._whole is None:
            self._whole = _parses(self.arguments)
        return self._whole

    @property
    def minds_space(self) -> bool:
        """Whether white space alone is content: in a string, or in a custom tool's input."""
        return self._spoken and (self.custom or self._scan.in_string)

    @property
    def call_id(self) -> str:
        """The call_id that its item must have, "" where the chunks leave that open."""
        return "" if self.shared_id or self.unclear else self.id if self.announced_id is None else self.announced_id

    def take(self, fragment: Fragment) -> None:
        """Take what a fragment adds: id, name, arguments."""
        if fragment.id:
            self.id = self.id or fragment.id
            self.ids.add(fragment.id)
        if fragment.name and not self.begun:
            self.raw_name = _joined_name(self.raw_name, fragment.name)
        if fragment.arguments:
            self._extend(fragment.arguments)
        if self.announced_id is None and self.raw_name and self._spoken:
            self.announced_id = self.id

    def _extend(self, arguments: str) -> None:
        placeholder = self.pieces == ["{}"] and not self.custom
        if self.complete and arguments.strip() and not placeholder:
            self.unclear = True
        if self.overtaken and self.complete:
            self.unclear = self.unclear or bool(arguments.strip() and arguments != "".join(self.pieces))
            return
        if placeholder:
            if not arguments.strip():
                return
            self._scan = Scan()  # the placeholder is dropped
        self._spoken = self._spoken or bool(arguments.strip())
        if arguments.strip(" \t\r\n"):
            self._whole = None  # white space neither makes nor spoils a document
        self.pieces.append(arguments)
        self._scan.feed(arguments)


def _joined_name(so_far: str, piece: str) -> str:
    return piece if piece.startswith(so_far) else so_far + piece


def _parses(document: str) -> bool:
    try:
        json.loads(document)
    except (ValueError, RecursionError):
        return False
    return True


class _Namesakes:
    """The calls that have one id, in the order in which they came by it."""

    def __init__(self) -> None:
        self.latest: CallSaid | None = None
        self._count = 0
        self._by_slot: dict[int | None, tuple[int, CallSaid]] = {}

    def add(self, call: CallSaid) -> None:
        self.latest, self._count = call, self._count + 1
        self._by_slot[call.slot] = self._count, call

    def at(self, slot: int | None) -> CallSaid | None:
        """Return the latest one that has this slot or none; where no slot is given, the latest of all."""
        if slot is None:
            return self.latest
        fitting = [self._by_slot[one] for one in (slot, None) if one in self._by_slot]
        return max(fitting, key=lambda one: one[0])[1] if fitting else None


class CallBook:
    """All calls of a stream, in order of appearance."""

    def __init__(self) -> None:
        self.calls: list[CallSaid] = []
        self._latest: CallSaid | None = None
        self._complete: list[CallSaid] = []  # complete, and nothing came since
        self._in_slot: dict[int, CallSaid] = {}
        self._with_id: dict[str, _Namesakes] = {}

    def take(self, fragment: Fragment) -> CallSaid | None:
        """Give a fragment to its call and return that; None where the fragment says nothing."""
        call = self._with(fragment) if fragment.id else self._without(fragment)
        if call is None and not (fragment.id or fragment.name or fragment.arguments.strip()):
            return None
        if call is None:
            call = CallSaid(len(self.calls), fragment.slot, fragment.custom)
            self.calls.append(call)
            if fragment.slot is not None:
                self._in_slot[fragment.slot] = call
            call.shared_id = fragment.id in self._with_id
        if fragment.id and fragment.id not in call.ids:
            self._with_id.setdefault(fragment.id, _Namesakes()).add(call)
        call.take(fragment)
        if self._complete and call.begun:
            self.overtake(call)
        if call.complete and call not in self._complete:
            self._complete.append(call)
        if fragment.id or fragment.name or fragment.arguments:
            self._latest = call
        return call

    def overtake(self, *but: CallSaid) -> None:
        """Keep that another item was begun: what is complete is closed, but for the calls in `but`."""
        for call in self._complete:
            call.overtaken = call.overtaken or call not in but
        self._complete = [call for call in self._complete if not call.overtaken]

    def _with(self, fragment: Fragment) -> CallSaid | None:
        """Return the call of a fragment that has an id, None for a new one."""
        known = self._with_id.get(fragment.id)
        if known is not None:
            return known.at(fragment.slot) or (None if fragment.name else known.latest)
        held = self._in_slot.get(fragment.slot) if fragment.slot is not None else None
        if held is None or held.ids or not _related(fragment.name, held.raw_name):
            return None
        again = fragment.name and held.raw_name
        nameless = not fragment.name and fragment.arguments
        return None if held.complete and (again or nameless) else held

    def _without(self, fragment: Fragment) -> CallSaid | None:
        """Return the call of a fragment that has no id, None for a new one."""
        held = self._in_slot.get(fragment.slot) if fragment.slot is not None else None
        if held is not None:
            again = fragment.name and held.raw_name
            return None if again and held.complete else held
        if fragment.name:
            return self._named(fragment)
        latest = self._latest
        if latest is None or not (fragment.arguments.strip() or latest.minds_space):
            return None
        if latest.complete or not (latest.id or latest.raw_name):
            return None
        latest.unclear = latest.unclear or len(self.calls) > 1
        return latest

    def _named(self, fragment: Fragment) -> CallSaid | None:
        latest = self._latest
        if fragment.slot is not None or latest is None or latest.begun:
            return None
        if latest.raw_name:
            latest.unclear = True
        return latest


def _related(name: str, held: str) -> bool:
    """Whether `name` can be the name of a call called `held` so far: none given, equal, or longer."""
    return not name or name.startswith(held)
