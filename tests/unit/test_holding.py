"""What a process that measures says of itself to whoever looks from outside."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.experiments.status import status, status_lines
from depthkit.trials.budget import Budget
from depthkit.trials.landing import Hold, measuring


def test_the_budget_of_a_ladder_is_told_as_it_is_spent(tmp_path: Path):
    corpus = Corpus.open_or_create(tmp_path / "corpus", models=["first"])
    assert measuring(corpus) is None
    budget = Budget(2.0)
    with Hold(corpus, budget) as hold:
        assert "It has spent $0.00 of its --max-cost $2.00." in status_lines(status(corpus))
        budget.settle(0.0, 0.5)
        hold.say("")
        assert "It has spent $0.50 of its --max-cost $2.00." in status_lines(status(corpus))
    assert measuring(corpus) is None


def test_without_file_locks_nobody_measures_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    corpus = Corpus.open_or_create(tmp_path / "corpus", models=["first"])
    with Hold(corpus):
        pass

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    assert measuring(corpus) is None
    with pytest.raises(DepthkitError, match="its file system has no locks"), Hold(corpus):
        pass


def test_without_a_budget_none_is_told(tmp_path: Path):
    corpus = Corpus.open_or_create(tmp_path / "corpus", models=["first"])
    with Hold(corpus):
        assert not [line for line in status_lines(status(corpus)) if "--max-cost" in line]
