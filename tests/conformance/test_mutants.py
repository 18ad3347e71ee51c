"""The rules are tested with streams that are good, streams that are broken in one place, and harmless variants.

Our own good streams are in `good_streams`. Where the corpus of recordings lies beside the checkout, recorded streams
of the real API that hold messages, reasoning and calls only are broken as well.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from antiphon_conformance import Finding, Level, all_rules, check

from .mutants import CHUNK_KINDS, HARMLESS, KINDS, Events, Kind, chunks_of

HERE = Path(__file__).parent
CORPUS = HERE.parents[2] / "shared" / "corpus" / "responses"
SAMPLED = ("openai", "azure-openai")
LONGEST = 24  # events; a longer recording says nothing more, and takes long
PLAIN = ("message", "reasoning", "function_call", "custom_tool_call")
SEED = 20260101


def read(path: Path) -> Events:
    """Return the events of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


OURS = {path.stem: read(path) for path in sorted((HERE / "good_streams").glob("*.jsonl"))}
RECORDED = {
    f"{folder}/{path.stem}": read(path) for folder in SAMPLED for path in sorted((CORPUS / folder).glob("*.jsonl"))
}


def breakable(events: Events) -> bool:
    """Return whether the kinds are made for this recording: short, whole, numbered, with plain items only."""
    whole = events[0]["type"] == "response.created" and events[-1]["type"].startswith("response.")
    plain = all(event["item"]["type"] in PLAIN for event in events if "item" in event)
    return len(events) <= LONGEST and whole and plain and "sequence_number" in events[0]


def convertible(events: Events) -> bool:
    """Return whether chunks can say this: two neighbouring messages, or reasoning items, would be one."""
    types = [event["item"]["type"] for event in events if event["type"] == "response.output_item.added"]
    return all(one != two or one.endswith("_call") for one, two in pairwise(types))


CHUNKS = {name: chunks_of(events) for name, events in OURS.items() if convertible(events)}
BREAKABLE = {name: events for name, events in RECORDED.items() if breakable(events)}


@dataclass(frozen=True)
class Trial:
    """One mutant, and what was found in it."""

    stream: str
    kind: Kind
    findings: tuple[Finding, ...]

    @property
    def loud(self) -> tuple[Finding, ...]:
        """The findings that are loud enough for the kind."""
        levels = (Level.MUST,) if self.kind.level == "MUST" else (Level.MUST, Level.SHOULD)
        return tuple(one for one in self.findings if one.level in levels)

    def __str__(self) -> str:
        return f"{self.stream}: {self.kind.name} ({self.kind.level}): {[str(one) for one in self.findings]}"


def found_in(events: Any, **more: Any) -> tuple[Finding, ...]:
    """Return what the rules find."""
    return tuple(check(events, **more).findings)


@cache
def trials(recorded: bool = False) -> tuple[Trial, ...]:
    """Return a trial for each stream and kind that applies to it: what is found beyond what the good stream has."""
    return tuple(_trials(BREAKABLE if recorded else OURS))


def _trials(streams: dict[str, Events]) -> Iterator[Trial]:
    for name, events in streams.items():
        known = Counter((one.code, one.level) for one in found_in(events))
        for kind in KINDS:
            mutant = kind.mutate(events, SEED)
            if mutant is not None:
                yield Trial(name, kind, _beyond(known, found_in(mutant)))


def _beyond(known: Counter[Any], findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return `findings` without as many of each sort as the good stream has."""
    left = known.copy()
    new = []
    for one in findings:
        if left[one.code, one.level] > 0:
            left[one.code, one.level] -= 1
        else:
            new.append(one)
    return tuple(new)


@cache
def chunk_trials() -> tuple[Trial, ...]:
    """Return a trial for each of our streams and each way in which chunks say something else."""
    return tuple(
        Trial(name, kind, found_in(OURS[name], chunks=mutant))
        for name, chunks in CHUNKS.items()
        for kind in CHUNK_KINDS
        if (mutant := kind.mutate(chunks, SEED)) is not None
    )


# What a request might have said that no head of our good streams repeats.
REQUESTS: dict[str, Any] = {
    "instructions": "Sing in Latin.",
    "temperature": 0.75,
    "top_p": 0.5,
    "metadata": {"choir": "12"},
    "tool_choice": "required",
    "tools": [{"type": "function", "name": "unasked", "description": None, "parameters": {}, "strict": False}],
}


@cache
def request_trials() -> tuple[Trial, ...]:
    """Return a trial for each of our streams and each request that its head does not repeat."""
    kinds = {key: Kind(f"{key} not repeated", ("STR",), lambda events, rng: events, "SHOULD") for key in REQUESTS}
    return tuple(
        Trial(name, kinds[key], found_in(events, request={key: asked}))
        for name, events in OURS.items()
        for key, asked in REQUESTS.items()
    )


@cache
def split_trials() -> tuple[Trial, ...]:
    """Return a trial for each of our streams that makes more items of its chunks than they have runs of text."""
    kind = Kind("a text in two items", ("FTH",), lambda events, rng: events)
    split = {name: events for name, events in OURS.items() if not convertible(events)}
    return tuple(Trial(name, kind, found_in(events, chunks=chunks_of(events))) for name, events in split.items())


def everything() -> tuple[Trial, ...]:
    """Return all trials that need nothing but what is in the tree."""
    return (*trials(), *chunk_trials(), *request_trials(), *split_trials())


def musts(findings: tuple[Finding, ...]) -> list[str]:
    """Return the MUST findings as text."""
    return [str(one) for one in findings if one.level is Level.MUST]


def rate(tried: tuple[Trial, ...]) -> tuple[float, str]:
    """Return the share of mutants that are reported, and the survivors, for a message."""
    survivors = [one for one in tried if not one.loud]
    by_kind: dict[str, list[str]] = defaultdict(list)
    for one in survivors:
        by_kind[f"{one.kind.name} ({one.kind.level})"].append(one.stream)
    told = "\n".join(f"  {name}: {', '.join(streams)}" for name, streams in by_kind.items())
    return 1 - len(survivors) / len(tried), f"{len(survivors)} of {len(tried)} mutants survive:\n{told}"


# Good streams


@pytest.mark.parametrize("name", OURS)
def test_a_good_stream_breaks_no_must(name: str) -> None:
    assert musts(found_in(OURS[name])) == []


@pytest.mark.parametrize("name", CHUNKS)
def test_a_good_stream_and_its_chunks_break_no_must(name: str) -> None:
    assert musts(found_in(OURS[name], chunks=CHUNKS[name])) == []


@pytest.mark.skipif(not RECORDED, reason="the corpus does not lie beside the checkout")
def test_recordings_of_the_real_api_break_no_must() -> None:
    broken = {}
    for name, events in RECORDED.items():
        first = events[0].get("sequence_number", 0)
        resumed = {} if events[0]["type"] == "response.created" else {"starting_after": first - 1}
        if found := musts(found_in(events, **resumed)):
            broken[name] = found
    assert broken == {}


@pytest.mark.parametrize("name", OURS)
def test_a_stream_resumed_anywhere_breaks_no_must(name: str) -> None:
    events = OURS[name]
    broken = {at: musts(found_in(events[at + 1 :], starting_after=at)) for at in range(len(events) - 1)}
    assert {at: found for at, found in broken.items() if found} == {}


@pytest.mark.parametrize("kind", HARMLESS, ids=lambda kind: kind.name)
def test_a_harmless_change_breaks_no_must(kind: Kind) -> None:
    mutants = {name: mutant for name, events in OURS.items() if (mutant := kind.mutate(events, SEED)) is not None}
    broken = {name: found for name, mutant in mutants.items() if (found := musts(found_in(mutant)))}
    assert mutants
    assert broken == {}


# Broken streams


def test_there_are_kinds_enough_and_each_applies() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS) >= 70
    assert {kind.name for kind in KINDS} == {one.kind.name for one in trials()}
    assert {kind.name for kind in CHUNK_KINDS} == {one.kind.name for one in chunk_trials()}


@pytest.mark.parametrize("name", OURS)
def test_a_request_that_the_head_repeats_breaks_nothing(name: str) -> None:
    head = OURS[name][0]["response"]
    request = {key: head[key] for key in (*REQUESTS, "model", "max_output_tokens", "parallel_tool_calls", "reasoning")}
    assert found_in(OURS[name], request=request) == found_in(OURS[name])


def test_mutants_of_our_streams_are_reported() -> None:
    killed, survivors = rate(trials())
    print(survivors)
    assert killed >= 0.97, survivors


# Kinds that no rule reports, and what the rules lack: as a baseline's lines, these fail when they are stale.
@pytest.mark.parametrize("name", [kind.name for kind in KINDS])
def test_no_kind_survives_everywhere(name: str) -> None:
    tried = [one for one in trials() if one.kind.name == name]
    reported = any(one.loud for one in tried)
    assert reported, f"a rule is missing: {tried[0]}"


@pytest.mark.skipif(not BREAKABLE, reason="the corpus does not lie beside the checkout")
def test_mutants_of_recordings_are_reported() -> None:
    killed, survivors = rate(trials(recorded=True))
    print(survivors)
    assert killed >= 0.97, survivors


@pytest.mark.parametrize("tried", [chunk_trials, request_trials, split_trials], ids=lambda tried: tried.__name__)
def test_mutants_of_what_was_known_are_reported(tried: Callable[[], tuple[Trial, ...]]) -> None:
    killed, survivors = rate(tried())
    print(survivors)
    assert killed >= 0.97, survivors


def test_mutants_are_reported_by_the_area_they_are_in() -> None:
    told = [one for one in everything() if one.loud]
    astray = [str(one) for one in told if not {found.code[:3] for found in one.findings} & set(one.kind.areas)]
    assert len(astray) <= 0.03 * len(told), "\n".join(astray)


@pytest.mark.parametrize("code", [rule.code for rule in all_rules()])
def test_each_rule_reports_a_mutant(code: str) -> None:
    assert any(found.code == code for one in everything() for found in one.findings), f"no mutant breaks {code}"


def test_one_event_dropped_is_at_most_two_findings() -> None:
    counts: dict[str, int] = {}
    for name, events in OURS.items():
        for at, event in enumerate(events):
            rest = events[:at] + events[at + 1 :]
            mutant = [{**one, "sequence_number": n} for n, one in enumerate(rest)]
            counts[f"{name} without event {at} {event['type']}"] = len(found_in(mutant)) - len(found_in(events))
    many = {name: found for name, found in counts.items() if found > 2}
    assert len(many) <= 0.05 * len(counts), many


# Junk

JUNK: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**70,
    0.5,
    "",
    "x",
    "response.created",
    [],
    [[]],
    [None],
    {},
    {"type": 1},
    {"": ""},
)


def junked(value: Any, rng: Random) -> Any:
    """Return `value` with junk somewhere in it."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.25:
        return deepcopy(rng.choice(JUNK))
    if isinstance(value, dict):
        key = rng.choice(sorted(value))
        return {**value, key: junked(value[key], rng)}
    at = rng.randrange(len(value))
    return [*value[:at], junked(value[at], rng), *value[at + 1 :]]


@pytest.mark.parametrize("name", OURS)
def test_no_junk_makes_the_rules_raise(name: str) -> None:
    rng = Random(f"{SEED}/{name}")
    for _ in range(12):
        events, chunks = junked(OURS[name], rng), junked(chunks_of(OURS[name]), rng)
        if isinstance(events, list) and isinstance(chunks, list):
            assert check(events).findings is not None
            assert check(OURS[name], chunks=chunks).findings is not None
