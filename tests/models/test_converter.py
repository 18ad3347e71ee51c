"""`Converter`: the names and outcomes that users of openai-agents know."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from openai import omit

from antiphon.exceptions import AgentsException, UserError
from antiphon.models import Converter
from antiphon.profile import profile_by_word

Json = dict[str, Any]


def output_message(*content: Json, **more: Any) -> Json:
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": list(content), **more}


def said(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": []}


def call(call_id: str = "c1", arguments: str = "{}", **more: Any) -> Json:
    return {"type": "function_call", "id": "fc_1", "call_id": call_id, "name": "f", "arguments": arguments, **more}


def output(value: Any, call_id: str = "c1") -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": value}


def chat_call(id: str = "c1", name: str = "f", arguments: str = "{}", **more: Any) -> Json:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def assistant(content: Any = None, *calls: Json, **more: Any) -> Json:
    return {"role": "assistant", "content": content, **more, **({"tool_calls": list(calls)} if calls else {})}


def tool(content: Any, call_id: str = "c1") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def thought(text: str = "Hmm", **more: Any) -> Json:
    return {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": text}], **more}


BLOCK = {"type": "thinking", "thinking": "Hmm", "signature": "S"}
IMAGE = {"type": "input_image", "image_url": "https://a/b.png", "detail": "original"}
CHAT_IMAGE = {"type": "image_url", "image_url": {"url": "https://a/b.png", "detail": "high"}}
SEARCH = {"type": "file_search_call", "id": "fs_1", "queries": ["q"], "status": "completed"}
CLAUDE = {"model": "claude-x", "preserve_thinking_blocks": True}

# name -> items, options, messages
HISTORIES: dict[str, tuple[Any, Json, list[Json]]] = {
    "a string": ("hi", {}, [{"role": "user", "content": "hi"}]),
    "roles": (
        [{"role": role, "content": "x"} for role in ("system", "developer", "user", "assistant")],
        {},
        [{"role": role, "content": "x"} for role in ("system", "developer", "user", "assistant")],
    ),
    "parts of the user": (
        [{"role": "user", "content": [{"type": "input_text", "text": "see"}, IMAGE]}],
        {},
        [{"role": "user", "content": [{"type": "text", "text": "see"}, CHAT_IMAGE]}],
    ),
    "text parts are lines of one message, and calls join it": (
        [output_message(said("a"), said("b")), call(), call("c2", "")],
        {},
        [assistant("a\nb", chat_call(), chat_call("c2"))],
    ),
    "a call before the text of its turn": (
        [call(), output_message(said("a")), output("1")],
        {},
        [assistant("a", chat_call()), tool("1")],
    ),
    "a refusal": (
        [output_message(said("a"), {"type": "refusal", "refusal": "no"}), call()],
        {},
        [assistant("a", chat_call(), refusal="no")],
    ),
    "a refusal alone": (
        [output_message({"type": "refusal", "refusal": "no"})],
        {},
        [{"role": "assistant", "refusal": "no"}],
    ),
    "a search is a call": (
        [SEARCH],
        {},
        [assistant(None, chat_call("fs_1", "file_search_call", '{"queries": ["q"], "status": "completed"}'))],
    ),
    "an output without call": ([output("1")], {}, [tool("1")]),
    "parts of an output": (
        [output([{"type": "input_text", "text": "x"}, IMAGE])],
        {},
        [tool([{"type": "text", "text": "x"}])],
    ),
    "all parts of an output": ([output([IMAGE])], {"preserve_tool_output_all_content": True}, [tool([CHAT_IMAGE])]),
    "reasoning of nobody known, to nobody named": ([thought(), output_message(said("a"))], {}, [assistant("a")]),
    "reasoning to DeepSeek": (
        [thought(), call()],
        {"model": "deepseek-reasoner"},
        [assistant(None, chat_call(), reasoning_content="Hmm")],
    ),
    "reasoning of another to DeepSeek": (
        [thought(provider_data={"model": "gpt-5"}), call()],
        {"model": "deepseek-reasoner"},
        [assistant(None, chat_call())],
    ),
    "reasoning, as the caller says": (
        [thought(), call()],
        {
            "model": "m",
            "should_replay_reasoning_content": lambda asked: asked.base_url == "http://a",
            "base_url": "http://a/",
        },
        [assistant(None, chat_call(), reasoning_content="Hmm")],
    ),
    "signed blocks to Claude": (
        [thought(provider_data={"thinking_blocks": [BLOCK], "model": "claude-x"}), call()],
        CLAUDE,
        [assistant(None, chat_call(), thinking_blocks=[BLOCK])],
    ),
    "signed blocks of another model": (
        [thought(provider_data={"thinking_blocks": [BLOCK], "model": "claude-y"}), call()],
        CLAUDE,
        [assistant(None, chat_call())],
    ),
    "blocks that are text and signatures": (
        [
            thought(content=[{"type": "reasoning_text", "text": "Hmm"}], encrypted_content="S"),
            output_message(said("a")),
            call(),
        ],
        CLAUDE,
        [assistant([BLOCK, {"type": "text", "text": "a"}], chat_call())],
    ),
    "a signature to Gemini": (
        [call(provider_data={"thought_signature": "T"})],
        {"model": "gemini-3"},
        [assistant(None, chat_call(extra_content={"google": {"thought_signature": "T"}}))],
    ),
    "a signature to another": (
        [call(provider_data={"thought_signature": "T"})],
        {"model": "m"},
        [assistant(None, chat_call())],
    ),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_items_to_messages(name: str) -> None:
    items, options, messages = HISTORIES[name]
    assert Converter.items_to_messages(items, **options) == messages


REFUSED: dict[str, tuple[Any, Json, str]] = {
    "a reference": ([{"type": "item_reference", "id": "x"}], {}, "item_reference"),
    "a compaction": ([{"type": "compaction", "encrypted_content": "x"}], {}, "Compaction"),
    "an item that is none": ([object()], {}, "Unhandled item type or structure"),
    "a call of a custom tool": (
        [{"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"}],
        {},
        "Unhandled item type or structure",
    ),
    "an output of a custom tool": (
        [
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "custom_tool_call_output", "call_id": "c", "output": "x"},
        ],
        {},
        "Unhandled item type or structure",
    ),
    "a hosted call": ([{"type": "web_search_call", "id": "x"}], {}, "Unhandled item type or structure"),
    "an unknown role": ([{"role": "tool", "content": "x"}], {}, "Unexpected role"),
    "audio of the assistant": ([output_message({"type": "output_audio"})], {}, "audio"),
    "an unknown part of the assistant": ([output_message({"type": "x"})], {}, "Unknown content type"),
    "an output without id": ([{"type": "function_call_output", "call_id": None, "output": ""}], {}, "Unpaired"),
    "an output without text, strict": ([output([IMAGE])], {"strict_feature_validation": True}, "non-text"),
    "audio without format": (
        [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "x"}}]}],
        {},
        "both data and format",
    ),
    "an image without URL": (
        [{"role": "user", "content": [{"type": "input_image", "file_id": "x"}]}],
        {},
        "image URLs",
    ),
    "a file by name": (
        [{"role": "user", "content": [{"type": "input_file", "filename": "x"}]}],
        {},
        "file_data or file_id",
    ),
    "an unknown part": ([{"role": "user", "content": [{"type": "x"}]}], {}, "Unknown content"),
    "a video of the system": (
        [{"role": "system", "content": [{"type": "video_url", "video_url": {"url": "u"}}]}],
        {},
        "Only text",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_chat_cannot_hold(name: str) -> None:
    items, options, match = REFUSED[name]
    with pytest.raises(UserError, match=match):
        Converter.items_to_messages(items, **options)


def test_an_output_without_text_is_a_note(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="antiphon"):
        messages = Converter.items_to_messages([output([IMAGE]), output([], "c2")])
    assert messages == [tool("[tool output omitted]"), tool("[tool output omitted]", "c2")]
    assert caplog.text.count("Replacing the tool output with a placeholder") == 2


def test_items_of_a_message_are_those_of_the_assembler() -> None:
    message = {
        "role": "assistant",
        "reasoning_content": "Hmm",
        "content": "Hi",
        "tool_calls": [chat_call(extra_content={"google": {"thought_signature": "T"}}), chat_call("c2", arguments="")],
    }
    items = Converter.message_to_output_items(message, provider_data={"model": "m"})
    assert [item.type for item in items] == ["reasoning", "message", "function_call", "function_call"]
    assert len({item.id for item in items}) == 4
    assert {item.provider_data["model"] for item in items} == {"m"}
    assert items[2].provider_data["thought_signature"] == "T"
    assert [item.arguments for item in items[2:]] == ["{}", "{}"]


def test_a_refusal_and_what_is_not_convertible() -> None:
    (refused,) = Converter.message_to_output_items({"role": "assistant", "refusal": "no"})
    assert [part.refusal for part in refused.content] == ["no"]
    with pytest.raises(AgentsException, match="Audio"):
        Converter.message_to_output_items({"role": "assistant", "audio": {"data": "x"}})
    custom = {"id": "c1", "type": "custom", "custom": {"name": "f", "input": "x"}}
    (item,) = Converter.message_to_output_items({"role": "assistant", "tool_calls": [custom]})
    assert (item.type, item.input) == ("custom_tool_call", "x")
    with pytest.raises(UserError, match="Custom tool calls"):
        Converter.message_to_output_items({"tool_calls": [custom]}, strict_feature_validation=True)


def test_a_turn_comes_back_as_it_was() -> None:
    messages = [assistant("Hi", chat_call(arguments='{"a":1}'))]
    items = [item.to_dict() for item in Converter.message_to_output_items(messages[0])]
    assert Converter.items_to_messages(items) == messages


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (None, omit),
        ("auto", "auto"),
        ("required", "required"),
        ("none", "none"),
        ("f", {"type": "function", "function": {"name": "f"}}),
    ],
)
def test_tool_choice(choice: Any, sent: Any) -> None:
    assert Converter.convert_tool_choice(choice) == sent
    with pytest.raises(UserError):
        Converter.convert_tool_choice(SimpleNamespace(server_label="a"))


SCHEMA = {"type": "object", "properties": {}}


def test_tools_and_handoffs() -> None:
    function = SimpleNamespace(name="f", description=None, params_json_schema=SCHEMA, strict_json_schema=True)
    told = {"name": "f", "description": "", "parameters": SCHEMA, "strict": True}
    assert Converter.tool_to_openai(function) == {"type": "function", "function": told}
    handoff = SimpleNamespace(tool_name="t", tool_description="d", input_json_schema=SCHEMA, strict_json_schema=False)
    told = {"name": "t", "description": "d", "parameters": SCHEMA, "strict": False}
    assert Converter.convert_handoff_tool(handoff) == {"type": "function", "function": told}
    for hosted in ({"type": "web_search"}, object()):
        with pytest.raises(UserError, match="Hosted tools"):
            Converter.tool_to_openai(hosted)


def test_the_form_of_the_answer() -> None:
    schema = SimpleNamespace(
        is_plain_text=lambda: False, is_strict_json_schema=lambda: True, json_schema=lambda: SCHEMA, name=lambda: "x"
    )
    form = {"name": "final_output", "strict": True, "schema": SCHEMA}
    assert Converter.convert_response_format(schema) == {"type": "json_schema", "json_schema": form}
    assert Converter.convert_response_format(None) is omit
    assert Converter.convert_response_format(SimpleNamespace(is_plain_text=lambda: True)) is omit


ITEMS = [
    {"role": "user", "content": "x"},
    output_message(),
    call(),
    output(""),
    SEARCH,
    thought(),
    {"type": "item_reference", "id": "x"},
]
RECOGNISERS = {
    "maybe_easy_input_message": [0],
    "maybe_input_message": [],
    "maybe_response_output_message": [1],
    "maybe_function_tool_call": [2],
    "maybe_function_tool_call_output": [3],
    "maybe_file_search_call": [4],
    "maybe_reasoning_message": [5],
    "maybe_item_reference": [6],
}


@pytest.mark.parametrize("name", RECOGNISERS)
def test_recognisers(name: str) -> None:
    recognise = getattr(Converter, name)
    assert [number for number, item in enumerate(ITEMS) if recognise(item) is not None] == RECOGNISERS[name]
    assert recognise(object()) is None


def test_breakpoints_stay_on_their_parts() -> None:
    mark = {"mode": "explicit"}
    parts = [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "u"}},
        {"type": "input_file", "file_id": "x"},
    ]
    made = Converter.extract_all_content([{**part, "prompt_cache_breakpoint": mark} for part in parts])
    assert isinstance(made, list)
    assert [part["prompt_cache_breakpoint"] for part in made] == [mark] * 3
    assert Converter.extract_text_content(parts) == [{"type": "text", "text": "a"}]
    assert Converter.extract_all_content("x") == Converter.extract_text_content("x") == "x"


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("deepseek-reasoner", "deepseek"),
        ("OpenRouter/DeepSeek/deepseek-r1", "deepseek"),
        ("vertex_ai/gemini-3-pro", "gemini"),
        ("bedrock/anthropic.claude-sonnet-4", "litellm"),
        ("gpt-5", None),
        ("", None),
    ],
)
def test_what_goes_back_is_said_by_the_profile_that_knows_the_model(model: str, name: str | None) -> None:
    profile = profile_by_word(model)
    assert (None if profile is None else profile.name) == name
