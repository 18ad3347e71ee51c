"""Chunks and expectations in shorthand, so that a case fits on a few lines.

What is written here is ours: no chunk is copied from a recording.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

ABSENT: Any = object()  # "this key is not in the JSON"; None is JSON's null
UNSAID: Any = object()  # "the case does not say"
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


# Chunks.


def given(**fields: Any) -> Json:
    """Return the fields that are not ABSENT."""
    return {name: value for name, value in fields.items() if value is not ABSENT}


def bare(choices: Any, **top: Any) -> Json:
    """Return a chunk with these choices, whatever they are."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "m"}
    return given(**{**head, "choices": choices, **top})


def chunk(
    delta: Any, finish: Any = None, *, index: Any = 0, choice: Mapping[str, Any] = NO_OPTIONS, **top: Any
) -> Json:
    """Return a chunk with one choice. `choice` adds keys to the choice, `top` to the chunk."""
    return bare([given(**{"index": index, "delta": delta, "finish_reason": finish, **choice})], **top)


def role() -> Json:
    return chunk({"role": "assistant", "content": ""})


def text(content: Any, finish: Any = None, **more: Any) -> Json:
    return chunk({"content": content}, finish, **more)


def think(content: Any, finish: Any = None, *, field: str = "reasoning_content", **more: Any) -> Json:
    return chunk({field: content}, finish, **more)


def refuse(content: Any, finish: Any = None, **more: Any) -> Json:
    return chunk({"refusal": content}, finish, **more)


def frag(index: Any = ABSENT, id: Any = ABSENT, name: Any = ABSENT, args: Any = ABSENT, **more: Any) -> Json:
    """Return one entry of `tool_calls`, with the keys that are given."""
    function = given(name=name, arguments=args)
    return given(index=index, id=id, function=function or ABSENT, **more)


def custom(index: Any = ABSENT, id: Any = ABSENT, name: Any = ABSENT, text: Any = ABSENT, **more: Any) -> Json:
    """Return one entry of `tool_calls` for a custom tool."""
    return given(index=index, id=id, type="custom", custom=given(name=name, input=text), **more)


def calls(*fragments: Json, finish: Any = None, **more: Any) -> Json:
    return chunk({"tool_calls": list(fragments)}, finish, **more)


def call(
    index: Any = ABSENT, id: Any = ABSENT, name: Any = ABSENT, args: Any = ABSENT, *, finish: Any = None, **more: Any
) -> Json:
    """Return a chunk with one tool call fragment."""
    return calls(frag(index, id, name, args), finish=finish, **more)


def detail(kind: str, **fields: Any) -> Json:
    """Return one entry of `reasoning_details`, such as OpenRouter sends."""
    return {"type": f"reasoning.{kind}", **fields}


def details(*entries: Json, **delta: Any) -> Json:
    return chunk({"reasoning_details": list(entries), **delta})


def end(finish: Any = "stop", **more: Any) -> Json:
    return chunk({}, finish, **more)


def tokens(prompt: Any, completion: Any, total: Any = ABSENT, **more: Any) -> Json:
    """Return a chat usage object. `total` is their sum, unless it is given; None leaves it out."""
    if total is ABSENT:
        total = prompt + completion
    counts = {"prompt_tokens": prompt, "completion_tokens": completion}
    return {**counts, **({} if total is None else {"total_tokens": total}), **more}


def counted(usage: Any, **more: Any) -> Json:
    """Return the chunk without choices that carries the usage."""
    return bare([], usage=usage, **more)


# What is expected: items in the words of `summary.py`.


def said(text: str, status: str = "completed", **more: Any) -> Json:
    """Return a message of one text part. `more`: `annotations` and `logprobs`, of all its parts, by the keys given."""
    return {"type": "message", "text": text, "status": status, **more}


def parts(*pairs: tuple[str, str], status: str = "completed") -> Json:
    return {"type": "message", "parts": [list(pair) for pair in pairs], "status": status}


def thought(text: str, **more: Any) -> Json:
    """Return a reasoning item. `more`: `encrypted`, `sealed` (whether it is not empty), `details`."""
    return {"type": "reasoning", "text": text, **more}


def called(name: str, arguments: Any, call_id: str | None = None, status: str = "completed") -> Json:
    """Return a function call. Without `call_id` it must be a made one. Arguments that are not a str are compared as JSON."""
    arguments = arguments if isinstance(arguments, str) else {"json": arguments}
    return {"type": "function_call", "name": name, "arguments": arguments, "call_id": call_id, "status": status}


def typed(name: str, input: str, call_id: str | None = None, status: str = "completed") -> Json:
    return {"type": "custom_tool_call", "name": name, "input": input, "call_id": call_id, "status": status}


def cut(item: Json) -> Json:
    """Return the item as it is when the response ends before it: incomplete."""
    return {**item, "status": "incomplete"}


@dataclass(frozen=True)
class Case:
    """One chunk stream and what must come of it.

    `done`: `[DONE]` was seen. `fail`: what the source raises after the last chunk. `says` must be in the error's
    message (in any case of letters), `hides` must not. `keeps` must be somewhere in a provider_data, `call_keeps` in
    one of a call. `warned` is whether anything was odd, or how often. `response` are fields of the
    final response. An output of None is not compared.
    """

    name: str
    chunks: Sequence[Any]
    output: Sequence[Json] | None
    terminal: str = "completed"
    reason: str | None = None
    code: str | None = None
    says: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    call_keeps: tuple[str, ...] = ()
    usage: Any = UNSAID
    warned: bool | int | None = None
    response: Mapping[str, Any] = field(default_factory=dict[str, Any])
    done: bool = False
    fail: BaseException | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


def failed(name: str, chunks: Sequence[Any], output: Sequence[Json], code: str | None = None, **more: Any) -> Case:
    return Case(name, chunks, output, terminal="failed", code=code, **more)


def limited(
    name: str, chunks: Sequence[Any], output: Sequence[Json] | None, reason: str = "max_output_tokens", **more: Any
) -> Case:
    return Case(name, chunks, output, terminal="incomplete", reason=reason, **more)


# Bytes.


def sse(*lines: Any, event: str | None = None) -> bytes:
    """Return a server-sent events body: objects as JSON, strings as they are, each in an event of its own."""
    head = f"event: {event}\n" if event else ""
    return "".join(f"{head}data: {line if isinstance(line, str) else json.dumps(line)}\n\n" for line in lines).encode()


DONE = "[DONE]"
