"""Reads the usual chunk: one that says more of what is being said, and nothing else that counts.

A reader asks a chunk one question, "what more of this kind do you say?", and answers None for any chunk that says
anything else as well. Such a chunk goes the long way, through the Normalizer, which comes to the same end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, TypeAlias

from .chunk import NUMBERS, entries, fields, is_whole
from .deltas import Json

# What goes on: text; text with log probabilities; reasoning; the arguments of one call.
Kind: TypeAlias = Literal["text", "logprobs", "reasoning", "arguments"]
Said: TypeAlias = str | tuple[str, tuple[Json, ...]]  # a piece of it; with "logprobs" a pair
Read: TypeAlias = Callable[[Any], Said | None]

# Keys that mean something, beside the one that is asked for. A chunk that fills one of them is not a usual one.
CHUNK_KEYS = frozenset({"error", "usage", "x_groq", "citations"})
CHOICE_KEYS = frozenset({"finish_reason", "native_finish_reason", "logprobs", "usage", "error"})
BESIDE_LOGPROBS = CHOICE_KEYS - {"logprobs"}
LOGPROB_KEYS = frozenset({"refusal", "reasoning_content", "reasoning"})
CALL_KEYS = frozenset({"custom", "extra_content", "provider_specific_fields", "thought_signature"})
DELTA_KEYS = frozenset(
    {
        "content",
        "reasoning_content",
        "reasoning",
        "tool_calls",
        "refusal",
        "function_call",
        "reasoning_text",
        "reasoning_details",
        "thinking_blocks",
        "annotations",
        "citations",
        "audio",
        "images",
        "image",
        "provider_specific_fields",
    }
)
BESIDE_TEXT = DELTA_KEYS - {"content"}
BESIDE_REASONING = DELTA_KEYS - {"reasoning_content", "reasoning"}
BESIDE_CALLS = DELTA_KEYS - {"tool_calls"}
EMPTY = (None, "")
NOT_USUAL = (AttributeError, KeyError, TypeError, ValueError)  # what a chunk of another shape raises


def nothing(_: Any) -> None:
    """No chunk is a usual one."""


def reader(sample: Any, kind: Kind | None, index: int | None = None) -> Read:
    """Return what reads more of `kind` in chunks like `sample`. `index`: of the call whose arguments are asked for."""
    if kind is None:
        return nothing
    model = None if kind == "logprobs" else _delta_of_openai(sample)
    if model is None:
        return _arguments(index) if kind == "arguments" else _ANY[kind]
    match kind:
        case "arguments":
            return _openai_arguments(model, index)
        case "reasoning":
            return _openai_reasoning(model, _field_of_reasoning(sample))
        case _:
            return _openai_text(model)


def _speaks(held: Mapping[str, Any], keys: frozenset[str]) -> bool:
    """Return whether one of `keys` is filled. So is a 0, which may stand where text should, and usage of any kind."""
    for key in keys.intersection(held):
        one = held[key]
        if one or (one is not None and (type(one) in NUMBERS or key == "usage")):
            return True
    return False


# --- chunks of openai-python: each level is its `__dict__` and its extra fields ------------------------------------
# Written out for each kind: one of them reads nearly every chunk, and a call more would cost a tenth of it.


def _delta_of_openai(sample: Any) -> type[Any] | None:
    """Return the class of the delta in an openai chunk; None for any other chunk, and for one of other fields.

    A delta of another class may have fields of its own, so a reader takes those of this class only.
    """
    if type(sample).__name__ != "ChatCompletionChunk" or not type(sample).__module__.startswith("openai.types."):
        return None
    try:
        (choice,) = sample.choices
        model: Any = type(choice.delta)  # pyright: ignore[reportUnknownVariableType]
        return model if _has_known_fields(type(sample), type(choice), model) else None  # type: ignore[arg-type]  # classes can be hashed
    except NOT_USUAL:
        return None


@cache
def _has_known_fields(chunk: Any, choice: Any, delta: Any) -> bool:
    """Return whether these classes have, of all fields that mean something, those that the readers look at."""
    found = [
        keys.intersection(model.model_fields)
        for keys, model in ((CHUNK_KEYS, chunk), (CHOICE_KEYS, choice), (DELTA_KEYS, delta))
    ]
    return found == [
        {"usage"},
        {"finish_reason", "logprobs"},
        {"content", "tool_calls", "refusal", "function_call", "audio"},
    ]


def _openai_text(delta_type: type[Any]) -> Read:
    def read(chunk: Any) -> str | None:
        try:
            own, extra = chunk.__dict__, chunk.__pydantic_extra__
            (choice,) = own["choices"]
            held, more = choice.__dict__, choice.__pydantic_extra__
            delta = held["delta"]
            said, others = delta.__dict__, delta.__pydantic_extra__
            text, finish, refusal = said["content"], held["finish_reason"], said["refusal"]
            if (
                (finish is not None and finish != "")
                or held["index"]
                or held["logprobs"] is not None
                or own["usage"] is not None
                or said["tool_calls"]
                or said["function_call"]
                or said["audio"]
                or (refusal is not None and refusal != "")
                or type(delta) is not delta_type
                or (extra and _speaks(extra, CHUNK_KEYS))
                or (more and _speaks(more, CHOICE_KEYS))
                or (others and _speaks(others, BESIDE_TEXT))
            ):
                return None
            return text if text and type(text) is str and (text.isascii() or is_whole(text)) else None
        except NOT_USUAL:
            return None

    return read


def _field_of_reasoning(sample: Any) -> str:
    """Return the name under which an openai chunk has reasoning, the usual one where it has none."""
    extra = sample.choices[0].delta.__pydantic_extra__
    return "reasoning" if not extra.get("reasoning_content") and extra.get("reasoning") else "reasoning_content"


def _openai_reasoning(delta_type: type[Any], name: str) -> Read:
    """`name`: of the field that holds reasoning, where a delta has one extra field only."""

    def read(chunk: Any) -> str | None:
        try:
            own, extra = chunk.__dict__, chunk.__pydantic_extra__
            (choice,) = own["choices"]
            held, more = choice.__dict__, choice.__pydantic_extra__
            delta = held["delta"]
            said, others = delta.__dict__, delta.__pydantic_extra__
            finish, content, refusal = held["finish_reason"], said["content"], said["refusal"]
            if (
                (finish is not None and finish != "")
                or held["index"]
                or held["logprobs"] is not None
                or own["usage"] is not None
                or (content is not None and content != "")
                or said["tool_calls"]
                or said["function_call"]
                or said["audio"]
                or (refusal is not None and refusal != "")
                or type(delta) is not delta_type
                or (extra and _speaks(extra, CHUNK_KEYS))
                or (more and _speaks(more, CHOICE_KEYS))
            ):
                return None
            if len(others) != 1:
                return None if _speaks(others, BESIDE_REASONING) else _reasoning(others)
            text = others[name]
            return text if text and type(text) is str and (text.isascii() or is_whole(text)) else None
        except NOT_USUAL:
            return None

    return read


def _openai_arguments(delta_type: type[Any], index: int | None) -> Read:
    def read(chunk: Any) -> str | None:
        try:
            own, extra = chunk.__dict__, chunk.__pydantic_extra__
            (choice,) = own["choices"]
            held, more = choice.__dict__, choice.__pydantic_extra__
            delta = held["delta"]
            said, others = delta.__dict__, delta.__pydantic_extra__
            (call,) = said["tool_calls"]
            of_call = call.__dict__
            function = of_call["function"]
            of_function = function.__dict__
            finish, content, refusal = held["finish_reason"], said["content"], said["refusal"]
            text, name, id, place = of_function["arguments"], of_function["name"], of_call["id"], of_call["index"]
            if (
                (finish is not None and finish != "")
                or held["index"]
                or held["logprobs"] is not None
                or own["usage"] is not None
                or place != index
                or type(place) is not int
                or (id is not None and id != "")
                or (name is not None and name != "")
                or (content is not None and content != "")
                or said["function_call"]
                or said["audio"]
                or (refusal is not None and refusal != "")
                or type(delta) is not delta_type
                or (extra and _speaks(extra, CHUNK_KEYS))
                or (more and _speaks(more, CHOICE_KEYS))
                or (others and _speaks(others, BESIDE_CALLS))
                or call.__pydantic_extra__
                or function.__pydantic_extra__
            ):
                return None
            return text if text and type(text) is str and (text.isascii() or is_whole(text)) else None
        except NOT_USUAL:
            return None

    return read


# --- mappings, and chunks of any other SDK -------------------------------------------------------------------------


def _text(chunk: Any) -> str | None:
    try:
        return _content(_delta(chunk))
    except NOT_USUAL:
        return None


def _reasoning_alone(chunk: Any) -> str | None:
    try:
        delta = _delta(chunk)
        return None if _speaks(delta, BESIDE_REASONING) else _reasoning(delta)
    except NOT_USUAL:
        return None


def _arguments(index: int | None) -> Read:
    def read(chunk: Any) -> str | None:
        try:
            delta = _delta(chunk)
            (call,) = delta["tool_calls"]
            own = fields(call)
            function = fields(own["function"])
            arguments = function["arguments"]
            if (
                type(own["index"]) is not int
                or own["index"] != index
                or own.get("id") not in EMPTY
                or function.get("name") not in EMPTY
                or function.get("provider_specific_fields")
                or _speaks(own, CALL_KEYS)
                or _speaks(delta, BESIDE_CALLS)
            ):
                return None
            return arguments if type(arguments) is str and arguments and is_whole(arguments) else None
        except NOT_USUAL:
            return None

    return read


def _with_logprobs(chunk: Any) -> tuple[str, tuple[Json, ...]] | None:
    """Return text and its log probabilities, none where there are none."""
    try:
        choice = _choice(chunk)
        held = fields(choice.get("logprobs"))
        text = _content(fields(choice["delta"]))
        if text is None or _speaks(choice, BESIDE_LOGPROBS) or _speaks(held, LOGPROB_KEYS):
            return None
        return text, entries(held.get("content"))
    except NOT_USUAL:
        return None


def _choice(chunk: Any) -> Mapping[str, Any]:
    """Return the only choice of a chunk that says nothing beside it. Raises KeyError for any other chunk."""
    held = fields(chunk)
    (choice,) = held["choices"]
    own = fields(choice)
    if own.get("index") or _speaks(held, CHUNK_KEYS):
        raise KeyError("delta")
    return own


def _delta(chunk: Any) -> Mapping[str, Any]:
    own = _choice(chunk)
    if _speaks(own, CHOICE_KEYS):
        raise KeyError("delta")
    return fields(own["delta"])


def _content(delta: Mapping[str, Any]) -> str | None:
    text = delta["content"]
    return text if type(text) is str and text and is_whole(text) and not _speaks(delta, BESIDE_TEXT) else None


def _reasoning(held: Mapping[str, Any]) -> str | None:
    """Return the reasoning in the one of its two fields that is filled."""
    text, other = held.get("reasoning_content"), held.get("reasoning")
    if text in EMPTY:
        text, other = other, text
    return text if type(text) is str and text and other in EMPTY and is_whole(text) else None


_ANY: Mapping[str, Read] = {"text": _text, "logprobs": _with_logprobs, "reasoning": _reasoning_alone}
