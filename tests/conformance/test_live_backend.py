"""A live check of llama.cpp's own server with a scripted model, where both are on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from antiphon.backend import Timeouts
from antiphon.profile import DEFAULT, Profile
from antiphon_conformance import Level
from antiphon_conformance.live import LiveOptions, check_live
from antiphon_conformance.results import Layer, SuiteReport
from tests.providers.backends.llamacpp import llamacpp, needs_llamacpp

pytestmark = [pytest.mark.live, needs_llamacpp]

# What this server does otherwise than OpenAI's, in the chunk stream.
KNOWN = {
    "CHT017",  # timings, reasoning_content, an id in log probabilities
    "CHT020",  # no role where the first token is half a character
    "CHT022",  # content null beside the role
    "CHT026",  # tool_choice none: the markup of a call as text
    "CHT037",  # a stop word within arguments
    "CHT050",  # numbers as error codes
    "CHT051",  # a model that does not exist is served
    "CHT052",  # another code for a prompt that is too long
    "CHT062",  # a usage chunk for each choice
    "CHT070",  # top_logprobs unasked
    "CHT074",  # a named function is not the one called
}
# What only some draws of the model show: a fault in the middle of a stream; and created, which moves with the second.
BY_CHANCE = {"CHT007", "CHT012"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Run the server while this module's tests run."""
    with llamacpp() as at:
        yield f"{at}/v1"


@pytest.fixture(scope="module")
def live(url: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[SuiteReport, Path]:
    """Return the report of one live run of the chat API, and its recording."""
    folder = tmp_path_factory.mktemp("recording")
    options = LiveOptions(url=url, model="tiny", record=folder, timeouts=Timeouts(5.0, 60.0, 60.0, 120.0))
    return check_live(options), folder


def found(report: SuiteReport, layer: Layer, *levels: Level) -> dict[str, list[str]]:
    """Return the messages of a layer by their codes."""
    by_code: dict[str, list[str]] = {}
    for run in report.runs:
        for one in run.findings if run.layer is layer else ():
            if not levels or one.level in levels:
                by_code.setdefault(one.code, []).append(f"{run.name}: {one.message}")
    return by_code


def test_its_known_deviations_are_found(live: tuple[SuiteReport, Path]) -> None:
    report, _ = live
    chunks = found(report, Layer.CHUNKS)
    assert chunks.keys() >= KNOWN, KNOWN - chunks.keys()
    assert chunks.keys() - KNOWN <= BY_CHANCE, chunks


def test_created_that_moves_is_found(url: str) -> None:
    """One stream of several that last a good part of a second goes past the end of one."""
    options = LiveOptions(url=url, model="tiny", probes=("silence",))
    seen = (found(check_live(options), Layer.CHUNKS) for _ in range(40))
    assert any("CHT012" in codes for codes in seen)


def test_our_conversion_of_it_is_clean(live: tuple[SuiteReport, Path]) -> None:
    report, _ = live
    events = found(report, Layer.EVENTS)
    assert found(report, Layer.EVENTS, Level.MUST) == {}
    # The server says that a call is complete whose arguments a stop word cut: it is told as it is.
    assert events.keys() <= {"CAL004"}, events
    converted = [run for run in report.runs if run.layer is Layer.EVENTS and run.ran]
    assert len(converted) > 40
    assert report.notes[0].startswith("works, through these quirks: CHT")


def test_the_printed_profile_fits(live: tuple[SuiteReport, Path]) -> None:
    report, folder = live
    held: dict[str, Any] = {}
    exec(report.profile, held)  # it is what a user pastes
    profile = held["PROFILE"]
    assert isinstance(profile, Profile)
    named = frozenset({"auto", "none", "required"})
    assert profile == replace(DEFAULT, name="fitted", images=False, tool_choice_modes=named)
    again = check_live(LiveOptions(replay=folder, profile=profile))
    assert found(again, Layer.EVENTS, Level.MUST) == {}


def test_its_recording_gives_the_same_report(live: tuple[SuiteReport, Path]) -> None:
    report, folder = live
    assert check_live(LiveOptions(replay=folder)) == report


def test_its_native_responses_are_not_canonical(url: str, tmp_path: Path) -> None:
    options = LiveOptions(url=url, model="tiny", api="responses", record=tmp_path)
    report = check_live(
        replace(options, probes=("text", "call", "reasoning", "length", "bad-*", "overlong", "two-at-once"))
    )
    assert report.exit_status == 1
    codes = found(report, Layer.EVENTS, Level.MUST).keys()
    assert codes >= {"SCH001", "CAL001", "RSN003", "ITM007", "USE003"}, codes
    assert report.notes[0].startswith("the event stream is not canonical: ")
    assert report.profile == ""
    assert check_live(LiveOptions(replay=tmp_path)) == report
