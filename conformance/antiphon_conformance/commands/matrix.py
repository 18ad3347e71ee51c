"""`antiphon matrix`: converters of others, recorded and live servers, measured beside our own handler."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from antiphon.errors import BadInput, ExtraMissing

from .quiet import unlogged

if TYPE_CHECKING:
    from antiphon_conformance.matrix import Column, Measured
    from antiphon_conformance.peers import Peer
    from antiphon_conformance.results import Run, SuiteReport

AS_MEASURED, NEWS, NOTHING_RAN = 0, 1, 3


def matrix(
    peers: Annotated[
        list[str] | None,
        typer.Argument(metavar="PEER", help="Converters; else all that are installed.", show_default=False),
    ] = None,
    list_peers: Annotated[
        bool, typer.Option("--list", help="List the converters, and whether they are installed.")
    ] = False,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="A live server with a native /v1/responses.", show_default=False)
    ] = None,
    model: Annotated[str, typer.Option("--model", "-m", metavar="NAME", help="Its model.", show_default=False)] = "",
    name: Annotated[str, typer.Option(metavar="NAME", help="What the table calls it.", show_default=False)] = "",
    server_version: Annotated[
        str, typer.Option(metavar="VERSION", help="Its version, where it does not say it.", show_default=False)
    ] = "",
    api_key: Annotated[str, typer.Option(envvar="ANTIPHON_API_KEY", help="Its key.", show_default=False)] = "",
    recordings: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR", help="A folder that has one of recorded event streams for each server.", show_default=False
        ),
    ] = None,
    pattern: Annotated[str, typer.Option(metavar="GLOB", help="Which files there are event streams.")] = "*",
    forms: Annotated[bool, typer.Option("--forms", help="Each case in all its forms too.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the page.", show_default=False)
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what was measured, as JSON.", show_default=False)
    ] = None,
    add_to: Annotated[
        list[Path] | None,
        typer.Option("--with", metavar="FILE", help="Take in what was saved before.", show_default=False),
    ] = None,
    baselines: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write what the converters break as baselines.", show_default=False),
    ] = None,
    no_peers: Annotated[bool, typer.Option("--no-peers", help="Measure no converter, ours neither.")] = False,
) -> None:
    """Measure converters of others, recorded and live servers beside our own handler: rules by subjects.

    Prints the tables as Markdown. What a converter breaks is known data (a baseline); where the same version breaks
    something else now, that is news.

    Exits 0 if all is as it was measured before, 1 if there is news, 2 on bad use, 3 if nothing could be measured.

    Examples:

    antiphon matrix openai-agents litellm

    antiphon matrix --no-peers --url http://127.0.0.1:8080/v1 --model tiny
    """
    from antiphon_conformance.matrix import joined, read_measured, write_measured
    from antiphon_conformance.matrix_page import page
    from antiphon_conformance.peers import PEERS, find_peer

    if list_peers:
        for peer in PEERS:
            typer.echo(f"{peer.name:<22} {peer.version or f'not installed: pip install {peer.package}'}")
        return
    unlogged()  # what is odd in the cases is odd on purpose
    _refuse(url, model, recordings or [], [one for one in (output, save) if one is not None])
    chosen = [find_peer(one) for one in peers or []]
    parts = [read_measured(_read(file), str(file)) for file in add_to or []]
    news: list[str] = []
    if not no_peers:
        parts.append(_converters(chosen, forms, baselines, news))
    parts += [_recordings(folder, pattern) for folder in recordings or []]
    if url is not None:
        parts.append(_server(url, model, api_key, name, server_version))
    if not any(part.columns for part in parts):
        typer.echo("nothing was measured", err=True)
        raise typer.Exit(NOTHING_RAN)
    measured = joined(parts)
    _write(output, page(measured))
    _write(save, write_measured(measured))
    if output is None:
        typer.echo(page(measured), nl=False)
    for line in news:
        typer.echo(f"news: {line}", err=True)
    raise typer.Exit(NEWS if news else AS_MEASURED)


def _refuse(url: str | None, model: str, recordings: Sequence[Path], written: Sequence[Path]) -> None:
    """Raise BadInput for what would fail after all else was measured, which takes minutes."""
    from antiphon_conformance.commands.check_live import refuse_no_url
    from antiphon_conformance.commands.outputs import refuse_unwritable

    if url is not None:
        refuse_no_url(url)
    if url is not None and not model:
        raise BadInput("--url needs --model: the name of the server's model")
    for folder in recordings:
        if not folder.is_dir():
            raise BadInput(
                f"--recordings {folder}: there is no such folder; it has one of event streams for each server"
            )
    refuse_unwritable(written)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as problem:
        raise BadInput(f"cannot read {file}: {problem.strerror}") from None


def _write(file: Path | None, text: str) -> None:
    if file is None:
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise BadInput(f"cannot write {file}: {problem.strerror}") from None


# --- converters ----------------------------------------------------------------------------------------------------


def _converters(chosen: Sequence[Peer], forms: bool, baselines: Path | None, news: list[str]) -> Measured:
    """Return what our handler and the converters gave. Those that are not installed are told of and left out, unless
    they were asked for by name."""
    from antiphon_conformance.matrix import column_of, measure_own
    from antiphon_conformance.peers import PEERS

    with _progress() as seen:
        own = measure_own(forms=forms, on_run=seen("antiphon"))
        columns = [
            column_of(own, what="this package, `convert`", command="antiphon check antiphon_conformance.own:dicts")
        ]
        for peer in chosen or PEERS:
            try:
                columns.append(_converter(peer, forms, baselines, news, seen(peer.name)))
            except ExtraMissing as missing:
                if chosen:
                    raise
                typer.echo(f"left out: {missing}", err=True)
    return _measured(own, columns)


def _converter(
    peer: Peer, forms: bool, baselines: Path | None, news: list[str], on_run: Callable[[Run], None]
) -> Column:
    from antiphon_conformance.matrix import baseline_of, column_of, measure_peer

    known = peer.baseline() if peer.measured == peer.version and baselines is None else ()
    report = measure_peer(peer, forms=forms, on_run=on_run, baseline=known)
    if known:
        news += _news(peer, report)
    if baselines is not None:
        baselines.mkdir(parents=True, exist_ok=True)
        _write(baselines / f"{peer.name}.toml", baseline_of(report, peer))
    return column_of(report, what=peer.what, command=f"antiphon check {peer.target}")


def _news(peer: Peer, report: SuiteReport) -> Iterator[str]:
    """Yield what a version breaks that it did not break when it was measured, and what it does not break any more."""
    from antiphon_conformance import Level

    for run in report.runs:
        for finding in run.unexpected(Level.MUST):
            yield f"{peer.name} {peer.version} breaks {finding.code} in {run.name}: {finding.message}"
    for line in report.stale:
        yield f"{peer.name} {peer.version} does not break {line.rule} in {line.case} any more"


@contextmanager
def _progress() -> Generator[Callable[[str], Callable[[Run], None]]]:
    """Yield what makes a listener for a subject's runs; they are counted on a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda subject: lambda run: None
        return
    with console.status("measuring") as status:
        yield lambda subject: lambda run: status.update(f"{subject}: {run.name}")


# --- servers -------------------------------------------------------------------------------------------------------


def _recordings(folder: Path, pattern: str) -> Measured:
    from antiphon_conformance.matrix import column_of, measure_recordings

    reports = measure_recordings(folder, pattern=pattern)
    columns = [
        column_of(
            one,
            what=f"{len(one.runs)} recorded stream{'' if len(one.runs) == 1 else 's'}",
            command=f"antiphon check {folder.name}/{one.subject.name}",
        )
        for one in reports
    ]
    return _measured(reports[0], columns)


def _server(url: str, model: str, api_key: str, name: str, version: str) -> Measured:
    from dataclasses import replace

    from antiphon_conformance.matrix import column_of, measure_server

    report = measure_server(url, model, api_key=api_key)
    told = report.subject
    named = replace(report, subject=replace(told, name=name or told.name, version=version or told.version))
    command = f"antiphon check --url URL --model {model} --api responses"
    return _measured(named, [column_of(named, what="its native `/v1/responses`", command=command)])


def _measured(report: SuiteReport, columns: list[Column]) -> Measured:
    from antiphon_conformance.matrix import Measured

    return Measured(suite=report.suite_version, cases_hash=report.cases_hash, columns=columns)
