"""`Pieces`: a text in the pieces in which it came."""

from __future__ import annotations

from typing import TypeAlias

Pieces: TypeAlias = list[str] | tuple[str, ...]

_FEW = 8


def appended(pieces: Pieces, piece: str) -> Pieces:
    """Return pieces and one more. A few are a tuple, which the collector need not walk; from then on it is one list
    that grows, so that a long text costs no more than its length."""
    if isinstance(pieces, list):
        pieces.append(piece)
        return pieces
    return (*pieces, piece) if len(pieces) < _FEW else [*pieces, piece]
