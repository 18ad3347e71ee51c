"""A scripted chat backend: a message, as a whole answer or as the chunks of a stream."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from antiphon import accumulate, convert, to_response
from antiphon.request import ChatRequest

Json: TypeAlias = dict[str, Any]

HEAD = {"id": "chatcmpl-1", "created": 1700000000, "model": "m"}
SAME: Json = {"events": "dict", "created_at": 0}
TEXTS = ("reasoning_content", "reasoning", "content")


def whole(message: Json, finish: str = "stop") -> Json:
    """Return the answer in one piece."""
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {**HEAD, "object": "chat.completion", "choices": [choice]}


def chunks(message: Json, *, piece: int = 5, seed: int | None = None, finish: str = "stop") -> Iterator[Json]:
    """Yield the answer in pieces of at most `piece` characters, of random lengths with a seed."""
    yield _chunk({"role": "assistant", "content": ""})
    for delta in _deltas(message, piece, None if seed is None else random.Random(seed)):
        yield _chunk(delta)
    yield _chunk({}, finish)


def answered(chat: ChatRequest, message: Json, *, streamed: bool) -> list[Json]:
    """Return the output items of the answer, as the client gets them."""
    if not streamed:
        return list(chat.restore.response(to_response(whole(message), **SAME))["output"])
    events = list(chat.restore.events(convert(chunks(message), **SAME)))
    return list(accumulate(events)["output"])


def _chunk(delta: Json, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {**HEAD, "object": "chat.completion.chunk", "choices": [choice]}


def _deltas(message: Json, piece: int, chance: random.Random | None) -> Iterator[Json]:
    for name in TEXTS:
        value = message.get(name)
        if isinstance(value, str):
            yield from ({name: text} for text in _cut(value, piece, chance))
        elif isinstance(value, list):
            yield from ({name: [part]} for part in value)
        if name == "reasoning":
            yield from (
                {key: [one]} for key in ("reasoning_details", "thinking_blocks") for one in message.get(key, ())
            )
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        yield {"tool_calls": [{**call, "index": index, "function": {"name": function["name"], "arguments": ""}}]}
        for text in _cut(function["arguments"], piece, chance):
            yield {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def _cut(text: str, piece: int, chance: random.Random | None) -> Sequence[str]:
    cut: list[str] = []
    while text:
        size = piece if chance is None else chance.randint(1, piece)
        cut.append(text[:size])
        text = text[size:]
    return cut
