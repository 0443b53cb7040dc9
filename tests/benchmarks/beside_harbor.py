"""From a click in a list to the rendered list of turns, in the dashboard and in ``harbor view``."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx
from browsing import chromium
from playwright.sync_api import Locator, Page, sync_playwright

from depthkit.corpus import Corpus

_PAINTED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
_PORTS = "18600-18699"


def write_job(corpus: Corpus, run_id: str, jobs: Path) -> str:
    """A job folder of Harbor with this run's trial in it; returns the job's name."""
    trial = jobs / "job" / run_id
    shutil.copytree(corpus.trial_dir(run_id), trial)
    demo = Corpus.open("demo").path / "trials"
    result = json.loads((sorted(demo.iterdir())[0] / "result.json").read_text())
    result |= {"trial_name": run_id, "task_name": "long"}
    (trial / "result.json").write_text(json.dumps(result))
    (jobs / "job/config.json").write_text('{"job_name": "job"}')
    return "job"


@contextmanager
def harbor_view(jobs: Path) -> Iterator[str]:
    """Its address."""
    harbor = Path(sys.executable).with_name("harbor")
    quiet = os.environ | {"HARBOR_TELEMETRY": "0", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [str(harbor), "view", str(jobs), "--jobs", "--no-build", "--port", _PORTS]
    log = jobs.with_name("harbor-view.log")
    with (
        log.open("w") as out,
        subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=quiet) as process,
    ):
        try:
            deadline = time.monotonic() + 120
            while "http://127.0.0.1:" not in log.read_text():
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline
                time.sleep(0.1)
            port = log.read_text().split("http://127.0.0.1:")[1][:5]
            address = f"http://127.0.0.1:{port}"
            while True:
                try:
                    httpx.get(f"{address}/api/health").raise_for_status()
                    break
                except httpx.HTTPError:
                    assert time.monotonic() < deadline
                    time.sleep(0.1)
            yield address
        finally:
            process.terminate()


def clicked(page: Page, open_list: Callable[[], Locator], last: str, times: int = 7) -> list[float]:
    """Milliseconds from each click until the last turn is there and a frame was drawn after it."""
    found = []
    for _ in range(times):
        row = open_list()
        row.wait_for()
        began = time.perf_counter()
        row.click(no_wait_after=True)
        page.locator(last).wait_for(state="attached")
        page.evaluate(_PAINTED)
        found.append(1000 * (time.perf_counter() - began))
    return found


def beside_harbor(corpus: Corpus, run_id: str, turns: int, dashboard: str) -> dict[str, object]:
    """Medians and their ratio, on the same trial, in one browser.

    Args:
        corpus: Holds the trial.
        run_id: The run.
        turns: How many it has.
        dashboard: Address of the corpus in a dashboard that has read it.
    """
    jobs = corpus.path.with_name("jobs")
    write_job(corpus, run_id, jobs)
    browser_path, flags = chromium()
    with harbor_view(jobs) as harbor, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=flags)
        page = browser.new_page(viewport={"width": 1280, "height": 900})

        def in_dashboard() -> Locator:
            page.goto(f"{dashboard}/runs?q={quote(run_id)}")
            return page.locator("a.row").first

        def in_harbor() -> Locator:
            page.goto(f"{harbor}/jobs/job")
            page.get_by_role("tab", name="Rollouts").click()
            return page.locator("tbody tr", has_text=run_id).first

        ours = statistics.median(clicked(page, in_dashboard, f"#turn-{turns}"))
        # The first step is the instruction.
        theirs = statistics.median(clicked(page, in_harbor, f'text="#{turns + 1}"'))
        browser.close()
    return {
        "click to turn list, median ms": round(ours),
        "click to turn list, harbor view, median ms": round(theirs),
        "click to turn list, ratio to harbor view": round(ours / theirs, 2),
    }
