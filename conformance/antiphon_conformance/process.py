"""`ProcessAdapter`: an adapter in any language. A case is a line of JSON on its standard input; it answers with a line
of JSON for each event, and an empty line after the last.

The process serves one case after another. One that dies, hangs or writes a line without end is killed, and started
again for the next case; what it wrote to standard error is in the finding.
"""

from __future__ import annotations

import json
import os
import queue
import shlex
import signal
import subprocess
import threading
import time
from collections import deque
from contextlib import suppress
from typing import IO, Any

from antiphon.errors import BadInput

from .adapters import SECONDS, as_line, in_bounds, most_events
from .answer import Answer, Fault
from .case import Case
from .given import MOST_BYTES
from .read import quoted
from .results import Subject

LINE_BYTES = 16 * 1024 * 1024  # of one event
WAITING_LINES = 100  # that were read and not yet taken; with those of `LINE_BYTES`, this is what bounds the memory
STDERR_LINES = 5
_END = object()  # the output ended
_TOO_LONG = object()


class ProcessAdapter:
    """An adapter that is a command. `answer` starts it where it does not run.

    Raises BadInput for a command that cannot be started.
    """

    told = frozenset({"request", "opt_ins", "done"})

    def __init__(self, command: str, *, seconds: float = SECONDS) -> None:
        try:
            self._arguments = shlex.split(command)
        except ValueError as problem:
            raise BadInput(f"--exec {command!r}: {problem}") from None
        if not self._arguments:
            raise BadInput('--exec is empty: give a command, such as --exec "node adapter.js"')
        self.subject = Subject(command, "process")
        self._seconds = in_bounds(seconds)
        self._running: _Running | None = _Running(self._arguments)

    def answer(self, case: Case) -> Answer:
        """Return what the process says to `case`."""
        if self._running is None:
            self._running = _Running(self._arguments)
        answer = self._running.ask(case, self._seconds)
        if answer.fault is not None:
            self.close()
        return answer

    def close(self) -> None:
        """End the process."""
        if self._running is not None:
            self._running.end()
        self._running = None


class _Running:
    """A started process, with a thread for each of its three streams."""

    def __init__(self, arguments: list[str]) -> None:
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        except OSError as problem:
            raise BadInput(f"cannot start {arguments[0]}: {problem.strerror}; is it installed, and in PATH?") from None
        self._lines: queue.Queue[Any] = queue.Queue(maxsize=WAITING_LINES)
        self._cases: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._said: deque[str] = deque(maxlen=STDERR_LINES)
        self._over = self._asked = False
        for work, stream in (
            (self._read, self._process.stdout),
            (self._listen, self._process.stderr),
            (self._write, self._process.stdin),
        ):
            threading.Thread(target=work, args=(stream,), daemon=True).start()

    def ask(self, case: Case, seconds: float) -> Answer:
        """Return the answer to a case, in `seconds` at most."""
        unasked = self._unasked()
        if unasked:
            return Answer([], Fault("died", self._with_stderr(unasked)))
        self._asked = True
        self._cases.put(json.dumps(as_line(case)).encode() + b"\n")
        events: list[Any] = []
        until, limit, size = time.monotonic() + seconds, most_events(case), 0
        while len(events) < limit and size <= MOST_BYTES:
            try:
                line = self._lines.get(timeout=max(until - time.monotonic(), 0.001))
            except queue.Empty:
                return Answer(events, Fault("hung", self._with_stderr(_late(seconds, events))))
            if line is _END:
                return Answer(events, Fault("died", self._with_stderr(self._death())))
            if line is _TOO_LONG:
                return Answer(events, Fault("endless", f"a line of more than {LINE_BYTES} bytes came"))
            if not line:
                return Answer(events)
            events.append(_parsed(line))
            size += len(line)
        came = f"{len(events)} events of {size} bytes"
        return Answer(events, Fault("endless", f"the process gave {came}, and no empty line to end them"))

    def _unasked(self) -> str:
        """Return what is wrong where lines came after the empty line that ended the last answer: they would be taken
        for the next one's. What came before the first case is its first event, and says so itself."""
        if not self._asked:
            return ""
        with suppress(queue.Empty):
            line = self._lines.get_nowait()
            if line is _END:
                return self._death()
            came = "a line without end" if line is _TOO_LONG else f"the line {quoted(line.decode('utf-8', 'replace'))}"
            return f"after the empty line that ended its last answer came {came}: one answer has one empty line"
        return ""

    def end(self) -> None:
        """Kill the process and those that it started, and wait for it."""
        self._over = True
        self._cases.put(None)
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        with suppress(queue.Empty):
            while True:  # lets the reader go on to the end of the pipe
                self._lines.get_nowait()

    def _death(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        status = self._process.returncode
        ended = "closed its standard output, and goes on" if status is None else f"ended, with status {status}"
        hint = "" if status else ": it has to answer one case after another, until its input ends"
        return f"the process {ended}{hint}"

    def _with_stderr(self, message: str) -> str:
        time.sleep(0.01)  # what it wrote last may still be on its way
        said = " / ".join(self._said)
        return f"{message}; it wrote: {quoted(said, 300)}" if said else f"{message}; it wrote nothing to stderr"

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            while line := stream.readline(LINE_BYTES + 1):
                if len(line) > LINE_BYTES:
                    self._give(_TOO_LONG)
                    return
                self._give(line.strip())
        self._give(_END)

    def _give(self, line: Any) -> None:
        while not self._over:
            with suppress(queue.Full):
                self._lines.put(line, timeout=0.1)
                return

    def _listen(self, stream: IO[bytes]) -> None:
        with stream:
            while line := stream.readline(10_000):
                self._said.append(line.decode("utf-8", "replace").strip()[:300])

    def _write(self, stream: IO[bytes]) -> None:
        with suppress(OSError, ValueError), stream:
            while (line := self._cases.get()) is not None:
                stream.write(line)
                stream.flush()


def _late(seconds: float, events: list[Any]) -> str:
    came = "1 event" if len(events) == 1 else f"{len(events)} events"
    return f"no empty line ended the answer in {seconds:g} s ({came} came)"


def _parsed(line: bytes) -> Any:
    """Return what a line says, a line that is no JSON as its text: the rules say that it is no event."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return line[:1000].decode("utf-8", "replace")
