"""Asking a gateway, and reading what comes: events as they are on the wire, checked as a strict client would."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import httpx2
from openresponses_types import ResponseResource

from antiphon.gateway import create_app
from antiphon.gateway.transport import AppTransport
from antiphon_conformance import check

Json: TypeAlias = dict[str, Any]

KEYS = frozenset(ResponseResource.model_fields)
TERMINAL = ("response.completed", "response.incomplete", "response.failed")
TOOL: Json = {
    "type": "function",
    "name": "weather",
    "description": "Tells the weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@asynccontextmanager
async def asking(config: Any = None, **more: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """Give a client of a new gateway inside the process."""
    app = create_app(config, **more)
    async with httpx2.AsyncClient(transport=AppTransport(app), base_url="http://antiphon.test", timeout=20) as client:
        yield client


async def asked(client: httpx2.AsyncClient, model: str, **params: Any) -> httpx2.Response:
    """Ask for a response that is not streamed."""
    return await client.post("/v1/responses", json={"model": model, "input": "Hi", **params})


async def streamed(client: httpx2.AsyncClient, model: str, **params: Any) -> list[Json]:
    """Return the events of a streamed response; they are those of a good stream."""
    answer = await client.post("/v1/responses", json={"model": model, "input": "Hi", "stream": True, **params})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    return judged(events_in(answer.content))


def events_in(body: bytes) -> list[Json]:
    """Return the events of a body. Each is an `event:` line, a `data:` line, and a blank line; nothing else but comments."""
    events: list[Json] = []
    for block in body.split(b"\n\n"):
        if not block or block.startswith(b":"):
            continue
        named, data = block.split(b"\n")
        event = json.loads(data.removeprefix(b"data: "))
        assert named == f"event: {event['type']}".encode()
        events.append(event)
    return events


def judged(events: list[Json]) -> list[Json]:
    """Return the events, which break no rule, and whose last response is one of the Open Responses schema."""
    report = check(events)
    assert report.ok, [str(one) for one in report.findings]
    for event in (events[0], events[-1]):
        whole(event["response"])
    return events


def whole(response: Json) -> Json:
    """Return a response, which has all keys that the schema requires; where its tools are known ones, it is valid."""
    assert not KEYS - set(response), KEYS - set(response)
    if _is_known(response):
        ResponseResource.model_validate(response)
    return response


def _is_known(response: Json) -> bool:
    """Whether the Open Responses schema knows the types of all tools and items, and the format of the text.

    Of a json_schema format it allows no schema but null (openresponses-types 2.4), and the API itself repeats it.
    """
    items = all(item["type"] in ("message", "function_call", "reasoning") for item in response["output"])
    tools = all(tool["type"] == "function" for tool in response["tools"])
    return items and tools and response["text"]["format"]["type"] != "json_schema"


def types(events: list[Json]) -> list[str]:
    """Return the types of the events, deltas that follow each other as one."""
    found: list[str] = []
    for event in events:
        if not found or found[-1] != event["type"] or "delta" not in event:
            found.append(event["type"])
    return found


def shape(response: Json) -> Json:
    """Return what a response says, without what differs from one to the next: ids and times."""
    return {
        "status": response["status"],
        "incomplete": response["incomplete_details"],
        "output": [_item(item) for item in response["output"]],
        "usage": response["usage"] and [response["usage"][name] for name in ("input_tokens", "output_tokens")],
    }


def _item(item: Json) -> list[Any]:
    match item["type"]:
        case "message":
            return ["message", *(part.get("text", part.get("refusal")) for part in item["content"])]
        case "function_call":
            return ["call", item["name"], item["arguments"]]
        case "custom_tool_call":
            return ["custom", item["name"], item["input"]]
        case "reasoning":
            return ["reasoning", *(part["text"] for part in item["summary"])]
        case other:
            return [other]
