"""Where the report of `antiphon check` goes: standard output, and files; and the progress, on standard error."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

from antiphon.errors import BadInput

if TYPE_CHECKING:
    from antiphon_conformance.results import Run, SuiteReport


class Outputs:
    """Where a report goes. Raises, before anything runs, BadInput for a file that cannot be written, and ExtraMissing
    where what writes it is not installed."""

    def __init__(
        self,
        as_json: bool,
        everything: bool,
        quiet: bool,
        jsonl: Path | None,
        junit: Path | None,
        markdown: Path | None,
        html: Path | None,
    ) -> None:
        self._as_json, self._everything, self._quiet = as_json, everything, quiet
        self._files = {"jsonl": jsonl, "junit": junit, "markdown": markdown, "html": html}
        refuse_unwritable(path for path in self._files.values() if path is not None)
        if html is not None:
            from antiphon_conformance.reports.html import needed

            needed()
        self.standard: TextIO = sys.stdout
        self._advance: Callable[[Run], None] | None = None
        self._stop: Callable[[], None] | None = None
        self._lines: Any = None
        self._gone: OSError | None = None  # why standard output takes no more

    def begin(self, subject: Any, cases_hash: str, total: int) -> None:
        """Say what is tested, and show the progress of so many cases."""
        if self._as_json:
            from antiphon_conformance.reports.jsonl import Lines

            self._lines = Lines(self.standard)
            self._line(lambda: self._lines.begin(subject, cases_hash))
        if total and not self._quiet and sys.stderr is not None and sys.stderr.isatty():  # pyright: ignore[reportUnnecessaryComparison]
            self._show(subject.name, total)

    def run(self, run: Run) -> None:
        """Take one run."""
        if self._lines is not None:
            self._line(lambda: self._lines.run(run))
        if self._advance is not None:
            self._advance(run)

    def show(self, report: SuiteReport) -> None:
        """Write the report to standard output. Raises BrokenPipeError where its reader went away, BadInput where it
        takes no more for another reason."""
        self.stop()
        self._line(lambda: self._write_out(report))
        if isinstance(self._gone, BrokenPipeError):
            raise self._gone
        if self._gone is not None:
            raise BadInput(f"cannot write standard output: {self._gone.strerror}")

    def save(self, report: SuiteReport) -> None:
        """Write the files that were asked for. Raises BadInput for those that cannot be written, when the others are."""
        problems = [
            f"cannot write {path}: {problem}"
            for name, path in self._files.items()
            if path is not None and (problem := _written(name, path, report))
        ]
        if problems:
            raise BadInput("; ".join(problems))

    def _line(self, write: Callable[[], None]) -> None:
        """Write to standard output, unless it takes no more: the run goes on, for the sake of the files."""
        if self._gone is not None:
            return
        try:
            write()
        except OSError as problem:
            self._gone = problem

    def stop(self) -> None:
        """End the progress."""
        if self._stop is not None:
            self._stop()
        self._stop = None

    def _write_out(self, report: SuiteReport) -> None:
        from rich.console import Console

        from antiphon_conformance.reports import console, jsonl

        if not self._as_json:
            console.write(
                report, Console(file=self.standard, highlight=False, soft_wrap=True), everything=self._everything
            )
        elif self._lines is not None:
            self._lines.end(report)
        else:
            self.standard.writelines(f"{jsonl.written(line)}\n" for line in jsonl.lines(report))
        self.standard.flush()

    def _show(self, name: str, total: int) -> None:
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[now]}"),
            console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        task = bar.add_task(escape(name), total=total, now="")
        seen: set[str] = set()

        def advance(run: Run) -> None:
            bar.update(task, advance=run.case not in seen, now=run.case)
            seen.add(run.case)

        bar.start()
        self._advance, self._stop = advance, bar.stop


def refuse_unwritable(paths: Iterable[Path]) -> None:
    """Raise BadInput for a path that no file can be written to."""
    for path in paths:
        if path.is_dir():
            raise BadInput(f"cannot write {path}: it is a folder")
        if not path.resolve().parent.is_dir():
            raise BadInput(f"cannot write {path}: there is no such folder")
        if not os.access(path if path.exists() else path.resolve().parent, os.W_OK):
            raise BadInput(f"cannot write {path}: permission denied")


def _written(name: str, path: Path, report: SuiteReport) -> str:
    """Write a file; return why that cannot be, "" where it was."""
    from importlib import import_module

    writer: Callable[[SuiteReport, Path], None] = import_module(f"antiphon_conformance.reports.{name}").write
    try:
        whole(path, lambda part: writer(report, part))
    except OSError as problem:
        return problem.strerror or str(problem)
    return ""


def whole(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file whole or not at all: whoever reads it, or writes it at the same time, never meets a half.

    Raises OSError where it cannot be written.
    """
    if path.exists() and not path.is_file():  # a pipe or a device: it has no other to take its place
        write(path)
        return
    target = path.resolve()
    part = target.with_name(f".{target.name[:100]}.{os.getpid()}.part")
    try:
        write(part)
        os.replace(part, target)
    except PermissionError:
        write(path)  # the folder takes no new file; the file itself may be writable
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


@contextmanager
def kept_standard_output() -> Generator[TextIO]:
    """Give standard output to the report alone: what an adapter, or what it starts, prints goes to standard error."""
    shown, sys.stdout = sys.stdout, sys.stderr
    try:
        if _descriptor(shown) == 1 and _descriptor(sys.stderr) == 2:
            yield from _kept_descriptor(shown)
        elif shown is None:  # pyright: ignore[reportUnnecessaryComparison] -- so it is where the shell closed it
            with open(os.devnull, "w") as nothing:
                yield nothing
        else:
            yield shown
    finally:
        sys.stdout = shown


def _descriptor(stream: TextIO | None) -> int | None:
    try:
        return stream.fileno() if stream is not None else None
    except (OSError, ValueError):
        return None


def _kept_descriptor(shown: TextIO) -> Generator[TextIO]:
    shown.flush()
    errors = "backslashreplace" if shown.errors == "strict" else shown.errors
    own = open(os.dup(1), "w", encoding=shown.encoding, errors=errors)  # noqa: SIM115 -- 1 is given back before it closes
    try:
        os.dup2(2, 1)
        yield own
    finally:
        os.dup2(own.fileno(), 1)
        with suppress(OSError):  # what could not be written was said when it was
            own.close()


@contextmanager
def ended_by_signals() -> Generator[None]:
    """Take SIGTERM, with which a CI ends what it cancels, for Ctrl-C: the report is written, processes are ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so a shell starts what runs in its background
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)  # which an event loop takes for itself

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
