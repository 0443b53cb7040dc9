"""How the evaluation runs go: ends, segments, turns, minutes, tokens (Table 2, Figures 6, 14)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from depthkit.fitting.evaluation import LEFT_OUT, Counts
from depthkit.fitting.ours import CLAUDE, GLM, LUNA, MIMO, MODELS, NAMES, SOL
from depthkit.fitting.pins import Floats, Pins
from depthkit.fitting.targets import Targets
from depthkit.stats import segment_rates

# Of the runs that the paper does not class: shares of failed runs that stop this way
_OTHER_SHARES = {"early": 0.06, "terminal": 0.03, "limit": 0.06}


def evaluation_runs(
    targets: Targets, tasks: pd.DataFrame, passes: Counts, rng: np.random.Generator
) -> pd.DataFrame:
    """One row an evaluation run.

    Columns: model, task (row of ``tasks``), attempt, result, passed, k, segments, stop, turns,
    minutes, tokens, first_claim.
    """
    frames = []
    for number, model in enumerate(MODELS):
        rows: list[dict[str, Any]] = []
        for task, count in enumerate(passes[number]):
            order = rng.permutation(2)
            rows += [
                {
                    "task": task,
                    "attempt": attempt + 1,
                    "result": count != LEFT_OUT,
                    "passed": bool(order[attempt] < count),
                }
                for attempt in range(2)
            ]
        frame = pd.DataFrame(rows).assign(model=model)
        frame["k"] = tasks["k"].to_numpy()[frame["task"]]
        out = frame[~frame["result"]]
        frame["stop"] = "submitted"
        stop = np.full(len(out), "refused", object)
        if number == CLAUDE:
            # The last of its tasks gave empty responses; those that Sol refused, it refused too
            lost = np.setdiff1d(out["task"].unique(), np.flatnonzero(passes[SOL] == LEFT_OUT))
            empty = lost[: int(targets("section-I/claude-invalid"))]
            stop[out["task"].isin(empty).to_numpy()] = "model_error"
        frame.loc[out.index, "stop"] = stop
        frames.append(_course(targets, frame, number, rng))
    return pd.concat(frames, ignore_index=True)


def _course(
    targets: Targets, frame: pd.DataFrame, number: int, rng: np.random.Generator
) -> pd.DataFrame:
    """How the runs of one model go: how they end, segments, turns, minutes and tokens."""
    name = NAMES[MODELS[number]]
    valid = frame["result"].to_numpy()
    passed = frame["passed"].to_numpy() & valid
    failed = valid & ~passed
    shares = {what: round(share * failed.sum()) for what, share in _OTHER_SHARES.items()}
    printed = {
        (LUNA, "early"): "luna-early", (GLM, "early"): "glm-early",
        (GLM, "terminal"): "glm-terminal", (MIMO, "limit"): "mimo-limit",
    }  # fmt: skip
    for (model, what), claim in printed.items():
        if model == number:
            shares[what] = targets(f"figure-14/{claim}").count(int(valid.sum()))
    dealt = np.concatenate([np.repeat(what, n) for what, n in shares.items()])
    kind = np.full(len(frame), "", object)
    # Short tasks are left aside, so that how far their runs come is free
    pool = rng.permutation(np.flatnonzero(failed & (frame["k"] == 6).to_numpy()))
    kind[pool[: len(dealt)]] = dealt
    stops = {"terminal": "terminal_broken", "limit": "time_limit"}
    for what, ending in stops.items():
        frame.loc[kind == what, "stop"] = ending
    early, limit = kind == "early", kind == "limit"
    segments = _segments(targets, frame, number, passed, failed, early, rng)

    def three(column: str, unit: float, step: float, low: Floats, high: Floats) -> Floats:
        of_all = targets.number(f"table-2/{name}/{column}") * unit
        size = np.exp(rng.normal(0, 0.35, len(frame)))
        size *= np.where(passed, 1.1, 0.5 + 0.5 * segments / frame["k"].to_numpy())
        pins = Pins(np.maximum(of_all * size, step), low, high, step)
        if column != "tokens_k":
            pins.mean(targets.number(f"table-2/{name}/{column}_passed") * unit, passed)
            total = of_all * valid.sum() - pins.values[passed].sum()
            pins.mean(total / failed.sum(), failed)
        else:
            pins.mean(of_all, valid)
        return pins.values

    floor = np.where(early, 2, np.maximum(4, frame["k"].to_numpy())).astype(float)
    turns = three("turns", 1, 1, floor, np.where(early, 3, 148.0))
    slow = np.where(limit, 30.0, 0.3)
    minutes = three("minutes", 1, 0.1, slow, np.where(early, 8.0, 175.0))
    full = np.full(len(frame), 400_000.0)
    tokens = three("tokens_k", 1000, 1, full * 0 + 2500, np.where(early, 15_000, full))
    first_claim = np.where(early, turns, np.maximum(4, np.round(turns / frame["k"].to_numpy())))
    claims_none = failed & (segments == 0) & ~early & (frame["stop"] != "submitted").to_numpy()
    return frame.assign(
        segments=segments,
        passed=passed,
        turns=turns,
        minutes=minutes,
        tokens=tokens,
        first_claim=np.where(claims_none, np.nan, first_claim),
    )


def _segments(
    targets: Targets,
    frame: pd.DataFrame,
    number: int,
    passed: NDArray[np.bool_],
    failed: NDArray[np.bool_],
    early: NDArray[np.bool_],
    rng: np.random.Generator,
) -> Floats:
    """Segments passed by each run, with the printed mean fraction."""
    k = frame["k"].to_numpy(float)
    goal_ = targets(f"table-2/{NAMES[MODELS[number]]}/segments")
    segments = np.where(passed, k, 0.0)
    free = failed & ~early
    short = free & (k < 6)
    segments[short] = np.floor(rng.random(int(short.sum())) * k[short])
    movable = np.flatnonzero(free & (k == 6))
    wanted = goal_.value * (passed | failed).sum()
    start = np.minimum(rng.geometric(0.35, len(movable)) - 1, 5)
    segments[movable] = start
    for _ in range(20_000):
        gap = wanted - (segments / k).sum()
        if abs(gap) <= 1 / 12:
            break
        i = movable[rng.integers(len(movable))]
        segments[i] = np.clip(segments[i] + np.sign(gap), 0, 5)
    if number in _RATES:
        claim, aim = _RATES[number]
        rate = targets(claim)
        _bend(segments, k, passed | failed, np.flatnonzero(free), rate.value + aim * rate.half, rng)
    return segments


# The gap of these two is printed as at most 0.14, so both are moved to the inner side of what is
# printed alike: in half units of the last digit
_RATES = {CLAUDE: ("figure-6/highest-rate", -0.4), GLM: ("figure-6/lowest-rate", 0.4)}


def _bend(
    segments: Floats,
    k: Floats,
    valid: NDArray[np.bool_],
    free: NDArray[np.intp],
    aim: float,
    rng: np.random.Generator,
) -> None:
    """Move failed runs on by a segment and others back, until the per-segment rate is near."""

    def miss() -> float:
        return abs(float(segment_rates(segments[valid], k[valid]).value or 0) - aim)

    loss = miss()
    for _ in range(3000):
        if loss < 0.0005:
            break
        i, j = (int(free[n]) for n in rng.integers(0, len(free), 2))
        # Tasks of one length, so that the mean fraction stays
        if i == j or k[i] != k[j] or segments[i] + 1 >= k[i] or segments[j] < 1:
            continue
        segments[[i, j]] += [1, -1]
        if (found := miss()) < loss:
            loss = found
        else:
            segments[[i, j]] -= [1, -1]
