"""Keeps the keys that a backend knows out of what it says: out of errors, and of what a stream says beside its chunks."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.concealing import Hide, secret_values

__all__ = ["Concealer", "Hide", "secret_values"]


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
