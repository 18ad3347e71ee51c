"""Recorded streams, from the folder beside the checkout: nothing in them is lost, and the rules find nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon import convert, convert_sse, to_response

from .oracle import Held, chunks_of, held
from .rules import findings
from .summary import SHARED, Json, Summary, heard, of_response, plain, told

SAME_EVERY_TIME: dict[str, Any] = {"events": "dict", "ids": "counted", "created_at": 0}
CORPUS = SHARED / "corpus"

if not CORPUS.is_dir():
    pytest.skip("no recordings beside the checkout", allow_module_level=True)


def streams() -> list[Any]:
    return [pytest.param(path, id=str(path.relative_to(CORPUS))) for path in sorted(CORPUS.glob("chat/*/*.jsonl"))]


def bodies(content_type: str) -> list[Any]:
    """Return the chat bodies of that content type, with their HTTP status."""
    found: list[Any] = []
    for meta_path in sorted(CORPUS.glob("wire/*/*.meta.json")):
        meta = json.loads(meta_path.read_text())
        path = meta_path.with_name(meta_path.name.replace(".meta.json", ".sse"))
        if meta["path"].endswith("/chat/completions") and meta["headers"]["content-type"].startswith(content_type):
            found.append(pytest.param(path, meta["status"], id=str(path.relative_to(CORPUS))))
    return found


def misfits(expected: Held, summary: Summary) -> list[str]:
    """Return in words where the summary is not what the chunks hold. White space may be dropped before an item."""
    pairs = [
        ("text", expected.text, _joined(summary, "output_text")),
        ("refusal", expected.refusal, _joined(summary, "refusal")),
        ("reasoning", expected.reasoning, "".join(it["text"] for it in summary.output if it["type"] == "reasoning")),
    ]
    found = [f"{what} is {got!r}, not {had!r}" for what, had, got in pairs if had.split() != got.split()]
    if _calls(expected) != _made_calls(summary):
        found.append(f"calls are {_made_calls(summary)}, not {_calls(expected)}")
    ending = summary.reason or summary.terminal
    if ending != expected.ending:
        found.append(f"the ending is {ending}, not {expected.ending}: {summary.message}")
    return found


def _joined(summary: Summary, kind: str) -> str:
    parts = [part for item in summary.output for part in item.get("parts", [])]
    return "".join(text for type, text in parts if type == kind)


def _calls(expected: Held) -> list[tuple[str, str]]:
    cut = expected.ending != "completed"
    return [(call.name, call.arguments or ("" if cut else "{}")) for call in expected.calls]


def _made_calls(summary: Summary) -> list[tuple[str, str]]:
    """Return name and arguments of each call; `{}` that stands for no arguments in a closed item is left as it is."""
    return [(item["name"], item["arguments"]) for item in summary.output if item["type"] == "function_call"]


@pytest.mark.parametrize("path", streams())
def test_a_recorded_stream(path: Path) -> None:
    chunks = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    events = list(convert(chunks, **SAME_EVERY_TIME))
    assert misfits(held(chunks), told(events)) == []
    assert heard(events) == told(events).output
    assert _given_ids(held(chunks)) <= _ids(told(events))


def _given_ids(expected: Held) -> set[str]:
    return {call.id for call in expected.calls if call.id}


def _ids(summary: Summary) -> set[str]:
    return {item["call_id"] for item in summary.output if "call_id" in item}


@pytest.mark.parametrize("path", streams())
def test_the_rules_find_nothing_in_a_recorded_stream(path: Path) -> None:
    chunks = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    assert findings(list(convert(chunks, **SAME_EVERY_TIME)), chunks) == []


@pytest.mark.parametrize(("path", "status"), bodies("text/event-stream"))
def test_a_recorded_body(path: Path, status: int) -> None:
    body = path.read_bytes()
    chunks, done, malformed = chunks_of(body)
    events = list(convert_sse([body], **SAME_EVERY_TIME))
    assert status == 200
    assert misfits(held(chunks, done, malformed), told(events)) == []
    assert heard(events) == told(events).output
    assert findings(events, None if malformed else chunks) == []


@pytest.mark.parametrize(("path", "status"), bodies("application/json"))
def test_a_recorded_answer(path: Path, status: int) -> None:
    answer: Json = json.loads(path.read_bytes())
    summary = of_response(plain(to_response(answer, **SAME_EVERY_TIME)))
    if status == 200:
        assert misfits(held([answer]), summary) == []
    else:
        assert (summary.terminal, summary.output) == ("failed", [])
        assert answer["error"]["message"][:40] in summary.message
        overflow = "overflow" in path.name
        refused = "context_length_exceeded" if overflow else "invalid_prompt"
        assert summary.code == (refused if status < 500 else "server_error")
