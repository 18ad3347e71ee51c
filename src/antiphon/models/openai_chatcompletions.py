"""`OpenAIChatCompletionsModel`: a model through the OpenAI SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antiphon.backend import load_backend
from antiphon.profile import find_profile

from . import reasoning_content_replay as replay
from .chat import ChatCompletionsModel

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class OpenAIChatCompletionsModel(ChatCompletionsModel):
    """One model through the OpenAI SDK: `openai_client`, or one that is made of `base_url` and `api_key`.

    Calls are always told whole and in order, so `buffer_streamed_tool_calls` changes nothing.
    `strict_feature_validation`: as `strict`.
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
        options["should_replay_reasoning_content"] = should_replay_reasoning_content
        if openai_client is None:
            super().__init__(model, backend="openai_sdk", **options)
        else:
            url = str(openai_client.base_url)
            options.setdefault("profile", find_profile(base_url=url, model=model))
            super().__init__(model, backend=load_backend("openai_sdk", client=openai_client), **options)
            self._url = url.rstrip("/")
