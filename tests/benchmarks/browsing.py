"""In a browser: how long after a brush all linked views show it, and twenty sessions at once."""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from playwright.async_api import Browser as AsyncBrowser
from playwright.async_api import async_playwright
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[2]
DESK = {"width": 1280, "height": 900}
SESSIONS = 20
PAUSE = (1.0, 4.0)
"""Seconds that a person looks at a page before the next click."""

# From the end of the gesture, as the browser stamps it, until the table and all four plots have
# been drawn anew and a frame with them has been shown.
_WATCH = """() => {
    const views = [];
    for (const view of Bokeh.index) if (view.model.name && view.frame) views.push(view);
    let began = 0, filled = 0, painted = new Map();
    window.took = null;
    window.addEventListener("pointerup", (event) => {
        [began, filled, window.took] = [event.timeStamp, 0, null];
        painted = new Map();
    }, true);
    const look = () => {
        if (window.took !== null || !filled) return;
        if (!views.every((view) => painted.get(view) >= began)) return;
        const shown = (now) => { window.took ??= now - began; };
        requestAnimationFrame(() => requestAnimationFrame(shown));
    };
    new MutationObserver(() => { filled = performance.now(); look(); })
        .observe(document.querySelector("#chosen-tasks tbody"), { childList: true });
    for (const view of views) {
        const paint = view.paint.bind(view);
        view.paint = (...given) => {
            paint(...given);
            if (filled) { painted.set(view, performance.now()); look(); }
        };
    }
    return views.map((view) => view.model.name);
}"""

_ANSWERED = """() => {
    const [entry] = performance.getEntriesByType("navigation");
    return entry.responseEnd - entry.requestStart;
}"""


def chromium() -> tuple[str, list[str]]:
    """Path of a browser, and the flags that it needs here."""
    found = subprocess.run([ROOT / "env/browser.sh"], check=True, capture_output=True, text=True)
    return found.stdout.strip(), ["--no-sandbox"] if os.geteuid() == 0 else []


def _drag(page: Page, plot: str, start: tuple[float, float], end: tuple[float, float]) -> float:
    """Milliseconds from the end of a drag in a plot until every view shows what it chose."""
    # A view that has nothing new to show is not drawn, so each begins from all tasks.
    page.get_by_role("button", name="Clear").click()
    box = page.locator(f"#plot-{plot}").bounding_box()
    assert box is not None
    place = [(box["x"] + box["width"] * x, box["y"] + box["height"] * y) for x, y in (start, end)]
    page.evaluate("() => { window.took = null; }")
    page.mouse.move(*place[0])
    page.mouse.down()
    page.mouse.move(*place[1], steps=5)
    page.mouse.up()
    page.wait_for_function("() => window.took !== null")
    return float(page.evaluate("window.took"))


def brushes(dashboard: str, times: int = 6) -> dict[str, object]:
    """Brush in each plot of the overview, each time elsewhere.

    Args:
        dashboard: Address of a corpus in a dashboard that has read it.
        times: Brushes in each plot.
    """
    path, flags = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        page = browser.new_page(viewport=DESK)
        page.goto(f"{dashboard}/overview")
        page.locator("#chosen-tasks tbody tr").first.wait_for()
        page.locator("#plots").scroll_into_view_if_needed()
        assert len(page.evaluate(_WATCH)) == 4
        took: dict[str, list[float]] = {}
        for plot in ("plane", "D", "N", "W"):
            for n in range(times):
                left, right = 0.25 + 0.05 * n, 0.6 + 0.05 * n
                took.setdefault(plot, []).append(
                    _drag(page, plot, (left, 0.2 + 0.03 * n), (right, 0.7))
                )
        marks = page.evaluate(
            "Number(document.querySelector('#chosen').textContent"
            ".match(/of ([\\d,]+)/)[1].replaceAll(',', ''))"
        )
        browser.close()
    every = [each for found in took.values() for each in found]
    return {
        "brush, tasks in the plots": marks,
        "brush to all linked views, median ms": round(statistics.median(every)),
        "brush to all linked views, worst ms": round(max(every)),
        "brush in the plane, median ms": round(statistics.median(took["plane"])),
    }


async def _session(
    browser: AsyncBrowser, dashboard: str, paths: Sequence[str], seed: int
) -> list[tuple[float, float]]:
    """One person, in a window of their own, page after page.

    Returns:
        Milliseconds of each until it was there, and until the server had answered.
    """
    draw = random.Random(seed)
    context = await browser.new_context(viewport=DESK)
    page = await context.new_page()
    page.set_default_timeout(120_000)
    await asyncio.sleep(draw.uniform(0, PAUSE[1]))
    found = []
    for path in paths:
        began = time.perf_counter()
        await page.goto(dashboard + path, wait_until="domcontentloaded")
        await page.locator("main h1").first.wait_for()
        took = 1000 * (time.perf_counter() - began)
        found.append((took, float(await page.evaluate(_ANSWERED))))
        await asyncio.sleep(draw.uniform(*PAUSE))
    # It stays open, and follows the list.
    await page.goto(f"{dashboard}/runs?live=1", wait_until="domcontentloaded")
    return found


async def _sessions(dashboard: str, paths: Sequence[str], pages: int) -> list[tuple[float, float]]:
    path, flags = chromium()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=flags)
        draw = random.Random(0)
        people = [
            _session(browser, dashboard, draw.sample(paths, pages), seed)
            for seed in range(SESSIONS)
        ]
        found = await asyncio.gather(*people)
        await browser.close()
    return [each for times in found for each in times]


def sessions(dashboard: str, paths: Sequence[str], pages: int = 4) -> dict[str, object]:
    """Twenty windows of a browser, each with storage of its own, in which people go through pages.

    Args:
        dashboard: Address of a corpus in a dashboard that has read it.
        paths: Pages, drawn for each.
        pages: How many each looks at.
    """
    shown, answered = zip(*asyncio.run(_sessions(dashboard, paths, pages)), strict=True)
    return {
        "twenty sessions, pages": len(shown),
        "twenty sessions, answer of the server, median ms": round(statistics.median(answered)),
        "twenty sessions, page shown, median ms": round(statistics.median(shown)),
    }


async def _panel(address: str) -> float:
    path, flags = chromium()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=flags)

        async def one() -> None:
            context = await browser.new_context(viewport=DESK)
            page = await context.new_page()
            await page.goto(address, timeout=120_000)
            await page.get_by_text("tasks chosen").wait_for(timeout=120_000)

        began = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(SESSIONS)))
        took = time.perf_counter() - began
        await browser.close()
    return took


def panel_sessions(address: str) -> dict[str, object]:
    """Twenty sessions of the Panel application, which lives in the server, opened at once."""
    return {"twenty Panel sessions opened at once, s": round(asyncio.run(_panel(address)), 1)}
