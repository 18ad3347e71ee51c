"""`unfold`: a whole response as events, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from antiphon import accumulate, convert, to_response
from antiphon.stream.unfold import unfold
from antiphon_conformance import check

from .strategies import Conversation, Manner, conversations, manners, render

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "responses"

ITEMS: dict[str, dict[str, Any]] = {
    "message": {
        "id": "msg_1",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [
            {
                "type": "output_text",
                "text": "Salt is a mineral.",
                "annotations": [
                    {
                        "type": "url_citation",
                        "start_index": 0,
                        "end_index": 4,
                        "title": "Salt",
                        "url": "https://a.example/",
                    }
                ],
                "logprobs": [],
            },
            {"type": "refusal", "refusal": "No more."},
        ],
    },
    "reasoning": {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
    "raw reasoning": {
        "id": "rs_2",
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm"}],
        "encrypted_content": "c2VjcmV0",
    },
    "call": {
        "id": "fc_1",
        "type": "function_call",
        "status": "completed",
        "call_id": "call_1",
        "name": "look",
        "arguments": '{"a": 1}',
    },
    "custom call": {
        "id": "ctc_1",
        "type": "custom_tool_call",
        "status": "completed",
        "call_id": "call_2",
        "name": "patch",
        "input": "*** Begin",
    },
    "hosted": {
        "id": "ws_1",
        "type": "web_search_call",
        "status": "completed",
        "action": {"type": "search", "query": "salt"},
    },
}


def response_of(items: list[dict[str, Any]], status: str = "completed", **more: Any) -> dict[str, Any]:
    chat = {"id": "x", "model": "m", "choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}]}
    made = to_response(chat, events="dict", ids="counted", created_at=0)
    return {**made, "output": items, "status": status, **more}


@pytest.mark.parametrize("name", ITEMS)
def test_an_item_comes_back_as_it_was(name: str) -> None:
    whole = response_of([ITEMS[name]])
    events = unfold(whole, "dict")
    assert accumulate(events) == whole
    assert [finding for finding in check(events).findings if finding.code != "SCH001"] == []


@pytest.mark.parametrize(
    ("status", "more", "ending"),
    [
        ("completed", {}, ["response.completed"]),
        (
            "incomplete",
            {"incomplete_details": {"reason": "max_output_tokens"}, "completed_at": None},
            ["response.incomplete"],
        ),
        (
            "failed",
            {"error": {"code": "server_error", "message": "it broke"}, "completed_at": None},
            ["error", "response.failed"],
        ),
    ],
)
def test_the_ending_is_the_one_of_the_status(status: str, more: dict[str, Any], ending: list[str]) -> None:
    item = {**ITEMS["call"], "status": "completed" if status == "completed" else "incomplete"}
    whole = response_of([item], status, **more)
    events = unfold(whole, "dict")
    assert [event["type"] for event in events][-len(ending) :] == ending
    assert check(events).findings == ()
    assert accumulate(events) == whole


@given(conversations(), manners())
def test_what_we_make_of_a_stream_unfolds_to_the_same_response(conversation: Conversation, manner: Manner) -> None:
    streamed = list(convert(render(conversation, manner), events="dict"))
    whole = accumulate(streamed)
    events = unfold(whole, "dict")
    assert check(events).codes == check(streamed).codes
    assert accumulate(events) == whole


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of recordings is not beside the checkout")
def test_the_responses_of_recorded_streams_come_back_as_they_were() -> None:
    kinds = ("openai", "azure-openai")
    files = [file for kind in kinds for file in sorted((CORPUS / kind).glob("*.jsonl"))]
    assert files
    for file in files:
        events = [json.loads(line) for line in file.read_text().splitlines() if line.strip()]
        if events[0]["type"] != "response.created":  # it was taken up again in the middle
            continue
        whole = accumulate(events)
        assert accumulate(unfold(whole, "dict")) == whole, file.name
