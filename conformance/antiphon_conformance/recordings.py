"""Recordings as a subject: event streams in files, judged without expectations.

A folder holds one stream a file: JSON lines, a JSON list, or server-sent events. The chunks that `NAME.jsonl` was made
of may lie beside it, in `NAME.chunks.jsonl` (or .sse, .json); the rules that need chunks run where they do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from antiphon.errors import BadInput

from . import SUITE_VERSION
from .adapters import told
from .baseline import excused, refuse_unknown, stale
from .case import cases_hash
from .commands.reading import Reading, no_stream, read
from .judge import check
from .read import mapping
from .report import Level, Report
from .results import Outcome, Run, Subject, SuiteReport
from .running import Settings, scored

META = ".meta.json"  # what --record writes beside each raw answer
SUFFIXES = (".jsonl", ".json", ".sse", ".txt")
MOST_BYTES = 64 * 1024 * 1024  # of one file


def check_recordings(
    path: Path, settings: Settings | None = None, *, on_run: Callable[[Run], None] | None = None
) -> SuiteReport:
    """Return what the rules say about the streams in a folder, or in one file. Raises BadInput where there is none."""
    from antiphon import __version__

    settings = settings or Settings()
    files = _files(path)
    refuse_unknown(settings.baseline, {name for name, _ in files}, what="recording")
    runs, notes = list[Run](), list[str]()
    try:
        for name, file in files:
            runs.append(_run(name, file, settings))
            if on_run is not None:
                on_run(runs[-1])
    except KeyboardInterrupt:
        notes.append(f"interrupted after {len(runs)} of {len(files)} recordings")
        settings = replace(settings, all_ran=False)
    broken = [(run.case, [one.code for one in run.findings]) for run in runs if run.outcome is not Outcome.ERROR]
    return SuiteReport(
        Subject(str(path), "recording"),
        tuple(runs),
        settings.requirements or SUITE_VERSION,
        __version__,
        cases_hash(()),
        stale=stale(settings.baseline, broken, all_ran=settings.all_ran),
        notes=tuple(notes),
        strict=settings.strict,
        interrupted=bool(notes),
    )


def _files(path: Path) -> list[tuple[str, Path]]:
    """Return the names and files of the streams of events."""
    if path.is_file():
        return [(path.stem, path)]
    if not path.is_dir():
        raise BadInput(f"{path} is neither a folder nor a file: give one with streams of events")
    if any(path.glob(f"*{META}")):
        raise BadInput(
            f"{path} holds raw answers of a server, as --record writes them, and no streams of events: --replay {path} "
            "judges them"
        )
    found = sorted(one for one in path.rglob("*") if one.suffix in SUFFIXES and one.is_file())
    events = [(str(one.relative_to(path).with_suffix("")), one) for one in found if ".chunks" not in one.suffixes]
    if not events:
        raise BadInput(f"{path} holds no stream of events: files end with {', '.join(SUFFIXES)}")
    return events


def _run(name: str, file: Path, settings: Settings) -> Run:
    base = Run(name, file.name, Outcome.PASS)
    try:
        reading = _read(file)
        chunks = _chunks_of(file)
    except (BadInput, OSError, MemoryError) as problem:
        return replace(base, outcome=Outcome.ERROR, reason=str(problem))
    events = reading.values
    other = (
        "chunks, not events: convert them first"
        if "choices" in mapping(next(iter(events), None))
        else no_stream(reading)
    )
    if other:
        return replace(base, outcome=Outcome.ERROR, reason=f"it holds {other}")
    told_chunks, done = (None, None) if chunks is None else (chunks.values, chunks.done)
    try:
        return _judged(base, check(events, chunks=told_chunks, done=done), settings, told_chunks or ())
    except Exception as problem:  # noqa: BLE001 -- a rule of the suite's, or of a plug-in's, that raises is one wrong run
        return replace(base, outcome=Outcome.ERROR, reason=f"a rule raised {told(problem)}", events=events)


def _judged(base: Run, report: Report, settings: Settings, chunks: Sequence[Any]) -> Run:
    findings, new = scored(report.findings, settings)
    expected = excused(settings.baseline, base.case, {one.code for one in findings})
    levels = (Level.MUST, Level.SHOULD) if settings.strict else (Level.MUST,)
    failing = any(one.level in levels and one.code not in expected for one in findings)
    outcome = Outcome.FAIL if failing else Outcome.EXPECTED if expected else Outcome.PASS
    return replace(
        base,
        outcome=outcome,
        findings=findings,
        ran=report.ran,
        expected=expected,
        new=new,
        chunks=chunks,
        events=report.events,
    )


def _read(file: Path) -> Reading:
    size = file.stat().st_size
    if size > MOST_BYTES:
        raise BadInput(f"{file.name} has {size} bytes, of which at most {MOST_BYTES} are read")
    return read(str(file))


def _chunks_of(file: Path) -> Reading | None:
    """Return the chunks that lie beside a stream of events, None where none do."""
    for suffix in SUFFIXES:
        beside = file.with_name(f"{file.stem}.chunks{suffix}")
        if beside.is_file():
            return _read(beside)
    return None
