"""CHT: what every chunk has. What is in the choices is in `chunk_choices`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from antiphon_conformance.chunks import AnswerTrace
from antiphon_conformance.evidence import (
    CHAT_AZURE,
    CHAT_CALLS,
    CHAT_TEXT,
    CHAT_TWO_CHOICES,
    LLAMACPP_TEXT,
    VLLM_LENGTH,
    chat_types,
    stream_client,
)
from antiphon_conformance.read import Json, listed, mapping, mappings, number, quoted, text
from antiphon_conformance.rule import AnswerNeed, Client, Found, Level, Recording, folded, rule

OBJECT = "chat.completion.chunk"
STREAM = (AnswerNeed.CHAT, AnswerNeed.STREAM)
CHUNKS = (AnswerNeed.CHAT, AnswerNeed.CHUNKS)
WHOLE = (*CHUNKS, AnswerNeed.WHOLE)
_INDEXING = Client(
    "programs in the style of the API reference", "read `chunk.choices[0].delta` of each chunk: IndexError"
)

# Where -> the keys that OpenAI's own server sends there.
KEYS: dict[str, frozenset[str]] = {
    "chunk": frozenset(
        [
            "id",
            "object",
            "created",
            "model",
            "choices",
            "system_fingerprint",
            "service_tier",
            "usage",
            "obfuscation",
            "moderation",
        ]
    ),
    "choice": frozenset(["index", "delta", "finish_reason", "logprobs"]),
    "delta": frozenset(["role", "content", "refusal", "tool_calls", "function_call", "annotations", "audio"]),
    "tool call": frozenset(["index", "id", "type", "function", "custom"]),
    "log probability": frozenset(["token", "logprob", "bytes", "top_logprobs"]),
}


def _differing(trace: AnswerTrace, key: str) -> Iterator[Found]:
    """Yield the chunks whose `key` is not that of the first; Azure's own first chunk, without choices, counts for
    nothing."""
    held = [(at, chunk.get(key)) for at, chunk in trace.chunks if not _is_azures(chunk)]
    first = held[0][1] if held else None
    for at, value in held:
        if value != first:
            yield Found(at, f"`{key}` is {quoted(value)}; it was {quoted(first)}")


def _is_azures(chunk: Json) -> bool:
    """Return whether this is the chunk with which Azure tells what its filter says of the prompt."""
    return "prompt_filter_results" in chunk and not chunk.get("choices")


@rule(
    "CHT010",
    "object-names-a-chunk",
    Level.SHOULD,
    since="1.0",
    sources=(CHAT_TEXT, chat_types("ChatCompletionChunk.object")),
    needs=CHUNKS,
    about="answers",
)
def object_names_a_chunk(trace: AnswerTrace) -> Iterator[Found]:
    """`object` is "chat.completion.chunk" in every chunk."""
    yield from folded(
        Found(at, f"`object` is {quoted(chunk.get('object'))}")
        for at, chunk in trace.chunks
        if chunk.get("object") != OBJECT and not _is_azures(chunk)
    )


@rule(
    "CHT011",
    "one-chunk-id",
    Level.MUST,
    since="1.0",
    sources=(CHAT_TEXT, CHAT_CALLS),
    needs=CHUNKS,
    about="answers",
)
def one_chunk_id(trace: AnswerTrace) -> Iterator[Found]:
    """`id` is a string, not empty, and the same in all chunks."""
    for at, chunk in trace.chunks[:1]:
        if not text(chunk.get("id")) and not _is_azures(chunk):
            yield Found(at, f"`id` is {quoted(chunk.get('id'))}")
    yield from folded(_differing(trace, "id"))


@rule(
    "CHT012",
    "created-is-constant",
    Level.SHOULD,
    since="1.0",
    sources=(CHAT_TEXT, CHAT_CALLS),
    needs=CHUNKS,
    broken_by=(Recording("chat/azure-openai/vercel-ai--azure-azure-deepseek-reasoning.jsonl"),),
    about="answers",
)
def created_is_constant(trace: AnswerTrace) -> Iterator[Found]:
    """`created` is a whole number of seconds, and the same in all chunks."""
    for at, chunk in trace.chunks[:1]:
        if number(chunk.get("created")) is None:
            yield Found(at, f"`created` is {quoted(chunk.get('created'))}")
    yield from folded(_differing(trace, "created"))


@rule(
    "CHT013",
    "one-chunk-model",
    Level.SHOULD,
    since="1.0",
    sources=(CHAT_TEXT,),
    needs=CHUNKS,
    about="answers",
)
def one_chunk_model(trace: AnswerTrace) -> Iterator[Found]:
    """`model` is a string, not empty, and the same in all chunks."""
    for at, chunk in trace.chunks[:1]:
        if not text(chunk.get("model")) and not _is_azures(chunk):
            yield Found(at, f"`model` is {quoted(chunk.get('model'))}")
    yield from folded(_differing(trace, "model"))


@rule(
    "CHT014",
    "choices-but-for-usage",
    Level.MUST,
    since="1.0",
    sources=(_INDEXING, CHAT_TEXT),
    needs=CHUNKS,
    broken_by=(CHAT_AZURE,),
    about="answers",
)
def choices_but_for_usage(trace: AnswerTrace) -> Iterator[Found]:
    """`choices` is a list in every chunk, and empty only in the one that carries the usage, or what was moderated."""
    yield from folded(_without_choices(trace))


def _without_choices(trace: AnswerTrace) -> Iterator[Found]:
    for at, chunk in trace.chunks:
        choices = listed(chunk.get("choices"))
        if not isinstance(chunk.get("choices"), list):
            yield Found(at, f"`choices` is {quoted(chunk.get('choices'))}")
        elif len(mappings(choices)) < len(choices):
            yield Found(at, f"an entry of `choices` is no object: {quoted(choices)}")
        elif not choices and not mapping(chunk.get("usage")) and "moderation" not in chunk:
            yield Found(at, "`choices` is empty, and there is no usage", Level.MAY if _is_azures(chunk) else None)


@rule(
    "CHT015",
    "choices-have-an-index",
    Level.MUST,
    since="1.0",
    sources=(stream_client("ChatCompletionStreamState files choices by `index`"), CHAT_TWO_CHOICES),
    needs=CHUNKS,
    about="answers",
)
def choices_have_an_index(trace: AnswerTrace) -> Iterator[Found]:
    """Each choice has an `index`, a whole number from 0 and smaller than the `n` that was asked for, and another one
    than the other choices of its chunk."""
    most = number(trace.asked.get("n")) or 1
    yield from folded(
        Found(two.at, f"two choices of a chunk have the `index` {quoted(two.choice.get('index'))}")
        for one, two in pairwise(trace.choices)
        if one.at == two.at and one.choice.get("index") == two.choice.get("index") is not None
    )
    yield from folded(
        Found(one.at, f"the `index` of a choice is {quoted(one.choice.get('index'))}, with n={most}")
        for one in trace.choices
        if (index := number(one.choice.get("index"))) is None
        or index < 0
        or ("messages" in trace.asked and index >= most)
    )


@rule(
    "CHT016",
    "delta-is-an-object",
    Level.MUST,
    since="1.0",
    sources=(
        Client("programs in the style of the API reference", "read `choice.delta.content`: AttributeError"),
        CHAT_TEXT,
    ),
    needs=CHUNKS,
    about="answers",
)
def delta_is_an_object(trace: AnswerTrace) -> Iterator[Found]:
    """Each choice has a `delta`, an object, {} where there is nothing to say."""
    yield from folded(
        Found(one.at, f"`delta` is {quoted(one.choice.get('delta'))}")
        for one in trace.choices
        if not isinstance(one.choice.get("delta"), dict)
    )


@rule(
    "CHT017",
    "known-keys-only",
    Level.MAY,
    since="1.0",
    sources=(chat_types("ChatCompletionChunk"),),
    needs=CHUNKS,
    broken_by=(LLAMACPP_TEXT, VLLM_LENGTH),
    about="answers",
)
def known_keys_only(trace: AnswerTrace) -> Iterator[Found]:
    """Chunks, choices, deltas, tool calls and log probabilities have only the keys that OpenAI's own server sends."""
    seen: dict[str, int] = {}
    for at, where, held in _objects(trace):
        for key in held.keys() - KEYS[where]:
            seen.setdefault(f"{where}.{key}", at)
    if seen:
        yield Found(min(seen.values()), f"keys that OpenAI does not send: {', '.join(sorted(seen))}")


def _objects(trace: AnswerTrace) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield everything whose keys are looked at, with the place of its chunk and its name in `KEYS`."""
    for at, chunk in trace.chunks:
        yield at, "chunk", chunk
    for one in trace.choices:
        yield one.at, "choice", one.choice
        yield one.at, "delta", one.delta
        for entry in mappings(mapping(one.choice.get("logprobs")).get("content")):
            yield one.at, "log probability", entry
    for fragment in trace.fragments:
        yield fragment.at, "tool call", fragment.call


@rule(
    "CHT018",
    "finish-reason-is-always-a-key",
    Level.SHOULD,
    since="1.0",
    sources=(CHAT_TEXT, chat_types("chat_completion_chunk.Choice")),
    needs=CHUNKS,
    broken_by=(
        Recording(
            "chat/xai/magentic--test-openai-chat-model-xai-test-openai-chat-model-xai-complete-image-bytes.jsonl"
        ),
    ),
    about="answers",
)
def finish_reason_is_always_a_key(trace: AnswerTrace) -> Iterator[Found]:
    """Each choice has the key `finish_reason`, null until the last."""
    yield from folded(
        Found(one.at, "a choice has no finish_reason, not even null")
        for one in trace.choices
        if "finish_reason" not in one.choice
    )
