"""Adapters: whatever turns chunks into events, put behind one method that always comes back.

    Case -> Adapter.answer -> Answer(events, fault)

A Python callable runs in a thread of its own, so that one that hangs is left behind; a process is killed. What goes
wrong in an adapter is a `Fault` in its answer; only what cannot be used at all raises `BadInput`.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import os
import queue
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal, Protocol, TypeAlias

from antiphon.errors import BadInput

from .answer import Answer, Fault
from .case import ENVELOPE, Case, Expected, Raises
from .given import Given
from .read import Json, plain
from .results import Subject

SECONDS = 10.0  # for one case
MOST_SECONDS = 86_400.0  # that may be asked for: more than threads can wait is no limit
IMPORT_SECONDS = 60.0
_ERRORS: dict[str, type[Exception]] = {
    "ConnectionError": ConnectionError,
    "TimeoutError": TimeoutError,
    "RuntimeError": RuntimeError,
}

ChunkStyle: TypeAlias = Literal["dict", "openai", "sse"]


class Adapter(Protocol):
    """What the suite runs. `told` says what of a case reaches it beside the chunks: "request", "opt_ins", "done"."""

    @property
    def subject(self) -> Subject:
        """What it is, as reports name it."""
        ...

    @property
    def told(self) -> frozenset[str]:
        """What it is told of beside the chunks."""
        ...

    def answer(self, case: Case) -> Answer:
        """Return what the adapter makes of a case, in bounded time."""
        ...

    def close(self) -> None:
        """End what the adapter holds: a process, a thread."""
        ...


def most_events(case: Case) -> int:
    """Return how many events an adapter may give: more are taken for no end."""
    return 10_000 + 100 * len(case.chunks)


def in_bounds(seconds: float) -> float:
    """Return the seconds of one case, `MOST_SECONDS` where they are more. Raises BadInput where they are none."""
    if not seconds > 0:
        raise BadInput(f"seconds is {seconds:g}: what one case may take is a number above 0")
    return min(seconds, MOST_SECONDS)


# Loading


def load(target: str, *, style: ChunkStyle | None = None, seconds: float = SECONDS) -> PythonAdapter:
    """Return the adapter at a dotted path, such as `mypackage.stream:convert`.

    Raises BadInput where it cannot be imported, or is nothing that can be called.
    """
    module, colon, name = target.partition(":")
    if not colon or not module or not name:
        inside, _, last = target.rpartition(".")
        meant = f"did you mean {inside}:{last}? Give" if inside and last and not colon else "give"
        raise BadInput(f"{target!r} is no adapter: {meant} module:name, such as mypackage.stream:convert")
    worker = _Worker()
    found = worker.call(lambda: _imported(module, name), IMPORT_SECONDS)
    match found:
        case Fault(kind="hung"):
            raise BadInput(f"importing {module} took more than {IMPORT_SECONDS:g} s; what an import does must end")
        case Fault(message=message):
            raise BadInput(f"cannot import {target}: {message}")
        case value if callable(value):
            return PythonAdapter(value, target, style=style, seconds=seconds)
        case value:
            raise BadInput(f"{target} is {type(value).__name__}, and cannot be called with chunks")


def _imported(module: str, name: str) -> Any:
    value: Any = import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return value


# A Python callable


class PythonAdapter:
    """A callable that takes an iterable, or async iterable, of chunks, and gives events: a list, an iterator, or an
    async one; or a class with `feed` and `finish`.

    Events are dicts, model objects, or server-sent events as text or bytes. Keywords called `request` and `opt_ins`
    are given where the callable has them. How it wants its chunks (as dicts, as `ChatCompletionChunk` objects, or as
    the bytes of server-sent events; from an async source or a plain one) is tried on a short stream, unless `style`
    says it.
    """

    def __init__(
        self,
        target: Callable[..., Any],
        name: str = "",
        *,
        style: ChunkStyle | None = None,
        seconds: float = SECONDS,
        version: str = "",
    ) -> None:
        self.subject = Subject(name or _name_of(target), "adapter", version or _version_of(target))
        self._seconds = in_bounds(seconds)
        self._target = target
        self._worker = _Worker()
        parameters = _parameters(target)
        self._keywords = frozenset({"request", "opt_ins"} & set(parameters))
        self._way = self._found_way(style)
        self.told = self._keywords | ({"done"} if self._way.style == "sse" else set[str]())

    def answer(self, case: Case) -> Answer:
        """Return what the callable makes of `case`."""
        return self._answer(case, self._way)

    def close(self) -> None:
        """End the thread, if it is not stuck in the callable."""
        self._worker.close()

    def _answer(self, case: Case, way: _Way) -> Answer:
        given = Given(most_events(case))

        def work() -> Fault | None:
            return self._run(case, way, given)

        fault = self._worker.call(work, self._seconds)
        if isinstance(fault, Fault) and fault.kind == "hung":
            self._worker.close()
            self._worker = _Worker()  # the other one is stuck, and is left behind; it ends if it ever comes back
            given.closed = True
            came = f"after {len(given.events)} events" if given.events else "before any event"
            fault = Fault("hung", f"the adapter did not end in {self._seconds:g} s ({came})")
        return Answer(as_events(list(given.events)), fault if isinstance(fault, Fault) else None)

    def _run(self, case: Case, way: _Way, given: Given) -> Fault | None:
        keywords: dict[str, Any] = {}
        if "request" in self._keywords:
            keywords["request"] = copy.deepcopy(case.request)  # what the adapter does to it stays its own affair
        if "opt_ins" in self._keywords:
            keywords["opt_ins"] = case.opt_ins
        source = _chunks_as(case, way.style)
        if isinstance(self._target, type) and hasattr(self._target, "feed"):
            return _drain(_fed(self._target(**keywords), source), given)
        result = self._target(_async(source) if way.is_async else source, **keywords)
        if inspect.isawaitable(result) or hasattr(result, "__aiter__"):
            return asyncio.run(_adrain(result, given))
        return _drain(result, given)

    def _found_way(self, style: ChunkStyle | None) -> _Way:
        """Return how the callable takes chunks: the first way in which it gives text for a text."""
        ways = [way for way in _ways(self._target) if style in (None, way.style)]
        best = None
        for way in ways:
            answer = self._answer(_TRIAL, way)
            if answer.fault is not None and answer.fault.kind == "hung":
                return way  # its cases will say so
            if answer.fault is None and any(_says_text(event) for event in answer.events):
                return way
            if best is None and answer.fault is None and answer.events:
                best = way
        return best or ways[0]


@dataclass(frozen=True, slots=True)
class _Way:
    style: ChunkStyle
    is_async: bool


_TRIAL = Case(
    "trial/text",
    "a short text",
    "",
    (),
    (
        {**ENVELOPE, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]},
        {**ENVELOPE, "choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": None}]},
        {**ENVELOPE, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ),
    Expected("completed", []),
    done=True,
)


def _ways(target: Callable[..., Any]) -> list[_Way]:
    """Return the ways to try, the likeliest first, by what the callable says of itself."""
    hints = " ".join(str(one.annotation) for one in _parameters(target).values())
    is_async = inspect.isasyncgenfunction(target) or inspect.iscoroutinefunction(target) or "Async" in hints
    styles: list[ChunkStyle] = ["dict", "openai", "sse"]
    likely: ChunkStyle = "openai" if "ChatCompletionChunk" in hints else "sse" if "bytes" in hints else "dict"
    styles.sort(key=lambda style: style != likely)
    return [_Way(style, one) for one in (is_async, not is_async) for style in styles]


def _says_text(event: object) -> bool:
    return (plain(event) or {}).get("type") == "response.output_text.delta"


def _parameters(target: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(target).parameters
    except (TypeError, ValueError):
        return {}


def _name_of(target: Callable[..., Any]) -> str:
    return f"{getattr(target, '__module__', '?')}:{getattr(target, '__qualname__', type(target).__name__)}"


def _version_of(target: Callable[..., Any]) -> str:
    """Return the version of the package that the callable is from, "" where none says it."""
    from importlib.metadata import PackageNotFoundError, version

    with suppress(PackageNotFoundError, ValueError):
        return version(str(getattr(target, "__module__", "")).partition(".")[0])
    return ""


def _chunks_as(case: Case, style: ChunkStyle) -> Iterator[Any]:
    """Yield the chunks of a case in a style, and then raise what its source raises."""
    match style:
        case "dict":
            yield from (json.loads(json.dumps(chunk)) for chunk in case.chunks)
        case "openai":
            from openai.types.chat import ChatCompletionChunk

            # As the SDK makes them: what it does not know is kept, what is missing is missing.
            yield from (ChatCompletionChunk.construct(**json.loads(json.dumps(chunk))) for chunk in case.chunks)
        case "sse":
            yield from (f"data: {json.dumps(chunk)}\n\n".encode() for chunk in case.chunks)
            if case.done and case.raises is None:
                yield b"data: [DONE]\n\n"
    if case.raises is not None:
        raise made_error(case.raises)


def made_error(raises: Raises) -> Exception:
    """Return the exception that a case's source raises."""
    return _ERRORS[raises.type](raises.message)


async def _async(source: Iterator[Any]) -> AsyncIterator[Any]:
    for chunk in source:
        yield chunk


def _fed(handler: Any, source: Iterator[Any]) -> Iterator[Any]:
    """Yield the events of a handler with `feed`, `finish`, and perhaps `fail`."""
    try:
        for chunk in source:
            yield from handler.feed(chunk)
    except tuple(_ERRORS.values()) as error:
        if not hasattr(handler, "fail"):
            raise
        yield from handler.fail(error)
    else:
        yield from handler.finish()


def _drain(result: Any, given: Given) -> Fault | None:
    if isinstance(result, str | bytes):
        result = [result]  # a whole body
    if not _are_events(result):
        return Fault("raised", f"the adapter gave {type(result).__name__}, which is no iterable of events")
    for event in result:
        if reason := given.take(event):
            return _endless(reason)
    return None


def _are_events(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, Mapping)


async def _adrain(result: Any, given: Given) -> Fault | None:
    while inspect.isawaitable(result):
        result = await result
    if not hasattr(result, "__aiter__"):
        return _drain(result, given)
    if not hasattr(result, "aclose"):
        return await _acollect(result, given)
    async with aclosing(result) as closing:
        return await _acollect(closing, given)


async def _acollect(result: Any, given: Given) -> Fault | None:
    async for event in result:
        if reason := given.take(event):
            return _endless(reason)
    return None


def _endless(came: str) -> Fault:
    return Fault("endless", f"the adapter gave {came} and went on")


def as_events(came: list[Any]) -> list[Any]:
    """Return the events in what an adapter gave: server-sent events are read, all else is as it is."""
    if not any(isinstance(one, bytes | str) for one in came):
        return came
    from antiphon.stream.sse import SSEDecoder, SSEMessage

    if not all(isinstance(one, bytes | str) for one in came):
        return came
    decoder = SSEDecoder()
    pieces = [one.encode() if isinstance(one, str) else one for one in came]
    messages = [message for piece in pieces for message in decoder.feed(piece)] + decoder.finish()
    payloads = [message.data if isinstance(message, SSEMessage) else message for message in messages]
    return [_parsed(payload) for payload in payloads if payload.strip() != b"[DONE]"]


def _parsed(payload: bytes) -> Any:
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        return payload.decode("utf-8", "replace")


# A thread for what may hang


@dataclass(slots=True)
class _Job:
    work: Callable[[], Any]
    done: threading.Event = field(default_factory=threading.Event)
    result: Any = None


class _Worker:
    """A thread that does one thing after another. `call` comes back in time, whatever the work does."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def call(self, work: Callable[[], Any], seconds: float) -> Any:
        """Return what `work` returns, or a Fault where it raises, or does not end in time."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name="antiphon-adapter", daemon=True)
            self._thread.start()
        job = _Job(work)
        self._jobs.put(job)
        if not job.done.wait(seconds):
            return Fault("hung", f"it did not end in {seconds:g} s")
        return job.result

    def close(self) -> None:
        """Let the thread end."""
        self._jobs.put(None)

    def _loop(self) -> None:
        process = os.getpid()
        while (job := self._jobs.get()) is not None:
            try:
                job.result = job.work()
            except BaseException as error:  # noqa: BLE001 -- it is others' code, and must not take the suite with it
                job.result = Fault("raised", told(error))
            if os.getpid() != process:
                os._exit(0)  # a child that the adapter forked: its parent answers, and nobody asks it for more
            job.done.set()


def told(error: BaseException) -> str:
    """Return an exception as a message has it: what, and where in the code of the adapter."""
    frames = [
        one for one in traceback.extract_tb(error.__traceback__) if one.filename != __file__ and one.filename[:1] != "<"
    ]
    where = f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}, in {frames[-1].name})" if frames else ""
    said = " ".join(_said(error).split())[:300]
    return f"{type(error).__name__}: {said}{where}" if said else f"{type(error).__name__}{where}"


def _said(error: BaseException) -> str:
    try:
        return str.__str__(str(error))
    except Exception as problem:  # noqa: BLE001 -- the class is the adapter's, and so is what its __str__ does
        return f"and its __str__ raises {type(problem).__name__}"


def as_line(case: Case) -> Json:
    """Return a case as a process is given it."""
    raises = {"type": case.raises.type, "message": case.raises.message} if case.raises is not None else None
    return {
        "id": case.id,
        "form": case.form,
        "chunks": list(case.chunks),
        "done": case.done,
        "raises": raises,
        "request": case.request,
        "opt_ins": sorted(case.opt_ins),
    }
