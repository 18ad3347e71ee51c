"""`POST /v1/responses/compact`: a conversation as a summary, which its model writes, and which later requests open again.

input -> the same request, and a last message that asks for a summary -> backend -> compaction item
compaction item in a later input -> a message with the summary
"""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import Response

from .bodies import Body
from .compacted import closed
from .errors import ApiError, invalid
from .gateway import Gateway
from .history import normalized
from .keys import Caller
from .making import warning_headers
from .schema import COMPACT, check
from .serving import JsonResponse, attended
from .stored import Json

KEPT = frozenset({"user", "developer", "system"})  # whose messages are kept as they are
ASKED = (
    "The conversation above is about to be left out, and what you write now takes its place. Write down all that is "
    "needed to go on with it as if it were still there: what was asked for and decided, what was done and with which "
    "result, names, paths, numbers and code that matter, what is open, and what comes next. Messages of the user are "
    "kept word for word, so do not repeat them. Write the summary alone, as plain text, and call no tool."
)


class Compaction:
    """What the route does for a caller."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def create(self, request: Request, caller: Caller) -> Response:
        """Compact a conversation: its messages but the assistant's, and one item for all that was."""
        return await attended(self._gateway, request, lambda body: self._compacted(body, caller))

    async def _compacted(self, body: Body, caller: Caller) -> Response:
        check(body.held, COMPACT)
        given = body.held.get("input")
        if given is None and body.held.get("previous_response_id") is None:
            why = "Missing required parameter: 'input', or 'previous_response_id'."
            raise invalid("input", why, "missing_required_parameter")
        asked = [*normalized(given), *normalized(ASKED)]
        making = await self._gateway.maker.make_aside(body, caller, COMPACT, input=asked)
        before = [*making.history.before, *making.history.own[:-1]]
        response = await self._gateway.whole(making, caller)
        output = [*(_kept(one) for one in before if one.get("role") in KEPT), closed(_summary(response))]
        answer = JsonResponse(
            {
                "id": response["id"],
                "object": "response.compaction",
                "created_at": int(time.time()),
                "output": output,
                "usage": response["usage"],
            }
        )
        answer.raw_headers += warning_headers(making.notes)
        return answer


def _kept(message: Json) -> Json:
    """Return a message of the input as one of an output: its content is a list."""
    content = message.get("content")
    held = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
    return {**message, "status": "completed", "content": held}


def _summary(response: Json) -> str:
    """Return what the model wrote. Raises ApiError for what is no whole summary: what it leaves out would be lost."""
    parts = [part for item in response["output"] if item["type"] == "message" for part in item["content"]]
    summary = "".join(part["text"] for part in parts if part["type"] == "output_text").strip()
    if response["status"] == "completed" and summary:
        return summary
    details: Json = response.get("incomplete_details") or {}
    reason = details.get("reason") or "it wrote no text"
    raise ApiError(
        502,
        f"the model gave no whole summary ({reason}): nothing was compacted, go on with the items themselves",
        code="compaction_failed",
    )
