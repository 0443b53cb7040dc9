"""Merged tasks are measured downward, two runs a cap, until both fail (Appendix H)."""

from __future__ import annotations

import pytest

from depthkit.model import Run
from depthkit.protocol import ABOVE, merged_depth, merged_runs
from depthkit.trials.forecast import most_runs, pending


def run(cap: int, attempt: int, passed: bool | None, **changes: object) -> Run:
    values: dict[str, object] = {
        "run_id": f"r-{cap}-{attempt}-{passed}",
        "dataset": "d",
        "task_id": "t",
        "model": "m",
        "cap": cap,
        "attempt": attempt,
        "purpose": "merged",
        "verdict": "none" if passed is None else "passed" if passed else "failed",
        "stop": "model_error" if passed is None else "submitted",
        "turns": 1,
        "provenance": "scripted",
    }
    return Run.model_validate(values | changes)


def world(passes_from: int, original: int) -> tuple[list[int], int | None]:
    """Caps run in order, and D, where a model passes at this cap and above."""
    history: list[Run] = []
    while planned := merged_runs(history, "m", original=original):
        for each in planned:
            assert each.purpose == "merged"
            history.append(run(each.cap or 0, each.attempt, (each.cap or 0) >= passes_from))
    return [each.cap or 0 for each in history], merged_depth(history, "m", original=original)


@pytest.mark.parametrize(
    ("passes_from", "original", "caps", "depth"),
    [
        (10, 10, [10, 10, 5, 5], 10),
        (5, 10, [10, 10, 5, 5, 3, 3], 5),
        (20, 10, [10, 10], ABOVE),
        (1, 3, [3, 3, 2, 2, 1, 1], 1),
        (80, ABOVE, [80, 80, 40, 40], 80),
        (99, ABOVE, [80, 80], ABOVE),
    ],
)
def test_caps_are_tried_from_the_original_d_downward(
    passes_from: int, original: int, caps: list[int], depth: int
) -> None:
    assert world(passes_from, original) == (caps, depth)


def test_both_runs_of_a_cap_are_made_and_one_pass_is_enough() -> None:
    history = [run(5, 1, True)]
    assert [(p.cap, p.attempt) for p in merged_runs(history, "m", original=5)] == [(5, 2)]
    assert merged_depth(history, "m", original=5) is None
    history.append(run(5, 2, False))
    assert [(p.cap, p.attempt) for p in merged_runs(history, "m", original=5)] == [(3, 1), (3, 2)]


def test_a_run_without_a_verdict_is_made_again() -> None:
    assert [p.attempt for p in merged_runs([run(5, 1, None)], "m", original=5)] == [1, 2]


def test_only_merged_runs_of_the_model_count() -> None:
    others = [run(5, 1, True, purpose="ladder"), run(5, 1, True, model="n")]
    assert len(merged_runs(others, "m", original=5)) == 2


def test_the_scheduler_asks_within_the_caps_of_the_task() -> None:
    planned = pending([], ["m", "n"], "merged", caps=[1, 2, 3])
    assert {(each.model, each.cap) for each in planned} == {("m", 3)}
    assert [each.cap for each in most_runs(("d", "t"), [], ["m"], "merged", caps=[1, 2])] == [
        2, 2, 1, 1,
    ]  # fmt: skip
