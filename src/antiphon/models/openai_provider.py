"""`OpenAIProvider`: OpenAI's models, by one API or the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antiphon.errors import BadInput

from .defaults import default_openai_api, default_openai_client, default_openai_key, get_default_model
from .interface import KeepingProvider, Model
from .openai_chatcompletions import OpenAIChatCompletionsModel
from .retry import ModelRetrySettings

if TYPE_CHECKING:
    from openai import AsyncOpenAI


# what the chat models can be made with beside what a provider says itself
CHAT_OPTIONS = frozenset({"reasoning", "strict", "ids", "created_at", "should_replay_reasoning_content"})


class OpenAIProvider(KeepingProvider):
    """OpenAI's models, by the API that `use_responses` says, else the process's default.

    `retry` is for all models, `check` and `repair` for those of the Responses API, `chat_options` for the others:
    `reasoning`, `strict`, `ids`, …. Raises BadInput for an option that no model has.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        openai_client: AsyncOpenAI | None = None,
        organization: str | None = None,
        project: str | None = None,
        use_responses: bool | None = None,
        strict_feature_validation: bool = False,
        buffer_streamed_tool_calls: bool = False,
        retry: ModelRetrySettings | None = None,
        check: bool = False,
        repair: bool = False,
        **chat_options: Any,
    ) -> None:
        named = {"base_url": base_url, "organization": organization, "project": project}
        ignored = [name for name, value in {"api_key": api_key, **named}.items() if value is not None]
        if openai_client is not None and ignored:
            raise BadInput(
                f"{', '.join(ignored)}: a client that was made already takes no such option; make it with that"
            )
        if unknown := sorted(set(chat_options) - CHAT_OPTIONS):
            raise BadInput(
                f"{', '.join(unknown)}: no model has that option; chat models have {', '.join(sorted(CHAT_OPTIONS))}"
            )
        super().__init__()
        self._key, self._given = api_key, openai_client
        self._named = {name: value for name, value in named.items() if value is not None}
        self._use_responses, self._retry = use_responses, retry
        self._native_options: dict[str, Any] = {"check": check, "repair": repair}
        self._chat_options: dict[str, Any] = {"strict_feature_validation": strict_feature_validation, **chat_options}

    def get_model(self, model_name: str | None) -> Model:
        """Return the model of that name, always the same one; None is the default model."""
        name = model_name or get_default_model()
        native = default_openai_api() == "responses" if self._use_responses is None else self._use_responses
        return self._kept((name, native), lambda: self._made(name, native=native))

    def _made(self, name: str, *, native: bool) -> Model:
        own = self._key is not None or bool(self._named)
        client = self._given or (None if own else default_openai_client())
        key = self._key or default_openai_key()
        made_with: dict[str, Any] = {"retry": self._retry}
        if client is None:
            made_with |= {**self._named, **({"api_key": key} if key else {})}
        if not native:
            return OpenAIChatCompletionsModel(name, client, **{**made_with, **self._chat_options})
        from .openai_responses import OpenAIResponsesModel  # it brings openai

        return OpenAIResponsesModel(name, client, **{**made_with, **self._native_options})
