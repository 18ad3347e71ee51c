"""Reports of a made-up adapter for the tests of written reports: runs of each outcome, by streams of ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from antiphon_conformance import check
from antiphon_conformance.report import Level
from antiphon_conformance.results import Deviation, Outcome, Run, Subject, SuiteReport

from .broken import BROKEN
from .building import Events, call, chunk, message, reasoning, stream

CHUNKS = (
    chunk(role="assistant", content=""),
    chunk(reasoning_content="hm"),
    chunk(content="Hel"),
    chunk(content="lo"),
    chunk("stop"),
)
GOOD = stream(reasoning(("hm",)), message("Hel", "lo"))
ONE_FAKE_ID = Deviation("ITM002", "*", "one fake id for all items", "https://example.org/7")


def run_of(case: str, events: Events, **more: Any) -> Run:
    """Return the run of a case that gave `events`, judged."""
    report = check(events)
    expected: Mapping[str, Deviation] = more.get("expected", {})
    failing = [one for one in report.at(Level.MUST) if one.code not in expected]
    outcome = Outcome.FAIL if failing else Outcome.EXPECTED if expected else Outcome.PASS
    made = {"title": case, "outcome": outcome, "findings": report.findings, "ran": report.ran, "events": report.events}
    return Run(case, **{**made, "chunks": CHUNKS, **more})


def every_outcome() -> tuple[Run, ...]:
    """Return a passing, failing, expected, wrong and inapplicable run."""
    fake: Events = json.loads(json.dumps(GOOD).replace("rs_0", "fake").replace("msg_1", "fake"))
    return (
        run_of("text/plain", GOOD),
        run_of("text/plain", GOOD[:3] + GOOD[4:], form="characters", title="text/plain"),
        run_of("text/two", fake, expected={"ITM002": ONE_FAKE_ID}),
        Run("text/wrong", "wrong", Outcome.ERROR, reason="chunk 0 is no object"),
        Run("audio/one", "audio", Outcome.NOT_APPLICABLE, needs=("audio",), reason="needs: audio"),
    )


def report_of(*runs: Run, **more: Any) -> SuiteReport:
    """Return the report of these runs."""
    subject = Subject("mypackage.stream:convert", "adapter", "0.3.1")
    given = {"suite_version": "1.0", "package_version": "0.1.0", "cases_hash": "sha256:00", **more}
    return SuiteReport(subject, runs, **given)


def many_broken(rounds: int) -> tuple[Run, ...]:
    """Return a run for each broken stream that we have, several times over."""
    return tuple(
        run_of(f"broken/{one.code.lower()}-{at}-{turn}", one.events, title=one.what)
        for turn in range(rounds)
        for at, one in enumerate(BROKEN)
    )


def long_stream(messages: int) -> Run:
    """Return the run of a stream of 56 events a message, one of which has a wrong number."""
    events = stream(*[message(*["word "] * 50) for _ in range(messages)], call("f", "{}"))
    middle = len(events) // 2
    events[middle] = {**events[middle], "sequence_number": 1}
    return run_of("long/stream", events, chunks=[chunk(content="word ")] * (50 * messages))
