"""The page of HTML for a whole run: what it says, that nothing in a report breaks out of it, and that it stays small."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon_conformance.report import Finding, Level
from antiphon_conformance.reports import html
from antiphon_conformance.results import Deviation, Layer, Outcome, Run, SuiteReport

from .building import stream
from .reporting import CHUNKS, every_outcome, long_stream, many_broken, report_of, run_of

pytest.importorskip("jinja2")

VOID = {"meta", "input", "col", "br", "link"}


class Page(HTMLParser):
    """What is in a page: its text, its elements, and whether they are closed as they were opened."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.unbalanced: list[str] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()
        self.unbalanced += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        """All text, white space as single spaces."""
        return " ".join(" ".join(self.words).split())

    def all(self, name: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements of that name."""
        return [attrs for tag, attrs in self.tags if tag == name]


REPORTS: dict[str, tuple[SuiteReport, tuple[str, ...]]] = {
    "clean": (report_of(every_outcome()[0]), ("Clean exit status 0", "No rule is broken.", "passed 1")),
    "nothing ran": (report_of(every_outcome()[4]), ("Nothing ran exit status 3", "needs: audio: 1 run")),
    "no runs": (report_of(), ("Nothing ran exit status 3", "There are no runs.")),
    "wrong case": (
        report_of(every_outcome()[3]),
        ("The suite or a case is wrong exit status 2", "chunk 0 is no object"),
    ),
    "stale": (
        report_of(every_outcome()[0], stale=(Deviation("ITM004", "calls/late", "fixed upstream"),)),
        ("Rules are broken exit status 1", "ITM004 in calls/late : fixed upstream"),
    ),
    "live": (
        report_of(
            every_outcome()[0], notes=("works, through these quirks: X",), profile='PROFILE = Profile(\n    "x"\n)'
        ),
        ("works, through these quirks: X", 'PROFILE = Profile( "x" )'),
    ),
    "all outcomes": (
        report_of(*every_outcome()),
        (
            "cases 4 runs 5 ran 4 passed 1 failed 1 failed as expected 1 wrong cases 1 not applicable 1",
            "PRT001 MUST 1 case",
            "text/plain [characters]",
            "expected: one fake id for all items https://example.org/7",
            "antiphon explain ITM002",
        ),
    ),
    "a failure without a finding": (
        report_of(Run("text/x", "x", Outcome.FAIL, reason="the process ended")),
        ("text/x the process ended",),
    ),
    "a rule of a newer suite": (
        report_of(Run("a", "a", Outcome.FAIL, findings=(Finding("NEW001", Level.MUST, 3, "broken"),))),
        ("NEW001", "does not know the rule", "the stream was not kept"),
    ),
}


@pytest.mark.parametrize("name", REPORTS)
def test_the_page_says(name: str) -> None:
    report, phrases = REPORTS[name]
    page = Page(html.page(report))
    assert page.unbalanced == []
    assert [phrase for phrase in phrases if not _said(phrase, page.text)] == []


def _said(phrase: str, text: str) -> bool:
    """Whether all words of a phrase come in that order, near to each other."""
    return re.search(r".{0,60}?".join(map(re.escape, phrase.split())), text) is not None


def test_every_link_in_the_page_leads_somewhere_and_ids_are_unique() -> None:
    page = Page(html.page(report_of(*every_outcome(), *many_broken(1))))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    links = [attrs["href"] or "" for attrs in page.all("a")]
    assert sorted(ids) == sorted(set(ids))
    assert [link for link in links if link.removeprefix("#") not in ids] == []
    assert len(links) > 50


def test_the_page_is_self_contained_and_runs_no_script_but_its_own() -> None:
    page = Page(html.page(report_of(*every_outcome())))
    outside = [attrs for _, attrs in page.tags if {"src", "srcset", "action"} & set(attrs)]
    policies = [attrs["content"] for attrs in page.all("meta") if attrs.get("http-equiv")]
    assert outside == [] == page.all("link") == page.all("img") == page.all("iframe")
    assert len(page.all("script")) == 1
    assert len(policies) == 1
    assert re.match(r"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-[\w+/]+='$", policies[0] or "")
    assert [name for _, attrs in page.tags for name in attrs if name.startswith("on")] == []


def test_everything_that_takes_the_keyboard_has_a_name() -> None:
    page = Page(html.page(report_of(*every_outcome())))
    tables = [attrs for attrs in page.all("table") if "tl-near" not in (attrs.get("class") or "")]
    assert [attrs for attrs in tables if not attrs.get("aria-label")] == []
    assert [attrs for attrs in page.all("pre") if not attrs.get("aria-label")] == []
    assert [attrs for attrs in page.all("section") if not attrs.get("aria-labelledby")] == []
    assert ("a", {"class": "skip", "href": "#findings"}) in page.tags


NASTY = st.text(st.sampled_from("<>&\"'`{}%#/\\\x1b\x00\n\u202e\u2028\ud800[]a "), max_size=24)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(NASTY)
def test_nothing_in_a_report_breaks_out_of_the_page(text: str) -> None:
    attack = f"</pre></script></style>--><script>{text}</script><img src=x onerror={text}>"
    events = [
        {"type": attack, "output_index": 0, "item": {"type": attack, "id": attack}},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": attack, "delta": attack},
        {attack: attack},
        attack,
    ]
    line = Deviation("ITM001", attack, attack, attack)
    finding = Finding("ITM001", Level.MUST, 1, attack)
    run = Run(
        attack, attack, Outcome.FAIL, attack, findings=(finding,), events=events, chunks=[attack, {"choices": attack}]
    )
    more = run_of(
        attack, stream(), expected={"ITM001": line}, findings=(finding,), chunks=[{"error": {"message": attack}}]
    )
    unfit = [Run(attack, attack, outcome, reason=attack) for outcome in (Outcome.ERROR, Outcome.NOT_APPLICABLE)]
    page = Page(html.page(report_of(run, more, *unfit, stale=(line,), notes=(attack,), profile=attack)))
    assert page.unbalanced == []
    assert len(page.all("script")) == 1
    assert page.all("img") == []
    assert all(one.isprintable() or one in "\n" for one in "".join(page.words))


def test_a_finding_about_the_chunks_marks_the_chunk() -> None:
    finding = Finding("CHT001", Level.MUST, 3, "the id changed")
    run = Run("probe/text", "t", Outcome.FAIL, layer=Layer.CHUNKS, findings=(finding,), chunks=CHUNKS)
    page = html.page(report_of(run))
    assert re.search(r'<tr class="here"><td><span class="n">3</span><span class="m">▸ CHT001</span>content “lo”', page)
    assert "chunk 3 as it came" in page


def test_two_layers_of_a_probe_are_one_row_and_no_forms() -> None:
    finding = Finding("CHT001", Level.SHOULD, 1, "odd")
    chunks = Run("text", "t", Outcome.PASS, layer=Layer.CHUNKS, findings=(finding,), ran=("CHT001",), chunks=CHUNKS)
    page = html.page(report_of(chunks, run_of("text", stream(), title="t")))
    assert page.count('<tr data-s="warned">') == 1
    assert "2 forms" not in page


def test_pictures_show_the_place_and_both_sides() -> None:
    page = html.page(report_of(every_outcome()[1]))
    here = re.findall(r'<tr class="here">(.*?)</tr>', page)
    assert here
    assert all("▸ " in row for row in here)
    assert "content “Hel”" in page
    assert 'class="k-reasoning' in page


def test_very_many_runs_and_very_long_streams_make_a_page_of_bounded_size() -> None:
    few, many = html.page(report_of(*many_broken(1))), html.page(report_of(*many_broken(12), long_stream(300)))
    assert len(many) < 12_000_000
    assert many.count("<table") <= 242 < many.count("<details")
    assert len(many) < 9 * len(few)


def test_the_page_is_written_to_a_file(tmp_path: Path) -> None:
    report = report_of(*every_outcome())
    html.write(report, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == html.page(report)
