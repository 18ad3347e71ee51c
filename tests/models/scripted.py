"""A backend that says what a test scripts, as chunks and as whole completions, and keeps what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from antiphon.backend import Form

USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
HANG = object()  # in a turn: nothing more comes until the stream is closed


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer: chunks, among them exceptions that are raised there, and the same as a completion."""

    chunks: Sequence[Any]
    whole: Any


@dataclass(slots=True)
class Scripted:
    """Gives one turn for each request; the last one again and again."""

    turns: Sequence[Turn]
    bodies: list[Mapping[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str] | None] = field(default_factory=list)
    timeouts: list[Any] = field(default_factory=list)
    closed: int = 0  # streams that were left before their end
    form: Form = "chunks"
    asked: asyncio.Event = field(default_factory=asyncio.Event)  # a request came

    def _next(self, body: Mapping[str, Any], headers: Mapping[str, str] | None, timeout: Any) -> Turn:
        self.bodies.append(body)
        self.headers.append(headers)
        self.timeouts.append(timeout)
        self.asked.set()
        return self.turns[min(len(self.bodies), len(self.turns)) - 1]

    async def stream(self, body: Any, *, headers: Any = None, timeout: Any = None) -> AsyncIterator[Any]:  # noqa: ASYNC109
        turn = self._next(body, headers, timeout)
        try:
            for one in turn.chunks:
                await asyncio.sleep(0)
                if isinstance(one, BaseException):
                    raise one
                if one is HANG:
                    await asyncio.Event().wait()
                yield one
        except (asyncio.CancelledError, GeneratorExit):
            self.closed += 1
            raise

    async def complete(self, body: Any, *, headers: Any = None, timeout: Any = None) -> Any:  # noqa: ASYNC109
        turn = self._next(body, headers, timeout)
        if isinstance(turn.whole, BaseException):
            raise turn.whole
        return turn.whole

    async def models(self) -> list[dict[str, Any]]:
        return []

    async def aclose(self) -> None:
        pass


async def collect(events: AsyncIterator[Any], into: list[Any]) -> None:
    """Put the events into a list; those before a failure are kept."""
    async for event in events:
        into.append(event)  # noqa: PERF401  # `extend` would lose them


def chunk(delta: Mapping[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a chunk."""
    choice = {"index": 0, "delta": dict(delta or {}), "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "tiny", "choices": [choice], **more}


def whole(message: Mapping[str, Any], finish: str = "stop") -> dict[str, Any]:
    """Return a completion."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": "tiny", "choices": [choice], "usage": USAGE}


def ending(finish: str) -> list[Any]:
    """Return the chunks that end an answer."""
    return [chunk(finish=finish), {**chunk(), "choices": [], "usage": USAGE}]


def text(*pieces: str, finish: str = "stop", before: Iterable[Any] = ()) -> Turn:
    """Return an answer that says `pieces`."""
    said = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": piece}) for piece in pieces)]
    return Turn([*before, *said, *ending(finish)], whole({"content": "".join(pieces)}, finish))


def refusal(*pieces: str) -> Turn:
    """Return an answer that refuses."""
    said = [chunk({"refusal": piece}) for piece in pieces]
    return Turn([*said, *ending("stop")], whole({"content": None, "refusal": "".join(pieces)}))


def reasoning(thought: str, then: Turn) -> Turn:
    """Return `then` with a thought before it."""
    said = [chunk({"reasoning_content": piece}) for piece in (thought[:4], thought[4:])]
    choice = then.whole["choices"][0]
    message = {**choice["message"], "reasoning_content": thought}
    return Turn([*said, *then.chunks], {**then.whole, "choices": [{**choice, "message": message}]})


def failing(error: BaseException, *before: Any) -> Turn:
    """Return an answer that fails after the chunks `before`."""
    return Turn([*before, error], error)


Call = tuple[str, str, str]  # id, name, arguments


def calls(*made: Call, manner: str = "plain") -> Turn:
    """Return an answer that makes calls. `manner` is how a provider streams them: see `MANNERS`."""
    deltas = [MANNERS[manner](number, call) for number, call in enumerate(made)]
    said = [chunk({"tool_calls": [fragment]}) for fragments in deltas for fragment in fragments]
    told = [{"id": id, "type": "function", "function": {"name": name, "arguments": args}} for id, name, args in made]
    return Turn([*said, *ending("tool_calls")], whole({"content": None, "tool_calls": told}, "tool_calls"))


def _function(name: str | None, arguments: str | None) -> dict[str, Any]:
    given = {"name": name, "arguments": arguments}
    return {"function": {key: value for key, value in given.items() if value is not None}}


def _plain(number: int, call: Call) -> list[Any]:
    id, name, arguments = call
    head = {"index": number, "id": id, "type": "function", **_function(name, "")}
    middle = len(arguments) // 2
    return [
        head,
        *({"index": number, **_function(None, one)} for one in (arguments[:middle], arguments[middle:]) if one),
    ]


def _without_index(number: int, call: Call) -> list[Any]:
    return [{key: value for key, value in one.items() if key != "index"} for one in _plain(number, call)]


def _same_index(number: int, call: Call) -> list[Any]:
    return [{**one, "index": 0} for one in _plain(number, call)]


def _whole(number: int, call: Call) -> list[Any]:
    id, name, arguments = call
    return [{"index": number, "id": id, "type": "function", **_function(name, arguments)}]


def _late_name(number: int, call: Call) -> list[Any]:
    id, name, arguments = call
    return [{"index": number, "id": id, **_function(None, "")}, {"index": number, **_function(name, arguments)}]


MANNERS = {
    "plain": _plain,
    "missing index": _without_index,
    "same index": _same_index,
    "whole": _whole,
    "late name": _late_name,
}
