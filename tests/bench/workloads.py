"""The chat streams that are converted, made up here, the same in every run: `WORKLOADS`, and the inputs built from them.

A chunk has the fields of one that api.openai.com sends for `stream=True` with `include_usage`.
Source: the keys of the recordings in chat/openai of the project's corpus.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, cycle, islice
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
Choice: TypeAlias = tuple[Json, Json | None]  # a delta, and the log probabilities beside it

SENTENCES = (
    "tide salt the moor gull is over a hill of slate and then rain, low sun on wet stone; we walk by the old wall "
    'to see ships go. Fog! It lifts (so they say) at noon -- "soon", said Wren.\n\nNine bells: the quay, café, naïve '
    "oar, 3.14 knots, x = y[0] * 2, é à ü, heron, lamp, kelp, dusk, ebb, rope, mast, lee"
)
WORDS = SENTENCES.split(" ")


@dataclass(frozen=True, slots=True)
class Workload:
    """A chat stream: `choices(size)` gives the deltas between the role chunk and the finish chunk."""

    name: str
    about: str
    size: int  # deltas, or characters of arguments
    choices: Callable[[int], Iterator[Choice]]
    finish: str = "stop"
    streams: int = 1  # how many run at once in one event loop
    shared: bool = False  # equal chunks are one object

    def scaled(self, scale: float) -> int:
        """Return the size for a run at `scale`; never so small that a kind of delta is missing."""
        return max(24, int(self.size * scale))

    def side_by_side(self, scale: float) -> int:
        """Return how many streams run at once at `scale`: 1 stays 1, several stay several."""
        return max(min(self.streams, 2), int(self.streams * scale))


@dataclass(frozen=True, slots=True)
class Load:
    """The inputs of one workload. `chunks` are openai objects; `pieces` is the SSE `body`, cut where the events end."""

    workload: Workload
    count: int  # chunks in all streams
    streams: int
    chunks: Iterable[Any] = ()
    pieces: Iterable[bytes] = ()
    body: bytes = b""


def prebuilt(workload: Workload, scale: float, *, objects: bool, wire: bool) -> Load:
    """Return the inputs of `workload` in memory; those that nobody asked for are empty."""
    lines = list(data_lines(workload, scale))
    pieces = [b"data: %b\n\n" % data for data in chain(lines, [b"[DONE]"])] if wire else []
    streams = workload.side_by_side(scale)
    return Load(
        workload,
        count=len(lines) * streams,
        streams=streams,
        chunks=list(_parsed(lines, shared=workload.shared)) if objects else [],
        pieces=pieces,
        body=b"".join(pieces),
    )


def passing(workload: Workload, scale: float) -> Load:
    """Return the inputs of `workload` to be read once: every chunk is made as it is asked for, and kept by nobody."""
    count = sum(1 for _ in data_lines(workload, scale))
    return Load(workload, count=count, streams=1, chunks=_parsed(data_lines(workload, scale), shared=False))


def expected_text(workload: Workload, scale: float) -> str:
    """Return what the deltas of the converted stream must add up to, whatever their kind."""
    return "".join(delta_text(delta) for delta, _ in workload.choices(workload.scaled(scale)))


def delta_text(delta: Json) -> str:
    """Return the text, reasoning or arguments in a chat delta."""
    if calls := delta.get("tool_calls"):
        return str(calls[0]["function"]["arguments"])
    return str(delta.get("content") or delta.get("reasoning_content") or "")


def data_lines(workload: Workload, scale: float) -> Iterator[bytes]:
    """Yield the chunks as JSON text, without `data: ` and without `[DONE]`."""
    yield _line([_choice({"role": "assistant", "content": "", "refusal": None})])
    for delta, logprobs in workload.choices(workload.scaled(scale)):
        yield _line([_choice(delta, logprobs)])
    yield _line([_choice({}, finish=workload.finish)])
    yield _line([], usage=_USAGE)


def _parsed(lines: Iterable[bytes], *, shared: bool) -> Iterator[Any]:
    """Yield openai chunk objects. They equal the SDK's own, which it builds without validation, three times slower."""
    from openai.types.chat import ChatCompletionChunk

    known: dict[bytes, ChatCompletionChunk] = {}
    for line in lines:
        chunk = known.get(line) or ChatCompletionChunk.model_validate(json.loads(line))
        if shared:
            known[line] = chunk
        yield chunk


_USAGE: Json = {
    "prompt_tokens": 57,
    "completion_tokens": 2000,
    "total_tokens": 2057,
    "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
}


def _choice(delta: Json, logprobs: Json | None = None, finish: str | None = None) -> Json:
    return {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}


def _line(choices: list[Json], usage: Json | None = None) -> bytes:
    chunk: Json = {
        "id": "chatcmpl-B9qTidewater0Harbour1Lantern2",
        "object": "chat.completion.chunk",
        "created": 1_760_000_000,
        "model": "gpt-4.1-mini-2025-04-14",
        "system_fingerprint": "fp_5ea1e7d0c2",
        "choices": choices,
    }
    if usage is not None:
        chunk["usage"] = usage
    return json.dumps(chunk, separators=(",", ":"), ensure_ascii=False).encode()


def _pieces(count: int, seed: int) -> Iterator[str]:
    """Yield `count` pieces of text of about four characters, most with a space before the word, as tokens have."""
    chosen = random.Random(seed)
    for _ in range(count):
        word = chosen.choice(WORDS)
        yield word if chosen.random() < 0.2 else f" {word}"


def _text(size: int) -> Iterator[Choice]:
    for piece in _pieces(size, seed=1):
        yield {"content": piece}, None


def _text_of_40(size: int) -> Iterator[Choice]:
    distinct = list(dict.fromkeys(_pieces(200, seed=56)))[:40]
    for piece in islice(cycle(distinct), size):
        yield {"content": piece}, None


def _mixed(size: int) -> Iterator[Choice]:
    """Yield two parts reasoning, one part text and three calls, one after the other, as long as one part each."""
    part = size // 6
    for piece in _pieces(2 * part, seed=3):
        yield {"reasoning_content": piece}, None
    for piece in _pieces(size - 5 * part, seed=4):
        yield {"content": piece}, None
    for index in range(3):
        yield from _call(index, _document(4 * part, seed=5 + index), step=4)


def _one_call(size: int) -> Iterator[Choice]:
    return _call(0, _document(size, seed=9), step=8)


def _call(index: int, arguments: str, step: int) -> Iterator[Choice]:
    head = {"name": "write_log", "arguments": ""}
    yield {"tool_calls": [{"index": index, "id": f"call_bench{index}", "type": "function", "function": head}]}, None
    for at in range(0, len(arguments), step):
        yield {"tool_calls": [{"index": index, "function": {"arguments": arguments[at : at + step]}}]}, None


def _document(size: int, seed: int) -> str:
    """Return a JSON object of exactly `size` ASCII characters."""
    before, after = '{"entry": "', '"}'
    length = size - len(before) - len(after)
    words = "".join(_pieces(length // 2 + 1, seed)).encode("ascii", "ignore").decode()
    plain = words.replace('"', "'").replace("\n", ".")
    return before + plain[:length].ljust(length, ".") + after


def _with_logprobs(size: int) -> Iterator[Choice]:
    chosen = random.Random(7)
    for piece in _pieces(size, seed=8):
        others = [_token(other, chosen) for other in chosen.choices(WORDS, k=4)]
        token = _token(piece, chosen)
        yield {"content": piece}, {"content": [{**token, "top_logprobs": [token, *others]}], "refusal": None}


def _token(token: str, chosen: random.Random) -> Json:
    return {"token": token, "logprob": round(-chosen.expovariate(0.5), 8), "bytes": list(token.encode())}


WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload("W1", "2,000 text chunks of about 4 characters", 2_000, _text),
        Workload("W1h", "2,000 text chunks, 40 distinct objects", 2_000, _text_of_40, shared=True),
        Workload("W2", "20,000 text chunks", 20_000, _text),
        Workload("W3", "100,000 text chunks", 100_000, _text),
        Workload("W4", "reasoning, text, three calls; 5,000 deltas", 5_000, _mixed, finish="tool_calls"),
        Workload("W5s", "one call, 128 KB of arguments in 8-character deltas", 128 * 1024, _one_call, "tool_calls"),
        Workload("W5q", "one call, 512 KB", 512 * 1024, _one_call, "tool_calls"),
        Workload("W5", "one call, 2 MB", 2048 * 1024, _one_call, "tool_calls"),
        Workload("W6", "2,000 text chunks with 5 top_logprobs", 2_000, _with_logprobs),
        Workload("W7", "500 streams of 200 text chunks in one event loop", 200, _text, streams=500),
    )
}
