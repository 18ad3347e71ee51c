"""`ChatCmplStreamHandler`: chunks in, Responses events out; its family, and the shells that own the loop.

The handler does no I/O. The shells pull a source: they hand its exceptions to the handler, which ends the response as
failed, and they close it however they are left.
"""

from __future__ import annotations

import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from typing import Any, ClassVar, Literal, TypedDict, TypeVar, Unpack

from antiphon.errors import BadInput, SourceError, StrictError
from antiphon.ids import IdsChoice, choose_ids
from antiphon.profile import DEFAULT, REASONING_FIELDS, Profile, load_profile

from .assemble import STRICT_CODES, Assembler
from .chunk import copied, plain
from .deltas import Delta
from .emit import EventStyle, make_emitter
from .faults import SERVER_ERROR, Fault, fault_of_exception, redact
from .form import Forms
from .normalize import Normalizer
from .output import NOTHING, Flow
from .pull import NOWHERE, Reader, Route, apull, pull, raise_failure
from .sse import DONE, Message, SSEDecoder, SSEMessage
from .usual import Read, nothing, reader

T = TypeVar("T")
MAX_WARNINGS = 100  # a stream that is odd in each chunk fills no memory


class Options(TypedDict, total=False):
    """What a handler and all shells take."""

    profile: str | Profile | None
    request: Any
    ids: IdsChoice
    created_at: int | None
    events: EventStyle
    reasoning: Literal["summary", "text"]
    strict: bool


class ChatCmplStreamHandler:
    """Turns the chunks of one chat answer into the canonical Responses events. Works for any provider.

    `profile`: a name, a `Profile`, or None for the tolerant default. `request`: the Responses create parameters, echoed
    in each snapshot. `ids`: "random", "counted" (reproducible), or an object with `make(prefix)`. `created_at`: seconds
    since the epoch, None for now. `events`: "openai" (objects of openai-python), "dict", or "sse" (bytes, one event
    each). `reasoning`: whether reasoning is shown as "summary" parts or as "text" parts. `strict`: what has no place in
    the stream (other choices, audio, images) fails the response instead of being warned of. `preserve_raw_usage`: the
    provider's own usage is kept in the final response's `provider_data`.

    Raises BadInput and ProfileNotFound for options that are none. What the source does wrong never raises: it ends as
    `error` and `response.failed`.
    """

    base_profile: ClassVar[Profile] = DEFAULT

    def __init__(
        self,
        profile: str | Profile | None = None,
        *,
        request: Any = None,
        ids: IdsChoice = "random",
        created_at: int | None = None,
        events: EventStyle = "openai",
        reasoning: Literal["summary", "text"] = "summary",
        strict: bool = False,
        preserve_raw_usage: bool = False,
    ) -> None:
        self.profile = self._profile(profile)
        self.ended = False  # the terminal event was sent
        self.error: BaseException | None = None
        self.warnings: list[tuple[str, int, str]] = []
        if reasoning not in ("summary", "text"):
            raise BadInput(f'reasoning={reasoning!r}: it is "summary" or "text"')
        self._strict = strict
        self._emitter = make_emitter(events)
        self._normalizer = Normalizer(self.profile, self._warn)
        clock = _now if created_at is None else lambda: created_at
        self._assembler = Assembler(self._emitter, choose_ids(ids), request, clock, reasoning, self._warn)
        self._assembler.keep_raw_usage = preserve_raw_usage
        self._decoder = SSEDecoder()
        self._is_cut = False  # what is read now is a line that the end of input cut
        self._forms = Forms()
        # Usual chunks go past normalizer and assembler: read by one of these, for chunks, for their JSON text, and for
        # pieces of an SSE body, then written. Each is set after a chunk that went the long way, for the likes of it.
        self._hear: Read = nothing
        self._hear_json: Read = nothing
        self._hear_piece: Read = nothing
        self._write: Callable[[Any], Any] = nothing
        self._passed = 0  # events that were made so, as far as they are counted as chunks
        self._unread: int | None = None  # the same when a loop began to give pieces past the decoder
        self._response: Any = None

    def feed(self, chunk: Any) -> list[Any]:
        """Return the events that `chunk` causes, in order; none once the response has ended.

        A chunk is an SDK's chunk object, a mapping, or the JSON text of one.
        """
        said = self._hear(chunk)
        if said is not None:
            event = self._write(said)
            if event is not None:
                return [event]
        if self.ended:
            return []
        self._count()
        deltas = self._normalizer.feed(chunk)
        if deltas is None:
            came = f"chunk {self._chunk} is {_described(chunk)}, not an object"
            self._remember("chunk-unreadable", came)
        else:
            flow = self._take(deltas)
            self._hear = reader(chunk, flow.kind, flow.call)
        return self._emitter.take()

    def feed_sse(self, data: bytes) -> list[Any]:
        """Return the events that a piece of an SSE body causes. `[DONE]` ends the response."""
        self._count_pieces()
        try:
            messages = self._decoder.feed(data)
        except (AttributeError, TypeError):
            if isinstance(data, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers without types
                raise
            raise BadInput(
                f"a piece of an SSE body is {_described(data)}: bytes are expected. Chunks that were read go to convert"
            ) from None
        if len(messages) == 1:
            return self._events_of(messages[0], 0)
        events: list[Any] = []
        for position, message in enumerate(messages):
            events += self._events_of(message, position)
        return events

    def _events_of(self, message: Message, position: int) -> list[Any]:
        said = self._hear_json(message)
        if said is not None:
            event = self._write(said)
            if event is not None:
                if self._forms.has_new:
                    self._hear_forms(self._assembler.flow)
                return [event]
        self._count()
        self._read(message, position)
        return self._emitter.take()

    def route(self) -> Route:
        """Return where usual chunks may go until the next `feed`: for a loop that pulls many chunks."""
        return Route(self._hear, self._write)

    def route_pieces(self) -> Route:
        """Return where pieces of an SSE body that are usual chunks may go until the next `feed_sse`."""
        if self._hear_piece is nothing or not self._decoder.is_between:
            return NOWHERE
        self._unread = self._emitter.flown
        return Route(self._hear_piece, self._write)

    def finish(self, *, done: bool = False) -> list[Any]:
        """Return the last events: what is open is closed, then exactly one terminal event. `done`: `[DONE]` was seen."""
        return self._end(done, None)

    def fail(self, error: BaseException) -> list[Any]:
        """Return the last events where the source raised `error`: called instead of `finish`."""
        return self._end(False, error)

    @property
    def final(self) -> dict[str, Any] | None:
        """The final response as a dict of its own, whatever the style of the events; None before the end."""
        final: dict[str, Any] | None = copied(self._assembler.final)
        return final

    @property
    def response(self) -> Any:
        """The final response: an openai `Response`, or a dict with the styles "dict" and "sse". None before the end."""
        if self._response is None and self.ended:
            self._response = self._emitter.response(self.final or {})
        return self._response

    @classmethod
    async def handle_stream(
        cls,
        response: Any,
        stream: AsyncIterable[Any],
        model: str | None = None,
        *,
        strict_feature_validation: bool = False,
        preserve_raw_usage: bool = False,
        raise_on_length_truncation: bool = False,
        require_finish_reason: bool = False,
        **options: Unpack[Options],
    ) -> AsyncIterator[Any]:
        """Yield the openai events of `stream`. Takes the keywords of openai-agents' handler of that name, 0.22 to 0.24.

        `response` is echoed as the request (model, instructions, tools, …); `model` is used where it names none.
        `strict_feature_validation`: as `strict`. `preserve_raw_usage`: the provider's usage is kept in the final
        response's `provider_data`. `raise_on_length_truncation`: raises SourceError where the token limit cut the answer
        before anything but reasoning was said. `require_finish_reason`: an ending without finish_reason fails whatever the profile says.
        What the source raised is raised after the terminal event.
        """
        options.setdefault("request", _request_of(response, model))
        options.setdefault("strict", strict_feature_validation)
        handler = cls(**options, preserve_raw_usage=preserve_raw_usage)
        handler._finish_required = require_finish_reason
        async with aclosing(apull(handler, of_chunks(handler), stream)) as events:
            async for event in events:
                yield event
        raise_failure(handler)
        if raise_on_length_truncation and _is_cut_before_anything(handler.final or {}):
            raise SourceError("max_output_tokens", "the answer was cut before anything was said")

    _finish_required = False

    @property
    def _chunk(self) -> int:
        """The number of the chunk that is read, from 0."""
        return max(self._normalizer.chunks - 1, 0)

    # --- inside ------------------------------------------------------------------------------------------------

    def _profile(self, profile: str | Profile | None) -> Profile:
        if profile is None:
            return self.base_profile
        return profile if isinstance(profile, Profile) else load_profile(profile)

    def _take(self, deltas: Sequence[Delta]) -> Flow:
        """Take the deltas of a chunk. Return where usual chunks may go from now on; their readers are for the caller."""
        self._assembler.feed(deltas)
        self._hear = self._hear_json = self._hear_piece = nothing
        if self._assembler.ending is not None:
            self._note_end(None)
        flow = self._assembler.flow if self._normalizer.reads_usual and not self.ended else NOTHING
        self._write = flow.write
        return flow

    def _count(self) -> None:
        """Count the chunks that went past the normalizer."""
        flown = self._emitter.flown
        self._normalizer.chunks += flown - self._passed
        self._passed = flown

    def _count_pieces(self) -> None:
        """Count the pieces that went past the decoder."""
        if self._unread is not None:
            self._decoder.skip(self._emitter.flown - self._unread)
            self._unread = None

    def _read(self, message: Message, position: int) -> None:
        """Take one SSE message. Nothing after `[DONE]` or an error is read."""
        if self.ended:
            return
        payload, event = (message.data, message.event) if isinstance(message, SSEMessage) else (message, "")
        if payload[:1] != b"{":
            payload = payload.strip()
            if payload == DONE:
                self._close(True, None)
            if payload in (DONE, b""):
                return
        deltas = self._normalizer.feed_json(payload, error=event == "error")
        if deltas is None and self._is_cut:
            self._warn("line-cut", "the stream was cut in the middle of a line")
        elif deltas is None:
            line = self._decoder.line_of(position)
            self._remember("line-unreadable", f"line {line} is not a JSON object: {_excerpt(payload)}")
        else:
            flow = self._take(deltas)
            self._forms.look_at(payload, flow.kind, flow.call)
            self._hear_forms(flow)

    def _hear_forms(self, flow: Flow) -> None:
        if flow.kind is None:
            return
        self._hear_json = self._forms.reader(flow.kind, flow.call)
        self._hear_piece = self._forms.piece_reader(flow.kind, flow.call, self._decoder.ending)

    def _end(self, done: bool, raised: BaseException | None) -> list[Any]:
        self._count()
        self._count_pieces()
        last = self._decoder.finish()
        for position, message in enumerate(last):
            self._is_cut = self._decoder.cut and position == len(last) - 1
            self._read(message, position)
        if not self.ended:
            self._close(done, raised)
        return self._emitter.take()

    def _close(self, done: bool, raised: BaseException | None) -> None:
        kept = self._normalizer.finish()
        if kept:
            self._assembler.feed(kept)
        self._assembler.end(
            done=done,
            optional=self.profile.finish_reason_optional and not self._finish_required,
            raised=None if raised is None else fault_of_exception(raised),
        )
        self._note_end(raised)

    def _note_end(self, raised: BaseException | None) -> None:
        self.ended = True
        self._hear = self._hear_json = self._hear_piece = nothing
        ending = self._assembler.ending
        fault = ending.fault if ending else None
        if raised is not None:
            self.error = raised
        elif fault is not None and self.error is None:
            self.error = SourceError(*fault)

    def _remember(self, code: str, message: str) -> None:
        """Keep a fault of the source: conversion goes on, and the response fails at its end."""
        self._assembler.seen.chunks = True
        self._assembler.faults.append(Fault(SERVER_ERROR, message))
        self._warn(code, message)

    def _warn(self, code: str, message: str) -> None:
        if any((code, message) == (other, said) for other, _, said in self.warnings):
            return
        if self._strict and code in STRICT_CODES:
            self.error = StrictError(SERVER_ERROR, message)
            self._assembler.faults.append(Fault(SERVER_ERROR, message))
        if len(self.warnings) < MAX_WARNINGS:
            self.warnings.append((code, self._chunk, message))
            import logging  # costs 5 ms, and most streams have nothing to warn of

            logging.getLogger("antiphon").warning("%s: %s", code, redact(message))


class OpenAIChatCmplStreamHandler(ChatCmplStreamHandler):
    """For chunks of the OpenAI SDK."""

    base_profile = Profile("openai_sdk")


class LiteLLMChatCmplStreamHandler(ChatCmplStreamHandler):
    """For chunks of LiteLLM, which names all reasoning `reasoning_content`, and its signed blocks `thinking_blocks`."""

    base_profile = Profile("litellm_sdk", reasoning_fields=("reasoning_content", "reasoning", "reasoning_text"))


class AnyLLMChatCmplStreamHandler(ChatCmplStreamHandler):
    """For chunks of any-llm, whose `reasoning` is an object with `content`."""

    base_profile = Profile("any_llm_sdk", reasoning_fields=("reasoning", *sorted({*REASONING_FIELDS} - {"reasoning"})))


# --- shells --------------------------------------------------------------------------------------------------------


def of_chunks(handler: ChatCmplStreamHandler) -> Reader:
    """Return the way of chunks into `handler`."""
    return Reader(handler.feed, handler.route)


def of_body(handler: ChatCmplStreamHandler) -> Reader:
    """Return the way of pieces of an SSE body into `handler`."""
    return Reader(handler.feed_sse, handler.route_pieces)


def made(options: Options) -> ChatCmplStreamHandler:
    """Return a handler. Raises TypeError for an option that is none."""
    try:
        return ChatCmplStreamHandler(**options)
    except TypeError:
        unknown = ", ".join(sorted(options.keys() - Options.__optional_keys__))
        if not unknown:
            raise
        known = ", ".join(sorted(Options.__optional_keys__))
        raise TypeError(f"there is no option {unknown}; there are: {known}, and raise_on_error") from None


def convert(chunks: Iterable[Any], *, raise_on_error: bool = False, **options: Unpack[Options]) -> Iterator[Any]:
    """Yield the events of `chunks`, each as soon as it can be said. Takes the options of `ChatCmplStreamHandler`.

    The source is closed however the iterator is left. Raises BadInput where `chunks` is no iterable of chunks; with
    `raise_on_error` what the source raised, or SourceError, after the terminal event of a failed response.
    """
    if isinstance(chunks, str | bytes | dict):
        raise BadInput(
            f"chunks is {_described(chunks)}: convert takes an iterable of chunks. "
            "An SSE body goes to convert_sse, a whole chat completion to to_response"
        )
    handler = made(options)
    return pull(handler, of_chunks(handler), chunks, raise_on_error)


def convert_sse(
    body: bytes | Iterable[bytes], *, raise_on_error: bool = False, **options: Unpack[Options]
) -> Iterator[Any]:
    """Yield the events of an SSE body, whole or in pieces cut anywhere. With events="sse", each as one piece of bytes.

    Closes and raises as `convert` does.
    """
    if isinstance(body, str | dict):
        raise BadInput(
            f"body is {_described(body)}: convert_sse takes the bytes of an SSE body, whole or in pieces. "
            "Chunks that were read go to convert"
        )
    handler = made(options)
    pieces = (bytes(body),) if isinstance(body, bytes | bytearray | memoryview) else body
    return pull(handler, of_body(handler), pieces, raise_on_error)


def aconvert(
    chunks: AsyncIterable[Any] | Iterable[Any], *, raise_on_error: bool = False, **options: Unpack[Options]
) -> AsyncGenerator[Any, None]:
    """Yield the events of an async source (or a plain one). As `convert` in all else; cancelling closes the source."""
    handler = made(options)
    return apull(handler, of_chunks(handler), chunks, raise_on_error)


def aconvert_sse(
    body: AsyncIterable[bytes] | Iterable[bytes], *, raise_on_error: bool = False, **options: Unpack[Options]
) -> AsyncGenerator[Any, None]:
    """Yield the events of an async source of SSE bytes. As `convert_sse` in all else."""
    handler = made(options)
    return apull(handler, of_body(handler), body, raise_on_error)


def _request_of(response: Any, model: str | None) -> dict[str, Any]:
    request = {key: value for key, value in plain(response).items() if value is not None}
    return {**request, "model": request.get("model") or model}


def _is_cut_before_anything(final: Mapping[str, Any]) -> bool:
    """Return whether the token limit left nothing but reasoning."""
    why: Mapping[str, Any] = final["incomplete_details"] or {}
    return why.get("reason") == "max_output_tokens" and all(item["type"] == "reasoning" for item in final["output"])


def _now() -> int:
    return int(time.time())


def _described(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _excerpt(payload: bytes) -> str:
    text = redact(payload[:80].decode("utf-8", "replace"))
    return repr(f"{text}…" if len(payload) > 80 else text)
