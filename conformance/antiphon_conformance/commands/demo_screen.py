"""What `antiphon demo` shows to people: each stream as it plays, and a table of all. It fits 80 columns."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Sequence
from textwrap import fill
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from antiphon.timeline import SIGNS, Timeline, escaped, render_text
from antiphon_conformance.demo_play import NotPlayed, Outcome, Played, play, silent
from antiphon_conformance.demo_streams import DemoStream

FRAME = 0.04  # seconds between two pictures
CHOICE = '"choices":[{'  # where a chunk begins to differ from the one before


def on_screen(streams: Sequence[DemoStream], seconds: float) -> list[Outcome]:
    """Play the streams one under the other, each in `seconds`, and print the table of all."""
    out: Any = sys.stdout
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="replace")  # an ASCII terminal has no bars
    console = Console(highlight=False)
    outcomes: list[Outcome] = []
    for number, stream in enumerate(streams, 1):
        _print_head(console, stream, f"{number}/{len(streams)}")
        outcomes.append(_watched(console, stream, seconds))
        _print_verdict(console, outcomes[-1])
    if len(outcomes) > 1:
        console.print(_table(outcomes), Text())
        console.print(_sum(outcomes))
    return outcomes


def _print_head(console: Console, stream: DemoStream, place: str) -> None:
    console.print(Text.assemble((f"{place} ", "dim"), (f"{stream.provider}: {stream.title}", "bold cyan")))
    oddity = fill(stream.oddity, console.width - 1, initial_indent="  ", subsequent_indent="  ")
    console.print(Text(oddity, "italic"))


def _watched(console: Console, stream: DemoStream, seconds: float) -> Outcome:
    """Play a stream: while it comes where there is a terminal to see it on, else at once; and print its picture."""
    if console.is_terminal and seconds > 0:
        outcome = _played_live(console, stream, seconds)
    else:
        outcome = play(stream, 0.0, silent)
    if isinstance(outcome, Played):
        console.print(render_text(outcome.timeline))
    return outcome


def _played_live(console: Console, stream: DemoStream, seconds: float) -> Outcome:
    """Play a stream, and show the picture so far with the newest piece under it, until the end."""
    shown_at = 0.0
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def tell(timeline: Timeline, piece: bytes) -> None:
            nonlocal shown_at
            if time.monotonic() - shown_at >= FRAME:
                live.update(_so_far(timeline, piece), refresh=True)
                shown_at = time.monotonic()

        return play(stream, seconds, tell)


def _so_far(timeline: Timeline, piece: bytes) -> RenderableType:
    said = piece.decode("utf-8", "replace").strip()
    _, _, choice = said.partition(CHOICE)
    excerpt = f"{{{choice}" if choice else said
    return Group(render_text(timeline), Text(f"◂ {escaped(excerpt)}", "dim", no_wrap=True, overflow="ellipsis"))


def _print_verdict(console: Console, outcome: Outcome) -> None:
    """Print whether the stream came out as it must; where it did not, in what."""
    match outcome:
        case NotPlayed(reason=reason):
            console.print(Text(f"– not played: {reason}\n", "yellow"))
        case Played(stream=stream, report=report):
            for line in (*outcome.differences, *map(str, report.findings)):
                console.print(Text(f"✗ {line}", "red"), soft_wrap=True)
            sign, hue = _sign(outcome)
            rules = f"{len(report.ran)} rules{' hold' if outcome.found == 'none' else f', broken: {outcome.found}'}"
            counts = f" · {len(stream.chunks)} chunks, {len(report.events)} events, {rules}\n"
            console.print(Text.assemble((f"{sign} expected: {stream.ending}", hue), (counts, "dim")))


def _sign(outcome: Played) -> tuple[str, str]:
    """Return the sign and the colour of an outcome."""
    return ("✓", "green") if outcome.clean else ("✗", "red")


def _table(outcomes: Sequence[Outcome]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("provider", "oddity"):
        table.add_column(name, overflow="fold")
    for name in ("chunks", "events", "items"):
        table.add_column(name, justify="right")
    for name in ("ending", "findings"):
        table.add_column(name, overflow="fold")
    for outcome in outcomes:
        table.add_row(*_row(outcome))
    return table


def _row(outcome: Outcome) -> tuple[RenderableType, ...]:
    stream = outcome.stream
    match outcome:
        case NotPlayed():
            left_out = Text("not played", "yellow")
            return (Text(f"– {stream.provider}", "yellow"), stream.title, "", "", "", left_out)
        case Played(timeline=timeline, report=report):
            sign, hue = _sign(outcome)
            status = timeline.ending.status if timeline.ending else "none"
            counts = map(str, (len(stream.chunks), len(report.events), outcome.items))
            ending = Text(status, SIGNS.get(status, ("", "red"))[1])
            found = Text(outcome.found, "dim" if outcome.found == "none" else "red")
            return (Text(f"{sign} {stream.provider}", hue), stream.title, *counts, ending, found)


def _sum(outcomes: Sequence[Outcome]) -> Text:
    """Return the last lines: how many streams came out as they must, and which were not played."""
    played = [one for one in outcomes if isinstance(one, Played)]
    clean = sum(one.clean for one in played)
    providers = len({one.stream.provider for one in played})
    hue = "bold green" if played and clean == len(played) else "bold red"
    lines = [Text(f"{len(played)} streams of {providers} providers played, {clean} are as they must be", hue)]
    lines += [
        Text(f"not played: {one.stream.name}, {one.reason}", "yellow") for one in outcomes if isinstance(one, NotPlayed)
    ]
    return Text("\n").join(lines)
