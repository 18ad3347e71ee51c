"""The `antiphon` command: what it writes, its exit codes, and how it stands what others do wrong."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from antiphon import __version__, accumulate, convert
from antiphon.cli import app
from antiphon.stream.sse import read_events

Json = dict[str, Any]

MAIN = [sys.executable, "-c", "from antiphon.cli import main; main()"]


def chunk(finish_reason: str | None = None, **delta: Any) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m-1", "choices": [choice]}


CHUNKS = [chunk(content="Hel"), chunk(content="lo\u2028"), chunk("stop")]
WHOLE = {
    **CHUNKS[0],
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello\u2028"}, "finish_reason": "stop"}],
}


def lines(*held: Any) -> str:
    return "".join(one if isinstance(one, str) else json.dumps(one) + "\n" for one in held)


def sse(*held: Any) -> str:
    return "".join(f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n" for one in held)


def run(*arguments: str, given: str | bytes = b"") -> Result:
    return CliRunner().invoke(app, list(arguments), input=given, env={"COLUMNS": "80", "TERM": "dumb"})


def events_of(result: Result) -> list[Json]:
    return list(read_events(result.stdout_bytes))


def test_version() -> None:
    assert run("--version").stdout == f"antiphon {__version__}\n"


def test_help_lists_the_commands() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert "Convert Chat Completions chunks to Responses events." in result.stdout


def test_help_of_convert_says_how_to_go_on() -> None:
    result = run("convert", "--help")
    assert result.exit_code == 0
    for word in ("--format", "--profile", "--reasoning", "--strict", "--request", "--counted", "--output", "--pretty"):
        assert word in result.stdout
    assert "Exits 0" in result.stdout


def test_help_is_as_wide_as_the_terminal() -> None:
    said = run("demo", "--help").stdout.partition("Exits 0")[2].partition("Examples")[0]
    assert [line.strip() for line in said.splitlines() if line.strip()] == [
        "if every stream ended as it must and said all it must, and no rule was",
        "broken, 1 if not, 2 on bad use, 3 if no stream could be played.",
    ]


INPUTS: dict[str, str] = {
    "SSE": sse(*CHUNKS, "[DONE]"),
    "SSE without its end": sse(*CHUNKS).rstrip(),
    "SSE without blank lines": sse(*CHUNKS).replace("\n\n", "\n"),
    "JSON lines": lines(*CHUNKS),
    "JSON lines without the last line end": lines(*CHUNKS).rstrip(),
    "a list of chunks": json.dumps(CHUNKS, indent=2),
}


@pytest.mark.parametrize("name", INPUTS)
def test_every_form_of_input_gives_the_events_of_convert(name: str) -> None:
    expected = list(convert(CHUNKS, events="dict", ids="counted", created_at=0))
    for format in ("jsonl", "sse"):
        result = run("convert", "-", "--counted", "--format", format, given=INPUTS[name])
        assert (result.exit_code, result.stderr) == (0, "")
        assert events_of(result) == expected
        assert len(result.stdout.split("\n")) == (len(expected) * (1 if format == "jsonl" else 3)) + 1


@pytest.mark.parametrize("indent", [None, 2])
def test_a_whole_completion_gives_the_same_response(indent: int | None) -> None:
    result = run("convert", "-", "--counted", given=json.dumps(WHOLE, indent=indent))
    streamed = run("convert", "-", "--counted", given=lines(*CHUNKS))
    assert result.exit_code == 0
    assert accumulate(events_of(result)) == accumulate(events_of(streamed))


# name -> (input, exit code, status of the response, what standard error says)
ENDINGS: dict[str, tuple[str, int, str, str]] = {
    "completed": (lines(*CHUNKS), 0, "completed", ""),
    "incomplete": (lines(CHUNKS[0], chunk("length")), 0, "incomplete", "incomplete: max_output_tokens"),
    "cut": (lines(CHUNKS[0]), 1, "failed", "finish_reason"),
    "nothing": ("", 1, "failed", "the response ended failed"),
    "an error": (lines({"error": {"message": "slow down", "code": 429}}), 1, "failed", "rate_limit_exceeded"),
    "an error body": (json.dumps({"error": {"message": "no"}}, indent=1), 1, "failed", "no"),
    "a body of another kind": (json.dumps({"detail": "Not Found"}), 1, "failed", "the response ended failed"),
    "a body without choices": (
        json.dumps({**WHOLE, "choices": []}, indent=1),
        1,
        "failed",
        "the response ended failed",
    ),
    "a broken line": (lines(CHUNKS[0], '{"choices\n', CHUNKS[2]), 1, "failed", "line 2"),
    "a broken first line": (lines('{"choices\n', *CHUNKS), 1, "failed", "line 1"),
    "a line that is no JSON": (lines(CHUNKS[0], "what is this\n", CHUNKS[2]), 1, "failed", "line 2"),
    "a first line that is no JSON": (lines("what is this\n", *CHUNKS), 1, "failed", "line 1"),
    "a broken SSE line": (sse(CHUNKS[0], '{"choices', CHUNKS[2]), 1, "failed", "line 3"),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_ending(name: str) -> None:
    given, code, status, said = ENDINGS[name]
    result = run("convert", "-", given=given)
    assert (result.exit_code, accumulate(events_of(result))["status"]) == (code, status)
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_options_reach_the_handler(tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text('{"model": "asked-for", "instructions": "be brief"}')
    given = lines(chunk(reasoning_content="hm"), *CHUNKS)
    result = run("convert", "-", "--request", str(request), "--reasoning", "text", "--profile", "default", given=given)
    response = accumulate(events_of(result))
    assert (response["model"], response["instructions"]) == ("asked-for", "be brief")
    assert response["output"][0]["content"][0]["type"] == "reasoning_text"


def test_strict_fails_on_what_is_else_warned_of() -> None:
    given = lines(chunk(content="Hi", audio={"id": "a", "data": "AA=="}), chunk("stop"))
    tolerant, strict = run("convert", "-", given=given), run("convert", "-", "--strict", given=given)
    assert (tolerant.exit_code, strict.exit_code) == (0, 1)
    assert "audio" in tolerant.stderr


# arguments, input, what the message says
BAD_USE: dict[str, tuple[list[str], str, str]] = {
    "no file": (["convert"], "", "Missing argument"),
    "a file that is not there": (["convert", "no-such-file"], "", "cannot read no-such-file: No such file"),
    "a folder": (["convert", "."], "", "cannot read .: Is a directory"),
    "no such option": (["convert", "-", "--colour"], "", "--colour"),
    "no such format": (["convert", "-", "--format", "xml"], "", "jsonl"),
    "no such profile": (["convert", "-", "--profile", "no-such"], lines(*CHUNKS), "no profile is called 'no-such'"),
    "a misspelt profile": (
        ["convert", "-", "--profile", "olama"],
        lines(*CHUNKS),
        "--profile: no profile is called 'olama'; did you mean 'ollama'? Known are: any_llm,",
    ),
    "no such command": (["no-such-command"], "", "there is no command 'no-such-command'; there are check, convert,"),
    "a misspelt command": (["serv"], "", "there is no command 'serv'; did you mean 'serve'? There are check, convert,"),
    "a request from standard input": (
        ["convert", "-", "--request", "-"],
        "",
        "--request takes a file: standard input is",
    ),
    "not a stream": (["convert", "-"], "hello\n", "begins with 'hello', which is neither server-sent events"),
    "not text": (["convert", "-"], "\x00\x01\x02", "neither server-sent events"),
    "another list": (["convert", "-"], "[\n1]", "takes a chat completion, a list of chunks"),
    "events": (["convert", "-"], lines({"type": "response.created"}), "the input holds Responses events"),
    "a whole Responses answer": (["convert", "-"], '{"object": "response", "output": []}', "a whole Responses answer"),
    "a request that is not there": (["convert", "-", "--request", "no-such"], "", "--request: cannot read no-such"),
    "an output that cannot be": (["convert", "-", "--output", "no/such/folder"], "", "--output: cannot write"),
}
SECRET = "sk-a-key-in-the-wrong-place"
# the options of `antiphon serve` -> what is said
SERVING: dict[tuple[str, ...], str] = {
    ("http://127.0.0.1:9/v1",): "a backend is given as --backend http://127.0.0.1:9/v1, a file of settings as --config",
    ("--backend", "127.0.0.1:9/v1"): "begins with http:// or https://, such as --backend http://127.0.0.1:9/v1",
    ("--backend", "a=localhost:9"): "begins with http:// or https://, such as --backend a=http://localhost:9",
    ("--backend", "localhost"): "begins with http:// or https://, such as --backend http://localhost",
    ("--backend", f"htp://me:{SECRET}@host/v1"): "--backend htp://***@host/v1: a URL begins with http:// or https://",
    ("--backend", "a="): "--backend 'a=': a URL is expected, or a kind, or NAME=URL",
    ("--backend", "htp"): "--backend: no backend is called 'htp'; did you mean 'http'? Known are: ",
    ("--backend", "pigeon"): "replay; or a URL, such as http://127.0.0.1:8000/v1",
    ("--backend", "http://h/v1", "--profile", "vlm"): "--profile: no profile is called 'vlm'; did you mean 'vllm'?",
    ("--profile", "vllm"): "none was given: add one, such as --backend http://127.0.0.1:8000/v1",
    ("--backend", "http://h/v1", "--backend-key-env", "NOPE_KEY"): "--backend-key-env: the environment has no NOPE_KEY",
    ("--backend", "http://h/v1", "--backend-key-env", SECRET): "--backend-key-env takes the name of an environment",
    ("--backend", "http://h/v1", "--backend", "http://i/v1"): "there is one called 'backend' already; write NAME=",
    ("--model", "gpt-5"): "--model gpt-5: NAME=MODEL is expected",
    ("--host", "localhost:8080"): "a name or an address alone is expected, as in --host localhost --port 8080",
    ("--host", "http://localhost/v1"): "a name or an address alone is expected, as in --host localhost",
    ("--host", "http://localhost:80/"): "a name or an address alone is expected, as in --host localhost --port 80",
    ("--no-page", "--content"): "--content shows what was said in the page, and --no-page switches that off",
}


@pytest.mark.parametrize("options", SERVING, ids=" ".join)
def test_options_of_serve_that_are_none_are_told_by_their_names(options: tuple[str, ...]) -> None:
    """Before anything listens, in words of the command line, and without a key."""
    result = run("serve", "--port", "0", *options) if options[0][0] == "-" else run("serve", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert SERVING[options] in result.stderr
    assert [word for word in ("Traceback", "`Profile`", "`Backend`", SECRET) if word in result.stderr] == []


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (
            "sqlite:////no/such/folder/x.db",
            "store.url: the folder /no/such/folder is not there: make it, or name another",
        ),
        (
            "./x.db",
            "store.url is no database URL; did you mean sqlite:///./x.db? The store may be sqlite:///antiphon.db",
        ),
        ("postgres", 'store.url is no database URL; the store may be sqlite:///antiphon.db, postgresql://host/name, "'),
    ],
)
def test_a_store_that_cannot_be_is_told_before_anything_listens(url: str, said: str) -> None:
    pytest.importorskip("uvicorn")
    result = run("serve", "--port", "0", "--store", url)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_a_port_that_is_taken_is_told_with_another_way() -> None:
    pytest.importorskip("uvicorn")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("serve", "--store", "none", "--port", str(taken.getsockname()[1]))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "nothing can listen there: Address already in use; end what listens there, or give another" in result.stderr


def test_a_host_that_there_is_not() -> None:
    result = run("serve", "--host", "no-such-host.invalid")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "antiphon: --host no-such-host.invalid: nothing can listen there: " in result.stderr


@pytest.mark.parametrize("name", BAD_USE)
def test_bad_use_is_one_clear_message(name: str) -> None:
    arguments, given, said = BAD_USE[name]
    result = run(*arguments, given=given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr.replace("\n", " ")
    assert [word for word in ("Traceback", "`Profile`", "`Backend`") if word in result.stderr] == []


def test_a_request_that_is_no_object(tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text("[1]")
    result = run("convert", "-", "--request", str(request))
    assert result.exit_code == 2
    assert "is not a JSON object" in result.stderr


def test_output_takes_the_place_of_the_file(tmp_path: Path) -> None:
    source, target = tmp_path / "chunks.jsonl", tmp_path / "events.jsonl"
    source.write_text(lines(*CHUNKS))
    target.write_text("old")
    result = run("convert", str(source), "--counted", "--output", str(target))
    assert (result.exit_code, result.stdout) == (0, "")
    assert list(read_events(target.read_bytes())) == list(convert(CHUNKS, events="dict", ids="counted", created_at=0))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chunks.jsonl", "events.jsonl"]


def test_output_is_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "events.jsonl"
    target.write_text("old")
    assert run("convert", "-", "-o", str(target), given="hello\n").exit_code == 2
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_output_may_be_the_input(tmp_path: Path) -> None:
    file = tmp_path / "stream"
    file.write_text(sse(*CHUNKS))
    assert run("convert", str(file), "-o", str(file)).exit_code == 0
    assert accumulate(read_events(file.read_bytes()))["status"] == "completed"


def test_output_to_what_is_no_plain_file() -> None:
    assert run("convert", "-", "-o", os.devnull, given=lines(*CHUNKS)).exit_code == 0
    assert Path(os.devnull).is_char_device()


def test_pretty_shows_the_picture_and_no_json() -> None:
    result = run("convert", "-", "--pretty", given=lines(*CHUNKS[:2], "what is this\n", chunk("stop")))
    shown = [line.rstrip() for line in result.stdout.splitlines()]
    assert result.exit_code == 1
    assert shown[0].startswith("m-1 · ")
    assert shown[1].startswith("0   message")
    assert shown[2].startswith("0.0 └ output_text")
    assert shown[2].endswith(r"Hello\u2028")
    assert shown[3].startswith("! line-unreadable: line 3 is not a JSON object")
    assert any(line.startswith("✗ failed: server_error") for line in shown)
    assert "sequence_number" not in result.stdout
    assert max(map(len, shown)) <= 80


def test_pretty_and_output_together(tmp_path: Path) -> None:
    target = tmp_path / "events.jsonl"
    result = run("convert", "-", "--pretty", "-o", str(target), given=lines(*CHUNKS))
    assert result.stdout.rstrip().endswith("✓ completed")
    assert accumulate(read_events(target.read_bytes()))["status"] == "completed"


def test_events_are_out_before_more_is_read() -> None:
    with subprocess.Popen([*MAIN, "convert", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for place, text in enumerate(("a", "b", "c")):
            process.stdin.write(sse(chunk(content=text)).encode())
            process.stdin.flush()
            said = [json.loads(process.stdout.readline()) for _ in range(5 if place == 0 else 1)]
            assert (said[-1]["type"], said[-1]["delta"]) == ("response.output_text.delta", text)
        process.stdin.close()
        rest = process.stdout.read()
    assert json.loads(rest.splitlines()[-1])["type"] == "response.failed"
    assert process.returncode == 1


@pytest.mark.skipif(os.name == "nt", reason="there are no broken pipes on Windows")
def test_a_broken_pipe_ends_quietly(tmp_path: Path) -> None:
    source = tmp_path / "chunks"
    source.write_text(lines(*[chunk(content="word ")] * 20_000, chunk("stop")))
    command = [*MAIN, "convert", str(source)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def joined_commands(folder: Path, **commands: str) -> dict[str, str]:
    """Return an environment in which a package in `folder` joins `commands`, written as the bodies of modules."""
    package = folder / "third_party-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
    points = "".join(f"{name} = third_{name}:command\n" for name in commands)
    (package / "entry_points.txt").write_text(f"[antiphon.commands]\n{points}")
    for name, body in commands.items():
        (folder / f"third_{name}.py").write_text(body)
    return {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200", "NO_COLOR": "1"}


def call(environment: dict[str, str], *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run([*MAIN, *arguments], env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_commands_of_others_are_joined_and_broken_ones_explained(tmp_path: Path) -> None:
    environment = joined_commands(
        tmp_path,
        good='def command(word: str, twice: bool = False) -> None:\n    """Say a word."""\n    print(word * (1 + twice))',
        lost="import no_such_module_anywhere",
        odd="command = 3",
        convert="raise SystemExit(9)",
    )
    code, shown, _ = call(environment, "--help")
    assert code == 0
    assert "Say a word." in shown
    assert "(cannot be loaded: ModuleNotFoundError: No module named 'no_such_module_anywhere')" in shown
    assert "Convert Chat Completions chunks" in shown
    assert call(environment, "good", "ha", "--twice") == (0, "haha\n", "")
    for name in ("lost", "odd"):
        code, shown, said = call(environment, name, "--any", "thing")
        assert (code, shown) == (2, "")
        assert f"the command {name!r} (third_{name}:command) cannot be loaded: " in said
        assert "Traceback" not in said


def test_a_command_loads_neither_the_others_nor_openai(tmp_path: Path) -> None:
    environment = joined_commands(tmp_path, other="raise SystemExit(9)")
    source = tmp_path / "chunks"
    source.write_text(lines(*CHUNKS))
    program = (
        "import sys; sys.argv = ['antiphon', 'convert', sys.argv[1]]\n"
        "from antiphon.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: sys.exit(end.code or ('openai' in sys.modules and 'openai was imported'))\n"
    )
    subprocess.run([sys.executable, "-c", program, str(source)], env=environment, check=True, capture_output=True)
