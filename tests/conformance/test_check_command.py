"""`antiphon check`: what is run, what is printed and written, and how it exits; and a stranger's first try."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import antiphon.cli as cli
from antiphon import convert
from antiphon.errors import BadInput
from antiphon_conformance.commands.check_live import parse_budget

from .live_server import Answering, serve

CHECK = "antiphon_conformance.commands.check:check"
OURS = "antiphon_conformance.own:dicts"
FEW = ("--case", "text/plain", "--case", "calls/plain", "--no-forms")


@pytest.fixture(autouse=True)
def joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cli.OWN, "check", CHECK)


def from_one(chunks: list[dict[str, Any]]) -> Iterator[Any]:
    for event in convert(chunks, events="dict"):
        yield {**event, "sequence_number": event["sequence_number"] + 1}


BROKEN = f"{__name__}:from_one"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, ["check", *arguments], env={"COLUMNS": "200", "TERM": "dumb"})


def test_a_clean_adapter_exits_0() -> None:
    result = run(OURS, *FEW)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"{OURS} · suite 1.0",
        "12 areas clean · 2 cases, 2 ran in 2 runs, 0 not applicable",
    ]


def test_a_broken_one_exits_1_and_says_what_which_and_why() -> None:
    result = run(BROKEN, *FEW)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "SEQ001 numbered-from-0-by-1   MUST   text/plain"
    assert lines[1] == "  event 0: sequence_number is 1 where 0 follows"
    assert lines[2].startswith("  ▸    0  created")
    assert lines[-1] == "11 areas clean · 1 broken (1 rule) · 2 cases, 2 ran in 2 runs, 0 not applicable"


def test_nothing_ran_exits_3() -> None:
    result = run(OURS, "--case", "calls/plain", "--has", "reasoning")
    assert result.exit_code == 3
    assert result.stdout.splitlines()[-2:] == [
        "0 areas clean · 1 case, 0 ran in 0 runs, 1 not applicable (needs: tools)",
        "nothing ran",
    ]


def test_a_baseline_excuses_and_a_stale_line_fails(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text('[[deviation]]\nrule = "SEQ001"\ncase = "text/plain"\nreason = "from one"\n')
    excused = run(BROKEN, "--case", "text/plain", "--baseline", str(file))
    assert excused.exit_code == 0
    assert "expected  SEQ001 in text/plain: from one (1 case)" in excused.stdout
    stale = run(OURS, "--case", "text/plain", "--baseline", str(file))
    assert stale.exit_code == 1
    assert "stale  SEQ001 in text/plain: from one: it is not broken any more, remove the line" in stale.stdout
    assert run(OURS, "--case", "calls/plain", "--baseline", str(file)).exit_code == 0  # the case did not run


def test_only_an_area_counts() -> None:
    assert run(BROKEN, *FEW, "--area", "itm").exit_code == 0
    assert run(BROKEN, *FEW, "--area", "ITM,SEQ").exit_code == 1


def test_strict_makes_a_should_count() -> None:
    case = ("--case", "errors/rate-limit", "--no-forms")
    target = f"{__name__}:server_error_only"
    assert run(target, *case).exit_code == 0
    assert run(target, *case, "--strict").exit_code == 1


def server_error_only(chunks: list[dict[str, Any]]) -> Iterator[Any]:
    for event in convert(chunks, events="dict"):
        yield json.loads(json.dumps(event).replace("rate_limit_exceeded", "server_error"))


def test_json_on_standard_output_and_files(tmp_path: Path) -> None:
    files = {name: tmp_path / f"report.{name}" for name in ("jsonl", "junit", "markdown")}
    result = run(BROKEN, *FEW, "--json", *(word for name, file in files.items() for word in (f"--{name}", str(file))))
    assert result.exit_code == 1
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["line"] for line in lines] == ["suite", "finding", "finding", "sum"]
    assert files["jsonl"].read_text("utf-8") == result.stdout
    assert files["junit"].read_text("utf-8").startswith("<?xml")
    assert files["markdown"].read_text("utf-8").startswith("# Conformance")


def test_a_page_of_html(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    assert run(BROKEN, *FEW, "--html", str(tmp_path / "report.html")).exit_code == 1
    assert "SEQ001" in (tmp_path / "report.html").read_text("utf-8")


def test_a_process() -> None:
    command = f'{sys.executable} -c "import sys; sys.stdin.readline(); sys.exit(4)"'
    result = run("--exec", command, *FEW)
    assert result.exit_code == 1
    assert "the process ended, with status 4" in result.stdout


def test_cases_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("<html>")
    result = run(OURS, "--cases", str(tmp_path))
    assert result.exit_code == 2
    assert "the suite is wrong   bad: " in result.stdout


# Recordings


def written(folder: Path, events: list[Any], chunks: list[Any]) -> None:
    folder.joinpath("good.jsonl").write_text("\n".join(map(json.dumps, events)))
    folder.joinpath("good.chunks.jsonl").write_text("\n".join(map(json.dumps, chunks)))
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    folder.joinpath("body.sse").write_text(body)


CHUNKS: list[dict[str, Any]] = [
    {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
]


def test_recordings_with_and_without_chunks(tmp_path: Path) -> None:
    events = list(convert(CHUNKS, events="dict"))
    written(tmp_path, events, CHUNKS)
    result = run("--recordings", str(tmp_path), "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout.splitlines()[-1])["ran"] == 2
    written(tmp_path, events, [{"choices": [{"delta": {"content": "Ho"}}]}, *CHUNKS[1:]])
    result = run("--recordings", str(tmp_path))
    assert result.exit_code == 1
    assert "FTH001 all-text   MUST   good\n" in result.stdout
    assert run("--recordings", str(tmp_path / "body.sse")).exit_code == 0


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("page.json", b"<html>", "neither server-sent events"),
        ("detail.json", b'{"detail": "Not Found"}', "it holds no stream, but what a server says in its place"),
        ("answer.json", b'{"object": "response"}', "it holds a whole Responses answer, not its events"),
        ("open.json", b"[{", "is no JSON document"),
        ("chunks.jsonl", json.dumps(CHUNKS[0]).encode() + b"\n", "it holds chunks, not events"),
    ],
)
def test_a_recording_that_is_none_exits_2(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    result = run("--recordings", str(tmp_path))
    assert result.exit_code == 2
    assert message in result.stdout


def test_a_recording_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large.jsonl").open("wb") as file:
        file.truncate(65 * 1024 * 1024)  # a hole: it takes no place
    result = run("--recordings", str(tmp_path))
    assert result.exit_code == 2
    assert "large.jsonl has 68157440 bytes, of which at most 67108864 are read" in result.stdout


def test_a_recording_that_is_cut_is_a_finding(tmp_path: Path) -> None:
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in convert(CHUNKS, events="dict"))
    (tmp_path / "cut.sse").write_text(body[:-200])
    result = run("--recordings", str(tmp_path))
    assert result.exit_code == 1
    assert "STR003 one-terminal-event   MUST   cut\n" in result.stdout


# Bad use

WRONG = [
    ((), "nothing was given; give one of MODULE:NAME, --exec, --recordings, --url, --replay"),
    ((OURS, "--exec", "x"), "MODULE:NAME and --exec were given"),
    (("plain",), "'plain' is no adapter"),
    (("no_such_module:x",), "cannot import no_such_module:x"),
    (("--exec", "no-such-program-here"), "cannot start no-such-program-here"),
    (("--recordings", "no/such/folder"), "no/such/folder is neither a folder nor a file"),
    ((OURS, "--case", "nowhere"), "no case is called 'nowhere'; give an id such as annotations/"),
    ((OURS, "--has", "magic"), "--has magic is not known; there are reasoning"),
    ((OURS, "--area", "XYZ"), "--area XYZ is not known; there are CAL"),
    ((OURS, "--requirements", "9"), "there are no requirements '9'; there are 1.0"),
    ((OURS, "--chunks", "xml"), "--chunks xml: it is dict, openai or sse"),
    ((OURS, "--timeout", "0"), "--timeout 0: it is a number of seconds above 0"),
    ((OURS, "--junit", "no/such/folder/x"), "cannot write no/such/folder/x: there is no such folder"),
    ((OURS, "--baseline", "no-such-file"), "cannot read the baseline no-such-file"),
    ((OURS, "--cases", "no/such/folder"), "--cases no/such/folder: there is no such folder"),
    ((OURS, "--case", "text/plan"), "no case is called 'text/plan'; did you mean 'text/plain'? Give an id such as"),
    ((OURS, "--has", "resoning"), "--has resoning is not known; did you mean 'reasoning'? There are"),
    ((OURS, "--area", "call"), "--area CALL is not known; did you mean 'CAL'? There are"),
    (
        ("http://localhost:9/v1",),
        "http://localhost:9/v1 is a URL, and no MODULE:NAME: a server is tested with --url http",
    ),
    (
        ("mypackage.stream.convert",),
        "'mypackage.stream.convert' is no adapter: did you mean mypackage.stream:convert? Give",
    ),
    (("adapter.py",), "adapter.py is a file, and no MODULE:NAME: name a function in it, such as adapter:convert"),
    (
        (".",),
        ". is a file or folder, and no MODULE:NAME: streams of events are judged by --recordings ., what --record",
    ),
    (("--url", "http://localhost:9/v1", "--api", "xml"), "--api xml: it is chat or responses"),
    (("--url", "localhost:9/v1"), "--url localhost:9/v1: a URL begins with http:// or https://, such as"),
    (("--url", "http://localhost:9/v1", "--api-key-env", "NOPE_KEY"), "--api-key-env: the environment has no NOPE_KEY"),
    (
        ("--url", "http://localhost:9/v1", "--api-key-env", "sk-of-mine-1"),
        "--api-key-env takes the name of an environment",
    ),
    (("--url", "http://localhost:9/v1", "--profile", "olama"), "--profile: no profile is called 'olama'; did you mean"),
    (
        ("--url", "http://localhost:9/v1", "--probe", "usag"),
        "no probe is called 'usag'; did you mean 'usage'? Known are:",
    ),
    (("--url", "http://127.0.0.1:9/v1", "-m", "x"), "http://127.0.0.1:9/v1 cannot be reached, so nothing was judged: "),
    (("--url", "http://127.0.0.1:9/v1"), "http://127.0.0.1:9/v1 cannot be reached, so nothing was judged: "),
    (("--url", "http://localhost:9/v1", "--budget", "cents=3"), "--budget cents=3: there are requests=N"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), WRONG, ids=lambda one: " ".join(one) if isinstance(one, tuple) else ""
)
def test_bad_use_exits_2_and_says_what_is_right(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert f"antiphon: {message}" in result.stderr
    assert [word for word in ("`Profile`", "sk-of-mine-1", "Traceback") if word in result.stderr] == []


EVENTS = "".join(json.dumps(one) + "\n" for one in convert([], events="dict"))
META = '{"path": "/v1/chat/completions", "status": 404}'
# the files of a folder -> the option that is wrong for it, and what is said
FOLDERS: list[tuple[dict[str, str], str, str]] = [
    (
        {"text.meta.json": META, "text.sse": ""},
        "--recordings",
        "as --record writes them, and no streams of events: --replay",
    ),
    ({"run.json": "{}", "text.meta.json": META, "text.sse": ""}, "--recordings", "--replay {} judges them"),
    (
        {"a.jsonl": EVENTS},
        "--replay",
        "holds no recording: neither run.json nor any *.meta.json; streams of events are",
    ),
    ({"deep/a.sse": EVENTS}, "--replay", "streams of events are judged by --recordings {}"),
    ({"notes.md": "x"}, "--replay", "holds no recording: neither run.json nor any *.meta.json"),
    ({"notes.md": "x"}, "--recordings", "holds no stream of events: files end with"),
]


@pytest.mark.parametrize(("files", "option", "said"), FOLDERS)
def test_a_folder_of_another_kind_is_told_with_its_own_option(
    files: dict[str, str], option: str, said: str, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    result = run(option, str(tmp_path))
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"antiphon: {tmp_path} " in result.stderr
    assert said.format(tmp_path) in result.stderr


def test_a_file_of_events_is_no_recording_of_a_server(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(EVENTS)
    result = run("--replay", str(tmp_path / "a.jsonl"))
    assert result.exit_code == 2
    assert f"streams of events are judged by --recordings {tmp_path / 'a.jsonl'}" in result.stderr


# what a server answers everything with -> the end of what is said
REFUSALS = [
    ("401 Unauthorized", {}, "status 401; the key is taken from OPENAI_API_KEY, which is not set; --api-key-env names"),
    (
        "401 Unauthorized",
        {"OPENAI_API_KEY": "sk-one-2-3"},
        "status 401; the key is that of OPENAI_API_KEY; --api-key-env",
    ),
    ("404 Not Found", {}, "status 404; the URL to give is the base of the API, such as http://127.0.0.1:8000/v1, and"),
]


@pytest.mark.parametrize(("status", "environment", "said"), REFUSALS)
async def test_a_server_that_refuses_all_exits_2_with_the_way_out(
    status: str, environment: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    async def refuse(one: Answering) -> None:
        await one.begin("text/plain", status)

    async with serve(whole=refuse) as server:
        result = await asyncio.to_thread(run, "--url", server.url, "-m", "x")
    assert (result.exit_code, result.stdout, server.count) == (2, "", 1)
    assert said in result.stderr
    assert "sk-one-2-3" not in result.stderr


def test_a_baseline_that_names_no_case(tmp_path: Path) -> None:
    (tmp_path / "known.toml").write_text('[[deviation]]\nrule = "SEQ001"\ncase = "text/none"\nreason = "x"\n')
    result = run(OURS, "--baseline", str(tmp_path / "known.toml"))
    assert result.exit_code == 2
    assert "the baseline: SEQ001 is excused in 'text/none', and there is no such case" in result.stderr


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        (None, (120, 200_000, 900.0)),
        ("requests=4", (4, 200_000, 900.0)),
        ("requests=none, tokens=5,seconds=1.5", (None, 5, 1.5)),
    ],
)
def test_a_budget(text: str | None, limits: tuple[Any, ...]) -> None:
    made = parse_budget(text)
    assert (made.requests, made.tokens, made.seconds) == limits


@pytest.mark.parametrize("text", ["requests", "requests=", "requests=-1", "tokens=nan", "seconds=inf", "cents=1"])
def test_a_budget_that_is_none(text: str) -> None:
    with pytest.raises(BadInput, match=f"--budget {text}: "):
        parse_budget(text)


# A stranger's first try

STRANGER = """\
from antiphon import aconvert


async def adapt(chunks):
    n = 0
    async for event in aconvert(chunks, events="dict"):
        if event["type"] == "response.output_text.delta" and not event["delta"].strip():
            continue  # loses white space within a text
        if event["type"] == "response.function_call_arguments.done":
            event["arguments"] = event["arguments"].replace(" ", "")  # says other arguments than it streamed
        n += 1
        yield {**event, "sequence_number": n}  # counts from 1
"""
THEIR_TEST = """\
from antiphon_conformance import AdapterSuite


class TestMine(AdapterSuite):
    adapter = "mine:adapt"
    has = {"tools", "parallel_tools", "errors"}
    cases = ["text", "calls"]
"""
BUGS = {
    "DLT001": "are not its done text",
    "CAL001": "its done is",
    "SEQ001": "sequence_number is 1 where 0 follows",
}
COMMAND = f"import antiphon.cli as cli; cli.OWN.setdefault('check', {CHECK!r}); cli.main()"


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(STRANGER)
    (tmp_path / "test_mine.py").write_text(THEIR_TEST)
    return tmp_path


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=300, encoding="utf-8"
    )


def test_the_command_leads_a_stranger_to_each_bug(stranger: Path) -> None:
    result = python(stranger, "-c", COMMAND, "check", "mine:adapt")
    assert result.returncode == 1
    told = [line.split()[0] for line in result.stdout.splitlines() if "   MUST   " in line]
    assert told == sorted(BUGS)
    assert all(message in result.stdout for message in BUGS.values())


def test_pytest_leads_a_stranger_to_each_bug(stranger: Path) -> None:
    result = python(stranger, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis")
    assert result.returncode == 1
    failed = {
        line.rpartition("-")[2][:3] for line in result.stdout.splitlines() if line.startswith("FAILED") and "[" in line
    }
    assert {
        line.split()[0] for line in result.stdout.splitlines() if "   MUST   " in line and not line.startswith("FAILED")
    } == set(BUGS)
    assert failed
    assert all(message in result.stdout for message in BUGS.values())
