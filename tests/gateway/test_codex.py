"""What Codex sends (0.171.0, written from what it was seen to send) and what it must get back."""

from __future__ import annotations

import json
from typing import Any

import zstandard

from .asking import Json, asking, events_in, judged, types
from .conftest import over
from .scripted_backend import PATCH, Scripted

GRAMMAR = 'start: begin_patch hunk+ end_patch\nbegin_patch: "*** Begin Patch" LF\n'
EXEC: Json = {
    "type": "function",
    "name": "exec_command",
    "description": "Runs a command.",
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {"cmd": {"type": "string"}},
        "required": ["cmd"],
        "additionalProperties": False,
    },
}
APPLY: Json = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edits files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": GRAMMAR},
}
SPACE: Json = {
    "type": "namespace",
    "name": "files",
    "description": "Files of the user.",
    "tools": [
        {
            "type": "function",
            "name": "find",
            "description": "Finds.",
            "strict": False,
            "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        }
    ],
}
SEARCH: Json = {
    "type": "tool_search",
    "execution": "client",
    "description": "Finds tools.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}
TOOLS: list[Json] = [EXEC, APPLY, SPACE, SEARCH, {"type": "web_search", "external_web_access": False}]
HISTORY: list[Json] = [
    {
        "type": "message",
        "id": "msg_a",
        "role": "developer",
        "content": [{"type": "input_text", "text": "You are a coding agent. " * 50}],
    },
    {
        "type": "message",
        "id": "msg_b",
        "role": "user",
        "content": [{"type": "input_text", "text": "<environment_context/>"}],
    },
    {"type": "message", "id": "msg_c", "role": "user", "content": [{"type": "input_text", "text": "Make a file."}]},
]


def turn(model: str, items: list[Json] | None = None, **more: Any) -> Json:
    """Return a request as Codex sends it."""
    return {
        "model": model,
        "input": items or HISTORY,
        "tools": TOOLS,
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "0199",
        "client_metadata": {"session": "s"},
        "text": {"verbosity": "medium"},
        **more,
    }


async def asked(client: Any, body: Json) -> list[Json]:
    """Return the events of a turn; the request is packed as Codex packs it."""
    packed = zstandard.compress(json.dumps(body).encode())
    headers = {"content-type": "application/json", "content-encoding": "zstd", "accept": "text/event-stream"}
    answer = await client.post("/v1/responses", content=packed, headers=headers)
    assert answer.status_code == 200, answer.text
    return judged(events_in(answer.content))


def done_items(events: list[Json]) -> list[Json]:
    """Return what Codex acts upon: the items that are done."""
    return [event["item"] for event in events if event["type"] == "response.output_item.done"]


async def test_a_shell_call_and_its_output(scripted: Scripted) -> None:
    async with asking(over(scripted)) as client:
        events = await asked(client, turn("codex-shell"))
        (call,) = done_items(events)
        output = {"type": "function_call_output", "id": "fco_1", "call_id": call["call_id"], "output": "done"}
        second = await asked(client, turn("codex-shell", [*HISTORY, call, output]))
    assert (call["type"], call["name"]) == ("function_call", "exec_command")
    assert json.loads(call["arguments"]) == {"cmd": "echo made by a shell > made.txt"}
    assert done_items(second)[0]["content"][0]["text"] == "The tool said: done"
    first = scripted.asked[0]
    names = [tool["function"]["name"] for tool in first["tools"]]
    assert names == ["exec_command", "apply_patch", "files__find", "tool_search"]
    assert GRAMMAR in first["tools"][1]["function"]["description"]
    assert [message["role"] for message in first["messages"]] in (
        ["developer", "user", "user"],
        ["system", "user", "user"],
    )
    assert not {"include", "store", "prompt_cache_key", "client_metadata"} & set(first)
    assert first["stream_options"] == {"include_usage": True}


async def test_a_patch_comes_back_as_free_text(scripted: Scripted) -> None:
    async with asking(over(scripted)) as client:
        events = await asked(client, turn("codex-patch"))
        (call,) = done_items(events)
        output = {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": "Done!"}
        second = await asked(client, turn("codex-patch", [*HISTORY, call, output]))
    assert types(events)[2:] == [
        "response.output_item.added",
        "response.custom_tool_call_input.delta",
        "response.custom_tool_call_input.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert (call["type"], call["name"], call["input"]) == ("custom_tool_call", "apply_patch", PATCH)
    assert "".join(event["delta"] for event in events if "delta" in event) == PATCH
    assert done_items(second)[0]["content"][0]["text"] == "The tool said: Done!"
    sent = scripted.asked[1]["messages"][-2]["tool_calls"][0]["function"]
    assert (sent["name"], json.loads(sent["arguments"])) == ("apply_patch", {"input": PATCH})


async def test_a_call_in_a_namespace(scripted: Scripted) -> None:
    async with asking(over(scripted)) as client:
        (call,) = done_items(await asked(client, turn("tool", tools=[SPACE])))
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "here"}
        second = await asked(client, turn("tool", [*HISTORY, call, output], tools=[SPACE]))
    assert (call["name"], call["namespace"]) == ("find", "files")
    assert scripted.asked[1]["messages"][-2]["tool_calls"][0]["function"]["name"] == "files__find"
    assert done_items(second)[0]["content"][0]["text"] == "The tool said: here"


async def test_a_search_for_tools_brings_some(scripted: Scripted) -> None:
    async with asking(over(scripted)) as client:
        (call,) = done_items(await asked(client, turn("tool", tools=[SEARCH])))
        found = {
            "type": "tool_search_output",
            "call_id": call["call_id"],
            "execution": "client",
            "status": "completed",
            "tools": [SPACE],
        }
        await asked(client, turn("tool", [*HISTORY, call, found], tools=[SEARCH]))
    assert (call["type"], call["execution"], call["arguments"]) == ("tool_search_call", "client", {"query": "Paris"})
    assert [tool["function"]["name"] for tool in scripted.asked[1]["tools"]] == ["tool_search", "files__find"]


async def test_tools_in_an_item(scripted: Scripted) -> None:
    """Newer models' requests have no `tools`, but an item that brings them."""
    brought: Json = {
        "type": "additional_tools",
        "role": "developer",
        "tools": [SPACE, {"type": "custom", "name": "exec", "description": "Runs."}],
    }
    body = turn("tool", [brought, *HISTORY])
    del body["tools"]
    async with asking(over(scripted)) as client:
        (call,) = done_items(await asked(client, body))
    assert sorted(tool["function"]["name"] for tool in scripted.asked[0]["tools"]) == ["exec", "files__find"]
    assert call["type"] in ("function_call", "custom_tool_call")


async def test_compaction_is_an_ordinary_turn_without_tools(scripted: Scripted) -> None:
    async with asking(over(scripted)) as client:
        events = await asked(client, turn("text", tools=[]))
    assert events[-1]["type"] == "response.completed"
    assert events[-1]["response"]["usage"]["total_tokens"] == 18
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(scripted.asked[0])


async def test_reasoning_goes_back_without_a_store(scripted: Scripted) -> None:
    config = {"backends": {"scripted": {"url": scripted.url, "profile": "deepseek"}}, "store": {"url": "none"}}
    async with asking(config) as client:
        thought, call = done_items(await asked(client, turn("reasoning-tool", tools=[EXEC])))
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}
        # Codex keeps of a reasoning item what its types know
        kept = {name: thought[name] for name in ("type", "id", "summary", "encrypted_content") if name in thought}
        await asked(client, turn("reasoning-tool", [*HISTORY, kept, call, output], tools=[EXEC]))
    message = scripted.asked[1]["messages"][-2]
    assert (message["role"], message["reasoning_content"]) == ("assistant", "A tool helps.")


async def test_a_failure_that_codex_must_not_repeat(scripted: Scripted) -> None:
    async with asking(over(scripted)) as client:
        answer = await client.post("/v1/responses", json=turn("error-context"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "context_length_exceeded")
