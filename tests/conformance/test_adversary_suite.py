"""The suite among adversaries: adapters, processes, files and outputs that do all they should not.

Each is one clear finding or one clear message, with the right exit status; every report stays well-formed.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import antiphon.cli as cli
from antiphon import convert
from antiphon_conformance.adapters import load
from antiphon_conformance.case import load_cases
from antiphon_conformance.report import Finding, Level
from antiphon_conformance.reports import html, jsonl, junit, markdown
from antiphon_conformance.results import (
    CLEAN,
    FINDINGS,
    INTERRUPTED,
    NOTHING_RAN,
    WRONG_USE,
    Deviation,
    Outcome,
    Run,
    Subject,
    SuiteReport,
)
from antiphon_conformance.running import Settings, choose, run_suite

from .evil import HOSTILE

ROOT = Path(__file__).parents[2]
EVIL = "tests.conformance.evil:"
OURS = "antiphon_conformance.own:dicts"
FEW = ("--case", "text/plain", "--no-forms")
CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
EVENTS = list(
    convert(
        [{**CHUNK, "choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]}],
        events="dict", ids="counted", created_at=0,
    )
)  # fmt: skip
LINES = "".join(f"{json.dumps(event)}\n" for event in EVENTS).encode()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, list(arguments), env={"COLUMNS": "200", "TERM": "dumb"})


def well_formed(folder: Path) -> None:
    """Assert that the four reports in a folder are what they claim to be, and hold nothing that moves a terminal."""
    ElementTree.parse(folder / "r.xml")
    for line in (folder / "r.jsonl").read_text(encoding="utf-8").splitlines():
        json.loads(line)
    for name in ("r.md", "r.html"):
        text = (folder / name).read_bytes().decode()
        assert re.findall(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", text) == []
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert page.count("<script") == page.count("</script") == 1


def reports_in(folder: Path) -> list[str]:
    names = {"--junit": "r.xml", "--jsonl": "r.jsonl", "--markdown": "r.md", "--html": "r.html"}
    return [word for option, name in names.items() for word in (option, str(folder / name))]


# --- adapters ---------------------------------------------------------------------------------------------------------

# an adapter -> the exit status, and what the report says
ADAPTERS: dict[str, tuple[int, str]] = {
    "clean": (CLEAN, "12 areas clean"),
    "one_dict": (CLEAN, "12 areas clean"),
    "a_whole_body": (CLEAN, "12 areas clean"),
    "takes_the_request_apart": (CLEAN, "12 areas clean"),
    "exits": (FINDINGS, "SystemExit: 0 (evil.py:"),
    "says_nothing_of_its_error": (FINDINGS, "Mutes: and its __str__ raises RuntimeError (evil.py:"),
    "hostile_error": (FINDINGS, "ValueError: \\ud800\\x00\\x1b[31m"),
    "junk": (FINDINGS, "the event is no object: None"),
    "mute_fields": (FINDINGS, "<tests.conformance.evil.Mute>"),
    "hostile_fields": (FINDINGS, "FTH"),
    "huge_numbers": (FINDINGS, "<int of 19932 bits>"),
    "in_themselves": (FINDINGS, "SCH"),
    "deep": (FINDINGS, "SCH"),
    "floods": (FINDINGS, "characters in 17 events and went on"),
    "floods_bytes": (FINDINGS, "characters in 17 events and went on"),
    "not_events": (FINDINGS, "the adapter gave int, which is no iterable of events"),
}


@pytest.mark.parametrize(("name", "status", "said"), [(name, *row) for name, row in ADAPTERS.items()], ids=ADAPTERS)
def test_an_adapter_among_adversaries(name: str, status: int, said: str, tmp_path: Path) -> None:
    result = run("check", EVIL + name, *FEW, *reports_in(tmp_path))
    assert (result.exit_code, result.stderr) == (status, "")
    assert said in result.stdout
    assert "\x1b" not in result.stdout
    well_formed(tmp_path)


def test_an_adapter_that_hangs_is_left_behind() -> None:
    adapter = load(EVIL + "hangs", seconds=0.2)
    report = run_suite(adapter, choose(load_cases(), ["text/*"]), Settings(forms=()))
    broken = [(one.code, one.message) for run in report.runs for one in run.findings]
    assert broken == [("HAR003", "the adapter did not end in 0.2 s (before any event)")] * 3
    assert {run.reason for run in report.runs[3:]} == {"the adapter did not end 3 times, and was asked no more"}


@pytest.mark.parametrize("style", ["--json", "--quiet"])
def test_what_an_adapter_prints_is_not_in_the_report(style: str) -> None:
    done = command(EVIL + "prints", *FEW, style)
    printed = {"printed", "written"}
    assert done.returncode == CLEAN
    assert printed <= set(done.stderr.splitlines())
    assert not printed & set(done.stdout.splitlines())
    if style == "--json":
        assert [json.loads(line)["line"] for line in done.stdout.splitlines()] == ["suite", "sum"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_what_an_adapter_forks_does_not_stay() -> None:
    done = command(EVIL + "forks", *FEW)  # comes back only when all who hold its output are gone
    assert (done.returncode, done.stdout.count("areas clean")) == (CLEAN, 1)


def command(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Return what `antiphon check` gave, in a process of its own."""
    words = [sys.executable, "-c", "import antiphon.cli; antiphon.cli.main()", "check", *arguments]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, **options)


# --- processes --------------------------------------------------------------------------------------------------------

SERVE = """
import json, sys
from antiphon import convert
for line in sys.stdin:
    for event in convert(json.loads(line)["chunks"], events="dict"):
        print(json.dumps(event))
    {}
"""
# what a process does after its answer -> what is said of the next
PROCESSES: dict[str, tuple[str, str]] = {
    "two empty lines": (
        "print(flush=True); print(flush=True)",
        r"after the empty line that ended its last answer came |STR003",
    ),
    "a line that is not asked for": ("print('\\nmore', flush=True)", "'more'"),
    "one answer only": ("print(flush=True); break", "with status 0: it has to answer one case after another"),
    "megabytes to stderr": ("print(flush=True); sys.stderr.write('x' * 10_000_000)", ""),
}


@pytest.mark.parametrize(("after", "said"), PROCESSES.values(), ids=PROCESSES)
def test_a_process_among_adversaries(after: str, said: str, tmp_path: Path) -> None:
    script = tmp_path / "serve.py"
    script.write_text(SERVE.format(after))
    result = run(
        "check", "--exec", f"{sys.executable} {script}", *FEW, "--case", "calls/plain", "--timeout", "30",
        *reports_in(tmp_path),
    )  # fmt: skip
    assert result.exit_code == (FINDINGS if said else CLEAN)
    assert re.search(said, result.stdout)
    well_formed(tmp_path)


def test_a_process_that_gives_megabytes_without_end_costs_no_more_than_so_many(tmp_path: Path) -> None:
    script = tmp_path / "flood.py"
    script.write_text("import sys\nfor line in sys.stdin:\n    while True: print('[' + '1,' * 1_000_000 + '1]')")
    result = run("check", "--exec", f"{sys.executable} {script}", *FEW, "--timeout", "60")
    assert result.exit_code == FINDINGS
    assert re.search(r"the process gave \d\d events of \d{8} bytes, and no empty line to end them", result.stdout)


# --- files ------------------------------------------------------------------------------------------------------------

CASE: dict[str, Any] = {
    "id": "a/b", "title": "t", "source": "s", "rules": ["ITM001"],
    "chunks": [{"delta": {"content": "x"}}, {"delta": {}, "finish_reason": "stop"}],
    "expect": {"status": "completed", "output": [{"type": "message", "text": "x"}]},
}  # fmt: skip


def case(**changed: Any) -> bytes:
    return json.dumps({**CASE, **changed}).encode()


# a case's file -> the exit status, and what is wrong
CASES: dict[str, tuple[bytes, int, str]] = {
    "good": (case(), CLEAN, "1 case, 1 ran"),
    "with a BOM": (b"\xef\xbb\xbf" + case(), CLEAN, "1 case, 1 ran"),
    "a hostile title": (case(title="]]> </script> \x1b[31m | `"), CLEAN, "1 case, 1 ran"),
    "raw that is no object": (case(chunks=[{"raw": 5}]), WRONG_USE, "raw is 5, not an object"),
    "raw that is a list": (case(chunks=[{"raw": [[1, 2]]}]), WRONG_USE, "raw is [[1, 2]], not an object"),
    "choices that are none": (case(chunks=[{"choices": 5}]), WRONG_USE, "choices is 5, not a list"),
    "chunks that are not there": (case(chunks="no.jsonl"), WRONG_USE, "no.jsonl is not there, or is no plain file"),
    "chunks that are a folder": (case(chunks="."), WRONG_USE, "is no plain file"),
    "chunks that are a device": (case(chunks="/dev/zero"), WRONG_USE, "is no plain file"),
    "an encoding that is none": (json.dumps(CASE).encode("utf-16"), WRONG_USE, "JSON is malformed"),
    "nothing": (b"", WRONG_USE, "Input data was truncated"),
    "very deep": (b'{"id": ' + b"[" * 100_000, WRONG_USE, "b: "),
    "a lone surrogate": (case(title="\ud800"), WRONG_USE, "JSON is malformed"),
    "a rule that is none": (case(rules=["XXX999"]), WRONG_USE, "there is no rule 'XXX999'"),
}


@pytest.mark.parametrize(("written", "status", "said"), CASES.values(), ids=CASES)
def test_a_case_among_adversaries(written: bytes, status: int, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "cases" / "a"
    folder.mkdir(parents=True)
    (folder / "b.json").write_bytes(written)
    result = run("check", OURS, "--cases", str(folder.parent), "--no-forms", *reports_in(tmp_path))
    assert result.exit_code == status
    assert said in result.stdout
    well_formed(tmp_path)


def test_links_in_a_folder_of_cases_end(tmp_path: Path) -> None:
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "again").symlink_to(tmp_path)
    result = run("check", OURS, "--cases", str(tmp_path))
    assert result.exit_code == WRONG_USE
    assert "gone: it cannot be read: gone.json is not there" in result.stdout


LINE = b"[[deviation]]\nrule = 'SEQ001'\ncase = '%s'\nreason = 'so'\n"
# a baseline -> what is wrong
BASELINES: dict[str, tuple[bytes, str]] = {
    "very deep": (b"a = " + b"[" * 100_000, "is no TOML"),
    "a number of very many digits": (b"a = " + b"9" * 6000, "is no TOML"),
    "an encoding that is none": (LINE.decode().encode("utf-16"), "is no UTF-8"),
    "a case that is none": (LINE % b"text/none", "SEQ001 is excused in 'text/none', and there is no such"),
    "NUL": (b"\0", "is no TOML"),
}


@pytest.mark.parametrize(("written", "said"), BASELINES.values(), ids=BASELINES)
@pytest.mark.parametrize("subject", ["adapter", "recordings"])
def test_a_baseline_among_adversaries(subject: str, written: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "known.toml").write_bytes(written)
    (tmp_path / "good.jsonl").write_bytes(LINES)
    tested = (OURS, *FEW) if subject == "adapter" else ("--recordings", str(tmp_path / "good.jsonl"))
    result = run("check", *tested, "--baseline", str(tmp_path / "known.toml"))
    assert (result.exit_code, result.stdout) == (WRONG_USE, "")
    assert said in result.stderr


def test_a_baseline_may_begin_with_a_bom(tmp_path: Path) -> None:
    (tmp_path / "known.toml").write_bytes(b"\xef\xbb\xbf" + LINE % b"text/plain")
    result = run("check", OURS, *FEW, "--baseline", str(tmp_path / "known.toml"))
    assert result.exit_code == FINDINGS
    assert "stale  SEQ001" in result.stdout


# a file of events -> the exit status of `lint`, and of `check --recordings`
STREAMS: dict[str, tuple[bytes, int, int]] = {
    "good": (LINES, CLEAN, CLEAN),
    "with a BOM": (b"\xef\xbb\xbf" + LINES, CLEAN, CLEAN),
    "nothing": (b"", NOTHING_RAN, FINDINGS),
    "no JSON": (b"not\njson\n", WRONG_USE, WRONG_USE),
    "NUL bytes": (b"\0" * 10_000, WRONG_USE, WRONG_USE),
    "UTF-16": (LINES.decode().encode("utf-16"), WRONG_USE, WRONG_USE),
    "an event that is no UTF-8": (LINES.replace(b"hi", b"h\xe9"), FINDINGS, FINDINGS),
    "a line that is cut": (LINES[:-40], FINDINGS, FINDINGS),
    "very deep": (b"[" * 100_000, WRONG_USE, WRONG_USE),
    "deep": (b'{"type":"x","a":' * 900 + b"1" + b"}" * 900, FINDINGS, FINDINGS),
    "a number of very many digits": (LINES.replace(b'r": 0', b'r": ' + b"9" * 5000), FINDINGS, FINDINGS),
    "a number of many digits": (LINES.replace(b'r": 0', b'r": ' + b"9" * 4000), FINDINGS, FINDINGS),
    "numbers that are none": (LINES.replace(b'x": 0', b'x": NaN'), FINDINGS, FINDINGS),
    "a key twice": (LINES.replace(b'{"type"', b'{"type": 5, "type"'), CLEAN, CLEAN),
    "lists": (b"[1]\n[2]\n", WRONG_USE, WRONG_USE),
}


@pytest.mark.parametrize(("written", "linted", "checked"), STREAMS.values(), ids=STREAMS)
def test_a_stream_among_adversaries(written: bytes, linted: int, checked: int, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(written)
    assert run("lint", str(file)).exit_code == linted
    assert run("check", "--recordings", str(file), *reports_in(tmp_path)).exit_code == checked
    well_formed(tmp_path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
def test_an_input_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon_conformance.commands.reading.MOST_BYTES", 1000)
    result = run("lint", "/dev/zero")
    assert (result.exit_code, result.stdout) == (WRONG_USE, "")
    assert "/dev/zero has more than 1000 bytes" in result.stderr


BODY = b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
META: dict[str, Any] = {
    "path": "/v1/chat/completions", "request": {"stream": True}, "status": 200, "wall_s": 1, "first_byte_s": 0.1,
    "headers": {"content-type": "text/event-stream"}, "pieces": [[0.1, len(BODY)]],
}  # fmt: skip
RUN = {"format": 1, "probes": ["text"], "turns": {"text": 1}}
WRONG: tuple[Any, ...] = (None, "x", 5, [5], [["a", "b"]], [[]], {}, {"text": "x"}, 10**400, float("nan"), -1, True)


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_recording_of_a_run_among_adversaries(wrong: Any, tmp_path: Path) -> None:
    (tmp_path / "text.sse").write_bytes(BODY)
    alone = [({**META, key: wrong}, None) for key in META]
    in_run = [(META, {**RUN, key: wrong}) for key in (*RUN, "left_out", "base", "url", "model", "interrupted")]
    for meta, facts in [*alone, *in_run, (wrong, None), (META, wrong)]:
        (tmp_path / "text.meta.json").write_text(json.dumps(meta))
        (tmp_path / "run.json").unlink(missing_ok=True)
        if facts is not None:
            (tmp_path / "run.json").write_text(json.dumps(facts))
        result = run("check", "--replay", str(tmp_path))
        assert result.exit_code in (CLEAN, FINDINGS, WRONG_USE, NOTHING_RAN, INTERRUPTED)
        assert result.exception is None or isinstance(result.exception, SystemExit)


# --- the command ------------------------------------------------------------------------------------------------------

# what is asked for -> the message
BAD_USE: dict[str, tuple[tuple[str, ...], str]] = {
    "a probe without a server": ((OURS, "--probe", "text"), "--probe goes with --url or --replay"),
    "a baseline for a server": (
        ("--url", "http://127.0.0.1:9", "--baseline", "known.toml"),
        "--baseline goes with MODULE:NAME or --exec or --recordings, and does nothing with --url",
    ),
    "cases for recordings": (("--recordings", ".", "--case", "text"), "--case goes with MODULE:NAME or --exec"),
    "chunks for a process": (("--exec", "cat", "--chunks", "sse"), "--chunks goes with MODULE:NAME, and does nothing"),
    "no seconds": ((OURS, "--timeout", "nan"), "--timeout nan: it is a number of seconds above 0"),
    "a report that is a folder": ((OURS, *FEW, "--junit", "."), "cannot write .: it is a folder"),
    "a report in no folder": ((OURS, *FEW, "--html", "no/x.html"), "cannot write no/x.html: there is no such folder"),
}


@pytest.mark.parametrize(("arguments", "said"), BAD_USE.values(), ids=BAD_USE)
def test_bad_use(arguments: tuple[str, ...], said: str) -> None:
    result = run("check", *arguments)
    assert (result.exit_code, result.stdout) == (WRONG_USE, "")
    assert said in result.stderr


def test_no_limit_of_time_is_one() -> None:
    assert run("check", OURS, *FEW, "--timeout", "inf").exit_code == CLEAN


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_one_report_that_cannot_be_written_costs_no_other(tmp_path: Path) -> None:
    result = run("check", OURS, *FEW, "--jsonl", "/dev/full", "--junit", str(tmp_path / "r.xml"))
    assert result.exit_code == WRONG_USE
    assert "cannot write /dev/full: No space left on device" in result.stderr
    assert ElementTree.parse(tmp_path / "r.xml").getroot().get("failures") == "0"
    with Path("/dev/full").open("w") as full:
        words = [sys.executable, "-c", "import antiphon.cli; antiphon.cli.main()", "check", OURS, *FEW]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (
        WRONG_USE,
        "antiphon: cannot write standard output: No space left on device\n",
    )


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("words", [("check", EVIL + "junk", *FEW), ("lint", "-"), ("rules",), ("explain", "ITM001")])
def test_an_output_that_is_not_utf_8(words: tuple[str, ...], encoding: str) -> None:
    script = [sys.executable, "-c", "import antiphon.cli; antiphon.cli.main()", *words]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(script, cwd=ROOT, env=environment, input=LINES[:-200], capture_output=True, timeout=120)
    assert (done.returncode in (CLEAN, FINDINGS), done.stderr) == (True, b"")
    assert done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM to send")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("phase", "reported"), [("tried", False), ("run", True)])
def test_an_interrupt_leaves_a_valid_report(phase: str, reported: bool, sent: signal.Signals, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    (tmp_path / "mine.py").write_text(
        "import time\nfrom antiphon import convert\ncount = 0\n"
        "def tried(chunks):\n    open('begun', 'w'); time.sleep(60)\n"
        "def run(chunks):\n    global count\n    count += 1\n    if count == 9: tried(chunks)\n"
        "    return convert(chunks, events='dict')\n"
    )
    words = [sys.executable, "-c", "import antiphon.cli; antiphon.cli.main()", "check", f"mine:{phase}"]
    process = subprocess.Popen(
        [*words, "--timeout", "60", *reports_in(tmp_path)],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        for _ in range(600):
            if begun.exists() or process.poll() is not None:
                break
            time.sleep(0.1)
        process.send_signal(sent)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == INTERRUPTED
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    if reported:
        assert "interrupted after 1 of " in out
        well_formed(tmp_path)
    else:
        assert err == "antiphon: interrupted before there was a report\n"
        assert not (tmp_path / "r.xml").exists()


# --- reports ----------------------------------------------------------------------------------------------------------


def told_by(text: str) -> SuiteReport:
    """Return a report that has a text wherever an adapter, a file or a server may put one."""
    finding = Finding("ITM001", Level.MUST, 0, text)
    excuse = Deviation("ITM002", text, text, text)
    runs = (
        Run(text, text, Outcome.FAIL, form=text, findings=(finding,), ran=("ITM001",), events=[{"type": text}]),
        Run("a/b", text, Outcome.ERROR, reason=text),
        Run("a/c", text, Outcome.NOT_APPLICABLE, reason=text),
        Run("a/d", text, Outcome.EXPECTED, findings=(Finding("ITM002", Level.MUST, 0, text),), ran=("ITM002",),
            expected={"ITM002": excuse}, events=[{"delta": text}]),
    )  # fmt: skip
    return SuiteReport(
        Subject(text, "recording", text), runs, "1.0", "0.1.0", "00", stale=(excuse,), notes=(text,), profile=""
    )


@settings(deadline=None, max_examples=25)  # eight files are written and read for each
@given(st.text(st.characters(exclude_categories=()), max_size=40))
def test_reports_are_well_formed_whatever_is_told(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("reports")
    for told in (told_by(text), told_by(HOSTILE + text)):
        junit.write(told, folder / "r.xml")
        jsonl.write(told, folder / "r.jsonl")
        markdown.write(told, folder / "r.md")
        html.write(told, folder / "r.html")
        well_formed(folder)
