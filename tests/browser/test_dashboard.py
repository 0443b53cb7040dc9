"""The dashboard as people use it: pages, addresses, keyboard, playback, labels."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from corpora import Spec, write_corpus
from playwright.sync_api import Browser, Page, expect
from serving import DESK, Watched, dashboard, overflow, wait_until_read

from depthkit.corpus import Corpus

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
RUN = "control-10-s1__scripted-merge__cap10__1__f386093946e91b"

SAME = "control-10-s1__scripted-step__free__1__f386093968bb85"


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A copy of the demo corpus that may be written to, one that grows, one that is empty."""
    folder = tmp_path_factory.mktemp("corpora")
    shutil.copytree(Corpus.open("demo").path, folder / "demo")
    write_corpus(folder / "growing", [Spec("A", 2), Spec("A", 0)], name="growing")
    Corpus.open_or_create(folder / "empty")
    broken = write_corpus(folder / "broken", [Spec("A", 2)], name="broken")
    with (broken.path / "runs.jsonl").open("a") as out:
        out.write('{"run_id": "<b>7</b>"}\n')
    return {path.name: path for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout's notebooks, and a small one that is quickly run."""
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "notebooks", folder / "notebooks")
    cells = [
        ("seed: int = 0  # of the draw\nmany: bool = False", ["parameters"]),
        ("print('seed', seed, 'many', many)", []),
    ]
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "", "language": "python"}},
        "cells": [
            {
                "cell_type": "code",
                "id": f"cell-{number}",
                "metadata": {"tags": tags},
                "source": source,
                "outputs": [],
                "execution_count": None,
            }
            for number, (source, tags) in enumerate(cells)
        ],
    }
    (folder / "notebooks/small.ipynb").write_text(json.dumps(notebook))
    (folder / "reports").mkdir()
    reports = (ROOT / "reports/reports.yaml").read_text()
    entry = "\nsmall:\n  title: A small one\n  notebook: small.ipynb\n"
    (folder / "reports/reports.yaml").write_text(reports + entry)
    return folder


@pytest.fixture(scope="module")
def address(corpora: dict[str, Path], checkout: Path) -> Iterator[str]:
    names = ("demo", "growing", "empty", "broken")
    with dashboard([corpora[name] for name in names], checkout=checkout) as found:
        for name in names:
            wait_until_read(found, name)
        yield found


@pytest.fixture
def watched(browser: Browser, address: str) -> Iterator[Watched]:
    page = browser.new_page(viewport=DESK)
    page.set_default_timeout(60_000)
    watched = Watched(page, address)
    yield watched
    page.close()
    watched.check()


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_from_the_overview_to_a_turn_and_back(watched: Watched):
    page = watched.open("/")
    page.get_by_role("link", name="control", exact=True).click()
    expect(page.locator("h1")).to_contain_text("6 of 12")
    page.get_by_role("link", name="control-10-s1").click()
    expect(page.locator("h1")).to_have_text("control-10-s1")
    page.get_by_role("link", name=re.compile("scripted-merge, cap 10, try 1")).click()
    expect(page.locator(".turn")).to_have_count(10)
    page.go_back()
    expect(page.locator("h1")).to_have_text("control-10-s1")
    page.go_back()
    assert query(page) == {"dataset": ["control"]}


def test_filters_stand_in_the_address_and_can_be_taken_back(watched: Watched, browser: Browser):
    page = watched.open("/demo/runs")
    page.locator(".filters").get_by_role("link", name=re.compile("^passed")).click()
    page.get_by_label("Search").fill("merge")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="Turns", exact=True).click()
    found = query(page)
    assert found == {"q": ["merge"], "ending": ["passed"], "sort": ["-turns"]}
    rows = page.locator("tbody tr").count()
    restored = browser.new_page()
    restored.goto(page.url)
    assert restored.locator("tbody tr").count() == rows
    restored.close()
    page.get_by_role("link", name="Take back passed").click()
    assert "ending" not in query(page)
    assert page.locator("tbody tr").count() > rows


def test_columns_and_export_go_together(watched: Watched):
    page = watched.open("/demo/tasks?dataset=parallel")
    page.get_by_text("Columns", exact=True).click()
    for title in ("Pass rate", "Provenance", "Results"):
        page.locator(".columns").get_by_label(title, exact=True).uncheck()
    page.locator(".columns").get_by_role("button").click()
    assert page.get_by_role("columnheader", name="Provenance").count() == 0
    with page.expect_download() as download:
        page.get_by_role("link", name="Export CSV").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0] == "task,dataset,outcome,D,N,W,R,passes,state,provenance"
    assert len(lines) == 4


def test_the_keyboard_leads_everywhere(watched: Watched):
    page = watched.open("/demo/tasks")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("parallel-4-s1")
    page.wait_for_load_state()
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page.locator("h1")).to_contain_text("Runs")
    page.wait_for_load_state()
    page.keyboard.press("n")
    expect(page.locator(".pager [aria-current]")).to_have_text("2")
    page.wait_for_load_state()
    page.keyboard.press("/")
    page.keyboard.type("merge")
    page.keyboard.press("Enter")
    expect(page.locator(".chosen")).to_contain_text("merge")


def test_terminal_and_turns_are_in_step_both_ways(watched: Watched):
    page = watched.open(f"/demo/run?id={RUN}#turn-4")
    expect(page.locator(".turn.now")).to_have_attribute("id", "turn-4")
    time = "async () => Math.round(10 * await depthkitPlayer.getCurrentTime()) / 10"
    start = float(page.locator("#turn-6").get_attribute("data-at") or 0)
    page.wait_for_function("async () => (await depthkitPlayer.getDuration()) > 1")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".turn.now")).to_have_attribute("id", "turn-6")
    page.wait_for_function(
        f"async () => Math.abs(await depthkitPlayer.getCurrentTime() - {start}) < 0.3"
    )
    assert page.url.endswith("#turn-6")
    # and from the terminal to the turns
    page.evaluate("depthkitPlayer.seek(3.6)")
    expect(page.locator(".turn.now")).to_have_attribute("id", "turn-3")
    page.evaluate("depthkitPlayer.seek(0); depthkitPlayer.play()")
    page.wait_for_function(f"async () => (await ({time})()) > 0.1")
    expect(page.locator(".turn.now")).to_have_attribute("id", "turn-2")
    assert "osprey-45" in page.locator(".player").inner_text()


def test_a_search_in_a_run_counts_and_leads_to_each_match(watched: Watched):
    page = watched.open(f"/demo/run?id={RUN}")
    page.keyboard.press("/")
    page.keyboard.type("osprey-45")
    page.keyboard.press("Enter")
    expect(page.locator(".matches")).to_have_text("3 matches in 2 turns")
    expect(page.locator("mark.now")).to_have_count(1)
    page.keyboard.press("n")
    expect(page.locator(".turn.now")).to_have_attribute("id", "turn-2")
    page.keyboard.press("p")
    expect(page.locator(".turn.now")).to_have_attribute("id", "turn-1")


def test_a_search_across_runs_leads_to_the_turn(watched: Watched):
    page = watched.open("/demo/search")
    page.get_by_label("Find in all trajectories").fill("osprey-45")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".found")).to_contain_text("Searched 188 of 188 runs")
    page.get_by_role("link", name="turn 2, commands").first.click()
    expect(page.locator(".turn.now")).to_have_attribute("id", "turn-2")


def test_labels_and_notes_stay_and_filter(watched: Watched, corpora: dict[str, Path]):
    page = watched.open(f"/demo/run?id={RUN}")
    page.get_by_label("New label").fill("odd <i>end</i>")
    page.get_by_role("button", name="Add label").click()
    expect(page.locator(".labels .label")).to_have_text("odd <i>end</i>")
    page.get_by_text("Note", exact=True).click()
    page.get_by_label("New note").fill("one\ntwo")
    page.get_by_role("button", name="Add note").click()
    expect(page.locator(".marks .notes")).to_contain_text("two")
    page.get_by_role("link", name="all runs with notes").click()
    expect(page.locator("h1")).to_contain_text("1 of 188")
    page.get_by_role("link", name="Take back any note").click()
    page.get_by_label("Text in a note").fill("TWO")
    page.locator(".filters").get_by_role("button", name="Apply").first.click()
    assert query(page) == {"note": ["TWO"]}
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody .noted")).to_have_attribute("title", "one␊two")
    page.goto(f"{watched.address}/demo/tasks?note=two")
    expect(page.locator("tbody a.row")).to_have_text("control-10-s1")
    page.goto(f"{watched.address}/demo/overview?note=two")
    expect(page.locator("#chosen")).to_have_text("1 of 12 tasks chosen")
    page.locator("#brush").get_by_label("label").select_option("odd <i>end</i>")
    expect(page.locator("#chosen")).to_have_text("1 of 12 tasks chosen")
    assert query(page) == {"note": ["two"], "label": ["odd <i>end</i>"]}
    page.get_by_label("Text in a note").fill("three")
    page.keyboard.press("Enter")
    expect(page.locator("#chosen")).to_have_text("0 of 12 tasks chosen")
    page.go_back()
    expect(page.locator("#chosen-tasks tbody tr")).to_have_count(1)
    page.goto(f"{watched.address}/demo/search?note=two&find=osprey-45")
    expect(page.locator(".found")).to_contain_text("1 of 1 runs")
    page.goto(f"{watched.address}/demo/run?id={RUN}")
    page.locator(".labels .label").click()
    expect(page.locator("h1")).to_contain_text("1 of 188")
    page.locator("a.row").click()
    page.get_by_role("button", name="Remove label odd").click()
    expect(page.locator(".labels")).to_have_count(0)
    page.get_by_role("button", name="Remove note one").click()
    expect(page.locator(".notes")).to_have_count(0)
    assert (corpora["demo"] / "labels.jsonl").read_text().count("\n") == 4


def test_a_brush_chooses_tasks_everywhere_and_stands_in_the_address(watched: Watched):
    page = watched.open("/demo/overview")
    page.locator("#plot-plane canvas").first.wait_for()
    expect(page.locator("#chosen")).to_have_text("12 tasks")
    box = page.locator("#plot-D").bounding_box()
    assert box is not None
    page.locator("#plot-D").scroll_into_view_if_needed()
    box = page.locator("#plot-D").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.42, box["y"] + box["height"] * 0.5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.97, box["y"] + box["height"] * 0.6, steps=6)
    page.mouse.up()
    expect(page.locator("#chosen")).to_have_text("5 of 12 tasks chosen")
    expect(page.locator("#chosen-tasks tbody tr")).to_have_count(5)
    assert query(page) == {"D_min": ["5"], "D_max": ["99"]}
    assert overflow(page) <= 0
    page.reload()
    expect(page.locator("#chosen")).to_have_text("5 of 12 tasks chosen")
    page.locator("#open-tasks").click()
    expect(page.locator("h1")).to_contain_text("5 of 12")
    page.go_back()
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#chosen")).to_have_text("12 tasks")


def test_the_overview_compares_with_published_numbers(watched: Watched):
    page = watched.open("/demo/overview")
    expect(page.locator("#claims .score")).to_contain_text("settings agree")


def test_a_list_follows_a_corpus_that_grows(watched: Watched, corpora: dict[str, Path]):
    corpus = Corpus.open(corpora["growing"])
    before = len(corpus.run_ids())
    page = watched.open("/growing/runs")
    page.get_by_role("link", name="Follow live").click()
    expect(page.locator("h1")).to_have_text(f"Runs {before}")
    record = corpus.run_records()[0]
    corpus.append_run(record.model_copy(update={"run_id": "one-more"}))
    expect(page.locator("h1")).to_have_text(f"Runs {before + 1}")
    page.get_by_role("link", name="Turns", exact=True).click()
    assert query(page) == {"sort": ["-turns"], "live": ["1"]}


def test_an_empty_corpus_says_what_to_do(watched: Watched):
    page = watched.open("/empty/overview")
    expect(page.locator(".empty")).to_contain_text("depthkit ladder")
    page = watched.open("/empty/runs")
    expect(page.locator(".empty")).to_contain_text("depthkit ingest")


def test_a_broken_corpus_says_what_is_wrong(watched: Watched):
    page = watched.open("/broken/tasks")
    expect(page.locator(".problem")).to_contain_text("runs.jsonl line")
    expect(page.locator(".problem")).to_contain_text("correct")
    expect(page.locator("tbody tr")).to_have_count(1)


@pytest.mark.parametrize("path", ["/demo/run?id=none", "/demo/task?dataset=a&task=b", "/demo/run"])
def test_what_is_not_there_is_said_and_leads_on(watched: Watched, path: str):
    page = watched.open(path)
    expect(page.locator(".empty")).to_contain_text("no such")


def test_two_runs_are_compared_from_the_page_of_one(watched: Watched):
    page = watched.open(f"/demo/run?id={RUN}")
    page.get_by_role("link", name="compare", exact=True).click()
    page.get_by_label("with").select_option(SAME)
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".found")).to_contain_text("They part at turn 11")
    expect(page.locator("tr.parts")).to_have_count(1)
    page.get_by_role("link", name="turn 11").first.click()
    assert page.url.endswith("#place-11")


def test_two_models_are_compared(watched: Watched):
    page = watched.open("/demo/compare")
    expect(page.locator("h1")).to_have_text("Two models")
    expect(page.locator("tbody tr").first).to_be_visible()
    expect(page.locator(".hint")).to_contain_text("no sample")


def test_reports_are_listed_with_their_parameters(watched: Watched):
    page = watched.open("/demo/reports")
    report = page.locator("#report-audit")
    report.get_by_text("Parameters").click()
    expect(report.get_by_label(re.compile("^corpus"))).to_have_value("demo")
    report.get_by_label(re.compile("^caps")).fill("many")
    report.get_by_role("button").click()
    expect(page.locator(".problem")).to_contain_text("caps is 'many', which is not")


def test_a_report_is_made_again_with_other_parameters_and_opened(watched: Watched):
    page = watched.open("/demo/reports")
    report = page.locator("#report-small")
    expect(report).to_contain_text("not made yet")
    report.get_by_text("Parameters").click()
    expect(report.locator("form")).to_contain_text("of the draw")
    report.get_by_label(re.compile("^seed")).fill("7")
    report.get_by_label(re.compile("^many")).select_option("true")
    report.get_by_role("button", name="Make it").click()
    expect(report.get_by_role("progressbar")).to_be_visible()
    # It says so by itself when it is done, with what was made of it.
    expect(report).to_contain_text("Made, 3 of 3 cells have run.")
    expect(report).to_contain_text("with seed = 7, many = true")
    report.get_by_text("Files").click()
    with page.expect_download() as download:
        report.get_by_role("link", name="index.html").click()
    assert download.value.suggested_filename == "small.html"
    report.get_by_role("link", name="Open it").click()
    expect(page.locator("body")).to_contain_text("seed 7 many True")
    page.get_by_role("link", name="All reports").click()
    expect(page.get_by_role("link", name="A small one")).to_be_visible()
