"""`antiphon lint` and `antiphon explain`: what they read, what they print, and how they exit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from antiphon.cli import app
from antiphon_conformance import SUITE_VERSION, all_rules

from .broken import BROKEN, STOPS, TEXT, without
from .building import call, chunk, message, stream

BAD = without(TEXT, "response.in_progress")
CALL = stream(call("f", "{}"))
ODD = stream(call("f", '{"a":'))  # breaks a SHOULD only


def run(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(app, list(arguments), input=given, env={"COLUMNS": "200", "TERM": "dumb"})


def jsonl(values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def sse(values: Any) -> str:
    return "".join(f"event: {value.get('type', 'message')}\ndata: {json.dumps(value)}\n\n" for value in values)


@pytest.mark.parametrize("written", [jsonl, sse, json.dumps], ids=["jsonl", "sse", "json"])
def test_a_clean_stream_exits_0(written: Any) -> None:
    result = run("lint", "-", given=written(TEXT))
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].startswith(f"{len(TEXT)} events · ")
    assert result.stdout.rstrip().endswith("clean")


def test_a_finding_is_shown_with_the_events_around_it(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(jsonl(BAD), encoding="utf-8")
    result = run("lint", str(file))
    assert result.exit_code == 1
    assert result.stdout.splitlines()[:7] == [
        f"STR001 created-then-in-progress   MUST   {file}",
        "  event 1: `response.output_item.added` came when the response was created; allowed then: queued, in_progress",
        "       0  created",
        "  ▸    1  output_item.added   output 0  message",
        "       2  content_part.added  output 0  content 0",
        "  why: client openai-python: ResponseStreamState.accumulate_event raises where `response.created` is not first",
        "  antiphon explain STR001",
    ]
    assert result.stdout.rstrip().endswith("1 MUST")


def test_a_should_fails_only_when_strict() -> None:
    assert run("lint", "-", given=jsonl(ODD)).exit_code == 0
    assert "CAL004" in run("lint", "-", given=jsonl(ODD)).stdout
    assert run("lint", "-", "--strict", given=jsonl(ODD)).exit_code == 1


# command and arguments, standard input -> what is said of it
SAID_OF_INPUT: list[tuple[tuple[str, ...], str, str]] = [
    (("lint", "-"), jsonl([chunk("x")]), "antiphon: standard input holds chunks, not events"),
    (("lint", "-"), '{"error": "no"}', "antiphon: standard input holds no stream, but what a server says in its place"),
    (("lint", "-"), '{\n"a"', "antiphon: standard input is no JSON document"),
    (("shrink", "-"), '[{"a": 1}]', "antiphon: standard input holds neither chunks"),
    (("shrink", "-", "--profile", "vllm"), jsonl(TEXT), "antiphon: standard input holds events; --adapter and"),
    (("shrink", "-", "--rule", "ITM01"), jsonl(TEXT), "antiphon: no rule is called 'ITM01'; close to it are ITM0"),
    (
        ("lint", "."),
        "",
        "antiphon: . is a folder: give a file, or - for standard input; `antiphon check --recordings .",
    ),
    (("demo", "--only", "grok"), "", "antiphon: no stream is called 'grok'; did you mean 'groq'? There are openai,"),
    (("demo", "groq"), "", "antiphon: demo takes options alone, and 'groq' is none"),
    (
        ("matrix", "litelm"),
        "",
        "antiphon: no peer is called 'litelm'; did you mean 'litellm'? There are openai_agents,",
    ),
]


@pytest.mark.parametrize(("arguments", "given", "said"), SAID_OF_INPUT)
def test_what_is_wrong_is_called_by_its_name(arguments: tuple[str, ...], given: str, said: str) -> None:
    result = run(*arguments, given=given)
    assert result.exit_code == 2
    assert said in result.stderr


def test_findings_in_standard_input_say_so() -> None:
    assert "STR001 created-then-in-progress   MUST   standard input\n" in run("lint", "-", given=jsonl(BAD)).stdout


def test_all_names_the_rules_left_out() -> None:
    assert "FTH001 not applicable: no chunks were given" in run("lint", "-", "--all", given=jsonl(TEXT)).stdout


@pytest.mark.parametrize("given", ["", "\n\n", "data: [DONE]\n\n"])
def test_nothing_to_look_at_exits_3(given: str) -> None:
    result = run("lint", "-", given=given)
    assert (result.exit_code, result.stdout) == (3, "0 events · nothing ran: there are no events\n")


def test_chunks_are_compared(tmp_path: Path) -> None:
    good, cut = tmp_path / "good.jsonl", tmp_path / "cut.sse"
    good.write_text(jsonl(STOPS), encoding="utf-8")
    cut.write_text(sse([chunk(content="Hello")]) + "data: [DONE]\n\n", encoding="utf-8")
    assert run("lint", "-", "--chunks", str(good), given=jsonl(TEXT)).exit_code == 0
    lost = run("lint", "-", "--chunks", str(good), given=jsonl(stream(message("Hel"))))
    assert (lost.exit_code, "FTH001" in lost.stdout) == (1, True)
    done = run("lint", "-", "--chunks", str(cut), given=jsonl(stream(message("Hello"), usage=None)))
    assert done.exit_code == 0


def test_events_in_the_place_of_chunks_are_refused(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text(jsonl(TEXT), encoding="utf-8")
    refused = run("lint", str(events), "--chunks", str(events))
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"{events} holds events, not chunks: --chunks is the stream that the events were made of" in refused.stderr


@pytest.mark.parametrize("command", [["shrink", "odd.jsonl"], ["matrix", "--no-peers", "--recordings", "."]])
def test_what_a_library_logs_does_not_come_between(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "odd.jsonl").write_text(jsonl([chunk(content="a"), chunk(tool_calls=[{"index": 0}])]), encoding="utf-8")
    (tmp_path / "server").mkdir()
    (tmp_path / "server" / "events.jsonl").write_text(jsonl(TEXT), encoding="utf-8")
    odd = "atexit.register(lambda: logging.getLogger('some.library').warning('very odd'))"
    code = f"import atexit, logging; from antiphon.cli import app; {odd}; app()"
    done = subprocess.run(
        [sys.executable, "-c", code, *command], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stderr, bool(done.stdout)) == ("", True)


def test_a_resumed_stream_is_told_so() -> None:
    rest = jsonl(TEXT[5:])
    assert run("lint", "-", given=rest).exit_code == 1
    assert run("lint", "-", "--starting-after", "4", given=rest).exit_code == 0


def test_json_is_a_line_for_each_finding_and_one_that_sums_up() -> None:
    result = run("lint", "-", "--json", given=jsonl(BAD))
    first, last = map(json.loads, result.stdout.splitlines())
    assert (first["finding"], first["level"], first["index"]) == ("STR001", "MUST", 1)
    assert first["name"] == "created-then-in-progress"
    assert (last["ok"], last["events"], last["findings"], last["suite"]) == (False, len(BAD), 1, SUITE_VERSION)
    assert {*last["ran"], *last["not_applicable"]} == {rule.code for rule in all_rules()}
    assert result.exit_code == 1


def test_a_line_that_is_no_json_is_a_finding() -> None:
    lines = jsonl(TEXT).splitlines(keepends=True)
    result = run("lint", "-", given="".join([*lines[:4], "{oops\n", *lines[4:]]))
    assert result.exit_code == 1
    assert "event 4: the event is no object: '{oops'" in result.stdout


@pytest.mark.parametrize("broken", BROKEN[::5], ids=lambda one: one.what)
def test_whatever_is_found_can_be_shown(broken: Any) -> None:
    if broken.events and not broken.given:
        result = run("lint", "-", "--strict", given=jsonl(broken.events))
        assert result.exit_code == 1
        assert broken.code in result.stdout


def test_chunks_that_are_what_a_server_says_in_the_place_of_a_stream_are_refused(tmp_path: Path) -> None:
    (tmp_path / "body.json").write_text('{"detail": "Not Found"}')
    (tmp_path / "error.json").write_text('{"error": {"message": "boom"}}')
    refused = run("lint", "-", "--chunks", str(tmp_path / "body.json"), given=jsonl(TEXT))
    assert refused.exit_code == 2
    assert "body.json holds no stream, but what a server says in its place: 'Not Found'" in refused.stderr
    failed = run("lint", "-", "--chunks", str(tmp_path / "error.json"), given=jsonl(TEXT))
    assert failed.exit_code == 1
    assert "the chunks report an error (boom)" in failed.stdout


def test_messages_name_events_by_their_types() -> None:
    shown = run("lint", "-", given=jsonl(without(CALL, "response.function_call_arguments.done"))).stdout
    assert "CAL001" in shown
    assert "is done, and no `function_call_arguments.done` came" in shown
    shown = run("lint", "-", given=jsonl(without(TEXT, "response.content_part.done"))).stdout
    assert "is done, and no `content_part.done` came for content_index 0" in shown


def test_what_a_stream_holds_cannot_write_to_the_terminal() -> None:
    text = jsonl(BAD).replace("msg_0", "\\u001b[31mred[/red]")
    assert "\x1b" not in run("lint", "-", given=text).stdout


@pytest.mark.parametrize(
    ("arguments", "given", "message"),
    [
        (("lint", "no-such-file"), "", "cannot read no-such-file"),
        (("lint", "-"), "Hello there\n", "neither server-sent events"),
        (("lint", "-"), jsonl([chunk(content="a")]), "holds chunks, not events"),
        (("lint", "-"), '{"detail": "Not Found"}', "holds no stream, but what a server says in its place: 'Not Found'"),
        (("lint", "-"), '{\n"error": {"message": "boom"}\n}\n', "in its place: {'message': 'boom'}"),
        (("lint", "-"), '{"a": 1}', "one JSON object without `type` or `choices`: {'a': 1}"),
        (("lint", "-"), '{"id": "resp_1", "object": "response"}', "a whole Responses answer, not its events"),
        (("lint", "-"), "<!DOCTYPE html><html></html>", "begins with '<!DOCTYPE html>"),
        (
            ("shrink", "-"),
            '{"detail": "Not Found"}',
            "it is no stream, but what a server says in its place: 'Not Found'",
        ),
        (("lint", "-", "--chunks", "-"), "", "cannot both come from standard input"),
        (("lint", "-", "--profile", "no-such-profile"), jsonl(TEXT), "no-such-profile"),
        (("explain", "ITM01"), "", "ITM001 announced-in-order"),
        (("explain", "gibberish"), "", "the areas are CAL, CHT"),
    ],
)
def test_bad_use_exits_2(arguments: tuple[str, ...], given: str, message: str) -> None:
    result = run(*arguments, given=given)
    assert result.exit_code == 2
    assert message in result.stderr


def test_explain_says_all_about_a_rule() -> None:
    result = run("explain", "seq001", "--no-examples")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "SEQ001 numbered-from-0-by-1",
        "MUST, since 1.0",
        "",
        "`sequence_number` is 0 on the first event and grows by exactly 1 on every event; after",
        "`starting_after=N` the first is N+1.",
        "",
        "Not applicable where no event has a sequence_number",
        "",
        "Rests on",
        "  recording responses/openai/llm--test-openai-responses-test-responses-basic-streaming.jsonl",
        "  recording responses/openai/"
        "pydantic-ai--test-openai-responses-test-background-mode-streaming-continuation-vcr.jsonl",
    ]


def test_explain_says_who_breaks() -> None:
    shown = run("explain", "one-response-id").stdout
    assert "STR002" in shown
    assert "  openai-python, where the rule is not kept: " in shown
    assert "  a server that does not keep it: recording responses/github-copilot/" in shown


@pytest.mark.parametrize("area", ["USE", "str", "CAL"])
def test_an_area_stands_for_itself(area: str) -> None:
    listed = [json.loads(line) for line in run("rules", area, "--json").stdout.splitlines()]
    assert {one["code"][:3] for one in listed} == {area.upper()}
    told = run("explain", area)
    assert told.exit_code == 2
    assert f"antiphon rules {area.upper()}" in told.output.replace("\n", " ")
