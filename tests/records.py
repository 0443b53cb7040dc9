"""Records of a corpus, with what a test does not care about filled in."""

from __future__ import annotations

from typing import Any

from depthkit.model import Run, Segment, Task, Work


def run_of(run_id: str, **fields: Any) -> Run:
    given: dict[str, Any] = {
        "run_id": run_id,
        "dataset": "toys",
        "task_id": "toy",
        "model": "first",
        "attempt": 1,
        "purpose": "free",
        "verdict": "passed",
        "stop": "submitted",
        "turns": 7,
        "agent_minutes": 1.5,
        "context_tokens": 4000,
        "provenance": "scripted",
    }
    return Run(**given | fields)


def task_of(task_id: str, *lines: int | None, **fields: Any) -> Task:
    segments = tuple(
        Segment(
            index=number,
            name=f"s{number}",
            work=None if n is None else Work(lines=n, tokens=10 * n, chars=40 * n),
        )
        for number, n in enumerate(lines, start=1)
    )
    given = {"dataset": "toys", "task_id": task_id, "segments": segments, "provenance": "scripted"}
    return Task(**given | fields)
