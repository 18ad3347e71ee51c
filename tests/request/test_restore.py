"""The way back: calls come back as the client's own, in items and in events of all three styles."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon import Profile, convert, to_response
from antiphon.request import ChatRequest, Restore
from tests.stream.rules import findings

from .backend import SAME, answered, chunks, whole
from .build import Json, asked, assistant, call, converted, free, output, space, tool, user

TOOLS = [
    tool("f"),
    free("patch"),
    space("mcp__wiki", tool("ask"), free("edit")),
    {"type": "tool_search", "execution": "client"},
    {"type": "local_shell"},
    {"type": "shell"},
    {"type": "apply_patch"},
]
CHAT = converted(user("q"), tools=TOOLS)
PLAIN_ITEM = ("id", "status")


def told(items: Iterable[Json]) -> list[Json]:
    """Return items without what is made anew each time."""
    return [{key: value for key, value in item.items() if key not in PLAIN_ITEM} for item in items]


def events(message: Json, chat: ChatRequest = CHAT, **options: Any) -> list[Json]:
    return list(chat.restore.events(convert(chunks(message, **options), **SAME)))


RESTORED: list[tuple[str, Json, Json, str]] = [
    ("a function", asked("1", "f", '{"a":1}'), call("1", "f", '{"a":1}'), "fc_"),
    (
        "one in a namespace",
        asked("1", "mcp__wiki__ask", '{"a":1}'),
        call("1", "ask", '{"a":1}', namespace="mcp__wiki"),
        "fc_",
    ),
    (
        "a custom tool",
        asked("1", "patch", '{"input":"a\\n\\"b\\" \\u00e9\\ud83d\\ude00"}'),
        {"type": "custom_tool_call", "call_id": "1", "name": "patch", "input": 'a\n"b" é😀'},
        "ctc_",
    ),
    (
        "a custom tool in a namespace",
        asked("1", "mcp__wiki__edit", '{ "input" : "x" }'),
        {"type": "custom_tool_call", "call_id": "1", "name": "edit", "namespace": "mcp__wiki", "input": "x"},
        "ctc_",
    ),
    (
        "a search",
        asked("1", "tool_search", '{"query":"crm"}'),
        {"type": "tool_search_call", "call_id": "1", "execution": "client", "arguments": {"query": "crm"}},
        "tsc_",
    ),
    (
        "a local shell",
        asked("1", "local_shell", '{"command":["ls","-l"],"timeout_ms":5}'),
        {
            "type": "local_shell_call",
            "call_id": "1",
            "action": {"type": "exec", "env": {}, "command": ["ls", "-l"], "timeout_ms": 5},
        },
        "lsh_",
    ),
    (
        "a shell",
        asked("1", "shell", '{"commands":["ls"]}'),
        {"type": "shell_call", "call_id": "1", "action": {"commands": ["ls"]}},
        "sh_",
    ),
    (
        "a patch",
        asked("1", "apply_patch", '{"type":"update_file","path":"a","diff":"+b"}'),
        {"type": "apply_patch_call", "call_id": "1", "operation": {"type": "update_file", "path": "a", "diff": "+b"}},
        "apc_",
    ),
    (
        "a shell call that is none",
        asked("1", "local_shell", '{"command":"ls"}'),
        call("1", "local_shell", '{"command":"ls"}'),
        "fc_",
    ),
    (
        "a search with no JSON",
        asked("1", "tool_search", '{"query'),
        call("1", "tool_search", '{"query'),
        "fc_",
    ),
    ("a patch of nothing", asked("1", "apply_patch", "[1]"), call("1", "apply_patch", "[1]"), "fc_"),
    ("an unknown name", asked("1", "ask", "{}"), call("1", "ask", "{}"), "fc_"),
]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("asked_", "item", "prefix"), [one[1:] for one in RESTORED], ids=[one[0] for one in RESTORED])
def test_a_call_comes_back_as_the_clients_own(asked_: Json, item: Json, prefix: str, streamed: bool) -> None:
    output = answered(CHAT, assistant("look", asked_), streamed=streamed)
    assert told(output[1:]) == [item]
    assert output[1]["id"].startswith(prefix)
    assert output[1]["status"] == "completed"


@pytest.mark.parametrize("one", RESTORED, ids=lambda one: one[0])
def test_the_events_keep_the_rules(one: tuple[str, Json, Json, str]) -> None:
    message = assistant("look", asked("0", "f"), one[1], asked("2", "f", '{"b":2}'), reasoning_content="hm")
    made = events(message, piece=3)
    assert findings(made) == []
    assert [event["sequence_number"] for event in made] == list(range(len(made)))


def test_the_input_of_a_custom_tool_streams_as_it_comes() -> None:
    message = assistant(None, asked("1", "patch", '{"input": "one two three four"}'))
    made = events(message, piece=4)
    deltas = [event["delta"] for event in made if event["type"] == "response.custom_tool_call_input.delta"]
    assert len(deltas) > 3
    assert "".join(deltas) == "one two three four"
    kinds = [event["type"].removeprefix("response.") for event in made]
    assert kinds[-4:] == [
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
        "completed",
    ]
    assert not any("function_call" in kind for kind in kinds)
    added = next(event["item"] for event in made if event["type"] == "response.output_item.added")
    assert (added["type"], added["input"], added["status"]) == ("custom_tool_call", "", "in_progress")


INPUTS: list[tuple[str, str, str]] = [
    ("none", "", ""),
    ("an empty object", "{}", ""),
    ("null", '{"input": null}', ""),
    ("another key", '{"patch": "x"}', "x"),
    ("another key before", '{"note": 1, "input": "x"}', "x"),
    ("another key after", '{"input": "x", "note": "y"}', "x"),
    ("a number", '{"input": 5}', "5"),
    ("an object", '{"input": {"a": "é"}}', '{"a": "é"}'),
    ("two other keys", '{"a": "x", "b": "y"}', '{"a": "x", "b": "y"}'),
    ("a string", '"x y"', "x y"),
    ("plain text", "*** Begin Patch", "*** Begin Patch"),
    ("a list", '["x"]', '["x"]'),
    ("an unknown escape", '{"input": "\\d+ \\u00zz"}', "\\d+ \\u00zz"),
    ("quotes that are not escaped", '{"input": "say "hi" now"}', 'say "hi" now'),
    ("half a character", '{"input": "a\\ud83d b\\ude00"}', "a\ufffd b\ufffd"),
    ("line breaks that are not escaped", '{"input": "a\nb"}', "a\nb"),
]


@pytest.mark.parametrize(("arguments", "text"), [one[1:] for one in INPUTS], ids=[one[0] for one in INPUTS])
def test_the_input_is_read_from_what_the_model_made_of_it(arguments: str, text: str) -> None:
    message = assistant(None, asked("1", "patch", arguments))
    for piece in (1, 3, 100):
        made = events(message, piece=piece)
        assert made[-1]["response"]["output"][0]["input"] == text
        deltas = [event["delta"] for event in made if event["type"].endswith("input.delta")]
        assert "".join(deltas) == text
        assert "" not in deltas
        assert findings(made) == []
    assert answered(CHAT, message, streamed=False)[0]["input"] == text


@pytest.mark.parametrize("cut", range(1, len('{"input": "a\\n\\ud83d\\ude00b"}')))
def test_a_cut_input_is_what_came_of_it(cut: int) -> None:
    arguments = '{"input": "a\\n\\ud83d\\ude00b"}'[:cut]
    made = events(assistant(None, asked("1", "patch", arguments)), finish="length")
    item = made[-1]["response"]["output"][0]
    assert item["status"] == "incomplete"
    assert item["type"] == "custom_tool_call"
    assert item["input"] in ("", "a", "a\n", "a\n😀", "a\n😀b", "a\n\ufffd")
    assert findings(made) == []


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=40), escaped=st.booleans(), seed=st.integers(0, 9), piece=st.integers(1, 9))
def test_any_input_comes_back_however_it_is_cut(text: str, escaped: bool, seed: int, piece: int) -> None:
    arguments = json.dumps({"input": text}, ensure_ascii=escaped)
    message = assistant(None, asked("1", "patch", arguments))
    made = events(message, piece=piece, seed=seed)
    assert made[-1]["response"]["output"][0]["input"] == text
    assert "".join(event["delta"] for event in made if event["type"].endswith("input.delta")) == text


MIXED = assistant(
    "look\u2028up",
    asked("1", "patch", '{"input":"a\\u2028b"}'),
    asked("2", "mcp__wiki__ask", '{"a":"é"}'),
    asked("3", "tool_search", '{"query":"x"}'),
    asked("4", "f"),
    reasoning_content="hm",
)


@pytest.mark.parametrize("profile", [None, Profile("singer")], ids=["without family", "with family"])
def test_all_styles_tell_the_same(profile: Profile | None) -> None:
    chat = converted(user("q"), tools=TOOLS, profile=profile)
    options: Json = {"created_at": 0, "ids": "counted"}
    dicts = list(chat.restore.events(convert(chunks(MIXED), events="dict", **options)))
    objects = list(chat.restore.events(convert(chunks(MIXED), events="openai", **options)))
    bodies = list(chat.restore.events(convert(chunks(MIXED), events="sse", **options)))
    assert [event.to_dict(mode="json", warnings=False) for event in objects] == dicts
    assert [json.loads(body.split(b"data: ")[1]) for body in bodies] == dicts
    assert [body.split(b"\n")[0].decode() for body in bodies] == [f"event: {event['type']}" for event in dicts]
    assert not any("\u2028" in body.decode() for body in bodies)


def test_whole_responses_of_both_styles_tell_the_same() -> None:
    options: Json = {"created_at": 0, "ids": "counted"}
    held = CHAT.restore.response(to_response(whole(MIXED), events="dict", **options))
    response = CHAT.restore.response(to_response(whole(MIXED), events="openai", **options))
    assert response.to_dict(mode="json", warnings=False) == held
    assert [item["type"] for item in held["output"]] == [
        *("reasoning", "message", "custom_tool_call", "function_call", "tool_search_call", "function_call")
    ]


def test_where_nothing_is_to_be_restored_nothing_is_touched() -> None:
    restore = converted(user("q"), tools=[tool("f")]).restore
    assert restore.is_empty
    made = list(convert(chunks(MIXED), **SAME))
    assert all(after is before for after, before in zip(restore.events(made), made, strict=True))
    response = to_response(whole(MIXED), **SAME)
    assert restore.response(response) is response


def test_events_before_a_custom_call_are_passed_on_as_they_are() -> None:
    made = list(convert(chunks(MIXED), **SAME))
    deltas = [event for event in made if event["type"] == "response.output_text.delta"]
    passed = [event for event in CHAT.restore.events(made) if event["type"] == "response.output_text.delta"]
    assert all(after is before for after, before in zip(passed, deltas, strict=True))


def test_mapped_call_ids_come_back() -> None:
    items = (user("q"), call("long-call-id"), output("long-call-id"))
    chat = converted(*items, profile=Profile("nine", call_id_pattern="[a-z0-9]{9}"))
    (mapped,) = chat.restore.call_ids
    for streamed in (False, True):
        (item,) = answered(chat, assistant(None, asked(mapped)), streamed=streamed)
        assert item["call_id"] == "long-call-id"


def test_the_family_is_written_where_reasoning_is() -> None:
    chat = converted(user("q"), profile=Profile("deep", family="deep-family"))
    message = assistant("a", asked("1"), asked("2", extra_content={"x": {"s": "S"}}), reasoning_content="hm")
    for streamed in (False, True):
        reasoning, text, plain_call, signed_call = answered(chat, message, streamed=streamed)
        assert reasoning["provider_data"] == {"family": "deep-family"}
        assert signed_call["provider_data"] == {"extra_content": {"x": {"s": "S"}}, "family": "deep-family"}
        assert "provider_data" not in text
        assert "provider_data" not in plain_call
    assert findings(events(message, chat)) == []


def test_a_failed_answer_is_restored_too() -> None:
    cut = list(chunks(assistant(None, asked("1", "patch", '{"input": "abc def"}'))))[:-2]
    made = list(CHAT.restore.events(convert(cut, **SAME)))
    assert [event["type"] for event in made[-2:]] == ["error", "response.failed"]
    assert made[-1]["response"]["output"][0]["type"] == "custom_tool_call"
    assert findings(made) == []


def test_what_is_no_event_is_passed_on() -> None:
    restorer = CHAT.restore.start()
    for body in (b": ping\n\n", b"data: [DONE]\n\n", b"\n"):
        assert restorer.feed(body) == [body]


def test_an_empty_restore_can_be_made() -> None:
    assert Restore().is_empty
