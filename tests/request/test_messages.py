"""Histories, and the chat messages they become: whole, with what must be reported."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from antiphon import Profile
from antiphon.request import BadRequest, to_chat_request

from .build import (
    PLAIN,
    SEEING,
    Case,
    Json,
    asked,
    assistant,
    call,
    case,
    converted,
    noted,
    output,
    result,
    said,
    thought,
    tool,
    typed,
    user,
)
from .validator import faults

IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}
CHAT_IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}
FILE = {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"}
CHAT_FILE = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"}}
SOUND = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}
HOLDING = Profile("holding", tool_parts=frozenset({"image_url"}))
NINE = Profile("nine", call_id_pattern="[a-zA-Z0-9]{9}")
INTERRUPTED = "[no output: the call was interrupted]"
Q = user("q")
UNREADABLE = '{"unreadable_arguments": %s}'


def system(text: str) -> Json:
    return {"role": "system", "content": text}


def developer(text: str) -> Json:
    return {"role": "developer", "content": text}


TURNS = [
    case("text alone", (Q, said("a"), user("b")), Q, assistant("a"), user("b")),
    case(
        "text and parallel calls are one message",
        (Q, said("both"), call("1"), call("2", "g"), output("1", "x"), output("2", "y")),
        Q,
        assistant("both", asked("1"), asked("2", "g")),
        result("1", "x"),
        result("2", "y"),
    ),
    case(
        "outputs are in the order of the calls",
        (Q, call("1"), call("2"), output("2", "y"), output("1", "x")),
        Q,
        assistant(None, asked("1"), asked("2")),
        result("1", "x"),
        result("2", "y"),
    ),
    case(
        "steps are messages of their own",
        (Q, call("1"), output("1"), call("2"), output("2"), said("done")),
        Q,
        assistant(None, asked("1")),
        result("1"),
        assistant(None, asked("2")),
        result("2"),
        assistant("done"),
    ),
    case(
        "a message between a call and its output",
        (Q, call("1"), said("wait"), output("1")),
        Q,
        assistant("wait", asked("1")),
        result("1"),
    ),
    case(
        "a message between the outputs",
        (Q, call("1"), call("2"), output("1"), said("one more"), output("2")),
        Q,
        assistant("one more", asked("1"), asked("2")),
        result("1"),
        result("2"),
        report=(("changed", "input[4]"),),
    ),
    case(
        "a call between the outputs begins a message",
        (Q, call("1"), call("2"), output("1"), call("3"), output("2"), output("3")),
        Q,
        assistant(None, asked("1"), asked("2")),
        result("1"),
        result("2"),
        assistant(None, asked("3")),
        result("3"),
        report=(("changed", "input[5]"),),
    ),
    case(
        "a user message between a call and its output",
        (Q, call("1"), user("hurry"), output("1")),
        Q,
        assistant(None, asked("1")),
        result("1"),
        user("hurry"),
        report=(("changed", "input[3]"),),
    ),
    case("two messages in a row are one", (Q, said("a"), said("b"), user("c")), Q, assistant("a\nb"), user("c")),
    case("parts of a message are one text", (Q, said("a", "b")), Q, assistant("a\nb")),
    case(
        "an easy assistant message",
        (Q, {"role": "assistant", "content": "plain"}, user("r")),
        Q,
        assistant("plain"),
        user("r"),
    ),
    case(
        "an assistant message with input parts",
        (Q, {"role": "assistant", "content": [{"type": "input_text", "text": "odd"}]}),
        Q,
        assistant("odd"),
    ),
    case("an empty assistant message", (Q, said(""), user("r")), Q, user("r"), report=(("ignored", "input[1]"),)),
    case(
        "a refusal is what was said",
        (Q, {**said(), "content": [{"type": "refusal", "refusal": "No."}]}),
        Q,
        assistant("No."),
        report=(("changed", "input[1].content[0]"),),
    ),
    case(
        "what the assistant spoke",
        (Q, {**said(), "content": [{"type": "output_audio", "data": "AA", "transcript": "la la"}, "plain"]}),
        Q,
        assistant("la la\nplain"),
        report=(("weakened", "input[1].content[0]"),),
    ),
    case(
        "a picture of the assistant",
        (Q, {**said(), "content": [{"type": "input_image", "image_url": "data:x"}]}),
        Q,
        assistant("[image_url left out]"),
        report=(("weakened", "input[1].content[0]"),),
    ),
    case(
        "content that is one part",
        (user({"type": "input_text", "text": "q"}), {"role": "assistant", "content": {"type": "text", "text": "a"}}),
        Q,
        assistant("a"),
    ),
    case(
        "a call inside the content",
        (Q, {"role": "assistant", "content": [{"type": "text", "text": "ok"}, call("1")]}, output("1")),
        Q,
        assistant("ok", asked("1")),
        result("1"),
    ),
    case(
        "chat messages among the items",
        (Q, assistant("look", asked("1", "f", '{"a":1}')), result("1", "seen")),
        Q,
        assistant("look", asked("1", "f", '{"a":1}')),
        result("1", "seen"),
    ),
    case(
        "a custom tool call",
        (Q, typed("1", "patch", 'say "hi"\n'), {**output("1", "ok"), "type": "custom_tool_call_output"}),
        Q,
        assistant(None, asked("1", "patch", '{"input": "say \\"hi\\"\\n"}')),
        result("1", "ok"),
        report=(),
    ),
    case(
        "a custom tool call without type",
        (Q, {"call_id": "1", "name": "patch", "input": "x"}, output("1")),
        Q,
        assistant(None, asked("1", "patch", '{"input": "x"}')),
        result("1"),
    ),
    case(
        "a call of a server's tool",
        (
            Q,
            {
                "type": "mcp_call",
                "id": "mcp_1",
                "server_label": "wiki",
                "name": "ask",
                "arguments": "{}",
                "output": "42",
            },
        ),
        Q,
        assistant(None, asked("mcp_1", "wiki__ask")),
        result("mcp_1", "42"),
        report=(("changed", "input[1]"),),
    ),
    case(
        "calls in chat form, of a custom tool too",
        (
            Q,
            assistant(None, asked("1"), {"id": "2", "type": "custom", "custom": {"name": "edit", "input": 'a "b"'}}),
            result("1"),
            result("2", "done"),
        ),
        Q,
        assistant(None, asked("1"), asked("2", "edit", '{"input": "a \\"b\\""}')),
        result("1"),
        result("2", "done"),
    ),
    case(
        "an action as openai's objects hold it",
        (
            Q,
            {
                "type": "local_shell_call",
                "id": "lsh_1",
                "call_id": "1",
                "action": {
                    "type": "exec",
                    "command": ["ls"],
                    "env": {},
                    "timeout_ms": None,
                    "user": None,
                    "working_directory": "/tmp",
                },
                "status": "completed",
            },
            output("1"),
        ),
        Q,
        assistant(None, asked("1", "local_shell", '{"command": ["ls"], "working_directory": "/tmp"}')),
        result("1"),
    ),
    case(
        "calls of a shell",
        (
            Q,
            {
                "type": "local_shell_call",
                "id": "lsh_1",
                "call_id": "1",
                "action": {"type": "exec", "command": ["ls"], "env": {}},
                "status": "completed",
            },
            {"type": "local_shell_call_output", "id": "1", "output": "a.txt"},
            {"type": "shell_call", "call_id": "2", "action": {"commands": ["pwd"]}, "status": "completed"},
            {"type": "shell_call_output", "call_id": "2", "output": [{"stdout": "/", "stderr": ""}]},
            {
                "type": "apply_patch_call",
                "call_id": "3",
                "operation": {"type": "delete_file", "path": "a"},
                "status": "completed",
            },
            {"type": "apply_patch_call_output", "call_id": "3", "status": "failed", "output": "no such file"},
        ),
        Q,
        assistant(None, asked("1", "local_shell", '{"command": ["ls"]}')),
        result("1", "a.txt"),
        assistant(None, asked("2", "shell", '{"commands": ["pwd"]}')),
        result("2", '[{"stdout": "/", "stderr": ""}]'),
        assistant(None, asked("3", "apply_patch", '{"type": "delete_file", "path": "a"}')),
        result("3", "failed\nno such file"),
    ),
]

ORPHANS = [
    case(
        "a call without output",
        (Q, call("1"), user("go on")),
        Q,
        assistant(None, asked("1")),
        result("1", INTERRUPTED),
        user("go on"),
        report=(("made", "input[1]"),),
    ),
    case(
        "one of two calls without output",
        (Q, call("1"), call("2"), output("2")),
        Q,
        assistant(None, asked("1"), asked("2")),
        result("1", INTERRUPTED),
        result("2"),
        report=(("made", "input[1]"),),
    ),
    case("an output without call", (Q, output("zz"), user("next")), Q, user("next"), report=(("dropped", "input[1]"),)),
    case(
        "an output without call_id",
        (Q, {"type": "function_call_output", "output": "1", "name": "f"}, user("next")),
        Q,
        user("next"),
        report=(("dropped", "input[1]"),),
    ),
    case(
        "an output before its call",
        (Q, output("1"), call("1")),
        Q,
        assistant(None, asked("1")),
        result("1", INTERRUPTED),
        report=(("dropped", "input[1]"), ("made", "input[2]")),
    ),
    case(
        "a second output",
        (Q, call("1"), output("1", "x"), output("1", "y")),
        Q,
        assistant(None, asked("1")),
        result("1", "x"),
        report=(("dropped", "input[3]"),),
    ),
    case(
        "an id that is used again in a later turn",
        (Q, call("f:0"), user("lost"), call("f:0"), output("f:0", "second")),
        Q,
        assistant(None, asked("f:0")),
        result("f:0", INTERRUPTED),
        user("lost"),
        assistant(None, asked("f:0")),
        result("f:0", "second"),
        report=(("made", "input[1]"),),
    ),
]

ARGUMENTS = [
    case("none", (Q, call("1", arguments=""), output("1")), Q, assistant(None, asked("1")), result("1")),
    case("white space", (Q, call("1", arguments=" \n"), output("1")), Q, assistant(None, asked("1")), result("1")),
    case("null", (Q, call("1", arguments="null"), output("1")), Q, assistant(None, asked("1")), result("1")),
    case(
        "as they are",
        (Q, call("1", arguments='{"b" : 1,"a":"\\u00e9"}'), output("1")),
        Q,
        assistant(None, asked("1", "f", '{"b" : 1,"a":"\\u00e9"}')),
        result("1"),
    ),
    case(
        "an object",
        (Q, call("1", arguments={"a": 1}), output("1")),
        Q,
        assistant(None, asked("1", "f", '{"a": 1}')),
        result("1"),
    ),
    *(
        case(
            f"not an object: {text}",
            (Q, call("1", arguments=text, status="incomplete"), output("1")),
            Q,
            assistant(None, asked("1", "f", UNREADABLE % quoted)),
            result("1"),
            report=(("changed", "input[1].arguments"),),
        )
        for text, quoted in (
            ('{"city": "Os', '"{\\"city\\": \\"Os"'),
            ("[1]", '"[1]"'),
            ('"text"', '"\\"text\\""'),
            ('{"a": NaN}', '"{\\"a\\": NaN}"'),
        )
    ),
    case(
        "parsed_arguments, ids and status are not read",
        (Q, call("1", arguments="{}", parsed_arguments={"x": 1}, id="fc_9", status="completed"), output("1", id="o")),
        Q,
        assistant(None, asked("1")),
        result("1"),
    ),
]

IDS = [
    case(
        "native ids stay",
        (Q, call("functions.Read:0", "Read"), output("functions.Read:0")),
        Q,
        assistant(None, asked("functions.Read:0", "Read")),
        result("functions.Read:0"),
    ),
    case(
        "an id that fits the pattern stays",
        (Q, call("abc123XYZ"), output("abc123XYZ")),
        Q,
        assistant(None, asked("abc123XYZ")),
        result("abc123XYZ"),
        profile=NINE,
    ),
]

CONTENT = [
    case("text parts are one string", (user([{"type": "input_text", "text": "a"}, "b"]),), user("a\nb")),
    case(
        "an image",
        (user([{"type": "input_text", "text": "see"}, IMAGE]),),
        user([{"type": "text", "text": "see"}, CHAT_IMAGE]),
    ),
    case(
        "an image in chat form",
        (user([{"type": "image_url", "image_url": {"url": "https://a.example/1.png"}}]),),
        user([{"type": "image_url", "image_url": {"url": "https://a.example/1.png"}}]),
    ),
    case(
        "an image in a detail that chat has not",
        (user([{**IMAGE, "detail": "original"}]),),
        user([{"type": "image_url", "image_url": {"url": IMAGE["image_url"], "detail": "high"}}]),
        report=(("weakened", "input[0].content[0].detail"),),
    ),
    case(
        "an image in a detail that nobody knows",
        (user([{**IMAGE, "detail": "vast"}]),),
        user([{"type": "image_url", "image_url": {"url": IMAGE["image_url"]}}]),
        report=(("ignored", "input[0].content[0].detail"),),
    ),
    case(
        "a text that is empty, beside an image",
        (user([{"type": "input_text", "text": ""}, IMAGE]),),
        user([CHAT_IMAGE]),
    ),
    case(
        "an image by id",
        (user([{"type": "input_image", "file_id": "file-1"}]),),
        user("[image left out]"),
        report=(("weakened", "input[0].content[0]"),),
    ),
    case(
        "a file by data and by id",
        (
            user(
                [
                    {"type": "input_file", "file_data": "data:application/pdf;base64,AA", "filename": "a.pdf"},
                    {"type": "input_file", "file_id": "file-1"},
                ]
            ),
        ),
        user(
            [
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"}},
                {"type": "file", "file": {"file_id": "file-1"}},
            ]
        ),
    ),
    case(
        "a file by URL",
        (user([{"type": "input_file", "file_url": "https://a.example/a.pdf"}]),),
        user("[file left out: https://a.example/a.pdf]"),
        report=(("weakened", "input[0].content[0]"),),
    ),
    case(
        "audio",
        (user([{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}]),),
        user([{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}]),
        profile=SEEING,
    ),
    case(
        "audio that nobody hears",
        (user([{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}]),),
        user("[audio left out]"),
        report=(("weakened", "input[0].content[0]"),),
    ),
    case(
        "images and files that nobody sees",
        (user([IMAGE, {"type": "input_file", "file_id": "file-1"}]),),
        user("[image left out]\n[file left out: without name]"),
        report=(("weakened", "input[0].content[0]"), ("weakened", "input[0].content[1]")),
        profile=PLAIN,
    ),
    case(
        "a part that chat has not",
        (user([{"type": "input_video", "video": "x"}]),),
        user("[input_video left out]"),
        report=(("weakened", "input[0].content[0]"),),
    ),
    case(
        "a cache breakpoint",
        (user([{"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}]),),
        user("a"),
        report=(("ignored", "input[0].content[0].prompt_cache_breakpoint"),),
    ),
]

OUTPUTS = [
    case(
        "text parts",
        (Q, call("1"), output("1", [{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b"}])),
        Q,
        assistant(None, asked("1")),
        result("1", "a\nb"),
    ),
    case(
        "one part",
        (Q, call("1"), output("1", {"type": "input_text", "text": "a"})),
        Q,
        assistant(None, asked("1")),
        result("1", "a"),
    ),
    case("nothing", (Q, call("1"), output("1", [])), Q, assistant(None, asked("1")), result("1", "")),
    case("null", (Q, call("1"), output("1", None)), Q, assistant(None, asked("1")), result("1", "")),
    case(
        "JSON of the tool's own",
        (Q, call("1"), output("1", {"ok": True}), call("2"), output("2", [1, "é"]), call("3"), output("3", 4.5)),
        Q,
        assistant(None, asked("1")),
        result("1", '{"ok": true}'),
        assistant(None, asked("2")),
        result("2", '[1, "é"]'),
        assistant(None, asked("3")),
        result("3", "4.5"),
    ),
    case(
        "images follow all outputs of the turn",
        (
            Q,
            call("1", "shot"),
            call("2", "shot"),
            output("1", [{"type": "input_text", "text": "screen"}, IMAGE]),
            output("2", [IMAGE]),
            said("fine"),
        ),
        Q,
        assistant(None, asked("1", "shot"), asked("2", "shot")),
        result("1", "screen"),
        result("2", "[see the next user message]"),
        user(
            [
                {"type": "text", "text": "[output of shot, call 1]"},
                CHAT_IMAGE,
                {"type": "text", "text": "[output of shot, call 2]"},
                CHAT_IMAGE,
            ]
        ),
        assistant("fine"),
        report=(("changed", "input[3]"), ("changed", "input[4]")),
    ),
    case(
        "images that a tool message can hold",
        (Q, call("1"), call("2"), output("1", [{"type": "input_text", "text": "screen"}, IMAGE]), output("2", [IMAGE])),
        Q,
        assistant(None, asked("1"), asked("2")),
        result("1", [{"type": "text", "text": "screen"}, CHAT_IMAGE]),
        result("2", [CHAT_IMAGE]),
        profile=HOLDING,
    ),
    case(
        "a file beside an image that a tool message can hold",
        (Q, call("1", "scan"), output("1", [IMAGE, "two", FILE])),
        Q,
        assistant(None, asked("1", "scan")),
        result("1", [CHAT_IMAGE, {"type": "text", "text": "two"}]),
        user([{"type": "text", "text": "[output of scan, call 1]"}, CHAT_FILE]),
        report=(("changed", "input[2]"),),
        profile=HOLDING,
    ),
    case(
        "JSON of the tool's own beside an image",
        (Q, call("1"), output("1", [{"a": 1}, IMAGE])),
        Q,
        assistant(None, asked("1")),
        result("1", [{"type": "text", "text": '{"a": 1}'}, CHAT_IMAGE]),
        profile=HOLDING,
    ),
    case(
        "an image that comes after another spoke",
        (Q, call("1", "shot"), call("2"), user("hurry"), output("2"), output("1", [IMAGE]), said("a")),
        Q,
        assistant(None, asked("1", "shot"), asked("2")),
        result("1", "[see the next user message]"),
        result("2"),
        user([{"type": "text", "text": "[output of shot, call 1]"}, CHAT_IMAGE]),
        user("hurry"),
        assistant("a"),
        report=(("changed", "input[4]"), ("changed", "input[5]"), ("changed", "input[5]")),
    ),
    case(
        "files and audio of a tool",
        (Q, call("1"), {**output("1", [FILE, SOUND]), "type": "custom_tool_call_output"}),
        Q,
        assistant(None, asked("1")),
        result("1", "[see the next user message]"),
        user([{"type": "text", "text": "[output of f, call 1]"}, CHAT_FILE, SOUND]),
        report=(("changed", "input[2]"),),
        profile=SEEING,
    ),
    case(
        "images that nobody sees",
        (Q, call("1"), output("1", [IMAGE])),
        Q,
        assistant("", asked("1")),
        result("1", "[image left out]"),
        report=(("weakened", "input[2].output[0]"),),
        profile=replace(PLAIN, null_content_with_calls=False),
    ),
]

SYSTEMS = [
    case(
        "instructions come first, developers stay",
        (developer("One word."), Q, developer("Now two."), user("r")),
        system("Base."),
        developer("One word."),
        Q,
        developer("Now two."),
        user("r"),
        request={"instructions": "Base."},
    ),
    case(
        "no developers",
        (Q, developer("Be brief."), system("Be kind.")),
        Q,
        system("Be brief."),
        system("Be kind."),
        report=(("changed", "input[1].role"),),
        profile=Profile("none", developer_role=False),
    ),
    case(
        "one system message, the first",
        (developer("A"), Q, call("1"), developer("B"), output("1"), system("C"), said("d"), user("r")),
        system("Base.\n\nA\n\nB\n\nC"),
        Q,
        assistant(None, asked("1")),
        result("1"),
        assistant("d"),
        user("r"),
        report=(
            ("changed", "input[3]"),
            ("changed", "input[5]"),
            ("changed", "input[0].role"),
            ("changed", "input[3].role"),
        ),
        profile=PLAIN,
        request={"instructions": "Base."},
    ),
    case(
        "parts of a system message",
        ({"role": "system", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]}, Q),
        system("a\nb"),
        Q,
    ),
    case(
        "instructions as messages",
        (Q,),
        system("a\nb"),
        Q,
        request={
            "instructions": [{"role": "developer", "content": "a"}, {"type": "message", "role": "user", "content": "b"}]
        },
    ),
]

LEFT_OUT = [
    *(
        case(f"{kind} is named", (Q, {"type": kind, "id": "x_1", **more}), Q, report=(("dropped", "input[1]"),))
        for kind, more in (
            ("item_reference", {}),
            ("web_search_call", {"status": "completed"}),
            ("file_search_call", {"queries": []}),
            ("code_interpreter_call", {"code": "1"}),
            ("image_generation_call", {"result": "AA"}),
            ("computer_call", {"call_id": "c"}),
            ("computer_call_output", {"call_id": "c", "output": {}}),
            ("mcp_list_tools", {"tools": []}),
            ("mcp_approval_request", {"name": "f"}),
            ("mcp_approval_response", {"approve": True}),
            ("compaction", {"encrypted_content": "C"}),
            ("compaction_trigger", {}),
            ("configuration_update", {}),
            ("program", {"code": "1"}),
            ("song", {}),
        )
    ),
    case("a reference without type", (Q, {"id": "msg_9"}), Q, report=(("dropped", "input[1]"),)),
    case(
        "reasoning at the end",
        (Q, call("1"), call("2"), output("1"), thought("a"), output("2")),
        Q,
        assistant(None, asked("1"), asked("2")),
        result("1"),
        result("2"),
        report=(("ignored", "input[4]"),),
        profile=Profile("d", reasoning_replay="reasoning_content", reasoning_replay_always=True),
    ),
    case(
        "reasoning that led to nothing",
        (Q, thought("a"), user("r")),
        Q,
        user("r"),
        report=(("ignored", "input[1]"),),
        profile=Profile("d", reasoning_replay="reasoning_content", reasoning_replay_always=True),
    ),
]

CASES = [*TURNS, *ORPHANS, *ARGUMENTS, *IDS, *CONTENT, *OUTPUTS, *SYSTEMS, *LEFT_OUT]


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.name)
def test_the_messages_are_these(one: Case) -> None:
    chat = converted(*one.items, profile=one.profile, **one.request)
    assert chat.body["messages"] == list(one.messages)
    assert noted(chat) == list(one.report)
    first = one.profile is not None and one.profile.single_leading_system
    held = one.profile.tool_parts if one.profile is not None else ()
    assert faults(chat.body, system_first=first, tool_parts=held) == []


def test_ids_that_do_not_fit_are_mapped_and_come_back() -> None:
    items = (Q, call("call_long-1"), call("call_long-2"), output("call_long-2", "b"), output("call_long-1", "a"))
    chat = converted(*items, user("r"), call("call_long-1"), output("call_long-1"), profile=NINE)
    assert faults(chat.body, call_id="[a-zA-Z0-9]{9}") == []
    first, second = (one["id"] for one in chat.body["messages"][1]["tool_calls"])
    assert [message["content"] for message in chat.body["messages"][2:4]] == ["a", "b"]
    assert chat.body["messages"][5]["tool_calls"][0]["id"] == first
    assert dict(chat.restore.call_ids) == {first: "call_long-1", second: "call_long-2"}
    assert [change.came for change in chat.report] == ["'call_long-1'", "'call_long-2'"]


def test_two_calls_of_one_id_in_a_message_are_kept_apart() -> None:
    chat = converted(Q, call("f:0"), call("f:0", "g"), output("f:0", "a"), output("f:0", "b"))
    assert faults(chat.body) == []
    ids = [one["id"] for one in chat.body["messages"][1]["tool_calls"]]
    assert ids[0] == "f:0"
    assert [message["content"] for message in chat.body["messages"][2:]] == ["a", "b"]
    assert chat.restore.call_ids == {ids[1]: "f:0"}


def test_a_pattern_that_nothing_fits_is_an_error() -> None:
    with pytest.raises(BadRequest, match="no id can be made"):
        converted(Q, call("1"), output("1"), profile=Profile("odd", call_id_pattern="[$]+"))


@pytest.mark.parametrize(
    ("items", "param"),
    [((Q, call("a"), user("go on")), "input[1]"), ((Q, output("zz")), "input[1].call_id")],
    ids=["a call without output", "an output without call"],
)
def test_orphans_can_be_an_error(items: tuple[Json, ...], param: str) -> None:
    with pytest.raises(BadRequest, match=r"'(a|zz)'") as raised:
        to_chat_request({"input": list(items)}, orphans="error")
    assert raised.value.param == param


BAD: list[tuple[str, Any, str]] = [
    ("no input", {}, "input"),
    ("an item without type", {"input": [{"type": ""}]}, "input[0].type"),
    ("an empty list", {"input": []}, "input"),
    ("nothing that can be sent", {"input": [{"type": "compaction", "encrypted_content": "C"}]}, "input"),
    ("a number", {"input": 5}, "input"),
    ("an object", {"input": {"role": "user"}}, "input"),
    ("a string among the items", {"input": ["hi"]}, "input[0]"),
    ("null among the items", {"input": [None]}, "input[0]"),
    ("an item that is nothing", {"input": [{"content": "hi"}]}, "input[0]"),
    ("a type that is no string", {"input": [{"type": 7}]}, "input[0].type"),
    ("an unknown role", {"input": [{"role": "critic", "content": "hi"}]}, "input[0].role"),
    ("a call without name", {"input": [{"type": "function_call", "call_id": "1"}]}, "input[0].name"),
    ("content that is a number", {"input": [{"role": "user", "content": 5}]}, "input[0].content"),
    ("a part that is null", {"input": [{"role": "user", "content": [None]}]}, "input[0].content[0]"),
    ("a part without type", {"input": [{"role": "user", "content": [{"a": 1}]}]}, "input[0].content[0].type"),
    (
        "strict that is a word",
        {"input": "q", "tools": [{"type": "function", "name": "f", "strict": "x"}]},
        "tools[0].strict",
    ),
    (
        "parameters that are a list",
        {"input": "q", "tools": [{"type": "function", "name": "f", "parameters": {"type": "array"}}]},
        "tools[0].parameters.type",
    ),
    ("a request that is a list", [], "request"),
    ("a request that is null", None, "request"),
]


@pytest.mark.parametrize(("request_", "param"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_what_is_malformed_names_its_place(request_: Any, param: str) -> None:
    with pytest.raises(BadRequest) as raised:
        to_chat_request(request_)
    assert raised.value.param == param


@pytest.mark.parametrize("one", [one for one in CASES if one.report], ids=lambda one: one.name)
def test_strict_refuses_what_is_lost_and_nothing_else(one: Case) -> None:
    lost = [path for kind, path in one.report if kind in ("dropped", "weakened")]
    if not lost:
        assert converted(*one.items, profile=one.profile, strict=True, **one.request).report
        return
    with pytest.raises(BadRequest) as raised:
        converted(*one.items, profile=one.profile, strict=True, **one.request)
    assert raised.value.param == lost[0]


def test_a_string_is_a_user_message() -> None:
    assert to_chat_request({"input": "hi", "model": "m"}).body == {"model": "m", "messages": [user("hi")]}


def test_the_report_says_nothing_of_the_conversation() -> None:
    secret = "the cat is called Ophelia"
    chat = converted(
        user(secret),
        call("1", arguments=secret),
        said(secret),
        output("9", secret),
        typed("2", "p", secret),
        tools=[tool()],
    )
    assert chat.report
    assert not any("Ophelia" in str(change) for change in chat.report)
