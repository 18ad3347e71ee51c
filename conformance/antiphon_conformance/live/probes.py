"""The probes: each one small request, what it needs, and what is looked at. A table, in the order in which they run.

A request is written once, as Responses create parameters, and becomes what the API under test takes. What only the
chat API can say stands in `chat`: keys of its body, null for one that is left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any, Literal

from antiphon.errors import BadInput

LIMIT = 160  # output tokens of an ordinary probe
OVERLONG = 40_000  # words of the prompt that is too long


class Shape(Enum):
    """What is asked beside the one request."""

    ONE = "one request"
    TWIN = "the same without a stream"
    LOOP = "a second turn, with what the first one gave"
    BESIDE = "another at the same time"
    LEAVE = "the client leaves in the middle; then another"


REQUESTS: dict[Shape, int] = {Shape.ONE: 1, Shape.TWIN: 2, Shape.LOOP: 2, Shape.BESIDE: 2, Shape.LEAVE: 4}


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe. `needs` names a feature that a server may do without: it refuses the request, and is not judged."""

    id: str
    title: str
    rules: tuple[str, ...]
    ask: Mapping[str, Any] = field(default_factory=dict[str, Any])
    chat: Mapping[str, Any] = field(default_factory=dict[str, Any])
    shape: Shape = Shape.ONE
    needs: str = ""
    refusal: Literal["", "model", "request", "length"] = ""
    native: Mapping[str, Any] = field(default_factory=dict[str, Any])  # as `chat`, for a Responses server
    chat_only: bool = False
    over_a_second: bool = False  # it is sent just before a whole second, so that the answer goes on in the next
    bare: bool = False  # nothing is asked for beside what is written: no limit, no usage

    @property
    def requests(self) -> int:
        """How many requests it sends at most."""
        return REQUESTS[self.shape]

    @property
    def tokens(self) -> int:
        """About how many tokens it costs at most."""
        prompt = len(repr(self.ask)) + len(repr(self.chat))
        limit: int = self.ask.get("max_output_tokens", LIMIT)
        return self.requests * (prompt // 4 + limit) + (OVERLONG if self.refusal == "length" else 0)


def _tool(name: str, about: str, properties: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "function", "name": name, "description": about, "parameters": parameters, **more}


_CITY = {"city": {"type": "string", "maxLength": 12}, "unit": {"type": "string", "enum": ["c", "f"]}}
_NUMBERS = {one: {"type": "integer", "minimum": 0, "maximum": 99} for one in "ab"}
WEATHER = _tool("get_weather", "The weather in a city.", _CITY)
ADD = _tool("add", "Add two numbers.", _NUMBERS)
CLOCK = _tool("get_time", "The time of day.", {})
_PLACE = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
    "required": ["city"],
    "additionalProperties": False,
}
_FORMAT = {"type": "json_schema", "name": "place", "schema": _PLACE, "strict": True}
# One grey pixel.
_PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)
_SEA = "Say in one short sentence what the sea is."
_OSLO = "What is the weather in Oslo, in degrees c? Use the tool."
_STEADY = {"seed": 7, "temperature": 0}


def _user(*parts: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(parts)}]


def _said(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def _history(content: str | None) -> list[dict[str, Any]]:
    """Return chat messages in which a call was made and answered; `content` is beside the call."""
    call = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
    asked = _said("user", "Add one and two.")
    return [asked, _said("assistant", content, tool_calls=[call]), _said("tool", "3", tool_call_id="call_1")]


_WHOLE = ("CHT001", "CHT002", "CHT006", "CHT011", "CHT020", "CHT040")
_CALLS = ("CHT030", "CHT032", "CHT033", "CHT034", "CHT035", "CHT042")
_TOOLS = {"input": _OSLO, "tools": [WEATHER, ADD]}

PROBES: tuple[Probe, ...] = (
    Probe("text", "a sentence, nothing else asked", _WHOLE, {"input": _SEA}, bare=True),
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
        {"input": _SEA},
        {"stream_options": {"include_usage": True}},
        needs="stream_options",
        chat_only=True,
        bare=True,
    ),
    Probe(
        "system",
        "instructions as a system message",
        ("CHT001",),
        {"input": _SEA},
        {"messages": [_said("system", "Be brief."), _said("user", _SEA)]},
        needs="system messages",
        chat_only=True,
    ),
    Probe(
        "developer",
        "the role developer",
        ("CHT001",),
        {"input": _SEA},
        {"messages": [_said("developer", "Be brief."), _said("user", _SEA)]},
        needs="the role developer",
        chat_only=True,
    ),
    Probe(
        "two-systems",
        "a second system message",
        ("CHT001",),
        {"input": _SEA},
        {
            "messages": [
                _said("system", "Be brief."),
                _said("user", "Hello"),
                _said("assistant", "Hello!"),
                _said("system", "Be kind."),
                _said("user", _SEA),
            ]
        },
        needs="several system messages",
        chat_only=True,
    ),
    # --- text
    Probe(
        "usage-unasked", "usage, not asked for", ("CHT064",), {"input": _SEA}, {"stream_options": None}, chat_only=True
    ),
    Probe("instructions", "instructions", ("CHT001",), {"input": _SEA, "instructions": "Be brief."}),
    Probe("same-text", "streamed as not streamed", ("CHT076",), {"input": _SEA}, _STEADY, Shape.TWIN, chat_only=True),
    Probe("seed", "a seed", ("CHT001",), {"input": _SEA}, {"seed": 11}, needs="seed", chat_only=True),
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
            "input": [_said("user", "The sea is wide. " * 30), _said("assistant", "It is."), _said("user", _SEA)],
        },
    ),
    # --- calls
    Probe("call", "one tool call", _CALLS, _TOOLS, needs="tools"),
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
        {**_TOOLS, "parallel_tool_calls": False},
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
        {**_TOOLS, "tool_choice": "none"},
        needs="tool_choice none",
    ),
    Probe(
        "choice-required",
        "tool_choice required",
        ("CHT074",),
        {**_TOOLS, "input": _SEA, "tool_choice": "required"},
        needs="tool_choice required",
    ),
    Probe(
        "choice-named",
        "tool_choice names a function",
        ("CHT074", "CHT042"),
        {**_TOOLS, "tool_choice": {"type": "function", "name": "add"}},
        {"seed": 7},
        needs="tool_choice with a name",
    ),
    Probe(
        "tool-loop",
        "a whole tool loop",
        (*_CALLS, "CHT001"),
        {"input": _OSLO, "tools": [WEATHER]},
        shape=Shape.LOOP,
        needs="tools",
    ),
    Probe(
        "history",
        "a history with a call",
        ("CHT001",),
        {"input": _SEA, "tools": [ADD]},
        {"messages": _history("")},
        needs="a history with calls",
        chat_only=True,
    ),
    Probe(
        "history-null",
        "a history whose call has content null",
        ("CHT001",),
        {"input": _SEA, "tools": [ADD]},
        {"messages": _history(None)},
        needs="content null beside calls",
        chat_only=True,
    ),
    Probe(
        "strict-tool",
        "a strict schema of arguments",
        ("CHT037",),
        {"input": _OSLO, "tools": [{**WEATHER, "strict": True}]},
        needs="strict tools",
    ),
    Probe(
        "same-call",
        "a call, streamed as not streamed",
        ("CHT076",),
        _TOOLS,
        _STEADY,
        Shape.TWIN,
        needs="tools",
        chat_only=True,
    ),
    Probe(
        "call-cut",
        "a call, cut by the token limit",
        ("CHT040", "CHT042"),
        {**_TOOLS, "max_output_tokens": 6},
        needs="tools",
    ),
    Probe(
        "stop-in-call",
        "a stop word within arguments",
        ("CHT037",),
        _TOOLS,
        {"stop": ["unit"], "seed": 7},
        needs="tools",
        chat_only=True,
    ),
    # --- forms
    Probe(
        "json-schema",
        "an answer by a schema",
        ("CHT075",),
        {"input": "Where is the Louvre? Answer in JSON.", "text": {"format": _FORMAT}},
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
        {"input": _SEA},
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
    Probe("two-choices", "n=2", ("CHT015", "CHT062", "CHT071"), {"input": _SEA}, {"n": 2}, needs="n", chat_only=True),
    # --- reasoning
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
            "input": _user(
                {"type": "input_text", "text": "Which colour is this?"},
                {"type": "input_image", "image_url": _PIXEL, "detail": "low"},
            )
        },
        needs="images",
    ),
    # --- refused
    Probe(
        "bad-model",
        "a model that does not exist",
        ("CHT050", "CHT051"),
        {"input": _SEA, "model": "no-such-model-as-this"},
        refusal="model",
    ),
    Probe(
        "bad-request",
        "messages that are none",
        ("CHT050", "CHT051"),
        {"input": _SEA},
        {"messages": "none"},
        refusal="request",
        native={"input": 5},
    ),
    Probe(
        "bad-format",
        "a schema that is none",
        ("CHT050", "CHT051"),
        {"input": _SEA},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nonsense"}}}},
        refusal="request",
        chat_only=True,
    ),
    Probe("overlong", "a prompt that is too long", ("CHT050", "CHT052"), {"input": "word"}, refusal="length"),
    # --- together, in time, left
    Probe(
        "silence",
        "a longer answer: no silence in it",
        ("CHT078", "CHT003"),
        {"input": "Tell a long story, as long as you can.", "max_output_tokens": 400},
        over_a_second=True,
    ),
    Probe("two-at-once", "two streams at once", ("CHT077",), {"input": _SEA}, shape=Shape.BESIDE),
    Probe(
        "leave",
        "clients that leave in the middle",
        ("WIR004",),
        {"input": "Tell a long story, as long as you can.", "max_output_tokens": 2000},
        shape=Shape.LEAVE,
    ),
)

# Those whose answers decide how the others are asked: they run first, one after the other.
FACTS = 7


def chosen(patterns: tuple[str, ...]) -> tuple[Probe, ...]:
    """Return the probes that `patterns` name, all of them without any. Raises BadInput where a pattern names none."""
    for pattern in patterns:
        if not any(fnmatchcase(probe.id, pattern) for probe in PROBES):
            known = ", ".join(probe.id for probe in PROBES)
            raise BadInput(f"no probe is called {pattern!r}; known are: {known}")
    return tuple(
        probe for probe in PROBES if not patterns or any(fnmatchcase(probe.id, pattern) for pattern in patterns)
    )


def probes_hash() -> str:
    """Return a hash of the table: two reports with the same one asked the same."""
    return hashlib.sha256(repr(PROBES).encode()).hexdigest()[:16]
