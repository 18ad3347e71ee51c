"""Models through LiteLLM and any-llm, and the providers that make them."""

from __future__ import annotations

from typing import Any

from antiphon.errors import BadInput

from .chat import ChatCompletionsModel
from .defaults import get_default_model
from .interface import Model, ModelProvider


class LitellmModel(ChatCompletionsModel):
    """One model through LiteLLM, named as LiteLLM names it: `anthropic/…`, `gemini/…`."""

    def __init__(self, model: str, base_url: str | None = None, api_key: str | None = None, **options: Any) -> None:
        super().__init__(model, base_url=base_url, api_key=api_key, backend="litellm", **options)


class AnyLLMModel(ChatCompletionsModel):
    """One model through any-llm, named as any-llm names it. `api`: None or "chat_completions", the one it is asked by."""

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        api: str | None = None,
        **options: Any,
    ) -> None:
        if api not in (None, "chat_completions"):
            raise BadInput(f"api is {api!r}: any-llm is asked by chat completions alone")
        super().__init__(model, base_url=base_url, api_key=api_key, backend="any_llm", **options)


class LitellmProvider(ModelProvider):
    """Models through LiteLLM. `options` are those of the models."""

    def __init__(self, **options: Any) -> None:
        self._options = options

    def get_model(self, model_name: str | None) -> Model:
        """Return the model that LiteLLM calls so; None is the default model."""
        return LitellmModel(model_name or get_default_model(), **self._options)


class AnyLLMProvider(ModelProvider):
    """Models through any-llm. `options` are those of the models."""

    def __init__(self, **options: Any) -> None:
        self._options = options

    def get_model(self, model_name: str | None) -> Model:
        """Return the model that any-llm calls so; None is the default model of OpenAI's."""
        return AnyLLMModel(model_name or f"openai:{get_default_model()}", **self._options)
