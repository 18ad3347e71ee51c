"""What a conversion could not carry as it came: the report, and the error for a request that cannot be sent.

No entry holds what was said in the conversation, so a report may go into a log or a header.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from antiphon.errors import BadInput

# dropped: it is not in the body. weakened: something that says less stands for it. changed: it is carried in another
# form. made: it was not there, and the backend needs it. ignored: it is not in the body, and the answer does not
# depend on it (cache hints, reasoning of another family).
ChangeKind: TypeAlias = Literal["dropped", "weakened", "changed", "made", "ignored"]

REFUSED: frozenset[ChangeKind] = frozenset({"dropped", "weakened"})  # by strict


class Change(msgspec.Struct, frozen=True):
    """One thing that is not in the body as it came. `path` is where it came: `input[3].content[1]`, `tools[0]`."""

    kind: ChangeKind
    path: str
    came: str
    became: str | None
    why: str

    def __str__(self) -> str:
        became = "" if self.became is None else f" -> {self.became}"
        return f"{self.path}: {self.kind}: {self.came}{became} ({self.why})"


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
        self._changes: list[Change] = []

    def add(self, kind: ChangeKind, path: str, came: str, became: str | None, why: str) -> None:
        """Note one change. Raises BadRequest where strict does not let it pass."""
        if self._strict and kind in REFUSED:
            raise BadRequest(path, f"{came} cannot be carried: {why}")
        self._changes.append(Change(kind, path, came, became, why))

    def take(self, changes: Iterable[Change]) -> None:
        """Note changes that lose nothing."""
        self._changes.extend(changes)

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
        return tuple(self._changes)
