"""Chunk streams that break: the source goes away, fails, or sends what is no chunk. Each way has a name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import Any, TypeAlias

from hypothesis import strategies as st

from .conversations import Conversation, conversations
from .manners import ODDITIES
from .sending import ChunkStream, Json, chunk, chunk_streams

Break: TypeAlias = Callable[[list[Any], Random], list[Any]]


@dataclass(frozen=True, slots=True)
class BrokenChunks:
    """A chunk stream that breaks, and how. The adapter must end it exactly once, and not as completed unless the
    chunks finished; `check(events, chunks=…)` knows what that means for these chunks."""

    chunks: list[Any]
    how: str
    conversation: Conversation


def _cut(chunks: list[Any], dice: Random) -> list[Any]:
    """Leave out the first chunk with a finish_reason, some before it, and all after it."""
    finished = (at for at, one in enumerate(chunks) if any(choice.get("finish_reason") for choice in one["choices"]))
    return chunks[: dice.randint(0, next(finished, len(chunks)))]


def _no_finish(chunks: list[Any], dice: Random) -> list[Any]:
    """Leave out the finish_reason, and the usage, which says that the end was reached."""
    spoken = [{key: value for key, value in one.items() if key != "usage"} for one in chunks if one["choices"]]
    return [_changed(one, finish_reason=None) for one in spoken]


def _error(chunks: list[Any], dice: Random) -> list[Any]:
    error = {"message": "upstream went away", "type": "server_error", "param": None, "code": "server_error"}
    return [*_cut(chunks, dice), {"error": error}]


def _error_finish(chunks: list[Any], dice: Random) -> list[Any]:
    return [*_cut(chunks, dice), chunk({}, "error")]


def _inserted(*strays: Any) -> Break:
    def insert(chunks: list[Any], dice: Random) -> list[Any]:
        at = dice.randint(0, len(chunks))
        return [*chunks[:at], dice.choice(strays), *chunks[at:]]

    return insert


def _after(chunks: list[Any], dice: Random) -> list[Any]:
    return [*chunks, {"error": {"message": "too late", "code": None}}]


def _changed(one: Json, **fields: Any) -> Json:
    return {**one, "choices": [{**choice, **fields} for choice in one["choices"]]}


# name -> how the chunks are broken
BREAKS: Mapping[str, Break] = MappingProxyType(
    {
        "cut": _cut,
        "no finish_reason": _no_finish,
        "error in a chunk": _error,
        "finish_reason error": _error_finish,
        "error after the finish": _after,
        "no object": _inserted("", "data", 7, None, [], [{}]),
        "ill-typed": _inserted(
            {"choices": None},
            {"choices": [None]},
            {"choices": [{"delta": None}]},
            chunk({"role": 7}),
            chunk({"tool_calls": {"index": 0}}),
            chunk({"tool_calls": [None, {"index": "x"}]}),
        ),
    }
)


@st.composite
def broken_chunk_streams(
    draw: st.DrawFn,
    talks: st.SearchStrategy[Conversation] | None = None,
    *,
    breaks: Collection[str] = tuple(BREAKS),
    oddities: Collection[str] = tuple(ODDITIES),
) -> BrokenChunks:
    """Draw a chunk stream that breaks in one of these ways (names of `BREAKS`)."""
    stream: ChunkStream = draw(chunk_streams(conversations() if talks is None else talks, oddities=oddities))
    how = draw(st.sampled_from([name for name in BREAKS if name in breaks]))
    chunks = BREAKS[how](list(stream.chunks), Random(draw(st.integers(0, 2**16))))
    return BrokenChunks(chunks, how, stream.conversation)
