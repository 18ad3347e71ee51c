"""Probes: how a server refuses, and what it does with several clients, in time, and when one leaves."""

from __future__ import annotations

from .probe import Probe, Shape
from .wording import SEA

REFUSED: tuple[Probe, ...] = (
    Probe(
        "bad-model",
        "a model that does not exist",
        ("CHT050", "CHT051"),
        {"input": SEA, "model": "no-such-model-as-this"},
        refusal="model",
    ),
    Probe(
        "bad-request",
        "messages that are none",
        ("CHT050", "CHT051"),
        {"input": SEA},
        {"messages": "none"},
        refusal="request",
        native={"input": 5},
    ),
    Probe(
        "bad-format",
        "a schema that is none",
        ("CHT050", "CHT051"),
        {"input": SEA},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nonsense"}}}},
        refusal="request",
        chat_only=True,
    ),
    Probe("overlong", "a prompt that is too long", ("CHT050", "CHT052"), {"input": "word"}, refusal="length"),
)

TOGETHER: tuple[Probe, ...] = (
    Probe(
        "silence",
        "a longer answer: no silence in it",
        ("CHT078", "CHT003"),
        {"input": "Tell a long story, as long as you can.", "max_output_tokens": 400},
        over_a_second=True,
    ),
    Probe("two-at-once", "two streams at once", ("CHT077",), {"input": SEA}, shape=Shape.BESIDE),
    Probe(
        "leave",
        "clients that leave in the middle",
        ("WIR004",),
        {"input": "Tell a long story, as long as you can.", "max_output_tokens": 2000},
        shape=Shape.LEAVE,
    ),
)
