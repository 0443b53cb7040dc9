"""Runs for the tests of the protocol."""

from __future__ import annotations

from typing import Any

from depthkit.model import Run


def a_run(
    model: str = "first",
    cap: int | None = None,
    attempt: int = 1,
    verdict: str = "failed",
    **fields: Any,
) -> Run:
    return Run(
        **{
            "run_id": f"{model}-{cap}-{attempt}",
            "dataset": "set",
            "task_id": "task",
            "model": model,
            "cap": cap,
            "attempt": attempt,
            "purpose": "free" if cap is None else "ladder",
            "verdict": verdict,
            "stop": "infrastructure" if verdict == "none" else "submitted",
            "provenance": "scripted",
            **fields,
        }
    )
