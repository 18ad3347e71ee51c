"""codex-bridge-python: the translation of its bridge, over an HTTP client that answers with the chunks.

Source: codex-bridge-python 0.1.5, `translate_stream`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from . import imported

PACKAGE = "codex-bridge-python"


async def convert(chunks: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    """Yield the events that its bridge makes of the body of an answer, as server-sent events."""
    httpx = imported("httpx", PACKAGE)
    stream, types = imported("codex_bridge.stream", PACKAGE), imported("codex_bridge.types", PACKAGE)

    def answer(request: Any) -> Any:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=chunks)

    request = types.ChatRequest(
        model="case-model", messages=[], tools=[], temperature=None, max_tokens=None, stream_options=None, stream=True
    )
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        arguments = stream.StreamArgs(
            client=client,
            url="http://chat.test/v1/chat/completions",
            api_key="",
            chat_req=request,
            response_id="resp_1",
            sessions=imported("codex_bridge.session", PACKAGE).SessionStore(),
            request_messages=[],
            model="case-model",
        )
        async for event in stream.translate_stream(arguments):
            yield event
