"""The protocol in any world, against a second reading of Section 3.1 and Appendix B."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from protocol_runs import a_run

from depthkit.model import Run
from depthkit.protocol import (
    CAPS,
    Planned,
    estimate,
    next_runs,
)

MODELS = ("first", "second", "third")


Slot = tuple[str, int | None, int]


@dataclass(frozen=True)
class World:
    """What every possible run would give: pass or not, in how many turns, after which faults."""

    caps: tuple[int, ...]
    models: tuple[str, ...]
    free: tuple[tuple[str, int], tuple[str, int]]  # outcome, turns
    outcome: dict[Slot, str]
    faults: dict[Slot, int]  # runs without a verdict before the result
    seed: int

    def passes(self, model: str, cap: int, attempt: int) -> bool:
        return self.outcome[model, cap, attempt] == "passed"


def reading(world: World) -> tuple[dict[str, Any], set[Slot]]:
    """Eq. 5 and 6 with Appendix B, stated by definition: the estimate, and the runs it takes."""
    needed: set[Slot] = {(world.models[0], None, 1), (world.models[0], None, 2)}
    lengths = [turns for outcome, turns in world.free if outcome == "passed"]
    said: dict[str, Any] = {
        "solved": bool(lengths),
        "R": len(lengths) / 2,
        "N": min(lengths) if lengths else None,
        "D": None,
        "D_by_model": dict.fromkeys(world.models),
    }
    if not lengths:
        return said, needed
    for model in world.models:
        first = model == world.models[0]
        limit = min(lengths) if first else said["D"]
        tried = [c for c in world.caps if c < limit]
        good = [c for c in tried if world.passes(model, c, 1) or world.passes(model, c, 2)]
        counted = [c for c in world.caps if c >= limit] if first else []
        d_m = min(good + counted, default=99 if first else None)
        for cap in tried:
            if not good or cap <= min(good):
                needed.add((model, cap, 1))
                if not world.passes(model, cap, 1):
                    needed.add((model, cap, 2))
        said["D_by_model"][model] = d_m
        said["D"] = min(d for d in said["D_by_model"].values() if d is not None)
    return said, needed


@st.composite
def worlds(draw: st.DrawFn) -> World:
    caps = draw(st.sampled_from([CAPS, CAPS[:4], (2, 5), (1,)]))
    models = MODELS[: draw(st.integers(1, 3))]
    # Weighted towards failure, so that ladders of every height are climbed.
    outcome = st.sampled_from(["failed", "failed", "failed", "suspect", "passed"])
    slots: list[Slot] = [(m, c, a) for m in models for c in caps for a in (1, 2)]
    fault = st.sampled_from([0, 0, 0, 1, 2])
    free = st.tuples(
        st.sampled_from(["passed", "passed", "failed", "suspect"]), st.integers(1, 150)
    )
    return World(
        caps=caps,
        models=models,
        free=(draw(free), draw(free)),
        outcome={slot: draw(outcome) for slot in slots},
        faults={s: draw(fault) for s in [*slots, (models[0], None, 1), (models[0], None, 2)]},
        seed=draw(st.integers(0, 2**32)),
    )


def play(world: World, watch: Callable[[list[Run]], None] = lambda _: None) -> list[Run]:
    """Run a world to its end, finishing the runs in flight in random order."""
    rng = random.Random(world.seed)
    history: list[Run] = []
    flying: list[Planned] = []
    failed_starts: dict[Slot, int] = {}
    _, needed = reading(world)
    for _ in range(1000):
        watch(history)
        for planned in next_runs(history, world.models, caps=world.caps):
            slot = (planned.model, planned.cap, planned.attempt)
            assert slot in needed, f"{slot} must never be run"
            assert planned.purpose == ("free" if planned.cap is None else "ladder")
            if planned not in flying:
                assert not any(
                    run.valid and (run.model, run.cap, run.attempt) == slot for run in history
                ), f"{slot} has a result already"
                flying.append(planned)
        if not flying:
            return history
        planned = flying.pop(rng.randrange(len(flying)))
        slot = (planned.model, planned.cap, planned.attempt)
        faults = failed_starts.setdefault(slot, 0)
        outcome, turns = (
            world.free[planned.attempt - 1]
            if planned.cap is None
            else (world.outcome[slot], planned.cap)
        )
        if faults < world.faults[slot]:
            failed_starts[slot] += 1
            outcome = "none"
        history.append(
            a_run(
                planned.model,
                planned.cap,
                planned.attempt,
                "passed" if outcome == "suspect" else outcome,
                suspect=outcome == "suspect",
                turns=turns,
                purpose=planned.purpose,
                run_id=f"run-{len(history)}",
            )
        )
    raise AssertionError("the protocol does not end")


def estimated(world: World, history: list[Run]) -> Any:
    return estimate(history, world.models, caps=world.caps, dataset="set", task_id="task")


@given(worlds())
@settings(max_examples=300, deadline=None)
def test_any_world_is_measured_as_the_rules_say_with_no_run_too_many(world: World) -> None:
    history = play(world)
    expected, needed = reading(world)
    got = estimated(world, history)
    assert {key: getattr(got, key) for key in expected} == expected
    believed = estimated(world, [run.model_copy(update={"suspect": False}) for run in history])
    same = {key: getattr(believed, key) for key in expected} == expected
    assert got.final == (same and believed.final)
    assert {(r.model, r.cap, r.attempt) for r in history if r.valid} == needed


@given(worlds())
@settings(max_examples=100, deadline=None)
def test_estimates_only_settle_and_fall_while_runs_come_in(world: World) -> None:
    seen: list[Any] = []
    play(world, lambda history: seen.append(estimated(world, history)))
    for before, after in pairwise(seen):
        assert not before.final
        if before.solved is not None:
            assert (before.solved, before.N, before.R) == (after.solved, after.N, after.R)
        if before.D is not None:
            assert after.D is not None
            assert after.D <= before.D
    assert seen[0].solved is None
    assert seen[-1].final or any(
        "suspect" in (o, f[0]) for o in world.outcome.values() for f in world.free
    )


@given(worlds(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_estimate_depends_on_which_runs_there_are_not_on_their_order(
    world: World, rng: random.Random
) -> None:
    history = play(world)
    cut = history[: rng.randrange(len(history) + 1)]
    shuffled = rng.sample(cut, len(cut))
    noise = [
        a_run("first", 1, 1, "passed", purpose="evaluation", run_id="noise-1"),
        a_run("second", None, 1, "passed", turns=1, run_id="noise-2"),
        a_run("first", 7, 1, "passed", run_id="noise-3"),
    ]
    assert estimated(world, shuffled) == estimated(world, cut) == estimated(world, cut + noise)
    assert next_runs(shuffled, world.models, caps=world.caps) == next_runs(
        iter(cut + noise), world.models, caps=world.caps
    )
