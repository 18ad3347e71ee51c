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
from antiphon.timeline import Ending, Row, Timeline, bar, describe, render_html, render_svg, render_text

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
    assert page.replace('xmlns="http://www.w3.org/2000/svg"', "").count("http") == 0
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
