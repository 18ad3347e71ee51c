"""Chunks that say what a good event stream says, and chunks that say something else: the mutants for faithfulness."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any, TypeAlias

from .ways import Change, Kind, has, kind, put
from .words import ADDED, ANNOTATION, COMPLETED, DONE, FAILED, INCOMPLETE, Event, Events

Chunk: TypeAlias = dict[str, Any]
Chunks: TypeAlias = list[Chunk]

# event type -> the field of a chat delta that says the same
SAID = {
    "response.output_text.delta": "content",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning_content",
    "response.reasoning_summary_text.delta": "reasoning_content",
}
# event type, item type -> the field of a tool call, and of the fragment in it
CALLED = {"function_call": ("function", "arguments"), "custom_tool_call": ("custom", "input")}
FINISH = {"max_output_tokens": "length", "content_filter": "content_filter"}


def chunks_of(events: Events) -> Chunks:
    """Return chunks from which `events` may be made, one for each delta; none where the response failed empty."""
    chunks = [chunk for event in events for chunk in _spoken(event, events)]
    return (
        []
        if len(chunks) == 1 and events[-1]["type"] == FAILED
        else [_chunk({"role": "assistant", "content": ""}), *chunks]
    )


def _chunk(delta: Event, finish: str | None = None, **choice: Any) -> Chunk:
    one = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None, **choice}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1767225600, "model": "choir-large"}
    return {**head, "choices": [one]}


def _spoken(event: Event, events: Events) -> Chunks:
    """Return the chunks behind one event."""
    if event["type"] in SAID:
        logprobs = {"content": event["logprobs"], "refusal": None} if event.get("logprobs") else None
        return [_chunk({SAID[event["type"]]: event["delta"]}, logprobs=logprobs)]
    if event["type"] == ANNOTATION:
        flat = {key: one for key, one in event["annotation"].items() if key != "type"}
        return [_chunk({"annotations": [{"type": "url_citation", "url_citation": flat}]})]
    if event["type"] in (COMPLETED, INCOMPLETE, FAILED):
        return _ending(event["response"])
    return _called(event, events)


def _called(event: Event, events: Events) -> Chunks:
    """Return the chunks behind an event about a call, or sealed reasoning; none for others."""
    item = event.get("item", {})
    if event["type"] == ADDED and item["type"] in CALLED:
        field, fragment = CALLED[item["type"]]
        return [
            _fragment(event, events, id=item["call_id"], type=field, **{field: {"name": item["name"], fragment: ""}})
        ]
    if event["type"] == DONE and "encrypted_content" in item:
        return [_chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": item["encrypted_content"]}]})]
    for field, fragment in CALLED.values():
        if event["type"].endswith(f"call_{fragment}.delta"):
            return [_fragment(event, events, **{field: {fragment: event["delta"]}})]
    return []


def _fragment(event: Event, events: Events, **call: Any) -> Chunk:
    calls = [one["output_index"] for one in events if one["type"] == ADDED and one["item"]["type"] in CALLED]
    return _chunk({"tool_calls": [{"index": calls.index(event["output_index"]), **call}]})


def _ending(response: Event) -> Chunks:
    """Return the finish chunk, or the error, and the usage where it is known."""
    if response["status"] == "failed":
        return [{"error": response["error"]}]
    calls = any(item["type"] in CALLED for item in response["output"])
    reason = FINISH[response["incomplete_details"]["reason"]] if response["incomplete_details"] else None
    finish = _chunk({}, reason or ("tool_calls" if calls else "stop"))
    if response["usage"] is None:
        return [finish]
    return [finish, _usage(response["usage"])]


def _usage(usage: Event) -> Chunk:
    count = {"prompt_tokens": usage["input_tokens"], "completion_tokens": usage["output_tokens"]}
    details = {
        "prompt_tokens_details": {"cached_tokens": usage["input_tokens_details"]["cached_tokens"]},
        "completion_tokens_details": usage["output_tokens_details"],
    }
    return {**_chunk({}), "choices": [], "usage": {**count, "total_tokens": usage["total_tokens"], **details}}


# Ways of making the chunks say something else

DELTA = "choices.0.delta"
ARGUMENTS = f"{DELTA}.tool_calls.0.function.arguments"
INPUT = f"{DELTA}.tool_calls.0.custom.input"
NAME = f"{DELTA}.tool_calls.0.function.name"
FINISHED = "choices.0.finish_reason"


def read(chunk: Any, path: str) -> Any:
    """Return what is at `path` in `chunk`, or None."""
    for step in path.split("."):
        if not has(step)(chunk):
            return None
        chunk = chunk[int(step)] if step.isdigit() else chunk[step]
    return chunk


# Arguments that may be left out, or said before others, without a difference.
EMPTY = "{}"


def saying(chunks: Chunks, path: str) -> list[int]:
    """Return the places of the chunks that say something at `path`."""
    return [at for at, chunk in enumerate(chunks) if read(chunk, path)]


def one_of(path: str, alter: Callable[[Chunks, int], Chunks]) -> Change:
    """Return the change that `alter` makes of one chunk that says something at `path`."""

    def change(chunks: Chunks, rng: Random) -> Chunks | None:
        found = [at for at in saying(chunks, path) if read(chunks[at], path) != EMPTY]
        return alter(chunks, rng.choice(found)) if found else None

    return change


def less(chunks: Chunks, at: int) -> Chunks:
    """Leave out the chunk."""
    return chunks[:at] + chunks[at + 1 :]


def more(chunks: Chunks, at: int) -> Chunks:
    """Say the chunk twice."""
    return chunks[: at + 1] + deepcopy(chunks[at:])


def other(path: str, new: Any) -> Change:
    """Return the change that alters what one chunk says at `path`."""

    def alter(chunks: Chunks, at: int) -> Chunks:
        put(chunks[at], path, new)
        return chunks

    return one_of(path, alter)


def turned(path: str) -> Change:
    """Return the change that says two different neighbouring pieces in the wrong order."""

    def change(chunks: Chunks, rng: Random) -> Chunks | None:
        found = [at for at in saying(chunks, path) if at + 1 in saying(chunks, path)]
        found = [at for at in found if differ(read(chunks[at], path), read(chunks[at + 1], path))]
        if not found:
            return None
        at = rng.choice(found)
        chunks[at], chunks[at + 1] = chunks[at + 1], chunks[at]
        return chunks

    return change


def differ(one: str, two: str) -> bool:
    """Return whether the order of two pieces can be seen in the text."""
    return one + two != two + one


def before_finish(chunk: Chunk) -> Change:
    """Return the change that says `chunk` just before the finish."""

    def change(chunks: Chunks, rng: Random) -> Chunks | None:
        found = saying(chunks, FINISHED)
        return [*chunks[: found[0]], deepcopy(chunk), *chunks[found[0] :]] if found else None

    return change


def finishing(old: tuple[str, ...], new: str) -> Change:
    """Return the change of one finish_reason into another."""

    def change(chunks: Chunks, rng: Random) -> Chunks | None:
        found = [at for at in saying(chunks, FINISHED) if read(chunks[at], FINISHED) in old]
        if not found:
            return None
        put(chunks[found[0]], FINISHED, new)
        return chunks

    return change


def whole_call(chunks: Chunks, rng: Random) -> Chunks | None:
    """Leave out all chunks of the last call."""
    calls = saying(chunks, f"{DELTA}.tool_calls")
    if not calls:
        return None
    last = max(read(chunks[at], f"{DELTA}.tool_calls.0.index") for at in calls)
    gone = {at for at in calls if read(chunks[at], f"{DELTA}.tool_calls.0.index") == last}
    return [chunk for at, chunk in enumerate(chunks) if at not in gone]


def counted(chunks: Chunks, rng: Random) -> Chunks | None:
    """Report usage where none was reported."""
    counts = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return None if saying(chunks, "usage") or not saying(chunks, FINISHED) else [*chunks, _usage({**counts, **details})]


def reasoning_first(chunks: Chunks, rng: Random) -> Chunks | None:
    """Say all reasoning before the text it came after."""
    reasoning = saying(chunks, f"{DELTA}.reasoning_content")
    text = saying(chunks, f"{DELTA}.content")
    if not reasoning or not text or reasoning[0] < text[0]:
        return None
    rest = [chunk for at, chunk in enumerate(chunks) if at not in reasoning]
    return [rest[0], *(chunks[at] for at in reasoning), *rest[1:]]


def success(chunks: Chunks, rng: Random) -> Chunks | None:
    """Finish well where an error was reported."""
    if not saying(chunks, "error"):
        return None
    return [*(chunk for chunk in chunks if "error" not in chunk), _chunk({}, "stop")]


PIECES = {
    "text": f"{DELTA}.content",
    "refusal": f"{DELTA}.refusal",
    "reasoning": f"{DELTA}.reasoning_content",
    "arguments": ARGUMENTS,
    "input": INPUT,
}
SUCCESS = ("stop", "tool_calls")
NEW_CALL = {"index": 99, "id": "call_unheard", "type": "function", "function": {"name": "unheard", "arguments": "{}"}}

CHUNK_KINDS: tuple[Kind, ...] = tuple(
    kind(name, areas, change, numbered=False)
    for name, areas, change in (
        *((f"{name} invented", "FTH", one_of(path, less)) for name, path in PIECES.items()),
        *((f"{name} lost", "FTH", one_of(path, more)) for name, path in PIECES.items()),
        *((f"{name} altered", "FTH", other(path, lambda old: old + "~")) for name, path in PIECES.items()),
        *((f"{name} turned", "FTH", turned(path)) for name, path in PIECES.items()),
        ("text lost at the end", "FTH", before_finish(_chunk({"content": " Lost."}))),
        ("refusal lost at the end", "FTH", before_finish(_chunk({"refusal": " Lost."}))),
        ("reasoning lost at the end", "FTH", before_finish(_chunk({"reasoning_content": " Lost."}))),
        ("white space lost", "FTH", other(f"{DELTA}.content", lambda old: old + " ")),
        ("capitals lost", "FTH", other(f"{DELTA}.content", str.swapcase)),
        ("reasoning after what it led to", "RSN FTH", reasoning_first),
        ("success told as failure", "END", success),
        ("call_id altered", "FTH CAL", other(f"{DELTA}.tool_calls.0.id", lambda old: old + "_other")),
        ("call lost at the end", "FTH", before_finish(_chunk({"tool_calls": [NEW_CALL]}))),
        ("call invented", "FTH", whole_call),
        ("name altered", "FTH", other(NAME, lambda old: old + "_other")),
        ("length told as success", "END", finishing(SUCCESS, "length")),
        ("filter told as success", "END", finishing(SUCCESS, "content_filter")),
        ("error told as success", "END", finishing(SUCCESS, "error")),
        ("length told as filter", "END", finishing(("content_filter",), "length")),
        ("filter told as length", "END", finishing(("length",), "content_filter")),
        ("success told as incomplete", "END", finishing(("length", "content_filter"), "stop")),
        ("error object told as success", "END", before_finish({"error": {"code": 500, "message": "overloaded"}})),
        ("usage lost", "USE", counted),
        ("usage invented", "USE", one_of("usage", less)),
        ("usage altered", "USE", other("usage.prompt_tokens", lambda old: old + 1)),
    )
)
