"""A stream as one whole chat completion: for servers that stream although they were asked not to, and for recordings.

The stream goes through the same handler as every other, so whatever it copes with is whole here too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from antiphon import ChatCmplStreamHandler, SourceError
from antiphon.errors import BadInput
from antiphon.request.replay import EXTRAS
from antiphon.stream.sse import detect_format

from .concealing import Concealer, Hide
from .failures import failure_of_fault, is_page

# why a response is incomplete -> finish_reason
_FINISHES = {"max_output_tokens": "length", "content_filter": "content_filter"}
# usage of the Responses API -> usage of the Chat Completions API; the details keep their names
_COUNTS = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "total_tokens": "total_tokens",
    "input_tokens_details": "prompt_tokens_details",
    "output_tokens_details": "completion_tokens_details",
}


def is_stream(body: bytes) -> bool:
    """Return whether a body that should be a completion is a stream of chunks: server-sent events, or JSON lines."""
    if not body.strip() or is_page(body):
        return False
    try:
        return detect_format(body) in ("sse", "jsonl")
    except BadInput:
        return False


def completion_of_stream(body: bytes | Iterable[bytes], hide: Hide) -> dict[str, Any]:
    """Return the completion that an SSE body holds. Raises a ProviderError for a stream that ends as failed."""
    handler = ChatCmplStreamHandler(events="dict")
    concealer = Concealer(hide.secrets)
    for piece in (body,) if isinstance(body, bytes) else body:
        handler.feed_sse(concealer.feed(piece))
    handler.feed_sse(concealer.finish())
    handler.finish()
    response = handler.final or {}
    if isinstance(handler.error, SourceError) and response.get("status") == "failed":
        raise failure_of_fault(handler.error.code, handler.error.message, hide)
    return completion_of(response)


def completion_of(response: dict[str, Any]) -> dict[str, Any]:
    """Return a Responses API response as a chat completion."""
    provided = _held(response, "provider_data")
    return {
        "id": provided.get("id") or response["id"],
        "object": "chat.completion",
        "created": response["created_at"],
        "model": response["model"],
        "choices": [_choice(response)],
        "usage": _usage(response.get("usage")),
    }


def _choice(response: dict[str, Any]) -> dict[str, Any]:
    output: list[dict[str, Any]] = response["output"]
    parts = [part for item in output if item["type"] == "message" for part in item["content"]]
    calls = [_call(item) for item in output if item["type"] in ("function_call", "custom_tool_call")]
    thoughts = [item for item in output if item["type"] == "reasoning"]
    details = [one for item in thoughts for one in _held(item, "provider_data").get("reasoning_details") or ()]
    found: dict[str, Any] = {
        "refusal": "".join(part["refusal"] for part in parts if part["type"] == "refusal"),
        "reasoning_content": "".join(part["text"] for item in thoughts for part in item["summary"]),
        "reasoning_details": details,
        "tool_calls": calls,
        "annotations": [_annotation(one) for part in parts for one in part.get("annotations") or ()],
    }
    text = "".join(part["text"] for part in parts if part["type"] == "output_text")
    logprobs = [one for part in parts for one in part.get("logprobs") or ()]
    reason = _held(response, "incomplete_details").get("reason", "")
    return {
        "index": 0,
        "message": {"role": "assistant", "content": text or None, **{key: one for key, one in found.items() if one}},
        "logprobs": {"content": logprobs} if logprobs else None,
        "finish_reason": _FINISHES.get(reason, "tool_calls" if calls else "stop"),
    }


def _held(holder: dict[str, Any], name: str) -> dict[str, Any]:
    held: dict[str, Any] = holder.get(name) or {}
    return held


def _call(item: dict[str, Any]) -> dict[str, Any]:
    if item["type"] == "custom_tool_call":
        return {"id": item["call_id"], "type": "custom", "custom": {"name": item["name"], "input": item["input"]}}
    function = {"name": item["name"], "arguments": item["arguments"]}
    beside = {key: one for key, one in _held(item, "provider_data").items() if key in EXTRAS}
    return {"id": item["call_id"], "type": "function", "function": function, **beside}


def _annotation(one: dict[str, Any]) -> dict[str, Any]:
    return {"type": one["type"], one["type"]: {key: value for key, value in one.items() if key != "type"}}


def _usage(usage: dict[str, Any] | None) -> dict[str, Any] | None:
    return {name: usage[key] for key, name in _COUNTS.items() if key in usage} if usage else None
