"""Bootstrap intervals of a rank partial correlation beside the loop a user would otherwise write.

The loop takes the rows of each resample from a frame and calls ``pingouin.partial_corr`` with
``method="spearman"``; it stops at the replicates. Ours goes on to the percentile, BCa and Fisher
intervals, jackknife included. Both see the same resamples, and each replicate must agree. 455 tasks
are those solved in the paper's audit. Prints and writes the ratio of medians.

    python tests/benchmarks/bench_stats.py [--resamples 10000] [--tasks 455] [--loops 1]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pingouin

from depthkit.stats import rank_partial_correlation
from depthkit.stats.correlation import replicates
from depthkit.stats.ranks import Ranks, blocks, resampled

HERE = Path(__file__).parent
CAPS = np.array([1, 2, 3, 5, 10, 20, 40, 80])
BOUND = 100
OURS = 7


def audit(tasks: int) -> pd.DataFrame:
    """D, pass rate and W, with ties as in an audit."""
    rng = np.random.default_rng(0)
    work = rng.lognormal(4, 1.2, tasks).round() + 1
    depth = CAPS[np.clip(rng.geometric(0.6, tasks) - 1 + (work > 200), 0, 7)]
    rate = np.clip(rng.normal(0.7 - 0.01 * depth, 0.2), 0, 1).round(2)
    return pd.DataFrame({"D": depth, "rate": rate, "W": work}).astype(float)


def loop(frame: pd.DataFrame, rows: list[np.ndarray]) -> np.ndarray:
    """The replicates, the short way."""
    return np.array(
        [
            pingouin.partial_corr(frame.iloc[each], "D", "rate", "W", method="spearman")["r"].iloc[
                0
            ]
            for each in rows
        ]
    )


def measure(resamples: int, tasks: int, loops: int) -> dict[str, Any]:
    frame, rng = audit(tasks), np.random.default_rng(0)
    columns = [frame[name].to_numpy() for name in frame]
    counts = [resampled(tasks, size, rng) for _, size in blocks(tasks, resamples)]
    times = np.concatenate(counts, axis=1).T.astype(int)
    rows = [np.repeat(np.arange(tasks), each) for each in times]
    loop(frame, rows[:20])  # Imports what pingouin imports late
    theirs, ours = [], []
    for _ in range(loops):
        start = time.perf_counter()
        found = loop(frame, rows)
        theirs.append(time.perf_counter() - start)
    for number in range(OURS + 1):
        start = time.perf_counter()
        judged = rank_partial_correlation(
            columns[0], columns[1], columns[2:], resamples=resamples, permutations=0, seed=0
        )
        if number:
            ours.append(time.perf_counter() - start)
    start = time.perf_counter()
    rank_partial_correlation(
        columns[0], columns[1], columns[2:], resamples=0, permutations=resamples, seed=0
    )
    permuted = time.perf_counter() - start
    difference = np.abs(replicates(Ranks(columns), tasks, resamples, 0) - found).max()
    if not difference < 1e-9 or judged.bca is None:
        raise RuntimeError(f"replicates differ by {difference} from those of pingouin")
    return {
        "benchmark": "stats",
        "tasks": tasks,
        "resamples": resamples,
        "cores": os.cpu_count(),
        "seconds": {
            "loop over pingouin": round(statistics.median(theirs), 3),
            "rank_partial_correlation": round(statistics.median(ours), 4),
            "its p-value, as many permutations": round(permuted, 4),
        },
        "largest_difference": float(f"{difference:.1e}"),
        "ratio": round(statistics.median(theirs) / statistics.median(ours), 1),
        "bound": BOUND,
    }


def main() -> int:
    """Measure, print and keep the result; 1 if the bound is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--tasks", type=int, default=455)
    parser.add_argument("--loops", type=int, default=1)
    options = parser.parse_args()
    report = measure(options.resamples, options.tasks, options.loops)
    text = json.dumps(report, indent=2)
    print(text)
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "stats.json").write_text(text + "\n")
    return 0 if report["ratio"] >= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
