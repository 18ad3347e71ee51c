"""A stream as a picture: items and their parts as bars over the events, and how it ended.

`Timeline` takes any events, also those of a broken stream: it shows what came and judges nothing. `close_up` shows one
place of a stream from near: the chunks, the events, and what was open. The renderers give text for a terminal, SVG, and
HTML, whole or as fragments. What a stream says is shown in excerpts, control characters as escapes.
"""

from __future__ import annotations

from .bars import (
    COLOURS,
    EXCERPT,
    GREY,
    PART_KINDS,
    SIGNS,
    Colour,
    Ending,
    Row,
    Timeline,
    describe,
    ending,
    escaped,
    heading,
)
from .beside import beside
from .closeup import Gap, Lane, Line, Side, SideBySide, close_up
from .page import STYLE, render_bars, render_close_up, render_html
from .svg import render_svg
from .terminal import BAR_WIDTH, bar, render_text
from .told import excerpt, said_by, told_by

__all__ = [
    "BAR_WIDTH",
    "COLOURS",
    "EXCERPT",
    "GREY",
    "PART_KINDS",
    "SIGNS",
    "STYLE",
    "Colour",
    "Ending",
    "Gap",
    "Lane",
    "Line",
    "Row",
    "Side",
    "SideBySide",
    "Timeline",
    "bar",
    "beside",
    "close_up",
    "describe",
    "ending",
    "escaped",
    "excerpt",
    "heading",
    "render_bars",
    "render_close_up",
    "render_html",
    "render_svg",
    "render_text",
    "said_by",
    "told_by",
]
