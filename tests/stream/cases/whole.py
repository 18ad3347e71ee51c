"""Chat answers that were not streamed, each beside chunks that say the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .build import Json, call, calls, chunk, custom, detail, end, frag, given, refuse, role, text, think, tokens

A1 = '{"a":1}'


@dataclass(frozen=True)
class Answer:
    """One chat answer, whole and in chunks."""

    name: str
    whole: Json
    chunks: Sequence[Json]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


def completion(message: Any, finish: Any = "stop", *, choice: Mapping[str, Any] | None = None, **top: Any) -> Json:
    """Return a `chat.completion` with one choice."""
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1700000000, "model": "m"}
    first = {"index": 0, "message": message, "finish_reason": finish, **(choice or {})}
    return {**head, "choices": [first], **top}


def spoken(content: Any = None, **more: Any) -> Json:
    return {"role": "assistant", "content": content, **more}


def tool(id: str, name: str, arguments: Any, **more: Any) -> Json:
    return given(id=id, type="function", function={"name": name, "arguments": arguments}, **more)


PROBS = [{"token": "Hi", "logprob": -0.5, "bytes": [72, 105], "top_logprobs": []}]
NOTE = {
    "type": "url_citation",
    "url_citation": {"url": "https://example.org", "title": "T", "start_index": 0, "end_index": 2},
}
SEALED = detail("encrypted", index=0, data="c2VhbGVk")

ANSWERS = [
    Answer(
        "text",
        completion(spoken("Hi there"), usage=tokens(5, 2)),
        [role(), text("Hi "), text("there"), end(usage=tokens(5, 2))],
    ),
    Answer("nothing", completion(spoken()), [role(), end()]),
    Answer("empty text", completion(spoken("")), [role(), end()]),
    Answer("white space", completion(spoken("\n ")), [text("\n "), end()]),
    Answer(
        "a call",
        completion(spoken(tool_calls=[tool("call_x", "f", A1)]), "tool_calls"),
        [call(0, "call_x", "f", '{"a"'), call(0, args=":1}"), end("tool_calls")],
    ),
    Answer(
        "two calls",
        completion(spoken(tool_calls=[tool("call_x", "f", A1), tool("call_y", "f", A1)]), "tool_calls"),
        [calls(frag(0, "call_x", "f", A1), frag(1, "call_y", "f", A1)), end("tool_calls")],
    ),
    Answer(
        "a call without arguments",
        completion(spoken(tool_calls=[tool("call_x", "f", "")]), "tool_calls"),
        [call(0, "call_x", "f", ""), end("tool_calls")],
    ),
    Answer(
        "a call with an object",
        completion(spoken(tool_calls=[tool("call_x", "f", {"a": 1})]), "tool_calls"),
        [call(0, "call_x", "f", {"a": 1}), end("tool_calls")],
    ),
    Answer(
        "a call without an id",
        completion(spoken(tool_calls=[tool("", "f", A1)]), "tool_calls"),
        [call(0, "", "f", A1), end("tool_calls")],
    ),
    Answer(
        "a custom call",
        completion(
            spoken(tool_calls=[{"id": "call_x", "type": "custom", "custom": {"name": "grep", "input": "-r x"}}]),
            "tool_calls",
        ),
        [calls(custom(0, "call_x", "grep", "-r x")), end("tool_calls")],
    ),
    Answer(
        "a legacy call",
        completion(spoken(function_call={"name": "f", "arguments": A1}), "function_call"),
        [chunk({"function_call": {"name": "f", "arguments": A1}}), end("function_call")],
    ),
    Answer(
        "reasoning, text, call",
        completion(
            spoken("t", reasoning_content="r", tool_calls=[tool("call_x", "f", A1)]), "tool_calls", usage=tokens(5, 9)
        ),
        [think("r"), text("t"), call(0, "call_x", "f", A1), end("tool_calls", usage=tokens(5, 9))],
    ),
    Answer(
        "reasoning in two fields",
        completion(spoken("t", reasoning="r", reasoning_content="r")),
        [chunk({"reasoning": "r", "reasoning_content": "r"}), text("t"), end()],
    ),
    Answer(
        "an encrypted piece",
        completion(spoken("t", reasoning="r", reasoning_details=[SEALED])),
        [chunk({"reasoning": "r", "reasoning_details": [SEALED]}), text("t"), end()],
    ),
    Answer("a refusal", completion(spoken(refusal="No.")), [refuse("No."), end()]),
    Answer("refusal and text", completion(spoken("But.", refusal="No.")), [refuse("No."), text("But."), end()]),
    Answer("length", completion(spoken("Hi"), "length"), [text("Hi"), end("length")]),
    Answer(
        "length, a truncated call",
        completion(spoken(tool_calls=[tool("call_x", "f", '{"a')]), "length"),
        [call(0, "call_x", "f", '{"a'), end("length")],
    ),
    Answer(
        "content_filter, nothing",
        completion(spoken(), "content_filter", usage=tokens(9, 0)),
        [end("content_filter", usage=tokens(9, 0))],
    ),
    Answer(
        "annotations", completion(spoken("Hi", annotations=[NOTE])), [text("Hi"), chunk({"annotations": [NOTE]}), end()]
    ),
    Answer(
        "logprobs",
        completion(spoken("Hi"), choice={"logprobs": {"content": PROBS}}),
        [text("Hi", choice={"logprobs": {"content": PROBS}}), end()],
    ),
    Answer(
        "a content list",
        completion(spoken([{"type": "text", "text": "Hi"}])),
        [text([{"type": "text", "text": "Hi"}]), end()],
    ),
    Answer(
        "as text",
        completion(spoken("t", reasoning="r")),
        [think("r", field="reasoning"), text("t"), end()],
        {"reasoning": "text"},
    ),
    Answer(
        "a request",
        completion(spoken("Hi")),
        [text("Hi"), end()],
        {"request": {"model": "asked", "temperature": 0.5, "metadata": {"k": "v"}}},
    ),
    Answer(
        "an error",
        {"error": {"message": "overloaded", "code": 503}},
        [{"error": {"message": "overloaded", "code": 503}}],
    ),
    Answer(
        "a service tier",
        completion(spoken("Hi"), service_tier="flex"),
        [text("Hi", service_tier="flex"), end(service_tier="flex")],
    ),
]
