"""Streams of every kind the grammar speaks of, written from its sentences alone, with what must come out of each."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter, ValidationError

from antiphon import (
    AntiphonError,
    ChatCmplStreamHandler,
    Profile,
    accumulate,
    aconvert,
    convert,
    convert_sse,
    to_response,
)
from antiphon_conformance import check

Json = dict[str, Any]
SAME: Json = {"ids": "counted", "created_at": 0}
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


# ---------------------------------------------------------------------------------------------- chunks, written short
def chunk(delta: Any = None, finish: str | None = None, *, choice: Json | None = None, **top: Any) -> Json:
    """Return a chunk whose only choice has `delta`; `choice` and `top` add keys beside it."""
    one = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish, **(choice or {})}
    head = {"id": "chatcmpl-7", "object": "chat.completion.chunk", "created": 1712345678, "model": "some-model"}
    return {**head, "choices": [one], **top}


def bare(**top: Any) -> Json:
    """Return a chunk without choices."""
    return {**chunk(), "choices": [], **top}


def text(value: Any, **more: Any) -> Json:
    return chunk({"content": value, **more})


def think(value: Any, **more: Any) -> Json:
    return chunk({"reasoning_content": value, **more})


def refuse(value: Any) -> Json:
    return chunk({"refusal": value})


def piece(index: Any = ..., id: Any = ..., name: Any = ..., args: Any = ..., **more: Any) -> Json:
    """Return an entry of `tool_calls`; what is not given is not there."""
    function = {k: v for k, v in (("name", name), ("arguments", args)) if v is not ...}
    entry = {k: v for k, v in (("index", index), ("id", id)) if v is not ...}
    return {**entry, **({"function": function} if function else {}), **more}


def calls(*pieces: Json, **delta: Any) -> Json:
    return chunk({"tool_calls": list(pieces), **delta})


def call(*given: Any, **named: Any) -> Json:
    return calls(piece(*given, **named))


def custom(index: Any = ..., id: Any = ..., name: Any = ..., input: Any = ...) -> Json:
    inner = {k: v for k, v in (("name", name), ("input", input)) if v is not ...}
    entry = {k: v for k, v in (("index", index), ("id", id)) if v is not ...}
    return calls({**entry, "type": "custom", "custom": inner})


ROLE = chunk({"role": "assistant", "content": ""})
STOP = chunk({}, "stop")
CALLED = chunk({}, "tool_calls")
LENGTH = chunk({}, "length")
FILTERED = chunk({}, "content_filter")
USAGE = bare(usage={"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16})


# ------------------------------------------------------------------------------------------------ output, told briefly
@dataclass(frozen=True)
class Told:
    """An output item, without its id; `id` is its call_id, "" for any."""

    kind: str
    parts: tuple[str, ...] = ()
    id: str = ""
    done: bool = True


def M(*parts: str) -> Told:
    """A message; a part that begins with "refusal:" is one."""
    return Told("message", parts)


def R(value: str) -> Told:
    return Told("reasoning", (value,) if value else ())


def F(name: str, arguments: str, id: str = "") -> Told:
    return Told("function_call", (name, arguments), id)


def X(name: str, input: str, id: str = "") -> Told:
    return Told("custom_tool_call", (name, input), id)


def cut(item: Told) -> Told:
    """The same item, done as incomplete."""
    return replace(item, done=False)


def told(item: Json) -> Told:
    """Return what an output item says."""
    done = item.get("status") != "incomplete"
    match item["type"]:
        case "message":
            parts = [p["text"] if p["type"] == "output_text" else "refusal:" + p["refusal"] for p in item["content"]]
            return Told("message", tuple(parts), done=done)
        case "reasoning":
            parts = [p["text"] for p in [*item["summary"], *(item.get("content") or [])]]
            return Told("reasoning", tuple(parts))
        case "function_call":
            return Told("function_call", (item["name"], item["arguments"]), item["call_id"], done)
        case "custom_tool_call":
            return Told("custom_tool_call", (item["name"], item["input"]), item["call_id"], done)
    raise AssertionError(item)


@dataclass(frozen=True)
class Case:
    """Chunks and what must come of them."""

    name: str
    chunks: list[Json]
    output: list[Told]
    status: str = "completed"
    error: str | None = None
    says: tuple[str, ...] = ()  # what the error's message holds
    unsaid: tuple[str, ...] = ()  # what it must not hold
    usage: tuple[int, int, int] | None = None
    warned: int | None = None  # how many warnings; None for any number
    done: bool = False  # `[DONE]` is sent
    options: Json = field(default_factory=dict)
    paths: dict[str, Any] = field(default_factory=dict)  # dotted path in the terminal response -> value
    checked: bool = True  # the rules have nothing to say


def at(value: Any, path: str) -> Any:
    """Return what is at the dotted `path`; None where nothing is."""
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else (value or {}).get(step)
    return value


def agrees(came: list[Told], due: list[Told]) -> bool:
    blank = [replace(a, id="") if not b.id else a for a, b in zip(came, due, strict=False)]
    return len(came) == len(due) and blank == [replace(b, done=True) if b.kind == "reasoning" else b for b in due]


def framed(chunks: list[Json], done: bool) -> bytes:
    body = b"".join(b"data: " + json.dumps(one, ensure_ascii=False).encode() + b"\r\n\r\n" for one in chunks)
    return body + (b"data: [DONE]\n\n" if done else b"")


def slices(body: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


async def drained(events: AsyncIterator[Any]) -> list[Any]:
    return [event async for event in events]


async def slowly(chunks: list[Any]) -> AsyncIterator[Any]:
    for one in chunks:
        await asyncio.sleep(0)
        yield one


def well_formed(events: list[Json]) -> None:
    """The sentences of the grammar's first part, checked by hand."""
    assert [e["sequence_number"] for e in events] == list(range(len(events)))
    kinds = [e["type"] for e in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] in {"response.completed", "response.incomplete", "response.failed"}
    assert sum(k in {"response.completed", "response.incomplete", "response.failed"} for k in kinds) == 1
    assert (kinds[-1] == "response.failed") == (kinds.count("error") == 1)
    if kinds[-1] == "response.failed":
        assert kinds[-2] == "error"
    head, also, last = events[0]["response"], events[1]["response"], events[-1]["response"]
    assert head == also
    assert {(r["id"], r["created_at"], r["model"]) for r in (head, last)} == {
        (last["id"], last["created_at"], last["model"])
    }
    assert head["status"] == "in_progress"
    assert head["output"] == []
    assert head["usage"] is None
    assert head["error"] is None
    added = [e for e in events if e["type"] == "response.output_item.added"]
    done = [e for e in events if e["type"] == "response.output_item.done"]
    assert [e["output_index"] for e in added] == list(range(len(added))) == [e["output_index"] for e in done]
    assert [e["item"]["id"] for e in added] == [e["item"]["id"] for e in done]
    assert len({e["item"]["id"] for e in added}) == len(added)
    assert last["output"] == [e["item"] for e in done]
    ids = [e["item"]["call_id"] for e in added if "call_id" in e["item"]]
    assert len(set(ids)) == len(ids)
    assert all(ids)
    statuses = [e["item"].get("status", "reasoning") for e in done]
    assert "in_progress" not in statuses
    if "incomplete" in statuses:
        after = statuses[statuses.index("incomplete") :]
        assert set(after) <= {"incomplete", "reasoning"}
        assert last["status"] != "completed"
    open_item: Json | None = None
    deltas: list[str] = []
    marks: list[Any] = []
    for n, event in enumerate(events):
        kind = event["type"]
        if kind == "response.output_item.added":
            assert open_item is None
            open_item, deltas, marks = event["item"], [], []
            assert not (open_item.get("content"))
            assert not (open_item.get("arguments"))
            assert not (open_item.get("input"))
            assert not (open_item.get("summary"))
            if "call" in open_item["type"]:
                assert open_item["name"]
        elif kind == "response.output_item.done":
            if event["item"]["type"] in {"message", "function_call", "custom_tool_call"}:
                assert kinds[n - 1] in {
                    "response.content_part.done",
                    "response.function_call_arguments.done",
                    "response.custom_tool_call_input.done",
                }
            for key in ("type", "id", "name", "call_id"):
                assert open_item is not None
                assert event["item"].get(key) == open_item.get(key)
            open_item = None
            assert kinds[n + 1] in {"response.output_item.added", "error", kinds[-1]}
        elif kind.endswith("part.added"):
            deltas, marks = [], []
        elif kind.endswith(".delta"):
            assert event["delta"], event
            deltas.append(event["delta"])
            marks += event.get("logprobs") or []
        elif kind.endswith("annotation.added"):
            assert event["annotation"]
        elif kind.endswith(("text.done", "refusal.done", "arguments.done", "input.done")):
            whole = next(event[key] for key in ("text", "refusal", "arguments", "input") if key in event)
            assert "".join(deltas) == whole
            assert (event.get("logprobs") or []) == marks
            assert "name" not in event
            assert kinds[n + 1].endswith(("part.done", "item.done"))
        if open_item is not None and "item_id" in event:
            assert event["item_id"] == open_item["id"]
    json.dumps(events)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


# ------------------------------------------------------------------------------------------------------------- cases
J = '{"city":"Basel"}'
CASES: list[Case] = [
    # Head and choices
    Case(
        "the first non-empty model is the model",
        [chunk({"role": "assistant"}, model=""), chunk({"content": "a"}, model="m-2"), chunk({}, "stop", model="m-3")],
        [M("a")],
        paths={"model": "m-2"},
    ),
    Case(
        "the request's model goes before the chunk's",
        [text("a"), STOP],
        [M("a")],
        options={"request": {"model": "asked"}},
        paths={"model": "asked"},
    ),
    Case(
        "no model at all",
        [chunk({"content": "a"}, model=None), chunk({}, "stop", model="")],
        [M("a")],
        paths={"model": ""},
    ),
    Case(
        "choice 1 alone, then usage without choices",
        [chunk({"content": "x"}, choice={"index": 1}), chunk({}, "stop", choice={"index": 1}), USAGE],
        [],
        usage=(11, 5, 16),
        warned=1,
    ),
    Case(
        "choice 1 alone, no usage",
        [chunk({"content": "x"}, choice={"index": 1}), chunk({}, "stop", choice={"index": 1})],
        [],
        "failed",
        "server_error",
    ),
    Case(
        "many other choices, one warning",
        [chunk({"content": str(n)}, choice={"index": n % 3}) for n in range(9)] + [STOP],
        [M("036")],
        warned=1,
    ),
    Case(
        "choices both in one chunk, the other first",
        [
            {
                **chunk(),
                "choices": [
                    {"index": 1, "delta": {"content": "B"}, "finish_reason": "length"},
                    {"index": 0, "delta": {"content": "A"}, "finish_reason": None},
                ],
            },
            STOP,
        ],
        [M("A")],
        warned=1,
    ),
    Case(
        "other choices with strict",
        [text("a"), chunk({"content": "x"}, choice={"index": 1}), STOP],
        [cut(M("a"))],
        "failed",
        "server_error",
        options={"strict": True},
        checked=False,
    ),
    Case(
        "finish of another choice only",
        [text("a"), chunk({}, "stop", choice={"index": 1})],
        [cut(M("a"))],
        "failed",
        "server_error",
        says=("finish_reason_optional",),
    ),
    Case(
        "choice without index",
        [
            {**chunk(), "choices": [{"delta": {"content": "a"}}]},
            {**chunk(), "choices": [{"delta": {}, "finish_reason": "stop"}]},
        ],
        [M("a")],
    ),
    # What opens an item
    Case(
        "nothing but role, null, empty and unknown",
        [
            ROLE,
            chunk({"content": None}),
            chunk({"content": ""}),
            chunk({"foo": {"a": 1}}),
            chunk({"reasoning_content": "", "refusal": "", "tool_calls": None}),
            STOP,
        ],
        [],
    ),
    Case("white space alone", [text(" \n"), text("\t"), STOP], []),
    Case("white space, then text", [text(" "), text("\n"), text("Hello"), STOP], [M(" \nHello")]),
    Case(
        "white space before a call is dropped",
        [text("\n\n"), call(0, "c1", "f", J), text("Hi"), STOP],
        [F("f", J, "c1"), M("Hi")],
    ),
    Case("white space before reasoning is dropped", [text("\n"), think("t"), text("Hi"), STOP], [R("t"), M("Hi")]),
    Case("white reasoning inside a message closes nothing", [text("A"), think("\n\n"), text("B"), STOP], [M("AB")]),
    Case(
        "white reasoning waits for reasoning",
        [text("A"), think(" "), text(" b"), think("x"), STOP],
        [M("A b"), R(" x")],
    ),
    Case(
        "white reasoning dropped at another item",
        [text("A"), think(" "), call(0, "c1", "f", J), think("x"), STOP],
        [M("A"), F("f", J, "c1"), R("x")],
    ),
    Case(
        "white text inside reasoning closes nothing",
        [think("a"), text("\n"), think("b"), text("C"), STOP],
        [R("ab"), M("\nC")],
    ),
    Case(
        "white text after reasoning comes before text",
        [think("a"), text("\n\n"), text("C"), STOP],
        [R("a"), M("\n\nC")],
    ),
    Case("white space at the end of an open message", [text("A"), text("\n"), text(" "), STOP], [M("A\n ")]),
    Case("white refusal inside text", [text("A"), refuse("\n"), text("B"), STOP], [M("AB")]),
    Case("white text inside a refusal", [refuse("No"), text(" "), refuse("pe"), STOP], [M("refusal:Nope")]),
    Case(
        "white text after a refusal then text",
        [refuse("No."), text(" "), text("But"), STOP],
        [M("refusal:No.", " But")],
    ),
    Case(
        "white text after a call's head, before its arguments",
        [call(0, "c1", "f", ""), text("\n"), call(0, args=J), STOP],
        [F("f", J, "c1")],
    ),
    Case(
        "white text inside arguments",
        [call(0, "c1", "f", '{"a":'), text("\n"), call(0, args="1}"), CALLED],
        [F("f", '{"a":1}', "c1")],
    ),
    Case(
        "white text inside arguments then text",
        [call(0, "c1", "f", '{"a":'), text("\n"), call(0, args="1}"), text("T"), CALLED],
        [F("f", '{"a":1}', "c1"), M("\nT")],
    ),
    Case(
        "white text after text, before a call",
        [text("T"), text("\n"), call(0, "c1", "f", J), CALLED],
        [M("T\n"), F("f", J, "c1")],
    ),
    Case(
        "no-break and line-separator spaces are white",
        [text("\u00a0\u2028\u3000"), call(0, "c1", "f", J), CALLED],
        [F("f", J, "c1")],
    ),
    Case("zero-width space is visible", [text("\u200b"), STOP], [M("\u200b")]),
    Case("a BOM is visible", [text("\ufeff"), STOP], [M("\ufeff")]),
    Case("NUL is visible", [text("\x00"), STOP], [M("\x00")]),
    Case("unit separator is white", [text("\x1f"), STOP], []),
    Case(
        "U+2028, U+0085 and emoji in text",
        [text("a\u2028b"), text("\u0085c"), text("👩‍👩‍👧"), STOP],
        [M("a\u2028b\u0085c👩‍👩‍👧")],
    ),
    # Order inside one chunk, kinds
    Case(
        "everything in one chunk",
        [
            chunk(
                {"content": "T", "refusal": "N", "reasoning_content": "R", "tool_calls": [piece(0, "c1", "f", J)]},
                "tool_calls",
                usage={"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
            )
        ],
        [R("R"), M("refusal:N", "T"), F("f", J, "c1")],
        usage=(1, 2, 3),
    ),
    Case(
        "tail of a call, then all else, then a new call",
        [
            call(0, "c1", "f", '{"a":'),
            calls(piece(1, "c2", "g", "[]"), piece(0, args="1}"), content="T", reasoning_content="R"),
            CALLED,
        ],
        [F("f", '{"a":1}', "c1"), R("R"), M("T"), F("g", "[]", "c2")],
    ),
    Case(
        "four kinds, four items",
        [think("a"), text("b"), call(0, "c1", "f", J), text("d"), STOP],
        [R("a"), M("b"), F("f", J, "c1"), M("d")],
    ),
    Case(
        "interleaved thinking",
        [think("a"), text("b"), think("c"), text("d"), think("e"), call(0, "c1", "f", J), think("g"), STOP],
        [R("a"), M("b"), R("c"), M("d"), R("e"), F("f", J, "c1"), R("g")],
    ),
    Case("text, refusal, text", [text("a"), refuse("b"), text("c"), STOP], [M("a", "refusal:b", "c")]),
    Case(
        "refusal, reasoning, refusal",
        [refuse("a"), think("b"), refuse("c"), STOP],
        [M("refusal:a"), R("b"), M("refusal:c")],
    ),
    Case("text in the finish chunk", [text("a"), chunk({"content": "b"}, "stop")], [M("ab")]),
    Case(
        "content after a finish chunk still counts",
        [text("a"), STOP, text("b"), call(0, "c1", "f", J)],
        [M("ab"), F("f", J, "c1")],
    ),
    # Announcing
    Case(
        "head, text, arguments", [call(0, "c1", "f", ""), text("T"), call(0, args=J), CALLED], [M("T"), F("f", J, "c1")]
    ),
    Case(
        "head, reasoning, text, refusal, arguments",
        [call(0, "c1", "f"), think("R"), text("T"), refuse("N"), call(0, args=J), CALLED],
        [R("R"), M("T", "refusal:N"), F("f", J, "c1")],
    ),
    Case("head only", [call(0, "c1", "f", ""), CALLED], [F("f", "{}", "c1")]),
    Case("head without arguments at all", [call(0, "c1", "f"), CALLED], [F("f", "{}", "c1")]),
    Case(
        "a later call waits for the first head",
        [call(0, "c1", "f"), call(1, "c2", "g", J), text("T"), call(0, args="{}"), CALLED],
        [M("T"), F("f", "{}", "c1"), F("g", J, "c2")],
    ),
    Case(
        "all heads first, arguments backwards",
        [
            calls(piece(0, "a", "f", ""), piece(1, "b", "g", ""), piece(2, "c", "h", "")),
            call(2, args='{"n":2}'),
            call(1, args='{"n":1}'),
            call(0, args='{"n":0}'),
            CALLED,
        ],
        [F("f", '{"n":0}', "a"), F("g", '{"n":1}', "b"), F("h", '{"n":2}', "c")],
    ),
    Case(
        "two calls interleaved by character",
        [calls(piece(0, "a", "f", ""), piece(1, "b", "g", ""))]
        + [call(i, args=ch) for pair in zip('{"x":10}', '{"y":20}', strict=True) for i, ch in enumerate(pair)]
        + [CALLED],
        [F("f", '{"x":10}', "a"), F("g", '{"y":20}', "b")],
    ),
    Case(
        "text inside arguments is held",
        [call(0, "c1", "f", '{"a":'), text("T"), call(0, args="1}"), CALLED],
        [F("f", '{"a":1}', "c1"), M("T")],
    ),
    Case(
        "much held in order",
        [
            call(0, "c1", "f", '{"a":'),
            text("T"),
            think("R"),
            text("U"),
            refuse("N"),
            call(1, "c2", "g", J),
            call(0, args="1}"),
            CALLED,
        ],
        [F("f", '{"a":1}', "c1"), M("T"), R("R"), M("U", "refusal:N"), F("g", J, "c2")],
    ),
    Case(
        "held text and length",
        [call(0, "c1", "f", '{"a":'), text("T"), LENGTH],
        [cut(F("f", '{"a":', "c1")), cut(M("T"))],
        "incomplete",
    ),
    Case(
        "held text, call and no finish",
        [call(0, "c1", "f", '{"a":'), text("T"), call(1, "c2", "g", '{"b"')],
        [cut(F("f", '{"a":', "c1")), cut(M("T")), cut(F("g", '{"b"', "c2"))],
        "failed",
        "server_error",
    ),
    Case(
        "held text and stop",
        [call(0, "c1", "f", '{"a":'), text("T"), STOP],
        [F("f", '{"a":', "c1"), M("T")],
        checked=False,
    ),
    Case(
        "waiting calls at length",
        [calls(piece(0, "a", "f", ""), piece(1, "b", "g", "")), LENGTH],
        [cut(F("f", "", "a")), cut(F("g", "", "b"))],
        "incomplete",
    ),
    Case(
        "complete call then text then length",
        [call(0, "c1", "f", J), text("T"), LENGTH],
        [F("f", J, "c1"), cut(M("T"))],
        "incomplete",
    ),
    Case(
        "an array is complete",
        [call(0, "c1", "f", "[1,"), text("T"), call(0, args="2]"), text("U"), CALLED],
        [F("f", "[1,2]", "c1"), M("TU")],
    ),
    Case(
        "a string is complete",
        [call(0, "c1", "f", '"ab'), text("T"), call(0, args='c"'), text("U"), CALLED],
        [F("f", '"abc"', "c1"), M("TU")],
    ),
    Case(
        "a number is never complete",
        [call(0, "c1", "f", "12"), text("T"), call(0, args="3"), CALLED],
        [F("f", "123", "c1"), M("T")],
    ),
    Case(
        "braces in strings and escapes",
        [call(0, "c1", "f", '{"a":"}\\"}'), text("T"), call(0, args='{[","b":"\\\\"}'), CALLED],
        [F("f", '{"a":"}\\"}{[","b":"\\\\"}', "c1"), M("T")],
    ),
    Case(
        "an escape cut in two",
        [call(0, "c1", "f", '{"a":"x\\'), call(0, args='"y"'), text("T"), call(0, args="}"), CALLED],
        [F("f", '{"a":"x\\"y"}', "c1"), M("T")],
    ),
    Case(
        "an escaped surrogate pair cut in two",
        [call(0, "c1", "f", '{"a":"\\ud83d'), call(0, args='\\ude00"}'), text("T"), CALLED],
        [F("f", '{"a":"\\ud83d\\ude00"}', "c1"), M("T")],
    ),
    Case(
        "white space around arguments",
        [call(0, "c1", "f", '\n{"a": 1}'), call(0, args="\n"), text("T"), CALLED],
        [F("f", '\n{"a": 1}\n', "c1"), M("T")],
    ),
    Case(
        "white space after a closed call is dropped",
        [call(0, "c1", "f", J), text("T"), call(0, args=" \n"), CALLED],
        [F("f", J, "c1"), M("T")],
    ),
    Case(
        "a repetition for a closed call is dropped",
        [call(0, "c1", "f", J), text("T"), call(0, "c1", "f", J), CALLED],
        [F("f", J, "c1"), M("T")],
    ),
    Case(
        "an empty fragment for a closed call",
        [call(0, "c1", "f", J), text("T"), call(0, "c1", "f", ""), call(0, "c1", None, None), CALLED],
        [F("f", J, "c1"), M("T")],
    ),
    Case(
        "a fragment for a closed call",
        [call(0, "c1", "f", J), text("T"), call(0, args='{"more":1}'), CALLED],
        [F("f", J, "c1"), cut(M("T"))],
        "failed",
        "server_error",
        says=("tool call 0",),
        checked=False,
    ),
    Case(
        "a fragment for the second closed call",
        [call(0, "c1", "f", J), call(1, "c2", "g", J), text("T"), call(1, "c2", args="xx"), text("U"), CALLED],
        [F("f", J, "c1"), F("g", J, "c2"), cut(M("TU"))],
        "failed",
        "server_error",
        says=("tool call 1",),
        checked=False,
    ),
    # Which call: row by row
    Case(
        "id known on the index, name again",
        [call(0, "a", "f", '{"x"'), call(0, "a", "f", ":1}"), CALLED],
        [F("f", '{"x":1}', "a")],
    ),
    Case(
        "id known, no name, another index",
        [call(0, "a", "f", '{"x"'), call(4, "a", args=":1}"), CALLED],
        [F("f", '{"x":1}', "a")],
    ),
    Case(
        "id known, no name, no index",
        [call(0, "a", "f", '{"x"'), calls(piece(id="a", args=":1}")), CALLED],
        [F("f", '{"x":1}', "a")],
    ),
    Case(
        "id and index go before id alone",
        [
            call(0, "a", "f", ""),
            call(1, "a", "g", ""),
            call(1, "a", args='{"b":1}'),
            call(0, "a", args='{"a":1}'),
            CALLED,
        ],
        [F("f", '{"a":1}', "a"), F("g", '{"b":1}')],
    ),
    Case(
        "duplicate ids on two indexes",
        [call(0, "a", "f", J), call(1, "a", "f", "[]"), CALLED],
        [F("f", J, "a"), F("f", "[]")],
    ),
    Case(
        "duplicate ids on five indexes",
        [call(n, "dup", "f", f'{{"n":{n}}}') for n in range(5)] + [CALLED],
        [F("f", f'{{"n":{n}}}') for n in range(5)],
    ),
    Case(
        "the id comes after the name",
        [call(0, name="f"), call(0, "late", args=""), call(0, args=J), CALLED],
        [F("f", J, "late")],
    ),
    Case(
        "the id comes after the announcement: an alias",
        [call(0, name="f", args='{"x":'), call(0, "late", args="1"), call(7, "late", args="}"), CALLED],
        [F("f", '{"x":1}')],
    ),
    Case(
        "a new id with a related longer name",
        [call(0, name="get"), call(0, "a", "get_it"), call(0, args=J), CALLED],
        [F("get_it", J, "a")],
    ),
    Case(
        "a new id, arguments complete, name again: a new call",
        [call(0, name="f", args=J), call(0, "b", "f", "[]"), CALLED],
        [F("f", J), F("f", "[]", "b")],
    ),
    Case(
        "a new id, arguments complete, nameless arguments: a new call",
        [call(0, name="f", args='{"n":1}'), call(0, "b", args='{"n":2}'), call(0, name="f"), CALLED],
        [F("f", '{"n":1}'), F("f", '{"n":2}', "b")],
        checked=False,
    ),
    Case(
        "a new id and an unrelated name on an index in use",
        [call(0, name="f"), call(0, "b", "g", J), CALLED],
        [F("f", "{}"), F("g", J, "b")],
    ),
    Case(
        "one index, ids differ",
        [call(0, "a", "f", '{"n":1}'), call(0, "b", "f", '{"n":2}'), call(0, "c", "f", '{"n":3}'), CALLED],
        [F("f", '{"n":1}', "a"), F("f", '{"n":2}', "b"), F("f", '{"n":3}', "c")],
    ),
    Case(
        "one index, ids differ, pieces follow",
        [
            call(0, "a", "f", ""),
            call(0, args='{"n":'),
            call(0, args="1}"),
            call(0, "b", "g", ""),
            call(0, args='{"n":'),
            call(0, args="2}"),
            CALLED,
        ],
        [F("f", '{"n":1}', "a"), F("g", '{"n":2}', "b")],
    ),
    Case(
        "no id, used index, same name, incomplete: continue",
        [call(0, "a", "f", '{"x"'), call(0, name="f", args=":1}"), CALLED],
        [F("f", '{"x":1}', "a")],
    ),
    Case(
        "no id, used index, same name, complete: new",
        [call(0, name="f", args='{"n":1}'), call(0, name="f", args='{"n":2}'), CALLED],
        [F("f", '{"n":1}'), F("f", '{"n":2}')],
    ),
    Case(
        "no id, used index, another name, complete: new",
        [call(0, name="f", args='{"n":1}'), call(0, name="g", args='{"n":2}'), CALLED],
        [F("f", '{"n":1}'), F("g", '{"n":2}')],
    ),
    Case(
        "no id, used index, another name, not announced: a piece",
        [call(0, "a", "get_"), call(0, name="weather"), call(0, args=J), CALLED],
        [F("get_weather", J, "a")],
    ),
    Case(
        "another name after the announcement is ignored",
        [call(0, "a", "f", '{"x":'), call(0, name="zzz", args="1}"), CALLED],
        [F("f", '{"x":1}', "a")],
    ),
    Case(
        "no id, no name, used index",
        [call(0, "a", "f", ""), call(1, "b", "g", ""), call(0, args="[0]"), call(1, args="[1]"), CALLED],
        [F("f", "[0]", "a"), F("g", "[1]", "b")],
    ),
    Case(
        "empty strings are not given",
        [call(0, "a", "f", '{"x"'), call(0, "", "", ":"), call(0, None, None, "1}"), CALLED],
        [F("f", '{"x":1}', "a")],
    ),
    Case(
        "no id, new index, name", [call(3, name="f", args=J), call(9, name="f", args=J), CALLED], [F("f", J), F("f", J)]
    ),
    Case(
        "head on one index, arguments on a never opened one",
        [call(0, "a", "f", ""), call(1, args='{"x":'), call(1, args="1}"), CALLED],
        [F("f", '{"x":1}', "a")],
    ),
    Case(
        "nameless empty arguments on a new index: nothing",
        [call(0, "a", "f", '{"x":'), call(1, args=""), call(2, args=" "), call(0, args="1}"), CALLED],
        [F("f", '{"x":1}', "a")],
    ),
    Case(
        "nameless arguments without index after a complete call: a new call",
        [calls(piece(name="f", args=J)), calls(piece(args='{"n":2}')), calls(piece(name="g")), CALLED],
        [F("f", J), F("g", '{"n":2}')],
    ),
    Case(
        "no index at all: Gemini and Mistral",
        [calls(piece(id="", name="f", args='{"n":1}'), piece(id="", name="f", args='{"n":2}')), CALLED],
        [F("f", '{"n":1}'), F("f", '{"n":2}')],
    ),
    Case(
        "no index, ids",
        [calls(piece(id="Ab1", name="f", args='{"n":1}'), piece(id="Ab2", name="g", args='{"n":2}')), CALLED],
        [F("f", '{"n":1}', "Ab1"), F("g", '{"n":2}', "Ab2")],
    ),
    Case(
        "no index, pieces",
        [
            calls(piece(id="a", name="f", args="")),
            calls(piece(args='{"x"')),
            calls(piece(args=":1}")),
            calls(piece(id="b", name="g", args="")),
            calls(piece(args="[]")),
            CALLED,
        ],
        [F("f", '{"x":1}', "a"), F("g", "[]", "b")],
    ),
    Case(
        "index null",
        [calls(piece(None, "a", "f", '{"x"')), calls(piece(None, None, None, ":1}")), CALLED],
        [F("f", '{"x":1}', "a")],
    ),
    Case(
        "no index, no id, a second name while the first has arguments",
        [calls(piece(name="f", args='{"x":1}')), calls(piece(name="g", args="{}")), CALLED],
        [F("f", '{"x":1}'), F("g", "{}")],
    ),
    Case(
        "no index: the id, then the name",
        [calls(piece(id="a")), calls(piece(name="f")), calls(piece(args=J)), CALLED],
        [F("f", J, "a")],
    ),
    Case(
        "first index is 1",
        [text("T"), call(1, "a", "f", ""), call(1, args=""), call(1, args=J), CALLED],
        [M("T"), F("f", J, "a")],
    ),
    Case(
        "indexes with gaps and backwards",
        [call(5, "a", "f", J), call(2, "b", "g", J), CALLED],
        [F("f", J, "a"), F("g", J, "b")],
    ),
    Case(
        "index as a string",
        [calls(piece("0", "a", "f", '{"x"')), calls(piece("0", args=":1}")), CALLED],
        [F("f", '{"x":1}', "a")],
        checked=False,
    ),
    Case(
        "several entries of one index in one chunk",
        [calls(piece(0, "a", "f", '{"'), piece(0, args='x":'), piece(0, args="1}")), CALLED],
        [F("f", '{"x":1}', "a")],
    ),
    Case(
        "the name comes last",
        [call(0, "a", args='{"x":'), call(0, args="1}"), call(0, name="f"), CALLED],
        [F("f", '{"x":1}', "a")],
        checked=False,
    ),
    Case(
        "two names come last",
        [calls(piece(0, args='{"n":0}'), piece(1, args='{"n":1}')), call(1, "b", "g"), call(0, "a", "f"), CALLED],
        [F("f", '{"n":0}', "a"), F("g", '{"n":1}', "b")],
        checked=False,
    ),
    Case(
        "the name comes last, text before it",
        [call(0, "a", args=J), text("T"), call(0, name="f"), CALLED],
        [M("T"), F("f", J, "a")],
        checked=False,
    ),
    Case(
        "OpenRouter: id and name again on a second delta",
        [call(0, "a", "f", None, type="function"), call(0, "a", "f", J), CALLED],
        [F("f", J, "a")],
    ),
    Case(
        "Together: a finish on every call",
        [
            call(0, "a", "f", ""),
            chunk({"tool_calls": [piece(0, args=J)]}, "tool_calls"),
            call(1, "b", "g", ""),
            chunk({"tool_calls": [piece(1, args=J)]}, "tool_calls"),
        ],
        [F("f", J, "a"), F("g", J, "b")],
    ),
    Case(
        "avian ids",
        [call(0, "functions.get:0", "get", J), call(1, "functions.get:1", "get", "[]"), CALLED],
        [F("get", J, "functions.get:0"), F("get", "[]", "functions.get:1")],
    ),
    Case(
        "lmdeploy: index 0 for all, ids change, in one chunk",
        [calls(piece(0, "a", "f", '{"n":1}'), piece(0, "b", "f", '{"n":2}')), CALLED],
        [F("f", '{"n":1}', "a"), F("f", '{"n":2}', "b")],
    ),
    Case(
        "Gemini proxy: second call's arguments on index 0",
        [call(0, "a", "f", '{"n":1}'), call(1, "b", "g", ""), call(0, "b", args='{"n":2}'), CALLED],
        [F("f", '{"n":1}', "a"), F("g", '{"n":2}', "b")],
    ),
    Case(
        "alibaba: type and an empty id on continuation",
        [
            call(0, "a", "f", "", type="function"),
            call(0, "", args='{"x":', type="function"),
            call(0, "", args="1}", type="function"),
            chunk({"tool_calls": [piece(0, "", args="")]}),
            CALLED,
        ],
        [F("f", '{"x":1}', "a")],
    ),
    # Ids and names
    Case("a name repeated", [call(0, "a", "f"), call(0, "a", "f"), call(0, args=J), CALLED], [F("f", J, "a")]),
    Case(
        "a name that grows",
        [call(0, "a", "ge"), call(0, "a", "get"), call(0, "a", "get_it"), call(0, args=J), CALLED],
        [F("get_it", J, "a")],
    ),
    Case(
        "a name in letters that repeat",
        [call(0, "a", "b"), call(0, name="o"), call(0, name="ok"), call(0, args=J), CALLED],
        [F("book", J, "a")],
    ),
    Case("control-token residue", [call(0, "a", "get_it<|channel|>commentary", J), CALLED], [F("get_it", J, "a")]),
    Case(
        "control-token residue in a piece of its own",
        [call(0, "a", "get_it"), call(0, name="<|channel|>json"), call(0, args=J), CALLED],
        [F("get_it", J, "a")],
    ),
    Case("an id that never comes", [call(0, name="f", args=J), CALLED], [F("f", J)]),
    Case(
        "no name ever, stop",
        [call(0, "a", args=J), STOP],
        [],
        "failed",
        "server_error",
        says=("tool call 0 never got a name",),
    ),
    Case(
        "no name ever, beside a good call",
        [call(0, "a", "f", J), call(1, "b", args=J), CALLED],
        [cut(F("f", J, "a"))],
        "failed",
        "server_error",
        says=("tool call 1 never got a name",),
    ),
    Case(
        "no name ever, text before",
        [text("T"), call(0, "a", args=J), CALLED],
        [cut(M("T"))],
        "failed",
        "server_error",
        says=("tool call 0 never got a name",),
    ),
    Case("no name ever, length", [text("T"), call(0, "a", args=J), LENGTH], [cut(M("T"))], "incomplete", checked=False),
    Case(
        "no name ever, no finish",
        [text("T"), call(0, "a", args=J)],
        [cut(M("T"))],
        "failed",
        "server_error",
        says=("tool call 0",),
        checked=False,
    ),
    # Arguments
    Case(
        "an object as arguments",
        [call(0, "a", "f", {"x": 1, "é": [None, True]}), CALLED],
        [F("f", '{"x": 1, "\\u00e9": [null, true]}', "a")],
    ),
    Case("an empty object as arguments", [call(0, "a", "f", {}), CALLED], [F("f", "{}", "a")]),
    Case("null arguments", [call(0, "a", "f", None), CALLED], [F("f", "{}", "a")]),
    Case(
        "a first {} is dropped when more comes",
        [call(0, "a", "f", "{}"), call(0, args='{"x":'), call(0, args="1}"), CALLED],
        [F("f", '{"x":1}', "a")],
    ),
    Case("a first {} alone", [call(0, "a", "f", "{}"), call(0, args=""), CALLED], [F("f", "{}", "a")]),
    Case("a first {} then {}", [call(0, "a", "f", "{}"), call(0, args="{}"), CALLED], [F("f", "{}", "a")]),
    Case("a first {} at length", [call(0, "a", "f", "{}"), LENGTH], [cut(F("f", "{}", "a"))], "incomplete"),
    Case(
        "a first {} then a second call",
        [call(0, "a", "f", "{}"), call(1, "b", "g", "{}"), CALLED],
        [F("f", "{}", "a"), F("g", "{}", "b")],
    ),
    Case("a second {} is kept", [call(0, "a", "f", ""), call(0, args="{}"), CALLED], [F("f", "{}", "a")]),
    Case("empty arguments at length stay empty", [call(0, "a", "f", ""), LENGTH], [cut(F("f", "", "a"))], "incomplete"),
    Case(
        "empty arguments of the first of two at length",
        [call(0, "a", "f", ""), call(1, "b", "g", '{"x"'), LENGTH],
        [cut(F("f", "", "a")), cut(F("g", '{"x"', "b"))],
        "incomplete",
    ),
    Case("truncated under stop", [call(0, "a", "f", '{"x": "ab'), STOP], [F("f", '{"x": "ab', "a")], checked=False),
    Case(
        "truncated under length",
        [call(0, "a", "f", '{"x": "ab'), LENGTH],
        [cut(F("f", '{"x": "ab', "a"))],
        "incomplete",
    ),
    Case(
        "truncated under content_filter",
        [call(0, "a", "f", '{"x": "ab'), FILTERED],
        [cut(F("f", '{"x": "ab', "a"))],
        "incomplete",
    ),
    Case(
        "arguments that are no JSON",
        [call(0, "a", "f", "city=Basel"), CALLED],
        [F("f", "city=Basel", "a")],
        checked=False,
    ),
    Case(
        "lone surrogates escaped in arguments",
        [call(0, "a", "f", '{"x":"\\udc80"}'), CALLED],
        [F("f", '{"x":"\\udc80"}', "a")],
    ),
    Case(
        "U+2028 and NUL in arguments",
        [call(0, "a", "f", '{"x":"\u2028\\u0000"}'), CALLED],
        [F("f", '{"x":"\u2028\\u0000"}', "a")],
    ),
    Case(
        "deep arguments",
        [call(0, "a", "f", "[" * 3000), call(0, args="]" * 2999), text("T"), call(0, args="]"), CALLED],
        [F("f", "[" * 3000 + "]" * 3000, "a"), M("T")],
        checked=False,
    ),
    # Kinds of calls
    Case(
        "legacy function_call",
        [
            chunk({"function_call": {"name": "f", "arguments": ""}}),
            chunk({"function_call": {"arguments": '{"x":'}}),
            chunk({"function_call": {"arguments": "1}"}}),
            chunk({}, "function_call"),
        ],
        [F("f", '{"x":1}')],
    ),
    Case(
        "legacy function_call mirrors tool_calls",
        [
            calls(piece(0, "a", "f", '{"x":'), function_call={"name": "f", "arguments": '{"x":'}),
            calls(piece(0, args="1}"), function_call={"arguments": "1}"}),
            CALLED,
        ],
        [F("f", '{"x":1}', "a")],
    ),
    Case(
        "a null function_call beside tool_calls",
        [calls(piece(0, "a", "f", J), function_call=None), CALLED],
        [F("f", J, "a")],
    ),
    Case(
        "legacy function_call without arguments",
        [chunk({"function_call": {"name": "f"}}), chunk({}, "function_call")],
        [F("f", "{}")],
    ),
    Case(
        "a custom call",
        [custom(0, "a", "run", ""), custom(0, input="SELECT"), custom(0, input=" 1"), CALLED],
        [X("run", "SELECT 1", "a")],
    ),
    Case(
        "a custom call, then text: held to the end",
        [custom(0, "a", "run", "x"), text("T"), custom(0, input="y"), CALLED],
        [X("run", "xy", "a"), M("T")],
    ),
    Case(
        "a custom call with JSON input, then text, then more input",
        [custom(0, "a", "run", "{}"), text("T"), custom(0, input="{}"), CALLED],
        [X("run", "{}{}", "a"), M("T")],
    ),
    Case("a custom call without input", [custom(0, "a", "run", ""), CALLED], [X("run", "", "a")]),
    Case("a custom call at length", [custom(0, "a", "run", "SEL"), LENGTH], [cut(X("run", "SEL", "a"))], "incomplete"),
    Case(
        "two custom calls and a function call",
        [custom(0, "a", "run", "x"), custom(1, "b", "run", "y"), call(2, "c", "f", J), custom(0, input="z"), CALLED],
        [X("run", "xz", "a"), X("run", "y", "b"), F("f", J, "c")],
    ),
    Case(
        "a function call, then a custom call",
        [call(0, "c", "f", J), custom(1, "a", "run", "x\n"), CALLED],
        [F("f", J, "c"), X("run", "x\n", "a")],
    ),
    Case(
        "custom continuation without a type",
        [custom(0, "a", "run", "x"), calls({"index": 0, "custom": {"input": "y"}}), CALLED],
        [X("run", "xy", "a")],
    ),
    # Reasoning
    *[
        Case(
            f"reasoning in {key}",
            [
                chunk({key: "th", "content": ""}),
                chunk({key: "ink", "content": None}),
                chunk({key: None, "content": "T"}),
                STOP,
            ],
            [R("think"), M("T")],
        )
        for key in ("reasoning_content", "reasoning", "reasoning_text")
    ],
    Case(
        "the same text in two fields",
        [
            chunk(
                {
                    "reasoning": "ab",
                    "reasoning_content": "ab",
                    "reasoning_details": [{"type": "reasoning.text", "text": "ab"}],
                }
            ),
            text("T"),
            STOP,
        ],
        [R("ab"), M("T")],
    ),
    Case(
        "different texts are joined",
        [chunk({"reasoning_content": "a", "reasoning": "b"}), text("T"), STOP],
        [R("ab"), M("T")],
        checked=False,
    ),
    Case("reasoning and text in one chunk", [chunk({"reasoning": "a", "content": "T"}), STOP], [R("a"), M("T")]),
    Case(
        "reasoning.summary details",
        [chunk({"reasoning_details": [{"type": "reasoning.summary", "summary": "sum"}]}), text("T"), STOP],
        [R("sum"), M("T")],
    ),
    Case(
        "details with two texts",
        [
            chunk(
                {
                    "reasoning_details": [
                        {"type": "reasoning.text", "text": "a"},
                        {"type": "reasoning.text", "text": "b"},
                    ],
                    "reasoning": "ab",
                }
            ),
            text("T"),
            STOP,
        ],
        [R("ab"), M("T")],
    ),
    Case(
        "thinking blocks alone",
        [
            chunk({"thinking_blocks": [{"type": "thinking", "thinking": "th", "signature": ""}]}),
            chunk({"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "SIG"}]}),
            text("T"),
            STOP,
        ],
        [R("th"), M("T")],
    ),
    Case(
        "a redacted thinking block",
        [chunk({"thinking_blocks": [{"type": "redacted_thinking", "data": "ENC"}]}), text("T"), STOP],
        [R(""), M("T")],
        paths={"output.0.encrypted_content": "ENC"},
    ),
    Case(
        "encrypted reasoning only",
        [
            chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "ENC", "id": "rs_x", "index": 0}]}),
            text("T"),
            STOP,
        ],
        [R(""), M("T")],
        paths={"output.0.encrypted_content": "ENC"},
    ),
    Case(
        "an encrypted piece within its reasoning",
        [think("a"), chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "ENC"}]}), text("T"), STOP],
        [R("a"), M("T")],
        paths={"output.0.encrypted_content": "ENC"},
    ),
    Case(
        "two encrypted pieces: the first data",
        [
            chunk(
                {
                    "reasoning_details": [
                        {"type": "reasoning.encrypted", "data": "E1"},
                        {"type": "reasoning.encrypted", "data": "E2"},
                    ]
                }
            ),
            text("T"),
            STOP,
        ],
        [R(""), M("T")],
        paths={"output.0.encrypted_content": "E1", "output.0.provider_data.reasoning_details.1.data": "E2"},
    ),
    Case(
        "a late encrypted piece never splits a message",
        [text("A"), chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "ENC"}]}), text("B"), STOP],
        [M("AB"), R("")],
        paths={"output.1.encrypted_content": "ENC"},
    ),
    Case(
        "a late encrypted piece with nothing after",
        [think("r"), text("A"), chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "ENC"}]}), STOP],
        [R("r"), M("A"), R("")],
        paths={"output.2.encrypted_content": "ENC"},
    ),
    Case(
        "a late encrypted piece inside a call",
        [
            call(0, "a", "f", '{"x":'),
            chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "ENC", "id": "other"}]}),
            call(0, args="1}"),
            text("B"),
            STOP,
        ],
        [F("f", '{"x":1}', "a"), R(""), M("B")],
        paths={"output.1.encrypted_content": "ENC"},
    ),
    Case(
        "a piece whose id is a call's",
        [
            calls(piece(0, "a", "f", J), reasoning_details=[{"type": "reasoning.encrypted", "data": "ENC", "id": "a"}]),
            CALLED,
        ],
        [F("f", J, "a")],
        paths={"output.0.provider_data.reasoning_details.0.data": "ENC"},
    ),
    Case(
        "a piece whose id is a call's, in a later chunk",
        [
            call(0, "a", "f", J),
            chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "ENC", "id": "a"}]}),
            CALLED,
        ],
        [F("f", J, "a")],
        paths={"output.0.provider_data.reasoning_details.0.data": "ENC"},
    ),
    Case(
        "a late signature of a thinking that is closed",
        [
            chunk({"reasoning_details": [{"type": "reasoning.text", "text": "r", "index": 0}]}),
            text("A"),
            chunk({"reasoning_details": [{"type": "reasoning.text", "signature": "SIG", "index": 0}]}),
            text("B"),
            STOP,
        ],
        [R("r"), M("AB"), R("")],
    ),
    Case(
        "a typed content list",
        [
            text([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]),
            text([{"type": "thinking", "thinking": []}]),
            text([{"type": "text", "text": "T"}]),
            text("U"),
            STOP,
        ],
        [R("hm"), M("TU")],
    ),
    Case(
        "thinking and text in one typed list",
        [
            text(
                [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "closed": True},
                    {"type": "text", "text": "T"},
                ]
            ),
            STOP,
        ],
        [R("hm"), M("T")],
    ),
    Case(
        "a typed list in another order",
        [
            text(
                [
                    {"type": "text", "text": "T"},
                    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                    {"type": "text", "text": "U"},
                ]
            ),
            STOP,
        ],
        [R("hm"), M("TU")],
    ),
    Case(
        "reasoning as text parts",
        [think("a"), text("T"), STOP],
        [R("a"), M("T")],
        options={"reasoning": "text"},
        paths={"output.0.summary": [], "output.0.content.0.type": "reasoning_text"},
    ),
    Case("think tags stay without a profile", [text("<think>a</think>b"), STOP], [M("<think>a</think>b")]),
    Case(
        "reasoning.encrypted with a null data",
        [chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": None}], "content": "T"}), STOP],
        [M("T")],
        checked=False,
    ),
    Case("only reasoning, then stop", [think("a"), STOP], [R("a")]),
    Case("only reasoning, then length", [think("a"), LENGTH], [R("a")], "incomplete"),
    Case("reasoning, then whitespace text, length", [think("a"), text("\n"), LENGTH], [R("a")], "incomplete"),
]


def cite(url: str, title: str = "t", start: int = 0, end: int = 1) -> Json:
    return {
        "type": "url_citation",
        "url_citation": {"url": url, "title": title, "start_index": start, "end_index": end},
    }


def logprob(token: str, bytes: Any = ..., top: Any = ...) -> Json:
    more = {k: v for k, v in (("bytes", bytes), ("top_logprobs", top)) if v is not ...}
    return {"token": token, "logprob": -0.5, **more}


def probed(value: Any, *tokens: Json, **parts: Any) -> Json:
    return chunk(
        {"content": value} if value is not None else {}, choice={"logprobs": {"content": list(tokens), **parts}}
    )


def usage(prompt: Any, completion: Any, total: Any = ..., **more: Any) -> Json:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        **({} if total is ... else {"total_tokens": total}),
        **more,
    }


MARK = "output.0.content.0.annotations"
PROBS = "output.0.content.0.logprobs"
CASES += [
    # Annotations
    Case(
        "an annotation beside its text",
        [text("a", annotations=[cite("http://x")]), STOP],
        [M("a")],
        paths={f"{MARK}.0.url": "http://x", f"{MARK}.0.end_index": 1},
    ),
    Case(
        "an annotation before any text",
        [chunk({"annotations": [cite("http://x")]}), text("a"), STOP],
        [M("a")],
        paths={f"{MARK}.0.url": "http://x"},
    ),
    Case(
        "an annotation, reasoning, then text",
        [chunk({"annotations": [cite("http://x")]}), think("r"), text("a"), STOP],
        [R("r"), M("a")],
        paths={"output.1.content.0.annotations.0.url": "http://x"},
    ),
    Case(
        "equal annotations once",
        [
            text("a", annotations=[cite("http://x"), cite("http://x")]),
            text("b", annotations=[cite("http://x"), cite("http://y")]),
            STOP,
        ],
        [M("ab")],
        paths={f"{MARK}.1.url": "http://y", f"{MARK}.length": 2},
    ),
    Case(
        "an annotation alone after the text",
        [text("a"), chunk({"annotations": [cite("http://x")]}), STOP],
        [M("a")],
        paths={f"{MARK}.0.url": "http://x"},
    ),
    Case(
        "an annotation in the finish chunk",
        [text("a"), chunk({"annotations": [cite("http://x")]}, "stop")],
        [M("a")],
        paths={f"{MARK}.0.url": "http://x"},
    ),
    Case(
        "an annotation after the finish chunk",
        [text("a"), STOP, chunk({"annotations": [cite("http://x")]})],
        [M("a")],
        paths={f"{MARK}.0.url": "http://x"},
    ),
    Case(
        "flat citations on every chunk",
        [chunk({"content": t}, citations=["http://x", "http://y"]) for t in "abc"]
        + [chunk({}, "stop", citations=["http://x", "http://y"])],
        [M("abc")],
        paths={f"{MARK}.0.url": "http://x", f"{MARK}.1.url": "http://y", f"{MARK}.length": 2},
    ),
    Case(
        "flat citations that grow",
        [
            chunk({"content": "a"}, citations=["http://x"]),
            chunk({"content": "b"}, "stop", citations=["http://x", "http://y"]),
        ],
        [M("ab")],
        paths={f"{MARK}.length": 2},
    ),
    Case(
        "annotations in held-back text",
        [
            call(0, "c", "f", '{"x":'),
            text("a", annotations=[cite("http://x")]),
            chunk({"annotations": [cite("http://y")]}),
            call(0, args="1}"),
            STOP,
        ],
        [F("f", '{"x":1}', "c"), M("a")],
        paths={"output.1.content.0.annotations.1.url": "http://y"},
    ),
    Case(
        "an annotation and no text ever",
        [chunk({"annotations": [cite("http://x")]}), call(0, "c", "f", J), CALLED],
        [F("f", J, "c")],
    ),
    Case(
        "an annotation of white space that waits",
        [text("\n", annotations=[cite("http://x")]), text("a"), STOP],
        [M("\na")],
        paths={f"{MARK}.0.url": "http://x"},
    ),
    Case(
        "perplexity",
        [
            chunk(
                {"role": "assistant", "content": "a"},
                choice={"message": {"role": "assistant", "content": "a"}},
                object="chat.completion",
                usage=usage(3, 1, 4),
                citations=["http://x"],
            ),
            chunk(
                {"role": "assistant", "content": "b"},
                "stop",
                choice={"message": {"role": "assistant", "content": "ab"}},
                object="chat.completion.done",
                usage=usage(3, 2, 5),
                citations=["http://x"],
            ),
        ],
        [M("ab")],
        usage=(3, 2, 5),
        paths={f"{MARK}.length": 1},
    ),
    # Logprobs
    Case(
        "logprobs",
        [probed("a", logprob("a", [97], [])), probed("b", logprob("b", [98], [])), STOP],
        [M("ab")],
        paths={f"{PROBS}.0.token": "a", f"{PROBS}.1.token": "b"},
    ),
    Case(
        "null bytes are the UTF-8",
        [probed("é", logprob("é", None, [{"token": "é", "logprob": -1, "bytes": None}])), STOP],
        [M("é")],
        paths={f"{PROBS}.0.bytes": [195, 169], f"{PROBS}.0.top_logprobs.0.bytes": [195, 169]},
    ),
    Case(
        "no bytes and no top_logprobs",
        [probed("a", logprob("a")), STOP],
        [M("a")],
        paths={f"{PROBS}.0.bytes": [97], f"{PROBS}.0.top_logprobs": []},
    ),
    Case(
        "logprobs without text wait",
        [probed("", logprob("x")), probed("a", logprob("a")), STOP],
        [M("a")],
        paths={f"{PROBS}.0.token": "x", f"{PROBS}.1.token": "a"},
    ),
    Case(
        "logprobs before any text",
        [probed(None, logprob("x")), text("a"), STOP],
        [M("a")],
        paths={f"{PROBS}.0.token": "x"},
    ),
    Case(
        "logprobs of white space that waits",
        [probed("\n", logprob("\n")), probed("a", logprob("a")), STOP],
        [M("\na")],
        paths={f"{PROBS}.0.token": "\n", f"{PROBS}.1.token": "a"},
    ),
    Case(
        "logprobs of white space that is dropped",
        [probed("\n", logprob("\n")), call(0, "c", "f", J), text("a"), STOP],
        [F("f", J, "c"), M("a")],
        paths={"output.1.content.0.logprobs": []},
        checked=False,
    ),
    Case(
        "logprobs after all text are dropped with a warning",
        [probed("a", logprob("a")), probed("", logprob("x")), STOP],
        [M("a")],
        paths={f"{PROBS}.length": 1},
        warned=1,
        checked=False,
    ),
    Case(
        "logprobs in held-back text",
        [call(0, "c", "f", '{"x":'), probed("a", logprob("a")), probed("b", logprob("b")), call(0, args="1}"), STOP],
        [F("f", '{"x":1}', "c"), M("ab")],
        paths={"output.1.content.0.logprobs.1.token": "b"},
    ),
    Case(
        "null logprobs",
        [
            chunk({"content": "a"}, choice={"logprobs": None}),
            chunk({"content": "b"}, choice={"logprobs": {"content": None, "refusal": None}}),
            STOP,
        ],
        [M("ab")],
        paths={PROBS: []},
    ),
    Case(
        "logprobs of a refusal",
        [chunk({"refusal": "no"}, choice={"logprobs": {"content": None, "refusal": [logprob("no")]}}), STOP],
        [M("refusal:no")],
    ),
    Case(
        "logprobs of reasoning",
        [
            chunk(
                {"reasoning_content": "r"}, choice={"logprobs": {"content": None, "reasoning_content": [logprob("r")]}}
            ),
            text("a"),
            STOP,
        ],
        [R("r"), M("a")],
    ),
    Case(
        "deepseek: logprobs.content of reasoning is not the text's",
        [
            chunk(
                {"reasoning_content": "r", "content": None},
                choice={"logprobs": {"content": None, "reasoning_content": [logprob("r")]}},
            ),
            probed("a", logprob("a")),
            STOP,
        ],
        [R("r"), M("a")],
        paths={"output.1.content.0.logprobs.0.token": "a", "output.1.content.0.logprobs.length": 1},
    ),
    Case(
        "an infinite logprob",
        [probed("a", {"token": "a", "logprob": -9999.0, "bytes": [97], "top_logprobs": []}), STOP],
        [M("a")],
    ),
    # Audio, images, strictness
    Case(
        "audio",
        [chunk({"audio": {"id": "au", "data": "AAAA"}}), chunk({"audio": {"data": "BBBB"}}), text("a"), STOP],
        [M("a")],
        warned=1,
    ),
    Case(
        "images",
        [
            chunk(
                {"content": "a", "images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}
            ),
            STOP,
        ],
        [M("a")],
        warned=1,
    ),
    Case(
        "audio with strict",
        [text("a"), chunk({"audio": {"id": "au", "data": "AAAA"}}), STOP],
        [cut(M("a"))],
        "failed",
        "server_error",
        options={"strict": True},
        checked=False,
    ),
    # Metadata
    Case("service tier", [text("a"), chunk({}, "stop", service_tier="flex")], [M("a")], paths={"service_tier": "flex"}),
    Case(
        "a tier of Groq's own",
        [chunk({"content": "a"}, "stop", service_tier="on_demand")],
        [M("a")],
        paths={"service_tier": "default", "provider_data.service_tier": "on_demand"},
    ),
    Case(
        "what the provider said",
        [chunk({"content": "a"}, "stop", choice={"native_finish_reason": "end_turn"}, system_fingerprint="fp_1")],
        [M("a")],
        paths={
            "provider_data.id": "chatcmpl-7",
            "provider_data.system_fingerprint": "fp_1",
            "provider_data.finish_reason": "stop",
            "provider_data.native_finish_reason": "end_turn",
        },
    ),
    Case(
        "a thought signature",
        [calls(piece(id="c", name="f", args="{}", extra_content={"google": {"thought_signature": "SIG"}})), CALLED],
        [F("f", "{}", "c")],
        paths={"output.0.provider_data.extra_content.google.thought_signature": "SIG"},
    ),
    # Usage
    Case("usage first", [bare(usage=usage(1, 2, 3)), text("a"), STOP], [M("a")], usage=(1, 2, 3)),
    Case(
        "usage on every chunk, the last non-null",
        [
            chunk({"content": "a"}, usage=usage(1, 1, 2)),
            chunk({"content": "b"}, usage=usage(1, 2, 3)),
            chunk({}, "stop", usage=None),
        ],
        [M("ab")],
        usage=(1, 2, 3),
    ),
    Case(
        "usage with null counts until the last",
        [chunk({"content": "a"}, usage=usage(None, None, None)), chunk({}, "stop", usage=usage(4, 5, 9))],
        [M("a")],
        usage=(4, 5, 9),
    ),
    Case("usage in the finish chunk", [text("a"), chunk({}, "stop", usage=usage(4, 5, 9))], [M("a")], usage=(4, 5, 9)),
    Case("usage alone", [text("a"), STOP, USAGE], [M("a")], usage=(11, 5, 16)),
    Case(
        "usage with a choice that repeats the finish",
        [text("a"), STOP, chunk({"content": ""}, "stop", usage=usage(4, 5, 9))],
        [M("a")],
        usage=(4, 5, 9),
    ),
    Case(
        "usage under x_groq",
        [
            chunk({"content": "a"}, x_groq={"id": "r"}),
            chunk({}, "stop", x_groq={"id": "r", "usage": usage(4, 5, 9, queue_time=0.1)}),
        ],
        [M("a")],
        usage=(4, 5, 9),
    ),
    Case(
        "x_groq and a usage chunk",
        [chunk({"content": "a"}, "stop", x_groq={"usage": usage(4, 5, 9)}), bare(usage=usage(4, 6, 10))],
        [M("a")],
        usage=(4, 6, 10),
    ),
    Case("total missing", [text("a"), STOP, bare(usage=usage(4, 5))], [M("a")], usage=(4, 5, 9)),
    Case("total wrong", [text("a"), STOP, bare(usage=usage(4, 5, 100))], [M("a")], usage=(4, 5, 9)),
    Case("total null", [text("a"), STOP, bare(usage=usage(4, 5, None))], [M("a")], usage=(4, 5, 9)),
    Case(
        "xAI counts",
        [text("a"), STOP, bare(usage=usage(10, 5, 35, completion_tokens_details={"reasoning_tokens": 20}))],
        [M("a")],
        usage=(10, 25, 35),
        paths={"usage.output_tokens_details.reasoning_tokens": 20},
    ),
    Case(
        "reasoning tokens inside completion",
        [text("a"), STOP, bare(usage=usage(10, 25, 35, completion_tokens_details={"reasoning_tokens": 20}))],
        [M("a")],
        usage=(10, 25, 35),
        paths={"usage.output_tokens_details.reasoning_tokens": 20},
    ),
    Case(
        "null details",
        [
            text("a"),
            STOP,
            bare(
                usage=usage(1, 2, 3, prompt_tokens_details=None, completion_tokens_details={"reasoning_tokens": None})
            ),
        ],
        [M("a")],
        usage=(1, 2, 3),
        paths={
            "usage.output_tokens_details.reasoning_tokens": 0,
            "usage.input_tokens_details.cached_tokens": 0,
            "usage.input_tokens_details.cache_write_tokens": 0,
        },
    ),
    Case(
        "cached tokens",
        [text("a"), STOP, bare(usage=usage(9, 2, 11, prompt_tokens_details={"cached_tokens": 7}))],
        [M("a")],
        usage=(9, 2, 11),
        paths={"usage.input_tokens_details.cached_tokens": 7},
    ),
    Case("usage empty object", [text("a"), chunk({}, "stop", usage={})], [M("a")], checked=False),
    Case("zero usage is usage", [text("a"), chunk({}, "stop", usage=usage(0, 0, 0))], [M("a")], usage=(0, 0, 0)),
    Case(
        "llama.cpp: two usage chunks",
        [
            text("a"),
            STOP,
            bare(usage=usage(1, 2, 3)),
            chunk({"content": "z"}, choice={"index": 1}),
            chunk({}, "stop", choice={"index": 1}),
            bare(usage=usage(1, 4, 5)),
        ],
        [M("a")],
        usage=(1, 4, 5),
    ),
    # Endings
    *[
        Case(f"finish {word}", [text("a"), chunk({}, word)], [M("a")])
        for word in ("stop", "tool_calls", "function_call", "eos", "end_turn", "STOP", "weird-word")
    ],
    *[
        Case(
            f"finish {word}",
            [text("a"), chunk({}, word)],
            [cut(M("a"))],
            "incomplete",
            paths={"incomplete_details.reason": "max_output_tokens"},
        )
        for word in ("length", "max_tokens", "LENGTH", "Max_Tokens")
    ],
    *[
        Case(
            f"finish {word}",
            [text("a"), chunk({}, word)],
            [cut(M("a"))],
            "incomplete",
            paths={"incomplete_details.reason": "content_filter"},
        )
        for word in ("content_filter", "safety", "SAFETY")
    ],
    Case(
        "length without output",
        [ROLE, LENGTH],
        [],
        "incomplete",
        paths={"incomplete_details.reason": "max_output_tokens"},
    ),
    Case(
        "filtered without output",
        [ROLE, FILTERED, USAGE],
        [],
        "incomplete",
        usage=(11, 5, 16),
        paths={"incomplete_details.reason": "content_filter"},
    ),
    Case("finish error", [text("a"), chunk({}, "error")], [cut(M("a"))], "failed", "server_error"),
    Case(
        "finish error with usage",
        [text("a"), chunk({}, "Error"), USAGE],
        [cut(M("a"))],
        "failed",
        "server_error",
        usage=(11, 5, 16),
    ),
    Case("finish error without output", [chunk({}, "error")], [], "failed", "server_error"),
    Case(
        "gravest: stop then length",
        [text("a"), STOP, LENGTH],
        [cut(M("a"))],
        "incomplete",
        paths={"incomplete_details.reason": "max_output_tokens"},
    ),
    Case(
        "gravest: length then stop",
        [text("a"), LENGTH, STOP],
        [cut(M("a"))],
        "incomplete",
        paths={"incomplete_details.reason": "max_output_tokens"},
    ),
    Case(
        "gravest: length then filter then stop",
        [text("a"), LENGTH, FILTERED, STOP],
        [cut(M("a"))],
        "incomplete",
        paths={"incomplete_details.reason": "content_filter"},
    ),
    Case("gravest: error then stop", [text("a"), chunk({}, "error"), STOP], [cut(M("a"))], "failed", "server_error"),
    Case(
        "gravest: filter then error", [text("a"), FILTERED, chunk({}, "error")], [cut(M("a"))], "failed", "server_error"
    ),
    Case("finish empty is none", [text("a"), chunk({}, "")], [cut(M("a"))], "failed", "server_error"),
    Case("calls then stop", [call(0, "a", "f", J), STOP], [F("f", J, "a")]),
    Case("no finish, [DONE]", [text("a")], [M("a")], done=True),
    Case("no finish, [DONE], a call", [call(0, "a", "f", J)], [F("f", J, "a")], done=True),
    Case("no finish, [DONE], only a role", [ROLE], [], done=True),
    Case("no chunk, [DONE]", [], [], "failed", "server_error", done=True),
    Case("no chunk", [], [], "failed", "server_error"),
    Case("only a role", [ROLE], [], "failed", "server_error"),
    Case("no finish, usage after the text", [text("a"), USAGE], [M("a")], usage=(11, 5, 16)),
    Case(
        "no finish, usage with an empty choice after the text",
        [text("a"), chunk({"content": ""}, usage=usage(1, 2, 3))],
        [M("a")],
        usage=(1, 2, 3),
    ),
    Case(
        "no finish, usage in the chunk of the last text",
        [text("a"), chunk({"content": "b"}, usage=usage(1, 2, 3))],
        [cut(M("ab"))],
        "failed",
        "server_error",
        usage=(1, 2, 3),
    ),
    Case(
        "no finish, usage, then text",
        [text("a"), USAGE, text("b")],
        [cut(M("ab"))],
        "failed",
        "server_error",
        usage=(11, 5, 16),
    ),
    Case(
        "no finish, usage on every chunk",
        [chunk({"content": t}, usage=usage(1, n, 1 + n)) for n, t in enumerate("abc")],
        [cut(M("abc"))],
        "failed",
        "server_error",
    ),
    Case(
        "no finish, usage on every chunk and one empty",
        [
            *[chunk({"content": t}, usage=usage(1, n, 1 + n)) for n, t in enumerate("abc")],
            chunk({}, usage=usage(1, 3, 4)),
        ],
        [M("abc")],
        usage=(1, 3, 4),
    ),
    Case("no finish, usage without choices, nothing else", [USAGE], [], usage=(11, 5, 16)),
    Case(
        "no finish, usage with a choice, nothing else", [chunk({}, usage=usage(1, 0, 1))], [], "failed", "server_error"
    ),
    Case("no finish, usage, white space after it", [text("a"), USAGE, text("\n")], [M("a\n")], usage=(11, 5, 16)),
    Case("no finish, a call, usage", [call(0, "a", "f", J), USAGE], [F("f", J, "a")]),
    Case(
        "no finish, usage, arguments after it",
        [call(0, "a", "f", '{"x"'), USAGE, call(0, args=":1}")],
        [cut(F("f", '{"x":1}', "a"))],
        "failed",
        "server_error",
    ),
    Case("finish optional", [text("a")], [M("a")], options={"profile": Profile("p", finish_reason_optional=True)}),
    Case(
        "finish optional, no output",
        [ROLE],
        [],
        "failed",
        "server_error",
        options={"profile": Profile("p", finish_reason_optional=True)},
    ),
    Case(
        "finish optional, only white space",
        [text("\n")],
        [],
        "failed",
        "server_error",
        options={"profile": Profile("p", finish_reason_optional=True)},
    ),
    Case(
        "snowflake: no finish key, usage at the end",
        [
            {
                "id": "",
                "created": 0,
                "model": "claude",
                "object": "chat.completion.chunk",
                "system_fingerprint": "",
                "choices": [
                    {
                        "index": 0,
                        "delta": {"content": "a", "refusal": "", "tool_calls": None},
                        "logprobs": {"content": None, "refusal": None},
                    }
                ],
            },
            {"id": "", "created": 0, "model": "claude", "choices": [], "usage": usage(1, 2, 3)},
        ],
        [M("a")],
        usage=(1, 2, 3),
    ),
    # Errors
    Case(
        "an error object first",
        [{"error": {"message": "boom", "code": 500}}],
        [],
        "failed",
        "server_error",
        says=("boom",),
    ),
    Case(
        "an error object after text",
        [text("a"), {"error": {"message": "boom", "type": "server_error"}}],
        [cut(M("a"))],
        "failed",
        "server_error",
        says=("boom",),
    ),
    Case(
        "an error after a finish",
        [text("a"), STOP, {"error": {"message": "boom"}}],
        [cut(M("a"))],
        "failed",
        "server_error",
        says=("boom",),
    ),
    Case(
        "an error ends the stream",
        [text("a"), {"error": {"message": "boom"}}, text("b"), STOP],
        [cut(M("a"))],
        "failed",
        "server_error",
        checked=False,
    ),
    Case(
        "an error beside choices",
        [text("a"), chunk({"content": ""}, error={"code": 502, "message": "upstream"})],
        [cut(M("a"))],
        "failed",
        "server_error",
        says=("upstream",),
    ),
    Case(
        "an error beside a finish error",
        [text("a"), chunk({"content": ""}, "error", error={"code": 429, "message": "slow down"})],
        [cut(M("a"))],
        "failed",
        "rate_limit_exceeded",
        says=("slow down",),
    ),
    Case(
        "an error beside empty choices",
        [bare(error={"code": "502", "message": "upstream"})],
        [],
        "failed",
        "server_error",
        says=("upstream",),
    ),
    Case(
        "an error that is a string",
        [text("a"), {"error": "boom"}],
        [cut(M("a"))],
        "failed",
        "server_error",
        says=("boom",),
    ),
    Case("a null error is none", [chunk({"content": "a"}, error=None), STOP], [M("a")]),
    Case(
        "an error with usage before",
        [USAGE, text("a"), {"error": {"message": "boom"}}],
        [cut(M("a"))],
        "failed",
        "server_error",
        usage=(11, 5, 16),
    ),
    Case("429 as a number", [{"error": {"message": "x", "code": 429}}], [], "failed", "rate_limit_exceeded"),
    Case("429 as a string", [{"error": {"message": "x", "code": "429"}}], [], "failed", "rate_limit_exceeded"),
    Case(
        "rate words in the type",
        [{"error": {"message": "x", "type": "rate_limit_error"}}],
        [],
        "failed",
        "rate_limit_exceeded",
    ),
    Case(
        "rate words in the message",
        [{"error": {"message": "Rate limit reached for model"}}],
        [],
        "failed",
        "rate_limit_exceeded",
    ),
    Case(
        "context overflow by code",
        [{"error": {"message": "x", "code": "context_length_exceeded"}}],
        [],
        "failed",
        "context_length_exceeded",
    ),
    Case(
        "context overflow by words",
        [{"error": {"message": "This model's maximum context length is 8192 tokens", "code": 400}}],
        [],
        "failed",
        "context_length_exceeded",
    ),
    Case("another 4xx", [{"error": {"message": "bad field", "code": 400}}], [], "failed", "invalid_prompt"),
    Case("422 as a string", [{"error": {"message": "bad field", "code": "422"}}], [], "failed", "invalid_prompt"),
    Case("503", [{"error": {"message": "busy", "code": 503}}], [], "failed", "server_error"),
    Case(
        "groq: tool_use_failed stays in the message",
        [
            text("a"),
            {
                "error": {
                    "message": "Failed to call a function",
                    "type": "invalid_request_error",
                    "code": "tool_use_failed",
                    "failed_generation": "<f>",
                }
            },
        ],
        [cut(M("a"))],
        "failed",
        says=("Failed to call a function", "tool_use_failed"),
    ),
    Case("status_code beside", [{"error": {"message": "x", "status": 429}}], [], "failed", "rate_limit_exceeded"),
    *[
        Case(
            f"a secret: {secret[:14]}",
            [text("a"), {"error": {"message": f"refused {where}"}}],
            [cut(M("a"))],
            "failed",
            says=("refused",),
            unsaid=(secret,),
        )
        for secret, where in (
            ("sk-proj-abcdefghijklmnop1234567890", "Incorrect API key provided: sk-proj-abcdefghijklmnop1234567890."),
            ("sk-ant-api03-abcDEF_123-456", "key sk-ant-api03-abcDEF_123-456"),
            ("gsk_abcdefghijklmnopqrstuvwxyz012345", "key gsk_abcdefghijklmnopqrstuvwxyz012345 is bad"),
            ("eyJhbGciOiJIUzI1NiJ9.e30.abc", "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.e30.abc"),
            ("hunter2", "at https://user:hunter2@api.example.com/v1/x"),
            ("s3cretvalue99", "GET https://api.example.com/v1?api_key=s3cretvalue99&x=1"),
            ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "key=AIzaSyA1234567890abcdefghijklmnopqrstuv"),
            ("t0psecret-value-1", "api_key='t0psecret-value-1'"),
            ("xai-0123456789abcdefABCDEF", "x-api-key: xai-0123456789abcdefABCDEF"),
            ("dG9rZW46c2VjcmV0", "Authorization: Basic dG9rZW46c2VjcmV0"),
            ("jsonsecret77", '{"api_key": "jsonsecret77"}'),
            ("hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "token hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"),
            ("tok-998877665544", "access_token=tok-998877665544"),
        )
    ],
    # Shapes of chunks, provider by provider
    Case(
        "azure: empty first chunk, a choice without delta",
        [
            {
                "id": "",
                "object": "",
                "created": 0,
                "model": "",
                "choices": [],
                "prompt_filter_results": [{"prompt_index": 0}],
            },
            ROLE,
            chunk({"content": "a"}, choice={"content_filter_results": {}}),
            {**chunk(), "choices": [{"index": 0, "finish_reason": None, "content_filter_offsets": {}}]},
            STOP,
        ],
        [M("a")],
        paths={"model": "some-model"},
    ),
    Case(
        "a choice without delta has a message",
        [
            {
                **chunk(),
                "choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}],
            }
        ],
        [M("a")],
    ),
    Case(
        "a null delta",
        [{**chunk(), "choices": [{"index": 0, "delta": None, "finish_reason": None}]}, text("a"), STOP],
        [M("a")],
    ),
    Case("null choices", [{**chunk(), "choices": None}, text("a"), STOP], [M("a")]),
    Case("no choices key", [{"id": "x", "model": "m"}, text("a"), STOP], [M("a")]),
    Case("changing chunk ids", [{**text("a"), "id": "1"}, {**text("b"), "id": "2"}, {**STOP, "id": "stub"}], [M("ab")]),
    Case(
        "unknown keys everywhere",
        [
            chunk(
                {"content": "a", "token_id": 1, "channel": "final", "phase": "final_answer"},
                choice={"matched_stop": 1, "seed": 1, "text": "a"},
                obfuscation="xyz",
                p="ab",
                timings={},
            ),
            STOP,
        ],
        [M("a")],
    ),
    Case(
        "null tool_calls, null everything",
        [
            chunk(
                {
                    "role": None,
                    "content": None,
                    "reasoning_content": None,
                    "tool_calls": None,
                    "refusal": None,
                    "function_call": None,
                    "audio": None,
                }
            ),
            text("a"),
            STOP,
        ],
        [M("a")],
    ),
    Case("an empty tool_calls list", [chunk({"content": "a", "tool_calls": []}), STOP], [M("a")]),
    Case("a null entry in tool_calls", [chunk({"content": "a", "tool_calls": [None]}), STOP], [M("a")], checked=False),
    Case(
        "a call with a null function",
        [calls({"index": 0, "id": "a", "function": None}), call(0, name="f", args=J), CALLED],
        [F("f", J, "a")],
    ),
    Case(
        "xai: one chunk answer",
        [
            chunk(
                {"role": "assistant", "content": "T", "tool_calls": [piece(0, "a", "f", J)]},
                "tool_calls",
                usage=usage(1, 2, 3),
            )
        ],
        [M("T"), F("f", J, "a")],
        usage=(1, 2, 3),
    ),
    Case(
        "litellm-proxy: empty chunks after the finish",
        [text("a"), STOP, chunk({}), chunk({}, usage=usage(1, 2, 3)), chunk({})],
        [M("a")],
        usage=(1, 2, 3),
    ),
    Case(
        "writer: message and delta both",
        [
            chunk({"content": "a"}, choice={"message": {"content": "a", "tool_calls": None}}),
            chunk({}, "stop", choice={"message": {"content": ""}}),
        ],
        [M("a")],
    ),
    Case(
        "watsonx: an empty last piece in the finish chunk",
        [call(0, "a", "f", J), chunk({"tool_calls": [piece(0, None, "", "")]}, "tool_calls")],
        [F("f", J, "a")],
    ),
    Case(
        "refusal with usage and filter words",
        [refuse("I can"), refuse("not."), STOP, USAGE],
        [M("refusal:I cannot.")],
        usage=(11, 5, 16),
    ),
    Case(
        "cerebras: reasoning then an empty delta then text",
        [
            chunk({"reasoning": "r"}),
            chunk({}),
            chunk({"content": "a"}),
            chunk({}, "stop", usage=usage(1, 2, 3), time_info={}),
        ],
        [R("r"), M("a")],
        usage=(1, 2, 3),
    ),
    Case(
        "vercel: signature in a later text-less delta",
        [
            chunk(
                {
                    "reasoning": "r",
                    "reasoning_details": [
                        {"type": "reasoning.text", "text": "r", "format": "anthropic-claude-v1", "index": 0}
                    ],
                }
            ),
            chunk(
                {
                    "reasoning_details": [
                        {"type": "reasoning.text", "signature": "SIG", "format": "anthropic-claude-v1", "index": 0}
                    ]
                }
            ),
            text("a"),
            STOP,
        ],
        [R("r"), M("a")],
    ),
    Case(
        "snowflake: thinking only in details with an id",
        [
            chunk({"content": "", "reasoning_details": [{"type": "reasoning.text", "text": "r1", "id": "x"}]}),
            chunk({"content": "", "reasoning_details": [{"type": "reasoning.text", "text": "r2", "id": "x"}]}),
            text("a"),
            STOP,
        ],
        [R("r1r2"), M("a")],
    ),
]


def name(case: Case) -> str:
    return case.name


def judge(case: Case, events: list[Json], warnings: list[Any] | None = None) -> None:
    """Compare what came of a case with what must."""
    well_formed(events)
    last = events[-1]["response"]
    came = [told(item) for item in last["output"]]
    assert agrees(came, case.output), came
    assert last["status"] == case.status
    if case.error is not None:
        assert last["error"]["code"] == case.error
    message = (last["error"] or {}).get("message", "")
    for words in case.says:
        assert words in message
    whole = json.dumps(events)
    for words in case.unsaid:
        assert words not in whole
    if case.usage is not None:
        counts = last["usage"]
        assert counts
        assert (counts["input_tokens"], counts["output_tokens"], counts["total_tokens"]) == case.usage
    elif not any("usage" in json.dumps(one) for one in case.chunks):
        assert last["usage"] is None
    for path, value in case.paths.items():
        if path.endswith(".length"):
            assert len(at(last, path.removesuffix(".length"))) == value, path
        else:
            assert at(last, path) == value, (path, at(last, path))
    if case.warned is not None and warnings is not None:
        assert len(warnings) == case.warned, warnings


def straight(case: Case) -> list[Json]:
    handler = ChatCmplStreamHandler(events="dict", **SAME, **case.options)
    events = [event for one in copy.deepcopy(case.chunks) for event in handler.feed(one)]
    events += handler.finish(done=True) if case.done else handler.finish()
    return events


@pytest.mark.parametrize("case", CASES, ids=name)
def test_what_must_come_comes(case: Case) -> None:
    handler = ChatCmplStreamHandler(events="dict", **SAME, **case.options)
    given = copy.deepcopy(case.chunks)
    events = [event for one in given for event in handler.feed(one)]
    events += handler.finish(done=True) if case.done else handler.finish()
    judge(case, events, handler.warnings)
    assert given == case.chunks, "the chunks were changed"
    assert (handler.error is not None) == (case.status == "failed")
    assert handler.response is not None
    assert accumulate(events) == handler.response == events[-1]["response"]


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_rules_find_nothing(case: Case) -> None:
    if not case.checked:
        pytest.skip("the rules speak of more than the grammar's MUST here")
    profile = case.options.get("profile")
    report = check(
        straight(case), chunks=case.chunks, request=case.options.get("request"), done=case.done, profile=profile
    )
    assert not report.findings, [str(f) for f in report.findings]


@pytest.mark.parametrize("case", CASES, ids=name)
def test_every_way_in_is_the_same(case: Case, loop: asyncio.AbstractEventLoop) -> None:
    due = straight(case)
    options = {"events": "dict", **SAME, **case.options}
    if not case.done:
        assert list(convert(copy.deepcopy(case.chunks), **options)) == due
        assert list(convert(iter(copy.deepcopy(case.chunks)), **options)) == due
        assert loop.run_until_complete(drained(aconvert(slowly(copy.deepcopy(case.chunks)), **options))) == due
    body = framed(case.chunks, case.done)
    assert list(convert_sse(body, **options)) == due
    for size in (1, 7, 4096):
        assert list(convert_sse(slices(body, size), **options)) == due


def constructed(one: Json) -> ChatCompletionChunk:
    return ChatCompletionChunk.construct(None, **one)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_openai_chunks_are_read_the_same(case: Case) -> None:
    if "audio" in case.name:
        pytest.skip("the class adds nulls to what is kept in provider_data")
    due = straight(case)
    options = {"events": "dict", **SAME, **case.options}
    makers: tuple[Callable[[Json], Any], ...] = (constructed, ChatCompletionChunk.model_validate)
    for made in makers:
        try:
            chunks = [made(copy.deepcopy(one)) for one in case.chunks]
        except ValidationError:
            continue
        handler = ChatCmplStreamHandler(**options)
        events = [event for one in chunks for event in handler.feed(one)]
        events += handler.finish(done=True) if case.done else handler.finish()
        assert events == due


@pytest.mark.parametrize("case", CASES, ids=name)
def test_openai_events_are_valid_ones(case: Case) -> None:
    due = straight(case)
    handler = ChatCmplStreamHandler(**SAME, **case.options)
    events = [event for one in case.chunks for event in handler.feed(one)]
    events += handler.finish(done=True) if case.done else handler.finish()
    if case.error == "context_length_exceeded":
        due, events = due[:-1], events[:-1]  # sent all the same, though the types do not list it
    for event, plain in zip(events, due, strict=True):
        valid = EVENT.validate_python(plain)
        assert type(event) is type(valid)
        assert event == valid
        assert event.model_dump() == valid.model_dump()
        assert event.model_dump(mode="json", exclude_unset=True) == valid.model_dump(mode="json", exclude_unset=True)
        assert pickle.loads(pickle.dumps(event)) == event
        assert copy.deepcopy(event) == event
        assert json.loads(event.model_dump_json()) == valid.model_dump(mode="json")


@pytest.mark.parametrize("case", CASES, ids=name)
def test_sse_events_are_the_same(case: Case) -> None:
    due = straight(case)
    came = b"".join(convert_sse(framed(case.chunks, case.done), events="sse", **SAME, **case.options))
    for raw in ("\u2028", "\u2029", "\u0085"):
        assert raw.encode() not in came
    blocks = came.decode().split("\n\n")
    assert blocks.pop() == ""
    if blocks[-1] == "data: [DONE]":
        blocks.pop()
    read = [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]
    assert [json.loads(one["data"]) for one in read] == due
    assert [one["event"] for one in read] == [event["type"] for event in due]


# ------------------------------------------------------------------------------------- sources that raise, and handlers
class Odd(Exception):
    """What a source raises."""


class Limited(Exception):
    status_code = 429


class Bad(Exception):
    status_code = 400


class Closing:
    """A source of chunks that raises at its end and remembers whether it was closed."""

    def __init__(self, chunks: list[Json], error: BaseException | None = None) -> None:
        self.chunks, self.error, self.closed, self.pulled = iter(chunks), error, 0, 0

    def __iter__(self) -> Closing:
        return self

    def __next__(self) -> Json:
        self.pulled += 1
        for one in self.chunks:
            return one
        if self.error is not None:
            raise self.error
        raise StopIteration

    def close(self) -> None:
        self.closed += 1


class AClosing:
    """The same, asynchronous."""

    def __init__(self, chunks: list[Json], error: BaseException | None = None) -> None:
        self.inner = Closing(chunks, error)

    def __aiter__(self) -> AClosing:
        return self

    async def __anext__(self) -> Json:
        try:
            return next(self.inner)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self.inner.close()


RAISED = [
    ("before anything", [], Odd("gone"), "failed", [], "server_error"),
    ("after text", [text("a")], Odd("gone"), "failed", [cut(M("a"))], "server_error"),
    (
        "inside arguments",
        [call(0, "a", "f", '{"x"')],
        Odd("gone"),
        "failed",
        [cut(F("f", '{"x"', "a"))],
        "server_error",
    ),
    (
        "with a waiting call",
        [text("a"), call(0, "a", "f", "")],
        Odd("gone"),
        "failed",
        [cut(M("a")), cut(F("f", "", "a"))],
        "server_error",
    ),
    (
        "with held text",
        [call(0, "a", "f", '{"x"'), text("T")],
        Odd("gone"),
        "failed",
        [cut(F("f", '{"x"', "a")), cut(M("T"))],
        "server_error",
    ),
    ("after a finish", [text("a"), STOP], Odd("gone"), "completed", [M("a")], None),
    ("after length", [text("a"), LENGTH], Odd("gone"), "incomplete", [cut(M("a"))], None),
    (
        "after a finish of another choice",
        [text("a"), chunk({}, "stop", choice={"index": 1})],
        Odd("gone"),
        "failed",
        [cut(M("a"))],
        "server_error",
    ),
    ("429", [text("a")], Limited("slow"), "failed", [cut(M("a"))], "rate_limit_exceeded"),
    ("400", [text("a")], Bad("field x"), "failed", [cut(M("a"))], "invalid_prompt"),
    ("400 of context", [], Bad("maximum context length is 10 tokens"), "failed", [], "context_length_exceeded"),
    ("a closed connection", [text("a")], ConnectionResetError("peer"), "failed", [cut(M("a"))], "server_error"),
    ("a TimeoutError", [text("a")], TimeoutError(), "failed", [cut(M("a"))], "server_error"),
    ("usage, then raise", [text("a"), USAGE], Odd("gone"), "failed", [cut(M("a"))], "server_error"),
]


@pytest.mark.parametrize(
    ("said", "chunks", "error", "status", "output", "code"), RAISED, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_source_that_raises(
    said: str,
    chunks: list[Json],
    error: Exception,
    status: str,
    output: list[Told],
    code: str | None,
    loop: asyncio.AbstractEventLoop,
) -> None:
    source, also = Closing(copy.deepcopy(chunks), error), AClosing(copy.deepcopy(chunks), error)
    events = list(convert(source, events="dict", **SAME))
    well_formed(events)
    last = events[-1]["response"]
    assert (last["status"], (last["error"] or {}).get("code")) == (status, code)
    assert agrees([told(item) for item in last["output"]], output)
    assert source.closed == 1
    assert loop.run_until_complete(drained(aconvert(also, events="dict", **SAME))) == events
    assert also.inner.closed == 1
    handler = ChatCmplStreamHandler(events="dict", **SAME)
    fed = [event for one in chunks for event in handler.feed(one)] + handler.fail(error)
    assert fed == events
    assert handler.error is (error if status == "failed" else handler.error)
    again = Closing(copy.deepcopy(chunks), error)
    seen: list[Json] = []
    if status == "failed":
        with pytest.raises(type(error)):
            seen.extend(iter_until(convert(again, events="dict", raise_on_error=True, **SAME), seen))
    else:
        seen = list(convert(again, events="dict", raise_on_error=True, **SAME))
    assert seen == events


def iter_until(events: Iterator[Json], seen: list[Json]) -> list[Json]:
    """Put all of `events` into `seen`, also those before it raises."""
    for event in events:
        seen.append(event)  # noqa: PERF402 - what came before it raised is kept
    return []


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), GeneratorExit(), SystemExit(3), asyncio.CancelledError()],
    ids=lambda e: type(e).__name__,
)
def test_what_is_no_fault_of_the_source_passes(error: BaseException) -> None:
    source = Closing([text("a")], error)
    seen: list[Json] = []
    with pytest.raises(type(error)):
        iter_until(convert(source, events="dict", **SAME), seen)
    assert source.closed == 1
    assert [event["type"] for event in seen][-1] == "response.output_text.delta"


def test_leaving_early_closes_the_source(loop: asyncio.AbstractEventLoop) -> None:
    source = Closing([text("a"), text("b"), STOP])
    events = convert(source, events="dict")
    next(events)
    events.close()  # type: ignore[attr-defined]  # it is a generator
    assert (source.closed, source.pulled) == (1, 1)

    async def leave() -> AClosing:
        also = AClosing([text("a"), text("b"), STOP])
        stream = aconvert(also, events="dict")
        async for _ in stream:
            break
        await stream.aclose()
        return also

    assert loop.run_until_complete(leave()).inner.closed == 1


def test_cancelling_closes_the_source(loop: asyncio.AbstractEventLoop) -> None:
    class Hanging(AClosing):
        async def __anext__(self) -> Json:
            try:
                return await super().__anext__()
            except StopAsyncIteration:
                await asyncio.Event().wait()
                raise

    async def cancelled() -> tuple[Hanging, list[Json]]:
        source, seen = Hanging([text("a")]), list[Json]()

        async def run() -> None:
            async for event in aconvert(source, events="dict"):
                seen.append(event)

        task = asyncio.create_task(run())
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return source, seen

    source, seen = loop.run_until_complete(cancelled())
    assert source.inner.closed == 1
    assert seen[-1]["type"] == "response.output_text.delta"


def test_nothing_waits_for_the_next_chunk() -> None:
    """Liveness: what can be said is out before the next chunk is pulled."""
    source = Closing([ROLE, text("a"), text("b"), call(0, "c", "f", '{"x":'), call(0, args="1}"), CALLED])
    at_pull = [(event["type"], source.pulled) for event in convert(source, events="dict")]
    assert at_pull[0] == ("response.created", 2)
    assert ("response.output_text.delta", 3) in at_pull
    assert ("response.output_item.added", 4) in at_pull
    assert ("response.function_call_arguments.delta", 5) in at_pull


def test_the_head_waits_for_the_first_item() -> None:
    handler = ChatCmplStreamHandler(events="dict")
    for quiet in (
        ROLE,
        bare(usage=usage(1, 2, 3)),
        text(" "),
        call(0, "a", "f", ""),
        chunk({"annotations": [cite("http://x")]}),
    ):
        assert handler.feed(quiet) == []
    assert [e["type"] for e in handler.feed(text("a"))][:3] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
    ]


def test_after_the_end() -> None:
    """Finishing or failing once more, or feeding after the end, gives no second terminal event."""
    for end in ("finish", "fail", "error"):
        handler = ChatCmplStreamHandler(events="dict", **SAME)
        handler.feed(text("a"))
        if end == "finish":
            handler.feed(STOP)
            handler.finish()
        elif end == "fail":
            handler.fail(Odd("gone"))
        else:
            handler.feed({"error": {"message": "boom"}})
            handler.finish()
        before = copy.deepcopy(handler.response)
        for more, given in ((handler.finish, ()), (handler.fail, (Odd("more"),)), (handler.feed, (text("b"),))):
            try:
                came = more(*given)
            except AntiphonError:
                continue
            assert came == []
        assert handler.response == before


def test_an_error_chunk_then_fail() -> None:
    handler = ChatCmplStreamHandler(events="dict", **SAME)
    events = (
        handler.feed(text("a")) + handler.feed({"error": {"message": "boom", "code": 429}}) + handler.fail(Odd("later"))
    )
    well_formed(events)
    assert events[-1]["response"]["error"]["code"] == "rate_limit_exceeded"


def test_done_then_more() -> None:
    body = framed([text("a"), STOP], True) + framed([text("b"), {"error": {"message": "late"}}], False)
    events = list(convert_sse(body, events="dict", **SAME))
    assert events == list(convert([text("a"), STOP], events="dict", **SAME))


@pytest.mark.parametrize("style", ["dict", "openai"])
def test_events_share_nothing(style: str) -> None:
    """Changing one event changes no other one, nor the response, nor what is fed later."""
    case = next(c for c in CASES if c.name == "annotations in held-back text")
    chunks = [
        *case.chunks[:-1],
        probed("z", logprob("z", [122], [{"token": "z", "logprob": -1, "bytes": [122]}])),
        chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "E", "x": {"y": [1]}}]}),
        calls(piece(5, "q", "g", "{}", extra_content={"google": {"thought_signature": "S"}})),
        chunk({}, "stop", usage=usage(1, 2, 3)),
    ]
    request = {
        "model": "m",
        "metadata": {"a": "b"},
        "tools": [
            {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": True}
        ],
    }
    given = copy.deepcopy(request)
    due = list(convert(copy.deepcopy(chunks), events="dict", request=copy.deepcopy(request), **SAME))
    handler = ChatCmplStreamHandler(events=style, request=given, **SAME)  # type: ignore[arg-type]
    came: list[Any] = []
    kept: list[Any] = []
    fresh = copy.deepcopy(chunks)
    for one in [*fresh, None]:
        for event in handler.feed(one) if one is not None else handler.finish():
            came.append(copy.deepcopy(event))
            kept.append(event)
            spoil(event)
        if one is not None:
            spoil(one)
    plain = [e if style == "dict" else e.model_dump(mode="json", exclude_unset=True) for e in came]
    assert [e["type"] for e in plain] == [e["type"] for e in due]
    for a, b in zip(plain, due, strict=True):
        assert a == b
    assert given == request
    response = (
        handler.response
        if isinstance(handler.response, dict)
        else handler.response.model_dump(mode="json", exclude_unset=True)
    )
    assert response == due[-1]["response"]


def spoil(value: Any, depth: int = 0) -> None:
    """Change every mutable thing inside `value`, deepest first."""
    if depth > 12:
        return
    if isinstance(value, dict):
        for inner in list(value.values()):
            spoil(inner, depth + 1)
        value["spoilt"] = True
    elif isinstance(value, list):
        for inner in value:
            spoil(inner, depth + 1)
        value.append("spoilt")
    elif hasattr(value, "model_fields_set"):
        for inner in list(value.__dict__.values()):
            spoil(inner, depth + 1)
        spoil(value.__pydantic_extra__, depth + 1)


def test_ids_differ_over_responses() -> None:
    seen: list[str] = []
    for _ in range(40):
        response = list(
            convert(
                [think("r"), text("a"), call(0, name="f", args="{}"), custom(1, name="g", input="x"), STOP],
                events="dict",
            )
        )[-1]["response"]
        seen += [
            response["id"],
            *(item["id"] for item in response["output"]),
            *(item["call_id"] for item in response["output"] if "call_id" in item),
        ]
    assert len(set(seen)) == len(seen)
    assert {one.split("_")[0] for one in seen} == {"resp", "rs", "msg", "fc", "ctc", "call"}


def test_a_made_id_is_none_of_the_providers() -> None:
    events = list(
        convert(
            [
                call(0, "call_1", "f", "{}"),
                call(1, name="g", args="{}"),
                call(2, "call_2", "h", "{}"),
                call(3, "call_1", "i", "{}"),
                CALLED,
            ],
            events="dict",
            **SAME,
        )
    )
    well_formed(events)


def test_the_clock_is_the_shells() -> None:
    for at_, due in ((5, 5), (0, 0)):
        assert {
            e["response"]["created_at"]
            for e in convert([text("a"), STOP], events="dict", created_at=at_)
            if "response" in e
        } == {due}
    assert next(iter(convert([text("a"), STOP], events="dict")))["response"]["created_at"] > 1_712_345_678


# ----------------------------------------------------------------------------------------------------- server-sent events
A, Z = json.dumps(text("aé")), json.dumps(STOP)
FRAMES: list[tuple[str, bytes, list[Told], str]] = [
    ("LF", f"data: {A}\n\ndata: {Z}\n\n".encode(), [M("aé")], "completed"),
    ("CR", f"data: {A}\r\rdata: {Z}\r\r".encode(), [M("aé")], "completed"),
    ("CRLF", f"data: {A}\r\n\r\ndata: {Z}\r\n\r\n".encode(), [M("aé")], "completed"),
    ("mixed ends", f"data: {A}\r\n\rdata: {Z}\n\r\n".encode(), [M("aé")], "completed"),
    ("no space", f"data:{A}\n\ndata:{Z}\n\ndata:[DONE]\n\n".encode(), [M("aé")], "completed"),
    ("no blank line at the end", f"data: {A}\n\ndata: {Z}".encode(), [M("aé")], "completed"),
    ("a BOM", b"\xef\xbb\xbf" + f"data: {A}\n\ndata: {Z}\n\n".encode(), [M("aé")], "completed"),
    (
        "comments and other fields",
        f": hi\n\nid: 4\nretry: 10\nevent: message\ndata: {A}\n\n:\n\ndata: {Z}\n\n".encode(),
        [M("aé")],
        "completed",
    ),
    (
        "one event over two data lines",
        f"data: {A[:1]}\ndata: {A[1:]}\n\ndata: {Z}\n\n".encode(),
        [M("aé")],
        "completed",
    ),
    (
        "raw U+2028 and U+0085",
        b'data: {"choices":[{"index":0,"delta":{"content":"a\xe2\x80\xa8b\xc2\x85c"},"finish_reason":"stop"}]}\n\n',
        [M("a\u2028b\u0085c")],
        "completed",
    ),
    ("an error event", f'data: {A}\n\nevent: error\ndata: {{"message":"boom"}}\n\n'.encode(), [cut(M("aé"))], "failed"),
    (
        "an error event with an object",
        f'data: {A}\n\nevent: error\ndata: {{"error":{{"message":"boom"}}}}\n\n'.encode(),
        [cut(M("aé"))],
        "failed",
    ),
    ("an error event that is text", f"data: {A}\n\nevent: error\ndata: boom\n\n".encode(), [cut(M("aé"))], "failed"),
    (
        "a line that is no JSON, then a finish",
        f"data: {A}\n\ndata: oops\n\ndata: {A}\n\ndata: {Z}\n\n".encode(),
        [cut(M("aéaé"))],
        "failed",
    ),
    ("a line that is a number", f"data: {A}\n\ndata: 5\n\ndata: {Z}\n\n".encode(), [cut(M("aé"))], "failed"),
    ("a line that is an array", f"data: {A}\n\ndata: []\n\ndata: {Z}\n\n".encode(), [cut(M("aé"))], "failed"),
    ("a line cut at the end", f"data: {A}\n\ndata: {Z[:-9]}".encode(), [cut(M("aé"))], "failed"),
    ("an empty data line", f"data:\n\ndata: {A}\n\ndata: \n\ndata: {Z}\n\n".encode(), [M("aé")], "completed"),
    ("[DONE] with spaces", f"data: {A}\n\ndata:  [DONE] \n\n".encode(), [M("aé")], "completed"),
    ("[DONE] alone", b"data: [DONE]\n\n", [], "failed"),
    ("nothing", b"", [], "failed"),
    ("comments alone", b": PROCESSING\n\n: PROCESSING\n\n", [], "failed"),
    ("a JSON body in place of a stream: an error", b'{"error":{"message":"no such model","code":404}}', [], "failed"),
    (
        "lone surrogate escapes",
        b'data: {"choices":[{"index":0,"delta":{"content":"a\\ud83d"},"finish_reason":null}]}\n\ndata: {"choices":[{"index":0,"delta":{"content":"\\ude00b"},"finish_reason":"stop"}]}\n\n',
        [],
        "any",
    ),
    (
        "broken UTF-8",
        b'data: {"choices":[{"index":0,"delta":{"content":"a\xff\xfeb"},"finish_reason":"stop"}]}\n\n',
        [M("a\ufffd\ufffdb")],
        "completed",
    ),
    (
        "NUL escape",
        b'data: {"choices":[{"index":0,"delta":{"content":"a\\u0000"},"finish_reason":"stop"}]}\n\n',
        [M("a\x00")],
        "completed",
    ),
    (
        "NaN in a chunk",
        b'data: {"choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-Infinity}]},"finish_reason":"stop"}]}\n\n',
        [],
        "any",
    ),
    (
        "a duplicate key",
        b'data: {"choices":[{"index":0,"delta":{"content":"x","content":"a"},"finish_reason":"stop"}]}\n\n',
        [M("a")],
        "completed",
    ),
    (
        "a big number",
        b'data: {"created":1e400,"x":123456789012345678901234567890,"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n',
        [M("a")],
        "completed",
    ),
    (
        "deep nesting in an unknown key",
        b'data: {"x":'
        + b"[" * 200
        + b"]" * 200
        + b',"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n',
        [M("a")],
        "completed",
    ),
]


@pytest.mark.parametrize(("said", "body", "output", "status"), FRAMES, ids=[f[0] for f in FRAMES])
def test_framing(said: str, body: bytes, output: list[Told], status: str) -> None:
    events = list(convert_sse(body, events="dict", **SAME))
    well_formed(events)
    json.dumps(events).encode()
    if status != "any":
        assert agrees([told(i) for i in events[-1]["response"]["output"]], output)
        assert events[-1]["response"]["status"] == status
    for size in (1, 2, 3, 5, 11):
        assert list(convert_sse(slices(body, size), events="dict", **SAME)) == events
    assert list(convert_sse([b"", body, b""], events="dict", **SAME)) == events
    assert b"".join(convert_sse(body, events="sse", **SAME)).decode().count("\n\n") >= len(events)


# ------------------------------------------------------------------------------------------------------ whole responses
def whole(finish: str | None = "stop", usage: Any = None, **message: Any) -> Json:
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}],
        **({"usage": usage} if usage else {}),
    }


FUN = {"id": "a", "type": "function", "function": {"name": "f", "arguments": J}}
WHOLE: list[tuple[str, Json, list[Told], str]] = [
    ("text", whole(content="a"), [M("a")], "completed"),
    ("null content", whole(content=None), [], "completed"),
    ("white content", whole(content=" \n"), [], "completed"),
    (
        "all",
        whole("tool_calls", content="T", refusal="N", reasoning_content="R", tool_calls=[FUN]),
        [R("R"), M("refusal:N", "T"), F("f", J, "a")],
        "completed",
    ),
    ("length", whole("length", content="a"), [cut(M("a"))], "incomplete"),
    ("length, nothing", whole("length", content=""), [], "incomplete"),
    ("filter", whole("content_filter", content=None), [], "incomplete"),
    (
        "two calls",
        whole("tool_calls", content=None, tool_calls=[FUN, {**FUN, "id": "b"}]),
        [F("f", J, "a"), F("f", J, "b")],
        "completed",
    ),
    (
        "two calls, one id",
        whole("tool_calls", content=None, tool_calls=[FUN, FUN]),
        [F("f", J, "a"), F("f", J)],
        "completed",
    ),
    (
        "call without id",
        whole("tool_calls", tool_calls=[{"type": "function", "function": {"name": "f", "arguments": ""}}]),
        [F("f", "{}")],
        "completed",
    ),
    (
        "call with an object",
        whole("tool_calls", tool_calls=[{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}]),
        [F("f", '{"x": 1}', "a")],
        "completed",
    ),
    (
        "calls all with index 0",
        whole("tool_calls", tool_calls=[{**FUN, "index": 0}, {**FUN, "index": 0, "id": "b"}]),
        [F("f", J, "a"), F("f", J, "b")],
        "completed",
    ),
    (
        "custom",
        whole("tool_calls", tool_calls=[{"id": "a", "type": "custom", "custom": {"name": "run", "input": "x"}}]),
        [X("run", "x", "a")],
        "completed",
    ),
    (
        "custom, then a function",
        whole(
            "tool_calls",
            tool_calls=[{"id": "a", "type": "custom", "custom": {"name": "run", "input": "x"}}, {**FUN, "id": "b"}],
        ),
        [X("run", "x", "a"), F("f", J, "b")],
        "completed",
    ),
    (
        "truncated first call, then another",
        whole(
            "tool_calls",
            tool_calls=[
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x"'}},
                {**FUN, "id": "b"},
            ],
        ),
        [F("f", '{"x"', "a"), F("f", J, "b")],
        "completed",
    ),
    (
        "legacy",
        whole("function_call", content=None, function_call={"name": "f", "arguments": J}),
        [F("f", J)],
        "completed",
    ),
    (
        "reasoning list",
        whole(
            content=[{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "T"}]
        ),
        [R("hm"), M("T")],
        "completed",
    ),
    (
        "thinking blocks",
        whole(
            content="T",
            reasoning_content="r",
            thinking_blocks=[{"type": "thinking", "thinking": "r", "signature": "S"}],
        ),
        [R("r"), M("T")],
        "completed",
    ),
    ("no finish", whole(None, content="a"), [], "any"),
    ("no choices", {**whole(), "choices": []}, [], "failed"),
    ("an error body", {"error": {"message": "no", "code": 429}}, [], "failed"),
    (
        "two choices",
        {
            **whole(content="a"),
            "choices": [
                *whole(content="a")["choices"],
                {"index": 1, "finish_reason": "length", "message": {"content": "b"}},
            ],
        },
        [M("a")],
        "completed",
    ),
    ("annotations", whole(content="a", annotations=[cite("http://x")]), [M("a")], "completed"),
    (
        "nameless call",
        whole("tool_calls", content="T", tool_calls=[{"id": "a", "function": {"arguments": "{}"}}]),
        [cut(M("T"))],
        "failed",
    ),
]


@pytest.mark.parametrize(("said", "answer", "output", "status"), WHOLE, ids=[w[0] for w in WHOLE])
def test_whole_answers(said: str, answer: Json, output: list[Told], status: str) -> None:
    given = copy.deepcopy(answer)
    response = to_response(given, events="dict", **SAME)
    assert given == answer
    if status != "any":
        assert agrees([told(item) for item in response["output"]], output), response["output"]
        assert response["status"] == status
    assert to_response(json.dumps(answer), events="dict", **SAME) == response
    assert to_response(answer, **SAME).model_dump(mode="json", exclude_unset=True) == response


def test_a_whole_answer_is_its_stream() -> None:
    """The same chat answer gives the same response, streamed or not."""
    counts = usage(1, 2, 3)
    answer = whole(
        "tool_calls",
        counts,
        content="T",
        reasoning_content="R",
        tool_calls=[FUN, {**FUN, "id": "b"}],
        annotations=[cite("http://x")],
    )
    stream = [
        {**think("R"), "id": "c", "model": "m"},
        {**text("T", annotations=[cite("http://x")]), "id": "c", "model": "m"},
        {**call(0, "a", "f", J), "id": "c"},
        {**call(1, "b", "f", J), "id": "c"},
        {**chunk({}, "tool_calls", usage=counts), "id": "c"},
    ]
    assert to_response(answer, events="dict", **SAME) == list(convert(stream, events="dict", **SAME))[-1]["response"]


# -------------------------------------------------------------------------------------------------------- request echo
ECHOED: Json = {
    "model": "m-1", "instructions": "be kind", "metadata": {"k": "v"}, "temperature": 0.2, "top_p": 0.3, "max_output_tokens": 77,
    "parallel_tool_calls": False, "previous_response_id": "resp_0", "tool_choice": {"type": "function", "name": "f"},
    "tools": [{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}, "strict": True}],
    "text": {"format": {"type": "json_schema", "name": "s", "schema": {"type": "object"}, "strict": True}, "verbosity": "low"},
    "reasoning": {"effort": "low", "summary": "auto"}, "truncation": "auto", "store": True, "background": False, "max_tool_calls": 3,
    "service_tier": "flex", "prompt_cache_key": "pk", "safety_identifier": "si", "top_logprobs": 4, "user": "u",
}  # fmt: skip


@pytest.mark.parametrize("key", [*ECHOED])
def test_the_request_is_echoed(key: str) -> None:
    for request in ({key: ECHOED[key]}, ECHOED):
        snapshots = [
            e["response"] for e in convert([text("a"), STOP], events="dict", request=request) if "response" in e
        ]
        assert [
            s.get(key) if key not in {"text", "reasoning", "tools"} else subset(s.get(key), ECHOED[key])
            for s in snapshots
        ] == [ECHOED[key]] * 3


def subset(value: Any, of: Any) -> Any:
    """Return `of` where `value` holds all that is in it."""
    if isinstance(of, dict) and isinstance(value, dict):
        return of if all(subset(value.get(k), v) == v for k, v in of.items()) else value
    if isinstance(of, list) and isinstance(value, list):
        return of if len(of) == len(value) and all(subset(a, b) == b for a, b in zip(value, of, strict=True)) else value
    return of if value == of else value


def test_a_request_of_objects() -> None:
    from openai.types.responses import FunctionTool, ResponseTextConfig
    from openai.types.shared import Reasoning

    request = {
        **ECHOED,
        "tools": [FunctionTool.model_validate(ECHOED["tools"][0])],
        "text": ResponseTextConfig.model_validate(ECHOED["text"]),
        "reasoning": Reasoning.model_validate(ECHOED["reasoning"]),
    }
    events = list(convert([text("a"), STOP], events="dict", request=request))
    json.dumps(events)
    for event in (events[0], events[-1]):
        for key in ("tools", "text", "reasoning"):
            assert subset(event["response"][key], ECHOED[key]) == ECHOED[key]
    for event in convert([text("a"), STOP], request=request):
        event.model_dump_json()


def test_a_request_of_odd_values() -> None:
    """What a request may also hold: None, openai's NOT_GIVEN, a null tools list, unknown keys, input."""
    from openai import NOT_GIVEN, omit

    request = {
        "model": "m",
        "tools": None,
        "tool_choice": None,
        "metadata": None,
        "temperature": None,
        "text": None,
        "top_p": NOT_GIVEN,
        "instructions": omit,
        "input": [{"role": "user", "content": "x"}],
        "stream": True,
        "foo": {"bar": 1},
    }
    events = list(convert([text("a"), STOP], events="dict", request=request))
    well_formed(events)
    head = events[0]["response"]
    assert (head["tools"], head["tool_choice"], head["metadata"], head["temperature"], head["top_p"], head["text"]) == (
        [],
        "auto",
        {},
        1.0,
        1.0,
        {"format": {"type": "text"}},
    )
    assert "foo" not in head
    assert "stream" not in head
    assert "input" not in head


# -------------------------------------------------------------------------------------------------------- SDKs' chunks
SDK = [
    ROLE,
    think("R"),
    text("T"),
    call(0, "a", "f", ""),
    call(0, args='{"x":'),
    call(0, args="1}"),
    call(1, "b", "g", J),
    chunk({}, "tool_calls"),
    USAGE,
]
SDK_OUTPUT = [R("R"), M("T"), F("f", '{"x":1}', "a"), F("g", J, "b")]


@pytest.mark.filterwarnings("ignore")  # the SDKs' own, about their types
@pytest.mark.parametrize("shape", ["validated", "constructed", "litellm", "any_llm"])
@pytest.mark.parametrize(
    "family",
    [
        "ChatCmplStreamHandler",
        "OpenAIChatCmplStreamHandler",
        "LiteLLMChatCmplStreamHandler",
        "AnyLLMChatCmplStreamHandler",
    ],
)
def test_chunks_of_sdks(shape: str, family: str) -> None:
    import antiphon

    if shape == "litellm":
        make: Any = lambda one: pytest.importorskip("litellm.types.utils").ModelResponseStream(**one)  # noqa: E731
    elif shape == "any_llm":
        make = pytest.importorskip("any_llm.types.completion").ChatCompletionChunk.model_validate
    else:
        make = (
            ChatCompletionChunk.model_validate
            if shape == "validated"
            else lambda one: ChatCompletionChunk.construct(**one)
        )
    handler = getattr(antiphon, family)(events="dict", **SAME)
    chunks = [make(copy.deepcopy(one)) for one in SDK]
    events = [event for one in chunks for event in handler.feed(one)] + handler.finish()
    well_formed(events)
    assert agrees([told(item) for item in events[-1]["response"]["output"]], SDK_OUTPUT)
    assert events[-1]["response"]["usage"]["total_tokens"] == 16
    assert handler.warnings == [] or list(handler.warnings) == []


# ---------------------------------------------------------------------------------- what only a hostile peer would send
HALF = "\ud83d"  # half of a character, as JSON can say it and UTF-8 cannot
HALVES: dict[str, list[Json]] = {
    "text": [text("a" + HALF)],
    "reasoning": [think("a" + HALF)],
    "refusal": [refuse("a" + HALF)],
    "arguments": [call(0, "a", "f", f'{{"x":"{HALF}"}}')],
    "custom input": [custom(0, "a", "run", HALF)],
    "chunk id": [{**text("a"), "id": HALF}],
    "model": [{**text("a"), "model": HALF}],
    "fingerprint": [{**text("a"), "system_fingerprint": HALF}],
    "call id": [call(0, "a" + HALF, "f", J)],
    "name": [call(0, "a", "f" + HALF, J)],
    "annotation": [text("a", annotations=[cite("http://x/" + HALF)])],
    "annotation title": [text("a", annotations=[cite("http://x", HALF)])],
    "logprob token": [probed("a", logprob(HALF))],
    "top logprob token": [probed("a", logprob("a", [97], [logprob(HALF)]))],
    "encrypted data": [chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": HALF}]})],
    "signature": [chunk({"thinking_blocks": [{"type": "thinking", "thinking": "t", "signature": HALF}]})],
    "extra content": [calls(piece(0, "a", "f", J, extra_content={"k": HALF}))],
    "error message": [{"error": {"message": HALF, "code": 500}}],
    "error code": [{"error": {"message": "m", "code": HALF}}],
    "native finish": [chunk({"content": "a"}, "stop", choice={"native_finish_reason": HALF})],
    "key": [chunk({"content": "a", "reasoning_details": [{"type": "reasoning.encrypted", "data": "E", HALF: 1}]})],
}


@pytest.mark.parametrize("place", [*HALVES])
def test_half_characters(place: str) -> None:
    """Whatever half a character is in, the events can be sent."""
    chunks = [*HALVES[place], STOP]
    body = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in chunks)
    for style in ("sse", "openai", "dict"):
        for events in (convert(copy.deepcopy(chunks), events=style, **SAME), convert_sse(body, events=style, **SAME)):
            for event in events:
                sent = (
                    event
                    if style == "sse"
                    else json.dumps(event, ensure_ascii=False).encode()
                    if style == "dict"
                    else event.model_dump_json()
                )
                assert sent


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "place", ["arguments", "extra content", "details", "content", "error", "annotation", "unknown"]
)
def test_deep_values(place: str) -> None:
    """A value nested more deeply than Python's stack ends in a terminal event; nothing is raised."""
    chunks = {
        "arguments": call(0, "a", "f", nested(900)),
        "extra content": calls(piece(0, "a", "f", "{}", extra_content=nested(900))),
        "details": chunk(
            {"content": "a", "reasoning_details": [{"type": "reasoning.encrypted", "data": "x", "y": nested(900)}]}
        ),
        "content": text(nested(900)),
        "error": {"error": nested(900)},
        "annotation": text("a", annotations=[{**cite("http://x"), "x": nested(900)}]),
        "unknown": text("a", what=nested(900)),
    }
    events = list(convert([chunks[place], STOP], events="dict", **SAME))
    assert events[-1]["type"] in {"response.completed", "response.failed"}


class Mute(Exception):
    """An exception that cannot be told."""

    def __str__(self) -> str:
        raise ValueError("no words")


class Sticky(Closing):
    """A source that cannot be closed."""

    def close(self) -> None:
        super().close()
        raise Odd("close")


def test_an_exception_that_cannot_be_told() -> None:
    events = list(convert(Closing([text("a")], Mute()), events="dict", **SAME))
    well_formed(events)
    assert events[-1]["response"]["status"] == "failed"


def test_a_source_that_cannot_be_closed() -> None:
    """The response is whole by then, so it is no fault of it."""
    assert list(convert(Sticky([text("a"), STOP]), events="dict", **SAME)) == list(
        convert([text("a"), STOP], events="dict", **SAME)
    )


@pytest.mark.parametrize("value", [float("-inf"), float("inf"), float("nan")])
def test_logprobs_that_are_no_number(value: float) -> None:
    """Events are JSON, and a logprob in them is a number."""
    chunks = [
        probed(
            "a", {"token": "a", "logprob": value, "bytes": [97], "top_logprobs": [{"token": "a", "logprob": value}]}
        ),
        STOP,
    ]
    events = list(convert(chunks, events="dict", **SAME))
    json.dumps(events, allow_nan=False)
    sent = [json.loads(one.split(b"data: ")[1]) for one in convert(chunks, events="sse", **SAME)]
    assert sent == events
    for event in sent:
        EVENT.validate_python(event)


def test_a_conversation_is_an_object() -> None:
    """Source: openai types, `Response.conversation`; the request may name it by its id alone."""
    for event in convert([text("a"), STOP], events="dict", request={"model": "m", "conversation": "conv_1"}):
        EVENT.validate_python(event)


def test_a_schema_in_the_request_is_a_schema_in_the_snapshots() -> None:
    """Each snapshot has the keys that the Open Responses schema requires, also inside `text.format`."""
    request = {
        "model": "m",
        "text": {"format": {"type": "json_schema", "name": "s", "schema": {"type": "object"}, "strict": True}},
    }
    chunks = [text("{}"), STOP]
    assert not check(list(convert(chunks, events="dict", request=request)), chunks=chunks, request=request).findings


def test_an_unknown_annotation_breaks_no_event() -> None:
    for odd in ({"type": "text"}, {"type": "url_citation"}, {"foo": 1}, "http://x", 5, None):
        for event in convert([text("a", annotations=[odd]), STOP], events="dict", **SAME):
            EVENT.validate_python(event)


TAGGED: list[tuple[str, list[Json], list[Told]]] = [
    ("split", [text("<reas"), text("oning>th"), text("ink</reaso"), text("ning>T"), STOP], [R("think"), M("T")]),
    ("one chunk", [chunk({"content": "<reasoning>a</reasoning>T"}, "stop")], [R("a"), M("T")]),
    ("not at the start", [text("a <reasoning>b</reasoning>"), STOP], [M("a <reasoning>b</reasoning>")]),
    ("a second one is text", [text("<reasoning>a</reasoning>x<reasoning>b</reasoning>"), STOP], [R("a"), M("x<reasoning>b</reasoning>")]),
    ("empty", [text("<reasoning></reasoning>x"), STOP], [M("x")]),
    ("native reasoning seen", [think("r"), text("<reasoning>a</reasoning>x"), STOP], [R("r"), M("<reasoning>a</reasoning>x")]),
    ("an unfinished tag at the end", [text("<reason"), STOP], [M("<reason")]),
    ("an unfinished tag, then a call", [text("<reason"), call(0, "a", "f", J), STOP], [M("<reason"), F("f", J, "a")]),
    ("an unfinished tag, then text", [text("<reason"), text(" why"), STOP], [M("<reason why")]),
    ("a call after the thinking", [text("<reasoning>a</reasoning>"), call(0, "a", "f", J), CALLED], [R("a"), F("f", J, "a")]),
]  # fmt: skip


@pytest.mark.parametrize(("said", "chunks", "output"), TAGGED, ids=[t[0] for t in TAGGED])
def test_reasoning_in_tags(said: str, chunks: list[Json], output: list[Told]) -> None:
    from antiphon_providers.bedrock import PROFILE

    events = list(convert(chunks, events="dict", profile=PROFILE, **SAME))
    well_formed(events)
    assert agrees([told(item) for item in events[-1]["response"]["output"]], output)


def test_whole_calls_of_one_id_stay_apart() -> None:
    """Entries of a whole answer are calls of their own: none is lost, none joined with another."""
    for second in ({"name": "f", "arguments": '{"n":2}'}, {"name": "g", "arguments": "{}"}):
        response = to_response(
            whole(
                "tool_calls",
                tool_calls=[
                    {"id": "a", "function": {"name": "f", "arguments": '{"n":1}'}},
                    {"id": "a", "function": second},
                ],
            ),
            events="dict",
        )
        assert agrees(
            [told(item) for item in response["output"]],
            [F("f", '{"n":1}', "a"), F(second["name"], second["arguments"])],
        )


def test_calls_of_one_id_without_index_stay_apart() -> None:
    pieces = [piece(id="a", name="f", args='{"n":1}'), piece(id="a", name="g", args='{"n":2}')]
    response = list(convert([calls(*pieces), CALLED], events="dict"))[-1]["response"]
    assert agrees([told(item) for item in response["output"]], [F("f", '{"n":1}', "a"), F("g", '{"n":2}')])


@pytest.mark.parametrize("odd", [[None], [[]], ["a"], [1.5], [{"a": 1}], "a", 5, {"a": 1}, [-1], [300]])
def test_bytes_that_are_none(odd: Any) -> None:
    """Bytes of a token that are no list of numbers are as unknown ones: the token's UTF-8."""
    chunks = [probed("a", logprob("a", odd, [{"token": "b", "logprob": -1, "bytes": odd}])), STOP]
    for event in convert(chunks, events="dict", **SAME):
        EVENT.validate_python(event)


def test_arguments_with_a_number_too_long_to_write() -> None:
    events = list(convert([call(0, "a", "f", {"x": 10**5000}), CALLED], events="dict", **SAME))
    assert events[-1]["type"] in {"response.completed", "response.failed"}


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_what_is_kept_is_json(value: float) -> None:
    """What rides in `provider_data`, and an annotation's places, are JSON too."""
    detail = {"type": "reasoning.encrypted", "data": "E", "index": value}
    for one in (
        chunk({"content": "a", "reasoning_details": [detail]}),
        text("a", annotations=[cite("http://x", "t", value)]),  # type: ignore[arg-type]
        calls(piece(0, "a", "f", "{}", extra_content={"k": value})),
        chunk({"content": "a", "audio": {"data": value}}),
    ):
        events = list(convert([one, STOP], events="dict", **SAME))
        json.dumps(events, allow_nan=False)
        for event in events:
            EVENT.validate_python(event)


class Fussy(Exception):
    """An exception whose status cannot be read."""

    @property
    def status_code(self) -> int:
        raise RuntimeError("not now")


def test_an_exception_whose_status_cannot_be_read() -> None:
    assert list(convert(Closing([text("a")], Fussy("x")), events="dict", **SAME))[-1]["type"] == "response.failed"
