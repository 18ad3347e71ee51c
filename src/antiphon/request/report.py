"""What a conversion could not carry as it came: the report, and the error for a request that cannot be sent.

No entry holds what was said in the conversation, so a report may go into a log or a header.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from antiphon.errors import BadInput

Place: TypeAlias = int | str  # of an item: its number in the input, or its path where it is inside another

# dropped: it is not in the body. weakened: something that says less stands for it. changed: it is carried in another
# form. made: it was not there, and the backend needs it. ignored: it is not in the body, and the answer does not
# depend on it (cache hints, reasoning of another family).
ChangeKind: TypeAlias = Literal["dropped", "weakened", "changed", "made", "ignored"]

REFUSED: frozenset[ChangeKind] = frozenset({"dropped", "weakened"})  # by strict
MOST_SHOWN = 160  # characters of each part of a change, in a log


def path_of(place: Place) -> str:
    """Return where it is, as the report says it."""
    return f"input[{place}]" if isinstance(place, int) else place


class Change(msgspec.Struct, frozen=True, gc=False):
    """One thing that is not in the body as it came. `path` is where it came: `input[3].content[1]`, `tools[0]`."""

    kind: ChangeKind
    path: str
    came: str
    became: str | None
    why: str

    def __str__(self) -> str:
        """Return it as one line that can be logged: what came may hold line ends, which would forge another."""
        became = "" if self.became is None else f" -> {_cut(self.became)}"
        told = f"{self.path}: {self.kind}: {_cut(self.came)}{became} ({_cut(self.why)})"
        return told if told.isprintable() else repr(told)[1:-1]


def _cut(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


class Remark(msgspec.Struct, frozen=True, gc=False):
    """A change that many items have alike, and that loses nothing. `inside`: where in the item it is."""

    kind: ChangeKind
    came: str
    became: str | None
    why: str
    inside: str = ""

    def at(self, place: Place) -> Change:
        """Return it as the change of one item."""
        return Change(self.kind, f"{path_of(place)}{self.inside}", self.came, self.became, self.why)


class BadRequest(BadInput):
    """The request cannot be sent. `param` is the path of what is wrong, such as `input[3].call_id`."""

    def __init__(self, param: str, message: str) -> None:
        super().__init__(f"{param}: {message}")
        self.param = param
        self.message = message


class Report:
    """Collects the changes of one conversion, in order. `strict`: raises BadRequest for what is lost instead."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        # A remark is a change once somebody asks: long histories have many, and most callers look for losses alone.
        self.noted: list[Change | tuple[Place, Remark]] = []

    def add(self, kind: ChangeKind, path: str, came: str, became: str | None, why: str) -> None:
        """Note one change. Raises BadRequest where strict does not let it pass."""
        if self._strict and kind in REFUSED:
            raise BadRequest(path, f"{came} cannot be carried: {why}")
        self.noted.append(Change(kind, path, came, became, why))

    def dropped(self, path: str, came: str, why: str) -> None:
        """Note that `came` is left out."""
        self.add("dropped", path, came, None, why)

    def weakened(self, path: str, came: str, became: str, why: str) -> None:
        """Note that `became` stands for `came` and says less."""
        self.add("weakened", path, came, became, why)

    def changed(self, path: str, came: str, became: str, why: str) -> None:
        """Note that `came` is carried as `became`, which says the same."""
        self.add("changed", path, came, became, why)

    def ignored(self, path: str, came: str, why: str) -> None:
        """Note that `came` is left out, and that the answer does not depend on it."""
        self.add("ignored", path, came, None, why)

    def changes(self) -> tuple[Change, ...]:
        """Return what was noted, in order."""
        return tuple([one if isinstance(one, Change) else one[1].at(one[0]) for one in self.noted])

    def losses(self) -> list[Change]:
        """Return what was lost, in order: what strict refuses."""
        return [one for one in self.noted if isinstance(one, Change) and one.kind in REFUSED]
