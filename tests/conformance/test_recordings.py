"""Recorded streams of native Responses servers: the real API breaks no MUST, and others break what they are known for.

The corpus of recordings lies beside the checkout, or is not there; then nothing here runs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon import convert
from antiphon_conformance import Level, Recording, all_rules, check

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus does not lie beside the checkout")

REAL = sorted(
    str(path.relative_to(CORPUS))
    for folder in ("openai", "azure-openai")
    for path in (CORPUS / "responses" / folder).glob("*.jsonl")
)
OTHERS = sorted(
    str(path.relative_to(CORPUS))
    for path in (CORPUS / "responses").glob("*/*.jsonl")
    if path.parent.name not in ("openai", "azure-openai")
)
CHATS = sorted(str(path.relative_to(CORPUS)) for path in (CORPUS / "chat").glob("*/*.jsonl"))

# What must be said to `check` of a stream: this one is the rest of a background response.
RESUMED = {
    "responses/openai/pydantic-ai--test-openai-responses-test-background-mode-streaming-starting-after-vcr--1.jsonl": 0
}
# Streams of the real API that carry no numbers.
UNNUMBERED = ("responses/openai/ddtrace--v1-response-function-call-streamed.jsonl",)
# The SHOULD findings in streams of the real API, but for SCH003: older snapshots lack keys.
SHOULD = {
    "responses/openai/cagent--testdebug-title-openai-gpt52pro.jsonl": ("ITM010",),  # a message completed when added
    "responses/openai/vercel-ai--openai-openai-error.jsonl": ("END010",),  # nested only
    "responses/openai/vercel-ai--openai-programmatic-tool-calling.jsonl": ("ITM010",),  # a program's call
}
# What other servers break: the start of a path -> the MUST findings.
DEVIATIONS = {
    "responses/bedrock-mantle/pydantic-ai": (),
    "responses/bedrock-mantle/ruby_llm": ("ITM008", "PRT001", "PRT002", "RSN003"),  # reasoning_part.*
    "responses/chatgpt-codex/langchain": (),
    "responses/chatgpt-codex/rig": ("END005",),  # the final output is empty
    "responses/deepseek/pydantic-ai--test-deepseek-responses-test-deepseek-responses-function-tool-stream--1": (),
    "responses/deepseek/pydantic-ai--test-deepseek-responses-test-deepseek-responses-function-tool-stream.": (
        "RSN003",
    ),
    "responses/github-copilot/rig": ("END005", "ITM004", "ITM005", "STR002"),  # ids change from event to event
    "responses/lmstudio/vercel-ai": ("CAL001", "RSN003"),  # calls without deltas
    "responses/openrouter/llm-openrouter": (),
    "responses/openrouter/pydantic-ai": ("END005", "ITM007"),  # items overlap, and the output has other ids
    "responses/openrouter/rig": ("ITM007", "RSN003", "SCH001"),
    "responses/xai/r": ("RSN003",),
    "responses/xai/vercel-ai--xai-xai-text": ("RSN003", "SCH001"),
    "responses/xai/vercel-ai--xai-xai-web": ("SCH001",),
}


def read(path: str) -> list[Any]:
    lines = (CORPUS / path).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


def judged(path: str) -> dict[Level, tuple[str, ...]]:
    """Return the codes that are broken, by level."""
    report = check(read(path), starting_after=RESUMED.get(path))
    return {level: tuple(sorted({one.code for one in report.at(level)})) for level in Level}


@pytest.mark.parametrize("path", REAL)
def test_the_real_api_breaks_no_must(path: str) -> None:
    found = judged(path)
    assert found[Level.MUST] == ()
    assert tuple(code for code in found[Level.SHOULD] if code != "SCH003") == SHOULD.get(path, ())


def test_only_old_streams_carry_no_numbers() -> None:
    left_out = [path for path in REAL if "SEQ001" in check(read(path)).not_applicable]
    assert tuple(left_out) == UNNUMBERED


@pytest.mark.parametrize("path", OTHERS)
def test_other_servers_break_what_they_are_known_for(path: str) -> None:
    known = [codes for start, codes in DEVIATIONS.items() if path.startswith(start)]
    assert [judged(path)[Level.MUST]] == known


@pytest.mark.parametrize("rule", all_rules(), ids=lambda one: one.code)
def test_a_rule_rests_on_recordings_that_are_there(rule: Any) -> None:
    named = [*(source for source in rule.sources if isinstance(source, Recording)), *rule.broken_by]
    assert [one.path for one in named if not (CORPUS / one.path).is_file()] == []


@pytest.mark.parametrize("rule", all_rules(), ids=lambda one: one.code)
def test_a_rule_is_kept_by_what_it_rests_on_and_broken_by_what_it_names(rule: Any) -> None:
    kept = [one.path for one in rule.sources if isinstance(one, Recording) and one.path.startswith("responses/")]
    assert [path for path in kept if rule.code in judged(path)[Level.MUST]] == []
    assert [one.path for one in rule.broken_by if rule.code not in check(read(one.path)).codes] == []


@pytest.mark.parametrize("path", CHATS)
def test_what_the_engine_makes_of_recorded_chunks_breaks_no_must(path: str) -> None:
    chunks = read(path)
    report = check(convert(chunks, events="dict"), chunks=chunks)
    assert [str(finding) for finding in report.at(Level.MUST)] == []
    assert "FTH001" in report.ran
