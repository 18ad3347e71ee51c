"""`antiphon convert`: chunks in, Responses events out, as they come."""

from __future__ import annotations

import io
import logging
import os
import re
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from antiphon.errors import BadInput
from antiphon.stream.sse import open_format

if TYPE_CHECKING:
    from antiphon.timeline import Timeline

PIECE = 65536
FAILED = 1


class Format(StrEnum):
    """How events are written."""

    jsonl = "jsonl"
    sse = "sse"


class Reasoning(StrEnum):
    """Where reasoning goes."""

    summary = "summary"
    text = "text"


def convert(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="The chunks; - is standard input.", show_default=False)],
    format: Annotated[Format, typer.Option(help="How the events are written.")] = Format.jsonl,
    profile: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose chunks they are; without it, any provider's.")
    ] = None,
    reasoning: Annotated[Reasoning, typer.Option(help="Show reasoning as summary or as text parts.")] = (
        Reasoning.summary
    ),
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail on what has no place in the events, such as audio.")
    ] = False,
    request: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The Responses request (JSON), which the response repeats."),
    ] = None,
    counted: Annotated[
        bool, typer.Option("--counted", help="Count ids and set created_at to 0: the same input, the same output.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here; whole, or not at all.")
    ] = None,
    pretty: Annotated[bool, typer.Option("--pretty", help="Show a picture of the items, live, and no JSON.")] = False,
) -> None:
    """Convert Chat Completions chunks to Responses events.

    FILE is what a chat backend sent: an SSE body, JSON lines, or a whole chat completion; which of them is detected.

    Each event is written as soon as it can be said, so a live stream may be piped in. Warnings go to standard error.

    Exits 0 if the response was completed (or ended incomplete), 1 if it failed, 2 if the input or an option is no good.

    Examples:

    antiphon convert chat.sse

    antiphon convert chat.jsonl --pretty --profile deepseek

    curl -sN … | antiphon convert - --format sse
    """
    options: dict[str, Any] = {"ids": "counted", "created_at": 0} if counted else {}
    options |= {"profile": profile, "reasoning": reasoning.value, "strict": strict, "request": read_request(request)}
    with ExitStack() as stack:
        sink = open_sink(stack, output, pretty)
        timeline = shown_live(stack) if pretty else None
        stack.enter_context(warnings_to(timeline.warn if timeline else _say))
        pieces = read_pieces(stack, file, sink.flush if sink else None)
        ending = write(events(pieces, options), sink, format, timeline)
    if timeline:
        show(timeline)
    elif ending != "completed":
        _say(f"the response ended {ending}")
    raise typer.Exit(FAILED if ending.startswith("failed") else 0)


def write(source: Iterable[bytes], sink: IO[bytes] | None, format: Format, timeline: Timeline | None) -> str:
    """Write the events, given as server-sent events, and return how the response ended."""
    last = b""
    for event in source:
        last = event
        if sink:
            sink.write(event if format is Format.sse else payload_of(event) + b"\n")
        if timeline:
            timeline.feed(msgspec.json.decode(payload_of(event)))
    if sink:
        sink.flush()
    return ending_of(msgspec.json.decode(payload_of(last)))


def payload_of(event: bytes) -> bytes:
    """Return the JSON text of an event: what comes after `event: …`, a line feed and `data: `."""
    return event[event.index(b"\n") + 7 : -2]


def ending_of(terminal: dict[str, Any]) -> str:
    """Return how the response ended, with the reason."""
    from antiphon.timeline import Timeline

    return str(Timeline([terminal]).ending)


# --- the input -----------------------------------------------------------------------------------------------------

# The key and the value are escaped where they are the content of a chunk, so this is found in events alone.
_EVENT = re.compile(rb'"type"\s*:\s*"response\.')


def events(pieces: Iterable[bytes], options: dict[str, Any]) -> Iterator[bytes]:
    """Yield the events of the input, as server-sent events. Raises BadInput where it holds no chunks."""
    from antiphon import convert_sse

    format, pieces = open_format(pieces)
    first = next(pieces)
    if _EVENT.search(first):
        raise BadInput("the input holds Responses events; convert takes Chat Completions chunks and makes such events")
    if format == "json":
        return body_events(b"".join((first, *pieces)), options)
    return convert_sse(chain((first,), pieces), events="sse", **options)


def body_events(body: bytes, options: dict[str, Any]) -> Iterator[bytes]:
    """Yield the events of one JSON document: a whole chat completion, or a list of chunks."""
    from antiphon import ChatCmplStreamHandler

    try:
        held = msgspec.json.decode(body, type=dict[str, Any] | list[dict[str, Any]])
    except msgspec.DecodeError as problem:
        raise BadInput(
            f"the input is no JSON document that convert knows ({problem}); it takes a chat completion, a list of "
            "chunks, JSON lines, or an SSE body"
        ) from problem
    whole = isinstance(held, dict)
    chunks = [held] if isinstance(held, dict) else held
    if any(chunk.get("object") == "response" for chunk in chunks):
        raise BadInput(
            "the input is a whole Responses answer; convert takes what a chat backend sent. Its events are made by "
            "`antiphon.unfold`"
        )
    handler = ChatCmplStreamHandler(**options, events="sse")
    for chunk in chunks:
        yield from handler.feed(chunk)
    yield from handler.finish(done=whole and bool(chunks[0].get("choices")))


def read_pieces(stack: ExitStack, file: str, before: Callable[[], object] | None) -> Iterator[bytes]:
    """Yield the input as it comes; `before` is called before each read, which may wait. Raises BadInput."""
    if file == "-":
        stream: Any = sys.stdin.buffer
    else:
        try:
            stream = stack.enter_context(Path(file).open("rb"))  # noqa: SIM115 -- the stack closes it
        except OSError as problem:
            raise BadInput(f"cannot read {file}: {problem.strerror}; give a file, or - for standard input") from None

    def pieces() -> Iterator[bytes]:
        while True:
            if before:
                before()
            piece = stream.read1(PIECE)
            if not piece:
                return
            yield piece

    return pieces()


def read_request(file: Path | None) -> dict[str, Any] | None:
    """Return the request in `file`. Raises BadInput where it is no JSON object."""
    if file is None:
        return None
    if str(file) == "-":
        raise BadInput("--request takes a file: standard input is for the chunks")
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
    except OSError as problem:
        raise BadInput(f"--request: cannot read {file}: {problem.strerror}") from None
    except msgspec.DecodeError as problem:
        raise BadInput(f"--request: {file} is not a JSON object: {problem}") from None


# --- the output ----------------------------------------------------------------------------------------------------


def open_sink(stack: ExitStack, output: Path | None, pretty: bool) -> IO[bytes] | None:
    """Return where events are written: the file, else standard output; None where only the picture is asked for."""
    if output is not None:
        return stack.enter_context(written_whole(output))
    return None if pretty else sys.stdout.buffer


@contextmanager
def written_whole(path: Path) -> Generator[IO[bytes]]:
    """Open a file that takes the place of `path` once all is written. What is no plain file is written to directly."""
    target = path.resolve()
    direct = target.exists() and not target.is_file()
    draft = target if direct else target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        file = draft.open("wb")
    except OSError as problem:
        raise BadInput(f"--output: cannot write {path}: {problem.strerror}") from None
    try:
        with file:
            yield file
        if not direct:
            draft.replace(target)
    finally:
        if not direct:
            draft.unlink(missing_ok=True)


def shown_live(stack: ExitStack) -> Timeline:
    """Return a timeline that is shown, while the stack is open, if standard output is a terminal."""
    from rich.console import Console
    from rich.live import Live

    from antiphon.timeline import Timeline, render_text

    timeline, console = Timeline(), Console()
    if console.is_terminal:
        stack.enter_context(
            Live(console=console, get_renderable=lambda: render_text(timeline), refresh_per_second=8, transient=True)
        )
    return timeline


def show(timeline: Timeline) -> None:
    """Print the picture."""
    from rich.console import Console

    from antiphon.timeline import render_text

    out: Any = sys.stdout
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="replace")  # an ASCII terminal has no bars
    Console().print(render_text(timeline))


@contextmanager
def warnings_to(take: Callable[[str], None]) -> Generator[None]:
    """Hand what the library warns of to `take`."""

    class Taking(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            take(record.getMessage())

    log, handler = logging.getLogger("antiphon"), Taking(logging.WARNING)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _say(message: str) -> None:
    from antiphon.timeline import escaped

    typer.echo(f"antiphon: {escaped(message)}", err=True)
