"""The picture as one SVG element."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from .bars import COLOURS, GREY, Row, Timeline, describe, ending, heading

_WIDTH, _LINE, _BARS_FROM, _BARS, _LABEL_FROM, _LABEL = 960, 24, 210, 330, 556, 48


def _rules(ground: str) -> Iterator[str]:
    """Yield the CSS rules of all kinds, for a "light" or a "dark" ground."""
    for kind, colour in (("other", GREY), *COLOURS.items()):
        yield f".antiphon .{kind}{{fill:{colour.dark if ground == 'dark' else colour.light}}}"


_SVG_STYLE = (
    ".antiphon{font:13px ui-monospace,monospace}.antiphon text{fill:#1f2328}"
    + "".join(_rules("light"))
    + "@media(prefers-color-scheme:dark){.antiphon text{fill:#e6edf3}"
    + "".join(_rules("dark"))
    + "}"
)


def render_svg(timeline: Timeline) -> str:
    """Return the picture as one `<svg>` element: no scripts, nothing from elsewhere, light and dark."""
    rows = timeline.rows
    height = _LINE * (len(rows) + 2) + 8
    about = escape(f"{heading(timeline)}; {ending(timeline)}")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="antiphon" role="img" aria-label="{about}"'
        f' viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}">',
        f"<style>{_SVG_STYLE}</style>",
        f'<text x="8" y="{_LINE - 6}" font-weight="bold">{escape(heading(timeline))}</text>',
        *(_svg_row(row, timeline.events, _LINE * (at + 1)) for at, row in enumerate(rows)),
        f'<text x="8" y="{height - 14}">{escape(_cut(ending(timeline), 110))}</text>',
        "</svg>",
    ]
    return "\n".join(lines)


def _svg_row(row: Row, events: int, top: int) -> str:
    scale = _BARS / max(events, 1)
    kind = row.kind if row.kind in COLOURS else "other"
    indent, thickness = (8, 14) if row.part_index is None else (24, 8)
    y = top + (_LINE - thickness) / 2
    return (
        f"<g><title>{escape(describe(row))}</title>"
        f'<text x="{indent}" y="{top + 17}">{row.place} {escape(_cut(row.kind, 20))}</text>'
        f'<rect class="{kind}" rx="2" x="{_BARS_FROM + row.first * scale:.1f}" y="{y:g}"'
        f' width="{max((row.last + 1 - row.first) * scale, 1):.1f}" height="{thickness}"/>'
        f'<text x="{_LABEL_FROM}" y="{top + 17}">{escape(_cut(row.label, _LABEL))}</text></g>'
    )


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
