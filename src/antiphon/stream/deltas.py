"""`Delta`: all that a chunk can say, as a closed union of frozen values. It is what stands between the two halves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

Json: TypeAlias = Mapping[str, Any]


class TextDelta(msgspec.Struct, frozen=True, gc=False):
    """A piece of visible text, never empty, with the log probabilities of its tokens, if there are any."""

    text: str
    logprobs: tuple[Json, ...] = ()


class RefusalDelta(msgspec.Struct, frozen=True, gc=False):
    """A piece of a refusal, never empty."""

    text: str


class ReasoningDelta(msgspec.Struct, frozen=True, gc=False):
    """A piece of reasoning: text, or pieces to be replayed (signed, encrypted), or both; never neither."""

    text: str = ""
    details: tuple[Json, ...] = ()


class CallDelta(msgspec.Struct, frozen=True, gc=False):
    """A fragment of a tool call. `index` is None, `id` and `name` are "" where the fragment does not give them."""

    index: int | None = None
    id: str = ""
    name: str = ""
    arguments: str = ""
    kind: Literal["function", "custom"] = "function"
    legacy: bool = False  # a `function_call` delta
    extra: Json | None = None  # what must come back on the next turn, such as a thought signature


class AnnotationDelta(msgspec.Struct, frozen=True, gc=False):
    """Annotations of the text, flat, as the Responses API writes them."""

    annotations: tuple[Json, ...]


class LogprobsDelta(msgspec.Struct, frozen=True, gc=False):
    """Log probabilities that came without text of their part. `kind` is what they belong to."""

    kind: Literal["text", "refusal", "reasoning"]
    logprobs: tuple[Json, ...]


class MediaDelta(msgspec.Struct, frozen=True, gc=False):
    """A piece of audio or an image: kept in provider_data, since it has no place in the event stream."""

    kind: str
    data: Any


class FinishDelta(msgspec.Struct, frozen=True, gc=False):
    """A finish_reason, in lower case, never empty."""

    reason: str


class UsageDelta(msgspec.Struct, frozen=True, gc=False):
    """The usage so far, in the words of the Responses API, and `raw`, in the provider's own.

    `choices`: whether its chunk had a choice.
    """

    usage: dict[str, Any]
    choices: bool
    raw: Json


class ErrorDelta(msgspec.Struct, frozen=True, gc=False):
    """An error that the provider reported in the stream."""

    code: str
    message: str


class SourceDelta(msgspec.Struct, frozen=True, gc=False):
    """What the chunk says of itself: `model` ("" if it does not), and facts for provider_data."""

    model: str
    data: Json


Delta: TypeAlias = (
    TextDelta
    | CallDelta
    | ReasoningDelta
    | RefusalDelta
    | AnnotationDelta
    | LogprobsDelta
    | MediaDelta
    | FinishDelta
    | UsageDelta
    | ErrorDelta
    | SourceDelta
)
