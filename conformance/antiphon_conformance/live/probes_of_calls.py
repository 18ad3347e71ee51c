"""Probes: tool calls."""

from __future__ import annotations

from .probe import Probe, Shape
from .wording import ADD, CLOCK, OSLO, SEA, STEADY, TOOLS, WEATHER, history

_CALLS = ("CHT030", "CHT032", "CHT033", "CHT034", "CHT035", "CHT042")

CALLS: tuple[Probe, ...] = (
    Probe("call", "one tool call", _CALLS, TOOLS, needs="tools"),
    Probe(
        "call-without-arguments",
        "a tool without arguments",
        ("CHT035", "CHT037"),
        {"input": "What time is it? Use the tool.", "tools": [CLOCK], "tool_choice": "required"},
        needs="tools",
    ),
    Probe(
        "calls-parallel",
        "two calls at once",
        ("CHT031", "CHT034", "CHT036"),
        {
            "input": "What is the weather in Oslo and in Rome, in c? Call the tool twice, at once.",
            "tools": [WEATHER, ADD],
            "parallel_tool_calls": True,
        },
        {"seed": 13},
        needs="tools",
    ),
    Probe(
        "calls-one-by-one",
        "parallel_tool_calls: false",
        ("CHT001",),
        {**TOOLS, "parallel_tool_calls": False},
        needs="parallel_tool_calls",
    ),
    Probe(
        "text-then-call",
        "text, then a call",
        ("CHT036", "CHT042"),
        {"input": "Do both: first say what you will do, then get the weather in Oslo in c.", "tools": [WEATHER]},
        needs="tools",
    ),
    Probe(
        "choice-none",
        "tool_choice none",
        ("CHT074", "CHT026"),
        {**TOOLS, "tool_choice": "none"},
        needs="tool_choice none",
    ),
    Probe(
        "choice-required",
        "tool_choice required",
        ("CHT074",),
        {**TOOLS, "input": SEA, "tool_choice": "required"},
        needs="tool_choice required",
    ),
    Probe(
        "choice-named",
        "tool_choice names a function",
        ("CHT074", "CHT042"),
        {**TOOLS, "tool_choice": {"type": "function", "name": "add"}},
        {"seed": 7},
        needs="tool_choice with a name",
    ),
    Probe(
        "tool-loop",
        "a whole tool loop",
        (*_CALLS, "CHT001"),
        {"input": OSLO, "tools": [WEATHER]},
        shape=Shape.LOOP,
        needs="tools",
    ),
    Probe(
        "history",
        "a history with a call",
        ("CHT001",),
        {"input": SEA, "tools": [ADD]},
        {"messages": history("")},
        needs="a history with calls",
        chat_only=True,
    ),
    Probe(
        "history-null",
        "a history whose call has content null",
        ("CHT001",),
        {"input": SEA, "tools": [ADD]},
        {"messages": history(None)},
        needs="content null beside calls",
        chat_only=True,
    ),
    Probe(
        "strict-tool",
        "a strict schema of arguments",
        ("CHT037",),
        {"input": OSLO, "tools": [{**WEATHER, "strict": True}]},
        needs="strict tools",
    ),
    Probe(
        "same-call",
        "a call, streamed as not streamed",
        ("CHT076",),
        TOOLS,
        STEADY,
        Shape.TWIN,
        needs="tools",
        chat_only=True,
    ),
    Probe(
        "call-cut",
        "a call, cut by the token limit",
        ("CHT040", "CHT042"),
        {**TOOLS, "max_output_tokens": 6},
        needs="tools",
    ),
    Probe(
        "stop-in-call",
        "a stop word within arguments",
        ("CHT037",),
        TOOLS,
        {"stop": ["unit"], "seed": 7},
        needs="tools",
        chat_only=True,
    ),
)
