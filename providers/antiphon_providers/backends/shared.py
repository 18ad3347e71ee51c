"""What several backends need: keys from the environment, optional packages, one client for each event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit, urlunsplit

from antiphon.errors import BadInput, ExtraMissing

C = TypeVar("C")


def key_of(api_key: str | None, api_key_env: str | None) -> str | None:
    """Return the key that was given, else the one in the environment variable. Raises BadInput where that is unset."""
    if api_key is not None or api_key_env is None:
        return api_key
    key = os.environ.get(api_key_env)
    if not key:
        raise BadInput(f"api_key_env is {api_key_env!r}, and no such environment variable is set")
    return key


def without_credentials(url: str | None) -> str | None:
    """Return a URL as it may be shown: without user, password and query. Raises BadInput for what is no URL."""
    if url is None:
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        raise BadInput("base_url cannot be read as a URL") from None  # the reason may quote a password
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def optional(module: str, extra: str) -> Any:
    """Return an optional package. Raises ExtraMissing, which names the extra that brings it."""
    try:
        return import_module(module)
    except ImportError as problem:
        raise ExtraMissing(
            f"this backend needs the package {module!r} ({problem}): pip install 'antiphon[{extra}]'", extra=extra
        ) from problem


class PerLoop(Generic[C]):
    """One client for each event loop: connections belong to the loop that made them."""

    def __init__(self, make: Callable[[], C], close: Callable[[C], Awaitable[None]]) -> None:
        self._make, self._close = make, close
        self._clients: dict[asyncio.AbstractEventLoop, C] = {}

    def get(self) -> C:
        """Return the client of the loop that runs; it is made at its first use."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            for gone in [one for one in self._clients if one.is_closed()]:
                del self._clients[gone]  # nothing of it can be closed any more
            client = self._clients[loop] = self._make()
        return client

    async def close(self) -> None:
        """Close the client of the loop that runs. The next use makes a new one."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await self._close(client)
