"""Reasoning details: the pieces of reasoning that must come back on the next turn, signed or encrypted.

They arrive as OpenRouter's `reasoning_details` or as LiteLLM's `thinking_blocks`, cut into fragments.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
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


def merge(pieces: list[dict[str, Any]], fragment: Json) -> None:
    """Add `fragment` to `pieces`: it joins the open piece of its type and index, or is a piece of its own.

    A piece is open until it has its signature; encrypted data never joins. Source: recordings
    vercel-gateway/fantasy--claude-sonnet-4-thinking-streaming (signature last), openrouter/fantasy--grok-multi-tool.
    """
    if not fragment.get("data"):
        for piece in reversed(pieces):
            if _same(piece, fragment) and not is_signed(piece):
                _join(piece, fragment)
                return
    pieces.append(dict(fragment))


def _same(piece: Json, fragment: Json) -> bool:
    kind = fragment.get("type")
    return kind in (None, piece.get("type")) and piece.get("index") == fragment.get("index")


def _join(piece: dict[str, Any], fragment: Json) -> None:
    for key, value in fragment.items():
        if key in GROWING and isinstance(value, str) and isinstance(piece.get(key), str):
            piece[key] += value
        elif value is not None and value != "":
            piece[key] = value


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
