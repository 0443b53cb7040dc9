"""Trials written and taken into a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fake_trials import write_trial

from depthkit.corpus.ingest import IngestReport, ingest
from depthkit.model import Run


def take(tmp_path: Path, **options: Any) -> IngestReport:
    return ingest([tmp_path / "job"], tmp_path / "corpus", **options)


def take_one(tmp_path: Path, outcome: dict[str, Any] | None, **files: Any) -> Run:
    write_trial(tmp_path / "job" / "trial", outcome, **files)
    report = take(tmp_path)
    assert report.bad == []
    (taken,) = report.added
    return taken.run
