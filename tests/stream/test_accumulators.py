"""What clients make of the events: openai-python's own accumulator, and ours, end with the same response."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from openai import omit
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import ParsedResponse

from antiphon import accumulate, convert

from .cases import attribution, calls, endings, extras, items, reasoning
from .cases.build import Case
from .summary import SHARED, Json, plain, within

SAME_EVERY_TIME: dict[str, Any] = {"ids": "counted", "created_at": 0}

CASES = [
    pytest.param(case.chunks, case.options, id=f"{group}: {case.name}")
    for module in (attribution, calls, items, reasoning, extras, endings)
    for group, cases in module.GROUPS.items()
    for case in cases
]
RECORDED = [
    pytest.param(
        [json.loads(line) for line in path.read_text().splitlines() if line.strip()],
        Case("", [], []).options,
        id=str(path.relative_to(SHARED)),
    )
    for path in sorted((SHARED / "corpus").glob("chat/*/*.jsonl"))
]


def through_the_client(events: Sequence[Any]) -> tuple[ParsedResponse[Any] | None, Any]:
    """Return what openai-python's accumulator makes of the events: the response that it hands out at the end of a
    completed stream, and the snapshot it has added up from the deltas. It raises where events are amiss."""
    state: ResponseStreamState[Any] = ResponseStreamState(input_tools=omit, text_format=omit)
    handed = [made for event in events for made in state.handle_event(event)]
    final = getattr(handed[-1], "response", None) if handed[-1].type == "response.completed" else None
    return final, vars(state)["_ResponseStreamState__current_snapshot"]


def streamed_texts(response: Any) -> list[Any]:
    """Return of each item what the accumulator adds up itself: the text of messages, the arguments of calls."""
    return [
        [part.get("text") for part in item["content"]] if item["type"] == "message" else item.get("arguments")
        for item in plain(response)["output"]
        if item["type"] in ("message", "function_call")
    ]


@pytest.mark.parametrize(("chunks", "options"), [*CASES, *RECORDED])
def test_the_official_client_ends_with_the_same_response(chunks: Sequence[Any], options: Any) -> None:
    events = list(convert(chunks, events="openai", **SAME_EVERY_TIME, **options))
    terminal = events[-1]
    final, snapshot = through_the_client(events)
    assert streamed_texts(snapshot) == streamed_texts(terminal.response)
    assert (final is not None) == (terminal.type == "response.completed")
    if final is not None:
        # The client adds `parsed` and `parsed_arguments`, and takes nothing away.
        assert within(_told(terminal.response), _told(final))


def _told(response: Any) -> Json:
    return {key: value for key, value in plain(response).items() if value is not None}


@pytest.mark.parametrize(("chunks", "options"), [*CASES, *RECORDED])
def test_our_accumulator_ends_with_the_same_response(chunks: Sequence[Any], options: Any) -> None:
    events = list(convert(chunks, events="dict", **SAME_EVERY_TIME, **options))
    assert plain(accumulate(events)) == events[-1]["response"]
