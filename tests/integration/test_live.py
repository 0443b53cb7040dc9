"""The dashboard follows a ladder while it really runs: containers, terminus-2, a budget."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from serving import AXE, DESK, Watched, dashboard, overflow, serious, wait_until_read
from toys import reply, write_toy

from depthkit.corpus import Corpus
from depthkit.trials.budget import Price
from depthkit.trials.scripted.policies import Messages
from depthkit.trials.scripted.server import ScriptedServer

pytestmark = [pytest.mark.docker, pytest.mark.browser]

PRICE = Price(1e-5, 1e-5, 1e-5)
MODELS = """\
["billed"]
litellm = "openai/billed"
base_url = "{url}"
context_tokens = 100000
max_output_tokens = 400
input_usd_per_mtok = 10
cached_usd_per_mtok = 10
output_usd_per_mtok = 10
"""


class Gated:
    """A policy that looks once, then does all there is; run by run as it is let."""

    def __init__(self) -> None:
        self.gate = threading.Semaphore(0)

    def __call__(self, messages: Messages) -> str:
        turn = sum(message.get("role") == "assistant" for message in messages)
        if turn == 0:
            assert self.gate.acquire(timeout=120)
            return reply("ls")
        return reply("echo done > /app/out", complete=True)


@pytest.fixture
def gated() -> Iterator[tuple[Gated, ScriptedServer]]:
    policy = Gated()
    with ScriptedServer({"billed": policy}, prices=PRICE) as server:
        yield policy, server
        policy.gate.release(100)


def money(text: str) -> float:
    found = re.search(r"\$([\d.]+) of \$2\.00 spent", text)
    assert found is not None, text
    return float(found[1])


def test_the_list_of_runs_follows_a_ladder_and_its_budget(
    browser: Browser, tmp_path: Path, gated: tuple[Gated, ScriptedServer]
) -> None:
    policy, server = gated
    task = write_toy(tmp_path / "set" / "toy")
    models = tmp_path / "models.toml"
    models.write_text(MODELS.format(url=server.base_url))
    corpus = Corpus.open_or_create(tmp_path / "growing")
    command = [
        *(sys.executable, "-m", "depthkit", "ladder", str(task), "--with-free"),
        *("--corpus", str(corpus.path), "--models", "billed", "--models-file", str(models)),
        *("--max-cost", "2", "--workers", "1"),
    ]
    with dashboard([corpus.path]) as address:
        wait_until_read(address, "growing")
        page = browser.new_page(viewport=DESK)
        page.set_default_timeout(60_000)
        page.add_init_script(AXE)
        watched = Watched(page, address)
        watched.open("/growing/runs")
        page.get_by_role("link", name="Follow live").click()
        block, rows = page.locator(".measuring"), page.locator("#list tbody tr")
        expect(block).to_contain_text("Nobody is measuring into this corpus now")
        page.evaluate("window.loadedOnce = true")

        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            # The first run waits for its model: nothing is spent, nothing is listed yet.
            expect(block).to_contain_text("$0.00 of $2.00 spent", timeout=120_000)
            expect(block).to_contain_text("toy__billed__free__1", timeout=120_000)
            expect(rows).to_have_count(0)
            assert serious(page) == []
            policy.gate.release()
            expect(rows).to_have_count(1, timeout=60_000)
            expect(block).not_to_contain_text("$0.00 of")
            first = money(block.inner_text())
            assert first > 0
            expect(rows.first).to_contain_text("passed")
            policy.gate.release(100)
            expect(block).to_contain_text("Nobody is measuring", timeout=120_000)
            printed, _ = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
        assert process.returncode == 0, printed
        runs = corpus.run_records()
        expect(rows).to_have_count(len(runs))
        expect(page.locator("h1")).to_have_text(f"Runs {len(runs)}")
        expect(page.locator(".provenance")).to_contain_text(f"{len(runs)} measured")
        assert page.evaluate("window.loadedOnce") is True
        assert len(runs) > 2
        assert overflow(page) <= 0
        page.close()
        watched.check()
