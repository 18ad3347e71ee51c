"""Which tool call a fragment belongs to, for streams that leave out, repeat or mix up index, id and name.

This is the judge's own reading of the table in GRAMMAR ("Which call does a fragment belong to?"), written apart from
the engine's, so that the two can differ.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from .pieces import Pieces, appended


class Fragment(NamedTuple):
    """What one entry of `tool_calls` says; "" and None are "not given"."""

    slot: int | None  # `index` in the chunks
    id: str
    name: str
    arguments: str
    custom: bool = False


_DECODER, _JSON_SPACE = json.JSONDecoder(), " \t\r\n"
_OPENING, _SIGN, _WITHIN = re.compile(r'[{\["]'), re.compile(r'[{}\[\]"]'), re.compile(r'["\\]')


class Scan:
    """Follows JSON text that comes in pieces, and knows when a whole object, array or string is there. Linear."""

    __slots__ = ("_begun", "_depth", "_escaped", "_string", "closed", "spoilt")

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


class CallSaid:
    """One call as the chunks tell it. `number` counts the calls in order of appearance; `slot` is the `index` it came
    with first; `announced_id` is the id it had when name and arguments were first there."""

    __slots__ = (
        "_asked",
        "_end",
        "_scan",
        "_scanned",
        "_spoken",
        "_whole",
        "announced_id",
        "custom",
        "id",
        "ids",
        "number",
        "overtaken",
        "pieces",
        "raw_name",
        "shared_id",
        "slot",
        "unclear",
    )

    def __init__(self, number: int, slot: int | None, custom: bool = False) -> None:
        self.number, self.slot, self.custom = number, slot, custom
        self.id = self.raw_name = ""
        self.ids: set[str] | tuple[str, ...] = ()
        self.pieces: Pieces = ()
        self.announced_id: str | None = None
        self.unclear = False  # more came when its arguments were complete, or a fragment that may be another's
        self.shared_id = False  # another call had this id before, so its call_id is made
        self.overtaken = False  # something else came after its arguments were complete
        self._asked = False  # whether it was asked if they are whole
        self._scan: Scan | None = None
        self._scanned = 0  # pieces that the scan was fed
        self._end = ""  # the last character that is no white space; "" as long as there is none
        self._spoken = False  # some piece is not white space, the placeholder too
        self._whole: bool | None = None

    @property
    def name(self) -> str:
        """The name without what models leave behind of their control tokens (`<|…`)."""
        return self.raw_name.partition("<|")[0].strip()

    @property
    def arguments(self) -> str:
        """The arguments; a first fragment `{}` is only a placeholder where more comes."""
        pieces = self.pieces
        if len(pieces) == 1:
            return pieces[0]
        return "".join(pieces[1:] if len(pieces) > 1 and pieces[0] == "{}" and not self.custom else pieces)

    @property
    def begun(self) -> bool:
        """Whether name and arguments are there, so that its name is final."""
        return self.announced_id is not None

    @property
    def complete(self) -> bool:
        """Whether it has a name, and its arguments are a whole JSON object, array or string."""
        if self._end not in _CLOSING or self.custom or not self.raw_name:
            return False
        if self._whole is None:
            self._whole = self._closed() and _parses(self.arguments)
        return self._whole

    @property
    def minds_space(self) -> bool:
        """Whether white space alone is content: in a string, or in a custom tool's input."""
        return self._spoken and (self.custom or self._read().in_string)

    @property
    def call_id(self) -> str:
        """The call_id that its item must have, "" where the chunks leave that open."""
        return "" if self.shared_id or self.unclear else self.id if self.announced_id is None else self.announced_id

    def take(self, fragment: Fragment) -> None:
        """Take what a fragment adds: id, name, arguments."""
        _, id, name, arguments, _ = fragment
        if id:
            self._take_id(id)
        if name and self.announced_id is None:
            self.raw_name = _joined_name(self.raw_name, name) if self.raw_name else name
        if arguments or self.announced_id is None:
            self.extend(arguments)

    def extend(self, arguments: str) -> None:
        """Take a fragment of the arguments."""
        if arguments:
            self._extend(arguments)
        if self.announced_id is None and self.raw_name and self._spoken:
            self.announced_id = self.id

    def _take_id(self, id: str) -> None:
        if not self.ids:
            self.id, self.ids = id, (id,)  # most calls have one, and the collector need not walk this
        elif id not in self.ids:
            self.ids = self.ids if isinstance(self.ids, set) else {*self.ids}
            self.ids.add(id)

    def _extend(self, arguments: str) -> None:
        bare = arguments.strip()
        placeholder = len(self.pieces) == 1 and self.pieces[0] == "{}" and not self.custom
        if bare and not placeholder and self.complete:
            self.unclear = True
        if self.overtaken and self.complete:
            self.unclear = self.unclear or bool(bare and arguments != "".join(self.pieces))
            return
        if placeholder:
            if not bare:
                return
            self._scan, self._scanned, self._end = None, 1, ""  # the placeholder is dropped
        if bare:
            self._spoken, self._end = True, bare[-1]
        if bare or arguments.strip(_JSON_SPACE):
            self._whole = None  # white space neither makes nor spoils a document
        self.pieces = appended(self.pieces, arguments)

    def _closed(self) -> bool:
        """Whether the arguments may be whole. The first time, which is the last one for most calls, nothing is scanned:
        parsing them tells."""
        if not self._asked:
            self._asked = True
            return True
        scan = self._read()
        return scan.closed and not scan.spoilt

    def _read(self) -> Scan:
        """Return the scan of all pieces. Each is read once, and not before somebody asks."""
        scan = self._scan = self._scan or Scan()
        if self._scanned < len(self.pieces):
            scan.feed("".join(self.pieces[self._scanned :]))
            self._scanned = len(self.pieces)
        return scan


# Whatever is a whole object, array or string ends so.
_CLOSING = ("}", "]", '"')


def _joined_name(so_far: str, piece: str) -> str:
    return piece if piece.startswith(so_far) else so_far + piece


def _parses(document: str) -> bool:
    bare = document.strip(_JSON_SPACE)
    try:
        _, end = _DECODER.raw_decode(bare)
    except (ValueError, RecursionError):
        return False
    return end == len(bare)


class _Namesakes:
    """Calls that have one id, in the order in which they came by it."""

    def __init__(self, *calls: CallSaid) -> None:
        self.latest: CallSaid | None = None
        self._count = 0
        self._by_slot: dict[int | None, tuple[int, CallSaid]] = {}
        for call in calls:
            self.add(call)

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
        self._with_id: dict[str, CallSaid | _Namesakes] = {}

    def take(self, fragment: Fragment) -> CallSaid | None:
        """Give a fragment to its call and return that; None where the fragment says nothing but white space."""
        _, id, name, arguments, _ = fragment
        says = bool(id or name or arguments.strip())
        call = self._with(fragment) if id else self._without(fragment)
        if call is None:
            if not says:
                return None
            call = self._new(fragment)
        if id and id not in call.ids:
            self._keep_id(id, call)
        call.take(fragment)
        self._taken(call, latest=bool(id or name or arguments))
        return call if says else None

    def go_on(self, slot: int, arguments: str) -> CallSaid | None:
        """Give arguments without id or name to the call that has this slot, and return that. None where there is none:
        then `take` says what they are."""
        call = self._in_slot.get(slot)
        if call is not None:
            call.extend(arguments)
            self._taken(call, latest=bool(arguments))
        return call

    def _taken(self, call: CallSaid, *, latest: bool) -> None:
        """Keep what follows for other calls from one having taken something."""
        if self._complete and call.begun:
            self.overtake(call)
        if call.complete and call not in self._complete:
            self._complete.append(call)
        if latest:
            self._latest = call
            if call.slot is not None:
                self._in_slot[call.slot] = call  # an index stands for the call touched last on it

    def overtake(self, *but: CallSaid) -> None:
        """Keep that another item was begun: what is complete is closed, but for the calls in `but`."""
        for call in self._complete:
            call.overtaken = call.overtaken or call not in but
        self._complete = [call for call in self._complete if not call.overtaken]

    def _new(self, fragment: Fragment) -> CallSaid:
        call = CallSaid(len(self.calls), fragment.slot, fragment.custom)
        self.calls.append(call)
        call.shared_id = fragment.id in self._with_id
        return call

    def _keep_id(self, id: str, call: CallSaid) -> None:
        held = self._with_id.setdefault(id, call)
        if isinstance(held, _Namesakes):
            held.add(call)
        elif held is not call:
            self._with_id[id] = _Namesakes(held, call)

    def _with(self, fragment: Fragment) -> CallSaid | None:
        """Return the call of a fragment that has an id, None for a new one."""
        known = self._with_id.get(fragment.id)
        if isinstance(known, CallSaid):
            fitting = fragment.slot is None or known.slot is None or known.slot == fragment.slot
            return known if fitting or not fragment.name else None
        if known is not None:
            return known.at(fragment.slot) or (None if fragment.name else known.latest)
        held = self._in_slot.get(fragment.slot) if fragment.slot is not None else None
        if held is None or held.ids or not _related(fragment.name, held.raw_name):
            return None
        again = fragment.name and held.raw_name
        nameless = not fragment.name and fragment.arguments
        return None if (again or nameless) and held.complete else held

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
