"""Probes: what is asked of every server first, and text."""

from __future__ import annotations

from .probe import Probe, Shape
from .wording import SEA, STEADY, said

_WHOLE = ("CHT001", "CHT002", "CHT006", "CHT011", "CHT020", "CHT040")

TEXTS: tuple[Probe, ...] = (
    Probe("text", "a sentence, nothing else asked", _WHOLE, {"input": SEA}, bare=True),
    Probe(
        "limit-completion",
        "max_completion_tokens",
        ("CHT073",),
        {"input": "Tell a long story, as long as you can."},
        {"max_completion_tokens": 5},
        needs="max_completion_tokens",
        chat_only=True,
        bare=True,
    ),
    Probe(
        "limit-max-tokens",
        "max_tokens",
        ("CHT073",),
        {"input": "Tell a long story, as long as you can."},
        {"max_tokens": 5},
        needs="max_tokens",
        chat_only=True,
        bare=True,
    ),
    Probe(
        "usage",
        "usage, asked for",
        ("CHT060", "CHT061", "CHT062", "CHT063"),
        {"input": SEA},
        {"stream_options": {"include_usage": True}},
        needs="stream_options",
        chat_only=True,
        bare=True,
    ),
    Probe(
        "system",
        "instructions as a system message",
        ("CHT001",),
        {"input": SEA},
        {"messages": [said("system", "Be brief."), said("user", SEA)]},
        needs="system messages",
        chat_only=True,
    ),
    Probe(
        "developer",
        "the role developer",
        ("CHT001",),
        {"input": SEA},
        {"messages": [said("developer", "Be brief."), said("user", SEA)]},
        needs="the role developer",
        chat_only=True,
    ),
    Probe(
        "two-systems",
        "a second system message",
        ("CHT001",),
        {"input": SEA},
        {
            "messages": [
                said("system", "Be brief."),
                said("user", "Hello"),
                said("assistant", "Hello!"),
                said("system", "Be kind."),
                said("user", SEA),
            ]
        },
        needs="several system messages",
        chat_only=True,
    ),
    Probe(
        "usage-unasked", "usage, not asked for", ("CHT064",), {"input": SEA}, {"stream_options": None}, chat_only=True
    ),
    Probe("instructions", "instructions", ("CHT001",), {"input": SEA, "instructions": "Be brief."}),
    Probe("same-text", "streamed as not streamed", ("CHT076",), {"input": SEA}, STEADY, Shape.TWIN, chat_only=True),
    Probe("seed", "a seed", ("CHT001",), {"input": SEA}, {"seed": 11}, needs="seed", chat_only=True),
    Probe(
        "stop-word",
        "a stop word",
        ("CHT072",),
        {"input": "Count from 1 to 9: 1, 2, 3, and so on."},
        {"stop": ["4", "sea"]},
        needs="stop",
        chat_only=True,
    ),
    Probe(
        "length",
        "cut by the token limit",
        ("CHT041", "CHT073"),
        {"input": "Tell a long story, as long as you can.", "max_output_tokens": 16},
    ),
    Probe("empty", "an empty answer", ("CHT040",), {"input": "Answer with an empty message: say nothing at all."}),
    Probe(
        "unicode", "characters that take several tokens", ("CHT004", "CHT020"), {"input": "Answer with one emoji: 👩‍🚀"}
    ),
    Probe(
        "unicode-cut",
        "a limit in the middle of a character",
        ("CHT004", "CHT040"),
        {"input": "Answer with one emoji: 👩‍🚀", "max_output_tokens": 2},
    ),
    Probe(
        "long-context",
        "a longer conversation",
        ("CHT001",),
        {
            "input": [said("user", "The sea is wide. " * 30), said("assistant", "It is."), said("user", SEA)],
        },
    ),
)
