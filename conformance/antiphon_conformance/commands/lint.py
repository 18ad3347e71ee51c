"""`antiphon lint`: the rules over one event stream."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from antiphon.errors import BadInput

if TYPE_CHECKING:
    from rich.text import Text

    from antiphon_conformance import Finding, Report, Rule

CLEAN, FINDINGS, NOTHING_RAN = 0, 1, 3
STYLES = {"MUST": "bold red", "SHOULD": "yellow", "MAY": "dim"}


def lint(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="The events; - is standard input.", show_default=False)],
    chunks: Annotated[
        str | None, typer.Option(metavar="FILE", help="The chunks that the events were made of.", show_default=False)
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="SHOULD counts as MUST.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Show what is only MAY, and the rules left out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line: each finding, then a sum.")] = False,
    profile: Annotated[
        str | None, typer.Option(metavar="NAME", help="The profile that the events were made with.", show_default=False)
    ] = None,
    starting_after: Annotated[
        int | None,
        typer.Option(metavar="N", help="The stream was resumed after event number N.", show_default=False),
    ] = None,
) -> None:
    """Check an event stream (server-sent events, or JSON lines) against the rules.

    Exits 0 if it is clean, 1 if a rule is broken, 2 on bad use, 3 if there was nothing to look at.
    """
    from antiphon_conformance import Level, check
    from antiphon_conformance.commands.reading import called, no_stream, read
    from antiphon_conformance.read import mapping

    if file == chunks == "-":
        raise BadInput("events and chunks cannot both come from standard input")
    reading = read(file)
    events, other = reading.values, no_stream(reading)
    if other:
        raise BadInput(f"{called(file)} holds {other}")
    if any(isinstance(event, dict) and "choices" in event for event in events[:1]):
        raise BadInput(f"{called(file)} holds chunks, not events: make events of them with `antiphon convert` first")
    given = read(chunks) if chunks is not None else None
    if given is not None and "error" not in mapping(next(iter(given.values), None)) and (other := no_stream(given)):
        raise BadInput(f"{called(str(chunks))} holds {other}")
    if given is not None and _are_events(given.values):
        raise BadInput(
            f"{called(str(chunks))} holds events, not chunks: --chunks is the stream that the events were made of"
        )
    report = check(
        events,
        chunks=given.values if given is not None else None,
        done=given.done if given is not None else None,
        profile=profile,
        starting_after=starting_after,
    )
    if not events:
        report = replace(report, findings=())
    levels = (Level.MUST, Level.SHOULD, *((Level.MAY,) if everything else ()))
    if as_json:
        _print_json(file, report, report.at(*levels))
    else:
        _print(called(file), report, report.at(*levels), everything)
    if not events:
        raise typer.Exit(NOTHING_RAN)
    failing = report.at(Level.MUST, Level.SHOULD) if strict else report.at(Level.MUST)
    raise typer.Exit(FINDINGS if failing else CLEAN)


def _are_events(values: Sequence[Any]) -> bool:
    """Whether a stream is one of events, and not one of chunks."""
    from antiphon_conformance.read import mapping, text

    held = [mapping(one) for one in values]
    named = any(text(one.get("type")).startswith("response.") for one in held)
    return named and not any("choices" in one for one in held)


def _print_json(file: str, report: Report, findings: tuple[Finding, ...]) -> None:
    """Write a line for each finding, and one that sums up."""
    from antiphon import __version__
    from antiphon_conformance import SUITE_VERSION, find

    for finding in findings:
        rule = find(finding.code)
        line = {
            "finding": finding.code,
            "name": rule.name if rule else "",
            "level": finding.level.value,
            "index": finding.index,
            "message": finding.message,
        }
        typer.echo(json.dumps(line))
    total = {
        "file": file,
        "ok": report.ok,
        "events": len(report.events),
        "findings": len(findings),
        "ran": list(report.ran),
        "not_applicable": dict(report.not_applicable),
        "suite": SUITE_VERSION,
        "package": __version__,
    }
    typer.echo(json.dumps(total))


def _print(file: str, report: Report, findings: tuple[Finding, ...], everything: bool) -> None:
    from rich.console import Console
    from rich.text import Text

    from antiphon_conformance import find

    console = Console(highlight=False, soft_wrap=True)
    for finding in findings:
        rule = find(finding.code)
        if rule is not None:
            console.print(Text("\n").join([*_told(file, report, finding, rule), Text()]))
    if everything:
        for code, reason in report.not_applicable.items():
            console.print(Text(f"{code} not applicable: {reason}", "dim"))
    console.print(_sum(report, findings))


def _told(file: str, report: Report, finding: Finding, rule: Rule) -> Iterator[Text]:
    """Yield the lines about one finding: rule, level and where; the events around it; why."""
    from rich.text import Text

    style = STYLES[finding.level.value]
    yield Text.assemble((f"{rule.code} {rule.name}", "bold"), "   ", (finding.level.value, style), f"   {shown(file)}")
    where = "the stream" if finding.index is None else f"event {finding.index}"
    yield Text(f"  {where}: {shown(finding.message)}")
    yield from (Text(line, "bold" if line.startswith("  ▸") else "dim") for line in around(report, finding.index))
    yield Text(f"  why: {rule.why}")
    yield Text(f"  antiphon explain {rule.code}", "dim")


def around(report: Report, index: int | None, before: int = 2, after: int = 1) -> Iterator[str]:
    """Yield the lines that show event `index`, marked, and its neighbours."""
    if index is None:
        return
    first, last = max(0, index - before), min(len(report.events) - 1, index + after)
    width = max((len(_name(report.events[at])) for at in range(first, last + 1)), default=0)
    for at in range(first, last + 1):
        mark = "▸" if at == index else " "
        event = report.events[at]
        yield f"  {mark} {at:>4}  {_name(event):<{width}}  {_place(event)}".rstrip()


def _name(event: dict[str, Any]) -> str:
    return shown(str(event.get("type", "(no type)")).removeprefix("response."), 48)


def _place(event: dict[str, Any]) -> str:
    """Return what else a line shows of an event: where it belongs, and what it carries."""
    words = [
        f"{word} {shown(str(event[key]), 12)}"
        for word, key in (("output", "output_index"), ("content", "content_index"), ("summary", "summary_index"))
        if key in event
    ]
    item = event.get("item")
    if isinstance(item, dict):
        words.append(shown(str(item.get("type")), 24))  # pyright: ignore[reportUnknownArgumentType,reportUnknownMemberType]
    carried = next((event[key] for key in ("delta", "text", "arguments", "input") if key in event), None)
    if carried is not None:
        words.append(shown(repr(carried), 32))
    return "  ".join(words)


def shown(text: str, limit: int = 400) -> str:
    """Return `text` as a terminal may show it: printable, and not long."""
    safe = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text[: limit + 1])
    return safe if len(text) <= limit else f"{safe[: limit - 1]}…"


def _sum(report: Report, findings: tuple[Finding, ...]) -> str:
    """Return the last line: what was looked at, what ran, what was found."""
    levels = Counter(finding.level.value for finding in findings)
    found = ", ".join(f"{levels[level]} {level}" for level in STYLES if levels[level]) or "clean"
    reasons = ", ".join(dict.fromkeys(report.not_applicable.values()))
    left_out = f", {len(report.not_applicable)} not applicable ({reasons})" if reasons else ""
    ran = f"{len(report.ran)} rules ran{left_out}" if report.events else "nothing ran: there are no events"
    return f"{len(report.events)} events · {ran}" + (f" · {found}" if report.events else "")
