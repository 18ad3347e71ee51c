"""However a provider cuts, mixes and places what the model says, what comes out is the same and canonical."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionChunk

from antiphon import ChatCmplStreamHandler, convert, convert_sse

from .cases.build import DONE, Json, chunk, sse
from .oracle import implied_ending
from .rules import findings
from .strategies import PLAIN, Conversation, Manner, Said, conversations, manners, render, scrap_streams
from .summary import Summary, anonymous, differences, flat_usage, heard, told, within

SAME_EVERY_TIME: dict[str, Any] = {"ids": "counted", "created_at": 0}
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def bounded(examples: int) -> settings:
    """Return the settings of a property: so many streams, the same ones every time."""
    return settings(max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=SLOW)


def events_of(chunks: Sequence[Json]) -> list[Json]:
    return list(convert(chunks, events="dict", **SAME_EVERY_TIME))


# What must come out, read off the conversation.


def expected_items(talk: Conversation) -> list[Json]:
    """Return the items of a completed conversation: text and refusal next to each other are parts of one message."""
    items: list[Json] = []
    for one in talk.said:
        if one.kind in ("text", "refusal"):
            part = ["output_text" if one.kind == "text" else "refusal", one.content]
            if items and items[-1]["type"] == "message":
                items[-1]["parts"].append(part)
            else:
                items.append({"type": "message", "parts": [part], "status": "completed"})
        else:
            items.append(_item(one))
    return items


def _item(one: Said) -> Json:
    call_id = one.id or None
    match one.kind:
        case "reasoning":
            return {"type": "reasoning", "text": one.content}
        case "custom":
            made = {"type": "custom_tool_call", "name": one.name, "input": one.content}
        case _:
            made = {"type": "function_call", "name": one.name, "arguments": one.content or "{}"}
    return {**made, "call_id": call_id, "status": "completed"}


def outcome(events: Sequence[Json]) -> Any:
    """Return the final response, with made ids renamed in order and without what the chunks say of themselves."""
    response = {**told(events).response, "provider_data": None}
    return anonymous([response])


@bounded(2000)
@given(conversations(), manners())
def test_the_manner_does_not_change_what_comes_out(talk: Conversation, manner: Manner) -> None:
    chunks = render(talk, manner)
    events = events_of(chunks)
    summary = told(events)
    assert heard(events) == summary.output
    assert outcome(events) == outcome(events_of(render(talk, PLAIN)))
    if summary.terminal == "completed":
        assert differences(expected_items(talk), summary.output) == []
    assert summary.reason == {"length": "max_output_tokens", "content_filter": "content_filter"}.get(talk.finish)
    usage = flat_usage(summary.response)
    assert (usage or {}).get("total_tokens") == (talk.usage or {}).get("total_tokens")


@bounded(500)
@given(conversations(), manners())
def test_the_rules_find_nothing(talk: Conversation, manner: Manner) -> None:
    chunks = render(talk, manner)
    assert findings(events_of(chunks), chunks) == []


@bounded(150)
@given(conversations(), manners())
def test_broken_off_anywhere_it_ends_once_and_truly(talk: Conversation, manner: Manner) -> None:
    chunks = render(talk, manner)
    for end in range(len(chunks)):
        events = events_of(chunks[:end])
        summary = told(events)
        assert (summary.reason or summary.terminal) == implied_ending(chunks[:end])
        assert heard(events) == summary.output
        assert truncated_and_completed(summary) == []
        assert [event["type"] for event in events].count("error") == (summary.terminal == "failed")
        for kind in ("text", "refusal", "reasoning"):
            assert _without_space(talk.of(kind)).startswith(_without_space(_spoken(summary, kind)))


def truncated_and_completed(summary: Summary) -> list[Json]:
    """Return the completed calls whose arguments are no JSON, where the provider did not say that all was well."""
    calls = [item for item in summary.output if item["type"] == "function_call" and item["status"] == "completed"]
    return [] if summary.terminal == "completed" else [item for item in calls if not _is_json(item["arguments"])]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _spoken(summary: Summary, kind: str) -> str:
    if kind == "reasoning":
        return "".join(item["text"] for item in summary.output if item["type"] == "reasoning")
    part_type = "output_text" if kind == "text" else "refusal"
    parts = [part for item in summary.output for part in item.get("parts", [])]
    return "".join(text for type, text in parts if type == part_type)


def _without_space(text: str) -> str:
    return "".join(text.split())


@bounded(200)
@given(conversations(), manners(), st.integers(0, 2**32))
def test_a_broken_stream_satisfies_the_rules(talk: Conversation, manner: Manner, seed: int) -> None:
    chunks = render(talk, manner)
    broken = chunks[: random.Random(seed).randint(0, len(chunks))]
    assert findings(events_of(broken), broken) == []


@bounded(250)
@given(conversations(), manners())
def test_all_styles_of_output_say_the_same(talk: Conversation, manner: Manner) -> None:
    chunks = render(talk, manner)
    events = events_of(chunks)
    wire = b"".join(convert(chunks, events="sse", **SAME_EVERY_TIME)).decode()
    frames = [dict(line.split(": ", 1) for line in frame.split("\n")) for frame in wire.split("\n\n") if frame]
    frames = [frame for frame in frames if frame.get("data") != DONE]
    assert [json.loads(frame["data"]) for frame in frames] == events
    assert [frame["event"] for frame in frames] == [event["type"] for event in events]
    models = list(convert(chunks, events="openai", **SAME_EVERY_TIME))
    assert [n for n, event in enumerate(events) if not within(event, models[n].model_dump(mode="json"))] == []
    assert len(models) == len(events)


@bounded(250)
@given(conversations(), manners())
def test_chunks_as_openai_objects_say_the_same(talk: Conversation, manner: Manner) -> None:
    chunks = render(talk, manner)
    objects = [ChatCompletionChunk.construct(**one) for one in chunks]
    assert list(convert(objects, events="dict", **SAME_EVERY_TIME)) == events_of(chunks)


@bounded(400)
@given(conversations(), manners(), st.integers(0, 2**32), st.sampled_from((1, 3, 40, 400)))
def test_bytes_in_any_cut_say_the_same(talk: Conversation, manner: Manner, seed: int, longest: int) -> None:
    chunks = render(talk, manner)
    handler = ChatCmplStreamHandler(events="dict", **SAME_EVERY_TIME)
    events = [event for one in chunks for event in handler.feed(one)] + list(handler.finish(done=True))
    assert list(convert_sse(_cut(sse(*chunks, DONE), seed, longest), events="dict", **SAME_EVERY_TIME)) == events


@bounded(700)
@given(scrap_streams, st.sampled_from(("finish", "done", "fail", "stop")))
def test_scraps_make_a_stream_that_is_whole_in_itself(chunks: list[Json], how: str) -> None:
    chunks = [*chunks, chunk({}, "stop")] if how == "stop" else chunks
    handler = ChatCmplStreamHandler(events="dict", **SAME_EVERY_TIME)
    events = [event for one in chunks for event in handler.feed(one)]
    events += handler.fail(ConnectionError("gone")) if how == "fail" else handler.finish(done=how == "done")
    summary = told(events)
    assert heard(events) == summary.output
    # CAL003 is for what the scraps do themselves: two JSON texts under one id.
    assert [one for one in findings(events) if "CAL003" not in one] == []
    for kind in ("content", "refusal"):
        sent = "".join(one["choices"][0]["delta"].get(kind) or "" for one in chunks if _is_ours(one))
        part_type = "output_text" if kind == "content" else "refusal"
        parts = [part for item in summary.output for part in item.get("parts", [])]
        assert _without_space("".join(text for type, text in parts if type == part_type)) == _without_space(sent)
    ids = [item["call_id"] for item in summary.output if "call_id" in item]
    assert len(set(ids)) == len(ids)
    body = sse(*chunks, *([DONE] if how == "done" else []))
    if how != "fail":
        assert list(convert_sse([body], events="dict", **SAME_EVERY_TIME)) == events


def _is_ours(one: Json) -> bool:
    return bool(one["choices"]) and one["choices"][0]["index"] == 0


# Lines that are alike but for one thing: what is true of one form of a line must not be taken for true of the next.

NOTHING: Json = {}
NONE: list[Any] = []
CHANGES: list[tuple[str, Any]] = [
    ("delta", {"content": "plain"}),
    ("delta", {"content": 'quotes " and \\ and /'}),
    ("delta", {"content": "\u00e9\u2028\U0001f600\n"}),
    ("delta", {"content": ""}),
    ("delta", {"content": None}),
    ("delta", {"content": " "}),
    ("delta", {"content": '"},"finish_reason":"stop"}'}),
    ("delta", {"role": "assistant", "content": "with a role"}),
    ("delta", {"content": "and", "reasoning_content": "both"}),
    ("delta", {"reasoning_content": "hm"}),
    ("delta", {"refusal": "no"}),
    ("delta", {"tool_calls": [{"index": 0, "id": "call-0", "function": {"name": "f", "arguments": '{"a":'}}]}),
    ("delta", {"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]}),
    ("delta", {"tool_calls": [{"index": 0, "function": {"arguments": ""}}]}),
    ("delta", NOTHING),
    ("index", 1),
    ("index", None),
    ("finish_reason", "stop"),
    ("finish_reason", ""),
    ("finish_reason", "length"),
    ("logprobs", {"content": [{"token": "x", "logprob": -1.0, "bytes": None, "top_logprobs": []}]}),
    ("logprobs", None),
    ("id", "chatcmpl-2"),
    ("model", "other"),
    ("model", ""),
    ("usage", None),
    ("usage", {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}),
    ("service_tier", "flex"),
    ("obfuscation", "xyz"),
    ("citations", ["https://example.org"]),
    ("error", {"message": "broken"}),
    ("choices", NONE),
]
IN_CHOICE = ("delta", "index", "finish_reason", "logprobs")


def _line(change: tuple[str, Any], number: int, ascii: bool, gap: str) -> str:
    key, value = change
    choice: Json = {"index": 0, "delta": {"content": f"word {number}"}, "finish_reason": None}
    one: Json = {"id": "chatcmpl-1", "created": 1700000000, "model": "m", "choices": [choice]}
    (choice if key in IN_CHOICE else one)[key] = value
    return json.dumps(one, ensure_ascii=ascii, separators=("," + gap, ":" + gap))


@bounded(600)
@given(st.lists(st.sampled_from(CHANGES), max_size=9), st.booleans(), st.sampled_from(("", " ")), st.booleans())
def test_lines_that_are_nearly_alike_are_read_apart(
    changes: list[tuple[str, Any]], ascii: bool, gap: str, twice: bool
) -> None:
    lines = [_line(change, n, ascii, gap) for n, change in enumerate(changes) for _ in range(1 + twice)]
    for output in ("dict", "sse"):
        options: dict[str, Any] = {**SAME_EVERY_TIME, "events": output}
        made = list(convert_sse([sse(*lines)], **options))
        assert _joined(made) == _joined(list(convert(map(json.loads, lines), **options)))


def _joined(events: Sequence[Any]) -> Any:
    """Return the events; bytes in one piece, since it is free how they are handed out."""
    return b"".join(events) if events and isinstance(events[0], bytes) else list(events)


def _cut(body: bytes, seed: int, longest: int) -> list[bytes]:
    dice = random.Random(seed)
    pieces: list[bytes] = []
    while body:
        size = dice.randint(1, longest)
        pieces.append(body[:size])
        body = body[size:]
    return pieces
