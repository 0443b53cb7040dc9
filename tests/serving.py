"""A dashboard as a person starts it, for the browser tests, and a page that notices everything."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from playwright.sync_api import Page

DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
AXE = (files("axe_playwright_python") / "axe.min.js").read_text()

# A rule's impact is that of all its findings: what would not count need not be looked for.
_SERIOUS = """async () => {
    const minor = axe._audit.rules.filter((rule) => ["minor", "moderate"].includes(rule.impact));
    const rules = Object.fromEntries(minor.map((rule) => [rule.id, {enabled: false}]));
    return await axe.run(document, {rules, resultTypes: ["violations"], preload: false});
}"""


@contextmanager
def dashboard(
    corpora: Sequence[str | Path], *more: str, checkout: Path | None = None
) -> Iterator[str]:
    """Its address, as it prints it; ended when the block is left.

    Args:
        corpora: What it shows.
        more: Arguments.
        checkout: Where it is started: what the page Reports is about.
    """
    named = [part for corpus in corpora for part in ("--corpus", str(corpus))]
    command = [sys.executable, "-m", "depthkit", "dashboard", *named, "--port", "0", *more]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=checkout
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if found := re.search(r"http://\S+", line):
                    yield found[0].rstrip("/")
                    break
            else:
                raise AssertionError("the dashboard did not start")
        finally:
            process.terminate()
            process.wait(20)


def wait_until_read(address: str, key: str) -> None:
    """Until the dashboard has read a corpus."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if httpx.get(f"{address}/{key}/data/state").json()["read"]:
            return
        time.sleep(0.1)
    raise AssertionError(f"{key} is not read")


class Watched:
    """A page that notes whatever it asks for, and whatever goes wrong or pops up."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.outside: list[str] = []
        self.complaints: list[str] = []
        own = urlsplit(address).netloc
        within = ("data:", f"blob:{address}/")
        page.on(
            "request",
            lambda request: (
                self.outside.append(request.url)
                if urlsplit(request.url).netloc != own and not request.url.startswith(within)
                else None
            ),
        )
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.on("popup", lambda popup: self.complaints.append(f"popup: {popup.url}"))
        page.on(
            "console",
            lambda message: (
                self.complaints.append(f"{message.type}: {message.text}")
                if message.type in ("error", "warning")
                else None
            ),
        )

    def open(self, path: str) -> Page:
        self.page.goto(self.address + path)
        return self.page

    def check(self) -> None:
        """Nothing was asked of others, nothing complained."""
        assert self.outside == []
        assert self.complaints == []


def serious(page: Page) -> list[str]:
    """Findings of axe-core of impact serious or critical, and the elements they are about."""
    if page.evaluate("typeof axe === 'undefined'"):
        page.evaluate(AXE)
    found: dict[str, Any] = page.evaluate(_SERIOUS)
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


def overflow(page: Page) -> int:
    """Pixels by which the page is wider than the window, to which plots adapt in a moment."""
    for _ in range(50):
        wider = int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))
        if wider <= 0:
            break
        page.wait_for_timeout(100)
    return wider
