"""`OpenAIChatCompletionsModel`: a model through the OpenAI SDK."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from antiphon.backend import load_backend
from antiphon.profile import find_profile
from antiphon.stream.chunk import fields

from . import reasoning_content_replay as replay
from .chat import ChatCompletionsModel
from .exchange import Exchange

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class OpenAIChatCompletionsModel(ChatCompletionsModel):
    """One model through the OpenAI SDK: `openai_client`, or one that is made of `base_url` and `api_key`.

    Calls are always told whole and in order, so `buffer_streamed_tool_calls` changes nothing. Which reasoning goes
    back is the profile's to say, unless `should_replay_reasoning_content` does: then as `reasoning_content`, in all
    turns. `strict_feature_validation`: as `strict`.
    """

    def __init__(
        self,
        model: str,
        openai_client: AsyncOpenAI | None = None,
        should_replay_reasoning_content: replay.ShouldReplayReasoningContent | None = None,
        strict_feature_validation: bool = False,
        buffer_streamed_tool_calls: bool = False,
        **options: Any,
    ) -> None:
        options.setdefault("strict", strict_feature_validation)
        url = str(options.get("base_url") or "")
        if openai_client is None:
            super().__init__(model, backend="openai_sdk", **options)
        else:
            url = str(openai_client.base_url)
            options.setdefault("profile", find_profile(base_url=url, model=model))
            super().__init__(model, backend=load_backend("openai_sdk", client=openai_client), **options)
        self._should_replay, self._url = should_replay_reasoning_content, url.rstrip("/") or None
        if should_replay_reasoning_content is not None:
            self.profile = replace(self.profile, reasoning_replay="reasoning_content", reasoning_replay_always=True)

    def exchange(self, request: Any, **options: Any) -> Exchange:
        """Return the request, ready to be sent, without the reasoning that is not to go back."""
        given = fields(request).get("input")
        if self._should_replay is None or not isinstance(given, list):
            return super().exchange(request, **options)
        items: list[Any] = given  # pyright: ignore[reportUnknownVariableType]
        kept = [item for item in items if fields(item).get("type") != "reasoning" or self._replays(fields(item))]
        return super().exchange({**fields(request), "input": kept}, **options)

    def _replays(self, item: Mapping[str, Any]) -> bool:
        asked = replay.asked_about(item, self.model, self._url)
        return self._should_replay is not None and self._should_replay(asked)
