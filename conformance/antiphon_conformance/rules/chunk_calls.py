"""CHT: tool calls in a chunk stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise

from antiphon_conformance.chunks import AnswerTrace, FragmentAt
from antiphon_conformance.evidence import (
    CHAT_CALLS,
    LLAMACPP_STOP_IN_CALL,
    VLLM_CALL,
    stream_client,
)
from antiphon_conformance.read import mapping, quoted, text
from antiphon_conformance.rule import Client, Found, Level, Recording, folded, rule

from .chunks import CHUNKS, WHOLE

_ACCUMULATED = stream_client("accumulate_delta joins strings, so that a second id or name is added to the first")


@rule(
    "CHT030",
    "calls-have-an-index",
    Level.MUST,
    since="1.0",
    sources=(stream_client("ChatCompletionStreamState raises TypeError for an entry without `index`"), CHAT_CALLS),
    needs=CHUNKS,
    broken_by=(Recording("chat/gemini-openai-compat/issue--openmaic-1556-gemini3-tool-call.jsonl"),),
    about="answers",
)
def calls_have_an_index(trace: AnswerTrace) -> Iterator[Found]:
    """Each entry of `tool_calls` has an `index`, a whole number, also where there is only one call."""
    yield from folded(
        Found(one.at, f"the `index` of a tool call is {quoted(one.call.get('index'))}")
        for one in trace.fragments
        if one.index is None or one.index < 0
    )


@rule(
    "CHT031",
    "calls-count-from-0",
    Level.SHOULD,
    since="1.0",
    sources=(CHAT_CALLS,),
    needs=CHUNKS,
    about="answers",
)
def calls_count_from_0(trace: AnswerTrace) -> Iterator[Found]:
    """The calls of a choice are numbered 0, 1, 2, … in the order in which they begin."""
    for choice in sorted(trace.by_choice):
        begun = dict.fromkeys(one.index for one in trace.fragments if one.choice == choice and one.index is not None)
        if list(begun) != list(range(len(begun))):
            at = next(one.at for one in trace.fragments if one.choice == choice)
            yield Found(at, f"the calls of choice {choice} begin with index {', '.join(map(str, begun))}")


@rule(
    "CHT032",
    "calls-begin-with-id-and-name",
    Level.MUST,
    since="1.0",
    sources=(CHAT_CALLS, Client("AI SDK", "its OpenAI provider throws where the first fragment has no id or no name")),
    needs=CHUNKS,
    broken_by=(Recording("chat/mistral/prism--mistral-stream-with-tools-1-1.jsonl"),),
    about="answers",
)
def calls_begin_with_id_and_name(trace: AnswerTrace) -> Iterator[Found]:
    """The first fragment of a call has its `id`, `type: "function"` and the function's `name`."""
    for (choice, index), pieces in sorted(trace.calls.items()):
        missing = ", ".join(_missing(pieces[0]))
        if missing:
            yield Found(pieces[0].at, f"call {index} of choice {choice} begins without {missing}")


def _missing(first: FragmentAt) -> Iterator[str]:
    """Yield what a first fragment lacks."""
    if not text(first.call.get("id")):
        yield "an id"
    if first.call.get("type") not in ("function", "custom"):
        yield "a type"
    held = first.function or mapping(first.call.get("custom"))
    if not text(held.get("name")):
        yield "a name"


@rule(
    "CHT033",
    "id-and-name-come-once",
    Level.MUST,
    since="1.0",
    sources=(_ACCUMULATED, CHAT_CALLS),
    needs=CHUNKS,
    broken_by=(Recording("chat/openrouter/llm--test-tools-streaming-test-tools-streaming-variant-a.jsonl"),),
    about="answers",
)
def id_and_name_come_once(trace: AnswerTrace) -> Iterator[Found]:
    """No later fragment of a call has an `id` or a `name`."""
    yield from folded(
        Found(one.at, f"a later fragment of call {index} has {key} {quoted(value)}")
        for (_, index), pieces in sorted(trace.calls.items())
        for one in pieces[1:]
        for key, value in (("id", one.call.get("id")), ("name", one.function.get("name")))
        if value
    )


@rule(
    "CHT034",
    "call-ids-differ",
    Level.MUST,
    since="1.0",
    sources=(
        Client("the Chat Completions API", "refuses a history in which two outputs answer one tool_call_id"),
        CHAT_CALLS,
    ),
    needs=CHUNKS,
    about="answers",
)
def call_ids_differ(trace: AnswerTrace) -> Iterator[Found]:
    """No two calls of an answer have one id."""
    seen: dict[str, tuple[int, int]] = {}
    for key, pieces in sorted(trace.calls.items()):
        id = text(pieces[0].call.get("id"))
        if id and id in seen:
            yield Found(pieces[0].at, f"call {key[1]} has the id {quoted(id)} of call {seen[id][1]}")
        seen.setdefault(id, key)


@rule(
    "CHT035",
    "arguments-are-text",
    Level.MUST,
    since="1.0",
    sources=(
        stream_client("keeps an object as arguments, and json.loads takes none"),
        CHAT_CALLS,
    ),
    needs=CHUNKS,
    broken_by=(
        Recording(
            "chat/writer/openllmetry--est-chat-test-writer-async-streaming-chat-multiple-tool-call-requests-legacy.jsonl"
        ),
    ),
    about="answers",
)
def arguments_are_text(trace: AnswerTrace) -> Iterator[Found]:
    """`arguments` of a fragment is a string, a piece of the JSON text; never an object, nor null."""
    yield from folded(
        Found(one.at, f"`arguments` is {quoted(one.function['arguments'])}")
        for one in trace.fragments
        if "arguments" in one.function and not isinstance(one.function["arguments"], str)
    )


@rule(
    "CHT036",
    "calls-follow-each-other",
    Level.SHOULD,
    since="1.0",
    sources=(CHAT_CALLS,),
    needs=CHUNKS,
    broken_by=(VLLM_CALL,),
    about="answers",
)
def calls_follow_each_other(trace: AnswerTrace) -> Iterator[Found]:
    """A call is complete before the next begins, and no chunk has two fragments of one call."""
    yield from folded(_interleaved(trace))


def _interleaved(trace: AnswerTrace) -> Iterator[Found]:
    latest: dict[int, int] = {}
    for one in trace.fragments:
        if one.index is not None:
            before = latest.get(one.choice, one.index)
            if one.index < before:
                yield Found(one.at, f"call {one.index} goes on after call {before} began")
            latest[one.choice] = max(before, one.index)
    for (_, index), pieces in trace.calls.items():
        for earlier, later in pairwise(pieces):
            if earlier.at == later.at:
                yield Found(later.at, f"one chunk has two fragments of call {index}")


@rule(
    "CHT037",
    "arguments-are-json",
    Level.SHOULD,
    since="1.0",
    sources=(CHAT_CALLS, Client("agent loops", "parse the arguments with json.loads, and fail")),
    needs=WHOLE,
    broken_by=(LLAMACPP_STOP_IN_CALL,),
    about="answers",
)
def arguments_are_json(trace: AnswerTrace) -> Iterator[Found]:
    """Where the answer is not cut, the joined arguments of each function call are a JSON object."""
    if trace.finish() in ("length", "content_filter", ""):
        return
    for at, name, arguments in trace.arguments():
        if not _is_object(arguments):
            yield Found(at, f"the arguments of {quoted(name)} are no JSON object: {quoted(arguments)}")


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False


@rule(
    "CHT038",
    "one-way-of-calling",
    Level.SHOULD,
    since="1.0",
    sources=(CHAT_CALLS, Client("clients that read both", "run the call twice")),
    needs=CHUNKS,
    about="answers",
)
def one_way_of_calling(trace: AnswerTrace) -> Iterator[Found]:
    """Tools are called by `tool_calls`; the older `function_call` comes only where `functions` were offered."""
    if trace.asked.get("functions"):
        return
    yield from folded(
        Found(one.at, f"`function_call` is {quoted(one.delta['function_call'])}, and no `functions` were offered")
        for one in trace.choices
        if one.delta.get("function_call") and ("messages" in trace.asked or one.delta.get("tool_calls"))
    )
