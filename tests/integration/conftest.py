"""What tests on the engine share."""

from __future__ import annotations

import contextlib

import pytest

from depthkit.errors import DepthkitError
from depthkit.trials import engine


@pytest.fixture(scope="session", autouse=True)
def nothing_left_from_before() -> None:
    """Remove what killed processes left on this machine earlier, so that tests see their own."""
    with contextlib.suppress(DepthkitError):  # Without an engine, what needs one is left out.
        engine.clean()
