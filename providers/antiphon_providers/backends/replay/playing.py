"""What the replay backend plays, whatever it comes from: pieces of an SSE body, and how the stream ends."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

DONE_EVENT = b"data: [DONE]\n\n"
CREATED = 1_700_000_000  # answers are the same every time
_TOKEN = re.compile(r"\s*\S{1,6}|\s+")
_SAID = ("content", "refusal", "reasoning_content", "reasoning", "tool_calls", "function_call")


@dataclass(frozen=True, slots=True)
class Played:
    """One answer. `breaks`: the connection breaks after the pieces, and why. `whole`: the completion, where it is one."""

    pieces: tuple[bytes, ...]
    breaks: str | None = None
    whole: Json | None = None


def held(holder: Mapping[str, Any], name: str) -> Json:
    """Return the object that is kept under `name`; an empty one where there is none."""
    found: Any = holder.get(name)
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def event(payload: Any) -> bytes:
    """Return a chunk as one server-sent event."""
    return b"data: %b\n\n" % json.dumps(payload).encode()


def tokens(text: str) -> list[str]:
    """Return `text` in small pieces, which together are all of it."""
    return _TOKEN.findall(text)


def asks_usage(body: Mapping[str, Any]) -> bool:
    """Return whether the request wants the usage of a stream."""
    return bool(held(body, "stream_options").get("include_usage"))


def most_tokens(body: Mapping[str, Any]) -> int | None:
    """Return the token limit of the request, or None."""
    given = (body.get(key) for key in ("max_completion_tokens", "max_tokens"))
    return next((limit for limit in given if isinstance(limit, int)), None)


def cut(chunks: Iterable[Json], most: int | None) -> Iterator[Json]:
    """Yield the chunks up to the token limit, each that says something being a token; then the finish that says so."""
    said = 0
    for chunk in chunks:
        said += _says(chunk)
        if most is not None and said > most:
            yield {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}
            return
        yield chunk


def _says(chunk: Json) -> bool:
    return any(held(choice, "delta").get(name) for choice in chunk.get("choices") or () for name in _SAID)
