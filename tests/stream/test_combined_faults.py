"""Deviations in combination: two or more oddities of different providers in one stream, through every way in."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import pytest
from openai.types.chat import ChatCompletionChunk
from pydantic import ValidationError

from antiphon import ChatCmplStreamHandler, convert, convert_sse, to_response

from .cases.build import (
    ABSENT,
    DONE,
    Case,
    Json,
    bare,
    call,
    called,
    calls,
    chunk,
    counted,
    custom,
    cut,
    detail,
    details,
    end,
    failed,
    frag,
    limited,
    parts,
    refuse,
    role,
    said,
    text,
    think,
    thought,
    tokens,
    typed,
)
from .rules import findings
from .summary import anonymous, differences, heard, of_response, told
from .test_grammar_cases import misfits

SAME_EVERY_TIME: dict[str, Any] = {"events": "dict", "ids": "counted", "created_at": 0}
CALLED = end("tool_calls")
BLOWN = {"error": {"message": "blown", "code": 503}}
CITED = {"type": "url_citation", "url_citation": {"url": "https://example.org", "title": "T"}}


def mirror(name: Any = ABSENT, args: Any = ABSENT, **delta: Any) -> Json:
    """Return a chunk with a `function_call`, as the API had it before there were `tool_calls`."""
    return chunk(
        {"function_call": {k: v for k, v in (("name", name), ("arguments", args)) if v is not ABSENT}, **delta}
    )


CASES = [
    # Which call: no index, and more
    Case(
        "no index, and arguments cut inside an escape",
        [call(id="i-1", name="put", args='{"k":"\\u00'), call(args="e9\\ud83d"), call(args='\\ude00"}'), CALLED],
        [called("put", '{"k":"\\u00e9\\ud83d\\ude00"}', "i-1")],
    ),
    Case(
        "no index, two calls in pieces, text inside the first",
        [
            call(id="i-1", name="put", args='{"k":'),
            text("Meanwhile."),
            call(args="[1]}"),
            call(id="i-2", name="get", args='{"z"'),
            call(args=":{}}"),
            CALLED,
        ],
        [called("put", '{"k":[1]}', "i-1"), said("Meanwhile."), called("get", '{"z":{}}', "i-2")],
    ),
    Case(
        "no index, the name in pieces, then no index for the arguments",
        [call(id="i-1", name="get_"), call(name="time"), call(args='{"tz":'), call(args='"CET"}'), CALLED],
        [called("get_time", '{"tz":"CET"}', "i-1")],
    ),
    Case(
        "no index and no finish, the usage last",
        [call(id="i-1", name="put", args='{"k":1}'), call(id="i-2", name="put", args='{"k":2}'), counted(tokens(4, 9))],
        [called("put", '{"k":1}', "i-1"), called("put", '{"k":2}', "i-2")],
        usage={"input_tokens": 4, "output_tokens": 9, "total_tokens": 13},
    ),
    # Which call: one index for several
    Case(
        "one index, back to the first by its id, then by index alone",
        [
            call(0, "i-1", "put", '{"k":'),
            call(0, "i-2", "get", '{"z":'),
            call(0, "i-1", args="[1"),
            call(0, args="]"),
            call(0, args="}"),
            call(0, "i-2", args="2"),
            call(0, args="}"),
            CALLED,
        ],
        [called("put", '{"k":[1]}', "i-1"), called("get", '{"z":2}', "i-2")],
    ),
    failed(
        "one index, a nameless call beside, back to the first by its id",
        [
            call(0, "i-1", "put", "{"),
            call(0, "i-2", args='"k"'),
            call(0, "i-1", "put", ""),
            call(0, args='"k":1'),
            call(0, args="}"),
            CALLED,
        ],
        [cut(called("put", '{"k":1}', "i-1"))],
        says=("tool call 1 never got a name",),
    ),
    Case(
        "one index, ids that differ, the second head without its arguments, text between",
        [
            call(0, "i-1", "put", '{"k":1}'),
            text("And"),
            call(0, "i-2", "put", ""),
            text(" more"),
            call(0, args='{"k":2}'),
            CALLED,
        ],
        [called("put", '{"k":1}', "i-1"), said("And more"), called("put", '{"k":2}', "i-2")],
    ),
    Case(
        "one id on two indexes, both in pieces, continued by id and index",
        [
            call(0, "i-1", "put", '{"k":'),
            call(1, "i-1", "get", '{"z":'),
            call(1, "i-1", args="2}"),
            call(0, "i-1", args="1}"),
            CALLED,
        ],
        [called("put", '{"k":1}', "i-1"), called("get", '{"z":2}')],
    ),
    Case(
        "a head on a used index, its arguments on a third, after usage",
        [
            counted(tokens(1, 1)),
            call(0, "i-1", "put", '{"k":1}'),
            call(0, "i-2", "get", ""),
            call(7, args='{"z":'),
            call(7, args="2}"),
            CALLED,
        ],
        [called("put", '{"k":1}', "i-1"), called("get", '{"z":2}', "i-2")],
        usage={"input_tokens": 1, "output_tokens": 1},
    ),
    Case(
        "indexes that are negative, huge, strings",
        [
            call(-1, "i-1", "put", '{"k":'),
            call(10**18, "i-2", "get", '{"z":'),
            call("3", "i-3", "end", ""),
            call("-1", args="1}"),
            call(10**18, args="2}"),
            call(3, args="[]"),
            CALLED,
        ],
        [called("put", '{"k":1}', "i-1"), called("get", '{"z":2}', "i-2"), called("end", "[]", "i-3")],
    ),
    # Names and ids
    Case(
        "empty names and ids on every piece, and the whole call again at the end",
        [
            call(0, "i-1", "put", '{"k"'),
            call(0, "", "", ":1"),
            call(0, "", "", "}"),
            call(0, "i-1", "put", '{"k":1}', finish="tool_calls"),
        ],
        [called("put", '{"k":1}', "i-1")],
    ),
    Case(
        "names that grow, an empty one between, an id that comes last",
        [
            call(0, ABSENT, "p"),
            call(0, "", ""),
            call(0, ABSENT, "put"),
            call(0, args='{"k":1}'),
            call(0, "i-1"),
            CALLED,
        ],
        [called("put", '{"k":1}')],
    ),
    Case(
        "names last, no index, text before",
        [
            call(id="i-1", args='{"k":1}'),
            call(id="i-2", args='{"z":2}'),
            text("First."),
            call(id="i-2", name="get"),
            call(id="i-1", name="put"),
            CALLED,
        ],
        [said("First."), called("put", '{"k":1}', "i-1"), called("get", '{"z":2}', "i-2")],
    ),
    Case(
        "a residue in the name, null arguments, an object",
        [calls(frag(0, "i-1", "put<|channel|>json", None), frag(1, "i-2", "get", {"z": [None]})), CALLED],
        [called("put", "{}", "i-1"), called("get", {"z": [None]}, "i-2")],
    ),
    Case(
        "null entries, null functions, null choices",
        [
            bare(None),
            calls(None, {"index": 0, "id": "i-1", "type": None, "function": {"name": "put", "arguments": None}}),  # type: ignore[arg-type]  # what came
            calls({"index": 0, "function": None}),
            bare(None, usage=tokens(2, 3)),
            call(0, None, None, '{"k":1}'),
            CALLED,
        ],
        [called("put", '{"k":1}', "i-1")],
        usage={"input_tokens": 2, "output_tokens": 3},
    ),
    # `function_call` beside `tool_calls`
    Case(
        "a function_call and a tool call say the same in the same chunks",
        [
            mirror("put", "", tool_calls=[frag(0, "i-1", "put", "")]),
            mirror(args='{"k":1}', tool_calls=[frag(0, args='{"k":1}')]),
            CALLED,
        ],
        [called("put", '{"k":1}', "i-1")],
    ),
    Case(
        "the head of a function_call, then tool calls",
        [mirror("put", ""), call(0, "i-1", "put", '{"k":'), call(0, args="1}"), CALLED],
        [called("put", '{"k":1}', "i-1")],
    ),
    Case(
        "the head of a function_call of another name, then tool calls interleaved",
        [mirror("old"), call(0, "i-1", "put", ""), call(1, "i-2", "get", "[]"), call(0, args='{"k":1}'), CALLED],
        [called("put", '{"k":1}', "i-1"), called("get", "[]", "i-2")],
    ),
    Case(
        "arguments of a function_call without a name, then a custom tool call",
        [mirror(args='{"k"'), calls(custom(0, "i-1", "sql", "select")), calls(custom(0, text=" 1")), CALLED],
        [typed("sql", "select 1", "i-1")],
    ),
    # Kinds in turn
    Case(
        "refusal, text, call, text, refusal",
        [
            refuse("No. "),
            text("But:"),
            call(0, "i-1", "put", '{"k":1}'),
            text("Also"),
            refuse("not that"),
            CALLED,
        ],
        [
            parts(("refusal", "No. "), ("output_text", "But:")),
            called("put", '{"k":1}', "i-1"),
            parts(("output_text", "Also"), ("refusal", "not that")),
        ],
    ),
    Case(
        "reasoning after text, inside arguments, in two fields at once",
        [
            text("T"),
            call(0, "i-1", "put", '{"k":'),
            chunk({"reasoning": "hm", "reasoning_content": "hm"}),
            chunk({"reasoning": "a", "reasoning_text": "b"}),
            call(0, args="1}"),
            CALLED,
        ],
        [said("T"), called("put", '{"k":1}', "i-1"), thought("hmab")],
    ),
    Case(
        "details that repeat the reasoning, sealed inside arguments",
        [
            details(detail("text", index=0, text="hm"), reasoning="hm"),
            call(0, "i-1", "put", '{"k":'),
            details(detail("encrypted", index=1, data="c2VhbA==")),
            call(0, args="1}"),
            text("T"),
            end(),
        ],
        [thought("hm"), called("put", '{"k":1}', "i-1"), thought("", encrypted="c2VhbA=="), said("T")],
    ),
    Case(
        "white space of a kind that is not open, over other items",
        [
            text("\n"),
            think("hm"),
            text(" "),
            think(" "),
            text("a"),
            call(0, "i-1", "put", "{}"),
            text(" "),
            text("b"),
            end(),
        ],
        [thought("hm "), said(" a"), called("put", "{}", "i-1"), said(" b")],
    ),
    # Choices
    Case(
        "three choices in one chunk, an error finish on another, no index on ours",
        [
            bare(
                [
                    {"index": 2, "delta": {"content": "no"}, "finish_reason": "error"},
                    {"index": 1, "delta": {"tool_calls": [frag(0, "x", "x", "{}")]}, "finish_reason": "length"},
                    {"delta": {"content": "yes"}, "finish_reason": None},
                ]
            ),
            end(index=None),
        ],
        [said("yes")],
        warned=1,
    ),
    # Endings
    limited(
        "usage before two finish reasons, content between them",
        [text("a"), counted(tokens(3, 4)), end("stop"), text("b"), end("length", usage=tokens(3, 5))],
        [cut(said("ab"))],
        usage={"input_tokens": 3, "output_tokens": 5},
    ),
    limited(
        "filtered inside arguments, another call waiting, text held back",
        [call(0, "i-1", "put", '{"k":"\\u'), call(1, "i-2", "get", ""), text("T"), end("content_filter")],
        [cut(called("put", '{"k":"\\u', "i-1")), cut(said("T")), cut(called("get", "", "i-2"))],
        reason="content_filter",
    ),
    failed(
        "usage on every chunk and no finish",
        [text("a", usage=tokens(3, 1)), call(0, "i-1", "put", '{"k":1}', usage=tokens(3, 2))],
        [said("a"), cut(called("put", '{"k":1}', "i-1"))],
        usage={"input_tokens": 3, "output_tokens": 2},
        says=("finish_reason_optional",),
    ),
    Case(
        "usage on every chunk and no finish, the last one empty",
        [text("a", usage=tokens(3, 1)), chunk({}, usage=tokens(3, 2))],
        [said("a")],
        usage={"input_tokens": 3, "output_tokens": 2},
    ),
    failed(
        "an error inside arguments, text held, a head waiting, a finish before it",
        [end("tool_calls"), call(0, "i-1", "put", '{"k'), text("T"), call(1, "i-2", "get", ""), BLOWN, text("never")],
        [cut(called("put", '{"k', "i-1")), cut(said("T")), cut(called("get", "", "i-2"))],
        says=("blown",),
        hides=("never",),
    ),
    # Citations, log probabilities
    Case(
        "a citation before any text, over a call, and again in the finish chunk",
        [
            chunk({"annotations": [CITED]}),
            call(0, "i-1", "put", '{"k":1}'),
            text("See"),
            chunk({"annotations": [CITED]}, "stop"),
        ],
        [
            called("put", '{"k":1}', "i-1"),
            said(
                "See",
                annotations=[
                    {
                        "type": "url_citation",
                        "url": "https://example.org",
                        "title": "T",
                        "start_index": 0,
                        "end_index": 0,
                    }
                ],
            ),
        ],
    ),
    Case(
        "log probabilities before the text, null bytes, a list of nulls after",
        [
            chunk(
                {"role": "assistant"}, choice={"logprobs": {"content": [{"token": "é", "logprob": -1, "bytes": None}]}}
            ),
            text("é", choice={"logprobs": {"content": None}}),
            text("!", choice={"logprobs": None}),
            end(),
        ],
        [said("é!", logprobs=[{"token": "é", "logprob": -1.0, "bytes": [195, 169], "top_logprobs": []}])],
    ),
]


def by_hand(case: Case) -> list[Json]:
    handler = ChatCmplStreamHandler(**SAME_EVERY_TIME)
    events = [event for one in copy.deepcopy(case.chunks) for event in handler.feed(one)]
    if isinstance(case.warned, int):
        assert len(handler.warnings) == case.warned
    return [*events, *handler.finish()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_combination_comes_out_right(case: Case) -> None:
    events = by_hand(case)
    assert misfits(case, events) == []
    assert heard(events) == told(events).output
    assert findings(events, case.chunks) == []


# How a body may be cut and its lines may end.


def framed(chunks: list[Any], ending: bytes = b"\n\n", *, ascii: bool = False) -> bytes:
    return b"".join(b"data: " + json.dumps(one, ensure_ascii=ascii).encode() + ending for one in chunks)


def in_pieces(body: bytes, size: int) -> Iterator[bytes]:
    return (body[n : n + size] for n in range(0, len(body), size))


def as_openai(one: Json) -> Any:
    return ChatCompletionChunk.model_validate(one)


def as_litellm(one: Json) -> Any:
    return pytest.importorskip("litellm.types.utils").ModelResponseStream(**one)


def as_any_llm(one: Json) -> Any:
    return pytest.importorskip("any_llm.types.completion").ChatCompletionChunk.model_validate(one)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_combination_is_the_same_in_bytes(case: Case) -> None:
    due = by_hand(case)
    chunks = list(case.chunks)
    for body in (framed(chunks), framed(chunks, b"\r\n\r\n", ascii=True)):
        for size in (1, 5, len(body)):
            assert list(convert_sse(in_pieces(body, size), **SAME_EVERY_TIME)) == due
    one_each = [framed([one]) for one in chunks]
    assert list(convert_sse(one_each, **SAME_EVERY_TIME)) == due
    wire = b"".join(convert_sse(one_each, events="sse", ids="counted", created_at=0))
    assert [json.loads(line[6:]) for line in wire.split(b"\n") if line.startswith(b"data: {")] == due


@pytest.mark.filterwarnings("ignore")  # the SDKs' own, about their types
@pytest.mark.parametrize("make", [as_openai, as_litellm, as_any_llm])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_combination_is_the_same_in_chunks_of_an_sdk(case: Case, make: Callable[[Json], Any]) -> None:
    try:
        chunks = [make(one) for one in copy.deepcopy(list(case.chunks))]
    except (ValidationError, TypeError, AttributeError, IndexError):
        pytest.skip("the SDK refuses such a chunk")
    if make is as_litellm and "three choices" in case.name:
        pytest.skip("LiteLLM gives the choice without an index another one")
    events = list(convert(chunks, **SAME_EVERY_TIME))
    assert told(events).terminal == case.terminal
    assert differences(case.output or [], told(events).output) == []


# Deviations that change nothing, in pairs, on streams of every kind.


def deltas(chunks: list[Json]) -> Iterator[tuple[Json, Json]]:
    """Yield the choices 0 with their deltas."""
    for one in chunks:
        choices: list[Json] = one.get("choices") or []
        for choice in choices:
            if choice.get("index") in (0, None, "0"):
                yield choice, choice["delta"]


def fragments(chunks: list[Json]) -> Iterator[Json]:
    for _, delta in deltas(chunks):
        yield from delta.get("tool_calls") or []


def role_everywhere(chunks: list[Json]) -> list[Json]:
    for _, delta in deltas(chunks):
        delta["role"] = "assistant"
    return chunks


def all_null(chunks: list[Json]) -> list[Json]:
    silent = ("content", "refusal", "tool_calls", "function_call", "reasoning_content", "reasoning_details", "audio")
    for choice, delta in deltas(chunks):
        delta |= {key: None for key in silent if key not in delta}
        choice |= {"logprobs": None, **choice}
    return [{"usage": None, "error": None, **one} for one in chunks]


def all_empty(chunks: list[Json]) -> list[Json]:
    for choice, delta in deltas(chunks):
        delta |= {key: delta.get(key) or "" for key in ("content", "refusal", "reasoning_content")}
        delta["tool_calls"] = delta.get("tool_calls") or []
        choice["finish_reason"] = choice.get("finish_reason") or ""
    return chunks


def nameless_pieces(chunks: list[Json]) -> list[Json]:
    for one in fragments(chunks):
        one |= {"id": one.get("id") or "", "type": None}
        one["function"] = {"name": "", "arguments": None, **one["function"]}
    return chunks


def indexes(change: Callable[[int], Any]) -> Callable[[list[Json]], list[Json]]:
    def changed(chunks: list[Json]) -> list[Json]:
        for one in fragments(chunks):
            one["index"] = change(int(one["index"]))
        return chunks

    return changed


def new_chunk_ids(chunks: list[Json]) -> list[Json]:
    return [{**one, "id": f"gen-{n}"} for n, one in enumerate(chunks)]


def other_choices_between(chunks: list[Json]) -> list[Json]:
    other = {"content": "other", "tool_calls": [frag(0, "other", "other", "{}")]}
    return [made for one in chunks for made in (one, chunk(dict(other), "length", index=1))]


def other_choices_beside(chunks: list[Json]) -> list[Json]:
    other = {"index": 1, "delta": {"content": "other"}, "finish_reason": "error"}
    return [{**one, "choices": [other, *one["choices"], {**other, "index": 2}]} for one in chunks if one["choices"]] + [
        one for one in chunks if not one["choices"]
    ]


def nothing_between(chunks: list[Json]) -> list[Json]:
    blank = bare([], id="", model="", object="", created=0)
    return [made for one in chunks for made in (blank, chunk({}), one)]


def message_so_far(chunks: list[Json]) -> list[Json]:
    so_far = ""
    for choice, delta in deltas(chunks):
        so_far += delta.get("content") or ""
        choice["message"] = {"role": "assistant", "content": so_far}
    return chunks


def choice_unnumbered(chunks: list[Json]) -> list[Json]:
    for choice, _ in deltas(chunks):
        del choice["index"]
    return chunks


def finish_again(chunks: list[Json]) -> list[Json]:
    last = [choice["finish_reason"] for choice, _ in deltas(chunks) if choice.get("finish_reason")]
    return [*chunks, chunk({"role": "assistant", "content": ""}, last[-1] if last else None)]


def unknown_keys(chunks: list[Json]) -> list[Json]:
    for choice, delta in deltas(chunks):
        choice |= {"stop_reason": None, "matched_stop": 2, "content_filter_results": {}, "obfuscation": "x"}
        delta |= {"token_id": 7, "channel": "final", "phase": "final_answer", "name": "assistant"}
    return [{**one, "p": "ab", "timings": {"n": 1}, "provider": "P"} for one in chunks]


def mirrored(chunks: list[Json]) -> list[Json]:
    for _, delta in deltas(chunks):
        if delta.get("tool_calls"):
            delta["function_call"] = dict(delta["tool_calls"][0]["function"])
    return chunks


def usage_first(chunks: list[Json]) -> list[Json]:
    return [counted(tokens(1, 1)), *chunks]


def by_character(chunks: list[Json]) -> list[Json]:
    """Cut the arguments in chunks that hold a single fragment and nothing else."""
    made: list[Json] = []
    for one in chunks:
        found = list(fragments([one]))
        rest = str(found[0]["function"].get("arguments") or "")[1:] if len(found) == 1 else ""
        if rest and not next(deltas([one]))[1].get("content"):
            found[0]["function"]["arguments"] = found[0]["function"]["arguments"][0]
            tail = [call(found[0]["index"], args=character) for character in rest]
            choice, _ = next(deltas([one]))
            next(deltas(tail[-1:]))[0]["finish_reason"] = choice.get("finish_reason")
            choice["finish_reason"] = None
            made += [one, *tail]
        else:
            made.append(one)
    return made


HARMLESS: dict[str, Callable[[list[Json]], list[Json]]] = {
    "role on every chunk": role_everywhere,
    "all keys with null": all_null,
    "all keys empty": all_empty,
    "pieces with an empty id and name": nameless_pieces,
    "indexes as strings": indexes(str),
    "indexes with gaps": indexes(lambda index: index * 7 + 100_000),
    "indexes below zero": indexes(lambda index: -5 - index),
    "an id for every chunk": new_chunk_ids,
    "other choices between": other_choices_between,
    "other choices beside": other_choices_beside,
    "chunks without content": nothing_between,
    "the message so far": message_so_far,
    "a choice without index": choice_unnumbered,
    "the finish twice": finish_again,
    "unknown keys": unknown_keys,
    "function_call beside": mirrored,
    "usage first": usage_first,
    "arguments by character": by_character,
}
STREAMS: dict[str, list[Json]] = {
    "all kinds": [
        role(),
        think("hm"),
        think(" so"),
        text("Well"),
        text(", "),
        refuse("no"),
        call(0, "i-1", "put", ""),
        call(0, args='{"k":'),
        call(0, args='"\\u00e9"}'),
        CALLED,
    ],
    "interleaved": [
        call(0, "i-1", "put", '{"k"'),
        call(1, "i-2", "get", '{"z":'),
        call(0, args=":1"),
        text("T"),
        call(1, args="2}"),
        call(0, args="}"),
        CALLED,
    ],
    "one index": [call(0, "i-1", "put", '{"k":1}'), call(0, "i-2", "put", '{"k":2}'), text("T"), end("stop")],
    "heads first": [
        call(0, "i-1", "put", ""),
        call(1, "i-2", "get", ""),
        call(1, args='{"z":2}'),
        call(0, args='{"k":1}'),
        CALLED,
    ],
    "cut": [text("T"), call(0, "i-1", "put", '{"k":"a'), end("length")],
    "late names": [
        call(0, "i-1", args='{"k":1}'),
        call(1, "i-2", args="[2]"),
        call(0, name="put"),
        call(1, name="get"),
        CALLED,
    ],
    "an error": [think("hm"), text("T"), call(0, "i-1", "put", '{"k":'), BLOWN | {"choices": []}],
}
PAIRS = [(one,) for one in HARMLESS] + list(combinations(HARMLESS, 2))


@pytest.mark.parametrize("names", PAIRS, ids=" + ".join)
def test_harmless_deviations_change_nothing(names: tuple[str, ...]) -> None:
    for stream, chunks in STREAMS.items():
        due = told(list(convert(chunks, **SAME_EVERY_TIME)))
        odd = copy.deepcopy(chunks)
        for name in names:
            odd = HARMLESS[name](odd)
        body = framed(odd, b"\r\n\r\n")
        events = list(convert(copy.deepcopy(odd), **SAME_EVERY_TIME))
        assert list(convert_sse(in_pieces(body, 97), **SAME_EVERY_TIME)) == events
        came = told(events)
        assert (stream, came.terminal, came.reason, came.code) == (stream, due.terminal, due.reason, due.code)
        assert came.output == due.output


# Errors in the forms that providers give them, wherever they come.

ERRORS: dict[str, tuple[Any, str, str]] = {
    "OpenAI": ({"error": {"message": "m-1", "type": "server_error", "param": None, "code": None}}, "server_error", "m-1"),
    "OpenAI quota": ({"error": {"message": "m-1", "code": "insufficient_quota"}}, "rate_limit_exceeded", "m-1"),
    "Anthropic": ({"type": "error", "error": {"type": "overloaded_error", "message": "m-1"}}, "server_error", "overloaded"),
    "Anthropic rate": ({"type": "error", "error": {"type": "rate_limit_error", "message": "m-1"}}, "rate_limit_exceeded", "m-1"),
    "Gemini": ({"error": {"code": 429, "message": "m-1", "status": "RESOURCE_EXHAUSTED"}}, "rate_limit_exceeded", "429"),
    "Gemini argument": ({"error": {"code": 400, "message": "m-1", "status": "INVALID_ARGUMENT"}}, "invalid_prompt", "m-1"),
    "OpenRouter": (bare([{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}], error={"code": 502, "message": "m-1"}), "server_error", "502"),
    "in the choice": (bare([{"index": 0, "delta": {}, "error": {"code": "429", "message": "m-1"}}]), "rate_limit_exceeded", "m-1"),
    "a string": ({"error": "m-1"}, "server_error", "m-1"),
    "a string with a context": ({"error": "m-1: maximum context length is 8192 tokens"}, "context_length_exceeded", "m-1"),
    "llama.cpp": ({"error": {"code": 400, "message": "m-1", "type": "exceed_context_size_error"}}, "context_length_exceeded", "m-1"),
    "nested": ({"error": {"error": {"message": "m-1", "code": "404"}}}, "invalid_prompt", "m-1"),
    "true": ({"error": True}, "server_error", "error"),
    "a number": ({"error": 500}, "server_error", "500"),
    "a list": ({"error": ["m-1", "m-2"]}, "server_error", "m-2"),
    "no message": ({"error": {"message": None, "code": 503}}, "server_error", "503"),
    "beside usage": (counted(tokens(1, 2), error={"message": "m-1"}), "server_error", "m-1"),
}  # fmt: skip
PLACES: dict[str, tuple[list[Json], list[Json]]] = {
    "first": ([], []),
    "after text": ([text("T")], [cut(said("T"))]),
    "after a finish and usage": ([text("T"), end(), counted(tokens(1, 2))], [cut(said("T"))]),
    "inside arguments": (
        [call(0, "i-1", "put", '{"k'), text("T"), call(1, "i-2", "get", "")],
        [cut(called("put", '{"k', "i-1")), cut(said("T")), cut(called("get", "", "i-2"))],
    ),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("form", ERRORS)
def test_an_error_ends_the_stream(form: str, place: str) -> None:
    error, code, says = ERRORS[form]
    before, output = PLACES[place]
    chunks = [*before, error, text("never"), end()]
    case = failed(f"{form} {place}", chunks, output, code, says=(says,), hides=("never",))
    events = by_hand(case)
    assert misfits(case, events) == []
    assert findings(events) == []
    assert list(convert_sse([framed(chunks)], **SAME_EVERY_TIME)) == events


# Bodies.

HELLO = [text("Grüße, "), text("Welt 😀\u2028"), end()]
GREETED = [said("Grüße, Welt 😀\u2028")]
FIRST, STOP = framed(HELLO[:1]), framed([end()])
ONLY_FIRST = [cut(said("Grüße, "))]
LONG = "x" * 1_200_000


def over_lines(ending: bytes) -> bytes:
    """Return the chunks printed over many data lines."""
    printed = [json.dumps(one, indent=1, ensure_ascii=False).encode().split(b"\n") for one in HELLO]
    return b"".join(b"".join(b"data: " + line + ending for line in lines) + ending for lines in printed)


BODIES: dict[str, tuple[bytes, Case]] = {
    "CR alone": (framed(HELLO, b"\r\r"), Case("", [], GREETED)),
    "endings of all kinds": (
        framed(HELLO[:1], b"\r\n\r\n") + framed(HELLO[1:2]) + framed(HELLO[2:], b"\r\r"),
        Case("", [], GREETED),
    ),
    "a byte order mark, a comment, CRLF": (
        b"\xef\xbb\xbf: hello\r\n\r\n" + framed(HELLO, b"\r\n\r\n"),
        Case("", [], GREETED),
    ),
    "a byte order mark before each part": (
        b"\xef\xbb\xbf"
        + FIRST
        + b"\xef\xbb\xbf"
        + framed(HELLO[1:2], b"\r\n\r\n")
        + b"\xef\xbb\xbf\xef\xbb\xbf"
        + STOP,
        Case("", [], GREETED),
    ),
    "one chunk over many lines": (over_lines(b"\n") + b"data: [DONE]\n\n", Case("", [], GREETED)),
    "one chunk over many lines, CRLF": (over_lines(b"\r\n"), Case("", [], GREETED)),
    "comments, ids and names around": (
        b":\n" + b"".join(b"id: 7\nevent: message\nretry: 5\n" + framed([one], b"\n: beat\n\n") for one in HELLO),
        Case("", [], GREETED),
    ),
    "HTML after the end": (
        framed(HELLO) + b"data: [DONE]\n\n<html>\r\n<body>502 Bad Gateway</body>\n",
        Case("", [], GREETED),
    ),
    "HTML in place of the end": (
        FIRST + b"<html>\n<body>502 Bad Gateway</body></html>",
        failed("", [], ONLY_FIRST, "server_error"),
    ),
    "HTML as data": (
        FIRST + b"data: <html>502</html>\n\n" + STOP,
        failed("", [], ONLY_FIRST, "server_error", says=("line 3",)),
    ),
    "a plain text in an error event": (
        FIRST + b"event: error\ndata: 429 Too Many Requests\n\n" + STOP,
        failed("", [], ONLY_FIRST, "rate_limit_exceeded", says=("Too Many",)),
    ),
    "an error event, its name last": (
        FIRST + b'data: {"message":"m-1","code":400}\r\nevent: error\r\n\r\n' + STOP,
        failed("", [], ONLY_FIRST, "invalid_prompt", says=("m-1",)),
    ),
    "an error body without data after chunks": (
        FIRST + json.dumps(BLOWN, indent=2).encode(),
        failed("", [], ONLY_FIRST, "server_error", says=("blown",)),
    ),
    "null as data": (FIRST + b"data: null\n\n" + STOP, failed("", [], ONLY_FIRST, "server_error", says=("line 3",))),
    "cut in a line after the finish": (framed(HELLO) + b'data: {"id":"x","cho', Case("", [], GREETED)),
    "cut in a line before the finish": (FIRST + b'data: {"id":"x","cho', failed("", [], ONLY_FIRST)),
    "lines of more than a megabyte": (
        framed([text(LONG), call(0, "i-1", "put", '{"k":"' + LONG), call(0, args='é"}'), CALLED], b"\r\n\r\n"),
        Case("", [], [said(LONG), called("put", '{"k":"' + LONG + 'é"}', "i-1")]),
    ),
    "chunks after the end": (
        FIRST + b"data: [DONE]\n\n" + framed([text("never"), end("length")]),
        Case("", [], [said("Grüße, ")]),
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_comes_out_right_however_it_is_cut(name: str) -> None:
    body, case = BODIES[name]
    due = list(convert_sse([body], **SAME_EVERY_TIME))
    assert misfits(case, due) == []
    for size in (7, 4096) if len(body) > 100_000 else (1, 2, 7, 64):
        if size * 50_000 > len(body):
            assert list(convert_sse(in_pieces(body, size), **SAME_EVERY_TIME)) == due


# Usage in odd forms: input, output, total, cached, reasoning.

USAGES: dict[str, tuple[list[Any], tuple[int, int, int, int, int] | None]] = {
    "null details": ([tokens(5, 6, prompt_tokens_details=None, completion_tokens_details=None)], (5, 6, 11, 0, 0)),
    "null in the details": ([tokens(5, 6, prompt_tokens_details={"cached_tokens": None})], (5, 6, 11, 0, 0)),
    "details of other types": ([tokens(5, 6, prompt_tokens_details=[], completion_tokens_details="x")], (5, 6, 11, 0, 0)),
    "strings": ([tokens("5", "6", "11", prompt_tokens_details={"cached_tokens": "2"})], (5, 6, 11, 2, 0)),
    "floats": ([tokens(5.0, 6.0)], (5, 6, 11, 0, 0)),
    "below zero": ([tokens(5, -1, 4, prompt_tokens_details={"cached_tokens": -3})], (5, 0, 5, 0, 0)),
    "no total": ([tokens(5, 6, None)], (5, 6, 11, 0, 0)),
    "a wrong total": ([tokens(5, 6, 99)], (5, 6, 11, 0, 0)),
    "reasoning on top": ([tokens(5, 6, 31, completion_tokens_details={"reasoning_tokens": 20})], (5, 26, 31, 0, 20)),
    "reasoning inside": ([tokens(5, 26, 31, completion_tokens_details={"reasoning_tokens": 20})], (5, 26, 31, 0, 20)),
    "null after counts": ([tokens(5, 6), None, {}, {"prompt_tokens": None, "completion_tokens": None}], (5, 6, 11, 0, 0)),
    "counts that fall": ([tokens(5, 9), tokens(5, 6)], (5, 6, 11, 0, 0)),
    "all null": ([{"prompt_tokens": None, "completion_tokens": None, "total_tokens": None}], None),
    "no object": ([[1, 2], "none"], None),
}  # fmt: skip


@pytest.mark.parametrize("before", [True, False], ids=["before the finish", "after it"])
@pytest.mark.parametrize("name", USAGES)
def test_usage_in_odd_forms(name: str, before: bool) -> None:
    given, due = USAGES[name]
    counts = [counted(one) for one in given]
    chunks = [text("T"), *counts, end()] if before else [text("T"), end(), *counts]
    usage = told(list(convert(chunks, **SAME_EVERY_TIME))).response["usage"]
    came = usage and (
        usage["input_tokens"],
        usage["output_tokens"],
        usage["total_tokens"],
        usage["input_tokens_details"]["cached_tokens"],
        usage["output_tokens_details"]["reasoning_tokens"],
    )
    assert came == due


# Numbers that Python does not turn into one another are as if they were not there.

DIGITS = "9" * 5000
NUMBERS: dict[str, tuple[Json, list[Json]]] = {
    "an index": (calls(frag(DIGITS, "i-1", "put", '{"k":1}')), [called("put", '{"k":1}', "i-1")]),
    "the index of a choice": (text("T", index=DIGITS), [said("T")]),
    "usage": (text("T", usage=tokens(DIGITS, DIGITS, DIGITS)), [said("T")]),
    "a place": (text("T", choice={"delta": {"content": "T", "annotations": [{**CITED, "start_index": DIGITS}]}}), [said("T")]),
    "a log probability": (
        text("T", choice={"logprobs": {"content": [{"token": "T", "logprob": 10**400, "bytes": [84]}]}}),
        [said("T", logprobs=[{"token": "T", "logprob": -9999.0, "bytes": [84], "top_logprobs": []}])],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_without_bounds(name: str) -> None:
    odd, output = NUMBERS[name]
    events = list(convert([copy.deepcopy(odd), end()], **SAME_EVERY_TIME))
    assert told(events).terminal == "completed"
    assert differences(output, told(events).output) == []
    assert list(convert_sse(framed([odd, end()]), **SAME_EVERY_TIME)) == events


def test_an_error_code_without_bounds() -> None:
    events = list(convert([{"error": {"message": "m-1", "code": DIGITS}}], **SAME_EVERY_TIME))
    assert (told(events).code, told(events).message[:3]) == ("server_error", "m-1")


# Whole answers.

PUT: Json = {"type": "function", "function": {"name": "put", "arguments": '{"k":1}'}}
WHOLE: list[tuple[str, Json, str | None, list[Json], str]] = [
    ("refusal and text", {"content": "But", "refusal": "No. "}, "stop", [parts(("refusal", "No. "), ("output_text", "But"))], "completed"),
    ("one id twice, no content", {"content": None, "tool_calls": [{"id": "i-1", **PUT}, {"id": "i-1", **PUT}]}, "tool_calls", [called("put", '{"k":1}', "i-1"), called("put", '{"k":1}')], "completed"),
    ("no ids, text", {"content": "T", "tool_calls": [PUT, PUT]}, "stop", [said("T"), called("put", '{"k":1}'), called("put", '{"k":1}')], "completed"),
    ("one index for all", {"tool_calls": [{"index": 0, "id": "i-1", **PUT}, {"index": 0, "id": "i-2", **PUT}]}, "tool_calls", [called("put", '{"k":1}', "i-1"), called("put", '{"k":1}', "i-2")], "completed"),
    ("reasoning in two fields, sealed", {"reasoning": "hm", "reasoning_details": [detail("text", index=0, text="hm"), detail("encrypted", index=1, data="c2VhbA==")], "content": "T"}, "stop", [thought("hm", encrypted="c2VhbA=="), said("T")], "completed"),
    ("cut", {"reasoning_content": "hm", "content": "T", "tool_calls": [{"id": "i-1", "function": {"name": "put", "arguments": '{"k'}}]}, "length", [thought("hm"), said("T"), cut(called("put", '{"k', "i-1"))], "incomplete"),
    ("no finish", {"content": "T"}, None, [said("T")], "completed"),
    ("filtered", {"content": "T"}, "content_filter", [cut(said("T"))], "incomplete"),
    ("a nameless call", {"content": "T", "tool_calls": [{"id": "i-1", "function": {"name": None, "arguments": "{}"}}, {"id": "i-2", **PUT}]}, "tool_calls", [cut(said("T")), cut(called("put", '{"k":1}', "i-2"))], "failed"),
    ("only white space", {"content": " \n"}, "stop", [], "completed"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "message", "finish", "output", "terminal"), WHOLE, ids=[one[0] for one in WHOLE])
def test_a_whole_answer_is_what_its_stream_is(
    name: str, message: Json, finish: str | None, output: list[Json], terminal: str
) -> None:
    head = {"id": "chatcmpl-1", "created": 1700000000, "model": "m"}
    body = {**head, "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}
    whole = to_response(body, **SAME_EVERY_TIME)
    assert of_response(whole).terminal == terminal
    assert differences(output, of_response(whole).output) == []
    assert to_response(json.dumps(body), **SAME_EVERY_TIME) == whole
    numbered = [{"index": n, **one} for n, one in enumerate(message.get("tool_calls", []))]
    delta = {**message, "tool_calls": numbered} if numbered else message
    body_of_chunks = framed([chunk(delta, finish)]) + f"data: {DONE}\n\n".encode()
    streamed = told(list(convert_sse([body_of_chunks], **SAME_EVERY_TIME))).response
    assert anonymous(streamed["output"]) == anonymous(whole["output"])
    assert (streamed["status"], streamed["error"]) == (whole["status"], whole["error"])
