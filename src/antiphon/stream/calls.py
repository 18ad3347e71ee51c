"""Tool calls as they come in: which call a fragment belongs to, and what is known of each call.

The attribution is a table, `TABLE`: what is known of a fragment's id, index and name decides what becomes of it; the
first row that fits counts. Numbers in messages count calls in order of appearance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, TypeAlias

from .deltas import CallDelta
from .scan import Scanner

CONTROL = "<|"  # residue of control tokens in a name is cut from here on
Index: TypeAlias = int | Literal["legacy"] | None


@dataclass(slots=True, eq=False)
class Call:
    """A tool call: what its fragments have told so far."""

    number: int  # in order of appearance
    index: Index
    kind: Literal["function", "custom"]
    call_id: str = ""
    ids: set[str] = field(default_factory=set[str])  # all ids it was called by
    name: str = ""
    raw_name: str = ""
    pieces: list[str] = field(default_factory=list[str])  # of the arguments; joined once, when the item closes
    unsaid: list[str] = field(default_factory=list[str])  # the last of them, which were not handed out
    begun: bool = False  # something other than white space came as arguments
    closed: bool = False
    data: dict[str, Any] = field(default_factory=dict[str, Any])  # for provider_data
    scanner: Scanner = field(init=False)
    # how many pieces were counted, and the characters in them
    _counted: tuple[int, int] = field(default=(0, 0), init=False)

    def __post_init__(self) -> None:
        self.scanner = Scanner(self.pieces)

    @property
    def is_settled(self) -> bool:
        """Whether it is an item, or would be one if it were its turn: it has a name and its arguments began."""
        return self.begun and self.name != ""

    @property
    def waits(self) -> bool:
        """Whether all it has is a `{}`, which may stand for arguments that are still to come."""
        return self.kind == "function" and self.unsaid == self.pieces == ["{}"]

    @property
    def size(self) -> int:
        """How many characters of arguments came. Each piece is counted once, and only when this is asked."""
        counted, size = self._counted
        if counted < len(self.pieces):
            size += sum(map(len, self.pieces[counted:]))
            self._counted = len(self.pieces), size
        return size

    def has_whole_input(self) -> bool:
        """Return whether the arguments are complete JSON. A custom tool's input is never known to be complete."""
        return self.kind == "function" and self.begun and self.scanner.is_complete()

    def is_complete(self) -> bool:
        """Return whether the call is complete: it has a name, and its arguments are complete JSON."""
        return self.name != "" and self.has_whole_input()

    def arguments(self) -> str:
        """Return the arguments so far."""
        return "".join(self.pieces)

    def minds_white_space(self) -> bool:
        """Return whether white space would be content here."""
        return self.begun and (self.kind == "custom" or self.scanner.is_in_string())

    def take_name(self, name: str) -> bool:
        """Take a name, or a piece of one. Return False where the call has another name already, for good."""
        if self.is_settled:
            return _clean(name) in ("", self.name)
        if not name.startswith(self.raw_name):
            name = self.raw_name + name
        self.raw_name = name
        self.name = _clean(name)
        return True

    def take(self, arguments: str) -> None:
        """Take a fragment of the arguments. A first fragment that is exactly `{}` gives way to what follows it."""
        if self.waits:
            if not arguments.strip():
                return
            self._forget_arguments()
        self.pieces.append(arguments)
        self.unsaid.append(arguments)
        self.begun = self.begun or self.kind == "custom" or not arguments.isspace()

    def begin_anew(self, index: Index, kind: Literal["function", "custom"]) -> None:
        """Be another call, of which nothing was told yet, in the same place. Only before it is announced."""
        self.index, self.kind = index, kind
        self.name = self.raw_name = ""
        self._forget_arguments()

    def _forget_arguments(self) -> None:
        self.pieces.clear()
        self.unsaid.clear()
        self._counted = (0, 0)
        self.begun = False
        self.scanner = Scanner(self.pieces)

    def repeats(self, arguments: str) -> bool:
        """Return whether `arguments` says again what a complete call has."""
        return len(arguments) > 1 and self.holds(arguments) and self.is_complete()

    def holds(self, arguments: str) -> bool:
        """Return whether `arguments` is all that came. The sizes are compared first, so that little is joined."""
        return self.size == len(arguments) and arguments == self.arguments()


def _clean(name: str) -> str:
    return name.partition(CONTROL)[0].strip()


class IdIs(Enum):
    """What is known of a fragment's id."""

    NONE = "not given"
    HERE = "known on that index"
    ELSEWHERE = "known on another index"
    NEW = "new"


class IndexIs(Enum):
    """What is known of a fragment's index."""

    USED = "used"
    UNOPENED = "never opened"
    MISSING = "missing"


class NameIs(Enum):
    """What is known of a fragment's name, beside the call's that it would go to."""

    NONE = "not given"
    RELATED = "equal, longer, or the call has none"
    OTHER = "another"


Verdict: TypeAlias = Callable[["Calls", CallDelta, Call | None], Call | None]
ANY_ID, ANY_INDEX, ANY_NAME = frozenset(IdIs), frozenset(IndexIs), frozenset(NameIs)
GIVEN = frozenset({NameIs.RELATED, NameIs.OTHER})


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table. `anonymous`: only where the call on that index has no id yet."""

    id: frozenset[IdIs]
    index: frozenset[IndexIs]
    name: frozenset[NameIs]
    verdict: Verdict
    anonymous: bool = False


class Calls:
    """All calls of a stream."""

    def __init__(self) -> None:
        self.all: list[Call] = []
        self.latest: Call | None = None  # the call touched last
        self._at: dict[Index, Call] = {}  # index -> the call touched last on it
        self._by_id: dict[str, list[Call]] = {}  # any id that was given, or made -> the calls that go by it
        self._here: dict[tuple[str, Index], Call] = {}  # the last of them on an index
        self._taken: set[str] = set()  # the call_ids

    def attribute(self, fragment: CallDelta) -> tuple[Call | None, bool]:
        """Return the call that `fragment` belongs to and whether it is new; None where it is nothing."""
        if not fragment.id and not fragment.name and fragment.index is not None:
            call = self._at.get(fragment.index)
            if call is not None and call is self.latest:
                return call, False
        known = len(self.all)
        call = self._by_table(fragment)
        if call is not None:
            self.latest = call
            self._at[call.index] = call
        return call, len(self.all) > known

    def _by_table(self, fragment: CallDelta) -> Call | None:
        index = index_of(fragment)
        id_is, by_id = self._id(fragment.id, index)
        index_is = IndexIs.MISSING if index is None else IndexIs.USED if index in self._at else IndexIs.UNOPENED
        call = by_id or (self.latest if index is None else self._at.get(index))
        name_is = _name(fragment.name, call)
        anonymous = call is not None and not call.ids
        for row in TABLE:
            if id_is in row.id and index_is in row.index and name_is in row.name and (anonymous or not row.anonymous):
                return row.verdict(self, fragment, call)
        raise AssertionError(f"no row for {id_is}, {index_is}, {name_is}")  # the test of the table walks all

    def _id(self, id: str, index: Index) -> tuple[IdIs, Call | None]:
        if not id:
            return IdIs.NONE, None
        known = self._by_id.get(id)
        if not known:
            return IdIs.NEW, None
        if index is None:
            return IdIs.HERE, known[-1]
        here = [call for place in (index, None) if (call := self._here.get((id, place))) is not None]
        return (IdIs.HERE, max(here, key=_number)) if here else (IdIs.ELSEWHERE, known[-1])

    def open(self, fragment: CallDelta, _: Call | None = None) -> Call:
        """Return a new call for `fragment`: in the place of the `function_call`, where that is not announced yet."""
        index = index_of(fragment)
        mirrored = None if fragment.legacy else self._at.pop("legacy", None)
        if mirrored is not None and not mirrored.is_settled:
            mirrored.begin_anew(index, fragment.kind)  # `function_call` is no call where there are `tool_calls`
            return mirrored
        call = Call(len(self.all), index, fragment.kind)
        self.all.append(call)
        return call

    def call_by(self, id: object) -> Call | None:
        """Return the call that goes by `id` and is not closed, or None."""
        known = self._by_id.get(id, []) if isinstance(id, str) else []
        return next((call for call in known if not call.closed), None)

    def take_id(self, call: Call, id: str) -> None:
        """Let `call` go by `id`: it is its call_id, if it has none and no other call has that one."""
        if id in call.ids:
            return
        call.ids.add(id)
        self._by_id.setdefault(id, []).append(call)
        self._here[id, call.index] = call
        if not call.call_id and id not in self._taken:
            self._take_call_id(call, id)

    def make_id(self, call: Call, make: Callable[[], str]) -> None:
        """Give `call` a call_id from `make`, if it has none: one that no call goes by."""
        while not call.call_id:
            made = make()
            if made not in self._taken and made not in self._by_id:
                self._take_call_id(call, made)

    def _take_call_id(self, call: Call, id: str) -> None:
        call.call_id = id
        self._taken.add(id)


def _number(call: Call) -> int:
    return call.number


def index_of(fragment: CallDelta) -> Index:
    """Return the index of `fragment`; all `function_call` deltas are one call, with a place of its own."""
    return "legacy" if fragment.legacy else fragment.index


def _name(name: str, call: Call | None) -> NameIs:
    if not name.strip():
        return NameIs.NONE
    if call is None or not call.name:
        return NameIs.RELATED
    return NameIs.RELATED if _clean(name).startswith(call.name) else NameIs.OTHER


# --- verdicts ----------------------------------------------------------------------------------------------------


def _continue(calls: Calls, fragment: CallDelta, call: Call | None) -> Call | None:
    return call


def _open(calls: Calls, fragment: CallDelta, call: Call | None) -> Call | None:
    return calls.open(fragment)


def _continue_or_open(calls: Calls, fragment: CallDelta, call: Call | None) -> Call | None:
    """Without an index, an id and a name after complete arguments begin a new call, unless they say the same again."""
    more = bool(fragment.arguments.strip()) and call is not None and not call.repeats(fragment.arguments)
    return calls.open(fragment) if call is None or (more and call.is_complete()) else call


def _adopt(calls: Calls, fragment: CallDelta, call: Call | None) -> Call | None:
    """The id is that call's; but where its arguments are complete and more than an id comes, it is a new call's."""
    more = bool(fragment.name or fragment.arguments)
    return calls.open(fragment) if call is None or (more and call.is_complete()) else call


def _repeat(calls: Calls, fragment: CallDelta, call: Call | None) -> Call | None:
    """A name given again after complete arguments begins a new call."""
    return calls.open(fragment) if call is None or call.is_complete() else call


def _tail(calls: Calls, fragment: CallDelta, call: Call | None) -> Call | None:
    """Nameless arguments go on with the latest call, unless that one is complete or not a call at all.

    White space alone is nothing, but for a call that is in the middle of a string or of a custom tool's input.
    """
    latest = calls.latest
    if not fragment.arguments.strip() and not fragment.extra:
        return latest if latest is not None and latest.minds_white_space() else None
    if latest is None or not (latest.ids or latest.name) or latest.is_complete():
        return calls.open(fragment)
    return latest


def _name_of_latest(calls: Calls, fragment: CallDelta, call: Call | None) -> Call | None:
    latest = calls.latest
    return calls.open(fragment) if latest is None or latest.is_settled else latest


# Design: GRAMMAR, "Which call does a fragment belong to?"
TABLE: tuple[Row, ...] = (
    Row(frozenset({IdIs.HERE}), frozenset({IndexIs.MISSING}), GIVEN, _continue_or_open),
    Row(frozenset({IdIs.HERE}), ANY_INDEX, ANY_NAME, _continue),
    Row(frozenset({IdIs.ELSEWHERE}), ANY_INDEX, frozenset({NameIs.NONE}), _continue),
    Row(frozenset({IdIs.ELSEWHERE}), ANY_INDEX, GIVEN, _open),
    Row(frozenset({IdIs.NEW}), frozenset({IndexIs.USED}), ANY_NAME - {NameIs.OTHER}, _adopt, anonymous=True),
    Row(frozenset({IdIs.NEW}), ANY_INDEX, ANY_NAME, _open),
    Row(frozenset({IdIs.NONE}), frozenset({IndexIs.USED}), frozenset({NameIs.RELATED}), _repeat),
    Row(frozenset({IdIs.NONE}), frozenset({IndexIs.USED}), frozenset({NameIs.OTHER}), _repeat),
    Row(frozenset({IdIs.NONE}), frozenset({IndexIs.USED}), frozenset({NameIs.NONE}), _continue),
    Row(frozenset({IdIs.NONE}), frozenset({IndexIs.UNOPENED}), GIVEN, _open),
    Row(frozenset({IdIs.NONE}), ANY_INDEX - {IndexIs.USED}, frozenset({NameIs.NONE}), _tail),
    Row(frozenset({IdIs.NONE}), frozenset({IndexIs.MISSING}), GIVEN, _name_of_latest),
)
