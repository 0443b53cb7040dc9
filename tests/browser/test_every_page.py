"""What holds of every page, and what only long runs and marked tasks have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from long_runs import CALLS, SEGMENTS, SUMMARIZED, write_long_runs
from playwright.sync_api import Browser, expect
from serving import DESK, PHONE, Watched, dashboard, overflow, serious, wait_until_read

pytestmark = pytest.mark.browser

TASKS = Path(__file__).parents[1] / "tasks"
RUN = "control-10-s1__scripted-merge__cap10__1__f386093946e91b"
SAME = "control-10-s1__scripted-step__free__1__f386093968bb85"
THEMES: tuple[Literal["light", "dark"], ...] = ("dark", "light")
PAGES = {
    "overview": "/demo/overview",
    "tasks": "/demo/tasks",
    "filtered tasks": "/long/tasks?q=depot",
    "task": "/demo/task?dataset=control&task=control-10-s1",
    "marked task": "/long/task?dataset=tasks&task=depot",
    "runs": "/demo/runs",
    "run": f"/demo/run?id={RUN}&q=osprey-45",
    "run of segments": f"/long/run?id={SEGMENTS}",
    "summarized run": f"/long/run?id={SUMMARIZED}",
    "file": f"/long/file?id={SUMMARIZED}&name=agent/{CALLS[0]}",
    "search": "/demo/search?find=osprey-45",
    "two runs": f"/demo/compare?a={RUN}&b={SAME}",
    "two models": "/demo/compare",
    "reports": "/demo/reports",
    "nothing": "/demo/run?id=none",
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    long = write_long_runs(tmp_path_factory.mktemp("corpora") / "long")
    with dashboard(["demo", long.path], "--tasks", str(TASKS)) as found:
        for name in ("demo", "long"):
            wait_until_read(found, name)
        yield found


@pytest.fixture(scope="module")
def shared(browser: Browser, address: str) -> Iterator[Watched]:
    """One page for what only looks."""
    page = browser.new_page(viewport=DESK)
    yield Watched(page, address)
    page.close()


@pytest.fixture
def watched(shared: Watched) -> Iterator[Watched]:
    shared.page.set_viewport_size(DESK)
    yield shared
    shared.check()


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES.keys())
def test_axe_finds_nothing_serious_and_the_page_fits_a_phone(watched: Watched, path: str):
    for theme in THEMES:
        watched.page.goto("about:blank")  # The overview draws itself anew in another theme.
        watched.page.emulate_media(color_scheme=theme)
        page = watched.open(path)
        expect(page.locator("h1")).to_be_visible()
        expect(page.locator(".provenance")).to_contain_text(re.compile(r"\d scripted"))
        expect(page.locator("[data-claims]")).to_have_count(0)
        assert serious(page) == [], theme
    assert overflow(page) <= 0
    page.set_viewport_size(PHONE)
    assert overflow(page) <= 0
    # What is wider than the phone lies in a box that a finger can scroll.
    assert page.evaluate(OUTSIDE) == []


def test_axe_finds_nothing_serious_in_the_panel_application(watched: Watched):
    page = watched.open("/panel")
    page.locator(".bk-Figure canvas").first.wait_for()
    page.get_by_text("tasks chosen").wait_for()
    assert serious(page) == []


OUTSIDE = """() => Array.from(document.querySelectorAll("main *")).filter((element) => {
  if (element.getBoundingClientRect().right <= innerWidth + 1) return false;
  for (let box = element.parentElement; box; box = box.parentElement) {
    if (["auto", "scroll", "hidden"].includes(getComputedStyle(box).overflowX)) return false;
  }
  return true;
}).map((element) => element.outerHTML.slice(0, 120))"""


def test_key_steps_and_events_are_marked_in_the_reference_solution(watched: Watched):
    page = watched.open("/long/task?dataset=tasks&task=depot")
    second = page.locator("details.code", has_text="steps/s2/solution/solve.sh")
    event = second.locator(".marked.event")
    expect(event).to_contain_text("event 1: restart of the directory service")
    expect(event).to_contain_text("pgrep -x slapd")
    expect(event).not_to_contain_text("moduleload")
    expect(second.locator(".marked.key-step")).to_contain_text("as_admin ldapdelete")
    expect(second.locator(".mark-list li").first).to_contain_text("lines 13 to 17")
    second.get_by_role("link", name="key step").click()
    assert re.search(r"#mark-2-\d+$", page.url)
    script = (TASKS / "depot/steps/s2/solution/solve.sh").read_text()
    shown = second.locator("pre").evaluate(
        "(pre) => { const copy = pre.cloneNode(true);"
        " copy.querySelectorAll('.mark-name').forEach((name) => name.remove());"
        " return copy.textContent; }"
    )
    assert shown.splitlines()[: len(script.splitlines())] == script.splitlines()


def test_recordings_of_segments_play_one_after_another_in_step_with_the_turns(watched: Watched):
    page = watched.open(f"/long/run?id={SEGMENTS}")
    expect(page.locator(".turn")).to_have_count(4)
    expect(page.locator(".spent").first).to_have_text("1,200 in · 50 out · $0.0125")
    expect(page.locator(".curves figcaption")).to_contain_text(["Context tokens", "Cost so far"])
    expect(page.locator("li.segment")).to_have_text(["Segment: s1", "Segment: s2"])
    page.wait_for_function("async () => (await depthkitPlayer.getDuration()) > 15")
    starts = [float(t.get_attribute("data-at") or -1) for t in page.locator(".turn").all()]
    assert starts == sorted(starts)
    assert starts[0] < 1 < starts[1] < 7.5 < 8.5 <= starts[2] < starts[3]
    for _ in range(4):
        page.keyboard.press("j")
    expect(page.locator(".turn.now")).to_have_attribute("id", "turn-4")
    expect(page.locator(".player")).to_contain_text("first-of-2")
    expect(page.locator(".player")).not_to_contain_text("of-1")
    # and from the terminal to the turns, back into the first segment
    page.evaluate("depthkitPlayer.seek(7)")
    expect(page.locator(".turn.now")).to_have_attribute("id", "turn-2")
    expect(page.locator(".player")).to_contain_text("second-of-1")
    expect(page.locator(".verifier summary")).to_contain_text(
        ["test-stdout.txt of s1", "test-stdout.txt of s2"]
    )


def test_continuations_and_summarizations_are_followed(watched: Watched):
    page = watched.open(f"/long/run?id={SUMMARIZED}")
    typed = page.locator(".turn .commands code")
    expect(typed).to_have_text(["ls", "make", "make check", "make install"])
    between = page.locator("li.summarization")
    expect(between).to_contain_text("Context summarized")
    expect(page.locator("li:has(+ #turn-3)")).to_have_class(re.compile("summarization"))
    expect(page.get_by_role("link", name="1 summarization")).to_be_visible()
    expect(between.get_by_role("link")).to_have_count(3)
    between.get_by_role("link", name=CALLS[1]).click()
    expect(page.locator("main")).to_contain_text(f"said in {CALLS[1]}")
    page.go_back()
    expect(page.locator(".turn")).to_have_count(4)
