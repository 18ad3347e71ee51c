"""The picture for a terminal, by `rich`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .bars import COLOURS, GREY, SIGNS, Row, Timeline, ending, escaped, heading

if TYPE_CHECKING:
    from rich.console import RenderableType

BAR_WIDTH = 24


def render_text(timeline: Timeline, *, color: bool = True) -> RenderableType:
    """Return the picture for a `rich` console, in lines that fit 80 columns. Cheap: for `rich.live`, make it anew."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    def style(name: str) -> str:
        return name if color else ""

    bars = Table.grid(padding=(0, 1), expand=True)
    bars.add_column(no_wrap=True)
    bars.add_column(no_wrap=True, max_width=20)
    bars.add_column(no_wrap=True, width=BAR_WIDTH)
    bars.add_column(no_wrap=True, ratio=1, overflow="ellipsis")
    for row in timeline.rows:
        hue = style(COLOURS.get(row.kind, GREY).terminal)
        kind = row.kind if row.part_index is None else f"└ {row.kind}"
        sign = f"{SIGNS['incomplete'][0]} " if row.status == "incomplete" else ""
        bars.add_row(row.place, Text(kind, hue), Text(bar(row, timeline.events), hue), Text(sign + row.label))
    sign, hue = SIGNS.get(timeline.ending.status if timeline.ending else "", ("…", "bright_black"))
    warnings = [Text(f"! {escaped(warning)}", style("yellow")) for warning in timeline.warnings]
    return Group(
        Text(heading(timeline), style("bold"), no_wrap=True, overflow="ellipsis"),
        bars,
        *warnings,
        Text(f"{sign} {ending(timeline)}", style(hue)),
    )


def bar(row: Row, events: int, width: int = BAR_WIDTH) -> str:
    """Return the bar of `row` in `width` columns that stand for `events` events; it is never empty."""
    start = row.first * width // max(events, 1)
    end = -(-(row.last + 1) * width // max(events, 1))
    return " " * start + ("█" if row.part_index is None else "▄") * max(end - start, 1)
