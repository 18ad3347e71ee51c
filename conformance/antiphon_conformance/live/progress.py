"""Shows a run as it goes: a bar on a terminal."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from antiphon_conformance.results import Outcome

from .options import Progress, Step

if TYPE_CHECKING:
    from rich.console import Console

SIGNS = {Outcome.PASS: "[green]✓[/]", Outcome.FAIL: "[red]✗[/]", Outcome.NOT_APPLICABLE: "[yellow]–[/]"}


@contextmanager
def bar(console: Console) -> Generator[Progress]:
    """Give the callback for `check_live`: while the block lasts, a bar says which probe is asked and how many are over.

    On what is no terminal nothing is shown.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task("", total=None)

        def told(step: Step) -> None:
            if step.outcome is None:
                shown.update(task, total=step.total, description=f"{step.probe}: {step.title}")
            else:
                shown.advance(task)
                if step.outcome is Outcome.FAIL:
                    shown.console.print(f"{SIGNS[step.outcome]} {step.probe}: {step.title}", highlight=False)

        yield told
