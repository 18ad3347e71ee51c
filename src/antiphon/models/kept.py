"""Connections that are kept for the next request, and may have been closed by the server meanwhile."""

from __future__ import annotations

from typing import Any

import httpx2

# What a request meets on a connection that is gone: an end without an answer, or a reset.
_GONE = (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError)


class KeptConnections(httpx2.AsyncClient):
    """An HTTP client that sends a request once more where the connection that it had kept was gone.

    Servers close idle connections when they like (llama.cpp's and uvicorn's after five seconds), also in the moment in
    which a request is sent, so one that got no head of an answer on a connection of an earlier request was refused by
    nobody (RFC 9112, section 9.3.1). A request on a new connection is never sent again.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Return the response, as `httpx2.AsyncClient.send` does. Raises what that raises, from the last connection."""
        passed: list[str] = []

        async def note(stage: str, _: dict[str, Any]) -> None:
            passed.append(stage)

        request.extensions = {**request.extensions, "trace": note}
        try:
            return await super().send(request, **options)
        except _GONE:
            if self.is_closed or _is_new(passed) or _is_answered(passed):
                raise
        return await super().send(request, **options)


def _is_new(passed: list[str]) -> bool:
    return any(stage.startswith("connection.connect_") for stage in passed)


def _is_answered(passed: list[str]) -> bool:
    return any(stage.endswith("receive_response_headers.complete") for stage in passed)
