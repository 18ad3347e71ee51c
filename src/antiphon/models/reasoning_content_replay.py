"""Which earlier reasoning goes back as `reasoning_content`, where a caller of `Converter` wants to say so itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from antiphon.profile import profile_by_word
from antiphon.stream.chunk import fields, word

MADE_HERE = frozenset({"thinking_blocks", "reasoning_details", "family"})  # of `provider_data`: they name no model


@dataclass
class ReasoningContentSource:
    """A reasoning item of the history: `origin_model` is what made it, None where its `provider_data` does not say."""

    item: Any
    origin_model: str | None
    provider_data: Mapping[str, Any]


@dataclass
class ReasoningContentReplayContext:
    """What is asked about: the item, the model that the request goes to, and the URL where that is known."""

    model: str
    base_url: str | None
    reasoning: ReasoningContentSource


def asked_about(item: Mapping[str, Any], model: str, base_url: str | None) -> ReasoningContentReplayContext:
    """Return what is asked about a reasoning item."""
    data = fields(item.get("provider_data"))
    source = ReasoningContentSource(item, word(data.get("model")) or None, data)
    return ReasoningContentReplayContext(model, None if base_url is None else base_url.rstrip("/"), source)


ShouldReplayReasoningContent: TypeAlias = Callable[[ReasoningContentReplayContext], bool]


def default_should_replay_reasoning_content(context: ReasoningContentReplayContext) -> bool:
    """Return whether it goes back where nobody says: to a model whose profile wants it so, if that profile knows the
    model that made it too, or nothing says what made it."""
    profile = profile_by_word(context.model)
    if profile is None or profile.reasoning_replay != "reasoning_content":
        return False
    origin = context.reasoning.origin_model
    return profile_by_word(origin or "") is profile or not context.reasoning.provider_data.keys() - MADE_HERE
