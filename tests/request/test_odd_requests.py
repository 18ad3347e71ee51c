"""Requests in forms that clients do send, though no type allows them or many read past them: nothing of them is lost.

What is left out by openai's own words for it, iterables where others have lists, texts that are none, chat messages with
all that chat has, outputs that name their call by its item, JSON that looks like a content part.
"""

from __future__ import annotations

import json
from collections import ChainMap, OrderedDict, UserDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any

import msgspec
import pytest
from openai import NOT_GIVEN, omit

from antiphon import Profile, load_profile
from antiphon.models import ChatCompletionsModel
from antiphon.request import BadRequest, to_chat_request
from tests.models.scripted import Scripted, Turn, whole

from .backend import answered
from .build import (
    SEEING,
    Case,
    Json,
    asked,
    assistant,
    call,
    case,
    converted,
    free,
    noted,
    output,
    result,
    said,
    space,
    thought,
    tool,
    typed,
    user,
)
from .validator import faults

Q = user("q")
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AA"}
CHAT_IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
DEEP = Profile("deep", reasoning_replay="reasoning_content", reasoning_replay_always=True)
ROUTER = Profile("router", reasoning_replay="reasoning_details", reasoning_replay_always=True)
BLOCKS = Profile("blocks", reasoning_replay="thinking_blocks", reasoning_replay_always=True)
TYPED = Profile("typed", reasoning_replay="typed_content", reasoning_replay_always=True)
SIGNING = Profile("signing", thought_signatures=True)
PROFILES = [Profile("p"), DEEP, ROUTER, BLOCKS, TYPED, SIGNING, Profile("first", single_leading_system=True)]
BRINGS = {"type": "additional_tools", "role": "developer", "tools": [tool("late")]}  # has the history read twice

WHOLE: Json = {
    "model": "m",
    "instructions": "Base.",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "q"}, IMAGE]},
        {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
        call("1", "f", '{"a": 1}'),
        typed("2", "edit", "text"),
        output("1", [{"type": "input_text", "text": "x"}, IMAGE]),
        {"type": "custom_tool_call_output", "call_id": "2", "output": [{"type": "output_text", "text": "y"}]},
        {"type": "shell_call", "call_id": "3", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "3", "output": [{"stdout": "a.txt", "stderr": ""}]},
        {"type": "tool_search_output", "call_id": "4", "execution": "client", "tools": [tool("found")]},
        user("r"),
    ],
    "tools": [tool(), free("edit"), space("wiki", tool("ask"), free("note"))],
    "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
    "include": ["message.output_text.logprobs"],
}


def loose(value: Any, form: Callable[[Iterable[Any]], Iterable[Any]], level: int = 0) -> Any:
    """Return the request with its lists in that form: those that openai's param types have as `Iterable`, or could."""
    held: Any = value
    if isinstance(value, list):
        listed = [loose(one, form, level + 1) for one in held]
        return form(listed) if level < 4 else listed
    if isinstance(value, Mapping):
        return {name: one if name == "action" else loose(one, form, level + 1) for name, one in held.items()}
    return value


FORMS: dict[str, Callable[[Iterable[Any]], Iterable[Any]]] = {
    "generators": lambda listed: (one for one in listed),
    "tuples": tuple,
    "deques": deque,
    "views": lambda listed: dict(enumerate(listed)).values(),
}


@pytest.mark.parametrize("brings", [[], [BRINGS]], ids=["read once", "read twice"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("profile", PROFILES, ids=lambda one: one.name)
def test_any_iterable_is_a_list(profile: Profile, form: str, brings: list[Json]) -> None:
    request = {**WHOLE, "input": [*WHOLE["input"], *brings]}
    chat = to_chat_request(request, profile=profile)
    assert to_chat_request(loose(request, FORMS[form]), profile=profile) == chat
    assert "generator" not in json.dumps(chat.body)


class Held(Mapping[str, Any]):
    """A mapping that is no dict, and has attributes."""

    def __init__(self, held: Mapping[str, Any]) -> None:
        self._held = held

    def __getitem__(self, name: str) -> Any:
        return self._held[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)


class Named(dict[str, Any]):
    """A dict that has attributes."""


class Text(str):
    """A text that has attributes, as those that know that they are safe to show."""


class Count(int):
    """A number that has attributes."""


def held_as(value: Any, mapping: Callable[[Json], Any]) -> Any:
    """Return the request with all its objects as such mappings."""
    held: Any = value
    if isinstance(value, list):
        return [held_as(one, mapping) for one in held]
    return mapping({name: held_as(one, mapping) for name, one in held.items()}) if isinstance(value, dict) else value


MORE: Json = {
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object", "properties": {"a": {}}}}},
    "metadata": {"a": "b"},
    "extra_body": {"options": {"a": 1}},
}
OBJECTS = [call("5", "f", {"a": {"b": 1}}), output("5", {"a": {"b": [1]}}), {**BRINGS, "tools": [tool("late")]}]


@pytest.mark.parametrize("mapping", [OrderedDict, UserDict, ChainMap, Named, Held, MappingProxyType, SimpleNamespace])
@pytest.mark.parametrize("profile", PROFILES, ids=lambda one: one.name)
def test_any_mapping_is_an_object(profile: Profile, mapping: Callable[..., Any]) -> None:
    request = {**WHOLE, **MORE, "input": [*WHOLE["input"], *OBJECTS]}
    as_objects = (lambda held: SimpleNamespace(**held)) if mapping is SimpleNamespace else mapping
    chat = to_chat_request(held_as(request, as_objects), profile=profile)
    assert chat == to_chat_request(request, profile=profile)
    assert json.loads(json.dumps(chat.body)) == chat.body


def spoken(value: Any) -> Any:
    """Return the request with all its texts and numbers as values of subclasses."""
    held: Any = value
    if isinstance(value, list):
        return [spoken(one) for one in held]
    if isinstance(value, dict):
        return {name: spoken(one) for name, one in held.items()}
    return Text(value) if isinstance(value, str) else Count(value) if type(value) is int else value


@pytest.mark.parametrize("profile", PROFILES, ids=lambda one: one.name)
async def test_a_text_of_a_subclass_is_that_text(profile: Profile) -> None:
    request = {**WHOLE, **MORE, "input": [*WHOLE["input"], *OBJECTS], "max_output_tokens": 5}
    assert to_chat_request(spoken(request), profile=profile) == to_chat_request(request, profile=profile)
    backend = Scripted([Turn([], whole({"content": "a"}))])
    await ChatCompletionsModel("m", backend=backend, profile=profile).create(spoken(request))
    assert msgspec.json.decode(msgspec.json.encode(backend.bodies[0])) == to_chat_request(request, profile=profile).body


def without(value: Any, left_out: Any) -> Any:
    """Return the request where each object has further fields that are left out in openai's words."""
    held: Any = value
    if isinstance(value, list):
        return [without(one, left_out) for one in held]
    if not isinstance(value, dict):
        return value
    names = {"strict", "description", "namespace", "provider_data", "detail", "status", "text", "mode"} - held.keys()
    return {name: without(one, left_out) for name, one in held.items()} | dict.fromkeys(names, left_out)


async def test_a_model_takes_what_the_client_of_openai_takes() -> None:
    backend = Scripted([Turn([], whole({"content": "a"}))])
    left_out = dict.fromkeys(("temperature", "tool_choice", "text", "reasoning", "metadata", "stream"), omit)
    model = ChatCompletionsModel("m", backend=backend)
    response = await model.create({**left_out, "input": iter([Q]), "tools": (one for one in [tool()])})
    assert backend.bodies == [to_chat_request({"model": "m", "input": [Q], "tools": [tool()]}).body]
    assert (response.temperature, [one.name for one in response.tools]) == (1.0, ["f"])


def test_a_set_is_a_list() -> None:
    chat = converted(Q, call("1", "f", {"a": {5}}), output("1", {"b": deque([{"c": frozenset({"d"})}])}))
    told = [one.get("content") or one["tool_calls"][0]["function"]["arguments"] for one in chat.body["messages"][1:]]
    assert told == ['{"a": [5]}', '{"b": [{"c": ["d"]}]}']


@pytest.mark.parametrize("left_out", [omit, NOT_GIVEN], ids=["omit", "NOT_GIVEN"])
@pytest.mark.parametrize("profile", PROFILES, ids=lambda one: one.name)
def test_what_is_left_out_is_not_there(profile: Profile, left_out: Any) -> None:
    params = ("temperature", "top_p", "stream", "metadata", "reasoning", "max_output_tokens", "parallel_tool_calls")
    given = {**without(WHOLE, left_out), **dict.fromkeys(params, left_out)}
    assert to_chat_request(given, profile=profile) == to_chat_request(WHOLE, profile=profile)
    every = dict.fromkeys((*params, "tools", "tool_choice", "text", "instructions", "include", "model"), left_out)
    assert to_chat_request({**every, "input": "q"}).body == {"messages": [Q]}


# --- histories and the messages they become -------------------------------------------------------------------------

# ids that are made for calls without one
MADE = ["call_e4f60d0aa6d7f3d3b6a6494b", "call_e79e418e48623569d75e2a7b"]
CALLED = (Q, call("1"))
MESSAGES = (Q, assistant(None, asked("1")))
THINKING = {"type": "thinking", "thinking": "hm", "signature": "SIG"}
SPOKEN = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
DETAIL = {"type": "reasoning.text", "text": "hm", "signature": "SIG"}


def gave(value: Any, told: str) -> Case:
    """Return the case of an output that is JSON of the tool's own, and is told as such."""
    return case(f"JSON: {told}", (*CALLED, output("1", value)), *MESSAGES, result("1", told))


OWN_JSON = [
    gave({"type": "text", "value": "x"}, '{"type": "text", "value": "x"}'),
    gave([{"type": "text", "value": "x"}], '[{"type": "text", "value": "x"}]'),
    gave([{"type": "text", "text": {"a": 1}}], '[{"type": "text", "text": {"a": 1}}]'),
    gave({"type": "file", "path": "/a", "size": 3}, '{"type": "file", "path": "/a", "size": 3}'),
    gave([{"type": "file", "file": "a.py"}, {"type": "dir"}], '[{"type": "file", "file": "a.py"}, {"type": "dir"}]'),
    gave([{"type": "image_url", "alt": "a"}], '[{"type": "image_url", "alt": "a"}]'),
    case(
        "JSON that looks like a part, beside an image",
        (*CALLED, output("1", [{"type": "file", "name": "a"}, IMAGE])),
        *MESSAGES,
        result("1", '{"type": "file", "name": "a"}'),
        user([{"type": "text", "text": "[output of f, call 1]"}, CHAT_IMAGE]),
        report=(("changed", "input[2]"),),
    ),
]
PLACES = [
    case(
        "an output of a local shell by the id of the item",
        (
            Q,
            {"type": "local_shell_call", "id": "lsh_1", "call_id": "1", "action": {"type": "exec", "command": ["ls"]}},
            {"type": "local_shell_call_output", "id": "lsh_1", "output": "a.txt"},
        ),
        Q,
        assistant(None, asked("1", "local_shell", '{"command": ["ls"]}')),
        result("1", "a.txt"),
    ),
    case(
        "an action that is no object",
        (Q, {"type": "shell_call", "call_id": "1", "action": ["ls"]}, output("1")),
        Q,
        assistant(None, asked("1", "shell", '{"unreadable_arguments": "[\\"ls\\"]"}')),
        result("1"),
        report=(("changed", "input[1].arguments"),),
    ),
    case(
        "calls of a server's tools without ids",
        (
            Q,
            *(
                {"type": "mcp_call", "id": id, "server_label": "w", "name": "ask", "arguments": "{}", "output": told}
                for id, told in ((None, "a"), ("", "b"))
            ),
        ),
        Q,
        assistant(None, asked("mcp_1", "w__ask")),
        result("mcp_1", "a"),
        assistant(None, asked("mcp_2", "w__ask")),
        result("mcp_2", "b"),
        report=(("changed", "input[1]"), ("changed", "input[2]")),
    ),
    case(
        "calls and outputs without ids, in their order",
        (Q, call(""), call("", "g"), output("", "a"), output("", "b"), user("r"), call(""), user("s"), output("", "c")),
        Q,
        assistant(None, asked(MADE[0]), asked(MADE[1], "g")),
        result(MADE[0], "a"),
        result(MADE[1], "b"),
        user("r"),
        assistant(None, asked(MADE[1])),
        result(MADE[1], "c"),
        user("s"),
        report=(
            *(("changed", f"input[{n}].call_id") for n in (1, 2, 6)),
            ("changed", "input[8]"),
        ),
    ),
    case(
        "an output under the name that chat has for it",
        (*CALLED, {"type": "function_call_output", "call_id": "1", "content": "x"}),
        *MESSAGES,
        result("1", "x"),
    ),
    case(
        "calls whose text is under the other's name",
        (
            Q,
            {"type": "function_call", "call_id": "1", "name": "f", "input": {"a": 1}},
            {"type": "custom_tool_call", "call_id": "2", "name": "edit", "arguments": "text"},
            output("1"),
            output("2"),
        ),
        Q,
        assistant(None, asked("1", "f", '{"a": 1}'), asked("2", "edit", '{"input": "text"}')),
        result("1"),
        result("2"),
    ),
    case(
        "arguments and input as bytes",
        (Q, call("1", arguments=b'{"a":1}'), {**typed("2", "edit", ""), "input": b"text"}, output("1"), output("2")),
        Q,
        assistant(None, asked("1", "f", '{"a":1}'), asked("2", "edit", '{"input": "text"}')),
        result("1"),
        result("2"),
    ),
    case(
        "tools found in the form of chat",
        (
            Q,
            {"type": "tool_search_call", "call_id": "1", "execution": "client", "arguments": {"query": "q"}},
            {
                "type": "tool_search_output",
                "call_id": "1",
                "execution": "client",
                "tools": [{"type": "function", "function": {"name": "g", "description": "d"}}],
            },
        ),
        Q,
        assistant(None, asked("1", "tool_search", '{"query": "q"}')),
        result("1", '{"tools": [{"name": "g", "description": "d"}]}'),
    ),
    case(
        "half a character in arguments",
        (Q, call("1", arguments='{"a": "\ud83d"}'), output("1")),
        Q,
        assistant(None, asked("1", "f", '{"a": "\ufffd"}')),
        result("1"),
    ),
]
PARTS = [
    case(
        "a refusal that a user repeats",
        (user([{"type": "refusal", "refusal": "No."}]),),
        user("No."),
        report=(("changed", "input[0].content[0]"),),
    ),
    case(
        "a screenshot",
        (user([{"type": "computer_screenshot", "image_url": IMAGE["image_url"]}]),),
        user([CHAT_IMAGE]),
    ),
    case(
        "audio without data",
        (user([{"type": "input_audio"}]),),
        user("[audio left out]"),
        report=(("weakened", "input[0].content[0]"),),
        profile=SEEING,
    ),
    case(
        "a file in a detail",
        (user([{"type": "input_file", "file_id": "f", "detail": "high"}]),),
        user([{"type": "file", "file": {"file_id": "f"}}]),
        report=(("ignored", "input[0].content[0].detail"),),
    ),
    case(
        "a file and audio whose fields are no strings",
        (
            user(
                [
                    {"type": "input_file", "filename": ["a"], "file_data": {"a": 1}},
                    {"type": "input_audio", "input_audio": {"data": "AA", "format": 5.5}},
                ]
            ),
        ),
        user(
            [
                {"type": "text", "text": "[file left out: a]"},
                {"type": "input_audio", "input_audio": {"data": "AA", "format": "5.5"}},
            ]
        ),
        report=(("weakened", "input[0].content[0]"),),
        profile=SEEING,
    ),
    case("a text that is null", (user([{"type": "input_text", "text": None}, "q"]),), user("q")),
    case("a text that is a part itself", (user([{"type": "input_text", "text": {"text": "q"}}]),), Q),
]
CHAT: list[Case] = [
    *(
        case(
            f"reasoning in {name}",
            (Q, {**said("a"), name: "hm"}),
            Q,
            assistant("a", reasoning_content="hm"),
            profile=DEEP,
        )
        for name in ("reasoning_content", "reasoning", "reasoning_text")
    ),
    case(
        "reasoning that goes nowhere",
        (Q, {**said("a"), "reasoning": "hm"}),
        Q,
        assistant("a"),
        report=(("ignored", "input[1]"),),
    ),
    case(
        "reasoning twice, and another",
        (Q, {**said("a"), "reasoning_content": "hm", "reasoning": "hm", "reasoning_text": "well"}),
        Q,
        assistant("a", reasoning_content="hm\nwell"),
        profile=DEEP,
    ),
    case(
        "reasoning details",
        (Q, {**said("a"), "reasoning": "hm", "reasoning_details": [DETAIL]}),
        Q,
        assistant("a", reasoning_details=[DETAIL]),
        profile=ROUTER,
    ),
    case(
        "thinking blocks",
        (Q, {**said("a"), "reasoning_content": "hm", "thinking_blocks": [THINKING]}),
        Q,
        assistant("a", thinking_blocks=[THINKING]),
        profile=BLOCKS,
    ),
    case(
        "signed thinking in the content",
        (Q, {"role": "assistant", "content": [THINKING, {"type": "text", "text": "a"}]}),
        Q,
        assistant("a", thinking_blocks=[THINKING]),
        profile=BLOCKS,
    ),
    case(
        "signed thinking in the content, for another family",
        (Q, {"role": "assistant", "content": [THINKING, {"type": "text", "text": "a"}]}),
        Q,
        assistant("a"),
        report=(("ignored", "input[1]"),),
        profile=DEEP,
    ),
    case(
        "typed thinking in the content",
        (Q, {"role": "assistant", "content": [SPOKEN, {"type": "text", "text": "a"}]}),
        Q,
        assistant([SPOKEN, {"type": "text", "text": "a"}]),
        profile=TYPED,
    ),
    case(
        "reasoning text in the content",
        (Q, {**said("a"), "content": [{"type": "reasoning_text", "text": "hm"}, {"type": "output_text", "text": "a"}]}),
        Q,
        assistant("a", reasoning_content="hm"),
        profile=DEEP,
    ),
    case(
        "a signature beside a call",
        (Q, assistant("a", asked("1", extra_content={"google": {"thought_signature": "SIG"}})), output("1")),
        Q,
        assistant("a", asked("1", extra_content={"google": {"thought_signature": "SIG"}})),
        result("1"),
        profile=SIGNING,
    ),
    case(
        "a call of the old form",
        (Q, {"role": "assistant", "content": "a", "function_call": {"name": "f", "arguments": "{}"}}),
        Q,
        assistant("a"),
        report=(("dropped", "input[1].function_call"),),
    ),
    case(
        "what the assistant spoke, by its id",
        (Q, {"role": "assistant", "content": "a", "audio": {"id": "audio_1"}}),
        Q,
        assistant("a"),
        report=(("dropped", "input[1].audio"),),
    ),
]
CASES = [*OWN_JSON, *PLACES, *PARTS, *CHAT]


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.name)
def test_the_messages_are_these(one: Case) -> None:
    chat = converted(*one.items, profile=one.profile)
    assert chat.body["messages"] == list(one.messages)
    assert noted(chat) == list(one.report)
    if one.profile is not SIGNING:  # whose calls have more than chat's
        assert faults(chat.body) == []
    unusual = converted(*(SimpleNamespace(**item) for item in one.items), profile=one.profile)
    assert unusual == chat


@pytest.mark.parametrize("profile", [DEEP, TYPED, SIGNING, Profile("p")], ids=lambda one: one.name)
@pytest.mark.parametrize("name", ["openai", "deepseek", "mistral", "gemini"])
def test_what_a_backend_was_sent_says_the_same_as_items(name: str, profile: Profile) -> None:
    """A history of chat messages becomes those messages: nothing in them is lost, moved or said twice."""
    for one in (profile, load_profile(name)):
        items = [Q, thought("hm"), said("a", "b"), call("1", provider_data={"thought_signature": "SIG"}), call("2")]
        items = [*items, output("2", [{"type": "input_text", "text": "x"}, IMAGE]), output("1"), said("c"), user("r")]
        first = converted(*items, profile=one).body["messages"]
        assert converted(*first, profile=one).body["messages"] == first


def test_what_rides_on_a_call_goes_to_its_family_alone() -> None:
    piece = {"type": "reasoning.encrypted", "data": "SECRET"}
    for family, told in (("router", True), ("", True), ("somebody", False)):
        riding = call("1", provider_data={"family": family, "reasoning_details": [piece]})
        chat = converted(Q, riding, output("1"), profile=ROUTER)
        assert ("SECRET" in json.dumps(chat.body)) is told
        assert noted(chat) == ([] if told else [("ignored", "input[1]")])


DIGITS = 10**5000
UNWRITABLE: list[tuple[str, Json, str]] = [
    ("a text", {"input": [Q, user([{"type": "input_text", "text": DIGITS}])]}, "input[1]"),
    ("arguments", {"input": [Q, call("1", arguments={"n": DIGITS})]}, "input[1]"),
    ("an output", {"input": [Q, call("1"), output("1", [DIGITS])]}, "input[2]"),
    ("a parameter", {"input": "q", "max_tool_calls": DIGITS}, "request"),
    ("a description", {"input": "q", "tools": [tool(description=DIGITS)]}, "request"),
]


@pytest.mark.parametrize(("request_", "param"), [one[1:] for one in UNWRITABLE], ids=[one[0] for one in UNWRITABLE])
def test_a_number_that_cannot_be_written_names_its_place(request_: Json, param: str) -> None:
    with pytest.raises(BadRequest, match="cannot be written") as raised:
        to_chat_request(request_)
    assert raised.value.param == param


def test_a_thought_without_text_is_named_beside_one_that_has_some() -> None:
    chat = converted(Q, thought("hm"), thought(), said("a"), profile=DEEP)
    assert chat.body["messages"] == [Q, assistant("a", reasoning_content="hm")]
    assert noted(chat) == [("ignored", "input[2]")]


# --- what is no request, and what says two things at once -----------------------------------------------------------

SCHEMA = {"type": "object"}
BAD: list[tuple[str, Json, str]] = [
    *(
        (f"a text that is {name}", {"input": [user([part])]}, "input[0].content[0].text")
        for name, part in (
            ("an object", {"type": "input_text", "text": {"value": "hi"}}),
            ("under another name", {"type": "input_text", "content": "hi"}),
            ("a bool", {"type": "text", "text": True}),
            ("bytes", {"type": "text", "text": b"hi"}),
        )
    ),
    ("a format without type", {"input": "q", "text": {"format": {"name": "n", "schema": SCHEMA}}}, "text.format.type"),
    ("an effort that is a number", {"input": "q", "reasoning": {"effort": 5}}, "reasoning.effort"),
    ("instructions that are nothing", {"input": "q", "instructions": [{"text": "hi"}]}, "instructions[0]"),
    (
        "a grammar that is not there",
        {"input": "q", "tools": [free("edit", format={"type": "grammar", "syntax": "lark"})]},
        "tools[0].format.definition",
    ),
]


@pytest.mark.parametrize(("request_", "param"), [one[1:] for one in BAD], ids=[one[0] for one in BAD])
def test_what_is_malformed_names_its_place(request_: Json, param: str) -> None:
    with pytest.raises(BadRequest) as raised:
        to_chat_request(request_)
    assert raised.value.param == param


LOST: list[tuple[str, Json, tuple[str, str]]] = [
    ("an item in the instructions", {"instructions": [call("1")]}, ("dropped", "instructions[0]")),
    ("a parameter of text", {"text": {"tone": "warm"}}, ("dropped", "text.tone")),
    (
        "a second form of the answer",
        {
            "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
            "response_format": {"type": "json_object"},
        },
        ("dropped", "response_format"),
    ),
    ("a second verbosity", {"text": {"verbosity": "low"}, "verbosity": "high"}, ("dropped", "verbosity")),
    (
        "a format of a custom tool that nobody knows",
        {"tools": [free("edit", format={"type": "yaml"})]},
        ("weakened", "tools[0].format"),
    ),
]


@pytest.mark.parametrize(("more", "change"), [one[1:] for one in LOST], ids=[one[0] for one in LOST])
def test_what_is_lost_is_named_and_strict_refuses_it(more: Json, change: tuple[str, str]) -> None:
    assert change in noted(converted(Q, **more))
    with pytest.raises(BadRequest) as raised:
        converted(Q, strict=True, **more)
    assert raised.value.param == change[1]


def test_the_own_parameter_counts_before_that_of_chat() -> None:
    form = {"type": "json_schema", "name": "n", "schema": SCHEMA}
    chat = converted(Q, text={"format": form, "verbosity": "low"}, response_format={"type": "text"}, verbosity="high")
    assert chat.body["response_format"] == {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
    assert chat.body["verbosity"] == "low"


def test_what_stands_beside_a_nested_function_counts_too() -> None:
    chat = converted(Q, tools=[{"type": "function", "function": {"name": "f"}, "description": "d", "strict": True}])
    function: Json = {
        "name": "f",
        "description": "d",
        "parameters": {"type": "object", "properties": {}},
        "strict": True,
    }
    assert chat.body["tools"] == [{"type": "function", "function": function}]


# --- choices and calls of tools -------------------------------------------------------------------------------------

ASKS = [space("wiki", tool("ask"), tool("find")), tool("ask")]


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        ({"type": "function", "name": "ask"}, "ask"),
        ({"type": "function", "name": "ask", "namespace": "wiki"}, "wiki__ask"),
        ({"type": "function", "name": "wiki__ask"}, "wiki__ask"),
        ({"type": "function", "name": "find"}, "wiki__find"),
    ],
)
def test_a_choice_means_the_tool_that_is_declared_so(choice: Json, name: str) -> None:
    for tools in (ASKS, ASKS[::-1]):
        chat = converted(Q, tools=tools, tool_choice=choice)
        assert chat.body["tool_choice"] == {"type": "function", "function": {"name": name}}
        allowed = converted(Q, tools=tools, tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [choice]})
        assert [one["function"]["name"] for one in allowed.body["tools"]] == [name]


def test_an_allowed_namespace_that_nobody_offers_is_named() -> None:
    allowed = [{"type": "namespace", "name": "none"}, {"type": "namespace", "name": "wiki"}]
    chat = converted(Q, tools=ASKS, tool_choice={"type": "allowed_tools", "mode": "auto", "tools": allowed})
    assert [one["function"]["name"] for one in chat.body["tools"]] == ["wiki__ask", "wiki__find"]
    assert ("dropped", "tool_choice.tools[0]") in noted(chat)
    nameless = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "namespace"}]}
    with pytest.raises(BadRequest) as raised:
        converted(Q, tools=ASKS, tool_choice=nameless)
    assert raised.value.param == "tool_choice.tools[0].name"


@pytest.mark.parametrize("kind", ["tool_search", "local_shell", "shell", "apply_patch"])
def test_a_call_that_did_not_fit_its_tool_is_of_that_tool_again(kind: str) -> None:
    tools = [{"type": kind, "execution": "client"}]
    wrong = assistant(None, asked("1", kind, '["no object"]'))
    items = answered(converted(Q, tools=tools), wrong, streamed=True)
    assert [(item["type"], item["name"]) for item in items] == [("function_call", kind)]
    chat = converted(Q, *items, output("1"), tools=tools)
    assert [one["function"]["name"] for one in chat.body["messages"][1]["tool_calls"]] == [kind]
    assert chat.restore.tools.keys() == {kind}
