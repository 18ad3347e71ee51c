"""`python -m tests.bench`: measure the goals, or some of them, and print the table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from .goals import GOALS, Cell, Figure, Import, Peak
from .measure import Samples, Settings, Skipped, groups, measure
from .processes import imports, peaks
from .report import Row, as_json, header, heading, row, table

Found: TypeAlias = dict[Figure, Samples | Skipped]
Tell: TypeAlias = Callable[[str], None]
QUICK = Settings(rounds=1, scale=0.01, least=0.0)

app = typer.Typer(add_completion=False)


@app.command()
def main(
    rounds: Annotated[int, typer.Option(min=1, help="How often each cell is timed.")] = 9,
    goals: Annotated[str, typer.Option(help="The letters of the goals, such as A,B; all if empty.")] = "",
    json_to: Annotated[str, typer.Option("--json", metavar="FILE|-", help="JSON to a file, or instead (-).")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="Tiny inputs, one round: does the bench itself work?")] = False,
) -> None:
    """Measure and print the performance table: ratios against openai-agents and against the least it could cost."""
    letters = {letter.strip().upper() for letter in goals.split(",") if letter.strip()}
    chosen = [goal for goal in GOALS if not letters or goal.letter in letters]
    settings = QUICK if quick else Settings(rounds=rounds)
    facts = header(settings)
    found = measured([figure for goal in chosen for figure in (goal.ours, goal.peer)], settings)
    rows = [row(goal, found) for goal in chosen]
    text = json.dumps(as_json(rows, facts), indent=1, ensure_ascii=False)
    if json_to == "-":
        typer.echo(text)
        return
    if json_to:
        Path(json_to).write_text(text + "\n")
    _show(rows, heading(facts))


def measured(figures: Iterable[Figure], settings: Settings) -> Found:
    """Return what each of `figures` came to, with the progress on standard error."""
    parts = list(_parts(figures, settings))
    found: Found = {}
    # No refreshing thread: it would be timed too.
    columns = (BarColumn(20), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True) as progress:
        task = progress.add_task("", total=len(parts))
        for part in parts:
            found |= part(lambda text: progress.update(task, description=text, refresh=True))
            progress.advance(task)
    return found


def _parts(figures: Iterable[Figure], settings: Settings) -> Iterator[Callable[[Tell], Found]]:
    """Yield what measures `figures`, each taking a callable that is told what comes next."""
    wanted = list(dict.fromkeys(figures))
    for group in groups(figure for figure in wanted if isinstance(figure, Cell)):
        yield partial(measure, group, settings)
    if statements := [figure for figure in wanted if isinstance(figure, Import)]:
        yield partial(imports, statements, settings)
    if conversions := [figure for figure in wanted if isinstance(figure, Peak)]:
        yield partial(peaks, conversions, settings)


def _show(rows: list[Row], text: str) -> None:
    console = Console()
    wide = console if console.is_terminal else Console(width=200)
    wide.print(table(rows))
    wide.print(text, markup=False, highlight=False)


if __name__ == "__main__":
    app()
