"""`Timeline`: bars for items and parts, an ending, and three renderings of them that content cannot break."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from antiphon import BadInput
from antiphon.stream.sse import read_events
from antiphon.timeline import (
    STYLE,
    Ending,
    Gap,
    Lane,
    Line,
    Row,
    SideBySide,
    Timeline,
    bar,
    beside,
    close_up,
    describe,
    excerpt,
    render_bars,
    render_close_up,
    render_html,
    render_svg,
    render_text,
    said_by,
    told_by,
)

Json = dict[str, Any]

RECORDINGS = sorted((Path(__file__).parents[2] / "shared" / "corpus" / "responses").rglob("*.jsonl"))

HEAD = {"id": "resp_1", "model": "m-1", "status": "in_progress", "output": []}


def at(output_index: int, kind: str, **fields: Any) -> Json:
    return {"type": f"response.{kind}", "output_index": output_index, **fields}


def terminal(status: str, **fields: Any) -> Json:
    return {"type": f"response.{status}", "response": {**HEAD, "status": status, **fields}}


EVENTS = [
    {"type": "response.created", "response": HEAD},
    {"type": "response.in_progress", "response": HEAD},
    at(0, "output_item.added", item={"type": "reasoning", "summary": []}),
    at(0, "reasoning_summary_part.added", summary_index=0, part={"type": "summary_text", "text": ""}),
    at(0, "reasoning_summary_text.delta", summary_index=0, delta="Let me think"),
    at(0, "reasoning_summary_text.done", summary_index=0, text="Let me think"),
    at(0, "reasoning_summary_part.done", summary_index=0, part={"type": "summary_text", "text": "Let me think"}),
    at(0, "output_item.done", item={"type": "reasoning", "summary": []}),
    at(1, "output_item.added", item={"type": "message", "status": "in_progress", "content": []}),
    at(1, "content_part.added", content_index=0, part={"type": "output_text", "text": ""}),
    at(1, "output_text.delta", content_index=0, delta="one\ntwo"),
    at(1, "output_text.done", content_index=0, text="one\ntwo"),
    at(1, "content_part.done", content_index=0, part={"type": "output_text", "text": "one\ntwo"}),
    at(1, "output_item.done", item={"type": "message", "status": "completed"}),
    at(2, "output_item.added", item={"type": "function_call", "name": "f", "arguments": "", "status": "in_progress"}),
    at(2, "function_call_arguments.delta", delta='{"a":'),
    at(2, "function_call_arguments.delta", delta="1}"),
    at(2, "function_call_arguments.done", arguments='{"a":1}'),
    at(2, "output_item.done", item={"type": "function_call", "name": "f", "status": "incomplete"}),
    terminal("incomplete", incomplete_details={"reason": "max_output_tokens"}),
]
ROWS = (
    Row("reasoning", 0, None, 2, 7, "completed", ""),
    Row("summary_text", 0, 0, 3, 6, "completed", "Let me think"),
    Row("message", 1, None, 8, 13, "completed", ""),
    Row("output_text", 1, 0, 9, 12, "completed", r"one\ntwo"),
    Row("function_call", 2, None, 14, 18, "incomplete", 'f({"a":1})'),
)
TEXT = r"""
m-1 · 20 events · resp_1
0   reasoning        ████████
0.0 └ summary_text    ▄▄▄▄▄▄                Let me think
1   message                 ████████
1.0 └ output_text            ▄▄▄▄▄▄         one\ntwo
2   function_call                  ███████  ◐ f({"a":1})
! a warning
◐ incomplete: max_output_tokens
"""


def drawn(timeline: Timeline, *, color: bool = False, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=color, color_system="standard" if color else None)
    console.print(render_text(timeline, color=color))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def warned() -> Timeline:
    timeline = Timeline(EVENTS)
    timeline.warn("a warning")
    return timeline


def test_rows_and_ending() -> None:
    timeline = Timeline(EVENTS)
    assert timeline.rows == ROWS
    assert timeline.ending == Ending("incomplete", "max_output_tokens")
    assert (timeline.events, timeline.response_id, timeline.model) == (20, "resp_1", "m-1")


def test_text_fits_eighty_columns() -> None:
    lines = drawn(warned()).splitlines()
    assert [line.rstrip() for line in lines] == TEXT.strip().splitlines()
    assert max(map(len, lines)) <= 80


def test_text_has_colours_only_if_asked() -> None:
    assert "\x1b[35m" in drawn(warned(), color=True)
    assert "\x1b" not in drawn(warned())


def test_openai_objects_give_the_same_picture() -> None:
    from openai.types.responses import ResponseTextDeltaEvent

    delta = at(0, "output_text.delta", content_index=0, delta="Hi", item_id="i", logprobs=[], sequence_number=0)
    assert Timeline([ResponseTextDeltaEvent.model_validate(delta)]).rows == Timeline([delta]).rows


ENDINGS: dict[str, tuple[Json | None, str]] = {
    "none": (None, "… not ended"),
    "completed": (terminal("completed"), "✓ completed"),
    "failed": (
        terminal("failed", error={"code": "server_error", "message": "no\x1b"}),
        r"✗ failed: server_error: no\x1b",
    ),
    "a flat error": ({"type": "error", "code": None, "message": "no"}, "✗ failed: no"),
    "a nested error": ({"type": "error", "error": {"code": "c", "message": "no"}}, "✗ failed: c: no"),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_ending(name: str) -> None:
    last, line = ENDINGS[name]
    timeline = Timeline(EVENTS[:-1] + ([last] if last else []))
    assert drawn(timeline).splitlines()[-1].rstrip() == line
    assert line[2:] in render_html(timeline)


def test_what_was_not_announced_is_shown() -> None:
    timeline = Timeline([at(3, "output_text.delta", content_index=1, delta="Hi"), at(4, "file_search_call.searching")])
    assert timeline.rows == (
        Row("not announced", 3, None, 0, 0, "in_progress", ""),
        Row("output_text", 3, 1, 0, 0, "in_progress", "Hi"),
        Row("not announced", 4, None, 1, 1, "in_progress", ""),
    )


def test_a_text_that_came_whole_is_shown() -> None:
    item = {"type": "function_call", "name": "f", "arguments": "{}", "status": "completed"}
    assert Timeline([at(0, "output_item.done", item=item)]).rows[0].label == "f({})"


def test_only_the_beginning_of_a_text_is_kept() -> None:
    deltas = [at(0, "output_text.delta", content_index=0, delta="abcdefg") for _ in range(1000)]
    assert Timeline(deltas).rows[1].label == ("abcdefg" * 18)[:120] + "…"


def test_what_is_no_event_is_refused() -> None:
    with pytest.raises(BadInput, match="here is 7"):
        Timeline([7])


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 500), st.integers(1, 60))
def test_a_bar_is_never_empty_and_never_too_long(first: int, length: int, after: int, width: int) -> None:
    row = Row("message", 0, None, first, first + length, "completed", "")
    drawn_bar = bar(row, first + length + 1 + after, width)
    assert drawn_bar.strip()
    assert len(drawn_bar) <= width


NASTY = st.text(st.one_of(st.sampled_from("<>&\"'\x1b[\u202e\x00\n\ud800]"), st.characters()), max_size=30)


@given(NASTY)
def test_content_cannot_break_out(text: str) -> None:
    item = {"type": text, "name": text, "arguments": text, "status": text}
    timeline = Timeline([{"type": "response.created", "response": {"id": text, "model": text}}])
    timeline.feed(at(0, "output_item.done", item=item))
    timeline.feed(at(0, "output_text.delta", content_index=0, delta=text))
    timeline.feed(terminal("failed", error={"code": text, "message": text}))
    timeline.warn(text)
    ElementTree.fromstring(render_svg(timeline))
    page = render_html(timeline)
    assert all(one.isprintable() or one == "\n" for one in page)
    assert page.count("<script") == 0
    assert all(one.isprintable() for one in drawn(timeline).replace("\n", ""))


def test_svg_says_all_in_words() -> None:
    svg = ElementTree.fromstring(render_svg(warned()))
    assert (svg.get("role"), svg.get("aria-label")) == (
        "img",
        "m-1 · 20 events · resp_1; incomplete: max_output_tokens",
    )
    titles = [title.text for title in svg.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == [describe(row) for row in ROWS]
    assert titles[3] == r"part 1.0, output_text, events 9 to 12, completed: one\ntwo"


def test_the_page_is_self_contained() -> None:
    page = render_html(warned())
    assert page.count("http") == 0
    assert all(name not in page for name in ("<script", "<link", "@import", "url("))
    assert page.count("prefers-color-scheme:dark") == 2
    assert "<li>a warning</li>" in page


def test_an_empty_stream() -> None:
    assert drawn(Timeline()).split() == ["0", "events", "…", "not", "ended"]
    ElementTree.fromstring(render_svg(Timeline()))


def test_rich_is_imported_by_the_text_renderer_alone() -> None:
    program = (
        "import sys; from antiphon.timeline import *; render_html(Timeline([{'type': 'error'}]));"
        "assert not {'rich', 'openai', 'pydantic'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.skipif(not RECORDINGS, reason="the recorded streams are not beside this checkout")
def test_recorded_streams() -> None:
    for path in RECORDINGS:
        timeline = Timeline(read_events(path.read_bytes()))
        announced = {row.output_index for row in timeline.rows if row.part_index is None}
        recorded = path.read_text().splitlines()
        assert announced == {event["output_index"] for event in map(json.loads, recorded) if "output_index" in event}
        ElementTree.fromstring(render_svg(timeline))
        assert max(map(len, drawn(timeline).splitlines())) <= 80


# --- from near: chunks on one side, events on the other ---------------------------------------------------------------


def chunk(finish: str | None = None, **delta: Any) -> Json:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def fragment(index: int, arguments: str, **more: Any) -> Json:
    return {"index": index, "function": {"arguments": arguments, **more}}


CHUNKS = [
    chunk(role="assistant", content=""),
    chunk(reasoning_content="Let me"),
    chunk(reasoning_content=" think"),
    chunk(content="one\ntwo"),
    chunk(tool_calls=[fragment(0, '{"a":', name="f")]),
    chunk(tool_calls=[fragment(0, "1}")]),
    chunk("length"),
    {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5}},
]
MESSAGE, PART = Lane("message"), Lane("output_text", part=True)


def test_a_place_from_near() -> None:
    lines = close_up(EVENTS, CHUNKS, 10, marks={10: "DLT001"})
    assert lines[:1] == (Gap(0, 1),)
    assert lines[10:12] == (
        Line(None, "", 9, "content_part.added", "1.0", "output_text", (MESSAGE, Lane("output_text", True, first=True))),
        Line(None, "", 10, "output_text.delta", "1.0", r"“one\ntwo”", (MESSAGE, PART), "DLT001", True),
    )
    assert lines[-2:] == (
        Line(5, "call 0 (1})", 16, "function_call_arguments.delta", "2", "“1}”", (Lane("function_call"), None)),
        Gap(2, 3),
    )


def test_events_stand_at_the_chunks_that_say_the_same() -> None:
    assert beside(CHUNKS, EVENTS) == [0, 0, 1, 1, 1, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 5, 6, 6, 6]
    assert beside([], EVENTS) == [-1] * 20


def test_calls_that_interleave_keep_their_own_chunks() -> None:
    chunks = [chunk(tool_calls=[fragment(n % 2, f"{n}")]) for n in range(6)]
    events = [at(call, "function_call_arguments.delta", delta=str(n)) for call in (0, 1) for n in range(call, 6, 2)]
    assert beside(chunks, events) == [0, 2, 4, 4, 4, 5]


SAID: dict[str, tuple[object, str]] = {
    "role": (chunk(role="assistant"), "role “assistant”"),
    "empty content": (chunk(role="assistant", content=""), "content “”"),
    "call": (CHUNKS[4], 'call 0 f({"a":)'),
    "two in one": (chunk(content="a", tool_calls=[fragment(1, "{}")]), "content “a” · call 1 ({})"),
    "finish": (CHUNKS[6], "finish length"),
    "usage": (CHUNKS[7], "usage 7 + 5"),
    "error": ({"error": {"message": "no\x1b"}}, r"error “no\x1b”"),
    "nothing": ({"choices": []}, "nothing"),
    "no object": (["a", 7], "['a', 7]"),
    "a line": ("data: x", "“data: x”"),
}


@pytest.mark.parametrize("name", SAID)
def test_what_a_chunk_says(name: str) -> None:
    value, words = SAID[name]
    assert said_by(value) == words


def test_openai_chunks_say_the_same() -> None:
    from openai.types.chat import ChatCompletionChunk

    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    objects = [ChatCompletionChunk.model_validate({**head, **one}) for one in CHUNKS[3:6]]
    assert [said_by(one) for one in objects] == [said_by(one) for one in CHUNKS[3:6]]
    assert beside(objects, EVENTS) == beside(CHUNKS[3:6], EVENTS)


JUNK = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(max_size=5), st.booleans()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ("type", "choices", "delta", "item", "output_index", "tool_calls", "function", "error", "usage")
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)
STREAMS = st.one_of(
    st.tuples(st.lists(JUNK, max_size=40), st.lists(JUNK, max_size=40)),
    st.tuples(st.sampled_from((EVENTS, EVENTS * 9, [])), st.sampled_from((CHUNKS, CHUNKS * 40, [], [{}] * 90))),
)


@given(STREAMS, st.integers(0, 200), st.sampled_from(("events", "chunks")))
def test_a_close_up_shows_the_place_and_counts_what_it_leaves_out(streams: Any, place: int, side: Any) -> None:
    events, chunks = streams
    held = events if side == "events" else chunks
    wanted = place % len(held) if held else None
    lines = close_up(events, chunks, wanted, side=side, marks={} if wanted is None else {wanted: "X"})
    shown = [line for line in lines if isinstance(line, Line)]
    gaps = [line for line in lines if isinstance(line, Gap)]
    numbers = {"events": [one.event for one in shown if one.event is not None]}
    numbers["chunks"] = [one.chunk for one in shown if one.chunk is not None]
    assert len(lines) <= 80
    assert all(gap.chunks >= 0 and gap.events >= 0 and gap.chunks + gap.events for gap in gaps)
    for name, whole in (("events", events), ("chunks", chunks)):
        assert numbers[name] == sorted(set(numbers[name]))
        assert len(numbers[name]) + sum(getattr(gap, name) for gap in gaps) == len(whole)
    assert [one.mark for one in shown if one.here] == ([] if wanted is None else ["X"])


@given(JUNK)
def test_any_value_has_an_excerpt_and_words(value: object) -> None:
    for words in (said_by(value), *told_by(value), excerpt(value)):
        assert all(one.isprintable() or one == "\n" for one in words)
        assert len(words) <= 1500


def test_an_excerpt_of_something_huge_is_short() -> None:
    huge = {"a": "x" * 10**6, "b": list(range(10**5)), "c": {str(n): n for n in range(10**4)}}
    assert len(excerpt(huge)) <= 1500
    assert '"xxxx' in excerpt(huge)
    assert len(said_by(chunk(content="x" * 10**6))) < 120


def test_fragments_of_a_page_are_well_formed() -> None:
    both = SideBySide([*EVENTS, {"type": "<b>&"}], [*CHUNKS, "<i>"])
    for index in (None, 0, 10, 19):
        for fragment in (render_close_up(both.close_up(index), "a <caption>"), render_bars(both.timeline, at=index)):
            ElementTree.fromstring(fragment)
    assert "</style" not in STYLE
    bars = render_bars(
        Timeline([at(n, "output_item.added", item={"type": "message"}) for n in range(50)]), at=30, most=5
    )
    assert ElementTree.fromstring(bars)[-1].findtext("span") == "… 45 more items and parts"
