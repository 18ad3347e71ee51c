"""Whether a text that comes in pieces is a complete JSON object, array or string."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_OUTSIDE = re.compile(r'["{}\[\]]')
_INSIDE = re.compile(r'["\\]')
_SPACE = " \t\r\n"  # what may stand around JSON
_DEPTH = {"{": 1, "[": 1, "}": -1, "]": -1}


class Scanner:
    """Reads what came once, and only when asked, so that a call that streams alone costs nothing.

    `pieces` is the list that its owner appends to.
    """

    __slots__ = ("_balanced", "_begun", "_depth", "_inside", "_pieces", "_read", "_skip", "_tested")

    def __init__(self, pieces: Sequence[str]) -> None:
        self._pieces = pieces
        self._read = 0  # how many pieces were read
        self._depth = 0
        self._begun = False  # something other than white space came
        self._inside = False  # within a string
        self._skip = False  # the piece ended with the backslash of an escape
        self._balanced = False  # all that was opened is closed
        self._tested: tuple[int, bool] = (0, True)  # after how many pieces the JSON was read, and whether it is JSON

    def is_in_string(self) -> bool:
        """Return whether the pieces so far end inside a string, where white space counts."""
        self._catch_up()
        return self._inside

    def is_complete(self) -> bool:
        """Return whether the pieces so far are one complete JSON object, array or string."""
        self._catch_up()
        return self._balanced and self._is_json()

    def _is_json(self) -> bool:
        """Return whether what is balanced is JSON. If not, it never will be; if so, only white space may follow it."""
        tested, is_json = self._tested
        if is_json and tested < self._read:
            new = "".join(self._pieces[tested:])
            is_json = not new.strip(_SPACE) if tested else _reads(new)
            self._tested = self._read, is_json
        return is_json

    def _catch_up(self) -> None:
        if self._read < len(self._pieces):
            self._scan("".join(self._pieces[self._read :]))
            self._read = len(self._pieces)

    def _scan(self, piece: str) -> None:
        """Read the pieces that came since, as one."""
        if not self._begun:
            first = piece.lstrip(_SPACE)[:1]
            self._begun = bool(first)
            if first and first not in '{["':
                self._depth = 1  # a number or a word never counts as complete
        at, end = 0, len(piece)
        while at < end:
            at = self._in_string(piece, at) if self._inside else self._out_of_string(piece, at)

    def _out_of_string(self, piece: str, at: int) -> int:
        found = _OUTSIDE.search(piece, at)
        if found is None:
            return len(piece)
        mark = found.group()
        if mark == '"':
            self._inside = True
            self._balanced = False
        else:
            self._depth += _DEPTH[mark]
            self._balanced = self._depth == 0
        return found.end()

    def _in_string(self, piece: str, at: int) -> int:
        if self._skip:
            self._skip = False
            return at + 1
        found = _INSIDE.search(piece, at)
        if found is None:
            return len(piece)
        if found.group() == "\\":
            self._skip = True
        else:
            self._inside = False
            self._balanced = self._depth == 0
        return found.end()


def _reads(text: str) -> bool:
    try:
        json.loads(text)
    except RecursionError:
        return True  # balanced, and too deep to be read here: the provider has said what it had to say
    except ValueError:
        return False
    return True
