"""Keeps the keys that a backend knows out of what it says: out of errors, and of what a stream says beside its chunks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from antiphon.stream.faults import redact

_LONGEST = 2000  # characters of what a provider said that are looked at
_SHORTEST = 6  # what is shorter is a placeholder, not a key
_SECRET_NAMES = re.compile(r"auth|key|token|secret|cookie|password", re.IGNORECASE)


class Hide:
    """Gives a text without `secrets`, and without what looks like a key."""

    def __init__(self, secrets: Iterable[str | None] = ()) -> None:
        known = {one for one in secrets if one and len(one) >= _SHORTEST}
        self.secrets = sorted(known, key=len, reverse=True)  # one may be a part of another

    def __call__(self, text: str) -> str:
        return redact(self.known(text)[:_LONGEST])  # hidden before anything is cut, so that no half of one is left

    def known(self, text: str) -> str:
        """Return the whole `text` without the secrets."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def secret_values(named: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the values of headers or query parameters whose names say that they are secret, also without a scheme."""
    for name, value in (named or {}).items():
        if _SECRET_NAMES.search(name):
            yield str(value)
            yield str(value).rpartition(" ")[2]


class Concealer:
    """Pieces of an SSE body in, whole lines of it out, without `secrets` in errors and in lines that are no chunks.

    What the model said stays as it is: a key may be a plain word, as some servers want it.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = [secret.encode() for secret in secrets]
        self._begun: list[bytes] = []  # the line that goes on

    def feed(self, piece: bytes) -> bytes:
        """Return the lines that `piece` ends; nothing where it ends none."""
        if not self._secrets:
            return piece
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1
        if not end:
            self._begun.append(piece)
            return b""
        lines = b"".join([*self._begun, piece[:end]]) if self._begun else piece[:end]
        self._begun = [piece[end:]] if end < len(piece) else []
        return self._concealed(lines)

    def finish(self) -> bytes:
        """Return the last line, where it has no end. Called once, at the end of the body."""
        return self._concealed(b"".join(self._begun))

    def _concealed(self, lines: bytes) -> bytes:
        if not any(secret in lines for secret in self._secrets):
            return lines
        return b"".join([self._line(line) for line in lines.splitlines(keepends=True)])

    def _line(self, line: bytes) -> bytes:
        if b'"choices"' in line and b'"error"' not in line:
            return line
        for secret in self._secrets:
            line = line.replace(secret, b"***")
        return line
