"""The protocol, against a second reading of Section 3.1 and Appendix B written for this test."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from depthkit.errors import DepthkitError
from depthkit.model import Run
from depthkit.protocol import (
    ABOVE,
    CAPS,
    CEILING,
    Planned,
    cap_statement,
    estimate,
    next_runs,
    run_of_n,
)

MODELS = ("first", "second", "third")


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


def free_runs(*turns: int | None) -> list[Run]:
    """Free runs of the first model: the turns of a passing one, None for a failed one."""
    return [
        a_run(attempt=i, verdict="failed" if t is None else "passed", turns=t if t else 150)
        for i, t in enumerate(turns, 1)
    ]


def rungs(model: str, **caps: str) -> list[Run]:
    """Ladder runs, for example ``rungs("first", c1="xx", c2="xo")``: o passed, x failed."""
    return [
        a_run(model, int(cap[1:]), i, "passed" if mark == "o" else "failed")
        for cap, marks in caps.items()
        for i, mark in enumerate(marks, 1)
    ]


def the_estimate(history: list[Run], models: tuple[str, ...] = MODELS[:2]) -> Any:
    return estimate(history, models, dataset="set", task_id="task")


# --- a table to read ---

TABLE = [
    # what the runs were                            solved  N     R    D      first  second
    ("both free runs fail", free_runs(None, None), (False, None, 0.0, None, None, None)),
    ("one turn suffices", free_runs(1, 4), (True, 1, 1.0, 1, 1, None)),
    (
        "no cap below N passes: the smallest cap at or above N",
        free_runs(4, None) + rungs("first", c1="xx", c2="xx", c3="xx"),
        (True, 4, 0.5, 5, 5, None),
    ),
    (
        "N is a cap itself and counts as passed",
        free_runs(7, 5) + rungs("first", c1="xx", c2="xx", c3="xx"),
        (True, 5, 1.0, 5, 5, None),
    ),
    (
        "the first passing cap is the estimate",
        free_runs(30, 12) + rungs("first", c1="xx", c2="xx", c3="xo"),
        (True, 12, 1.0, 3, 3, None),
    ),
    (
        "N above the largest cap, nothing passes under a cap",
        free_runs(None, 93)
        + rungs("first", c1="xx", c2="xx", c3="xx", c5="xx", c10="xx", c20="xx", c40="xx")
        + rungs("first", c80="xx"),
        (True, 93, 0.5, 99, 99, None),
    ),
    (
        "the second model lowers the first's estimate",
        free_runs(9, 8)
        + rungs("first", c1="xx", c2="xx", c3="xx", c5="xo")
        + rungs("second", c1="o"),
        (True, 8, 1.0, 1, 5, 1),
    ),
    (
        "the second model has no lower estimate",
        free_runs(3, None) + rungs("first", c1="xx", c2="o") + rungs("second", c1="xx"),
        (True, 3, 0.5, 2, 2, None),
    ),
]


@pytest.mark.parametrize(
    ("history", "expected"), [row[1:] for row in TABLE], ids=[r[0] for r in TABLE]
)
def test_estimate_follows_the_paper(history: list[Run], expected: tuple[object, ...]) -> None:
    got = the_estimate(history)
    first, second = got.D_by_model.values()
    assert (got.solved, got.N, got.R, got.D, first, second) == expected


def test_constants_are_those_of_the_paper() -> None:
    assert CAPS == (1, 2, 3, 5, 10, 20, 40, 80)
    assert (ABOVE, CEILING) == (99, 150)


# --- what may run next ---


def test_both_free_runs_may_start_at_once_and_nothing_else() -> None:
    assert next_runs([], MODELS) == [
        Planned("first", None, 1, "free"),
        Planned("first", None, 2, "free"),
    ]


def test_no_ladder_run_starts_before_both_free_runs_are_in() -> None:
    assert next_runs(free_runs(8), MODELS) == [Planned("first", None, 2, "free")]


def test_free_runs_are_not_started_when_not_wanted_and_no_ladder_without_them() -> None:
    assert next_runs([], MODELS, with_free=False) == []
    assert next_runs(free_runs(8), MODELS, with_free=False) == []
    assert next_runs(free_runs(8, 8), MODELS, with_free=False) == [Planned("first", 1, 1, "ladder")]


def test_second_run_is_started_after_a_failure_and_skipped_after_a_pass() -> None:
    history = free_runs(8, 8) + rungs("first", c1="x")
    assert next_runs(history, MODELS) == [Planned("first", 1, 2, "ladder")]
    history = free_runs(8, 8) + rungs("first", c1="xx", c2="o")
    assert next_runs(history, MODELS) == [Planned("second", 1, 1, "ladder")]


def test_a_run_without_a_verdict_is_started_again_under_its_attempt_number() -> None:
    history = [*free_runs(8, 8), *rungs("first", c1="x"), a_run("first", 1, 2, "none")]
    assert next_runs(history, MODELS) == [Planned("first", 1, 2, "ladder")]
    nothing = [a_run(attempt=1, verdict="none"), a_run(attempt=2, verdict="none")]
    assert [p.attempt for p in next_runs(nothing, MODELS)] == [1, 2]
    assert the_estimate(nothing).solved is None


def test_later_models_run_only_below_the_smallest_estimate_so_far() -> None:
    first = free_runs(8, 8) + rungs("first", c1="xx", c2="xx", c3="o")
    second = first + rungs("second", c1="xx", c2="o")
    assert next_runs(second, MODELS) == [Planned("third", 1, 1, "ladder")]
    done = second + rungs("third", c1="xx")
    assert next_runs(done, MODELS) == []
    assert the_estimate(done, MODELS).D_by_model == {"first": 3, "second": 2, "third": None}


def test_later_models_never_run_when_depth_is_one_or_the_task_is_unsolved() -> None:
    assert next_runs(free_runs(1, 1), MODELS) == []
    assert next_runs(free_runs(9, 9) + rungs("first", c1="o"), MODELS) == []
    assert next_runs(free_runs(None, None), MODELS) == []


def test_caps_at_or_above_n_are_not_run() -> None:
    history = free_runs(3, 9) + rungs("first", c1="xx", c2="xx")
    assert the_estimate(history, ("first",)).final
    assert next_runs(history, ("first",)) == []


# --- what counts ---


def test_evaluation_and_other_runs_never_count() -> None:
    others = [
        a_run(attempt=1, verdict="passed", turns=1, purpose="evaluation", run_id="a"),
        a_run("second", None, 1, "passed", turns=1, run_id="b"),
        a_run("first", 1, 1, "passed", purpose="evaluation", run_id="c"),
        a_run("stranger", 1, 1, "passed", run_id="d"),
        a_run("first", 4, 1, "passed", run_id="e"),  # no cap of the protocol
    ]
    assert the_estimate(others) == the_estimate([])
    assert next_runs(others, MODELS) == next_runs([], MODELS)


def test_a_suspect_run_is_a_result_but_never_a_pass() -> None:
    suspect = [
        a_run(attempt=1, verdict="passed", suspect=True, turns=2),
        a_run(attempt=2, verdict="passed", turns=9),
    ]
    got = the_estimate(suspect)
    assert (got.solved, got.N, got.R) == (True, 9, 0.5)
    forged = [*free_runs(9, 9), a_run("first", 1, 1, "passed", suspect=True)]
    assert next_runs(forged, MODELS) == [Planned("first", 1, 2, "ladder")]
    assert the_estimate(forged).lowest_passing_cap is None


def test_a_pass_of_unknown_length_leaves_n_and_d_unknown() -> None:
    history = [a_run(attempt=1, verdict="passed", turns=None), *free_runs(None, 7)[1:]]
    got = the_estimate(history)
    assert (got.solved, got.R, got.N, got.D, got.final) == (True, 1.0, None, None, True)
    assert next_runs(history, MODELS) == []
    assert run_of_n(history, MODELS) is None


def test_a_failed_run_of_unknown_length_does_not_matter() -> None:
    history = [a_run(attempt=1, turns=None), *free_runs(None, 1)[1:]]
    assert (the_estimate(history).N, the_estimate(history).D) == (1, 1)


def test_of_more_than_two_free_runs_the_first_two_attempts_count() -> None:
    got = the_estimate([*reversed(free_runs(9, None, 2))])
    assert (got.N, got.R) == (9, 0.5)


def test_of_one_attempt_run_twice_the_earlier_start_counts_in_any_order() -> None:
    at = datetime(2026, 11, 1, tzinfo=UTC)
    early = a_run(attempt=1, verdict="passed", turns=6, started=at, run_id="z")
    late = a_run(attempt=1, verdict="failed", started=at + timedelta(hours=1), run_id="a")
    undated = a_run(attempt=1, verdict="failed", run_id="0")
    naive = a_run(attempt=1, verdict="failed", started=datetime(2026, 11, 2), run_id="b")
    second = free_runs(None, None)[1]
    for runs in ([early, late, undated, naive, second], [second, naive, undated, late, early]):
        assert the_estimate(runs).N == 6


def test_without_free_runs_only_the_lowest_passing_cap_is_given() -> None:
    got = the_estimate(rungs("first", c10="x", c20="o") + rungs("second", c40="o"))
    assert (got.solved, got.N, got.R, got.D) == (None, None, None, None)
    assert got.D_by_model == {"first": None, "second": None}
    assert got.lowest_passing_cap == 20
    assert not got.final


def test_a_cap_that_only_counts_as_passed_is_no_lowest_passing_cap() -> None:
    got = the_estimate(free_runs(1, 1))
    assert (got.D, got.lowest_passing_cap) == (1, None)


def test_depth_is_known_before_later_models_have_run_but_not_final() -> None:
    got = the_estimate(free_runs(4, 4) + rungs("first", c1="xx", c2="o"))
    assert (got.D, got.D_by_model["first"], got.final) == (2, 2, False)


def test_the_run_that_gives_n_is_the_shortest_passing_free_run() -> None:
    history = free_runs(9, 6)
    assert run_of_n(history, MODELS) == history[1]
    assert run_of_n(free_runs(6, 6), MODELS) == free_runs(6)[0]
    assert run_of_n(free_runs(None, None), MODELS) is None


@pytest.mark.parametrize("models", [(), ("a", "a")])
def test_an_unusable_model_set_is_an_error(models: tuple[str, ...]) -> None:
    with pytest.raises(DepthkitError, match="models"):
        next_runs([], models)


@pytest.mark.parametrize("caps", [(), (3, 2), (0, 1), (1, 99), (2, 2)])
def test_unusable_caps_are_an_error(caps: tuple[int, ...]) -> None:
    with pytest.raises(DepthkitError, match="caps"):
        next_runs([], MODELS, caps=caps)


def test_runs_of_another_task_are_refused() -> None:
    with pytest.raises(ValueError, match="other"):
        the_estimate([a_run(task_id="other")])
    with pytest.raises(ValueError, match="other"):
        next_runs([a_run(), a_run(task_id="other")], MODELS)


# --- what the agent is told ---


def test_cap_statement_says_cap_turn_and_stop() -> None:
    text = cap_statement(5)
    assert "at most 5 turns for this task" in text
    assert "one reply" in text
    assert "turn 5" in text
    assert "stopped" in text
    assert "part" not in text.lower()


def test_cap_statement_has_a_singular() -> None:
    assert "at most 1 turn for this task" in cap_statement(1)
    assert "1 turns" not in cap_statement(1)


def test_cap_statement_of_several_parts_covers_all_of_them() -> None:
    text = cap_statement(40, 6)
    assert "40 turns for the whole task, all 6 parts together" in text
    assert "Parts not finished by turn 40 fail." in text


@pytest.mark.parametrize(("cap", "k"), [(0, 1), (-3, 1), (5, 0)])
def test_cap_statement_refuses_less_than_one(cap: int, k: int) -> None:
    with pytest.raises(DepthkitError, match="at least 1"):
        cap_statement(cap, k)


# --- any world, against the declarative reading of the rules ---

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
    assert got.final
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
    assert seen[-1].final


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
