"""`antiphon check`: the suite over an adapter, a process, a server, or recordings."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from antiphon.errors import BadInput

if TYPE_CHECKING:
    from antiphon_conformance.commands.outputs import Outputs
    from antiphon_conformance.results import SuiteReport
    from antiphon_conformance.running import Settings

FILES = "What is written"
LIVE = "A server"
CHOICE = "What is run"
# an option -> what it goes with; it is refused beside anything else, since it would do nothing there
CASES = ("MODULE:NAME", "--exec")
SERVERS = ("--url", "--replay")
GOES_WITH: dict[str, tuple[str, ...]] = {
    "baseline": (*CASES, "--recordings"),
    "area": (*CASES, "--recordings"),
    "requirements": (*CASES, "--recordings"),
    **dict.fromkeys(("has", "case", "cases", "forms", "timeout"), CASES),
    "chunks": ("MODULE:NAME",),
    **dict.fromkeys(("model", "api", "profile", "probe"), SERVERS),
    **dict.fromkeys(("record", "api_key_env", "budget"), ("--url",)),
}


def check(
    ctx: typer.Context,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="MODULE:NAME", help="A Python adapter: what takes chunks and gives events.", show_default=False
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            "--exec",
            metavar="COMMAND",
            help="A process: a case a line in, events a line out, an empty line ends.",
            show_default=False,
        ),
    ] = None,
    recordings: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Streams of events in a folder or file, with NAME.chunks.jsonl beside.",
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Known deviations, in TOML.", show_default=False, rich_help_panel=CHOICE),
    ] = None,
    has: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORDS",
            help="What the adapter has, such as tools,reasoning; or all. May be given again.",
            show_default=False,
            rich_help_panel=CHOICE,
        ),
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="Only this case, or this folder of cases; * is anything. May be given again.",
            show_default=False,
            rich_help_panel=CHOICE,
        ),
    ] = None,
    area: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AREA",
            help="Only rules of this area, such as ITM. May be given again.",
            show_default=False,
            rich_help_panel=CHOICE,
        ),
    ] = None,
    cases: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Cases of your own, in the place of the suite's.",
            show_default=False,
            rich_help_panel=CHOICE,
        ),
    ] = None,
    forms: Annotated[
        bool, typer.Option("--forms/--no-forms", help="Run each case in its derived forms too.", rich_help_panel=CHOICE)
    ] = True,
    chunks: Annotated[
        str | None,
        typer.Option(
            metavar="STYLE",
            help="How the adapter takes chunks: dict, openai or sse; tried, where it is not said.",
            show_default=False,
            rich_help_panel=CHOICE,
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="What one case may take.", rich_help_panel=CHOICE)
    ] = 10.0,
    strict: Annotated[bool, typer.Option("--strict", help="SHOULD counts as MUST.", rich_help_panel=CHOICE)] = False,
    requirements: Annotated[
        str,
        typer.Option(
            metavar="VERSION",
            help="Exactly the rules of that version of the suite, such as 1.0.",
            show_default=False,
            rich_help_panel=CHOICE,
        ),
    ] = "",
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="JSON lines on standard output: each finding as it happens, then a sum.",
            rich_help_panel=FILES,
        ),
    ] = False,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Show what is only MAY, and each case that did not apply.", rich_help_panel=FILES),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.", rich_help_panel=FILES)] = False,
    jsonl: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write JSON lines.", show_default=False, rich_help_panel=FILES)
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write JUnit XML.", show_default=False, rich_help_panel=FILES)
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write Markdown.", show_default=False, rich_help_panel=FILES)
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write one page of HTML.", show_default=False, rich_help_panel=FILES),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The base URL of a server, such as http://localhost:8000/v1.",
            show_default=False,
            rich_help_panel=LIVE,
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            help="The model to ask; else the first that is listed.",
            show_default=False,
            rich_help_panel=LIVE,
        ),
    ] = "",
    api: Annotated[
        str, typer.Option(metavar="API", help="What the server speaks: chat or responses.", rich_help_panel=LIVE)
    ] = "chat",
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The profile of the provider; else it is found out.",
            show_default=False,
            rich_help_panel=LIVE,
        ),
    ] = None,
    probe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only this probe; * is anything. May be given again.",
            show_default=False,
            rich_help_panel=LIVE,
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write every raw stream there, without keys.",
            show_default=False,
            rich_help_panel=LIVE,
        ),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Judge what --record wrote; nothing is sent.",
            show_default=False,
            rich_help_panel=LIVE,
        ),
    ] = None,
    api_key_env: Annotated[
        str, typer.Option(metavar="NAME", help="The environment variable that holds the key.", rich_help_panel=LIVE)
    ] = "OPENAI_API_KEY",
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="LIMITS",
            help="What a run may cost, such as requests=40,tokens=20000,seconds=300.",
            show_default=False,
            rich_help_panel=LIVE,
        ),
    ] = None,
) -> None:
    """Run the conformance suite over an adapter, a process (--exec), a server (--url) or recordings.

    Exits 0 if all is clean, 1 if a rule is broken or a line of the baseline is stale, 2 on bad use, or where a case is
    wrong, 3 if nothing ran, 130 if it was interrupted while all was clean.

    Examples:

    antiphon check mypackage.stream:convert --has tools,reasoning

    antiphon check --exec "node adapter.js" --junit report.xml

    antiphon check --url http://localhost:8000/v1 -m qwen
    """
    given = {"MODULE:NAME": target, "--exec": command, "--recordings": recordings, "--url": url, "--replay": replay}
    subjects = [name for name, value in given.items() if value is not None]
    if len(subjects) != 1 and subjects != ["--url", "--replay"]:
        came = f"{' and '.join(subjects)} were given" if subjects else "nothing was given"
        raise BadInput(f"{came}; give one of {', '.join(given)}")
    _refuse_idle(ctx, subjects)
    logging.getLogger("antiphon").addHandler(logging.NullHandler())  # what is odd in the chunks is odd on purpose
    from antiphon_conformance.commands.outputs import Outputs, ended_by_signals, kept_standard_output
    from antiphon_conformance.results import INTERRUPTED

    outputs = Outputs(as_json, everything, quiet, jsonl, junit, markdown, html)
    report: SuiteReport | None = None
    with ended_by_signals():
        try:
            with kept_standard_output() as outputs.standard:
                if url is not None or replay is not None:
                    from antiphon_conformance.commands.check_live import live_report

                    report = live_report(
                        outputs, url or "", model, api, profile, tuple(probe or ()), record, replay, api_key_env, budget,
                        strict,
                    )  # fmt: skip
                else:
                    settings = _settings(
                        has, baseline, area, forms, strict, requirements, all_ran=not case and cases is None
                    )
                    report = _offline(
                        target, command, recordings, settings, cases, case or [], chunks, timeout, outputs
                    )
                status = report.exit_status
                outputs.show(report)
        except KeyboardInterrupt:
            outputs.stop()
            when = "before there was a report" if report is None else "while the report was written"
            typer.echo(f"antiphon: interrupted {when}", err=True)
            raise typer.Exit(INTERRUPTED) from None
        finally:
            if report is not None:
                outputs.save(report)
    raise typer.Exit(status)


def _refuse_idle(ctx: typer.Context, subjects: Sequence[str]) -> None:
    """Raise BadInput for an option that would do nothing with what is tested."""
    given: Mapping[str, str] = {
        one.name: one.opts[0]
        for one in ctx.command.params
        if one.name in GOES_WITH and getattr(ctx.get_parameter_source(one.name), "name", "") == "COMMANDLINE"
    }
    for name, option in given.items():
        if not set(subjects) & set(GOES_WITH[name]):
            raise BadInput(f"{option} goes with {' or '.join(GOES_WITH[name])}, and does nothing with {subjects[0]}")


def _settings(
    has: Sequence[str] | None,
    baseline: Path | None,
    areas: Sequence[str] | None,
    forms: bool,
    strict: bool,
    requirements: str,
    *,
    all_ran: bool,
) -> Settings:
    from antiphon_conformance.baseline import read_baseline
    from antiphon_conformance.forms import FORMS
    from antiphon_conformance.requirements import required
    from antiphon_conformance.running import Settings

    required(requirements)
    return Settings(
        _capabilities(has),
        read_baseline(baseline) if baseline is not None else (),
        tuple(FORMS) if forms else (),
        strict,
        _areas(areas or []),
        requirements,
        all_ran,
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
        raise BadInput(f"--has {', '.join(unknown)} is not known; there are {', '.join(CAPABILITIES)}, and all")
    return frozenset(words)


def _areas(given: Sequence[str]) -> tuple[str, ...]:
    from antiphon_conformance.rule import every_rule

    known = sorted({rule.area for rule in every_rule()})
    wanted = tuple(word.strip().upper() for one in given for word in one.split(",") if word.strip())
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        raise BadInput(f"--area {', '.join(unknown)} is not known; there are {', '.join(known)}")
    return wanted


def _offline(
    target: str | None,
    command: str | None,
    recordings: Path | None,
    settings: Settings,
    folder: Path | None,
    patterns: Sequence[str],
    chunks: str | None,
    timeout: float,
    outputs: Outputs,
) -> SuiteReport:
    """Run the cases over an adapter or a process, or judge recordings."""
    from antiphon_conformance.baseline import refuse_unknown
    from antiphon_conformance.case import cases_hash, load_cases, read_cases
    from antiphon_conformance.recordings import check_recordings
    from antiphon_conformance.results import Subject
    from antiphon_conformance.running import choose, run_suite

    if not timeout > 0:
        raise BadInput(f"--timeout {timeout:g}: it is a number of seconds above 0")
    if recordings is not None:
        outputs.begin(Subject(str(recordings), "recording"), cases_hash(()), 0)
        return check_recordings(recordings, settings, on_run=outputs.run)
    if folder is not None and not folder.is_dir():
        raise BadInput(f"--cases {folder}: there is no such folder")
    found = load_cases() if folder is None else read_cases(folder)
    chosen = choose(found, patterns) if patterns else found
    refuse_unknown(settings.baseline, {one.id for one in found})
    adapter = _adapter(target, command, chunks, timeout)
    outputs.begin(adapter.subject, cases_hash(chosen), len(chosen))
    return run_suite(adapter, chosen, settings, on_run=outputs.run)


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
