"""The tables of the engine are total: every state takes every input, or says that it is an error."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from antiphon.ids import CountedIds
from antiphon.stream.assemble import TRANSITIONS, Assembler, Phase
from antiphon.stream.calls import TABLE, Calls, IdIs, IndexIs, NameIs
from antiphon.stream.deltas import (
    AnnotationDelta,
    CallDelta,
    Delta,
    ErrorDelta,
    FinishDelta,
    LogprobsDelta,
    MediaDelta,
    ReasoningDelta,
    RefusalDelta,
    SourceDelta,
    TextDelta,
    UsageDelta,
)
from antiphon.stream.emit import DictEmitter
from antiphon.stream.endings import BY_GRAVITY, FINISHES, Gravity

DELTAS: tuple[Delta, ...] = (
    TextDelta("Hi"),
    RefusalDelta("No"),
    ReasoningDelta("Hm"),
    CallDelta(0, "call_x", "f", "{}"),
    AnnotationDelta(
        ({"type": "url_citation", "url": "https://example.org", "title": "", "start_index": 0, "end_index": 0},)
    ),
    LogprobsDelta("text", ({"token": "a", "logprob": 0.0, "bytes": [97], "top_logprobs": []},)),
    MediaDelta("audio", {"data": "AA=="}),
    SourceDelta("m", {"id": "x"}),
    UsageDelta({"input_tokens": 1}, False, {}),
    FinishDelta("stop"),
    ErrorDelta("server_error", "broken"),
)
BEFORE: dict[Phase, tuple[Delta, ...]] = {
    Phase.STREAMING: (),
    Phase.FINISHED: (FinishDelta("stop"),),
    Phase.ENDED: (ErrorDelta("server_error", "broken"),),
}


def assembler() -> Assembler:
    return Assembler(DictEmitter(), CountedIds(), None, lambda: 0, "summary", lambda code, message: None)


def test_every_delta_is_in_the_walk() -> None:
    assert {type(delta) for delta in DELTAS} == set(get_args(Delta))
    assert set(BEFORE) == set(Phase) == set(TRANSITIONS)


@pytest.mark.parametrize(
    ("phase", "delta"), list(product(Phase, DELTAS)), ids=lambda one: getattr(one, "name", type(one).__name__)
)
def test_every_phase_takes_every_delta_or_refuses_it(phase: Phase, delta: Delta) -> None:
    made = assembler()
    for one in BEFORE[phase]:
        made.feed([one])
    assert made.phase is phase
    if type(delta) not in TRANSITIONS[phase]:
        with pytest.raises(KeyError):
            made.feed([delta])
        assert made.phase is phase
        return
    made.feed([delta])
    assert made.phase is TRANSITIONS[phase][type(delta)]
    assert (made.final is not None) == (made.phase is Phase.ENDED)


@pytest.mark.parametrize(("id", "index", "name"), list(product(IdIs, IndexIs, NameIs)))
def test_a_row_fits_whatever_is_known_of_a_fragment(id: IdIs, index: IndexIs, name: NameIs) -> None:
    rows = [row for row in TABLE if id in row.id and index in row.index and name in row.name]
    assert rows
    assert not all(row.anonymous for row in rows)


def test_a_fragment_is_given_to_one_call_only() -> None:
    calls = Calls()
    first, new = calls.attribute(CallDelta(0, "call_x", "f", "{"))
    again, newer = calls.attribute(CallDelta(0, "", "", "}"))
    assert first is not None
    assert (again, new, newer) == (first, True, False)
    assert calls.all == [first]


def test_every_gravity_has_an_ending() -> None:
    assert set(BY_GRAVITY) == set(Gravity) >= set(FINISHES.values())
