"""Chat chunks through any-llm: `acompletion`. Models are named `provider:model` or `provider/model`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from inspect import signature
from typing import Any

from antiphon.backend import Timeout, Timeouts, close
from antiphon.backend.per_loop import PerLoop
from antiphon.errors import BadInput, ExtraMissing

from .sdk import SDKBackend
from .shared import optional

_NAMED = re.compile(r"(?P<provider>[^:/]+)[:/](?P<model>.+)")


class AnyLLMBackend(SDKBackend):
    """any-llm. `provider`: for all requests, whose models then have no prefix. `options` are for its client.

    Each provider's client is made once for each event loop. It does not retry unless `max_retries` in `options` says
    so. Raises ExtraMissing without any-llm.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        provider: str | None = None,
        api_key_env: str | None = None,
        headers: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        timeout: Timeout | None = None,
        **options: Any,
    ) -> None:
        super().__init__(base_url, api_key, api_key_env=api_key_env, headers=headers, body=body, timeout=timeout)
        self._kind = optional("any_llm", "any-llm").AnyLLM
        self._unknown: type[Exception] = optional("any_llm.exceptions", "any-llm").UnsupportedProviderError
        self._provider = provider
        self._options = options
        self._clients: PerLoop[dict[str, Any]] = PerLoop(dict, _close_all)

    async def respond(self, request: Mapping[str, Any]) -> Any:
        """Return what any-llm's Responses API answers to create parameters: its events if `stream` is set, else whole."""
        asked = {key: value for key, value in request.items() if key not in ("model", "input", "extra_headers")}
        headers, timeout = self._with(request.get("extra_headers")), asked.pop("timeout", None)
        call = self._call(headers, timeout, request.get("extra_query"))
        provider, model = self._named(request["model"])
        asked |= {"extra_headers": headers} if headers else {}
        try:
            answer = await call.wait(self._client(provider).aresponses(model, request["input"], **asked))
        except BaseException:
            call.pace.stop()
            raise
        if hasattr(answer, "__aiter__"):
            return self._pulled(call, answer)
        call.pace.stop()
        return answer

    async def aclose(self) -> None:
        """Close the clients of the event loop that runs."""
        await self._clients.close()

    async def _ask(self, body: dict[str, Any], headers: dict[str, str], times: Timeouts) -> Any:
        provider, model = self._named(body["model"])
        known = {key: value for key, value in body.items() if key in _parameters(self._kind) and key != "model"}
        apart = ("model", "extra_query")
        more = {key: value for key, value in body.items() if key not in known and key not in apart}
        given = {"extra_headers": headers, "extra_body": more, "extra_query": body.get("extra_query")}
        return await self._client(provider).acompletion(
            model, **known, **{key: value for key, value in given.items() if value}
        )

    async def _list(self) -> list[Any]:
        if self._provider is None:
            raise BadInput("any-llm lists the models of a provider: give the backend one, provider=…")
        return list(await self._client(self._provider).alist_models())

    def _named(self, model: str) -> tuple[str, str]:
        if self._provider is not None:
            return self._provider, model
        named = _NAMED.fullmatch(model)
        if named is None:
            raise BadInput(f"model is {model!r}: any-llm wants provider:model, or provider=… for the backend")
        return named["provider"], named["model"]

    def _client(self, provider: str) -> Any:
        clients = self._clients.get()
        if provider not in clients:
            clients[provider] = self._made(provider)
        return clients[provider]

    def _made(self, provider: str) -> Any:
        options = {"unified_exceptions": True, **self._options}
        try:
            if self._kind.get_provider_class(provider).MAX_RETRIES_SUPPORT != "unsupported":
                options = {"max_retries": 0, **options}
            return self._kind.create(provider, api_key=self._key, api_base=self._base_url, **options)
        except ImportError as problem:
            raise ExtraMissing(f"any-llm lacks a package for {provider!r}: {problem}", extra="any-llm") from problem
        except (ValueError, self._unknown) as problem:
            raise BadInput(f"any-llm does not take {provider!r} with these options: {problem}") from None


async def _close_all(clients: dict[str, Any]) -> None:
    for provider in clients.values():
        await close(getattr(provider, "client", None))


@cache
def _parameters(kind: Any) -> frozenset[str]:
    """Return what any-llm takes by name. The rest of a request goes in `extra_body`."""
    return frozenset(signature(kind.acompletion).parameters) - {"self", "kwargs"}
