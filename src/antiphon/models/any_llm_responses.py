"""`AnyLLMResponsesModel`: the Responses API of any-llm's providers, repaired."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from antiphon.backend import load_backend
from antiphon.errors import BadInput

from .openai_responses import OpenAIResponsesModel
from .retry import ModelRetrySettings


@runtime_checkable
class Responds(Protocol):
    """A backend that has the Responses API too."""

    async def respond(self, request: Mapping[str, Any]) -> Any: ...

    async def aclose(self) -> None: ...


class AnyLLMResponsesModel(OpenAIResponsesModel):
    """One model through any-llm's `aresponses`, named as any-llm names it. `options` are those of the backend.

    Streams and responses are always repaired: each of any-llm's providers has its own. Raises BadInput where a
    provider has no Responses API.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        retry: ModelRetrySettings | None = None,
        check: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(model, retry=retry, check=check, repair=True)
        self._key, self._base_url = api_key, base_url
        named = {"base_url": base_url, "api_key": api_key, **options}
        backend: Any = load_backend("any_llm", **{key: one for key, one in named.items() if one is not None})
        if not isinstance(backend, Responds):
            raise BadInput(f"{backend!r} has no `respond`: it is asked by chat completions alone")
        self._backend = backend

    async def close(self) -> None:
        """Close the connections of the event loop that runs."""
        await self._backend.aclose()

    def _server(self) -> str:
        return self._base_url or ""

    async def _ask(self, request: Mapping[str, Any]) -> Any:
        return await self._backend.respond(request)
