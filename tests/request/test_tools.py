"""Tools, their names on the chat side, and the choice among them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from antiphon import Profile
from antiphon.request import BadRequest, to_chat_request

from .build import Json, asked, call, converted, free, noted, output, space, tool, typed, user
from .validator import NAME, faults

EMPTY = {"type": "object", "properties": {}}
TEXT = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "The whole input, as it is: no JSON inside."}},
    "required": ["input"],
    "additionalProperties": False,
}
SEARCH = {"type": "tool_search", "execution": "client", "description": "find tools", "parameters": EMPTY}


def function(name: str = "f", **more: Any) -> Json:
    return {"type": "function", "function": {"name": name, **more}}


def names(chat: Any) -> list[str]:
    return [one["function"]["name"] for one in chat.body.get("tools", ())]


FORMS: list[tuple[str, Json, Json, list[tuple[str, str]]]] = [
    (
        "as it is",
        tool(description="d", strict=True),
        function(description="d", parameters=EMPTY, strict=True),
        [],
    ),
    ("without parameters", {"type": "function", "name": "f"}, function(parameters=EMPTY), []),
    ("with null for all else", tool(description=None, strict=None), function(parameters=EMPTY), []),
    ("with an empty schema", tool() | {"parameters": {}}, function(parameters=EMPTY), []),
    (
        "a schema without type",
        tool() | {"parameters": {"properties": {"a": {}}}},
        function(parameters={"type": "object", "properties": {"a": {}}}),
        [],
    ),
    ("in chat form", function(description="d", parameters=EMPTY), function(description="d", parameters=EMPTY), []),
    (
        "with settings of the Responses API",
        tool(defer_loading=True, output_schema={"type": "string"}),
        function(parameters=EMPTY),
        [("ignored", "tools[0].defer_loading"), ("ignored", "tools[0].output_schema")],
    ),
    ("free text", free("f"), function(description="", parameters=TEXT), [("changed", "tools[0]")]),
    (
        "free text with a grammar",
        free("f", description="Edit.", format={"type": "grammar", "syntax": "lark", "definition": "start: A"}),
        function(description="Edit.\n\n`input` is text that this lark grammar allows:\nstart: A", parameters=TEXT),
        [("changed", "tools[0]")],
    ),
    (
        "free text of any form",
        free("f", description="Edit.", format={"type": "text"}),
        function(description="Edit.", parameters=TEXT),
        [("changed", "tools[0]")],
    ),
    (
        "a search that is told of",
        {"type": "tool_search", "description": "find tools", "parameters": EMPTY},
        function("tool_search", description="find tools", parameters=EMPTY),
        [("changed", "tools[0]")],
    ),
    (
        "a search by the client",
        SEARCH,
        function("tool_search", description="find tools", parameters=EMPTY),
        [("changed", "tools[0]")],
    ),
]


@pytest.mark.parametrize(("given", "made", "report"), [one[1:] for one in FORMS], ids=[one[0] for one in FORMS])
def test_a_tool_becomes_a_function(given: Json, made: Json, report: list[tuple[str, str]]) -> None:
    chat = converted(user("q"), tools=[given])
    assert chat.body["tools"] == [made]
    assert noted(chat) == report
    assert faults(chat.body) == []


@pytest.mark.parametrize("kind", ["local_shell", "shell", "apply_patch"])
def test_what_the_client_runs_is_offered(kind: str) -> None:
    chat = converted(user("q"), tools=[{"type": kind}])
    assert names(chat) == [kind]
    assert faults(chat.body) == []
    assert chat.restore.tools[kind].kind == kind


@pytest.mark.parametrize(
    "hosted",
    [
        {"type": "web_search"},
        {"type": "web_search_preview"},
        {"type": "file_search", "vector_store_ids": ["v"]},
        {"type": "image_generation"},
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"type": "computer_use_preview"},
        {"type": "mcp", "server_label": "wiki", "server_url": "https://a.example"},
        {"type": "tool_search", "description": None, "parameters": None},
        {"type": "tool_search", "description": "d", "execution": "server"},
        {"type": "shell", "environment": {"type": "container_auto"}},
        {"type": "song"},
    ],
    ids=lambda one: one["type"],
)
def test_hosted_tools_are_left_out_and_named(hosted: Json) -> None:
    chat = converted(user("q"), tools=[hosted, tool()], tool_choice="auto")
    assert names(chat) == ["f"]
    assert noted(chat) == [("dropped", "tools[0]")]
    assert hosted["type"] in chat.report[0].came
    with pytest.raises(BadRequest) as raised:
        converted(user("q"), tools=[hosted, tool()], strict=True)
    assert raised.value.param == "tools[0]"
    with pytest.raises(BadRequest, match=hosted["type"]) as raised:
        converted(user("q"), tools=[hosted, tool()], tool_choice={"type": hosted["type"]})
    assert raised.value.param == "tool_choice"


@pytest.mark.parametrize("profile", [None, Profile("loose", strict_tools=False)], ids=["known", "unknown"])
@pytest.mark.parametrize("strict", [True, False, None])
def test_strict_where_it_is_known(profile: Profile | None, strict: bool | None) -> None:
    chat = converted(user("q"), tools=[tool(strict=strict)], profile=profile)
    sent = {} if strict is None or profile is not None else {"strict": strict}
    assert chat.body["tools"] == [function(parameters=EMPTY, **sent)]
    assert noted(chat) == ([("weakened", "tools[0].strict")] if strict and profile else [])


# --- names ---------------------------------------------------------------------------------------------------------


def test_namespaces_are_flattened() -> None:
    mcp = space("mcp__wiki", tool("ask"), tool("read", description="Read."), description="A wiki.")
    chat = converted(user("q"), tools=[mcp, space("sh__", free("exec"))])
    assert names(chat) == ["mcp__wiki__ask", "mcp__wiki__read", "sh__exec"]
    assert chat.body["tools"][0]["function"]["description"] == "Tools of mcp__wiki: A wiki."
    assert chat.body["tools"][1]["function"]["description"] == "Read."
    known = {name: (one.kind, one.namespace, one.name) for name, one in chat.restore.tools.items()}
    assert known == {
        "mcp__wiki__ask": ("function", "mcp__wiki", "ask"),
        "mcp__wiki__read": ("function", "mcp__wiki", "read"),
        "sh__exec": ("custom", "sh__", "exec"),
    }


COLLIDING: list[tuple[str, list[Json]]] = [
    ("a plain name like a flattened one", [space("a", tool("b")), tool("a__b")]),
    ("two namespaces", [space("a", tool("b__c")), space("a__b", tool("c"))]),
    ("names that are too long", [space("n" * 60, tool("first")), space("n" * 60, tool("second"))]),
    ("names that are cleaned alike", [tool("a.b"), tool("a b"), tool("a_b")]),
    ("a custom tool and one in a namespace", [free("x__y"), space("x", tool("y"))]),
    ("a function like one of the API's own tools", [tool("tool_search"), SEARCH]),
    ("a very long plain name", [tool("t" * 80), tool("t" * 81)]),
    ("other letters", [tool("größe"), tool("grösse"), space("naïve", tool("f"))]),
]


@pytest.mark.parametrize("tools", [one[1] for one in COLLIDING], ids=[one[0] for one in COLLIDING])
def test_names_are_legal_apart_and_reversible(tools: list[Json]) -> None:
    chat = converted(user("q"), tools=tools)
    assert faults(chat.body) == []
    assert all(NAME.match(name) for name in names(chat))
    meant = [("", one) for one in tools if one["type"] != "namespace"]
    meant += [(one["name"], inner) for one in tools if one["type"] == "namespace" for inner in one["tools"]]
    wanted = {(namespace, one.get("name", one["type"])) for namespace, one in meant}
    back = {(one.namespace or "", one.name) for one in chat.restore.tools.values()}
    assert back | {("", name) for name in names(chat) if name not in chat.restore.tools} == wanted
    assert names(converted(user("again"), tools=tools)) == names(chat)


def test_a_plain_legal_name_stays_whatever_else_wants_it() -> None:
    chat = converted(user("q"), tools=[space("a", tool("b")), tool("a__b")])
    assert names(chat)[1] == "a__b"
    assert re.fullmatch("a__b_[0-9a-f]{8}", names(chat)[0])


def test_the_history_uses_the_same_names() -> None:
    tools = [space("a", tool("b")), tool("a__b"), free("exec")]
    items = (
        *(user("q"), call("1", "b", namespace="a"), call("2", "a__b"), typed("3", "exec", "ls"), call("4", "old.name")),
        *(output(one) for one in "1234"),
    )
    chat = converted(*items, tools=tools)
    assert faults(chat.body) == []
    used = [one["function"]["name"] for one in chat.body["messages"][1]["tool_calls"]]
    assert used[:3] == [names(chat)[0], "a__b", "exec"]
    assert used[3].startswith("old_name_")
    assert chat.restore.tools[used[3]].name == "old.name"


def test_a_call_whose_namespace_is_its_own_name_is_of_the_plain_tool() -> None:
    items = (user("q"), call("1", "weather", namespace="weather"), output("1"))
    chat = converted(*items, tools=[tool("weather")])
    assert chat.body["messages"][1]["tool_calls"] == [asked("1", "weather")]


# --- tools that items bring ----------------------------------------------------------------------------------------


def test_additional_tools_are_offered() -> None:
    brought = {
        "type": "additional_tools",
        "role": "developer",
        "tools": [space("functions", free("exec"), tool("wait")), {"type": "web_search"}],
    }
    chat = converted(brought, user("q"), tools=None)
    assert names(chat) == ["functions__exec", "functions__wait"]
    assert ("changed", "input[0]") in noted(chat)
    assert ("dropped", "input[0].tools[1]") in noted(chat)
    assert chat.body["messages"] == [user("q")]


def test_found_tools_are_offered_and_told() -> None:
    found = {
        "type": "tool_search_output",
        "call_id": "1",
        "execution": "client",
        "tools": [space("crm", tool("list", description="List all."))],
    }
    searched = {"type": "tool_search_call", "call_id": "1", "execution": "client", "arguments": {"query": "crm"}}
    chat = converted(user("q"), searched, found, tools=[SEARCH])
    assert names(chat) == ["tool_search", "crm__list"]
    assert chat.body["messages"][1]["tool_calls"] == [asked("1", "tool_search", '{"query": "crm"}')]
    assert chat.body["messages"][2]["content"] == '{"tools": [{"name": "crm__list", "description": "List all."}]}'
    assert faults(chat.body) == []


def test_what_a_server_found_is_offered() -> None:
    tools = [tool("weather", defer_loading=True), {"type": "tool_search"}]
    searched = {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {"paths": ["weather"]}}
    found = {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": [tools[0]]}
    chat = converted(user("q"), searched, found, tools=tools)
    assert names(chat) == ["weather"]
    assert chat.body["messages"] == [user("q")]
    assert {path for _, path in noted(chat)} >= {"input[1]", "input[2]", "tools[1]"}


def test_of_two_declarations_the_later_counts() -> None:
    later = {"type": "additional_tools", "role": "developer", "tools": [tool(description="new"), tool("g")]}
    chat = converted(later, user("q"), tools=[tool(description="old"), tool("g")])
    assert [one["function"].get("description") for one in chat.body["tools"]] == ["new", None]
    assert noted(chat) == [("changed", "input[0]"), ("changed", "tools[0]")]


# --- the choice ----------------------------------------------------------------------------------------------------

TWO = [tool("f"), tool("g"), free("edit"), space("a", tool("h"))]
NAMED_F = {"type": "function", "function": {"name": "f"}}
WITHOUT_NAMED = Profile("w", tool_choice_modes=frozenset({"auto", "none", "required"}))
AUTO_ALONE = Profile("a", tool_choice_modes=frozenset({"auto"}))
NO_CHOICE = Profile("n", tool_choice_modes=frozenset())
ALL = ["f", "g", "edit", "a__h"]
ABSENT: Any = "absent"

CHOICES: list[tuple[str, Any, Profile | None, Any, list[str], list[str]]] = [
    ("nothing", None, None, ABSENT, ALL, []),
    ("auto", "auto", None, "auto", ALL, []),
    ("none", "none", None, "none", ALL, []),
    ("required", "required", None, "required", ALL, []),
    ("a function", {"type": "function", "name": "f"}, None, NAMED_F, ALL, []),
    ("a function in chat form", NAMED_F, None, NAMED_F, ALL, []),
    (
        "a custom tool",
        {"type": "custom", "name": "edit"},
        None,
        {"type": "function", "function": {"name": "edit"}},
        ALL,
        [],
    ),
    (
        "one in a namespace",
        {"type": "function", "name": "h", "namespace": "a"},
        None,
        {"type": "function", "function": {"name": "a__h"}},
        ALL,
        [],
    ),
    (
        "one by its chat name",
        {"type": "function", "name": "a__h"},
        None,
        {"type": "function", "function": {"name": "a__h"}},
        ALL,
        [],
    ),
    (
        "allowed tools",
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "g"}]},
        None,
        "auto",
        ["g"],
        ["changed"],
    ),
    (
        "allowed tools, one required",
        {
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "custom", "name": "edit"}, {"type": "function", "name": "f"}, {"type": "web_search"}],
        },
        None,
        "required",
        ["f", "edit"],
        ["dropped", "changed"],
    ),
    (
        "allowed tools in chat form",
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NAMED_F]}},
        None,
        "auto",
        ["f"],
        ["changed"],
    ),
    (
        "an allowed namespace",
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "namespace", "name": "a"}]},
        None,
        "auto",
        ["a__h"],
        ["changed"],
    ),
    (
        "a function, by offering it alone",
        {"type": "function", "name": "g"},
        WITHOUT_NAMED,
        "required",
        ["g"],
        ["changed"],
    ),
    ("required, as auto", "required", AUTO_ALONE, "auto", ALL, ["weakened"]),
    ("a function, as auto", {"type": "function", "name": "g"}, AUTO_ALONE, "auto", ["g"], ["changed", "weakened"]),
    ("none, by offering none", "none", AUTO_ALONE, ABSENT, [], ["changed"]),
    ("auto, by saying nothing", "auto", NO_CHOICE, ABSENT, ALL, []),
]


@pytest.mark.parametrize(
    ("choice", "profile", "sent", "offered", "kinds"), [one[1:] for one in CHOICES], ids=[one[0] for one in CHOICES]
)
def test_the_choice_is_carried(
    choice: Any, profile: Profile | None, sent: Any, offered: list[str], kinds: list[str]
) -> None:
    chat = converted(user("q"), tools=TWO, tool_choice=choice, profile=profile)
    assert chat.body.get("tool_choice", ABSENT) == sent
    assert names(chat) == offered
    assert [change.kind for change in chat.report if change.path.startswith("tool_choice")] == kinds
    assert faults(chat.body) == []


BAD_CHOICES: list[tuple[str, Any, str]] = [
    ("an unknown word", "maybe", "tool_choice"),
    ("a number", 3, "tool_choice"),
    ("a name that is not offered", {"type": "function", "name": "zz"}, "tool_choice"),
    ("a custom tool that is not offered", {"type": "custom", "name": "zz"}, "tool_choice"),
    ("a hosted tool", {"type": "web_search_preview"}, "tool_choice"),
    ("a server of tools", {"type": "mcp", "server_label": "wiki"}, "tool_choice"),
    ("an own tool that is not offered", {"type": "shell"}, "tool_choice"),
    ("no type", {"name": "f"}, "tool_choice.type"),
    ("a mode that is none", {"type": "allowed_tools", "mode": "none", "tools": []}, "tool_choice.mode"),
    ("no allowed tools", {"type": "allowed_tools", "mode": "auto", "tools": []}, "tool_choice.tools"),
]


@pytest.mark.parametrize(("choice", "param"), [one[1:] for one in BAD_CHOICES], ids=[one[0] for one in BAD_CHOICES])
def test_a_choice_of_what_is_not_there_is_an_error(choice: Any, param: str) -> None:
    with pytest.raises(BadRequest) as raised:
        converted(user("q"), tools=TWO, tool_choice=choice)
    assert raised.value.param == param


@pytest.mark.parametrize("tools", [None, [], [{"type": "web_search"}]], ids=["null", "empty", "hosted alone"])
@pytest.mark.parametrize("choice", [None, "auto", "none", "required"])
def test_no_tools_are_no_tools_and_no_choice(tools: Any, choice: Any) -> None:
    chat = converted(user("q"), tools=tools, tool_choice=choice, parallel_tool_calls=False)
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(chat.body)
    assert (("dropped", "tool_choice") in noted(chat)) == (choice == "required")


def test_parallel_calls_are_said_with_tools_where_they_are_known() -> None:
    assert converted(user("q"), tools=[tool()], parallel_tool_calls=False).body["parallel_tool_calls"] is False
    assert converted(user("q"), tools=[tool()], parallel_tool_calls=True).body["parallel_tool_calls"] is True
    profile = replace(Profile("p"), parallel_tool_calls=False)
    chat = converted(user("q"), tools=[tool()], parallel_tool_calls=False, profile=profile)
    assert "parallel_tool_calls" not in chat.body
    assert noted(chat) == [("dropped", "parallel_tool_calls")]


BAD_TOOLS: list[tuple[str, Any, str]] = [
    ("tools that are no list", "f", "tools"),
    ("a tool that is no object", ["f"], "tools[0]"),
    ("a tool without type", [{"name": "f"}], "tools[0].type"),
    ("a function without name", [tool(), {"type": "function"}], "tools[1].name"),
    ("a custom tool without name", [{"type": "custom"}], "tools[0].name"),
    ("a namespace without name", [{"type": "namespace", "tools": []}], "tools[0].name"),
    ("parameters that are no schema", [tool() | {"parameters": "x"}], "tools[0].parameters"),
    ("inside a namespace", [space("a", {"type": "function"})], "tools[0].tools[0].name"),
]


@pytest.mark.parametrize(("tools", "param"), [one[1:] for one in BAD_TOOLS], ids=[one[0] for one in BAD_TOOLS])
def test_a_tool_that_is_none_names_its_place(tools: Any, param: str) -> None:
    with pytest.raises(BadRequest) as raised:
        to_chat_request({"input": "q", "tools": tools})
    assert raised.value.param == param
