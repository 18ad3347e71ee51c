"""The floor: the least that bytes to bytes can cost in Python. One framed event for each chunk with text.

Decode the chunk, take its text and log probabilities, encode one minimal event, and no logic between. The shape is that
of a converter: an iterator that is pulled. The two are written out, so that neither pays for a layer between.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from orjson import dumps, loads


def least(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the events of `pieces`, of which each ends where a line does."""
    number = 0
    for piece in pieces:
        for line in piece.split(b"\n"):
            if line[:6] != b"data: " or line == b"data: [DONE]":
                continue
            choices = loads(line[6:])["choices"]
            if not choices:
                continue
            choice = choices[0]
            delta = choice["delta"]
            text = delta.get("content") or delta.get("reasoning_content")
            if not text:
                calls = delta.get("tool_calls")
                if not calls or not (text := calls[0]["function"]["arguments"]):
                    continue
            logprobs = choice["logprobs"]
            event: dict[str, Any] = {
                "type": "response.output_text.delta",
                "sequence_number": number,
                "item_id": "msg_bench",
                "output_index": 0,
                "content_index": 0,
                "delta": text,
                "logprobs": logprobs["content"] if logprobs else [],
            }
            number += 1
            yield b"event: response.output_text.delta\ndata: " + dumps(event) + b"\n\n"


async def least_async(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the events of `pieces` with text, of which each ends where a line does."""
    number = 0
    async for piece in pieces:
        for line in piece.split(b"\n"):
            if line[:6] != b"data: " or line == b"data: [DONE]":
                continue
            choices = loads(line[6:])["choices"]
            if not choices:
                continue
            choice = choices[0]
            text = choice["delta"].get("content")
            if not text:
                continue
            logprobs = choice["logprobs"]
            event: dict[str, Any] = {
                "type": "response.output_text.delta",
                "sequence_number": number,
                "item_id": "msg_bench",
                "output_index": 0,
                "content_index": 0,
                "delta": text,
                "logprobs": logprobs["content"] if logprobs else [],
            }
            number += 1
            yield b"event: response.output_text.delta\ndata: " + dumps(event) + b"\n\n"
