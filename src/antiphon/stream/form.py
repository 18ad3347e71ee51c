"""Reads usual chunks in JSON, most of them by their form: chunks of a stream differ in one JSON string and nothing else.

What stands before and after that string in a usual chunk is its form. Another chunk with the same two ends and one JSON
string between them is a usual one too, and says the same but for that string: so it needs no reading as a whole. A form
is tried before it is used: the chunk with another text in that place must read as just that.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec

from .usual import Kind, Read, Said, nothing

# What is possessive keeps no place to come back to: elsewhere each character of a long text would cost 700 bytes.
_STRING = re.compile(rb'"(?:content|reasoning_content|reasoning|arguments)": ?("[^"\\]*+(?:\\.[^"\\]*+)*+")')
_TRIAL = "\x7e\u00e9\u2028"  # some text that no chunk has by chance
_PATIENCE = 8  # so many chunks are looked at for a form; where none fits, one in `_SELDOM`
_SELDOM = 64
_string = msgspec.json.Decoder(str).decode


class Found(NamedTuple):
    """What a usual chunk says. `call`: the index of the call whose arguments it is."""

    kind: Kind
    call: int | None
    said: Said


class Form(NamedTuple):
    """What stands before and after the string, with its quotes; and what the string is."""

    head: bytes
    tail: bytes
    kind: Kind
    call: int | None


class Forms:
    """Makes the readers of one stream, and keeps the form that its chunks have now."""

    def __init__(self) -> None:
        self.has_new = False  # a form was found since the readers were made
        self._form: Form | None = None
        self._last: tuple[bytes, Found] | None = None  # the last chunk that was looked at for a form
        self._misses = 0  # chunks since the last form was found that had to be read as a whole

    def look_at(self, payload: bytes, kind: Kind | None, index: int | None) -> None:
        """Guess the form of a kind from its first chunk, which went the long way. The next ones fit it, or do not."""
        if kind is None or kind == "logprobs" or self._misses >= _PATIENCE or self._fitting(kind, index) is not None:
            return
        self._misses += 1
        found = in_json(payload)
        if found is None or found[:2] != (kind, index):
            return
        self._last = payload, found
        form = _form(payload, found)
        if form is not None and _holds(form):
            self._form = form

    def reader(self, kind: Kind | None, index: int | None = None) -> Read:
        """Return what reads more of `kind` in the JSON text of a chunk. `index`: of the call that is asked for."""
        if kind is None:
            return nothing
        self.has_new = False
        read = self._whole(kind, index)
        form = self._fitting(kind, index)
        return read if form is None else _by_form(form.head, form.tail, read)

    def piece_reader(self, kind: Kind | None, index: int | None, ending: bytes) -> Read:
        """Return the same for pieces of an SSE body that hold one message each, which ends in `ending`.

        It knows chunks of the known form only. A piece is to be given to it only where a message may begin.
        """
        form = self._fitting(kind, index)
        return nothing if form is None else _by_form(b"data: " + form.head, form.tail + ending, nothing)

    def _fitting(self, kind: Kind | None, index: int | None) -> Form | None:
        form = self._form
        return form if form is not None and form.kind == kind and form.call == index else None

    def _whole(self, kind: Kind, index: int | None) -> Read:
        def read(payload: Any) -> Said | None:
            found = in_json(payload)
            if found is None:
                return None
            if kind == "logprobs":
                return _with_logprobs(found)
            if found.kind != kind or found.call != index:
                return None
            self._misses += 1
            if self._misses <= _PATIENCE or self._misses % _SELDOM == 0:
                self._learn(payload, found)
            return found.said

        return read

    def _learn(self, payload: bytes, found: Found) -> None:
        """Take the form of `payload` where the chunk before it has the same."""
        last, self._last = self._last, (payload, found)
        form = None if last is None or last[1][:2] != found[:2] else _form(payload, found)
        if last is None or form is None or form == self._form or not (_has(form, *last) and _holds(form)):
            return
        self._form, self._misses, self.has_new = form, 0, True


def _by_form(head: bytes, tail: bytes, otherwise: Read) -> Read:
    start, end = len(head), -len(tail)
    first, last = start - 1, end + 1 or None  # where the string is, with its quotes

    def read(piece: Any) -> Said | None:
        try:
            if piece[:start] == head and piece[end:] == tail:
                return _string(piece[first:last]) or None
        except (TypeError, msgspec.DecodeError):  # no bytes, or no text in this place
            pass
        return otherwise(piece)

    return read


def _form(payload: bytes, found: Found) -> Form | None:
    strings = [one for one in _STRING.finditer(payload) if _read(one.group(1)) == found.said]
    if len(strings) != 1 or b"\n" in payload:  # of several data lines: no line can be of its form
        return None
    start, end = strings[0].span(1)
    return Form(payload[: start + 1], payload[end - 1 :], found.kind, found.call)


def _read(string: bytes) -> str | None:
    """Return the text of a JSON string; None for a broken one, which may stand where nothing reads it."""
    try:
        return _string(string)
    except msgspec.DecodeError:
        return None


def _has(form: Form, payload: bytes, found: Found) -> bool:
    """Return whether a chunk that says `found` is of this form."""
    return _by_form(form.head, form.tail, nothing)(payload) == found.said


def _holds(form: Form) -> bool:
    """Return whether a chunk of this form with another text reads as that text."""
    trial = msgspec.json.encode(_TRIAL)[1:-1]
    return in_json(form.head + trial + form.tail) == (form.kind, form.call, _TRIAL)


# --- a chunk as a whole --------------------------------------------------------------------------------------------


class _Function(msgspec.Struct, frozen=True, gc=False):
    arguments: str
    name: Literal[""] | None = None
    provider_specific_fields: None = None


class _Call(msgspec.Struct, frozen=True, gc=False):
    index: int
    function: _Function
    id: Literal[""] | None = None
    custom: None = None
    extra_content: None = None
    provider_specific_fields: None = None
    thought_signature: None = None


class _Delta(msgspec.Struct, frozen=True, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[_Call] | None = None
    refusal: None = None
    function_call: None = None
    reasoning_text: None = None
    reasoning_details: None = None
    thinking_blocks: None = None
    annotations: None = None
    citations: None = None
    audio: None = None
    images: None = None
    image: None = None
    provider_specific_fields: None = None


_Octets: TypeAlias = Annotated[list[Annotated[int, msgspec.Meta(ge=0, le=255)]], msgspec.Meta(min_length=1)]


class _Token(msgspec.Struct, frozen=True, gc=False):
    token: str
    logprob: float
    bytes: _Octets


class _Entry(msgspec.Struct, frozen=True, gc=False):
    token: str
    logprob: float
    bytes: _Octets
    top_logprobs: list[_Token]


class _Logprobs(msgspec.Struct, frozen=True, gc=False):
    content: tuple[_Entry, ...]
    refusal: None = None
    reasoning_content: None = None
    reasoning: None = None


class _Choice(msgspec.Struct, frozen=True, gc=False):
    delta: _Delta
    index: Literal[0] = 0
    finish_reason: Literal[""] | None = None
    native_finish_reason: None = None
    logprobs: _Logprobs | None = None
    usage: None = None
    error: None = None


class _Chunk(msgspec.Struct, frozen=True, gc=False):
    choices: tuple[_Choice]
    error: None = None
    usage: None = None
    x_groq: None = None
    citations: None = None


_decode = msgspec.json.Decoder(_Chunk).decode


def in_json(payload: Any) -> Found | None:
    """Return what a usual chunk in JSON bytes says; None where it is not a usual one (or no JSON, or not bytes)."""
    try:
        choice = _decode(payload).choices[0]
    except (msgspec.DecodeError, RecursionError, TypeError):  # a ValidationError is a DecodeError
        return None
    delta = choice.delta
    text, reasoning, call = delta.content, delta.reasoning_content or delta.reasoning, delta.tool_calls
    if bool(text) + bool(reasoning) + (call is not None) != 1 or (delta.reasoning_content and delta.reasoning):
        return None
    if choice.logprobs is not None:
        entries = msgspec.to_builtins(choice.logprobs.content)
        return Found("logprobs", None, (text, entries)) if text and entries else None
    if call is not None:
        arguments = call[0].function.arguments
        return Found("arguments", call[0].index, arguments) if arguments else None
    return Found("text", None, text) if text else Found("reasoning", None, reasoning or "")


def _with_logprobs(found: Found) -> Said | None:
    """Return text with its log probabilities, none where there are none."""
    if found.kind == "text" and isinstance(found.said, str):
        return found.said, ()
    return found.said if found.kind == "logprobs" else None
