"""Server-sent events both ways, sans-IO.

`SSEDecoder` reads what servers really send. The grammar is that of the HTML standard, section 9.2 "Server-sent events"
(https://html.spec.whatwg.org/multipage/server-sent-events.html), with these tolerances, each of which keeps content
that the standard would lose or garble:

- the last message counts without its blank line: servers just close;
- `data:` lines that follow each other without a blank line, the first being a whole JSON object, are messages of their
  own (the standard would join them to text that is no JSON). A stream in which that was seen once is read line by line;
- other `data:` lines of one message are joined by a line feed; where the joined text is no JSON and one of the lines
  alone is an object, each line is a message;
- a byte order mark is dropped wherever a line begins with one: parts of a stream were put together;
- a line that begins with `{`, or as a list of objects does, is data, and so is every line after it that has no field: JSON lines, and a JSON
  body sent under the wrong content type, come through. A whole object is a message at once.

A message without data says nothing and is dropped. `id:` and `retry:` are read over: nothing here reconnects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Literal, TypeAlias

import msgspec

from antiphon.errors import BadInput

DONE = b"[DONE]"
_BOM = b"\xef\xbb\xbf"
_DATA = b"data: "
_LF, _CR = 10, 13  # `10 in data` is a memchr; `b"\n" in data` costs three times as much on Python 3.11
_SILENT_FIELDS = (b"", b"id", b"retry")  # b"": a comment

_BOMS = re.compile(rb"(\xef\xbb\xbf)+")
_BARE = re.compile(rb"\{|\[[ \t]*(\{|$)|\[DONE\]")  # how a line begins that is data without `data:`

Format: TypeAlias = Literal["sse", "jsonl", "json"]


class SSEMessage(msgspec.Struct, frozen=True, gc=False):
    """A message that has a name: `event`, its payload, and the line, from 1, on which its data begins."""

    event: str
    data: bytes
    line: int


# What a stream of server-sent events says: the payload itself for the ordinary message, which has no name (or the
# standard's own, "message"); `SSEMessage` for a named one. The payload is never empty; `[DONE]` is a payload too.
Message: TypeAlias = bytes | SSEMessage


class SSEDecoder:
    """Bytes in, messages out, however the bytes are cut. Memory is bounded by one message and one piece.

    The plain case, `data: {…}` and a blank line, costs one split of the piece; all else goes line by line.
    """

    def __init__(self) -> None:
        self.cut = False  # the input ended inside a line; known after `finish`
        self._fresh = True  # nothing but, at most, a part of a byte order mark was seen
        self.is_between = True  # between two messages, with nothing kept back
        self.ending = b"\n\n"  # of the last plain message that came alone
        self._after_cr = False  # the last piece ended in CR: an LF that comes first belongs to it
        self._partial: list[bytes] = []  # the pieces of the line that has not ended
        self._data: list[bytes] = []  # the data lines of the message that has not ended
        self._start = 0  # the line of the first of them
        self._event = ""
        self._bare = False  # a line without `data:` was seen: what has no field is data
        self._by_line = False  # each data line is a message
        self._lines = 0  # lines that have ended
        self._out: list[Message] = []  # the messages of the last call; of these
        self._plain = 0  # so many are plain ones, two lines each,
        self._first = 1  # from this line on,
        self._at: list[int] = []  # and the rest begin on these lines

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that `data` ends, in order. Called once for each piece from the network."""
        if self.is_between:
            line, _, rest = data.partition(b"\n")
            payload = line[6:]
            ending = b"\n\n"
            if rest == b"\r\n" and payload[-1:] == b"\r":
                payload, rest, ending = payload[:-1], b"\n", b"\r\n\r\n"
            if rest == b"\n" and payload and line[:6] == _DATA and _CR not in payload:
                self.ending, self._fresh = ending, False
                self._first = self._lines + 1
                self._lines += 2
                self._plain = 1
                return [payload]
        return self._read(self._text(data))

    def skip(self, messages: int) -> None:
        """Count so many messages of two lines that were read elsewhere. Only to be called where `is_between`."""
        self._lines += 2 * messages

    def finish(self) -> list[Message]:
        """Return the message that the end of input ends, if there is one."""
        self._begin()
        self.cut = bool(self._partial)
        if self.cut:
            self._line(b"".join(self._partial))
        self._partial = []
        self._dispatch()
        return self._out

    def line_of(self, position: int) -> int:
        """Return the line, from 1, on which the data of message `position` of the last `feed` or `finish` begins."""
        if position < self._plain:
            return self._first + 2 * position
        return self._at[position - self._plain]

    def _begin(self) -> None:
        self._out, self._at = [], []
        self._first, self._plain = self._lines + 1, 0

    def _read(self, text: bytes) -> list[Message]:
        self._begin()
        whole, blank, tail = text.rpartition(b"\n\n")
        if blank:
            self._blocks(whole)
        *lines, partial = tail.split(b"\n")
        for line in lines:
            self._line(line)
        if partial:
            self._partial.append(partial)
        self.is_between = not (self._partial or self._data or self._event or self._after_cr or self._fresh)
        return self._out

    def _text(self, data: bytes) -> bytes:
        """Return what can be read now, with LF as the only line ending; a line that goes on is kept back."""
        if self._fresh and data:
            data = self._without_bom(data)
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if _CR in data:
            self._after_cr = data[-1] == _CR
            data = data.replace(b"\r\n", b"\n")
            data = data.replace(b"\r", b"\n") if _CR in data else data
        if self._partial and _LF in data:
            data = b"".join((*self._partial, data))
            self._partial = []
        return data

    def _without_bom(self, data: bytes) -> bytes:
        data = b"".join((*self._partial, data))
        if _BOM.startswith(data) and data != _BOM:
            self._partial = []  # `_read` keeps `data` back, as the line that has not ended
            return data
        self._partial, self._fresh = [], False
        return data.removeprefix(_BOM)

    def _blocks(self, whole: bytes) -> None:
        """Read `whole`, which a blank line follows."""
        if whole[:6] == _DATA and not self._data and not self._event:
            payloads = whole[6:].split(b"\n\ndata: ")
            if all(payloads) and _LF not in b"".join(payloads):
                self._out += payloads
                self._plain = len(payloads)
                self._lines += 2 * self._plain
                return
        for block in whole.split(b"\n\n"):
            self._block(block)

    def _block(self, block: bytes) -> None:
        if block[:5] == b"data:" and _LF not in block and not self._data and not self._event:
            if payload := block[6:] if block[5:6] == b" " else block[5:]:
                self._out.append(payload)
                self._at.append(self._lines + 1)
            self._lines += 2
            return
        for line in block.split(b"\n"):
            self._line(line)
        self._line(b"")

    def _line(self, line: bytes) -> None:
        self._lines += 1
        if not line:
            self._dispatch()
        elif line[:5] == b"data:":
            self._take(line[6:] if line[5:6] == b" " else line[5:])
        elif line[0] in b"{[" and _BARE.match(line):
            self._take_bare(line)
        else:
            self._field(line)

    def _field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if field == b"event":
            self._event = value.removeprefix(b" ").decode("utf-8", "replace")
        elif field == b"data":
            self._take(b"")
        elif marks := _BOMS.match(line):  # of a part that was put behind another
            self._lines -= 1
            self._line(line[marks.end() :])
        elif self._bare and field not in _SILENT_FIELDS and line.strip():
            self._take(line)

    def _take_bare(self, line: bytes) -> None:
        self._bare = True
        if not self._by_line and _is_document(line):
            self._dispatch()
            self._by_line = True
        self._take(line)

    def _take(self, value: bytes) -> None:
        """Add a data line, unless the one before it is a message by itself: then that one is said first."""
        if len(self._data) == 1 and _is_document(self._data[0]):
            self._dispatch()
            self._by_line = True
        if not self._data:
            self._start = self._lines
        self._data.append(value)
        if self._by_line:
            self._dispatch()

    def _dispatch(self) -> None:
        for line, payload in enumerate(_documents(self._data) if self._data else (), self._start):
            if payload:
                plain = self._event in ("", "message")
                self._out.append(payload if plain else SSEMessage(self._event, payload, line))
                self._at.append(line)
        self._data, self._event = [], ""


_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ANY = msgspec.json.Decoder(msgspec.Raw)
_OBJECT_OR_LIST: msgspec.json.Decoder[dict[str, Any] | list[Any]] = msgspec.json.Decoder(dict[str, Any] | list[Any])
_EVENT = msgspec.json.Decoder(dict[str, Any])
_EVENTS = msgspec.json.Decoder(list[dict[str, Any]])


def _decodes(decoder: msgspec.json.Decoder[Any], text: bytes) -> bool:
    try:
        decoder.decode(text)
    except msgspec.DecodeError:
        return False
    return True


def _is_document(line: bytes) -> bool:
    """Return whether `line` is a message by itself: a whole JSON object, or `[DONE]`."""
    if line[:1] == b"{":
        return line.rstrip()[-1:] == b"}" and _decodes(_OBJECT, line)
    return line.strip() == DONE


def _documents(lines: list[bytes]) -> Sequence[bytes]:
    """Return the payloads that the data lines of one message make."""
    if len(lines) < 2:
        return lines
    joined = b"\n".join(lines)
    if any(map(_is_document, lines)) and not _decodes(_ANY, joined):
        return lines
    return (joined,)


def encode_event(type: str, payload: bytes) -> bytes:
    """Return `payload` as one message. It is JSON without line breaks: see `escape_separators` for the odd ones."""
    return b"event: %b\ndata: %b\n\n" % (type.encode(), payload)


def escape_separators(payload: bytes) -> bytes:
    """Return the JSON text `payload` with U+0085, U+2028 and U+2029 as escapes.

    They are legal in JSON and no line ends in SSE, but clients that read lines with `str.splitlines` break there
    (httpx `iter_lines`, which several SDKs build on).
    """
    if payload.isascii():
        return payload
    payload = payload.replace(b"\xc2\x85", rb"\u0085")
    return payload.replace(b"\xe2\x80\xa8", rb"\u2028").replace(b"\xe2\x80\xa9", rb"\u2029")


_FIELD = re.compile(rb"(data|event|id|retry)(:|$)|:")
_WHOLE_BODY = re.compile(rb'"object"\s*:\s*"chat\.completion"')
_TELLING_LINE = re.compile(rb"^[ \t]*((data|event|id|retry)?:|(%b).*[\r\n])" % _BARE.pattern, re.MULTILINE)
_ENOUGH = 65536
_WHOLE_OBJECTS = ("chat.completion", "response")


def detect_format(first_bytes: bytes) -> Format:
    """Return what `first_bytes`, best up to the end of a line or more, begins: the first line that says it decides.

    "json" is one document: a whole body, or a list. No bytes at all are an SSE stream without messages. Raises
    BadInput where no line looks like any of the three.
    """
    lines = [line.strip() for line in first_bytes.removeprefix(_BOM).splitlines()]
    for place, line in enumerate(lines):
        if _FIELD.match(line):
            return "sse"
        if _BARE.match(line):
            return _json_format(line, lines[place + 1 :])
    if not any(lines):
        return "sse"
    raise BadInput(
        f"the input begins with {_excerpt(first_bytes.strip())}, which is neither server-sent events "
        "(`data: {…}`), nor JSON lines, nor a JSON body"
    )


def _json_format(line: bytes, later: Sequence[bytes]) -> Format:
    try:
        value = _OBJECT_OR_LIST.decode(line)
    except msgspec.DecodeError:
        return _cut_format(line, later)
    if isinstance(value, dict):
        return "json" if value.get("object") in _WHOLE_OBJECTS and not _has_delta(value) else "jsonl"
    return "json"


def _has_delta(value: dict[str, Any]) -> bool:
    """Return whether a choice has a delta: Perplexity's chunks say that they are whole completions."""
    choices: Any = value.get("choices")
    return isinstance(choices, list) and any(isinstance(one, dict) and "delta" in one for one in choices)  # pyright: ignore[reportUnknownVariableType]


def _cut_format(line: bytes, later: Sequence[bytes]) -> Format:
    """Return the format of text whose first line is no JSON by itself: printed over many lines, or cut, or broken."""
    if line == DONE or (line != b"[" and any(other[:2] == b'{"' for other in later)):
        return "jsonl"
    return "json" if line[-1:] in (b"{", b"[", b",") or _WHOLE_BODY.search(line) else "jsonl"


def open_format(pieces: Iterable[bytes]) -> tuple[Format, Iterator[bytes]]:
    """Return the format of the input, and the input: no more is read than the first line that tells.

    JSON lines are given so that `SSEDecoder` reads them, also where the first one is no JSON. Raises BadInput as
    `detect_format` does.
    """
    rest = iter(pieces)
    first: list[bytes] = []
    for piece in rest:
        first.append(piece)
        if (_LF in piece or _CR in piece) and _tells(b"".join(first)):
            break
    beginning = b"".join(first).removeprefix(_BOM)
    format = detect_format(beginning)
    if format == "jsonl" and not _BARE.match(beginning.lstrip()):
        beginning = _marked(beginning)
    return format, chain((beginning,), rest)


def _tells(beginning: bytes) -> bool:
    return len(beginning) >= _ENOUGH or _TELLING_LINE.search(beginning.removeprefix(_BOM)) is not None


def _marked(lines: bytes) -> bytes:
    """Return `lines` with the first that is not blank marked as data. No line is added: their numbers stay."""
    start = len(lines) - len(lines.lstrip())
    return lines[:start] + _DATA + lines[start:]


def read_events(data: bytes | Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the Responses events in `data`: an SSE body, JSON lines, or a JSON list; whole, or in pieces cut anywhere.

    Raises BadInput, which names the line, where a payload is not a JSON object.
    """
    format, pieces = open_format((data,) if isinstance(data, bytes) else data)
    if format == "json":
        yield from _listed(b"".join(pieces))
        return
    decoder = SSEDecoder()
    for piece in pieces:
        yield from _events(decoder, decoder.feed(piece))
    yield from _events(decoder, decoder.finish())


def _events(decoder: SSEDecoder, messages: list[Message]) -> Iterator[dict[str, Any]]:
    for position, message in enumerate(messages):
        payload = message.data if isinstance(message, SSEMessage) else message
        if payload.strip() == DONE:
            continue
        try:
            event = _EVENT.decode(payload)
        except msgspec.DecodeError as problem:
            line = decoder.line_of(position)
            raise BadInput(f"line {line}: {_excerpt(payload)} is not a JSON object: {problem}") from problem
        yield event


def _listed(text: bytes) -> Iterator[dict[str, Any]]:
    try:
        yield from _EVENTS.decode(text)
    except msgspec.DecodeError as problem:
        raise BadInput(
            f"the input begins with {_excerpt(text)}, which is no list of events: {problem}; "
            "allowed are server-sent events, JSON lines, and a JSON list of events"
        ) from problem


def _excerpt(text: bytes) -> str:
    start = text[:40].decode("utf-8", "replace")
    return repr(start + "…" if len(text) > 40 else start)
