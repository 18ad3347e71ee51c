"""Forms: from one case the suite makes more by itself. What is derived means the same, or is broken off.

A form of the same meaning has the expectation of its case. A stream that is broken off has none of its own: the rules
know from its chunks how it must end, and that no call may count as complete which is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import Any

from .case import ENVELOPE, Case, Raises, choices
from .read import Json, mapping, mappings, number, text
from .said import REASONING_FIELDS

_TEXTS = ("content", "refusal")
_NOTHING: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": None}
# What says nothing, and may stand between any two chunks.
_SILENT: tuple[Json, ...] = (
    {**ENVELOPE, "choices": [{**_NOTHING, "delta": {"role": "assistant"}}]},
    {**ENVELOPE, "choices": [_NOTHING]},
    {**ENVELOPE, "choices": []},
    {**ENVELOPE, "choices": [{**_NOTHING, "delta": {"content": ""}}]},
)
_KEYS = ("role", "content", "refusal", "tool_calls", "function_call")
_MOST_BROKEN = 24  # so many places at which one stream is broken off


def derive(case: Case) -> Iterator[Case]:
    """Yield the forms of `case`, without the case itself; the same each time."""
    for name, make in FORMS.items():
        if name not in case.not_as:
            yield from make(case)


def _as(case: Case, form: str, chunks: Sequence[Json]) -> Iterator[Case]:
    """Yield the form, if it is another stream than its case."""
    if tuple(chunks) != case.chunks:
        yield replace(case, chunks=tuple(chunks), form=form)


# Cut into single characters


def characters(case: Case) -> Iterator[Case]:
    """Yield the case with every text, every reasoning and all arguments cut into single characters."""
    yield from _as(case, "characters", [piece for chunk in case.chunks for piece in _cut(chunk)])


def _cut(chunk: Json) -> list[Json]:
    """Return `chunk` in pieces of one character each; as it is where it says several things, or none that is text."""
    found = choices(chunk)
    if (
        len(found) != 1
        or found[0].get("index")
        or found[0].get("logprobs")
        or not isinstance(found[0].get("delta"), dict)
    ):
        return [chunk]
    choice: Json = found[0]
    deltas = _cut_delta(choice["delta"])
    if len(deltas) < 2:
        return [chunk]
    quiet = {key: value for key, value in chunk.items() if key in ENVELOPE}
    inner = {**choice, "finish_reason": None}
    early = [{**quiet, "choices": [{**inner, "delta": delta}]} for delta in deltas[:-1]]
    return [*early, {**chunk, "choices": [{**choice, "delta": deltas[-1]}]}]


def _cut_delta(delta: Json) -> list[Json]:
    """Return the deltas of one character each that say what `delta` says, one where it cannot be cut."""
    said = _said(delta)
    fragments = mappings(said.get("tool_calls"))
    if len(said) == 1 and len(fragments) == 1:
        return [
            {**(delta if n == 0 else {}), "tool_calls": [one]} for n, one in enumerate(_cut_fragment(fragments[0], 1))
        ]
    texts = set(map(str, said.values()))
    kinds = {"reasoning" if key in REASONING_FIELDS else key for key in said}
    if len(texts) != 1 or len(kinds) != 1 or not kinds <= {"reasoning", *_TEXTS}:
        return [delta]
    if not all(isinstance(value, str) for value in said.values()):
        return [delta]
    return [{**(delta if n == 0 else {}), **dict.fromkeys(said, char)} for n, char in enumerate(texts.pop())]


def _cut_fragment(fragment: Json, size: int) -> list[Json]:
    """Return the fragments with arguments of `size` characters each, the first with what else the fragment has."""
    place = "custom" if isinstance(fragment.get("custom"), dict) else "function"
    field = "input" if place == "custom" else "arguments"
    inner = mapping(fragment.get(place))
    whole = text(inner.get(field))
    if len(whole) <= size:
        return [fragment]
    kept: Json = {"index": fragment["index"]} if fragment.get("index") is not None else {}
    if not kept and fragment.get("id"):
        kept = {"id": fragment["id"]}
    if place == "custom":
        kept["type"] = "custom"
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    first: Json = {**fragment, place: {**inner, field: pieces[0]}}
    return [first, *({**kept, place: {field: piece}} for piece in pieces[1:])]


# Parallel calls interleaved


def interleaved(case: Case) -> Iterator[Case]:
    """Yield the case with the fragments of calls that come one after another taken in turns."""
    made: list[Json] = []
    run: list[Json] = []
    for chunk in [*case.chunks, None]:
        fragments = _fragments(chunk) if chunk is not None else []
        if fragments:
            run += fragments
            continue
        made += [{**ENVELOPE, "choices": [{**_NOTHING, "delta": {"tool_calls": [one]}}]} for one in _in_turns(run)]
        run = []
        if chunk is not None:
            made.append(chunk)
    if any(map(_takes_turns, _runs(case))):
        yield from _as(case, "interleaved", made)


def _runs(case: Case) -> list[list[Json]]:
    """Return the fragments of each run of chunks that hold nothing but fragments."""
    runs: list[list[Json]] = [[]]
    for chunk in case.chunks:
        fragments = _fragments(chunk)
        if fragments:
            runs[-1] += fragments
        elif runs[-1]:
            runs.append([])
    return runs


def _fragments(chunk: Json) -> list[Json]:
    """Return the fragments of calls in a chunk that holds nothing else, none for any other."""
    found = choices(chunk)
    if len(found) != 1 or found[0].get("index") or found[0].get("finish_reason") or chunk.get("usage"):
        return []
    said = _said(mapping(found[0].get("delta")))
    return mappings(said["tool_calls"]) if list(said) == ["tool_calls"] else []


def _said(delta: Json) -> Json:
    """Return what a delta says, without its role and what is empty."""
    return {key: value for key, value in delta.items() if value not in (None, "", []) and key != "role"}


def _takes_turns(run: Sequence[Json]) -> bool:
    """Whether the fragments are of several calls, each with an index and a head of its own."""
    groups = _groups(run)
    return len(groups) > 1 and all(map(_is_one_call, groups.values()))


def _groups(run: Sequence[Json]) -> dict[Any, list[Json]]:
    groups: dict[Any, list[Json]] = {}
    for fragment in run:
        groups.setdefault(fragment.get("index"), []).append(fragment)
    return groups


def _is_one_call(group: Sequence[Json]) -> bool:
    """Whether the first fragment has the name and the id, no other has, and arguments are texts."""
    if number(group[0].get("index")) is None or not all(isinstance(one.get("function"), dict) for one in group):
        return False
    inner = [mapping(fragment["function"]) for fragment in group]
    named = [bool(one.get("name")) for one in inner]
    told = [isinstance(one.get("arguments", ""), str) for one in inner]
    others = any(fragment.get("id") or fragment.get("extra_content") for fragment in group[1:])
    return all(told) and named[0] and bool(group[0].get("id")) and not any(named[1:]) and not others


def _in_turns(run: Sequence[Json]) -> list[Json]:
    if not _takes_turns(run):
        return list(run)
    cut = [[piece for fragment in group for piece in _cut_fragment(fragment, 4)] for group in _groups(run).values()]
    return [fragment for fragment in chain.from_iterable(zip_longest(*cut)) if fragment is not None]


# Broken off


def broken(case: Case) -> Iterator[Case]:
    """Yield the case broken off after each chunk but the last, and once by an exception of the source."""
    off = replace(case, needs=case.needs | {"errors"}, expect=None, done=False, raises=None)
    for at in range(1, len(case.chunks))[:_MOST_BROKEN]:
        yield replace(off, chunks=case.chunks[:at], form=f"broken off after {at}")
    if case.raises is None and len(case.chunks) > 1:
        at = len(case.chunks) // 2
        fault = Raises("the peer closed the connection")
        yield replace(off, chunks=case.chunks[:at], form=f"raises after {at}", raises=fault)


# Usage moved


def usage_alone(case: Case) -> Iterator[Case]:
    """Yield the case with its usage in a last chunk of its own."""
    at = _usage_at(case)
    if at is None or not case.chunks[at].get("choices"):
        return
    bare = {key: value for key, value in case.chunks[at].items() if key != "usage"}
    last: Json = {**ENVELOPE, "choices": [], "usage": case.chunks[at]["usage"]}
    yield from _as(case, "usage-alone", [*case.chunks[:at], bare, *case.chunks[at + 1 :], last])


def usage_on_finish(case: Case) -> Iterator[Case]:
    """Yield the case with its usage on the chunk with the finish_reason."""
    at = _usage_at(case)
    finish = [n for n, chunk in enumerate(case.chunks) if any(one.get("finish_reason") for one in choices(chunk))]
    if (
        at is None
        or not finish
        or case.chunks[at].get("choices")
        or set(case.chunks[at]) - {*ENVELOPE, "choices", "usage"}
    ):
        return
    chunks = list(case.chunks)
    chunks[finish[-1]] = {**chunks[finish[-1]], "usage": chunks[at]["usage"]}
    yield from _as(case, "usage-on-finish", [chunk for n, chunk in enumerate(chunks) if n != at])


def _usage_at(case: Case) -> int | None:
    """Return the place of the one chunk with usage, None where there is none or several, or no finish_reason."""
    places = [at for at, chunk in enumerate(case.chunks) if isinstance(chunk.get("usage"), dict)]
    return places[0] if len(places) == 1 and case.finishes else None


# Chunks that say nothing


def empty(case: Case) -> Iterator[Case]:
    """Yield the case with chunks that say nothing between its chunks."""
    made = [one for n, chunk in enumerate(case.chunks) for one in (chunk, _SILENT[n % len(_SILENT)])]
    yield from _as(case, "empty", made[:-1] if made else [])


def nulls(case: Case) -> Iterator[Case]:
    """Yield the case with null for every key of a delta that is not there, as SDKs write it."""
    yield from _as(case, "nulls", [_with_nulls(chunk) for chunk in case.chunks])


def _with_nulls(chunk: Json) -> Json:
    if not choices(chunk):
        return chunk
    made = [
        {**one, "delta": {**dict.fromkeys(_KEYS), **one["delta"]}} if isinstance(one.get("delta"), dict) else one
        for one in choices(chunk)
    ]
    return {**chunk, "choices": made}


FORMS: dict[str, Callable[[Case], Iterator[Case]]] = {
    "characters": characters,
    "interleaved": interleaved,
    "broken": broken,
    "usage-alone": usage_alone,
    "usage-on-finish": usage_on_finish,
    "empty": empty,
    "nulls": nulls,
}
