"""The dashboard as files opens from disk: pages, plots, playback, and nothing from elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from serving import DESK, PHONE, Watched, overflow, serious

from depthkit.corpus import Corpus
from depthkit.dashboard.export import export
from depthkit.dashboard.source import Source
from depthkit.errors import DepthkitError

pytestmark = pytest.mark.browser

TASK = "parallel-4-s1"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One task of the demo corpus, exported."""
    folder = tmp_path_factory.mktemp("site")
    demo = Corpus.open("demo").path
    small = folder / "small"
    small.mkdir()
    shutil.copy(demo / "corpus.toml", small)
    for file in ("tasks.jsonl", "runs.jsonl"):
        lines = (demo / file).read_text().splitlines(keepends=True)
        (small / file).write_text("".join(line for line in lines if f'"{TASK}"' in line))
    for trial in (demo / "trials").glob(f"{TASK}__*"):
        shutil.copytree(trial, small / "trials" / trial.name)
    pages = export([Source(small)], folder / "out")
    assert pages == len(list((folder / "out/demo").glob("*.html")))
    return folder / "out"


@pytest.fixture
def watched(browser: Browser, site: Path) -> Iterator[Watched]:
    page = browser.new_page(viewport=DESK)
    watched = Watched(page, site.as_uri())
    yield watched
    page.close()
    assert [url for url in watched.outside if not url.startswith("file:")] == []
    assert watched.complaints == []


def test_it_opens_from_disk_and_leads_from_plots_to_a_terminal(watched: Watched):
    page = watched.open("/index.html")
    page.locator("#plot-plane canvas").first.wait_for()
    expect(page.locator("#chosen")).to_have_text("1 task")
    expect(page.locator("#claims .score")).to_contain_text("settings agree")
    page.locator("#chosen-tasks a.row").click()
    expect(page.locator("h1")).to_have_text(TASK)
    page.locator("a.run.end-passed").first.click()
    expect(page.locator(".turn")).not_to_have_count(0)
    page.wait_for_function("async () => (await depthkitPlayer.getDuration()) > 1")
    page.locator("#turn-2 .seek").click()
    page.wait_for_function("async () => (await depthkitPlayer.getCurrentTime()) > 0.5")
    page.keyboard.press("j")
    assert overflow(page) <= 0


def test_axe_finds_nothing_serious_and_a_phone_is_wide_enough(watched: Watched, site: Path):
    """In one theme: styles are those of the pages that a server gives."""
    watched.page.emulate_media(color_scheme="dark")
    one = [next((site / "demo").glob(f"{page}-*.html")).name for page in ("task", "run")]
    for name in ("overview.html", "runs.html", *one):
        page = watched.open(f"/demo/{name}")
        expect(page.locator("h1")).to_be_visible()
        assert serious(page) == [], name
        page.set_viewport_size(PHONE)
        assert overflow(page) <= 0, name
        page.set_viewport_size(DESK)


def test_a_list_is_sieved_in_the_page(watched: Watched):
    page = watched.open("/demo/runs.html")
    expect(page.locator("tbody tr:visible")).to_have_count(12)
    page.get_by_label("Show rows with").fill("merge")
    expect(page.locator("tbody tr:visible")).to_have_count(3)


def test_every_link_leads_to_a_file_and_none_outside(site: Path):
    import re

    for path in site.rglob("*.html"):
        for link in re.findall(r'(?:href|src)="([^"#]*)', path.read_text()):
            if link:
                assert not link.startswith(("http", "/")), (path, link)
                assert (path.parent / link).is_file(), (path, link)


def test_an_export_replaces_an_earlier_one_and_nothing_else(tmp_path: Path):
    source = Source(Corpus.open_or_create(tmp_path / "empty"))
    export([source], tmp_path / "out")
    export([source], tmp_path / "out")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/thing").write_text("kept")
    with pytest.raises(DepthkitError, match="holds something else"):
        export([source], tmp_path / "other")
    assert (tmp_path / "other/thing").read_text() == "kept"
