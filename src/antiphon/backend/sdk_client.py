"""The OpenAI SDK's client, as models and backends make it where none was given."""

from __future__ import annotations

from typing import Any

from openai import DEFAULT_CONNECTION_LIMITS, DEFAULT_TIMEOUT, AsyncOpenAI, OpenAIError

from antiphon.errors import BadInput

from .kept import KeptConnections

NO_KEY = "none"  # the SDK wants a key, also for servers that want none


def sdk_client(base_url: str | None, key: str | None, options: dict[str, Any]) -> AsyncOpenAI:
    """Return a client for that server, OpenAI's where None, which does not retry unless the options say so.

    `options` are those of `AsyncOpenAI`. Raises BadInput where the SDK takes none of it, or has no key for OpenAI.
    """
    held: dict[str, Any] = {"max_retries": 0, **options}
    # Connections that the SDK makes itself are closed, when they are collected, in whatever loop runs then, not theirs.
    held["http_client"] = held.get("http_client") or KeptConnections(
        timeout=DEFAULT_TIMEOUT, limits=DEFAULT_CONNECTION_LIMITS, follow_redirects=True
    )
    try:
        return AsyncOpenAI(base_url=base_url, api_key=key or (NO_KEY if base_url else None), **held)
    except OpenAIError as problem:
        raise BadInput(f"the OpenAI SDK: {problem}") from None
