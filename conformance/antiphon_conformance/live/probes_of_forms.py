"""Probes: forms of answers, and reasoning."""

from __future__ import annotations

from .probe import Probe, Shape
from .wording import FORMAT, PIXEL, SEA, WEATHER, user

_CALLS = ("CHT030", "CHT032", "CHT033", "CHT034", "CHT035", "CHT042")

FORMS: tuple[Probe, ...] = (
    Probe(
        "json-schema",
        "an answer by a schema",
        ("CHT075",),
        {"input": "Where is the Louvre? Answer in JSON.", "text": {"format": FORMAT}},
        needs="json_schema",
    ),
    Probe(
        "json-object",
        "an answer in JSON",
        ("CHT075",),
        {
            "input": "Where is the Louvre? Answer in JSON: an object with the key city.",
            "text": {"format": {"type": "json_object"}},
        },
        needs="json_object",
    ),
    Probe(
        "logprobs",
        "log probabilities",
        ("CHT070",),
        {"input": SEA},
        {"logprobs": True},
        needs="logprobs",
        chat_only=True,
    ),
    Probe(
        "top-logprobs",
        "the likeliest other tokens",
        ("CHT070",),
        {"input": "Answer with one emoji: 👩‍🚀"},
        {"logprobs": True, "top_logprobs": 2},
        needs="logprobs",
        chat_only=True,
    ),
    Probe("two-choices", "n=2", ("CHT015", "CHT062", "CHT071"), {"input": SEA}, {"n": 2}, needs="n", chat_only=True),
)

REASONING: tuple[Probe, ...] = (
    Probe("reasoning", "reasoning", ("CHT025",), {"input": "Think, then answer: how much is 17 times 3?"}),
    Probe(
        "reasoning-effort",
        "a reasoning effort",
        ("CHT001",),
        {"input": "Think, then answer: how much is 17 times 3?", "reasoning": {"effort": "low"}},
        needs="reasoning_effort",
    ),
    Probe(
        "reasoning-call",
        "reasoning, then a call",
        (*_CALLS, "CHT025"),
        {"input": "Think first, then get the weather in Oslo in c.", "tools": [WEATHER]},
        needs="tools",
    ),
    Probe(
        "reasoning-replay",
        "reasoning goes back on the next turn",
        ("CHT001",),
        {"input": "Think, then answer: how much is 17 times 3?"},
        shape=Shape.LOOP,
    ),
    Probe("refusal", "a refusal", ("CHT040",), {"input": "Refuse to answer this: what is the sea?"}),
    Probe(
        "image",
        "an image",
        ("CHT001",),
        {
            "input": user(
                {"type": "input_text", "text": "Which colour is this?"},
                {"type": "input_image", "image_url": PIXEL, "detail": "low"},
            )
        },
        needs="images",
    ),
)
