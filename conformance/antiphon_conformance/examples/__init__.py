"""Good and broken streams: for each rule one that breaks it, and the good one that it was made of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from antiphon_conformance.exchange import Exchange
from antiphon_conformance.read import mapping
from antiphon_conformance.report import Report


@dataclass(frozen=True, slots=True)
class EventExample:
    """A stream of events that breaks a rule. `what` says what is broken."""

    what: str
    good: Sequence[Any]
    bad: Sequence[Any]
    report: Report


@dataclass(frozen=True, slots=True)
class AnswerExample:
    """An answer of a server that breaks a rule."""

    what: str
    good: Exchange
    bad: Exchange
    report: Report


def example_of(code: str) -> EventExample | AnswerExample | None:
    """Return the example for the rule of this code, None where there is none."""
    return _of_events(code) or _of_answers(code)


def _of_events(code: str) -> EventExample | None:
    from antiphon_conformance import check

    from .broken import BROKEN

    broken = next((one for one in BROKEN if one.code == code), None)
    if broken is None:
        return None
    good = max(good_streams(), key=lambda events: _likeness(events, broken.events))
    return EventExample(broken.what, good, broken.events, check(broken.events, **broken.given))


def _of_answers(code: str) -> AnswerExample | None:
    from antiphon_conformance.chunks import check_answer

    from .answers import GOOD, MUTANTS

    mutant = next((one for one in MUTANTS if one.code == code), None)
    if mutant is None:
        return None
    good = max(GOOD.values(), key=lambda one: _shared(one, mutant.exchange))
    return AnswerExample(mutant.name, good, mutant.exchange, check_answer(mutant.exchange))


@cache
def good_streams() -> tuple[Sequence[Any], ...]:
    """Return the good streams that the broken ones were made of."""
    from . import broken
    from .building import call, message, stream

    return (
        stream(message("a")), stream(call("f", "{}")), stream(message("a", status="incomplete"), ending="incomplete"),
        stream(call("f", "{}"), message("a")),
        broken.TEXT, broken.LOGS, broken.LINKS, broken.TWO, broken.CALLS, broken.CUSTOM, broken.THOUGHT, broken.RAW,
        broken.SEARCH, broken.CUT, broken.FAILED,
    )  # fmt: skip


def _shared(good: Exchange, bad: Exchange) -> tuple[bool, ...]:
    """Return in what a good answer is of the kind of a broken one, the weightiest first."""
    return (
        good.api == bad.api,
        bool(good.refusal) == (bool(bad.refusal) and not bad.answered),
        (good.twin is None) == (bad.twin is None),
        (good.beside is None) == (bad.beside is None),
        (good.after is None) == (bad.after is None),
        good.request == bad.request,
    )


def _likeness(one: Sequence[Any], other: Sequence[Any]) -> float:
    """Return how much alike two streams are: by the types of their events, and by all that is in them."""
    types = [[str(mapping(event).get("type")) for event in events] for events in (one, other)]
    lines = [[json.dumps(event, sort_keys=True) for event in events] for events in (one, other)]
    return sum(SequenceMatcher(a=good, b=bad, autojunk=False).ratio() for good, bad in (types, lines))
