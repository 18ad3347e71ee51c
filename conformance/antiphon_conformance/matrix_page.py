"""The page of the matrix: who was measured, areas by subjects, rules by subjects, and how to measure again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .matrix import Column, Counts, Kind, Measured

CLEAN, NOT_RUN = "✓", ""


def page(measured: Measured) -> str:
    """Return the page: who was measured, areas by subjects, rules by subjects, and how to measure again."""
    return "\n".join(_lines(measured)) + "\n"


def _lines(measured: Measured) -> Iterator[str]:
    yield "# Peers"
    yield ""
    yield from _INTRODUCTION
    yield ""
    yield f"Suite {measured.suite}, cases `{measured.cases_hash}`."
    for kind, title, told in _SECTIONS:
        columns = [column for column in measured.columns if column.kind == kind]
        if columns:
            yield from ("", f"## {title}", "", told, "")
            yield from _subjects(columns)
            yield from ("", f"### {title}: areas", "")
            yield from table(columns, by_area=True)
            yield from ("", f"### {title}: rules that somebody breaks", "")
            yield from table(columns)
    yield from ("", "## Measure it yourself", "", *_AGAIN)


_INTRODUCTION = (
    "<!-- Written by `antiphon matrix`; edit the words in antiphon_conformance/matrix_page.py, not here. -->",
    "Who else turns chat chunks into Responses events, or serves them natively, and what comes of it by the rules of",
    "the [suite](RULES.md). Each number is measured with the version that is named; a deviation is data",
    "(`antiphon_conformance/peers/baselines`), and a fix there is news.",
    "",
    "✓: the rule ran and nothing is broken. By rules, 3/40 is broken in 3 of the 40 cases in which it ran; by areas, 3/5",
    "is 3 of its 5 rules that ran broken somewhere. Empty: it did not run.",
    "Only rules of strength MUST count. A converter is put to every capability that the suite asks for by default, also",
    "those that it does not claim, so some numbers are features that it does not have. One fault may break several rules.",
)
_SECTIONS: tuple[tuple[Kind, str, str], ...] = (
    ("adapter", "Converters", "Every case of the suite, as it is written, put to the converter's own code."),
    ("server", "Live servers", "The probes of the suite put to a server with a native `/v1/responses`."),
    (
        "recording",
        "Recorded servers",
        "Native Responses streams that servers sent. A recording is judged by what it holds: not every rule has a "
        "chance\nto break.",
    ),
)
_AGAIN = (
    "```sh",
    "pip install '.[conformance]' openai-agents litellm   # from a checkout; and what else is to be measured",
    "antiphon matrix                          # all converters that are installed",
    "antiphon matrix litellm --baselines .    # one, and its deviations as data",
    "antiphon matrix --url http://127.0.0.1:8080/v1 --model tiny",
    "antiphon matrix --recordings DIR         # a folder of recorded event streams for each server",
    "```",
    "",
    "A converter of your own is measured by `antiphon check mypackage.stream:convert`.",
    "",
    "any-llm has no column: it passes `/responses` on to providers that have it, and converts no chat stream to one",
    "(any-llm-sdk 1.40, `AnyLLM._aresponses`).",
)


def _subjects(columns: Sequence[Column]) -> Iterator[str]:
    yield "| subject | version | what | rules kept | cases clean | command |"
    yield "|---|---|---|---|---|---|"
    for one in columns:
        what = one.what.replace("|", "\\|")
        kept = f"{sum(not count.broken for count in one.rules.values())}/{len(one.rules)}"
        clean = f"{one.clean}/{one.cases}"
        yield f"| {one.name} | {one.version or '–'} | {what} | {kept} | {clean} | `{one.command}` |"


def table(columns: Sequence[Column], *, by_area: bool = False) -> Iterator[str]:
    """Yield the lines of a table, by areas, or by the rules that somebody breaks."""
    counts = [_by_area(column) if by_area else column.rules for column in columns]
    keys = sorted({key for one in counts for key, count in one.items() if by_area or count.broken})
    names = _names(by_area)
    yield f"| {'area' if by_area else 'rule'} | {' | '.join(column.name for column in columns)} |"
    yield "|---|" + "---|" * len(columns)
    for key in keys:
        yield f"| {key} {names.get(key, '')} | {' | '.join(_cell(one.get(key)) for one in counts)} |"


def _by_area(column: Column) -> dict[str, Counts]:
    """Return for each area how many of its rules are broken, of those that ran."""
    areas: dict[str, list[Counts]] = {}
    for code, count in column.rules.items():
        areas.setdefault(code[:3], []).append(count)
    return {area: Counts(sum(one.broken > 0 for one in counts), len(counts)) for area, counts in areas.items()}


def _names(by_area: bool) -> dict[str, str]:
    from .rule import every_rule

    if by_area:
        from .reports.html import area_titles

        return area_titles()
    return {rule.code: rule.name for rule in every_rule()}


def _cell(count: Counts | None) -> str:
    if count is None or not count.ran:
        return NOT_RUN
    return f"{count.broken}/{count.ran}" if count.broken else CLEAN
