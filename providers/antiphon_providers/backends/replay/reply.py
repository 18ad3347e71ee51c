"""What a model would answer, made from the request alone: an echo, a call of a tool, an instance of a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from antiphon.stream.chunk import text_of

from .instance import as_json, instance
from .playing import CREATED, DONE_EVENT, Json, Played, asks_usage, cut, event, held, most_tokens, tokens

_ASKS = re.compile(r"\b(tools?|functions?|call|use|invoke)\b", re.IGNORECASE)
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)


def reply(body: Mapping[str, Any]) -> Played:
    """Return the answer to a request; the same one every time.

    The last user message is echoed; after tool outputs these are quoted. The first tool that is offered, or the one
    that the message names, is called if the message asks for a call ("tool", "call", "use", a tool's name) or if
    `tool_choice` does; a JSON object in the message is its arguments. A `response_format` is kept to.
    """
    messages: Sequence[Json] = body.get("messages") or ()
    tool = _chosen(body, messages)
    message = _call(tool, body, messages) if tool else {"role": "assistant", "content": _text(body, messages)}
    base = {"id": f"chatcmpl-{_digest(body)}", "created": CREATED, "model": str(body.get("model") or "replay")}
    chunks = list(cut(_chunks(base, message), most_tokens(body)))
    said = sum(1 for chunk in chunks for one in chunk["choices"] if one["delta"] and "role" not in one["delta"])
    usage = _usage(messages, said)
    if asks_usage(body):
        chunks.append({**base, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    pieces = (*map(event, chunks), DONE_EVENT)
    return Played(pieces, whole=_whole(base, message, chunks, usage))


# --- what is said ----------------------------------------------------------------------------------------------------


def user_text(messages: Sequence[Json]) -> str:
    """Return the text of the last user message."""
    return next((text_of(one.get("content")) for one in reversed(messages) if one.get("role") == "user"), "")


def tool_outputs(messages: Sequence[Json]) -> list[str]:
    """Return the texts of the tool messages that the request ends with."""
    outputs: list[str] = []
    for one in reversed(messages):
        if one.get("role") not in ("tool", "function"):
            break
        outputs.insert(0, text_of(one.get("content")))
    return outputs


def _text(body: Mapping[str, Any], messages: Sequence[Json]) -> str:
    outputs = tool_outputs(messages)
    text = f"The tool said: {'; '.join(outputs)}" if outputs else f"You said: {user_text(messages)}"
    format = held(body, "response_format")
    if format.get("type") == "json_schema":
        return as_json(instance(held(format, "json_schema").get("schema")))
    return as_json({"answer": text}) if format.get("type") == "json_object" else text


def _chosen(body: Mapping[str, Any], messages: Sequence[Json]) -> Json | None:
    """Return the tool to call, or None."""
    tools: list[Json] = [one for one in body.get("tools") or () if one.get("type") in ("function", "custom")]
    choice = body.get("tool_choice")
    if not tools or choice == "none":
        return None
    if isinstance(choice, dict):
        named = _named(choice)  # pyright: ignore[reportUnknownArgumentType]
        return next((one for one in tools if _named(one) == named), tools[0])
    text = user_text(messages)
    meant = next((one for one in tools if _mentions(text, _named(one))), None)
    if choice == "required" or (not tool_outputs(messages) and (meant or _ASKS.search(text))):
        return meant or tools[0]
    return None


def _named(tool: Mapping[str, Any]) -> str:
    return str(held(tool, str(tool.get("type"))).get("name", ""))


def _mentions(text: str, name: str) -> bool:
    words = re.escape(name).replace("_", "[_ ]")
    return bool(name) and re.search(rf"\b{words}\b", text, re.IGNORECASE) is not None


def _call(tool: Json, body: Mapping[str, Any], messages: Sequence[Json]) -> Json:
    text = user_text(messages)
    head: Json = {"id": f"call_{_digest(body)}", "type": tool["type"]}
    if tool["type"] == "custom":
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{**head, "custom": {"name": _named(tool), "input": text}}],
        }
    given = _given(text)
    arguments = as_json(instance(tool["function"].get("parameters") or {"type": "object"}) if given is None else given)
    function = {"name": _named(tool), "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{**head, "function": function}]}


def _given(text: str) -> Any:
    found = _OBJECT.search(text)
    try:
        return json.loads(found.group()) if found else None
    except ValueError:
        return None


# --- how it is sent --------------------------------------------------------------------------------------------------


def _chunks(base: Json, message: Json) -> Iterator[Json]:
    """Yield the message as OpenAI would: the role first, then pieces, then the finish."""
    calls: list[Json] = message.get("tool_calls") or []
    yield _chunk(base, {"role": "assistant", "content": None if calls else ""})
    for piece in tokens(message["content"] or ""):
        yield _chunk(base, {"content": piece})
    for index, call in enumerate(calls):
        kind: str = call["type"]
        name, text = call[kind].values()
        field = "arguments" if kind == "function" else "input"
        yield _chunk(base, {"tool_calls": [{**call, "index": index, kind: {"name": name, field: ""}}]})
        for piece in tokens(text):
            yield _chunk(base, {"tool_calls": [{"index": index, kind: {field: piece}}]})
    yield _chunk(base, {}, "tool_calls" if calls else "stop")


def _chunk(base: Json, delta: Json, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**base, "object": "chat.completion.chunk", "choices": [choice]}


def _whole(base: Json, message: Json, chunks: Sequence[Json], usage: Json) -> Json:
    """Return the completion that says what the chunks say: as much of the message as the token limit left."""
    choices: list[Json] = [one for chunk in chunks for one in chunk["choices"]]
    kept = {**message, "refusal": None}
    if message["content"]:
        kept["content"] = "".join(one["delta"].get("content") or "" for one in choices)
    for call in message.get("tool_calls") or ():
        kind = call["type"]
        field = "arguments" if kind == "function" else "input"
        pieces = [one["delta"]["tool_calls"][0][kind][field] for one in choices if "tool_calls" in one["delta"]]
        kept["tool_calls"] = [{**call, kind: {"name": call[kind]["name"], field: "".join(pieces)}}] if pieces else None
    finish = choices[-1]["finish_reason"]
    choice = {"index": 0, "message": kept, "logprobs": None, "finish_reason": finish}
    return {**base, "object": "chat.completion", "choices": [choice], "usage": usage}


def _usage(messages: Sequence[Json], said: int) -> Json:
    asked = sum(len(tokens(text_of(one.get("content")))) for one in messages)
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def _digest(body: Mapping[str, Any]) -> str:
    """Return letters and digits that differ from request to request, also within a conversation."""
    told = {key: value for key, value in body.items() if key not in ("stream", "stream_options")}
    return sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:24]
