"""Models through LiteLLM and any-llm, and the providers that make them."""

from __future__ import annotations

from typing import Any

from antiphon.errors import BadInput

from .chat import ChatCompletionsModel
from .defaults import get_default_model
from .interface import KeepingProvider, Model, ModelProvider


class LitellmModel(ChatCompletionsModel):
    """One model through LiteLLM, named as LiteLLM names it: `anthropic/…`, `gemini/…`."""

    def __init__(self, model: str, base_url: str | None = None, api_key: str | None = None, **options: Any) -> None:
        super().__init__(model, base_url=base_url, api_key=api_key, backend="litellm", **options)


class AnyLLMModel(ChatCompletionsModel):
    """One model through any-llm, named as any-llm names it.

    `api`: "chat_completions", which None is too, or "responses": then it is an `AnyLLMResponsesModel`.
    """

    def __new__(
        cls, model: str, base_url: str | None = None, api_key: str | None = None, api: str | None = None, **options: Any
    ) -> Any:
        """Return a model of that API."""
        if api not in (None, "chat_completions", "responses"):
            raise BadInput(f'api is {api!r}: it is "responses", "chat_completions" or None')
        if api != "responses":
            return super().__new__(cls)
        from .any_llm_responses import AnyLLMResponsesModel  # it brings openai

        return AnyLLMResponsesModel(model, base_url, api_key, **options)

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        api: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, base_url=base_url, api_key=api_key, backend="any_llm", **options)


class LitellmProvider(ModelProvider):
    """Models through LiteLLM. `options` are those of the models. It closes none: LiteLLM's clients are the process's."""

    def __init__(self, **options: Any) -> None:
        self._options = options

    def get_model(self, model_name: str | None) -> Model:
        """Return the model that LiteLLM calls so; None is the default model."""
        return LitellmModel(model_name or get_default_model(), **self._options)


class AnyLLMProvider(KeepingProvider):
    """Models through any-llm. `options` are those of the models."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._options = options

    def get_model(self, model_name: str | None) -> Model:
        """Return the model that any-llm calls so, always the same one; None is the default model of OpenAI's."""
        name = model_name or f"openai:{get_default_model()}"
        return self._kept(name, lambda: AnyLLMModel(name, **self._options))
