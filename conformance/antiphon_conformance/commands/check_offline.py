"""`antiphon check` without a server: the part of the command that runs cases over an adapter, or judges recordings."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antiphon.errors import BadInput
from antiphon.near import listing

if TYPE_CHECKING:
    from antiphon_conformance.case import BadCase, Case
    from antiphon_conformance.commands.outputs import Outputs
    from antiphon_conformance.results import SuiteReport
    from antiphon_conformance.running import Settings


@dataclass(frozen=True, slots=True)
class Choice:
    """What is run, as the options say it."""

    has: Sequence[str] | None
    case: Sequence[str] | None
    area: Sequence[str] | None
    cases: Path | None
    forms: bool
    chunks: str | None
    timeout: float
    requirements: str
    baseline: Path | None
    strict: bool


def offline_report(
    outputs: Outputs, target: str | None, command: str | None, recordings: Path | None, choice: Choice
) -> SuiteReport:
    """Return what came of the cases over an adapter or a process, or of recordings. Raises BadInput."""
    from antiphon_conformance.baseline import refuse_unknown
    from antiphon_conformance.case import cases_hash
    from antiphon_conformance.recordings import check_recordings
    from antiphon_conformance.results import Subject
    from antiphon_conformance.running import run_suite

    settings = _settings(choice)
    if not choice.timeout > 0:
        raise BadInput(f"--timeout {choice.timeout:g}: it is a number of seconds above 0")
    if recordings is not None:
        outputs.begin(Subject(str(recordings), "recording"), cases_hash(()), 0)
        return check_recordings(recordings, settings, on_run=outputs.run)
    found, chosen = _cases(choice)
    refuse_unknown(settings.baseline, {one.id for one in found})
    adapter = _adapter(target, command, choice.chunks, choice.timeout)
    outputs.begin(adapter.subject, cases_hash(chosen), len(chosen))
    return run_suite(adapter, chosen, settings, on_run=outputs.run)


def _cases(choice: Choice) -> tuple[Sequence[Case | BadCase], Sequence[Case | BadCase]]:
    """Return all cases, and those that are to run."""
    from antiphon_conformance.case import load_cases, read_cases
    from antiphon_conformance.running import choose

    if choice.cases is not None and not choice.cases.is_dir():
        raise BadInput(f"--cases {choice.cases}: there is no such folder")
    found = load_cases() if choice.cases is None else read_cases(choice.cases)
    return found, choose(found, choice.case) if choice.case else found


def _settings(choice: Choice) -> Settings:
    from antiphon_conformance.baseline import read_baseline
    from antiphon_conformance.forms import FORMS
    from antiphon_conformance.requirements import required
    from antiphon_conformance.running import Settings

    required(choice.requirements)
    return Settings(
        _capabilities(choice.has),
        read_baseline(choice.baseline) if choice.baseline is not None else (),
        tuple(FORMS) if choice.forms else (),
        choice.strict,
        _areas(choice.area or []),
        choice.requirements,
        not choice.case and choice.cases is None,
    )


def _capabilities(given: Sequence[str] | None) -> frozenset[str] | None:
    """Return what the adapter has, None where nothing is said. Raises BadInput for a word that is none."""
    from antiphon_conformance.case import CAPABILITIES

    if given is None:
        return None
    words = {word.strip() for one in given for word in one.split(",") if word.strip()}
    if "all" in words:
        return frozenset(CAPABILITIES)
    unknown = sorted(words - set(CAPABILITIES))
    if unknown:
        raise BadInput(
            f"--has {', '.join(unknown)} is not known{listing(unknown[0], (*CAPABILITIES, 'all'), 'there are')}"
        )
    return frozenset(words)


def _areas(given: Sequence[str]) -> tuple[str, ...]:
    from antiphon_conformance.rule import every_rule

    known = sorted({rule.area for rule in every_rule()})
    wanted = tuple(word.strip().upper() for one in given for word in one.split(",") if word.strip())
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        raise BadInput(f"--area {', '.join(unknown)} is not known{listing(unknown[0], known, 'there are')}")
    return wanted


def _adapter(target: str | None, command: str | None, chunks: str | None, timeout: float) -> Any:
    from antiphon_conformance.adapters import load
    from antiphon_conformance.process import ProcessAdapter

    if target is None:
        return ProcessAdapter(command or "", seconds=timeout)
    with suppress(FileNotFoundError):  # a folder that was removed under us
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())  # an adapter beside which the command is run
    match chunks:
        case None | "dict" | "openai" | "sse":
            return load(target, style=chunks, seconds=timeout)
        case _:
            raise BadInput(f"--chunks {chunks}: it is dict, openai or sse")
