"""The report page as people see it: on a desk, on a phone, offline."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from corpora import seven_sets
from playwright.sync_api import Browser, Page
from serving import overflow, serious

from depthkit.artifacts import depth_work_figure, page
from depthkit.corpus import Corpus
from depthkit.reports import load_reports, make_reports
from depthkit.reports.printing import print_page

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
MARKUP = "<img src=x onerror=document.title='run'>"
DESK, PHONE = (1280, 900), (390, 844)


class Watched:
    """A page that notes whatever it asks for and complains about."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._console)

    def _console(self, message: object) -> None:
        if message.type in ("error", "warning"):  # type: ignore[attr-defined]
            self.complaints.append(message.text)  # type: ignore[attr-defined]

    def open(self, path: Path) -> Page:
        self.page.goto(path.as_uri())
        return self.page


@pytest.fixture(params=[DESK, PHONE], ids=["desk", "phone"])
def watched(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Watched]:
    width, height = request.param
    opened = browser.new_page(viewport={"width": width, "height": height})
    watched = Watched(opened)
    yield watched
    opened.close()
    assert not watched.complaints
    assert [url for url in watched.requests if not url.startswith(("file://", "data:"))] == []


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    corpus = seven_sets(folder / "seven")
    reports = load_reports(ROOT, ["audit"], corpus=str(corpus.path))
    (outcome,) = make_reports(reports, folder / "build")
    assert outcome.state == "built", outcome.error
    return folder / "build"


def test_a_report_is_printed_with_its_figures_and_the_same_each_time(build: Path, tmp_path: Path):
    for name in ("one.pdf", "two.pdf"):
        print_page(build / "audit/index.html", tmp_path / name)
    printed = (tmp_path / "one.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    assert len(printed) > 50_000  # drawings, not only text
    assert printed == (tmp_path / "two.pdf").read_bytes()


def test_table_and_figure_are_there_and_nothing_is_cut_off(watched: Watched, build: Path):
    page = watched.open(build / "audit/index.html")
    assert page.locator("#depth-table-1 td", has_text="100%").first.is_visible()
    panels = page.locator("#depth-figure-3 .panel")
    panels.nth(2).locator("canvas").first.wait_for()
    width = page.viewport_size["width"]
    for number in range(3):
        box = panels.nth(number).bounding_box()
        assert box["width"] > 200
        assert box["height"] > 300
        assert box["x"] + box["width"] <= width
    assert overflow(page) <= 0


def test_a_wide_table_scrolls_in_its_own_box(watched: Watched, build: Path):
    page = watched.open(build / "audit/index.html")
    box = page.locator("#depth-table-1 .scroll")
    last = box.locator("th", has_text="Tokens")
    last.scroll_into_view_if_needed()
    assert last.bounding_box()["x"] < page.viewport_size["width"]
    assert overflow(page) <= 0


def test_the_index_leads_to_report_figures_and_tables(watched: Watched, build: Path):
    page = watched.open(build / "index.html")
    assert overflow(page) <= 0
    assert page.get_by_text("computed numbers agree").is_visible()
    page.get_by_role("link", name="Audit").click()
    page.locator("h1", has_text="Audit of data sets").wait_for()
    page.get_by_role("link", name="All reports").click()
    page.locator("h1", has_text="Reports").wait_for()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Browser, build: Path, theme: Literal["light", "dark"]):
    opened = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=theme)
    for path in ("index.html", "audit/index.html"):
        opened.goto((build / path).as_uri())
        opened.locator("h1").wait_for()
        assert serious(opened) == [], path
    opened.close()


def test_pointing_at_a_mark_names_its_task_as_text(browser: Browser, tmp_path: Path):
    corpus = seven_sets(tmp_path / "seven")
    for file in ("tasks.jsonl", "runs.jsonl"):  # somebody else's corpus, edited by hand
        path = corpus.path / file
        path.write_text(path.read_text().replace('"task-0"', json.dumps(MARKUP)))
    figure = depth_work_figure(Corpus.open(corpus.path), datasets=["TMax"])
    target = tmp_path / "figure.html"
    target.write_text(page.document("Figure", figure.show()))
    watched = Watched(browser.new_page(viewport={"width": 1280, "height": 900}))
    shown = watched.open(target)
    shown.locator("#depth-figure-3 canvas").first.wait_for()
    # The mark of each task of TMax in turn, until the tooltip is that of the edited one.
    points = shown.evaluate(
        """() => Array.from(Bokeh.index).filter(v => v.frame).flatMap(view => {
            const box = view.el.getBoundingClientRect(), frame = view.frame;
            return view.model.renderers.filter(r => r.data_source?.columns().includes('task'))
                .flatMap(r => Array.from(r.data_source.get('x')).map((x, i) => [
                    box.left + frame.x_scale.compute(x),
                    box.top + frame.y_scale.compute(r.data_source.get('y')[i])]));
        })"""
    )
    assert len(points) == 4
    texts: list[str] = []
    for x, y in points * 20:  # a tooltip comes when the page has time
        shown.mouse.move(x, y)
        shown.wait_for_timeout(200)
        texts += shown.locator(".bk-Tooltip div").all_inner_texts()
        if any(MARKUP in text for text in texts):
            break
    assert any(MARKUP in text for text in texts), texts
    assert shown.title() == "Figure (scripted, no model's results)"
    assert not watched.complaints
    watched.page.close()
