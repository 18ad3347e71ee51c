"""Several entries for choice 0 in one chunk say what they would say in chunks of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from antiphon import convert

from .cases.build import Json, bare, call, chunk, counted, end, refuse, text, think, tokens
from .test_properties import SAME_EVERY_TIME


def likely(token: str) -> Json:
    entry = {"token": token, "logprob": -0.5, "bytes": [*token.encode()], "top_logprobs": []}
    return text(token, choice={"logprobs": {"content": [entry], "refusal": None}})


ENTRIES: dict[str, Sequence[Json]] = {
    "texts": [text("Hi"), text("!"), end()],
    "texts with log probabilities": [likely("Hi"), likely("!"), end()],
    "one with, one without": [likely("Hi"), text("!"), end()],
    "the gravest finish first": [text("Hi", "length"), text("!", "stop")],
    "the gravest finish last": [text("Hi", "stop"), text("!", "content_filter")],
    "no second finish": [text("Hi", "length"), text("!")],
    "reasoning, text, a call": [think("Hm"), text("Hi"), call(0, "call_x", "f", '{"a":1}'), end("tool_calls")],
    "text and refusal": [text("Hi"), refuse("No"), end()],
    "fragments of a call": [call(0, "call_x", "f", '{"a"'), call(0, args=":1}"), end("tool_calls")],
    "another choice between them": [text("Hi"), chunk({"content": "Ho"}, "length", index=1), end()],
    "no index": [chunk({"content": "Hi"}, index=None), chunk({"content": "!"}, "stop", index=None)],
}


@pytest.mark.parametrize("name", ENTRIES)
def test_several_entries_are_several_chunks(name: str) -> None:
    apart = ENTRIES[name]
    together = bare([choice for one in apart for choice in one["choices"]])
    usage = counted(tokens(1, 2))
    assert told([together, usage]) == told([*apart, usage])


def told(chunks: Sequence[Json]) -> list[Any]:
    return list(convert(chunks, events="dict", **SAME_EVERY_TIME))
