"""A good chat backend in miniature: the chunks that OpenAI's own server would send for a request.

What it says follows from words in the last message: "weather", "story", "emoji"; a token is a piece of six characters.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from antiphon_conformance.read import mapping

Json: TypeAlias = dict[str, Any]
Chunks: TypeAlias = list[Json]

MODEL = "choir"
HEAD = {"object": "chat.completion.chunk", "created": 1767225600, "model": "choir-2026", "system_fingerprint": "fp_1"}
TEXT = "Say what the sea is."
WEATHER: Json = {"name": "get_weather", "parameters": {"properties": {"city": {}, "unit": {}}}}
ADD: Json = {"name": "add", "parameters": {"properties": {"a": {}, "b": {}}}}
STORY = "Once upon a time there was a sea, and it was wide and deep and blue, and nobody knew where it ended. "


def pieces_of(text: str) -> list[str]:
    """Return a text in small pieces."""
    return [text[at : at + 6] for at in range(0, len(text), 6)]


def said_to(body: Json) -> tuple[str, list[Json], str]:
    """Return text, calls and finish_reason of the answer to a request."""
    asked = json.dumps(body["messages"][-1], ensure_ascii=False)
    tools = [tool["function"] for tool in body.get("tools", ())]
    choice: Any = body.get("tool_choice", "auto")
    named: str = mapping(mapping(choice).get("function")).get("name", "")
    wants = "weather" in asked or "time is it" in asked or choice == "required" or named
    if tools and choice != "none" and wants and '"role": "tool"' not in asked:
        chosen = [tool for tool in tools if tool["name"] == named] or tools[:1]
        count = 2 if "at once" in asked and body.get("parallel_tool_calls", True) else 1
        calls = [{"name": one["name"], "arguments": arguments_for(one)} for one in chosen * count]
        return ("I will look. " if "Do both" in asked else ""), calls, "stop" if named else "tool_calls"
    if "response_format" in body:
        return '{"city": "Paris"}', [], "stop"
    if "story" in asked:
        return STORY * 8, [], "stop"
    return (
        ("👩‍🚀" if "emoji" in asked else "1, 2, 3, " if "Count" in asked else "The sea is wide and deep."),
        [],
        "stop",
    )


def arguments_for(tool: Json) -> str:
    """Return arguments that a tool takes."""
    values = {"city": "Oslo", "unit": "c", "a": 1, "b": 2}
    return json.dumps({key: values[key] for key in tool["parameters"].get("properties", {})})


def deltas_for(body: Json, answer: int) -> list[tuple[Json, str | None]]:
    """Return the deltas of one choice, each with its finish_reason. A token is a piece of six characters."""
    text, calls, finish = said_to(body)
    texts = pieces_of(text)
    first: Json = {"role": "assistant", "content": "" if texts or not calls else None}
    deltas: list[Json] = [{"content": piece} for piece in texts]
    for index, call in enumerate(calls):
        head = {"index": index, "id": f"call_{answer}_{index}", "type": "function"}
        deltas.append({"tool_calls": [{**head, "function": {"name": call["name"], "arguments": ""}}]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in pieces_of(call["arguments"])
        ]
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    if limit and len(deltas) > limit:
        deltas, finish = deltas[:limit], "length"
    return [(first, None), *((delta, None) for delta in deltas), ({}, finish)]


def chunks_for(body: Json, answer: int) -> Chunks:
    """Return the chunks of an answer."""
    id, usage = f"chatcmpl-{answer}", mapping(body.get("stream_options")).get("include_usage")
    chunks: Chunks = []
    tokens = 0
    for choice in range(body.get("n", 1)):
        for delta, finish in deltas_for(body, answer):
            logprobs = logprobs_for(delta, body) if body.get("logprobs") else None
            one = {"index": choice, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
            chunks.append({"id": id, **HEAD, "choices": [one], **({"usage": None} if usage else {})})
            tokens += bool(delta.get("content") or delta.get("tool_calls"))
    if usage:
        counts = {"prompt_tokens": 9, "completion_tokens": tokens, "total_tokens": 9 + tokens}
        chunks.append({"id": id, **HEAD, "choices": [], "usage": counts})
    return chunks


def logprobs_for(delta: Json, body: Json) -> Json:
    """Return the log probabilities of a delta."""
    text = delta.get("content") or ""
    entry = {"token": text, "logprob": -0.1, "bytes": list(text.encode())}
    top = [entry] * body.get("top_logprobs", 0)
    return {"content": [{**entry, "top_logprobs": top}] if text else [], "refusal": None}


def whole_of(chunks: Chunks) -> Json:
    """Return the completion that says what chunks say."""
    message: Json = {"role": "assistant", "content": "", "refusal": None}
    calls: list[Json] = []
    finish = None
    for choice in (choice for chunk in chunks for choice in chunk["choices"]):
        message["content"] += choice["delta"].get("content") or ""
        finish = choice["finish_reason"] or finish
        for call in choice["delta"].get("tool_calls", ()):
            if "id" in call:
                calls.append({"id": call["id"], "type": "function", "function": dict(call["function"])})
            else:
                calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
    if calls:
        message |= {"tool_calls": calls, "content": message["content"] or None}
    first = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    return {**HEAD, "id": chunks[0]["id"], "object": "chat.completion", "choices": [first], "usage": usage}


def event(chunk: Any) -> bytes:
    """Return one message."""
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()
