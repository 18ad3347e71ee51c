"""What is timed: `SUBJECTS`, each a way from the inputs of a workload to events: ours, openai-agents', the floor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from .streams import Open, arriving
from .workloads import Load


@dataclass(frozen=True, slots=True)
class Subject:
    """A converter. `prepare` imports it and returns what opens a stream; `reads` says which inputs it needs."""

    name: str
    about: str
    reads: Literal["objects", "wire"]
    prepare: Callable[[], Open]
    needs: tuple[str, ...]  # modules

    def missing(self) -> str | None:
        """Return why this subject cannot be timed here, or None."""
        for module in self.needs:
            try:
                import_module(module)
            except ImportError as error:
                return f"{self.name}: {error}"
        return None


def _ours_objects(events: Literal["openai", "dict"]) -> Callable[[], Open]:
    def prepare() -> Open:
        from antiphon import convert

        return lambda load: convert(load.chunks, events=events)

    return prepare


def _ours_objects_async() -> Open:
    from antiphon import aconvert

    return lambda load: aconvert(arriving(load.chunks, load), events="openai")


def _ours_wire() -> Open:
    from antiphon import convert_sse

    return lambda load: convert_sse(load.pieces, events="sse")


def _ours_whole() -> Open:
    from antiphon import convert_sse

    return lambda load: convert_sse([load.body], events="sse")


def _ours_wire_async() -> Open:
    from antiphon import aconvert_sse

    return lambda load: aconvert_sse(arriving(load.pieces, load), events="sse")


def _ours_parsed() -> Open:
    from openai.types.chat import ChatCompletionChunk

    from antiphon import convert

    def chunks(pieces: Iterable[bytes]) -> Iterator[ChatCompletionChunk]:
        parse = ChatCompletionChunk.model_validate_json
        for piece in pieces:
            for line in piece.split(b"\n"):
                if line[:6] == b"data: " and line != b"data: [DONE]":
                    yield parse(line[6:])

    return lambda load: convert(chunks(load.pieces), events="openai")


def _agents() -> Open:
    from agents.models.chatcmpl_stream_handler import ChatCmplStreamHandler

    response = _empty_response()

    def open(load: Load) -> AsyncIterator[Any]:
        chunks: Any = arriving(load.chunks, load)  # it asks for an AsyncStream, and iterates over it
        return ChatCmplStreamHandler.handle_stream(response, chunks)

    return open


def _agents_parsed() -> Callable[[Load], AsyncIterator[Any]]:
    import httpx2
    from agents.models.chatcmpl_stream_handler import ChatCmplStreamHandler
    from openai import AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk

    client = AsyncOpenAI(api_key="none", base_url="http://localhost/v1")
    request = httpx2.Request("POST", "http://localhost/v1/chat/completions")
    response = _empty_response()
    # HTTP/2: the SDK drains an HTTP/1.1 body after [DONE], for which it needs an event loop
    version = {"http_version": b"HTTP/2"}

    def open(load: Load) -> AsyncIterator[Any]:
        body = httpx2.Response(200, content=arriving(load.pieces, load), request=request, extensions=version)
        chunks: AsyncStream[ChatCompletionChunk] = AsyncStream(
            cast_to=ChatCompletionChunk, response=body, client=client
        )
        return ChatCmplStreamHandler.handle_stream(response, chunks)

    return open


def _agents_wire() -> Open:
    open = _agents_parsed()

    async def framed(events: AsyncIterator[Any]) -> AsyncIterator[bytes]:
        async for event in events:
            yield f"event: {event.type}\ndata: {event.model_dump_json()}\n\n".encode()

    return lambda load: framed(open(load))


def _empty_response() -> Any:
    from openai.types.responses import Response

    return Response(
        id="resp_bench",
        created_at=0,
        model="gpt-4.1-mini",
        object="response",
        output=[],
        tool_choice="auto",
        tools=[],
        parallel_tool_calls=True,
    )


def _floor() -> Open:
    from .floor import least

    return lambda load: least(load.pieces)


def _floor_whole() -> Open:
    from .floor import least

    return lambda load: least([load.body])


def _floor_async() -> Open:
    from .floor import least_async

    return lambda load: least_async(arriving(load.pieces, load))


_OURS = ("antiphon.stream.handler",)
_AGENTS = ("agents.models.chatcmpl_stream_handler", "httpx2")
_FLOOR = ("orjson",)

SUBJECTS: dict[str, Subject] = {
    subject.name: subject
    for subject in (
        Subject("ours.openai", "convert: chunk objects to event objects", "objects", _ours_objects("openai"), _OURS),
        Subject("ours.openai.async", "aconvert: the same, asynchronous", "objects", _ours_objects_async, _OURS),
        Subject("ours.dict", "convert: chunk objects to dict events", "objects", _ours_objects("dict"), _OURS),
        Subject("ours.sse", "convert_sse: SSE bytes to SSE bytes", "wire", _ours_wire, _OURS),
        Subject("ours.sse.async", "aconvert_sse: the same, asynchronous", "wire", _ours_wire_async, _OURS),
        Subject("ours.sse.whole", "convert_sse: the body in one piece", "wire", _ours_whole, _OURS),
        Subject("ours.parsed", "model_validate_json, then convert to event objects", "wire", _ours_parsed, _OURS),
        Subject("agents", "openai-agents' ChatCmplStreamHandler.handle_stream", "objects", _agents, _AGENTS),
        Subject("agents.parsed", "the openai SDK's AsyncStream, then agents", "wire", _agents_parsed, _AGENTS),
        Subject("agents.wire", "AsyncStream, agents, model_dump_json, framed", "wire", _agents_wire, _AGENTS),
        Subject("floor", "decode, encode one minimal event, framed", "wire", _floor, _FLOOR),
        Subject("floor.async", "the same, asynchronous", "wire", _floor_async, _FLOOR),
        Subject("floor.whole", "the floor, the body in one piece", "wire", _floor_whole, _FLOOR),
    )
}
