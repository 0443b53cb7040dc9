"""What tests share: when containers and browsers are to be had, and a browser."""

from __future__ import annotations

import functools
import gc
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import docker.errors
import pytest
from playwright.sync_api import Browser, expect, sync_playwright

# How long a page may take says nothing here: on a busy machine the usual five seconds can go by.
expect.set_options(timeout=60_000)

ROOT = Path(__file__).parent.parent
BASE_IMAGE = "depthkit/base:1"


@functools.cache
def _lacks_docker() -> str | None:
    """Why no container can be run here, or None."""
    try:
        client = docker.from_env(timeout=20)
    except docker.errors.DockerException:
        return "no Docker engine answers (env/engine.sh up starts one)"
    try:
        client.images.get(BASE_IMAGE)
    except docker.errors.ImageNotFound:
        return f"the image {BASE_IMAGE} is not there (env/base/build.sh makes it)"
    finally:
        client.close()
    return None


@functools.cache
def _chromium() -> str | None:
    """The path of a Chromium or Chrome, or None."""
    found = subprocess.run([ROOT / "env/browser.sh"], capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else None


@functools.cache
def _lacks_browser() -> str | None:
    """Why no browser can be driven here, or None."""
    return None if _chromium() else "there is no Chromium or Chrome (env/browser.sh looks for one)"


def pytest_collection_finish() -> None:
    """What is imported by now stays; looking for garbage in it again and again takes long.

    What tests make is small beside it, and need not be looked through so often either.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out what cannot run here; under `make test` it fails instead, so that nothing hides."""
    for marker, lacks in (("docker", _lacks_docker), ("browser", _lacks_browser)):
        if item.get_closest_marker(marker) and (reason := lacks()):
            if os.environ.get("DEPTHKIT_NO_SKIP"):
                pytest.fail(reason, pytrace=False)
            pytest.skip(reason)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One headless Chromium for the browser tests of a module; each test opens pages of its own.

    Not for the session: as long as it lives its event loop runs in this thread, and asyncio.run
    cannot.

    For tests marked ``browser``.
    """
    # Starting a process for each page costs more than many a page.
    flags = ["--renderer-process-limit=1"]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")  # Chromium's sandbox refuses root
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=_chromium(), args=flags)
        yield started
        started.close()
