"""The forms that a request may have: mappings, param types, models, mixed. None is ever changed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from copy import deepcopy
from types import MappingProxyType
from typing import Any

import pytest
from openai.types.responses import (
    EasyInputMessage,
    FunctionTool,
    ResponseFormatTextJSONSchemaConfig,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
    ResponseTextConfig,
)
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from openai.types.responses.response_input_item import FunctionCallOutput
from openai.types.responses.response_reasoning_item import Summary
from openai.types.shared import Reasoning
from pydantic import BaseModel

from antiphon import Profile
from antiphon.request import BadRequest, to_chat_request

from .build import Json, call, free, output, said, space, thought, tool, typed, user
from .validator import faults

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
PLAIN_REQUEST: Json = {
    "model": "m",
    "input": [
        user("q"),
        thought("hm"),
        said("a"),
        call("1", "f", '{"a":1}'),
        output(
            "1", [{"type": "input_text", "text": "x"}, {"type": "input_image", "image_url": "data:x", "detail": "low"}]
        ),
        typed("2", "edit", "text"),
        {"type": "custom_tool_call_output", "call_id": "2", "output": "ok"},
    ],
    "tools": [tool("f", description="d", strict=True), free("edit"), space("a", tool("b"))],
    "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}, "verbosity": "low"},
    "reasoning": {"effort": "high"},
    "metadata": {"a": "b"},
}
PROFILE = Profile("deep", reasoning_replay="reasoning_content", reasoning_replay_always=True)


class Request(BaseModel):
    """A request as a server may read it."""

    model: str
    input: list[Any]
    tools: list[Any]
    text: ResponseTextConfig
    reasoning: Reasoning
    metadata: dict[str, str] | None = None
    temperature: float | None = None


def modelled() -> Request:
    """Return the plain request with models wherever openai has one, beside mappings."""
    items: list[Any] = list(PLAIN_REQUEST["input"])
    items[0] = EasyInputMessage(role="user", content="q")
    items[1] = ResponseReasoningItem(id="rs_1", type="reasoning", summary=[Summary(type="summary_text", text="hm")])
    text = ResponseOutputText(type="output_text", text="a", annotations=[])
    items[2] = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
    items[3] = ResponseFunctionToolCall(type="function_call", call_id="1", name="f", arguments='{"a":1}')
    items[4] = FunctionCallOutput(**items[4])
    form = ResponseFormatTextJSONSchemaConfig(type="json_schema", name="n", schema=SCHEMA, strict=True)
    function = FunctionTool(**PLAIN_REQUEST["tools"][0])
    return Request(
        model="m",
        input=items,
        tools=[function, *PLAIN_REQUEST["tools"][1:]],
        text=ResponseTextConfig(format=form, verbosity="low"),
        reasoning=Reasoning(effort="high"),
        metadata={"a": "b"},
    )


def test_models_say_the_same_as_mappings() -> None:
    plain = to_chat_request(PLAIN_REQUEST, profile=PROFILE)
    assert faults(plain.body) == []
    assert to_chat_request(modelled(), profile=PROFILE) == plain
    assert to_chat_request(MappingProxyType(PLAIN_REQUEST), profile=PROFILE) == plain


def test_param_types_are_mappings() -> None:
    request: ResponseCreateParamsNonStreaming = {"model": "m", "input": [{"role": "user", "content": "q"}]}
    assert to_chat_request(request).body["messages"] == [user("q")]


def test_any_iterable_of_items_is_read_once() -> None:
    def items() -> Iterator[Json]:
        yield from PLAIN_REQUEST["input"]

    plain = to_chat_request(PLAIN_REQUEST)
    assert to_chat_request({**PLAIN_REQUEST, "input": items()}) == plain
    assert to_chat_request({**PLAIN_REQUEST, "input": tuple(PLAIN_REQUEST["input"])}) == plain


def test_the_request_is_not_changed() -> None:
    before, given = deepcopy(PLAIN_REQUEST), modelled()
    copy = given.model_copy(deep=True)
    for profile in (None, PROFILE, Profile("p", single_leading_system=True, call_id_pattern="[a-z0-9]{9}")):
        to_chat_request(PLAIN_REQUEST, profile=profile)
        to_chat_request(given, profile=profile)
    assert before == PLAIN_REQUEST
    assert given == copy


def test_a_long_history_is_not_copied() -> None:
    text = "x" * 10_000
    items = [user(text) if n % 2 else said(text) for n in range(200)]
    messages = to_chat_request({"input": items}).body["messages"]
    assert len(messages) == 200
    assert all(message["content"] is text for message in messages)
    schema = {"type": "object", "properties": {str(n): {"type": "string"} for n in range(100)}}
    body = to_chat_request({"input": "q", "tools": [tool() | {"parameters": schema}]}).body
    assert body["tools"][0]["function"]["parameters"] is schema


def calls_made(items: list[Json]) -> int:
    """Return how many Python functions a conversion calls: its work, without a clock."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        to_chat_request({"input": items, "tools": [tool()]}, profile=PROFILE)
    finally:
        sys.setprofile(None)
    return count


def long(n: int) -> list[Json]:
    turns = [
        (user("q"), thought("t"), said("a"), call(f"c{k}"), call(f"d{k}"), output(f"d{k}"), output(f"c{k}"))
        for k in range(n)
    ]
    return [item for turn in turns for item in turn]


def test_work_grows_with_the_number_of_items() -> None:
    small, large = calls_made(long(20)), calls_made(long(200))
    assert large < 11 * small
    same = [user("q"), *(call("one") for _ in range(200)), *(output("one") for _ in range(200))]
    few = [user("q"), *(call("one") for _ in range(20)), *(output("one") for _ in range(20))]
    assert calls_made(same) < 11 * calls_made(few)


def nested(depth: int = 5000) -> Json:
    """Return an object that is nested deeper than Python follows."""
    made: Json = {}
    for _ in range(depth):
        made = {"a": made}
    return made


def request_of(*items: Any, **more: Any) -> Json:
    return {"model": "m", "input": list(items), **more}


# name -> a request, and the parameter that is named
TOO_DEEP: dict[str, tuple[Json, str]] = {
    "an output": (request_of(user("q"), call("1"), output("1", nested())), "input[2]"),
    "an output, a list": (request_of(user("q"), call("1"), output("1", [nested()])), "input[2]"),
    "arguments": (request_of(user("q"), call("1", arguments=nested()), output("1")), "input[1]"),
    "an action": (
        request_of(user("q"), {"type": "local_shell_call", "call_id": "1", "action": {"env": nested()}}),
        "input[1]",
    ),
    "after tools": (
        request_of({"type": "additional_tools", "tools": [tool()]}, call("1"), output("1", nested())),
        "input[2]",
    ),
    "a schema": (request_of(user("q"), text={"format": {"type": "json_schema", "schema": nested()}}), "request"),
    "a tool": (request_of(user("q"), tools=[tool(parameters=nested())]), "request"),
    "an extra": (request_of(user("q"), extra_body={"a": nested()}), "request"),
}


@pytest.mark.parametrize("name", TOO_DEEP)
def test_what_is_nested_too_deep_is_named(name: str) -> None:
    request, param = TOO_DEEP[name]
    with pytest.raises(BadRequest, match="nested deeper") as raised:
        to_chat_request(request)
    assert raised.value.param == param


def test_many_texts_of_one_turn_are_joined_in_order() -> None:
    texts = [str(number) for number in range(50)]
    items = [said(texts[0]), call("1"), *(said(text) for text in texts[1:48]), message_model(said(*texts[48:]))]
    made = to_chat_request(
        request_of(user("q"), *items, output("1", [{"type": "input_text", "text": t} for t in texts]))
    )
    assert made.body["messages"][1]["content"] == "\n".join(texts)
    assert made.body["messages"][2]["content"] == "\n".join(texts)
    assert made.report == ()


def message_model(item: Json) -> ResponseOutputMessage:
    return ResponseOutputMessage.model_validate(item)
