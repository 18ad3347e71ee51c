"""`antiphon check`: the suite over an adapter, a process, a server, or recordings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from antiphon.errors import BadInput
from antiphon.stream.faults import redact

from . import check_options as of
from .quiet import unlogged

if TYPE_CHECKING:
    from antiphon_conformance.commands.outputs import Outputs
    from antiphon_conformance.results import SuiteReport

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
    target: of.Target = None,
    command: of.Exec = None,
    recordings: of.Recordings = None,
    baseline: of.Baseline = None,
    has: of.Has = None,
    case: of.Case = None,
    area: of.Area = None,
    cases: of.Cases = None,
    forms: of.Forms = True,
    chunks: of.Chunks = None,
    timeout: of.Timeout = 10.0,
    strict: of.Strict = False,
    requirements: of.Requirements = "",
    as_json: of.AsJson = False,
    everything: of.Everything = False,
    quiet: of.Quiet = False,
    jsonl: of.Jsonl = None,
    junit: of.Junit = None,
    markdown: of.Markdown = None,
    html: of.Html = None,
    url: of.Url = None,
    model: of.Model = "",
    api: of.Api = "chat",
    profile: of.Profile = None,
    probe: of.Probe = None,
    record: of.Record = None,
    replay: of.Replay = None,
    api_key_env: of.ApiKeyEnv = None,
    budget: of.Budget = None,
) -> None:
    """Run the conformance suite over an adapter, a process (--exec), a server (--url) or recordings.

    Exits 0 if all is clean, 1 if a rule is broken or a line of the baseline is stale, 2 on bad use, where a case is
    wrong, or where a server cannot be asked (it is not there, refuses the key, has no such path or model), 3 if nothing
    ran, 130 if it was interrupted while all was clean.

    Examples:

    antiphon check mypackage.stream:convert --has tools,reasoning

    antiphon check --exec "node adapter.js" --junit report.xml

    antiphon check --url http://localhost:8000/v1 -m qwen
    """
    subjects = _subjects(
        {"MODULE:NAME": target, "--exec": command, "--recordings": recordings, "--url": url, "--replay": replay}
    )
    _refuse_idle(ctx, subjects)
    if target is not None:
        _refuse_other(target)
    unlogged("antiphon")  # what is odd in the chunks is odd on purpose
    from antiphon_conformance.commands.check_live import live_report
    from antiphon_conformance.commands.check_offline import Choice, offline_report
    from antiphon_conformance.commands.outputs import Outputs

    outputs = Outputs(as_json, everything, quiet, jsonl, junit, markdown, html)
    work: Callable[[], SuiteReport]
    if url is not None or replay is not None:
        asked = tuple(probe or ())
        work = partial(
            live_report, outputs, url or "", model, api, profile, asked, record, replay, api_key_env, budget, strict
        )
    else:
        choice = Choice(has, case, area, cases, forms, chunks, timeout, requirements, baseline, strict)
        work = partial(offline_report, outputs, target, command, recordings, choice)
    raise typer.Exit(_reported(work, outputs))


def _subjects(given: Mapping[str, object]) -> list[str]:
    """Return what is tested, by the option that names it. Raises BadInput unless that is one thing."""
    subjects = [name for name, value in given.items() if value is not None]
    if len(subjects) != 1 and subjects != ["--url", "--replay"]:
        came = f"{' and '.join(subjects)} were given" if subjects else "nothing was given"
        raise BadInput(f"{came}; give one of {', '.join(given)}")
    return subjects


def _refuse_other(target: str) -> None:
    """Raise BadInput for a subject that an option of its own is for."""
    path = Path(target)
    if "://" in target:
        raise BadInput(redact(f"{target} is a URL, and no MODULE:NAME: a server is tested with --url {target}"))
    if path.suffix == ".py":
        raise BadInput(f"{target} is a file, and no MODULE:NAME: name a function in it, such as {path.stem}:convert")
    importable = Path(f"{target}.py").exists() or (path / "__init__.py").exists()
    if path.exists() and ":" not in target and not importable:
        raise BadInput(
            f"{target} is a file or folder, and no MODULE:NAME: streams of events are judged by --recordings {target}, "
            "what --record wrote by --replay"
        )


def _reported(work: Callable[[], SuiteReport], outputs: Outputs) -> int:
    """Show and save the report that `work` makes, also where it is interrupted, and return the exit status."""
    from antiphon_conformance.commands.outputs import ended_by_signals, kept_standard_output
    from antiphon_conformance.results import INTERRUPTED

    report: SuiteReport | None = None
    with ended_by_signals():
        try:
            with kept_standard_output() as outputs.standard:
                report = work()
                outputs.show(report)
            return report.exit_status
        except KeyboardInterrupt:
            outputs.stop()
            when = "before there was a report" if report is None else "while the report was written"
            typer.echo(f"antiphon: interrupted {when}", err=True)
            return INTERRUPTED
        finally:
            if report is not None:
                outputs.save(report)


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
