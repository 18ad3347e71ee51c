"""The body of a request: read up to a size, unpacked, and parsed."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from .errors import ApiError, invalid

JSON_TYPES = ("application/json", "+json")
DEEPEST = 200  # levels of nesting


# A piece of a packed body, and how many bytes may come of it, to what comes of it.
Unpacker: TypeAlias = Callable[[bytes, int], bytes]


async def read_body(pieces: AsyncIterable[bytes], headers: Mapping[str, str], most: int) -> dict[str, Any]:
    """Return the JSON object in a body.

    Raises ApiError: 413 where it has, unpacked, more than `most` bytes, 415 for a content type or coding that is not
    read, 400 for what is no JSON object.
    """
    _check_type(headers)
    return parse(await _unpacked(pieces, headers, most))


def parse(data: bytes) -> dict[str, Any]:
    """Return the JSON object in `data`. Raises ApiError, which names no content."""
    try:
        held: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise ApiError(400, f"the body is no JSON: {problem}", code="invalid_json") from None
    except RecursionError:
        raise ApiError(400, "the body is nested too deeply", code="invalid_json") from None
    if not isinstance(held, dict):
        raise ApiError(400, "the body is no JSON object", code="invalid_json")
    for name, value in held.items():  # pyright: ignore[reportUnknownVariableType]
        if _depth(value) > DEEPEST:
            raise invalid(str(name)[:64], f"'{str(name)[:64]}' is nested more than {DEEPEST} levels deep")  # pyright: ignore[reportUnknownArgumentType]
    return held  # pyright: ignore[reportUnknownVariableType]


def _depth(value: Any) -> int:
    """Return how many levels `value` has, or one more than allowed."""
    level, depth = [value], 0
    while level and depth <= DEEPEST:
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inner += one.values()  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
            elif isinstance(one, list):
                inner += one  # pyright: ignore[reportUnknownArgumentType]
        level, depth = inner, depth + 1
    return depth


def _check_type(headers: Mapping[str, str]) -> None:
    """Refuse what is not called JSON: pages of others can make a browser send all else without asking."""
    given = headers.get("content-type", "")
    kind = given.partition(";")[0].strip().lower()
    empty = "transfer-encoding" not in headers and headers.get("content-length", "0") == "0"
    if not kind.endswith(JSON_TYPES) and not (empty and not kind):
        raise ApiError(
            415, f"the content type is {kind[:80]!r}: application/json is read", code="unsupported_media_type"
        )


async def _unpacked(pieces: AsyncIterable[bytes], headers: Mapping[str, str], most: int) -> bytes:
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > most:
        raise _too_large(most)
    unpack = _unpacker(headers.get("content-encoding", "").strip().lower())
    held = bytearray()
    async for piece in pieces:
        try:
            held += unpack(piece, most - len(held) + 1)
        except Exception as problem:  # noqa: BLE001 -- zlib and zstandard each have errors of their own
            coding = headers["content-encoding"][:20]
            raise ApiError(400, f"the body is no {coding}: {type(problem).__name__}", code="invalid_encoding") from None
        if len(held) > most:
            raise _too_large(most)
    return bytes(held)


def _too_large(most: int) -> ApiError:
    return ApiError(413, f"the body has more than {most} bytes", code="request_too_large")


def _unpacker(coding: str) -> Unpacker:
    make = CODINGS.get(coding)
    if make is None:
        known = ", ".join(name for name in CODINGS if name)
        raise ApiError(415, f"the content encoding is {coding[:40]!r}: read are {known}", code="unsupported_encoding")
    return make()


def _plain() -> Unpacker:
    return lambda piece, most: piece


def _zlib(bits: int) -> Callable[[], Unpacker]:
    return lambda: zlib.decompressobj(bits).decompress


def _zstd() -> Unpacker:
    """Codex packs its requests so. The memory of the window is bounded, whatever the frame asks for."""
    import zstandard

    reader = zstandard.ZstdDecompressor(max_window_size=2**27).decompressobj(write_size=65536)
    return lambda piece, most: _bounded(reader, piece, most)


def _bounded(reader: Any, piece: bytes, most: int) -> bytes:
    """Unpack in small steps, so that a frame that grows without end is noticed early."""
    held = bytearray()
    for start in range(0, len(piece), 1024):
        held += reader.decompress(piece[start : start + 1024])
        if len(held) > most:
            break
    return bytes(held)


CODINGS: dict[str, Callable[[], Unpacker]] = {
    "": _plain,
    "identity": _plain,
    "gzip": _zlib(31),
    "x-gzip": _zlib(31),
    "deflate": _zlib(47),
    "zstd": _zstd,
}
