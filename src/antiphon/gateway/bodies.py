"""The body of a request: read up to a size, unpacked, and parsed."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterable, Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from .config import Limits
from .errors import ApiError, invalid

JSON_TYPE, JSON_SUFFIX = "application/json", "+json"
DEEPEST = 200  # levels of nesting
MOST_BRACKETS = 500_000  # arrays and objects, also those in texts: each costs the memory of a hundred bytes
BOM = b"\xef\xbb\xbf"  # some clients begin with it, and it says nothing. Source: RFC 8259, section 8.1
LARGE = 256 * 1024  # bytes of JSON: what is done with more of it would hold up the event loop

# In JSON text: a backslash that stands for itself, a character in two halves, or one half alone.
_CHARACTERS = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


# A piece of a packed body, and how many bytes may come of it, to what comes of it.
Unpacker: TypeAlias = Callable[[bytes, int], bytes]


class Body(NamedTuple):
    """The JSON object in a body. `is_large`: what goes over all of it belongs into a thread. `notes`: what was changed."""

    held: dict[str, Any]
    is_large: bool
    notes: tuple[str, ...] = ()


async def read_body(pieces: AsyncIterable[bytes], headers: Mapping[str, str], limits: Limits) -> Body:
    """Return the JSON object in a body.

    Raises ApiError: 408 where it takes too long to come, 413 where it has, unpacked, more bytes than are allowed, 415
    for a content type or coding that is not read, 400 for what is no JSON object.
    """
    _check_type(headers)
    try:
        async with asyncio.timeout(limits.body_seconds):
            data = (await _unpacked(pieces, headers, limits.body_bytes)).removeprefix(BOM)
    except TimeoutError:
        raise ApiError(408, f"the body took more than {limits.body_seconds:g} s", code="request_timeout") from None
    is_large = len(data) > LARGE
    held, notes = await asyncio.to_thread(_read, data) if is_large else _read(data)
    return Body(held, is_large, notes)


def _read(data: bytes) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the JSON object in `data`, and what was changed in it.

    JavaScript sends a text that was cut within a character as half a character, which no other JSON has.
    """
    try:
        return parse(data), ()
    except ApiError:
        whole = _CHARACTERS.sub(lambda found: b"\\ufffd" if found["half"] else found[0], data)
        if whole == data:
            raise
    return parse(whole), ("body: halves of characters were replaced",)


def parse(data: bytes) -> dict[str, Any]:
    """Return the JSON object in `data`. Raises ApiError, which names no content."""
    if data.count(b"[") + data.count(b"{") > MOST_BRACKETS:
        raise ApiError(413, f"the body has more than {MOST_BRACKETS} arrays and objects", code="request_too_large")
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
    """Refuse what is not called JSON: pages of others can make a browser send all else without asking.

    An empty body needs no type, but not from a browser, which names the page's origin with each POST.
    """
    given = headers.get("content-type", "")
    kind = given.partition(";")[0].strip().lower()
    sent = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
    is_json = kind == JSON_TYPE or (kind.endswith(JSON_SUFFIX) and "," not in kind)
    if not is_json and (sent or kind or "origin" in headers):
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
