"""The picture for pages of HTML: the whole stream as bars, a place in it from near, and a page around both.

The fragments need `STYLE` in the page. They scale with the page, are light and dark, and hold no script.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .bars import COLOURS, GREY, SIGNS, Row, Timeline, describe, ending, escaped, heading
from .closeup import Gap, Lane, Line

MOST = 12  # bars of one picture


def _colours(ground: str) -> str:
    """Return the variables of all kinds, for a "light" or a "dark" ground."""
    named = (("other", GREY), *COLOURS.items())
    return "".join(f"--{kind}:{colour.dark if ground == 'dark' else colour.light};" for kind, colour in named)


_KINDS = ("other", *COLOURS)
STYLE = (
    f".tl{{{_colours('light')}--tl-mark:#bc4c00;--tl-wash:#fff1e5;--tl-line:#d1d9e0;--tl-soft:#59636e;"
    "--tl-track:#818b981f;--h:1.75rem;font:.8125rem/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}"
    f"@media(prefers-color-scheme:dark){{.tl{{{_colours('dark')}--tl-mark:#ffa657;--tl-wash:#3d2a12;--tl-line:#3d444d;"
    "--tl-soft:#9198a1;--tl-track:#656c7633}}"
    + "".join(f".tl .k-{kind}{{background:var(--{kind})}}" for kind in _KINDS)
    + """
.tl-said{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.tl-bars{list-style:none;margin:0;padding:0}
.tl-bars li{display:grid;grid-template-columns:minmax(7rem,12rem) minmax(5rem,1fr) minmax(0,1fr);gap:.75rem;align-items:center}
.tl-bars li>*{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.tl-bars .part{padding-left:1.25rem;color:var(--tl-soft)}
.tl-bars .track{position:relative;height:1rem;background:var(--tl-track);border-radius:3px}
.tl-bars .track i{position:absolute;top:2px;bottom:2px;min-width:2px;border-radius:2px}
.tl-bars .track .p{top:5px;bottom:5px}
.tl-bars .track b{position:absolute;top:0;bottom:0;width:2px;margin-left:-1px;background:var(--tl-mark)}
.tl-bars .label,.tl-bars .more{color:var(--tl-soft)}
.tl-bars .more span{grid-column:1/-1}
.tl-near{border-collapse:collapse;width:100%;table-layout:fixed}
.tl-near th{font-weight:600;text-align:left;color:var(--tl-soft);padding:0 .5rem .25rem}
.tl-near td{height:var(--h);padding:0 .5rem;overflow:hidden;text-overflow:ellipsis;white-space:nowrap;vertical-align:middle}
.tl-near .o{padding:0 .25rem;line-height:0;vertical-align:top}
.tl-near .o i{display:inline-block;width:8px;height:var(--h);margin-right:3px;vertical-align:top}
.tl-near .o .p{width:5px;opacity:.6}
.tl-near .o .f{border-top-left-radius:4px;border-top-right-radius:4px;height:calc(var(--h) - 4px);margin-top:4px}
.tl-near .o .l{border-bottom-left-radius:4px;border-bottom-right-radius:4px;height:calc(var(--h) - 4px)}
.tl-near .o .f.l{height:calc(var(--h) - 8px)}
.tl-near .n{display:inline-block;min-width:1.75rem;color:var(--tl-soft);text-align:right;margin-right:.5rem}
.tl-near .at{color:var(--tl-soft);margin:0 .5rem}
.tl-near .t{font-weight:600}
.tl-near .here td{background:var(--tl-wash);box-shadow:inset 0 1px var(--tl-mark),inset 0 -1px var(--tl-mark)}
.tl-near .here .o{background:none;box-shadow:none}
.tl-near .m{font-weight:700;color:var(--tl-mark);margin-right:.5rem}
.tl-near .gap td{height:1.5rem;color:var(--tl-soft);font-style:italic}
@media(max-width:40rem){.tl{--h:2.5rem;font-size:.75rem}
.tl-bars li{grid-template-columns:minmax(0,8rem) minmax(0,1fr)}.tl-bars .label{display:none}
.tl-near td,.tl-near th{padding-inline:.25rem}.tl-near .x{display:block;overflow:hidden;text-overflow:ellipsis}
.tl-near .n{min-width:0;margin-right:.25rem}.tl-near .at{margin:0 .25rem}}
"""
)
_PAGE_STYLE = (
    ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;"
    "padding:0 1rem;color:#1f2328;background:#fff}h1{font-size:1.25rem;overflow-wrap:anywhere}"
    "table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;vertical-align:top;padding:.2rem .6rem .2rem 0;border-bottom:1px solid #8884;"
    "overflow-wrap:anywhere}@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}}"
)


def render_html(timeline: Timeline) -> str:
    """Return a page of HTML: the picture, and the same as a table. Nothing in it comes from elsewhere."""
    title = escape(heading(timeline))
    warnings = "".join(f"<li>{escape(escaped(warning))}</li>" for warning in timeline.warnings)
    head = "".join(f'<th scope="col">{name}</th>' for name in ("place", "kind", "events", "status", "content"))
    return "\n".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title><style>{_PAGE_STYLE}{STYLE}</style></head><body><main>",
            f"<h1>{title}</h1><p>{escape(ending(timeline))}</p>",
            render_bars(timeline, most=len(timeline.rows)),
            f"<h2>Warnings</h2><ul>{warnings}</ul>" if warnings else "",
            f"<h2>Items and parts</h2><table><thead><tr>{head}</tr></thead><tbody>",
            *map(_html_row, timeline.rows),
            "</tbody></table></main></body></html>",
        )
    )


def _html_row(row: Row) -> str:
    cells = (row.place, row.kind, f"{row.first}–{row.last}", row.status, row.label)
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


# --- the whole stream as bars --------------------------------------------------------------------------------------


def render_bars(timeline: Timeline, *, at: int | None = None, most: int = MOST) -> str:
    """Return the bars as a list, with a line through them at event `at`; of more than `most`, those near it."""
    rows = timeline.rows
    chosen = _nearest(rows, at, most)
    left_out = len(rows) - len(chosen)
    more = f'<li class="more"><span>… {left_out:,} more items and parts</span></li>' if left_out else ""
    bars = "".join(_bar(row, timeline.events, at) for row in chosen)
    return f'<ul class="tl tl-bars" aria-label="Items and parts">{bars}{more}</ul>'


def _nearest(rows: Sequence[Row], at: int | None, most: int) -> Sequence[Row]:
    """Return at most `most` rows, in their order: those that are nearest to event `at`, or the first ones."""
    if len(rows) <= most or at is None:
        return rows[:most]
    away = sorted(range(len(rows)), key=lambda n: (max(rows[n].first - at, at - rows[n].last, 0), n))
    return [rows[n] for n in sorted(away[:most])]


def _bar(row: Row, events: int, at: int | None) -> str:
    scale = 100 / max(events, 1)
    part = row.part_index is not None
    mark = f'<b style="left:{(at + 0.5) * scale:.2f}%"></b>' if at is not None else ""
    sign = f"{SIGNS[row.status][0]} " if row.status in ("incomplete", "failed") else ""
    return (
        f'<li><span class="name{" part" if part else ""}">{row.place} {escape(row.kind)}</span>'
        f'<span class="track" aria-hidden="true"><i class="{_kind(row.kind)}{" p" if part else ""}" style="left:'
        f'{row.first * scale:.2f}%;width:{(row.last + 1 - row.first) * scale:.2f}%"></i>{mark}</span>'
        f'<span class="label">{escape(sign + row.label)}</span><span class="tl-said">{escape(describe(row))}</span></li>'
    )


def _kind(kind: str) -> str:
    """Return the class that has the colour of a kind."""
    return f"k-{kind}" if kind in COLOURS else "k-other"


# --- a place from near ---------------------------------------------------------------------------------------------


def render_close_up(lines: Sequence[Line | Gap], caption: str = "") -> str:
    """Return the lines as a table: chunks, the bars that are open, events. A side that has nothing is left out."""
    chunks = any(line.chunk is not None for line in lines if isinstance(line, Line))
    events = any(line.event is not None for line in lines if isinstance(line, Line))
    lanes = max((len(line.lanes) for line in lines if isinstance(line, Line)), default=0)
    open_width = 11 * lanes + 10
    columns = (
        ('<col style="width:36%"/>' if events else "<col/>") if chunks else "",
        f'<col style="width:{open_width}px"/>' if events and lanes else "",
        "<col/>" if events else "",
    )
    heads = _cells("th", chunks and "chunk", bool(events and lanes) and _HIDDEN_OPEN, events and "event")
    rows = "".join(_row(line, chunks, bool(events and lanes), events) for line in lines)
    told = f'<caption class="tl-said">{escape(escaped(caption))}</caption>' if caption else ""
    return (
        f'<table class="tl tl-near">{told}<colgroup>{"".join(columns)}</colgroup><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


_HIDDEN_OPEN = '<span class="tl-said">open</span>'


def _cells(tag: str, *cells: str | bool) -> str:
    scope = ' scope="col"' if tag == "th" else ""
    return "".join(f"<{tag}{scope}>{cell}</{tag}>" for cell in cells if cell is not False)


def _row(line: Line | Gap, chunks: bool, lanes: bool, events: bool) -> str:
    match line:
        case Gap():
            cells = _cells("td", chunks and _left_out(line.chunks, "chunk"), lanes and "", events and _gap(line))
            return f'<tr class="gap">{cells}</tr>'
        case Line():
            told = (
                f"<td>{_chunk(line, events)}</td>" if chunks else "",
                f'<td class="o">{"".join(map(_lane, line.lanes))}</td>' if lanes else "",
                f"<td>{_event(line)}</td>" if events else "",
            )
            here = ' class="here"' if line.here else ""
            return f"<tr{here}>{''.join(told)}</tr>"


def _gap(gap: Gap) -> str:
    return _left_out(gap.events, "event")


def _left_out(count: int, what: str) -> str:
    return f"… {count:,} {what}{'' if count == 1 else 's'}" if count else ""


def _chunk(line: Line, events: bool) -> str:
    if line.chunk is None:
        return ""
    mark = _mark(line) if line.event is None or not events else ""
    return f'<span class="n">{line.chunk}</span>{mark}{escape(line.said)}'


def _event(line: Line) -> str:
    if line.event is None:
        return ""
    place = f'<span class="at">{escape(line.place)}</span>' if line.place else " "
    return (
        f'<span class="n">{line.event}</span>{_mark(line)}<span class="t">{escape(line.type)}</span>'
        f'<span class="x">{place}{escape(line.text)}</span>'
    )


def _mark(line: Line) -> str:
    return f'<span class="m">▸ {escape(line.mark)}</span>' if line.mark or line.here else ""


def _lane(lane: Lane | None) -> str:
    if lane is None:
        return "<i></i>"
    ends = " p" * lane.part + " f" * lane.first + " l" * lane.last
    return f'<i class="{_kind(lane.kind)}{ends}"></i>'
