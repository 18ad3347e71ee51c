"""Recorded streams through the profile of their provider: the rules find nothing, and but for tags nothing changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from antiphon import Profile, convert, convert_sse
from antiphon_conformance import Level, check

from .known import CORPUS, PROFILES, RECORDED

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the recordings do not lie beside the checkout")

SAME_EVERY_TIME: dict[str, Any] = {"events": "dict", "ids": "counted", "created_at": 0}
TAGS = ("<think>", "</think>", "<reasoning>", "</reasoning>")

STREAMS = [
    pytest.param(name, path, id=str(path.relative_to(CORPUS)))
    for name, folders in RECORDED.items()
    for folder in folders
    for path in sorted((CORPUS / "chat" / folder).glob("*.jsonl"))
]
BODIES = [
    pytest.param(name, path, id=str(path.relative_to(CORPUS)))
    for name in ("llamacpp", "vllm")
    for path in sorted((CORPUS / "wire" / name).glob("chat_*.sse"))
    if json.loads(path.with_name(f"{path.stem}.meta.json").read_text())["headers"]["content-type"].startswith(
        "text/event-stream"
    )
]

# streams whose text begins with reasoning in tags -> how the reasoning and the answer begin; "" where there is none
TAGGED: dict[str, tuple[str, str]] = {
    "chat/bedrock-openai-compat/llama-stack--a423d4acb53fe385bb72f99a6e99.jsonl": ("We need to use", ""),
    "chat/bedrock-openai-compat/llama-stack--inference-3dcb9e38f66c963235.jsonl": ('The user says "Hello', "Hello! 👋"),
    "chat/groq/pydantic-ai--test-groq-test-groq-model-thinking-part-iter.jsonl": (
        "Okay, so I want to make",
        "To make Uruguayan alfajores",
    ),
    "chat/huggingface-router/pydantic-ai--test-huggingface-test-hf-model-thinking-part-iter.jsonl": (
        "Okay, the user asked",
        "Crossing the street",
    ),
    "chat/vllm/llama-stack--inference-0248ff8a1be5ff5ba8.jsonl": ("Okay, the user is asking", ""),
}


def output(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items without what is made: ids of items, and of calls that had none."""
    items = json.loads(json.dumps(events[-1]["response"]["output"]))
    return [{key: value for key, value in item.items() if key not in ("id", "call_id")} for item in items]


def text_of(items: Sequence[dict[str, Any]], kind: str) -> str:
    parts = [part for it in items if it["type"] == kind for part in it.get("content") or it.get("summary") or ()]
    return "".join(part.get("text", "") for part in parts)


def without(tags: Sequence[str], text: str) -> str:
    """Return the text without tags and white space."""
    for tag in tags:
        text = text.replace(tag, "")
    return "".join(text.split())


def musts(events: Sequence[dict[str, Any]], chunks: Sequence[Any], profile: Profile) -> list[str]:
    return [str(one) for one in check(events, chunks=chunks, profile=profile).at(Level.MUST)]


@pytest.mark.parametrize(("name", "path"), STREAMS)
def test_a_recorded_stream_through_its_profile(name: str, path: Path) -> None:
    chunks = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    profile = PROFILES[name]
    events = list(convert(chunks, profile=profile, **SAME_EVERY_TIME))
    assert musts(events, chunks, profile) == []
    mine, plain = output(events), output(list(convert(chunks, **SAME_EVERY_TIME)))
    if str(path.relative_to(CORPUS)) not in TAGGED:
        assert mine == plain
        assert not any(tag in text_of(mine, "message") for tag in TAGS)


@pytest.mark.parametrize("path", TAGGED)
def test_the_tags_of_a_recorded_stream_are_gone(path: str) -> None:
    chunks = [json.loads(line) for line in (CORPUS / path).read_text(encoding="utf-8").split("\n") if line.strip()]
    name = next(name for name, folders in RECORDED.items() if path.split("/")[1] in folders)
    mine = output(list(convert(chunks, profile=PROFILES[name], **SAME_EVERY_TIME)))
    plain = output(list(convert(chunks, **SAME_EVERY_TIME)))
    reasoning, answer = text_of(mine, "reasoning"), text_of(mine, "message")
    begins, goes_on = TAGGED[path]
    assert reasoning.startswith(begins)
    assert answer.startswith(goes_on) if goes_on else answer == ""
    assert not any(tag in reasoning + answer for tag in TAGS)
    assert without((), reasoning + answer) == without(TAGS, text_of(plain, "message"))
    assert [item for item in mine if item["type"] == "function_call"] == [
        item for item in plain if item["type"] == "function_call"
    ]


@pytest.mark.parametrize(("name", "path"), BODIES)
def test_a_recorded_body_through_its_profile(name: str, path: Path) -> None:
    body, profile = path.read_bytes(), PROFILES[name]
    lines = [line.removeprefix(b"data: ") for line in body.split(b"\n") if line.startswith(b"data: {")]
    events = list(convert_sse(body, profile=profile, **SAME_EVERY_TIME))
    assert musts(events, [json.loads(line) for line in lines], profile) == []
    mine, plain = output(events), output(list(convert_sse(body, **SAME_EVERY_TIME)))
    if not text_of(plain, "message").startswith("<think>"):
        assert mine == plain
    else:
        said = text_of(mine, "reasoning") + text_of(mine, "message")
        assert not any(tag in said for tag in TAGS)
        assert without((), said) == without(TAGS, text_of(plain, "message"))


def test_each_profile_with_a_folder_has_recordings() -> None:
    assert [folder for folders in RECORDED.values() for folder in folders if not _streams(folder)] == []


def _streams(folder: str) -> list[Path]:
    return list((CORPUS / "chat" / folder).glob("*.jsonl"))
