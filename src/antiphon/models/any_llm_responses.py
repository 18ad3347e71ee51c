"""`AnyLLMResponsesModel`: the Responses API of any-llm's providers, repaired."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from antiphon.backend import Backend, load_backend
from antiphon.errors import BadInput

from .openai_responses import OpenAIResponsesModel
from .retry import ModelRetrySettings


class Responds(Protocol):
    """What is asked of the backend."""

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
        self._backend = responding(
            load_backend("any_llm", **{key: one for key, one in named.items() if one is not None})
        )

    async def close(self) -> None:
        """Close the connections of the event loop that runs."""
        await self._backend.aclose()

    def _server(self) -> str:
        return self._base_url or ""

    async def _ask(self, request: Mapping[str, Any]) -> Any:
        return await self._backend.respond(request)


def responding(backend: Backend) -> Responds:
    """Return a backend that has the Responses API too. Raises BadInput for one that has not."""
    respond = getattr(backend, "respond", None)
    if not callable(respond):
        raise BadInput(f"{backend!r} has no `respond`: it is asked by chat completions alone")
    held: Any = backend
    return held  # type: ignore[no-any-return]  # it has just been looked at
