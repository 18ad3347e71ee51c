"""`antiphon demo`: the built-in streams have the oddities they are told to have, and come out as they must."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import antiphon_conformance.demo_streams as built_in
from antiphon import convert_sse
from antiphon.cli import app
from antiphon_conformance.demo_play import NotPlayed, Played, play, silent
from antiphon_conformance.demo_streams import DemoStream, demo_streams, read_stream

STREAMS = {stream.name: stream for stream in demo_streams()}


def run(*arguments: str, **env: str) -> Result:
    return CliRunner().invoke(app, ["demo", *arguments], env={"COLUMNS": "80", "TERM": "dumb", **env})


def only(monkeypatch: pytest.MonkeyPatch, stream: DemoStream) -> None:
    monkeypatch.setattr(built_in, "demo_streams", lambda: [stream])


# --- the streams ---------------------------------------------------------------------------------------------------

# name -> what its body has that OpenAI's own has not (or, of OpenAI's own, what readers trip over)
ODDITIES: dict[str, tuple[str, ...]] = {
    "openai": ('"obfuscation":"', '"usage":null', '"choices":[],"usage":{'),
    "openai-calls": ('{"tool_calls":[{"index":1,"function":{"arguments":"room"}}]}',),
    "openai-refusal": ('"content":null,"refusal":null', '"delta":{"refusal":"'),
    "openai-length": ('"finish_reason":"length"',),
    "azure": (
        '{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":',
        "latency_checkpoint",
    ),
    "azure-filter": ('"finish_reason":"content_filter"', '"filtered":true'),
    "deepseek": (": keep-alive\n", '{"content":null,"reasoning_content":"', '"reasoning_content":null},'),
    "gemini": ('"id":"","type":"function"}]},"finish_reason":"stop"', "thought_signature"),
    "groq": ('"x_groq":{"id":"req_demo01groq","usage":', '"channel":"analysis"'),
    "groq-error": ('event: error\ndata: {"error":{',),
    "mistral": ('"content":[{"type":"thinking","thinking":[{"type":"text","text":"', '"thinking":[]', '"p":"abc'),
    "openrouter": (
        ": OPENROUTER PROCESSING\n",
        '"reasoning_details":[{',
        '"finish_reason":"stop","native',
        '"annotations"',
    ),
    "openrouter-error": ('"finish_reason":"length"', '"error":{"code":502'),
    "vllm": (
        '{"arguments":"{\\"beats\\""}},{"index":0,',
        '"reasoning_content":',
        '"finish_reason":"stop","stop_reason"',
    ),
    "llama.cpp": ('"name":"send_card","arguments":"{\\""', '"timings":{'),
    "together": ('"arguments":"}"}}]},"logprobs":null,"finish_reason":"tool_calls"', '"text":"","seed":null'),
    "xai": ('"index":0,"type":"function"},{"id":', '"total_tokens":539'),
    "ollama": ('"role":"assistant","content":"","reasoning":"', '"id":"chatcmpl-518"'),
    "perplexity": ('"message":{"role":"assistant","content":"', '"object":"chat.completion.done"', "}\r\n\r\n"),
    "litellm": ('"stream_options":', '"name":""', '"delta":{}}],"stream_options":{"include_usage":true},"usage":'),
    "copilot": ('"choices":[],"created":0,"id":""', '"copilot_usage":'),
    "bedrock": ("<reason", "ing>", "</reasoning>"),
    "anthropic": ('"tool_calls":[{"index":1,"id":"',),
    "snowflake": ('"id":"","model"', '"refusal":""', "[DONE]"),
    "interleaved": ('{"index":2,"function":{"arguments":"{',),
    "cut": ("finish_reason",),
}
# name -> what its body has not
LACKS: dict[str, tuple[str, ...]] = {
    "gemini": ('"id":"chatcmpl', '"index":0,"function"'),
    "groq-error": ("[DONE]", '"finish_reason":"'),
    "together": ('"usage"',),
    "perplexity": ("[DONE]",),
    "litellm": ('"finish_reason":null',),
    "copilot": ('"object"', '"finish_reason":null'),
    "anthropic": ('"tool_calls":[{"index":0',),
    "snowflake": ("finish_reason",),
    "cut": ("[DONE]", "usage", '"finish_reason":"'),
}


def test_there_are_many_providers() -> None:
    assert len(STREAMS) >= 14
    assert len({stream.provider for stream in STREAMS.values()}) >= 12


def test_every_stream_has_its_oddity_looked_at() -> None:
    assert ODDITIES.keys() == STREAMS.keys()
    assert LACKS.keys() <= STREAMS.keys()


@pytest.mark.parametrize("name", STREAMS)
def test_the_oddity_is_in_the_bytes(name: str) -> None:
    body = STREAMS[name].body.decode()
    assert [part for part in ODDITIES[name] if part not in body] == []
    assert [part for part in LACKS.get(name, ()) if part in body] == []


def test_the_network_cuts_characters() -> None:
    def whole(piece: bytes) -> bool:
        return piece == piece.decode("utf-8", "ignore").encode()

    assert not all(map(whole, STREAMS["llama.cpp"].pieces))


def test_a_cut_body_ends_inside_a_line() -> None:
    assert not STREAMS["cut"].body.endswith(b"\n")


@pytest.mark.parametrize("name", STREAMS)
def test_what_must_come_of_it_comes(name: str) -> None:
    outcome = play(STREAMS[name], 0.0, silent)
    if isinstance(outcome, NotPlayed):
        pytest.skip(outcome.reason)
    assert outcome.differences == []
    assert outcome.report.findings == ()


@pytest.mark.parametrize("name", STREAMS)
def test_it_does_not_matter_how_the_body_is_cut(name: str) -> None:
    stream = STREAMS[name]
    options: dict[str, Any] = {"events": "dict", "ids": "counted", "created_at": 0}
    by_byte = [bytes([byte]) for byte in stream.body]
    assert list(convert_sse(by_byte, **options)) == list(convert_sse(stream.pieces, **options))


def test_a_file_is_read_as_it_is_written() -> None:
    head = {"name": "a", "provider": "A", "title": "t", "oddity": "o", "line_end": "\r\n"}
    head["expect"] = {"ending": "completed", "output": [], "usage": None}  # type: ignore[assignment]
    stream = read_stream("\n".join([json.dumps(head), '{"a":  "\u2028"}', '"data: [DONE]\\n\\n"', ""]).encode())
    assert stream.pieces == ('data: {"a":  "\u2028"}\r\n\r\n'.encode(), b"data: [DONE]\r\n\r\n")
    assert (stream.chunks, stream.done) == (({"a": "\u2028"},), True)


# --- the command ---------------------------------------------------------------------------------------------------


def test_all_clean_exits_0() -> None:
    result = run("--json")
    *told, total = map(json.loads, result.stdout.splitlines())
    assert result.exit_code == 0
    assert [one["name"] for one in told] == list(STREAMS)
    assert [one for one in told if one["played"] and not one["clean"]] == []
    played = sum(one["played"] for one in told)
    assert (total["ok"], total["streams"], total["played"], total["clean"]) == (True, len(STREAMS), played, played)


def test_a_person_sees_each_stream_and_a_table() -> None:
    result = run("--only", "groq-error", "--only", "openai-length")
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert lines[0] == "1/2 Groq: an error in mid-stream"
    assert "✓ expected: failed: invalid_prompt · 14 chunks, 21 events, " in result.stdout
    assert "◐ incomplete: max_output_tokens" in lines
    assert "✓ OpenAI arguments cut by length 21 28 2 incomplete none" in lines
    assert lines[-1] == "2 streams of 2 providers played, 2 are as they must be"


def test_a_terminal_shows_it_as_it_streams() -> None:
    result = run("--only", "ollama", "--speed", "20", FORCE_COLOR="1", TERM="xterm-256color")
    assert result.exit_code == 0
    assert "… not ended" in result.stdout
    assert '◂ {"index":0,"delta":{' in result.stdout


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda one: replace(one, ending="completed"), "the ending is failed: invalid_prompt, not completed"),
        (lambda one: replace(one, usage=(1, 2)), "the usage is None, not (1, 2)"),
        (lambda one: replace(one, output=()), "the number of items is 1, not 0"),
        (lambda one: replace(one, output=({"type": "reasoning", "text": "Other"},)), "item 0 is {'sealed': False"),
    ],
)
def test_what_differs_exits_1(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[DemoStream], DemoStream], word: str
) -> None:
    only(monkeypatch, change(STREAMS["groq-error"]))
    shown, told = run(), run("--json")
    assert (shown.exit_code, told.exit_code) == (1, 1)
    assert word in shown.stdout
    first, total = map(json.loads, told.stdout.splitlines())
    assert (first["clean"], total["ok"]) == (False, False)
    assert first["differences"][0].startswith(word)


def test_a_broken_rule_exits_1(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = replace(STREAMS["together"], chunks=STREAMS["openai-calls"].chunks)
    only(monkeypatch, lost)
    outcome = play(lost, 0.0, silent)
    assert isinstance(outcome, Played)
    assert (outcome.differences, outcome.clean) == ([], False)
    shown = run()
    assert (shown.exit_code, "FTH002 MUST" in shown.stdout) == (1, True)


def test_a_profile_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, replace(STREAMS["ollama"], profile="no-such-profile"))
    shown, told = run(), run("--json")
    assert (shown.exit_code, told.exit_code) == (3, 3)
    assert "not played: the profile no-such-profile is not installed" in shown.stdout
    assert json.loads(told.stdout.splitlines()[0])["reason"] == "the profile no-such-profile is not installed"


def test_the_streams_are_listed() -> None:
    lines = run("--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(STREAMS)
    assert [json.loads(line)["name"] for line in run("--list", "--json").stdout.splitlines()] == list(STREAMS)


@pytest.mark.parametrize("name", ["openai", "perplexity", "cut"])
def test_raw_writes_what_was_sent(name: str) -> None:
    result = run("--raw", name)
    assert (result.exit_code, result.stdout_bytes) == (0, STREAMS[name].body)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "no-such"), "no stream is called 'no-such'; there are openai, "),
        (("--raw", "no-such"), "no stream is called 'no-such'"),
        (("--speed", "0"), "--speed 0: it is a number above 0"),
        (("--speed", "nan"), "above 0"),
        (("--no-such-option",), "No such option"),
    ],
)
def test_bad_use_exits_2(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
