"""Chat chunks through the OpenAI SDK: `AsyncOpenAI`, or any client of that shape (Azure's, an instrumented one)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from inspect import signature
from typing import Any

import httpx2
from openai import AsyncOpenAI, AsyncStream
from openai.resources.chat.completions import AsyncCompletions

from antiphon.backend import Timeout, Timeouts
from antiphon.backend.begun import Begun, begins_events
from antiphon.backend.per_loop import PerLoop
from antiphon.backend.sdk_client import sdk_client

from .completion import is_stream
from .concealing import Hide, secret_values
from .failures import failure_of_page
from .sdk import SDKBackend

# What the SDK takes by name. The rest of a request goes in `extra_body`.
_PARAMETERS = frozenset(signature(AsyncCompletions.create).parameters) - {"self"}


class OpenAISDKBackend(SDKBackend):
    """The OpenAI SDK. `client`: one's own, which is never closed here; the rest is for the one that is made.

    With `base_url` only a key that is given goes out: the one in OPENAI_API_KEY is OpenAI's, and used only where there
    is neither. `options` are further ones of `AsyncOpenAI`; it does not retry unless `max_retries` says so.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        api_key_env: str | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        timeout: Timeout | None = None,
        client: AsyncOpenAI | None = None,
        **options: Any,
    ) -> None:
        super().__init__(base_url, api_key, api_key_env=api_key_env, headers=headers, body=body, timeout=timeout)
        self._secrets += tuple(secret_values(query))
        self._options: dict[str, Any] = {"default_query": query, **options}
        self._given = client
        self._clients = PerLoop(self._connect, lambda client: client.close())

    async def aclose(self) -> None:
        """Close the client of the event loop that runs, unless it was given."""
        await self._clients.close()

    async def _ask(self, body: dict[str, Any], headers: dict[str, str], times: Timeouts) -> Any:
        known = {key: value for key, value in body.items() if key in _PARAMETERS}
        more = {key: value for key, value in body.items() if key not in known}
        create: Any = self._client().chat.completions.create  # its overloads know no request that is a mapping
        answer = await create(
            **known,
            extra_body=more or None,
            extra_headers=headers,
            timeout=httpx2.Timeout(None, connect=times.connect, pool=times.connect),
        )
        return await self._streamed(answer) if body.get("stream") else answer

    async def _streamed(self, stream: Any) -> Any:
        """Return the stream, or the answer of a server that does not stream: the SDK would find no chunk there.

        The body decides, not its type: servers send events as text or as JSON, and other things as events. Raises
        BadAnswer for what is neither.
        """
        response = stream.response
        kind = response.headers.get("content-type", "").lower()
        if isinstance(stream, AsyncStream):
            body = Begun(response)
            begun = await body.beginning()
            if not begins_events(begun) and (begun.strip() or "event-stream" not in kind):
                return self._whole(response, await body.read())
            stream.response = body.response()
        elif "json" in kind or "html" in kind:  # a wrapper of somebody's, which may read the body past this one
            whole = await response.aread()
            return stream if begins_events(whole) else self._whole(response, whole)
        return stream  # pyright: ignore[reportUnknownVariableType]

    def _whole(self, response: httpx2.Response, body: bytes) -> Any:
        """Return the answer that came whole: a JSON object, or a stream of another form as text."""
        found: Any = None
        with suppress(ValueError, RecursionError):
            found = json.loads(body)
        if isinstance(found, dict):
            return found  # pyright: ignore[reportUnknownVariableType]
        if isinstance(found, list) and found:
            return "".join(f"data: {json.dumps(one)}\n\n" for one in found)  # pyright: ignore[reportUnknownVariableType]
        if is_stream(body):
            return body.decode("utf-8", "replace")
        came = response.headers.get("content-type") or "no content type"
        raise failure_of_page(response.status_code, response.headers, body, Hide(self._secrets), came)

    async def _list(self) -> list[Any]:
        return [one async for one in await self._client().models.list()]

    def _client(self) -> AsyncOpenAI:
        return self._given or self._clients.get()

    def _connect(self) -> AsyncOpenAI:
        return sdk_client(self._base_url, self._key, self._options)
