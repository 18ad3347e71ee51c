"""The body of a request: read up to a size, unpacked, and parsed."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterable, Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from .config import Limits
from .errors import ApiError, invalid

JSON_TYPE, JSON_SUFFIX = "application/json", "+json"
DEEPEST = 200  # levels of nesting
MOST_BRACKETS = 500_000  # arrays and objects, also those in texts: each costs the memory of a hundred bytes
MOST_COMMAS = 5_000_000  # also those in texts: before each stands a value, which costs the memory of fifty bytes
BOM = b"\xef\xbb\xbf"  # some clients begin with it, and it says nothing. Source: RFC 8259, section 8.1
LARGE = 256 * 1024  # bytes of JSON: what is done with more of it would hold up the event loop

# In JSON text: a backslash that stands for itself, a character in two halves, or one half alone.
_CHARACTERS = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


STEP = 1024  # bytes of a packed body that are unpacked at once: at most a few megabytes come of them
MOST_MEMBERS = 10_000  # of a packed body; programs that pack in parallel make one of each 64 kilobytes or more

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
    if data.count(b",") > MOST_COMMAS:
        raise ApiError(413, f"the body has more than {MOST_COMMAS} values", code="request_too_large")
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
    coding = headers.get("content-encoding", "").strip().lower()
    unpack = _unpacker(coding)
    held, came = bytearray(), 0
    try:
        async for piece in pieces:
            came += len(piece)
            held += unpack(piece, most - len(held) + 1)
            if max(len(held), came) > most:
                raise _too_large(most)
        unpack(b"", 0)
    except (zlib.error, BadCoding) as problem:
        raise ApiError(400, f"the body is no {coding[:20]}: {problem}", code="invalid_encoding") from None
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


class BadCoding(Exception):
    """A packed body is broken, or ends too early."""


class Member(Protocol):
    """What unpacks one of the parts that a packed body consists of."""

    @property
    def eof(self) -> bool:
        """Whether its end came."""
        ...

    @property
    def unused_data(self) -> bytes:
        """What came after its end."""
        ...


class _Members:
    """Unpacks what may be several parts, one after the other. Sources: RFC 1952, section 2.2; RFC 8878, section 3.

    It goes on in small steps, so that a body that grows without end is noticed early. An empty piece is the end.
    """

    def __init__(self, begin: Callable[[], Member], read: Callable[[Any, bytes, int], bytes]) -> None:
        self._begin, self._read = begin, read
        self._open: Member | None = None
        self._count = 0

    def __call__(self, piece: bytes, most: int) -> bytes:
        held = bytearray()
        for start in range(0, len(piece), STEP):
            rest = self._packed(piece[start : start + STEP])
            while rest and len(held) < most:
                member = self._member()
                held += self._read(member, rest, most - len(held))
                self._open = None if member.eof else member
                rest = self._packed(member.unused_data) if member.eof else b""
        if not piece and (self._open is not None or not self._count):
            raise BadCoding("it ends too early")
        return bytes(held)

    def _packed(self, data: bytes) -> bytes:
        """Return data without the zeros that a packed body may be filled up with. Source: the manual of gzip."""
        return data.lstrip(b"\0") if self._open is None and self._count else data

    def _member(self) -> Member:
        if self._open is not None:
            return self._open
        self._count += 1
        if self._count > MOST_MEMBERS:
            raise BadCoding(f"it has more than {MOST_MEMBERS} parts")
        return self._begin()


def _zlib(bits: int) -> Callable[[], Unpacker]:
    return lambda: _Members(
        lambda: zlib.decompressobj(bits), lambda member, piece, most: member.decompress(piece, most)
    )


def _zstd() -> Unpacker:
    """Codex packs its requests so. The memory of the window is bounded, whatever the frame asks for."""
    import zstandard

    def read(member: Any, piece: bytes, most: int) -> bytes:
        try:
            return bytes(member.decompress(piece))
        except zstandard.ZstdError as problem:
            raise BadCoding(str(problem)) from None

    made = zstandard.ZstdDecompressor(max_window_size=2**27)
    return _Members(lambda: made.decompressobj(write_size=65536), read)


CODINGS: dict[str, Callable[[], Unpacker]] = {
    "": _plain,
    "identity": _plain,
    "gzip": _zlib(31),
    "x-gzip": _zlib(31),
    "deflate": _zlib(47),
    "zstd": _zstd,
}
