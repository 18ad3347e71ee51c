"""CHT: the usage in a chunk stream."""

from __future__ import annotations

from collections.abc import Iterator

from antiphon_conformance.chunks import AnswerTrace
from antiphon_conformance.evidence import (
    CHAT_TEXT,
    LLAMACPP_TWO,
    chat_types,
)
from antiphon_conformance.read import Json, mapping, number, quoted
from antiphon_conformance.rule import Client, Found, Level, Schema, folded, rule

from .chunks import CHUNKS, WHOLE

_REFERENCE = "API reference, chat completions"
_METERS = Client("programs that meter usage", "read it from the chunk with empty choices, and count nothing or twice")


def wants_usage(trace: AnswerTrace) -> bool:
    """Return whether the request asked for usage."""
    return mapping(trace.asked.get("stream_options")).get("include_usage") is True


@rule(
    "CHT060",
    "usage-where-asked",
    Level.MUST,
    since="1.0",
    sources=(_METERS, CHAT_TEXT),
    needs=WHOLE,
    about="answers",
)
def usage_where_asked(trace: AnswerTrace) -> Iterator[Found]:
    """Where `stream_options.include_usage` is true, a chunk carries the usage."""
    if wants_usage(trace) and not trace.usages and not trace.cut:
        yield Found(None, "usage was asked for, and no chunk carries it")


@rule(
    "CHT061",
    "usage-has-its-chunk",
    Level.SHOULD,
    since="1.0",
    sources=(_METERS, CHAT_TEXT),
    needs=WHOLE,
    about="answers",
)
def usage_has_its_chunk(trace: AnswerTrace) -> Iterator[Found]:
    """Where usage was asked for, it comes in a chunk of its own, the last, whose `choices` are empty."""
    if not wants_usage(trace):
        return
    last = trace.chunks[-1][0]
    empty = [at for at, chunk in trace.usages if not chunk.get("choices")]
    if trace.usages and not empty:
        yield Found(trace.usages[-1][0], "the usage comes in a chunk that has choices")
    elif empty and empty[-1] != last and "moderation" not in trace.chunks[-1][1]:
        yield Found(empty[-1], "chunks come after the one with the usage")


@rule(
    "CHT062",
    "usage-comes-once",
    Level.SHOULD,
    since="1.0",
    sources=(_METERS, CHAT_TEXT),
    needs=CHUNKS,
    broken_by=(LLAMACPP_TWO,),
    about="answers",
)
def usage_comes_once(trace: AnswerTrace) -> Iterator[Found]:
    """Only one chunk carries usage, also where there are several choices."""
    if len(trace.usages) > 1:
        yield Found(trace.usages[1][0], f"{len(trace.usages)} chunks carry usage")


@rule(
    "CHT063",
    "usage-adds-up",
    Level.SHOULD,
    since="1.0",
    sources=(CHAT_TEXT, chat_types("CompletionUsage")),
    needs=CHUNKS,
    about="answers",
)
def usage_adds_up(trace: AnswerTrace) -> Iterator[Found]:
    """`usage` is null or an object; `prompt_tokens`, `completion_tokens` and `total_tokens` are whole numbers, and the
    last is the sum; `cached_tokens` and `reasoning_tokens` are no more than what they are part of."""
    yield from folded(
        Found(at, f"the usage is {quoted(chunk['usage'], 120)}")
        for at, chunk in trace.chunks
        if chunk.get("usage") is not None and not _adds_up(mapping(chunk["usage"]))
    )


def _adds_up(usage: Json) -> bool:
    prompt, completion = number(usage.get("prompt_tokens")), number(usage.get("completion_tokens"))
    if prompt is None or completion is None or min(prompt, completion) < 0:
        return False
    parts = (("prompt_tokens_details", "cached_tokens"), ("completion_tokens_details", "reasoning_tokens"))
    fits = all(
        _is_part(usage.get(key), inner, most) for (key, inner), most in zip(parts, (prompt, completion), strict=True)
    )
    return fits and usage.get("total_tokens") == prompt + completion


def _is_part(details: object, key: str, most: int) -> bool:
    """Whether details are none, or have a count that is none or from 0 to `most`."""
    if not isinstance(details, dict):
        return details is None
    value = mapping(details).get(key)  # pyright: ignore[reportUnknownArgumentType]
    count = number(value)
    return value is None or (count is not None and 0 <= count <= most)


@rule(
    "CHT064",
    "no-usage-unasked",
    Level.MAY,
    since="1.0",
    sources=(Schema(f"{_REFERENCE}, `stream_options.include_usage`"),),
    needs=CHUNKS,
    about="answers",
)
def no_usage_unasked(trace: AnswerTrace) -> Iterator[Found]:
    """Where usage was not asked for, no chunk carries it."""
    if "messages" in trace.asked and not wants_usage(trace) and trace.usages:
        yield Found(trace.usages[0][0], "usage was not asked for")
