"""Reasoning details: the pieces of reasoning that must come back on the next turn, signed or encrypted.

They arrive as OpenRouter's `reasoning_details` or as LiteLLM's `thinking_blocks`, cut into fragments.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Hashable, Sequence
from typing import Any

import msgspec

from antiphon.errors import BadInput

from .deltas import Json

SEAL = "antiphon1."
GROWING = ("text", "summary", "thinking")  # fields whose fragments join; any other is replaced
SECRETS = ("signature", "data", "encrypted")


def is_signed(piece: Json) -> bool:
    """Return whether `piece` carries a signature or encrypted data, so that it must be kept for replay."""
    return any(piece.get(key) for key in SECRETS)


class Details:
    """The pieces of one reasoning item, put together from their fragments, each at the same cost however many came.

    A fragment joins the open piece of its type and index, or is a piece of its own. A piece is open until it has its
    signature; encrypted data never joins. Source: recordings
    vercel-gateway/fantasy--claude-sonnet-4-thinking-streaming (signature last), openrouter/fantasy--grok-multi-tool.
    """

    def __init__(self) -> None:
        self._pieces: list[_Piece] = []
        self._open: dict[Hashable, dict[Hashable, _Piece]] = {}  # index -> type -> the piece that is open there

    def add(self, fragment: Json) -> None:
        """Take a fragment. One without a type joins what was opened last on its index."""
        if fragment.get("data"):
            self._begin(fragment)
            return
        there, kind = self._open.setdefault(_key(fragment.get("index")), {}), _key(fragment.get("type"))
        if kind is None and there:
            kind = next(reversed(there))
        piece = there.get(kind)
        if piece is None:
            piece = there[kind] = self._begin(fragment)
        else:
            piece.join(fragment)
        if is_signed(piece.value):
            del there[kind]

    def pieces(self) -> list[dict[str, Any]]:
        """Return the pieces in the order in which they began."""
        return [piece.whole() for piece in self._pieces]

    def _begin(self, fragment: Json) -> _Piece:
        piece = _Piece(fragment)
        self._pieces.append(piece)
        return piece


class _Piece:
    """A piece, and the fragments of its texts."""

    def __init__(self, fragment: Json) -> None:
        self.value = dict(fragment)
        self._grown: dict[str, list[str]] = {}  # field -> its fragments, joined once

    def join(self, fragment: Json) -> None:
        for key, value in fragment.items():
            begun = self.value.get(key)
            if key in GROWING and isinstance(value, str) and isinstance(begun, str):
                self._grown.setdefault(key, [begun]).append(value)
            elif value is not None and value != "":
                self.value[key] = value
                self._grown.pop(key, None)

    def whole(self) -> dict[str, Any]:
        return self.value | {key: "".join(texts) for key, texts in self._grown.items()}


def _key(value: Any) -> Hashable:
    return value if isinstance(value, Hashable) else repr(value)


def sealed(pieces: Sequence[Json]) -> str | None:
    """Return `encrypted_content` for `pieces`: the first encrypted data, else signed pieces as an opaque string.

    None where nothing is signed or encrypted. `unsealed` reads the opaque string back.
    """
    data = next((piece["data"] for piece in pieces if isinstance(piece.get("data"), str) and piece["data"]), None)
    if data is not None or not any(is_signed(piece) for piece in pieces):
        return data
    return opaque(pieces)


def opaque(pieces: Sequence[Json]) -> str:
    """Return `pieces` as an opaque string, which `unsealed` reads back."""
    return SEAL + urlsafe_b64encode(msgspec.json.encode(list(pieces))).decode()


def unsealed(content: str) -> list[dict[str, Any]] | None:
    """Return the pieces that `opaque` put into `content`, or None where it is a provider's own string.

    Raises BadInput where it begins like ours and cannot be read.
    """
    if not content.startswith(SEAL):
        return None
    try:
        return msgspec.json.decode(urlsafe_b64decode(content[len(SEAL) :]), type=list[dict[str, Any]])
    except (ValueError, msgspec.DecodeError) as error:
        raise BadInput(f"encrypted_content begins with {SEAL!r} but is damaged: {error}") from error
