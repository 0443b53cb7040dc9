"""From what was measured of a task to the runs that give it (Appendix B, by ``protocol.py``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from depthkit.fitting.pins import Floats
from depthkit.fitting.targets import Targets
from depthkit.model import Purpose, Run
from depthkit.protocol import ABOVE, CAPS

FIRST, SECOND = "deepseek-v4.1-flash", "glm-5.3-flash"
"""The measurement models, in order."""


def new_run(task: Any, model: str, purpose: Purpose, attempt: int, **fields: Any) -> Run:
    """A fitted run; its id says which it is."""
    cap = fields.get("cap")
    kind = f"cap{cap}" if cap is not None and purpose == "ladder" else purpose
    if purpose == "merged":
        kind = f"merged{cap}"
    return Run(
        run_id=f"{task.task_id}.{model}.{kind}.{attempt}",
        dataset=task.dataset,
        task_id=task.task_id,
        model=model,
        purpose=purpose,
        attempt=attempt,
        provenance="fitted",
        **fields,
    )


def reached(k: int, passed: bool, rng: np.random.Generator) -> dict[str, int | None]:
    """Segments passed and where a run stopped; nothing of single-instruction tasks."""
    if k == 1:
        return {}
    done = k if passed else int(rng.integers(0, k))
    return {"segments_passed": done, "stop_segment": min(k, done + 1)}


def at_cap_ratios(
    targets: Targets, tasks: pd.DataFrame, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Command lines and output tokens at cap D over those without a cap, one each a task.

    Medians are as printed in Appendix D over the existing tasks that have such runs.
    """
    ran = runs_at_depth(tasks) & (tasks["dataset"] != "Ours").to_numpy()
    # Ratios of few lines are coarse: those of TMax stand off the median, and below it where W is 1
    chosen = rng.permutation(np.flatnonzero(ran))
    tmax = (tasks["dataset"] == "TMax").to_numpy()[chosen]
    coarse = chosen[tmax]
    coarse = coarse[np.argsort(tasks["W"].to_numpy()[coarse] > 1, kind="stable")]
    chosen = np.insert(coarse, len(coarse) // 2, chosen[~tmax])
    lines = _around(targets.number("section-D/command-lines"), chosen, len(tasks), 0.03, rng)
    single = ran & (tasks["D"] == 1).to_numpy()
    chosen = rng.permutation(np.flatnonzero(single))
    tokens = _around(targets.number("section-D/output-tokens"), chosen, len(tasks), 0.05, rng)
    lines[~ran] = np.exp(rng.normal(0.06, 0.2, int((~ran).sum())))
    tokens[~single] = np.exp(rng.normal(0.2, 0.2, int((~single).sum())))
    return lines, tokens


def runs_at_depth(tasks: pd.DataFrame) -> Any:
    """Whether the first model runs under cap D and passes there: D is its own, and below N."""
    solved = tasks["solved"].to_numpy()
    own = (tasks["D"] == tasks["D_first"]).to_numpy()
    return solved & own & (tasks["D"] < tasks["N"]).to_numpy()


def _around(median: float, chosen: Any, n: int, gap: float, rng: np.random.Generator) -> Floats:
    """``n`` ratios, with this median over the chosen, lowest first; no other within ``gap``."""
    found = np.full(n, median)
    half = (len(chosen) - 1) // 2
    found[chosen[:half]] = (median - gap) * np.exp(-np.abs(rng.normal(0, 0.2, half)))
    found[chosen[len(chosen) - half :]] = (median + gap) * np.exp(np.abs(rng.normal(0, 0.25, half)))
    return found


def measuring_runs(
    targets: Targets, tasks: pd.DataFrame, rng: np.random.Generator
) -> Iterator[Run]:
    """The free and ladder runs of all tasks, from which estimates give back N, R and D.

    Args:
        targets: The printed numbers.
        tasks: Columns of ``audit.free_runs``, with k.
        rng: Of what is free.
    """
    line_ratios, token_ratios = at_cap_ratios(targets, tasks, rng)
    for row, task in enumerate(tasks.itertuples()):
        free_lines, capped_lines = _lines(task, float(line_ratios[row]), rng)
        free_tokens = 50 * int(rng.integers(20, 200))
        yield from _free(task, free_lines, free_tokens, rng)
        if task.solved:
            capped_tokens = round(free_tokens * float(token_ratios[row]))
            yield from _ladder(task, capped_lines, capped_tokens, rng)


def _lines(task: Any, ratio: float, rng: np.random.Generator) -> tuple[int, int]:
    """Command lines of passing runs without a cap and at the smallest cap passed.

    Where no reference solution is released, W is what the latter counts.
    """
    if task.dataset != "TMax":
        free = 50 * max(1, round(task.W * float(rng.uniform(1, 1.6)) / 50))
        return free, max(1, round(free * ratio))
    capped = 1 if np.isnan(task.W) else int(task.W)
    exact = capped / ratio
    # Rounded away from the median, so that it stays on its side of it
    free = int(
        np.ceil(exact) if ratio < 1.05 else np.floor(exact) if ratio > 1.07 else round(exact)
    )
    return max(1, free), capped


def _free(task: Any, lines: int, tokens: int, rng: np.random.Generator) -> Iterator[Run]:
    order = ["n", "o"]
    if not (task.R == 1 and task.turns_n == task.turns_o) and rng.random() < 0.5:
        order.reverse()
    for attempt, which in enumerate(order, start=1):
        passed = bool(task.R == 1 or (which == "n" and task.solved))
        turns = int(getattr(task, f"turns_{which}"))
        # Without a reference solution, W counts the lines of this run where no cap was run
        own = lines
        if task.dataset == "TMax" and task.solved and task.D_first >= task.N and passed:
            own = int(task.W)
        yield new_run(
            task,
            FIRST,
            "free",
            attempt,
            verdict="passed" if passed else "failed",
            stop="submitted",
            turns=turns,
            first_claim_turn=max(1, turns - 1) if task.k == 1 else max(4, turns // task.k),
            agent_minutes=round(float(getattr(task, f"minutes_{which}")), 3),
            context_tokens=int(getattr(task, f"tokens_{which}")),
            command_lines=own if passed else max(1, own // 2),
            output_tokens=tokens if passed else max(1, tokens // 2),
            **reached(task.k, passed, rng),
        )


def _ladder(task: Any, lines: int, tokens: int, rng: np.random.Generator) -> Iterator[Run]:
    """Caps below N by the first model, then those below its estimate by the second."""
    bound = next((cap for cap in CAPS if cap >= task.N), ABOVE)
    for model, lowest in ((FIRST, int(task.D_first)), (SECOND, int(task.D))):
        for cap in CAPS:
            if cap >= bound:
                break
            passes = cap == lowest
            # Where a sufficient cap is passed, it is mostly passed at once
            attempts = 1 if passes and rng.random() < 0.85 else 2
            for attempt in range(1, attempts + 1):
                passed = passes and attempt == attempts
                share = cap / max(task.N, cap)
                yield new_run(
                    task,
                    model,
                    "ladder",
                    attempt,
                    cap=cap,
                    verdict="passed" if passed else "failed",
                    stop="submitted" if passed else "turn_cap",
                    turns=cap if not passed or cap < 3 else cap - int(rng.integers(0, cap // 3)),
                    agent_minutes=round(
                        float(task.minutes_n * share * rng.uniform(0.7, 1.3)) + 0.1, 1
                    ),
                    context_tokens=max(500, round(task.tokens_n * share)),
                    command_lines=lines if passed else None,
                    output_tokens=tokens if passed else None,
                    **reached(task.k, passed, rng),
                )
            if passes:
                break
        bound = min(bound, lowest)
