"""openai-agents: the stream handler behind its chat completions models.

Source: openai-agents 0.24, `OpenAIChatCompletionsModel.stream_response`, which starts from such a response.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from . import imported

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionChunk

PACKAGE = "openai-agents"


async def convert(chunks: AsyncIterator[ChatCompletionChunk]) -> AsyncIterator[Any]:
    """Yield the events that its handler makes of `chunks`."""
    from openai.types.responses import Response

    handler = imported("agents.models.chatcmpl_stream_handler", PACKAGE).ChatCmplStreamHandler
    response = Response(
        id=imported("agents.models.fake_id", PACKAGE).FAKE_RESPONSES_ID,
        created_at=1700000000,
        model="case-model",
        object="response",
        output=[],
        tool_choice="auto",
        top_p=None,
        temperature=None,
        tools=[],
        parallel_tool_calls=False,
        reasoning=None,
    )
    async for event in handler.handle_stream(response, chunks, model="case-model"):
        yield event
