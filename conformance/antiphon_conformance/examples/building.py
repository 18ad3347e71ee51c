"""Good event streams, built from what is in them: a stream is its items, an item is its kind and its texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Event: TypeAlias = dict[str, Any]
Events: TypeAlias = list[Event]
# What an item says, given its output_index: the events between added and done, and the done item.
Spoken: TypeAlias = tuple[Event, Events, Event]
Item: TypeAlias = Callable[[int], Spoken]

ECHO: Event = {
    "background": False,
    "completed_at": None,
    "created_at": 1750000000.0,
    "frequency_penalty": 0.0,
    "instructions": "Sing.",
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "model": "m-1",
    "object": "response",
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": None,
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
}
USAGE: Event = {
    "input_tokens": 7,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 12,
}
OVERLOADED: Event = {"type": "server_error", "code": "server_error", "message": "overloaded", "param": None}


def text_part(text: str, annotations: tuple[Event, ...] = (), logprobs: tuple[Event, ...] = ()) -> Event:
    return {"type": "output_text", "text": text, "annotations": list(annotations), "logprobs": list(logprobs)}


def link(url: str) -> Event:
    return {"type": "url_citation", "url": url, "title": url, "start_index": 0, "end_index": 1}


def token(text: str) -> Event:
    return {"token": text, "bytes": list(text.encode()), "logprob": -0.5, "top_logprobs": []}


def message(
    *deltas: str,
    status: str = "completed",
    refusal: tuple[str, ...] = (),
    links: tuple[str, ...] = (),
    logs: bool = False,
) -> Item:
    """Return a message with a text part, if there are deltas, and then a refusal part."""

    def spoken(index: int) -> Spoken:
        id, events, content = f"msg_{index}", Events(), list[Event]()
        if deltas:
            probs = tuple(token(delta) for delta in deltas) if logs else ()
            content.append(text_part("".join(deltas), tuple(map(link, links)), probs))
            events += _text(id, index, deltas, links, probs)
        if refusal:
            where = {"item_id": id, "output_index": index, "content_index": len(content)}
            content.append({"type": "refusal", "refusal": "".join(refusal)})
            events += _part(where, "content_part", "refusal", "refusal", refusal, {"type": "refusal", "refusal": ""})
        added: Event = {"id": id, "type": "message", "role": "assistant", "status": "in_progress", "content": []}
        return added, events, {**added, "status": status, "content": content}

    return spoken


def _text(id: str, index: int, deltas: tuple[str, ...], links: tuple[str, ...], probs: tuple[Event, ...]) -> Events:
    where = {"item_id": id, "output_index": index, "content_index": 0}
    events = _part(where, "content_part", "output_text", "text", deltas, text_part(""))
    for n, event in enumerate(one for one in events if one["type"] == "response.output_text.delta"):
        event["logprobs"] = [probs[n]] if probs else []
    events[-2]["logprobs"] = list(probs)
    events[-1]["part"]["annotations"] = [link(url) for url in links]
    said = [
        {"type": "response.output_text.annotation.added", **where, "annotation_index": n, "annotation": link(url)}
        for n, url in enumerate(links)
    ]
    return [*events[:-2], *said, *events[-2:]]


def _part(where: Event, part: str, family: str, field: str, deltas: tuple[str, ...], empty: Event) -> Events:
    whole = "".join(deltas)
    return [
        {"type": f"response.{part}.added", **where, "part": empty},
        *({"type": f"response.{family}.delta", **where, "delta": delta} for delta in deltas),
        {"type": f"response.{family}.done", **where, field: whole},
        {"type": f"response.{part}.done", **where, "part": {**empty, field: whole}},
    ]


def reasoning(*summaries: tuple[str, ...], raw: tuple[str, ...] = (), sealed: str | None = None) -> Item:
    """Return a reasoning item: each summary is the deltas of one part; `raw` are those of one text part."""

    def spoken(index: int) -> Spoken:
        id, events = f"rs_{index}", Events()
        for n, deltas in enumerate(summaries):
            where = {"item_id": id, "output_index": index, "summary_index": n}
            empty = {"type": "summary_text", "text": ""}
            events += _part(where, "reasoning_summary_part", "reasoning_summary_text", "text", deltas, empty)
        if raw:
            where = {"item_id": id, "output_index": index, "content_index": 0}
            events += _part(
                where, "content_part", "reasoning_text", "text", raw, {"type": "reasoning_text", "text": ""}
            )
        added: Event = {"id": id, "type": "reasoning", "summary": [], "encrypted_content": None}
        done = {**added, "summary": [{"type": "summary_text", "text": "".join(deltas)} for deltas in summaries]}
        if raw:
            done["content"] = [{"type": "reasoning_text", "text": "".join(raw)}]
        return added, events, {**done, "encrypted_content": sealed}

    return spoken


def call(name: str, *deltas: str, status: str = "completed") -> Item:
    return _call("function_call", "fc", "function_call_arguments", "arguments", name, deltas, status)


def custom_call(name: str, *deltas: str, status: str = "completed") -> Item:
    return _call("custom_tool_call", "ctc", "custom_tool_call_input", "input", name, deltas, status)


def _call(type: str, prefix: str, family: str, field: str, name: str, deltas: tuple[str, ...], status: str) -> Item:
    def spoken(index: int) -> Spoken:
        id = f"{prefix}_{index}"
        where = {"item_id": id, "output_index": index}
        events: Events = [{"type": f"response.{family}.delta", **where, "delta": delta} for delta in deltas]
        events.append({"type": f"response.{family}.done", **where, field: "".join(deltas)})
        added = {"id": id, "type": type, "call_id": f"call_{index}", "name": name, field: "", "status": "in_progress"}
        return added, events, {**added, field: "".join(deltas), "status": status}

    return spoken


def searched(query: str) -> Item:
    """Return a hosted web search."""

    def spoken(index: int) -> Spoken:
        id, where = f"ws_{index}", {"item_id": f"ws_{index}", "output_index": index}
        steps = ("in_progress", "searching", "completed")
        action = {"type": "search", "query": query, "queries": [query]}
        added = {"id": id, "type": "web_search_call", "status": "in_progress", "action": action}
        done = {**added, "status": "completed"}
        return added, [{"type": f"response.web_search_call.{step}", **where} for step in steps], done

    return spoken


def stream(
    *items: Item, ending: str = "completed", reason: str = "max_output_tokens", usage: Event | None = USAGE
) -> Events:
    """Return the events of a response with these items, numbered."""
    head: Event = {**ECHO, "id": "resp_1", "error": None, "incomplete_details": None, "output": [], "usage": None}
    began: Event = {**head, "status": "in_progress"}
    events: Events = [{"type": f"response.{name}", "response": began} for name in ("created", "in_progress")]
    output: Events = []
    for index, item in enumerate(items):
        added, between, done = item(index)
        events.append({"type": "response.output_item.added", "output_index": index, "item": added})
        events += [*between, {"type": "response.output_item.done", "output_index": index, "item": done}]
        output.append(done)
    ended = {**head, "status": ending, "output": output, "usage": usage}
    match ending:
        case "incomplete":
            ended["incomplete_details"] = {"reason": reason}
        case "failed":
            told = {key: OVERLOADED[key] for key in ("code", "message")}
            ended |= {"error": told, "usage": None}
            events.append({**OVERLOADED, "type": "error", "error": OVERLOADED})
        case _:
            ended["completed_at"] = 1750000009
    events.append({"type": f"response.{ending}", "response": ended})
    return numbered(events)


def numbered(events: Events, first: int = 0) -> Events:
    return [{**event, "sequence_number": n} for n, event in enumerate(events, first)]


def chunk(finish_reason: str | None = None, **delta: Any) -> Event:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m-1", "choices": [choice]}


def fragment(index: int | None, id: str | None = None, name: str | None = None, arguments: str | None = "") -> Event:
    return chunk(tool_calls=[{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}])


def usage_chunk(prompt: int = 7, completion: int = 5) -> Event:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m-1", "choices": [], "usage": usage}
