"""Parameters beside the history and the tools."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from antiphon import Profile
from antiphon.request import BadRequest, to_chat_request

from .build import Json, converted, noted, user
from .validator import faults

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
JSON_SCHEMA = {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": True, "description": "d"}
OPENAI = Profile(
    "openai", passthrough=frozenset({"store", "metadata", "prompt_cache_key", "safety_identifier", "verbosity"})
)
OLD = Profile("old", max_tokens_field="max_tokens", stream_usage=False)
LEVELS = Profile("levels", effort_levels=("low", "medium", "high"))
NO_EFFORT = Profile("no-effort", effort_field="none")
OBJECTS = Profile("objects", effort_field="reasoning")


def carried(**request: Any) -> Json:
    """Return the body of a request for one word, without the history."""
    return {
        key: value for key, value in converted(user("q"), **request).body.items() if key not in ("model", "messages")
    }


SENT: list[tuple[str, Json, Profile | None, Json, list[tuple[str, str]]]] = [
    ("sampling", {"temperature": 0.5, "top_p": 0.9}, None, {"temperature": 0.5, "top_p": 0.9}, []),
    ("zero is a value", {"temperature": 0}, None, {"temperature": 0}, []),
    (
        "nulls",
        dict.fromkeys(("temperature", "tools", "text", "reasoning", "metadata", "store", "top_logprobs")),
        None,
        {},
        [],
    ),
    ("a token limit", {"max_output_tokens": 9}, None, {"max_completion_tokens": 9}, []),
    ("a token limit of old", {"max_output_tokens": 9}, OLD, {"max_tokens": 9}, []),
    ("log probabilities", {"top_logprobs": 3}, None, {"logprobs": True, "top_logprobs": 3}, []),
    ("no log probabilities", {"top_logprobs": 0}, None, {}, []),
    ("log probabilities by include", {"include": ["message.output_text.logprobs"]}, None, {"logprobs": True}, []),
    ("encrypted reasoning", {"include": ["reasoning.encrypted_content"]}, None, {}, []),
    ("other includes", {"include": ["file_search_call.results"]}, None, {}, [("ignored", "include[0]")]),
    ("user and tier", {"user": "u", "service_tier": "flex"}, None, {"user": "u", "service_tier": "flex"}, []),
    (
        "what OpenAI takes and others do not",
        {"user": "u", "service_tier": "flex", "metadata": {"a": "b"}, "text": {"verbosity": "low"}},
        OLD,
        {},
        [("dropped", "text.verbosity"), ("ignored", "user"), ("ignored", "service_tier"), ("ignored", "metadata")],
    ),
    ("metadata", {"metadata": {"a": "b"}}, None, {"metadata": {"a": "b"}}, []),
    ("no metadata", {"metadata": {}}, None, {}, []),
    (
        "metadata where it needs a store",
        {"metadata": {"a": "b"}},
        OPENAI,
        {},
        [("ignored", "metadata")],
    ),
    (
        "metadata with a store",
        {"metadata": {"a": "b"}, "store": True},
        OPENAI,
        {"store": True, "metadata": {"a": "b"}},
        [],
    ),
    ("store, where there is one", {"store": False}, OPENAI, {"store": False}, []),
    ("store, where there is none", {"store": True}, None, {}, [("ignored", "store")]),
    ("no store, where there is none", {"store": False}, None, {}, []),
    (
        "hints",
        {"prompt_cache_key": "k", "safety_identifier": "s", "client_metadata": {"a": "b"}},
        None,
        {},
        [("ignored", "prompt_cache_key"), ("ignored", "safety_identifier"), ("ignored", "client_metadata")],
    ),
    (
        "hints that are wanted",
        {"prompt_cache_key": "k", "safety_identifier": "s"},
        OPENAI,
        {"prompt_cache_key": "k", "safety_identifier": "s"},
        [],
    ),
    ("verbosity", {"text": {"verbosity": "low"}}, None, {"verbosity": "low"}, []),
    ("verbosity by profile", {"text": {"verbosity": "low"}}, OPENAI, {"verbosity": "low"}, []),
    ("plain text", {"text": {"format": {"type": "text"}}}, None, {}, []),
    (
        "a JSON object",
        {"text": {"format": {"type": "json_object"}}},
        None,
        {"response_format": {"type": "json_object"}},
        [],
    ),
    (
        "a JSON schema",
        {"text": {"format": JSON_SCHEMA}},
        None,
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": SCHEMA, "description": "d", "strict": True},
            }
        },
        [],
    ),
    (
        "a JSON schema with little said",
        {"text": {"format": {"type": "json_schema", "schema": SCHEMA, "strict": None}}},
        None,
        {"response_format": {"type": "json_schema", "json_schema": {"name": "response", "schema": SCHEMA}}},
        [],
    ),
    ("another format", {"text": {"format": {"type": "lyrics"}}}, None, {}, [("dropped", "text.format")]),
    ("effort", {"reasoning": {"effort": "xhigh"}}, None, {"reasoning_effort": "xhigh"}, []),
    (
        "effort and summary",
        {"reasoning": {"effort": "low", "summary": "auto"}},
        None,
        {"reasoning_effort": "low"},
        [("ignored", "reasoning.summary")],
    ),
    ("effort in an object", {"reasoning": {"effort": "low"}}, OBJECTS, {"reasoning": {"effort": "low"}}, []),
    ("no effort", {"reasoning": {"effort": None}}, None, {}, []),
    ("an accepted level", {"reasoning": {"effort": "medium"}}, LEVELS, {"reasoning_effort": "medium"}, []),
    *(
        (
            f"the level nearest to {effort}",
            {"reasoning": {"effort": effort}},
            LEVELS,
            {"reasoning_effort": level},
            [("weakened", "reasoning.effort")],
        )
        for effort, level in (("xhigh", "high"), ("max", "high"), ("minimal", "low"), ("none", "low"))
    ),
    (
        "of two levels the lower",
        {"reasoning": {"effort": "medium"}},
        Profile("two", effort_levels=("low", "high")),
        {"reasoning_effort": "low"},
        [("weakened", "reasoning.effort")],
    ),
    ("a level that nobody knows", {"reasoning": {"effort": "ultra"}}, LEVELS, {}, [("dropped", "reasoning.effort")]),
    ("effort where there is none", {"reasoning": {"effort": "low"}}, NO_EFFORT, {}, [("dropped", "reasoning.effort")]),
    (
        "settings of reasoning",
        {"reasoning": {"mode": "pro", "context": "auto", "generate_summary": "concise"}},
        None,
        {},
        [("dropped", "reasoning.mode"), ("ignored", "reasoning.generate_summary")],
    ),
    (
        "chat's own",
        {"stop": ["END"], "seed": 7, "presence_penalty": 0.1, "frequency_penalty": 0.2, "logit_bias": {"5": 1}},
        None,
        {"stop": ["END"], "seed": 7, "presence_penalty": 0.1, "frequency_penalty": 0.2, "logit_bias": {"5": 1}},
        [],
    ),
    ("an extra body", {"extra_body": {"top_k": 40, "min_p": 0.1}}, None, {"top_k": 40, "min_p": 0.1}, []),
    ("an extra body counts last", {"temperature": 1, "extra_body": {"temperature": 0}}, None, {"temperature": 0}, []),
    ("what is for the client library", {"extra_headers": {"a": "b"}, "extra_query": {}, "timeout": 5}, None, {}, []),
    (
        "state that a server keeps",
        {"previous_response_id": "resp_1", "conversation": "conv_1", "prompt": {"id": "p"}},
        None,
        {},
        [("dropped", "previous_response_id"), ("dropped", "conversation"), ("dropped", "prompt")],
    ),
    ("the background", {"background": True}, None, {}, [("dropped", "background")]),
    ("the foreground", {"background": False, "truncation": "disabled"}, None, {}, []),
    (
        "limits that chat has not",
        {"truncation": "auto", "max_tool_calls": 3},
        None,
        {},
        [("dropped", "truncation"), ("dropped", "max_tool_calls")],
    ),
    ("unknown parameters", {"songs": 3}, None, {}, [("dropped", "songs")]),
    (
        "unknown parameters that are wanted",
        {"top_k": 3},
        Profile("k", passthrough=frozenset({"top_k"})),
        {"top_k": 3},
        [],
    ),
    ("stream options without stream", {"stream_options": {"include_usage": True}}, None, {}, []),
]


@pytest.mark.parametrize(
    ("request_", "profile", "body", "report"), [one[1:] for one in SENT], ids=[one[0] for one in SENT]
)
def test_a_parameter_is_sent_so(
    request_: Json, profile: Profile | None, body: Json, report: list[tuple[str, str]]
) -> None:
    chat = converted(user("q"), profile=profile, **request_)
    assert {key: value for key, value in chat.body.items() if key not in ("model", "messages")} == body
    assert noted(chat) == report
    assert faults(chat.body) == []
    lost = [path for kind, path in report if kind in ("dropped", "weakened")]
    if lost:
        with pytest.raises(BadRequest) as raised:
            converted(user("q"), profile=profile, strict=True, **request_)
        assert raised.value.param == lost[0]


@pytest.mark.parametrize(
    ("formats", "sent", "words"),
    [
        (frozenset({"json_object"}), {"type": "json_object"}, "valid against this JSON schema"),
        (frozenset({"text"}), None, "valid against this JSON schema"),
    ],
    ids=["objects are known", "nothing is known"],
)
def test_a_schema_is_told_where_it_cannot_be_sent(formats: frozenset[str], sent: Any, words: str) -> None:
    profile = Profile("p", response_formats=formats)
    chat = converted(user("q"), profile=profile, instructions="Base.", text={"format": JSON_SCHEMA})
    assert chat.body.get("response_format") == sent
    first = chat.body["messages"][0]["content"]
    assert first.startswith("Base.\n")
    assert words in first
    assert '"additionalProperties": false' in first
    assert noted(chat) == [("weakened", "text.format")]


def test_an_object_is_told_where_it_cannot_be_sent() -> None:
    profile = Profile("p", response_formats=frozenset({"text"}))
    chat = converted(user("q"), profile=profile, text={"format": {"type": "json_object"}})
    assert "response_format" not in chat.body
    assert "JSON object" in chat.body["messages"][0]["content"]


@pytest.mark.parametrize("form", [JSON_SCHEMA, {"type": "json_object"}], ids=["schema", "object"])
@pytest.mark.parametrize("offers", [True, False])
def test_where_a_form_and_tools_exclude_each_other(form: Json, offers: bool) -> None:
    profile = Profile("p", format_with_tools=False)
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}}] if offers else []
    chat = converted(user("q"), profile=profile, tools=tools, text={"format": form})
    assert ("response_format" in chat.body) is not offers
    assert noted(chat) == ([("weakened", "text.format")] if offers else [])
    if offers:
        assert "Your last answer" in chat.body["messages"][0]["content"]
    with pytest.raises(BadRequest) if offers else nullcontext():
        converted(user("q"), profile=profile, tools=tools, text={"format": form}, strict=True)


STREAMS: list[tuple[str, bool, Json, Profile | None, Json]] = [
    ("asked for", True, {}, None, {"stream": True, "stream_options": {"include_usage": True}}),
    (
        "asked for by the request",
        False,
        {"stream": True},
        None,
        {"stream": True, "stream_options": {"include_usage": True}},
    ),
    ("not asked for", False, {"stream": False}, None, {}),
    ("without usage, says the caller", True, {"stream_options": {"include_usage": False}}, None, {"stream": True}),
    ("without usage, says the profile", True, {}, OLD, {"stream": True}),
    (
        "with other options",
        True,
        {"stream_options": {"include_obfuscation": False}},
        None,
        {"stream": True, "stream_options": {"include_usage": True}},
    ),
]


@pytest.mark.parametrize(
    ("stream", "request_", "profile", "body"), [one[1:] for one in STREAMS], ids=[one[0] for one in STREAMS]
)
def test_a_stream(stream: bool, request_: Json, profile: Profile | None, body: Json) -> None:
    chat = to_chat_request({"input": "q", **request_}, profile=profile, stream=stream)
    assert {key: value for key, value in chat.body.items() if key != "messages"} == body
    assert faults(chat.body) == []


BAD: list[tuple[str, Json, str]] = [
    ("text", {"text": "json"}, "text"),
    ("a format", {"text": {"format": "json"}}, "text.format"),
    ("a schema", {"text": {"format": {"type": "json_schema", "name": "a"}}}, "text.format.schema"),
    ("reasoning", {"reasoning": "high"}, "reasoning"),
    ("include", {"include": "all"}, "include"),
    ("stream_options", {"stream_options": True}, "stream_options"),
    ("instructions", {"instructions": 5}, "instructions"),
]


@pytest.mark.parametrize(("request_", "param"), [one[1:] for one in BAD], ids=[one[0] for one in BAD])
def test_a_parameter_of_another_form_is_an_error(request_: Json, param: str) -> None:
    with pytest.raises(BadRequest) as raised:
        converted(user("q"), **request_)
    assert raised.value.param == param


def test_what_codex_sends_goes_through() -> None:
    chat = converted(
        {"role": "developer", "content": "P", "id": "msg_1", "type": "message"},
        user([{"type": "input_text", "text": "E"}]),
        user([{"type": "input_text", "text": "Q"}]),
        instructions="S",
        store=False,
        include=["reasoning.encrypted_content"],
        prompt_cache_key="k",
        client_metadata={"a": "b"},
        tools=[],
        tool_choice="auto",
        parallel_tool_calls=False,
        reasoning={"summary": "auto"},
        stream=True,
        strict=True,
    )
    assert set(chat.body) == {"model", "messages", "stream", "stream_options"}
    assert [message["content"] for message in chat.body["messages"]] == ["S", "P", "E", "Q"]
    assert {change.kind for change in chat.report} == {"ignored"}


def test_a_profile_is_known_by_its_name() -> None:
    assert to_chat_request({"input": "q"}, profile="default").body == {"messages": [user("q")]}


def test_other_profiles_are_values() -> None:
    profile = replace(Profile("mine"), max_tokens_field="max_tokens")
    assert carried(max_output_tokens=5, profile=profile) == {"max_tokens": 5}


def test_another_word_for_orphans_is_an_error() -> None:
    with pytest.raises(Exception, match="repair"):
        to_chat_request({"input": "q"}, orphans="ignore")  # type: ignore[arg-type]  # that is the case
