"""Streamed equals not streamed: recorded chunks, folded to the completion that they are pieces of, give the same response."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from antiphon import convert, to_response

from .known import CORPUS, PROFILES, RECORDED

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the recordings do not lie beside the checkout")

Json = dict[str, Any]
THOUGHTS = ("reasoning_content", "reasoning", "reasoning_text")
JOINED = ("content", "refusal", *THOUGHTS)
# what a delta may hold, and its place in a message that is whole: reasoning, text, calls
ORDER = {**dict.fromkeys(THOUGHTS, 0), "content": 1, "refusal": 1, "tool_calls": 2}
SILENT = frozenset({"role", "function_call", "audio"})
MADE: Json = {"events": "dict", "ids": "counted", "created_at": 0}


class NotFoldable(Exception):
    """The chunks are no pieces of one completion that has the same order."""


def folded(chunks: Iterable[Json]) -> Json:
    """Return the completion, folded as the API's own clients do it: texts joined, calls by their index."""
    message: Json = {"role": "assistant", "content": None}
    calls: dict[int, Json] = {}
    whole: Json = {"object": "chat.completion"}
    finish, logprobs, stage = None, [], 0
    for chunk in chunks:
        if chunk.get("error"):
            raise NotFoldable("an error")
        whole |= {key: one for key, one in chunk.items() if one and key not in ("object", "choices")}
        for choice in chunk.get("choices") or ():
            if choice.get("index", 0) != 0 or "delta" not in choice:
                raise NotFoldable("another choice, or none")
            stage = _fold(choice["delta"] or {}, message, calls, stage)
            finish = choice.get("finish_reason") or finish
            logprobs += (choice.get("logprobs") or {}).get("content") or ()
    if not finish or (calls and sorted(calls) != list(range(len(calls)))):
        raise NotFoldable("no finish, or calls without an index")
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {**whole, "choices": [{**choice, **({"logprobs": {"content": logprobs}} if logprobs else {})}]}


def _fold(delta: Json, message: Json, calls: dict[int, Json], stage: int) -> int:
    said = {key: value for key, value in delta.items() if value and key not in SILENT}
    for key in sorted(said, key=lambda key: ORDER.get(key, -1)):
        if key not in ORDER or ORDER[key] < stage or (key in JOINED and not isinstance(said[key], str)):
            raise NotFoldable(f"{key} has no place here")
        stage = ORDER[key]
        if key == "tool_calls":
            for fragment in said[key]:
                _fold_call(fragment, calls)
        else:
            message[key] = (message.get(key) or "") + said[key]
    return stage


def _fold_call(fragment: Json, calls: dict[int, Json]) -> None:
    index, function = fragment.get("index"), fragment.get("function") or {}
    if not isinstance(index, int) or not isinstance(function.get("arguments") or "", str):
        raise NotFoldable("a call without an index")
    call = calls.setdefault(index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
    if (fragment.get("id") and call["id"]) or (function.get("name") and call["function"]["name"]):
        raise NotFoldable("a call whose head comes again")
    extra = {key: one for key, one in fragment.items() if key not in ("index", "function", "type", "id") and one}
    call |= {"id": call["id"] or fragment.get("id") or "", **extra}
    call["function"]["name"] += function.get("name") or ""
    call["function"]["arguments"] += function.get("arguments") or ""


def chunks_of(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def can_be_folded(path: Path) -> bool:
    try:
        folded(chunks_of(path))
    except NotFoldable:
        return False
    return True


PATHS = [
    (name, path)
    for name, folders in RECORDED.items()
    for folder in folders
    for path in sorted((CORPUS / "chat" / folder).glob("*.jsonl"))
    if can_be_folded(path)
]


def told(response: Json) -> Any:
    """Return what counts of a response: its items without what is made, its ending, its usage."""
    items = [{key: one for key, one in item.items() if key != "id"} for item in response["output"]]
    return items, response["status"], response["incomplete_details"], response["usage"], response["model"]


@pytest.mark.parametrize(("name", "path"), [pytest.param(*one, id=str(one[1].relative_to(CORPUS))) for one in PATHS])
def test_a_folded_recording_gives_the_same_response(name: str, path: Path) -> None:
    chunks, profile = chunks_of(path), PROFILES[name]
    streamed: Sequence[Json] = list(convert(chunks, profile=profile, **MADE))
    assert told(to_response(folded(chunks), profile=profile, **MADE)) == told(streamed[-1]["response"])


def test_most_recordings_can_be_folded() -> None:
    every = [
        path
        for folders in RECORDED.values()
        for folder in folders
        for path in (CORPUS / "chat" / folder).glob("*.jsonl")
    ]
    assert len(PATHS) > len(every) / 2, f"{len(PATHS)} of {len(every)}"
