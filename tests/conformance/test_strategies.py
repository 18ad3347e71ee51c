"""The public strategies: what they draw is what they say, tried on our own handler and on the rules."""

from __future__ import annotations

import doctest
import json
from collections import Counter
from importlib import import_module
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon import convert
from antiphon_conformance import Level, check, same_output
from antiphon_conformance.strategies import (
    BREAKS,
    FAULTS,
    ODDITIES,
    BrokenChunks,
    BrokenEvents,
    ChunkStream,
    Conversation,
    Said,
    answer,
    broken_chunk_streams,
    broken_event_streams,
    chunk_streams,
    conversations,
    event_streams,
    manner_of,
    send,
)

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def bounded(examples: int) -> settings:
    return settings(max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=SLOW)


def converted(chunks: list[Any]) -> list[dict[str, Any]]:
    return list(convert(chunks, events="dict", ids="counted", created_at=0))


@bounded(400)
@given(chunk_streams())
def test_however_it_is_sent_the_same_comes_out(stream: ChunkStream) -> None:
    events = converted(stream.chunks)
    assert [str(one) for one in check(events, chunks=stream.chunks).at(Level.MUST)] == []
    assert same_output(events, stream.events) == []


@pytest.mark.parametrize("oddity", ODDITIES)
def test_every_oddity_is_one(oddity: str) -> None:
    calls = (Said("call", '{"a": 1}', "look_up", "call-1"), Said("call", "[]", "dig", "call-2"))
    talks = [
        Conversation((Said("reasoning", "hm, so"), Said("text", "Hello there"), *calls), "tool_calls", (5, 2)),
        Conversation((Said("call", '{"a": 1}', "look_up"),), "tool_calls", (5, 2)),
    ]
    manners = [manner_of(oddity, seed=seed) for seed in range(4)]
    sent = [(send(talk), [send(talk, manner) for manner in manners]) for talk in talks]
    assert any(plain != odd for plain, several in sent for odd in several)
    for talk in talks:
        for manner in manners:
            assert same_output(converted(send(talk, manner)), answer(talk)) == []


@bounded(100)
@given(chunk_streams(oddities=("single characters", "no such oddity")))
def test_only_the_oddities_that_are_asked_for(stream: ChunkStream) -> None:
    assert set(stream.oddities) <= {"single characters"}


@bounded(100)
@given(chunk_streams(conversations(("text", "call"), most=2), oddities=()))
def test_conversations_of_the_kinds_that_are_asked_for(stream: ChunkStream) -> None:
    assert stream.oddities == ()
    assert {one.kind for one in stream.conversation.said} <= {"text", "call"}
    assert len(stream.conversation.said) <= 2
    said = [choice["delta"] for chunk in stream.chunks for choice in chunk["choices"]]
    assert "".join(delta.get("content", "") for delta in said) == stream.conversation.of("text")
    assert json.loads(json.dumps(stream.chunks)) == stream.chunks


@bounded(400)
@given(broken_chunk_streams())
def test_what_breaks_still_ends_once_and_truly(stream: BrokenChunks) -> None:
    events = converted(stream.chunks)
    assert [str(one) for one in check(events, chunks=stream.chunks).at(Level.MUST)] == []
    endings = [
        event["type"]
        for event in events
        if event["type"] in ("response.completed", "response.incomplete", "response.failed")
    ]
    assert len(endings) == 1
    counted = '"usage"' in json.dumps(stream.chunks, default=str)
    # a cut after the usage cannot be told from an end
    if stream.how in ("no finish_reason", "error in a chunk", "finish_reason error") or (
        stream.how == "cut" and not counted
    ):
        assert endings != ["response.completed"]


@pytest.mark.parametrize("how", BREAKS)
def test_every_break_can_be_asked_for(how: str) -> None:
    seen: list[str] = []

    @bounded(20)
    @given(broken_chunk_streams(breaks=(how,)))
    def draw(stream: BrokenChunks) -> None:
        seen.append(stream.how)

    draw()
    assert set(seen) == {how}


@bounded(300)
@given(event_streams())
def test_no_rule_finds_anything_in_a_good_stream(events: list[dict[str, Any]]) -> None:
    assert [str(one) for one in check(events).at(Level.MUST)] == []


@bounded(100)
@given(conversations(), st.sampled_from((1, 3, 1000)), st.integers(0, 99))
def test_the_cut_of_deltas_is_not_output(talk: Conversation, piece: int, seed: int) -> None:
    assert same_output(answer(talk), answer(talk, piece=piece, seed=seed)) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_found_by_its_rule(fault: str) -> None:
    seen: Counter[str] = Counter()

    @bounded(12)
    @given(broken_event_streams(faults=(fault,)))
    def draw(broken: BrokenEvents) -> None:
        report = check(broken.events)
        assert broken.code in report.codes
        assert not report.ok
        seen[broken.code] += 1

    draw()
    assert set(seen) == {FAULTS[fault].code}


def test_a_good_stream_of_ones_own_is_broken() -> None:
    good = answer(Conversation((Said("text", "Hello"),)))

    @bounded(20)
    @given(broken_event_streams(st.just(good), faults=("a delta lost", "no in_progress")))
    def draw(broken: BrokenEvents) -> None:
        assert len(broken.events) == len(good) - 1

    draw()
    assert good == answer(Conversation((Said("text", "Hello"),)))


@pytest.mark.parametrize("module", ["conversations", "manners", "sending", "events"])
def test_the_examples_in_the_docstrings(module: str) -> None:
    loaded = import_module(f"antiphon_conformance.strategies.{module}")
    names = {"Conversation": Conversation, "Said": Said}
    result = doctest.testmod(loaded, extraglobs=names)
    assert result.attempted > 0
    assert result.failed == 0
