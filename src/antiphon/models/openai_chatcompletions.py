"""`OpenAIChatCompletionsModel`: a model through the OpenAI SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antiphon.backend import load_backend
from antiphon.errors import BadInput
from antiphon.profile import find_profile

from .chat import ChatCompletionsModel

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class OpenAIChatCompletionsModel(ChatCompletionsModel):
    """One model through the OpenAI SDK: `openai_client`, or one that is made of `base_url` and `api_key`.

    Calls are always told whole and in order, so `buffer_streamed_tool_calls` changes nothing; which reasoning goes
    back is the profile's to say. `strict_feature_validation`: as `strict`.
    """

    def __init__(
        self,
        model: str,
        openai_client: AsyncOpenAI | None = None,
        should_replay_reasoning_content: Any = None,
        strict_feature_validation: bool = False,
        buffer_streamed_tool_calls: bool = False,
        **options: Any,
    ) -> None:
        if should_replay_reasoning_content is not None:
            raise BadInput("should_replay_reasoning_content: give a profile, whose `reasoning_replay` says so")
        options.setdefault("strict", strict_feature_validation)
        if openai_client is None:
            super().__init__(model, backend="openai_sdk", **options)
            return
        backend = load_backend("openai_sdk", client=openai_client)
        options.setdefault("profile", find_profile(base_url=str(openai_client.base_url), model=model))
        super().__init__(model, backend=backend, **options)
