"""Real faults of other converters, as small inputs with the right outcome, from the folder beside the checkout."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from antiphon import Profile
from antiphon.request import BadRequest, ChatRequest, to_chat_request

from .backend import answered
from .build import PLAIN, SHARED, Json, asked, assistant, noted
from .validator import faults

# cases of the area `gateway` whose outcome this package decides; the others are about HTTP and streams
GATEWAY = {
    "114-unsupported-input-item",
    "118-hosted-tool-types-rejected",
    "119-tool-search-dropped-silently",
    "168-codex-full-context-store-false",
}


def shared_cases() -> dict[str, Json]:
    """Return the cases by id; none where the folder is not there."""
    found = [json.loads(path.read_text()) for path in sorted((SHARED / "cases" / "bugs").glob("*.json"))]
    return {case["id"]: case for case in found if case["area"] == "request-conversion" or case["id"] in GATEWAY}


CASES = shared_cases()
FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False}
SCHEMA = {
    "type": "json_schema",
    "name": "Answer",
    "schema": {"type": "object", "properties": {"a": {"type": "string"}}},
}

if not CASES:
    pytest.skip("no shared cases beside the checkout", allow_module_level=True)


def request_of(case: Json) -> Json:
    given = case["input"]
    if "agent" in given:  # in words: an agent with an output type and a tool
        return {"model": "m", "input": "hi", "tools": [FUNCTION], "text": {"format": SCHEMA}}
    return given.get("request") or {"model": "m", "input": given["items"]}


def made_ids(request: Json) -> None:
    """Ids that this library makes begin as the API wants them to."""
    chat = to_chat_request({"input": "hi"})
    items = answered(chat, assistant("hello", asked("c1"), reasoning_content="hm"), streamed=True)
    begins = {"message": "msg_", "reasoning": "rs_", "function_call": "fc_"}
    assert {item["type"]: item["id"][: len(begins[item["type"]])] for item in items} == begins
    replayed = [*request["input"][:1], *items, {"type": "function_call_output", "call_id": "c1", "output": "1"}]
    without = [{key: value for key, value in item.items() if key != "id"} for item in replayed]
    assert to_chat_request({"input": replayed}).body == to_chat_request({"input": without}).body


def told_beside_tools(request: Json) -> None:
    both = to_chat_request(request)
    assert (both.body["response_format"]["type"], len(both.body["tools"]), both.report) == ("json_schema", 1, ())
    told = to_chat_request(request, profile=Profile("no schema with tools", format_with_tools=False))
    assert "response_format" not in told.body
    assert len(told.body["tools"]) == 1
    assert '"properties": {"a"' in told.body["messages"][0]["content"]
    assert noted(told) == [("weakened", "text.format")]


def thinking_first(request: Json) -> None:
    chat = to_chat_request(request, profile=Profile("blocks", reasoning_replay="thinking_blocks"))
    message = chat.body["messages"][1]
    assert message["thinking_blocks"] == [{"type": "thinking", "thinking": "think", "signature": "SIG"}]
    assert list(message).index("thinking_blocks") < list(message).index("tool_calls")


def folded(chat: ChatRequest) -> None:
    assert chat.body["messages"][1] == assistant("Working on it.", asked("a"))
    assert chat.body["messages"][2]["role"] == "tool"


def repaired(chat: ChatRequest) -> None:
    assert [message["role"] for message in chat.body["messages"]] == ["user", "assistant", "tool", "user"]
    assert "interrupted" in chat.body["messages"][2]["content"]


def orphan_named(chat: ChatRequest) -> None:
    assert not any(message["role"] == "tool" for message in chat.body["messages"])
    assert "zz" in str(chat.report[0])


def native_id(chat: ChatRequest) -> None:
    _, message, result = chat.body["messages"]
    assert message["tool_calls"][0]["id"] == result["tool_call_id"] == "functions.Read:0"


def one_system(request: Json) -> None:
    chat = to_chat_request(request, profile=PLAIN)
    assert faults(chat.body, system_first=True) == []
    text = chat.body["messages"][0]["content"]
    assert text.index("Base.") < text.index("One word.")
    assert [message["content"] for message in chat.body["messages"][1:]] == ["Hi", "Capital of France?"]
    kept = to_chat_request(request).body["messages"]
    assert [message["role"] for message in kept] == ["system", "user", "developer", "user"]


def empty_arguments(chat: ChatRequest) -> None:
    assert chat.body["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{}"


def image_follows(request: Json) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "auto"}}
    holding = Profile("tool images allowed", tool_parts=frozenset({"image_url"}))
    held = to_chat_request(request, profile=holding, strict=True)
    assert faults(held.body, tool_parts=holding.tool_parts) == []
    assert held.body["messages"][2]["content"] == [{"type": "text", "text": "screen"}, image]
    assert (len(held.body["messages"]), held.report) == (3, ())
    chat = to_chat_request(request, strict=True)
    assert faults(chat.body) == []
    assert noted(chat) == [("changed", "input[2]")]
    assert chat.body["messages"][2]["content"] == "screen"
    shown = chat.body["messages"][3]
    assert shown["role"] == "user"
    assert [part["type"] for part in shown["content"]] == ["text", "image_url"]


def call_lifted(chat: ChatRequest) -> None:
    assert chat.body["messages"][0] == assistant("ok", asked("a"))


def nothing_about_tools(chat: ChatRequest) -> None:
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(chat.body)


def json_object(chat: ChatRequest) -> None:
    assert chat.body["response_format"] == {"type": "json_object"}


def clamped(request: Json) -> None:
    body = to_chat_request(request).body
    assert body["reasoning_effort"] == "xhigh"
    assert "summary" not in json.dumps(body)
    chat = to_chat_request(request, profile=Profile("clamping", effort_levels=("low", "medium", "high")))
    assert chat.body["reasoning_effort"] == "high"
    assert ("weakened", "reasoning.effort") in noted(chat)


def reference_named(request: Json) -> None:
    """By default it is reported; that a gateway answers 400 is `strict`."""
    assert ("dropped", "input[0]") in noted(to_chat_request(request))
    with pytest.raises(BadRequest, match="item_reference") as raised:
        to_chat_request(request, strict=True)
    assert raised.value.param.startswith("input")


def hosted_skipped(request: Json) -> None:
    chat = to_chat_request(request)
    assert [tool["function"]["name"] for tool in chat.body["tools"]] == ["f"]
    assert "web_search" in str(chat.report[0])
    with pytest.raises(BadRequest):
        to_chat_request({**request, "tool_choice": {"type": "web_search"}})


def search_mapped(request: Json) -> None:
    chat = to_chat_request(request)
    assert [tool["function"]["name"] for tool in chat.body["tools"]] == ["tool_search", "f"]
    (item,) = answered(chat, assistant(None, asked("1", "tool_search", '{"query": "x"}')), streamed=True)
    assert item["type"] == "tool_search_call"
    assert item["arguments"] == {"query": "x"}


def codex(request: Json) -> None:
    chat = to_chat_request(request, strict=True)
    assert not {"include", "store", "prompt_cache_key", "client_metadata"} & set(chat.body)
    wanting = Profile("wanting", passthrough=frozenset({"store", "prompt_cache_key"}))
    assert {"store", "prompt_cache_key"} <= set(to_chat_request(request, profile=wanting).body)


# id -> what must hold of the request, where it is looked at with profiles of its own
OF_REQUEST: dict[str, Callable[[Json], None]] = {
    "039-fake-id-sent-to-responses-api": made_ids,
    "100-anthropic-thinking-before-tool-use": thinking_first,
    "110-system-not-first": one_system,
    "113-tool-output-image-parts": image_follows,
    "114-unsupported-input-item": reference_named,
    "118-hosted-tool-types-rejected": hosted_skipped,
    "119-tool-search-dropped-silently": search_mapped,
    "124-reasoning-effort-unknown-level": clamped,
    "125-structured-output-with-tools-unsupported": told_beside_tools,
    "168-codex-full-context-store-false": codex,
}
# id -> what must hold of the chat request
OF_CHAT: dict[str, Callable[[ChatRequest], None]] = {
    "104-message-between-call-and-output": folded,
    "105-call-without-output": repaired,
    "106-output-without-call": orphan_named,
    "108-native-call-id-preserved": native_id,
    "112-empty-arguments-replayed": empty_arguments,
    "115-mixed-assistant-content-with-call": call_lifted,
    "121-parallel-tool-calls-without-tools": nothing_about_tools,
    "123-text-format-json-object": json_object,
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_outcome_is_the_right_one(name: str) -> None:
    request = request_of(CASES[name])
    before: Any = deepcopy(request)
    if name in OF_REQUEST:
        OF_REQUEST[name](request)
    else:
        chat = to_chat_request(request)
        assert faults(chat.body) == []
        OF_CHAT[name](chat)
    assert request == before


def test_no_case_is_left_out() -> None:
    assert set(CASES) == set(OF_REQUEST) | set(OF_CHAT)
