"""Chat chunks through LiteLLM: `acompletion`. Models are named as LiteLLM names them: `anthropic/…`, `openai/…`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from antiphon.backend import Timeout, Timeouts, close
from antiphon.errors import BadInput

from .sdk import SDKBackend
from .shared import optional


class LiteLLMBackend(SDKBackend):
    """LiteLLM. `options` are further arguments of `acompletion`; it does not retry unless `num_retries` says so.

    LiteLLM's advice, which it prints for each error, is switched off. Raises ExtraMissing without LiteLLM.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        api_key_env: str | None = None,
        headers: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        timeout: Timeout | None = None,
        **options: Any,
    ) -> None:
        super().__init__(base_url, api_key, api_key_env=api_key_env, headers=headers, body=body, timeout=timeout)
        self._litellm = optional("litellm", "litellm")
        self._litellm.suppress_debug_info = True
        self._options: dict[str, Any] = {"num_retries": 0, "max_retries": 0, **options}

    async def aclose(self) -> None:
        """Close LiteLLM's clients: it keeps them for the whole process."""
        await self._litellm.close_litellm_async_clients()

    async def _ask(self, body: dict[str, Any], headers: dict[str, str], times: Timeouts) -> Any:
        if "extra_query" in body:
            raise BadInput("query: LiteLLM would send it in the body; where the URL takes it, put it into base_url")
        given = {"api_base": self._base_url, "api_key": self._key, "extra_headers": headers or None}
        more = {key: value for key, value in given.items() if value is not None}
        answer = await self._litellm.acompletion(**{**self._options, **more, **body})
        return _Chunks(answer) if body.get("stream") and hasattr(answer, "__aiter__") else answer

    async def _list(self) -> list[Any]:
        """Return nothing: LiteLLM knows names of models, and not which of them a server has."""
        return []


class _Chunks:
    """LiteLLM's stream without the finish that it makes up where no chunk came at all (seen with 1.110)."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._empty = True

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        chunk = await anext(self._stream)
        if self._empty and getattr(self._stream, "received_finish_reason", "") is None:
            choices = getattr(chunk, "choices", None)
            if choices and choices[0].finish_reason:
                return await anext(self)
        self._empty = False
        return chunk

    async def aclose(self) -> None:
        await close(self._stream)
