"""Adapters: every shape of callable, processes in any language, and all that they may do wrong."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from antiphon import ChatCmplStreamHandler, aconvert, convert, convert_sse
from antiphon.errors import BadInput
from antiphon_conformance.adapters import PythonAdapter, load
from antiphon_conformance.case import Case, load_cases
from antiphon_conformance.process import ProcessAdapter
from antiphon_conformance.results import NOTHING_RAN, Outcome
from antiphon_conformance.running import Settings, choose, run_suite

(PLAIN,) = (case for case in load_cases() if case.id == "text/plain")
assert isinstance(PLAIN, Case)
PLAIN_CASES = choose(load_cases(), ["text/plain", "errors/source-raises-in-text", "calls/plain"])


# The shapes that work


def a_list(chunks: list[dict[str, Any]]) -> list[Any]:
    return list(convert(chunks, events="dict"))


def a_generator(chunks: Iterable[dict[str, Any]]) -> Iterator[Any]:
    yield from convert(chunks, events="dict")


async def an_async_generator(chunks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[Any]:
    async for event in aconvert(chunks, events="dict"):
        yield event


async def a_coroutine(chunks: AsyncIterator[dict[str, Any]]) -> list[Any]:
    return [event async for event in aconvert(chunks)]


def returns_an_async_generator(chunks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[Any]:
    return an_async_generator(chunks)


async def returns_one_later(chunks: Any) -> AsyncIterator[Any]:
    return an_async_generator(chunks)


def wants_objects(chunks: Any) -> Iterator[Any]:
    def checked() -> Iterator[Any]:
        for chunk in chunks:
            _ = chunk.choices  # a dict has none
            yield chunk

    return convert(checked())


def wants_bytes(chunks: Any) -> Iterator[Any]:
    return convert_sse(chunks, events="sse")


def gives_text(chunks: Any) -> Iterator[str]:
    return (piece.decode() for piece in convert_sse(chunks, events="sse"))


async def wants_async_objects(chunks: Any) -> Any:
    async def checked() -> AsyncIterator[Any]:
        async for chunk in chunks:
            _ = chunk.choices
            yield chunk

    async for event in aconvert(checked()):
        yield event


SHAPES = [
    a_list,
    a_generator,
    an_async_generator,
    a_coroutine,
    returns_an_async_generator,
    returns_one_later,
    wants_objects,
    wants_bytes,
    gives_text,
    wants_async_objects,
    ChatCmplStreamHandler,
]


@pytest.mark.parametrize("target", SHAPES, ids=lambda target: target.__name__)
def test_a_callable_of_any_shape_is_run(target: Any) -> None:
    report = run_suite(PythonAdapter(target), PLAIN_CASES)
    assert {run.name: [str(one) for one in run.findings] for run in report.runs if run.findings} == {}
    assert {run.outcome for run in report.runs} == {Outcome.PASS}


def test_what_a_callable_is_told_of() -> None:
    seen: list[Any] = []

    def told(chunks: Any, *, request: Any, opt_ins: Any) -> list[Any]:
        seen.append((request, opt_ins))
        return list(convert(chunks, request=request))

    adapter = PythonAdapter(told)
    cases = {case.id: case for case in load_cases() if isinstance(case, Case)}
    adapter.answer(cases["text/request-echoed"])
    adapter.answer(cases["opt-ins/think-tags"])
    adapter.close()
    assert adapter.told == {"request", "opt_ins"}
    assert seen[-2:] == [(cases["text/request-echoed"].request, frozenset()), (None, frozenset({"think_tags"}))]


def test_a_callable_may_be_run_inside_of_a_loop() -> None:
    async def inside() -> list[Any]:
        return PythonAdapter(an_async_generator).answer(PLAIN).events

    assert asyncio.run(inside())[-1]["type"] == "response.completed"


# What goes wrong in a callable


def raises(chunks: Any) -> list[Any]:
    raise KeyError("boom")


def exits(chunks: Any) -> list[Any]:
    raise SystemExit(3)


def gives_none(chunks: Any) -> None:
    return None


def gives_a_dict(chunks: Any) -> dict[str, Any]:
    return {}


def raises_within(chunks: Any) -> Iterator[Any]:
    yield {"type": "response.created"}
    raise ValueError("in the middle")


def endless(chunks: Any) -> Iterator[Any]:
    for n in itertools.count():
        yield {"type": "response.output_text.delta", "n": n}


async def endless_async(chunks: Any) -> AsyncIterator[Any]:
    for n in itertools.count():
        yield {"n": n}


def hangs(chunks: Any) -> list[Any]:
    threading.Event().wait(30)
    return []


async def hangs_async(chunks: Any) -> list[Any]:
    await asyncio.sleep(30)
    return []


FAULTS = [
    (raises, "HAR002", "KeyError: 'boom' (test_adapters.py:"),
    (exits, "HAR002", "SystemExit: 3 (test_adapters.py:"),
    (gives_none, "HAR002", "the adapter gave NoneType, which is no iterable of events"),
    (gives_a_dict, "HAR002", "the adapter gave dict, which is no iterable of events"),
    (raises_within, "HAR002", "ValueError: in the middle (test_adapters.py:"),
    (endless, "HAR003", "the adapter gave 10500 events and went on"),
    (endless_async, "HAR003", "the adapter gave 10500 events and went on"),
    (hangs, "HAR003", "the adapter did not end in 0.1 s (before any event)"),
    (hangs_async, "HAR003", "the adapter did not end in 0.1 s (before any event)"),
]


@pytest.mark.parametrize(("target", "code", "message"), FAULTS, ids=lambda one: getattr(one, "__name__", ""))
def test_a_fault_is_one_finding(target: Any, code: str, message: str) -> None:
    seconds = 0.1 if "hangs" in target.__name__ else 10.0
    report = run_suite(PythonAdapter(target, seconds=seconds), [PLAIN])
    (run,) = report.runs
    assert [one.code for one in run.findings] == [code]
    assert run.findings[0].message.startswith(message)
    assert report.exit_status == 1


def test_one_that_hangs_is_asked_three_times_and_no_more() -> None:
    report = run_suite(PythonAdapter(hangs, seconds=0.05))
    assert len(report.ran) == 3
    assert "the adapter did not end 3 times, and was asked no more" in {run.reason for run in report.runs}


def junk(chunks: Any) -> list[Any]:
    return [1, None, "x", b"\xff", {"type": 3}, {"no": 1}, object()]


def test_junk_is_a_finding() -> None:
    report = run_suite(PythonAdapter(junk), [PLAIN], Settings(forms=()))
    assert {"SCH001", "STR003"} <= {one.code for one in report.runs[0].findings}


def raises_on(chunks: Any) -> Iterator[Any]:
    """Passes on what the source raises, after the terminal event: as allowed."""
    return convert(chunks, raise_on_error=True)


def lets_it_out(chunks: Any) -> list[Any]:
    return list(convert(list(chunks)))


def test_what_the_source_raises_may_come_out_after_the_terminal_event_only() -> None:
    cases = choose(load_cases(), ["errors/source-raises-in-text"])
    (run,) = run_suite(PythonAdapter(raises_on), cases, Settings(forms=())).runs
    assert run.outcome is Outcome.PASS
    (run,) = run_suite(PythonAdapter(lets_it_out), cases, Settings(forms=())).runs
    assert [one.code for one in run.findings] == ["STR003"]
    assert "the source raised ConnectionError: peer closed" in run.findings[0].message


# Loading by a dotted path


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("plain", "'plain' is no adapter: give module:name"),
        (":name", "':name' is no adapter"),
        ("nowhere_at_all:x", "cannot import nowhere_at_all:x: ModuleNotFoundError"),
        ("antiphon:nothing", "cannot import antiphon:nothing: AttributeError"),
        ("antiphon:__version__", "antiphon:__version__ is str, and cannot be called"),
        ("broken_at_import:x", "cannot import broken_at_import:x: RuntimeError: at import (broken_at_import.py:1"),
    ],
)
def test_a_path_that_leads_to_no_adapter(
    target: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_at_import.py").write_text('raise RuntimeError("at import")\n')
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadInput) as problem:
        load(target)
    assert str(problem.value).startswith(message)


def test_a_path_into_a_class() -> None:
    adapter = load("antiphon:ChatCmplStreamHandler")
    assert (adapter.subject.name, adapter.subject.kind) == ("antiphon:ChatCmplStreamHandler", "adapter")
    assert adapter.answer(PLAIN).events[-1]["type"] == "response.completed"
    adapter.close()


def test_nothing_ran() -> None:
    report = run_suite(PythonAdapter(a_list), choose(load_cases(), ["calls/p*"]), Settings(has=()))
    assert report.exit_status == NOTHING_RAN
    assert {run.reason for run in report.runs} == {"needs: tools"}


# Processes

WHOLE = """
import json, sys
from antiphon import ChatCmplStreamHandler
for line in sys.stdin:
    case = json.loads(line)
    handler = ChatCmplStreamHandler(events="dict", request=case["request"])
    events = [event for chunk in case["chunks"] for event in handler.feed(chunk)]
    raises = case["raises"]
    events += handler.fail(ConnectionError(raises["message"])) if raises else handler.finish(done=case["done"])
    print("\\n".join(map(json.dumps, events)))
    print(flush=True)
"""


def process(tmp_path: Path, source: str, **more: Any) -> ProcessAdapter:
    (tmp_path / "adapter.py").write_text(source)
    return ProcessAdapter(f"{sys.executable} {tmp_path / 'adapter.py'}", **more)


def test_a_process_answers(tmp_path: Path) -> None:
    adapter = process(tmp_path, WHOLE)
    report = run_suite(adapter, choose(load_cases(), ["text/plain", "endings/no-finish-done", "errors", "calls/p*"]))
    assert {run.name: [str(one) for one in run.findings] for run in report.runs if run.findings} == {}
    assert {run.outcome for run in report.runs} == {Outcome.PASS}
    assert report.subject.kind == "process"


PROCESS_FAULTS = {
    "dies": (
        "import sys; sys.stdin.readline(); print('Traceback: boom', file=sys.stderr); sys.exit(4)",
        "HAR002",
        "the process ended, with status 4; it wrote: 'Traceback: boom'",
    ),
    "ends at once": ("", "HAR002", "the process ended, with status 0: it has to answer one case"),
    "closes its output": (
        "import os, time; os.close(1); time.sleep(30)",
        "HAR002",
        "the process closed its standard output, and goes on: it has to answer one case",
    ),
    "hangs": ("import sys\nfor line in sys.stdin: pass", "HAR003", "no empty line ended the answer in "),
    "never an empty line": (
        "import sys\nfor line in sys.stdin:\n    while True: print('{}')",
        "HAR003",
        "the process gave 10500 events of 21000 bytes, and no empty line to end them",
    ),
    "a line without end": (
        "import sys\nfor line in sys.stdin:\n    while True: sys.stdout.write('x' * 1_000_000)",
        "HAR003",
        "a line of more than 16777216 bytes came",
    ),
}


@pytest.mark.parametrize(("source", "code", "message"), PROCESS_FAULTS.values(), ids=PROCESS_FAULTS)
def test_a_fault_of_a_process_is_one_finding(tmp_path: Path, source: str, code: str, message: str) -> None:
    seconds = 1.0 if source.endswith("pass") else 20.0
    (run,) = run_suite(process(tmp_path, source, seconds=seconds), [PLAIN]).runs
    assert [one.code for one in run.findings] == [code]
    assert run.findings[0].message.startswith(message)


def test_a_process_that_dies_is_started_again(tmp_path: Path) -> None:
    dies_once = WHOLE.replace("    case = json", "    if 'ferry' in line: sys.exit(1)\n    case = json")
    report = run_suite(process(tmp_path, dies_once), choose(load_cases(), ["text/plain", "text/after-finish"]))
    broken = {run.case: [one.code for one in run.findings] for run in report.runs if run.findings}
    assert broken == {"text/plain": ["HAR002"]}


def test_lines_that_are_no_json_are_findings(tmp_path: Path) -> None:
    says = "import sys\nfor line in sys.stdin: print('<html>\\n[1]\\n', flush=True)"
    (run,) = run_suite(process(tmp_path, says), [PLAIN], Settings(forms=())).runs
    assert "the event is no object: '<html>'" in [one.message for one in run.findings]


@pytest.mark.parametrize(
    ("command", "message"),
    [("", "--exec is empty"), ("'", '--exec "\'": No closing quotation'), ("no-such-program-here", "cannot start")],
)
def test_a_command_that_cannot_be_started(command: str, message: str) -> None:
    with pytest.raises(BadInput) as problem:
        ProcessAdapter(command)
    assert str(problem.value).startswith(message)


def test_what_a_process_is_given(tmp_path: Path) -> None:
    echo = "import sys, json\nfor line in sys.stdin: print(json.dumps({'got': json.loads(line)})); print(flush=True)"
    adapter = process(tmp_path, echo)
    cases = {case.id: case for case in load_cases() if isinstance(case, Case)}
    case = cases["errors/source-times-out"]
    (event,) = adapter.answer(case).events
    adapter.close()
    assert event["got"] == {
        "id": "errors/source-times-out",
        "form": "",
        "chunks": json.loads(json.dumps(case.chunks)),
        "done": False,
        "raises": {"type": "TimeoutError", "message": "read timed out"},
        "request": None,
        "opt_ins": [],
    }
