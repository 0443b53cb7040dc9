"""What several unit tests compute once."""

from __future__ import annotations

import pytest
from task_files import single, stepped

from depthkit.artifacts.claims import Claims, claims
from depthkit.corpus import Corpus
from depthkit.reports.imports import without_grammars

without_grammars()  # before any test module imports nbformat


@pytest.fixture(scope="session")
def paper_claims() -> Claims:
    """Every published number beside that of the bundled corpus ``paper``."""
    return claims(Corpus.open("paper"))


__all__ = ["paper_claims", "single", "stepped"]
