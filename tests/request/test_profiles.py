"""Every installed profile: one request with all that a coding agent sends, and a backend of that profile takes it."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from typing import Any

import pytest

from antiphon import load_profile
from antiphon.request import to_chat_request

from .backend import answered
from .build import Json, asked, assistant, call, free, output, said, space, thought, tool, typed, user
from .validator import faults

NAMES = sorted(point.name for point in entry_points(group="antiphon.providers"))
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
REQUEST: Json = {
    "model": "m",
    "instructions": "Base.",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Rules."}]},
        user([{"type": "input_text", "text": "see"}, IMAGE]),
        thought("hm"),
        said("I look."),
        call("call_" + "0" * 48, "ask", "", namespace="mcp__wiki"),
        typed("call_2", "patch", "*** Begin"),
        output("call_" + "0" * 48, [{"type": "input_text", "text": "seen"}, IMAGE]),
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "done"},
        {"role": "developer", "content": "More rules."},
        user("go on"),
        thought("so", encrypted_content="FOREIGN"),
        call("call_3", "run"),
    ],
    "tools": [
        tool("run", strict=False),
        free("patch", format={"type": "grammar", "syntax": "lark", "definition": "start: A"}),
        space("mcp__wiki", tool("ask")),
        {"type": "web_search"},
        {"type": "tool_search", "execution": "client"},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "text": {"verbosity": "low", "format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "k",
    "max_output_tokens": 100,
    "metadata": {"a": "b"},
    "user": "u",
}


@pytest.mark.parametrize("choice", ["auto", "none", "required", {"type": "custom", "name": "patch"}], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_a_backend_of_that_profile_takes_what_an_agent_sends(name: str, choice: Any) -> None:
    profile = load_profile(name)
    chat = to_chat_request({**REQUEST, "tool_choice": choice}, profile=profile, stream=True)
    assert (
        faults(
            chat.body,
            system_first=profile.single_leading_system,
            call_id=profile.call_id_pattern,
            tool_parts=profile.tool_parts,
        )
        == []
    )
    text = json.dumps(chat.body)
    assert "FOREIGN" not in text
    assert ("image_url" in text) == profile.images
    assert {"max_tokens", "max_completion_tokens"} & set(chat.body) == {profile.max_tokens_field}
    assert ("stream_options" in chat.body) == profile.stream_usage
    if profile.single_leading_system or not profile.developer_role:
        assert "developer" not in [message["role"] for message in chat.body["messages"]]
    for kind in ("json_schema", "json_object"):
        if chat.body.get("response_format", {}).get("type") == kind:
            assert kind in profile.response_formats


@pytest.mark.parametrize("name", NAMES)
def test_its_answer_comes_back(name: str) -> None:
    chat = to_chat_request(REQUEST, profile=name)
    message = assistant("a", asked("x1", "mcp__wiki__ask"), asked("x2", "patch", '{"input": "p"}'))
    _, asking, patching = answered(chat, message, streamed=True)
    assert (asking["name"], asking["namespace"]) == ("ask", "mcp__wiki")
    assert (patching["type"], patching["input"]) == ("custom_tool_call", "p")
