"""What else the paper runs: originals, merged tasks, replays, generation, fine-tuning."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from depthkit.fitting.audit import least_turns
from depthkit.fitting.pins import Pins, share_out, spread_out
from depthkit.fitting.runs import FIRST, new_run
from depthkit.fitting.targets import Targets
from depthkit.model import Change, Replay, Run
from depthkit.protocol import ABOVE, CAPS, RUNS_PER_CAP

ORIGINALS, MERGED = "Originals", "Ours-merged"
BENCHMARK_TASKS = {"TB2.1": 89, "TBLite": 100}
"""Tasks of the two benchmarks; the paper does not print them."""

TUNED = {"qwen3-8b": "base", "qwen3-8b-tuned": "tuned"}


def original_tasks(targets: Targets, ours: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The original tasks of seed environments (Figure 13), columns as in ``audit.free_runs``."""
    pairs = ours[ours["paired"]]
    n = len(pairs)
    single = int(targets("section-4.4/original-eq-1"))
    within_10 = int(targets("section-4.4/original-le-10"))
    depth = np.concatenate(
        [np.ones(single), rng.choice([2, 3, 5, 10], within_10 - single), np.full(n - within_10, 20)]
    )
    depth = rng.permutation(depth)
    # One above 10 goes with one of ours that is deeper still
    deepest = int(np.argmax(pairs["D"].to_numpy()))
    top = int(np.argmax(depth))
    depth[[deepest, top]] = depth[[top, deepest]]
    least = np.array([least_turns(d) for d in depth], float)
    turns = least + rng.integers(2, 8, n)
    ratio = targets.number("figure-13/ratio")
    pins = Pins(
        spread_out(rng, n, targets.number("figure-13/original-work"), 0.8),
        1,
        np.floor(pairs["W"].to_numpy() / ratio),
    )
    pins.pin(0.5, targets.number("figure-13/original-work"))
    names = [f"original-{name.lower()}" for name in pairs["seed_env"]]
    return pd.DataFrame(
        {
            "dataset": ORIGINALS,
            "group": None,
            "task_id": names,
            "solved": True,
            "D": depth,
            "D_first": depth,
            "N": turns,
            "W": pins.values,
            "R": rng.choice([0.5, 1.0], n),
            "k": 1,
            "seed_env": pairs["seed_env"].to_numpy(),
            "turns_n": turns,
            "turns_o": turns + rng.integers(0, 5, n),
            "minutes_n": np.round(0.15 * turns + 0.2, 1),
            "minutes_o": np.round(0.17 * turns + 0.3, 1),
            "tokens_n": 1300 * turns,
            "tokens_o": 1400 * turns,
        }
    )


def merged_tasks(
    targets: Targets, ours: pd.DataFrame, rng: np.random.Generator
) -> tuple[pd.DataFrame, list[Run]]:
    """Tasks whose segments are merged into one instruction, with their runs (Appendix H)."""
    counts = {
        0: int(targets("section-H/same")),
        -1: int(targets("section-H/not-within")),
        1: int(targets("section-H/lower-by-1")),
        2: int(targets("section-H/lower-by-2")),
    }
    caps = list(CAPS)
    pool = ours[ours["solved"] & (ours["D_first"] < ABOVE)]
    chosen = pool.iloc[rng.choice(len(pool), sum(counts.values()), replace=False)]
    drops = rng.permutation(np.repeat(list(counts), list(counts.values())))
    runs: list[Run] = []
    rows = []
    for task, drop in zip(chosen.itertuples(), drops, strict=True):
        merged = SimpleNamespace(dataset=MERGED, task_id=f"{task.task_id}-merged")
        rows.append(
            {"dataset": MERGED, "task_id": merged.task_id, "parent": task.task_id, "W": task.W}
        )
        place = caps.index(int(float(str(task.D_first))))
        lowest = place + 1 if drop == -1 else place - int(drop)
        for cap_place in range(place, -1, -1):
            passes = cap_place >= lowest
            for attempt in range(1, RUNS_PER_CAP + 1):
                passed = passes and (attempt == 1 or bool(rng.random() < 0.5))
                runs.append(
                    new_run(
                        merged,
                        FIRST,
                        "merged",
                        attempt,
                        cap=caps[cap_place],
                        verdict="passed" if passed else "failed",
                        stop="submitted" if passed else "turn_cap",
                        turns=caps[cap_place],
                        agent_minutes=round(0.25 * caps[cap_place], 1),
                    )
                )
            if not passes:
                break
    return pd.DataFrame(rows), runs


def replays(
    targets: Targets, ours: pd.DataFrame, events: dict[int, int], rng: np.random.Generator
) -> Iterator[Replay]:
    """Replays of the reference solutions with one part changed (Table 8).

    Args:
        targets: The printed numbers.
        ours: Our tasks.
        events: How many events each segment (counted over all tasks) has.
        rng: Which replays fail or have no result.
    """
    changes: tuple[Change, ...] = (
        "checks_before_work",
        "previous_segment_skipped",
        "event_removed",
        "key_step_removed",
        "key_step_removed_next_run",
    )
    segments = [(task, s) for task in ours.itertuples() for s in range(1, int(str(task.k)) + 1)]
    for change in changes:
        places: list[tuple[Any, int, int | None]] = []
        for number, (task, s) in enumerate(segments):
            if change == "event_removed":
                places += [(task, s, e) for e in range(1, events.get(number, 0) + 1)]
            elif (change, s) not in (
                ("previous_segment_skipped", 1),
                ("key_step_removed_next_run", task.k),
            ):
                places.append((task, s, None))
        results = int(targets(f"table-8/{change}/results"))
        holds = int(targets(f"table-8/{change}/holds"))
        outcome = np.full(len(places), None, object)
        order = rng.permutation(len(places))
        outcome[order[:results]] = False
        outcome[order[:holds]] = True
        for (task, s, event), held in zip(places, outcome, strict=True):
            yield Replay(
                dataset=task.dataset,
                task_id=task.task_id,
                change=change,
                segment=s,
                event=event,
                checked_segment=s + 1 if change == "key_step_removed_next_run" else s,
                holds=held,
                reason="the replay did not run to a result" if held is None else None,
                provenance="fitted",
            )


def event_counts(targets: Targets, number: int, rng: np.random.Generator) -> dict[int, int]:
    """Events of each segment: those of Table 8 with a result, and the fewest left out of a row."""
    total = int(targets("table-8/event_removed/results")) + int(targets("section-F/left-out-least"))
    chosen = rng.choice(number, total, replace=False)
    return {int(place): 1 for place in chosen}


def generation_runs(
    targets: Targets, ours: pd.DataFrame, rng: np.random.Generator
) -> Iterator[Run]:
    """One generation run a seed environment; the costs add up to the printed one."""
    seeds = int(targets("section-4.4/seeds"))
    names = list(ours["task_id"])
    names += [f"ours-rejected-{n:02d}" for n in range(1, seeds - len(names) + 1)]
    cents = round(100 * targets.number("section-4.4/cost"))
    costs = share_out(
        np.round(spread_out(rng, seeds, cents / seeds, 0.3)),
        np.full(seeds, 15.0),
        np.full(seeds, 400.0),
        cents,
    )
    for name, cost in zip(names, costs, strict=True):
        accepted = not name.startswith("ours-rejected")
        yield new_run(
            SimpleNamespace(dataset="Ours", task_id=name),
            "generation-agent",
            "generation",
            1,
            verdict="passed" if accepted else "failed",
            stop="submitted",
            cost_usd=cost / 100,
        )


def tuning_runs(targets: Targets, rng: np.random.Generator) -> Iterator[Run]:
    """Runs of Qwen3-8B on two benchmarks before and after fine-tuning (Figure 7)."""
    times = int(targets("figure-7/runs"))
    for dataset, tasks in BENCHMARK_TASKS.items():
        for model, claim in TUNED.items():
            share = targets(f"figure-7/{dataset}-{claim}")
            # Where no whole number rounds to the share, the nearest: it then disagrees
            passes = round(share.value * tasks * times)
            passed = np.zeros(tasks * times, bool)
            # Spread evenly over the runs
            for i in range(passes):
                members = np.arange(tasks) * times + i % times
                passed[rng.choice(members[~passed[members]])] = True
            for place, held in enumerate(passed):
                task = SimpleNamespace(
                    dataset=dataset, task_id=f"{dataset.lower()}-{place // times + 1:03d}"
                )
                yield new_run(
                    task,
                    model,
                    "evaluation",
                    place % times + 1,
                    verdict="passed" if held else "failed",
                    stop="submitted",
                )


def training_samples(targets: Targets, runs: list[Run], rng: np.random.Generator) -> list[Run]:
    """State for so many runs on our tasks how many samples they gave (Section 4.6).

    Samples come from segments passed in a row, so a run without one gives none.
    """
    wanted, samples = int(targets("section-4.6/runs")), int(targets("section-4.6/samples"))
    able = [i for i, run in enumerate(runs) if run.dataset == "Ours" and run.segments_passed]
    chosen = np.sort(rng.choice(able, wanted, replace=False))
    done = np.array([float(runs[i].segments_passed or 0) for i in chosen])
    counts = share_out(done * rng.uniform(0.6, 1.4, wanted), np.ones(wanted), 4 * done, samples)
    changed = list(runs)
    for i, count in zip(chosen, counts, strict=True):
        changed[i] = runs[i].model_copy(update={"training_samples": int(count)})
    return changed
