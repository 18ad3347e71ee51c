"""The page of HTML in a real browser: without an error, at two widths and on both grounds, by keyboard alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from antiphon_conformance.reports import html

from .reporting import every_outcome, many_broken, report_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytest.importorskip("jinja2")
sync_api = pytest.importorskip("playwright.sync_api", reason="the package playwright drives the browser")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]
ACTIVE = "(document.activeElement.id || document.activeElement.className || document.activeElement.tagName)"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("page") / "page.html"
    html.write(report_of(*every_outcome(), *many_broken(1)), path)
    return path.as_uri()


@pytest.fixture
def faults() -> list[str]:
    return []


@pytest.fixture
def page(browser: Browser, address: str, faults: list[str]) -> Iterator[Page]:
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    opened.on("console", lambda message: faults.append(message.text))
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("request", lambda request: faults.append(request.url) if not request.url.startswith("file:") else None)
    opened.goto(address)
    yield opened
    opened.close()


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("ground", ["light", "dark"])
def test_it_fits_and_is_quiet(page: Page, faults: list[str], width: int, ground: Any) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=ground)
    page.click("#open-all")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert faults == []
    assert _least_contrast(page) >= 4.5


def _least_contrast(page: Page) -> float:
    """Return the least contrast of text to ground among the texts that say most."""
    ratio: float = page.evaluate("""() => {
      const parts = (text) => text.match(/[\\d.]+/g).map(Number);
      const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, n) => sum + c * [0.2126, 0.7152, 0.0722][n], 0);
      const ground = (one) => { for (; one; one = one.parentElement) {
        const colour = parts(getComputedStyle(one).backgroundColor); if (colour.length === 3 || colour[3] === 1) return colour; }
        return [255, 255, 255]; };
      const ratios = [...document.querySelectorAll(".message,.name,.title,.why,.level,.t,.m,.n,.at,.label,.grid a,.grid td,dt,dd,.verdict")]
        .filter((one) => one.textContent.trim() && one.getClientRects().length)
        .map((one) => [light(parts(getComputedStyle(one).color)), light(ground(one))])
        .map(([a, b]) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
      return Math.min(...ratios); }""")
    return ratio


def test_tab_goes_through_the_page_and_out_of_it(page: Page) -> None:
    stops: list[str] = []
    for _ in range(12):
        page.keyboard.press("Tab")
        stops.append(page.evaluate(ACTIVE))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert stops[:5] == ["skip", "words", "state", "area", "BUTTON"]
    assert stops[5] in ("A", "clean", "broken")  # one stop for the whole grid
    assert stops[6:9] == ["open-all", "close-all", "SUMMARY"]


def test_the_skip_link_goes_to_the_findings(page: Page) -> None:
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate(ACTIVE) == "open-all"


def test_arrow_keys_move_in_the_grid_and_enter_opens_the_finding(page: Page) -> None:
    page.focus("#area")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    where = "[document.activeElement.closest('td').cellIndex, document.activeElement.closest('tr').sectionRowIndex]"
    moves = {"Home": [1, 0], "ArrowDown": [1, 1], "ArrowRight": [2, 1], "ArrowUp": [2, 0], "ArrowLeft": [1, 0]}
    for key, place in {**moves, "PageDown": [1, 10], "PageUp": [1, 0]}.items():
        page.keyboard.press(key)
        assert page.evaluate(where) == place
    page.keyboard.press("Control+End")
    last = page.evaluate(
        "[document.querySelector('#grid').rows[0].cells.length - 1, document.querySelectorAll('#grid tbody tr').length - 1]"
    )
    assert page.evaluate(where) == last
    page.keyboard.press("Control+Home")
    for _ in range(int(last[0])):
        if page.evaluate("document.activeElement.tagName") == "A":
            break
        page.keyboard.press("ArrowRight")
    wanted = page.evaluate("document.activeElement.hash.slice(1)")
    page.keyboard.press("Enter")
    page.wait_for_timeout(200)
    assert page.evaluate("[document.activeElement.tagName, document.activeElement.parentElement.id]") == [
        "SUMMARY",
        wanted,
    ]
    assert page.evaluate("document.activeElement.parentElement.open")


FILTERS: tuple[tuple[str, str, str], ...] = (
    ("words", "sequence_number", "SEQ001"),
    ("words", "text/two", "ITM002"),
    ("area", "SEQ", "SEQ001"),
    ("state", "expected", "ITM002"),
)


@pytest.mark.parametrize(("control", "value", "code"), FILTERS)
def test_the_filter_narrows_grid_and_findings(page: Page, control: str, value: str, code: str) -> None:
    rules = "[...document.querySelectorAll('article.rule')].filter((one) => !one.hidden).map((one) => one.querySelector('h3 code').textContent)"
    cases = "[...document.querySelectorAll('#grid tbody tr')].filter((one) => !one.hidden).length"
    before = (page.evaluate(rules), page.evaluate(cases))
    if control == "words":
        page.fill("#words", value)
    else:
        page.select_option(f"#{control}", value)
    page.wait_for_timeout(300)
    narrowed = page.evaluate(rules)
    assert code in narrowed
    assert len(narrowed) < len(before[0])
    if control != "area":
        assert page.evaluate(cases) < before[1]
    page.click("button[type=reset]")
    page.wait_for_timeout(300)
    assert (page.evaluate(rules), page.evaluate(cases)) == before


def test_it_can_be_read_without_scripts(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    page.locator("details.finding").nth(3).locator("> summary").click()
    assert page.locator("details.finding").nth(3).locator(".tl-near").is_visible()
    assert not page.locator("#filter").is_visible()
    context.close()
