"""What tests on the engine share."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from faulty import KEY, KEY_ENV, made_here
from toys import write_toy

from depthkit.errors import DepthkitError
from depthkit.trials import engine


@pytest.fixture(scope="session", autouse=True)
def nothing_left_from_before() -> None:
    """Remove what killed processes left on this machine earlier, so that tests see their own."""
    with contextlib.suppress(DepthkitError):  # Without an engine, what needs one is left out.
        engine.clean()


# --- of the fault tests ---


@pytest.fixture
def model_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)


@pytest.fixture
def no_leftovers() -> Iterator[None]:
    """No test leaves a container, image, network or volume, whatever it breaks."""
    engine.clean()
    before = made_here(others=True)

    def left() -> dict[str, set[str]]:
        return {kind: now - before[kind] for kind, now in made_here().items()}

    yield
    # Another process' volume or network may be just being made, so that nobody uses it yet.
    deadline = time.monotonic() + 60
    while any(left().values()) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert left() == {"containers": set(), "images": set(), "networks": set(), "volumes": set()}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A task whose image declares a volume, so that each container of it makes one."""
    task = write_toy(tmp_path / "set" / f"toy-{secrets.token_hex(3)}")
    with (task / "environment" / "Dockerfile").open("a") as dockerfile:
        dockerfile.write("VOLUME /scratch\n")
    return task
