"""What is left of a measurement, and what to expect of it, from finished runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from depthkit.model import Run
from depthkit.trials.budget import Budget, Expectation, Price, Purse, may_start
from depthkit.trials.forecast import Expected, Most, expected, most, pending

MODELS = ["first", "second", "third"]
KEY = ("set", "task")
_NUMBERS = count()
PRICE = Price(1e-6, 1e-7, 1e-5)


def run(model: str = "first", cap: int | None = None, passed: bool = True, **more: Any) -> Run:
    values: dict[str, Any] = {
        "run_id": f"r{(number := next(_NUMBERS))}",
        "started": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number),
        "dataset": KEY[0],
        "task_id": KEY[1],
        "model": model,
        "cap": cap,
        "attempt": 1,
        "purpose": "ladder" if cap else "free",
        "verdict": "passed" if passed else "failed",
        "stop": "submitted",
        "turns": cap or 4,
        "cost_usd": 0.01,
        "agent_minutes": 0.5,
        "provenance": "measured",
    }
    return Run(**{**values, **more})


def refused(model: str, cap: int | None = None) -> Run:
    return run(model, cap, verdict="none", stop="refused")


def free_pair(**more: Any) -> list[Run]:
    return [run(attempt=1, **more), run(attempt=2, **more)]


def test_the_most_left_is_every_cap_twice_for_every_model() -> None:
    # Free runs that pass at the ceiling leave all eight caps, twice each, for each of the models.
    ladder = 2 * (1 + 2 + 3 + 5 + 10 + 20 + 40 + 80)
    assert most(KEY, [], MODELS, "both") == Most(2 + 3 * 16, 300 + 3 * ladder)
    assert most(KEY, [], MODELS, "free") == Most(2, 300)
    assert most(KEY, free_pair(), MODELS, "both").runs == 3 * 6  # N is 4: caps 1, 2 and 3
    assert most(KEY, free_pair(passed=False), MODELS, "both") == Most()


def test_a_later_model_that_refuses_is_passed_over() -> None:
    fails = [run(cap=cap, attempt=a, passed=False) for cap in (1, 2, 3) for a in (1, 2)]
    history = [*free_pair(), *fails]
    assert {planned.model for planned in pending(history, MODELS, "both")} == {"second"}
    twice = [refused("second", 1)] * 2
    assert {planned.model for planned in pending([*history, *twice], MODELS, "both")} == {"second"}
    thrice = [*history, *twice, refused("second", 1)]
    assert {planned.model for planned in pending(thrice, MODELS, "both")} == {"third"}
    # A result in between: it does not refuse after all.
    answered = [*thrice, run("second", 1, passed=False)]
    assert {planned.model for planned in pending(answered, MODELS, "both")} == {"second"}


def test_a_task_that_the_first_model_refuses_is_left_out() -> None:
    assert pending([refused("first")] * 3, MODELS, "both") == []


def test_what_to_expect_follows_the_finished_tasks() -> None:
    finished = free_pair(turns=1)  # N is 1: there is no cap below
    assert pending(finished, ["first"], "both") == []
    histories = {("set", "a"): finished, ("set", "b"): [], ("set", "c"): [run(attempt=1)]}
    found = expected(histories, ["first"], "both")
    assert found.runs == 3
    assert found.usd is not None
    assert abs(found.usd - 0.03) < 1e-9
    assert found.turns == 2 + 1  # c has had more turns than a whole finished task: one run is left
    assert expected({("set", "b"): []}, ["first"], "both") == Expected()
    assert expected({("set", "a"): finished}, ["first"], "both") == Expected(0, 0, 0, 0)


def test_an_unknown_cost_stays_unknown() -> None:
    histories = {("set", "a"): free_pair(turns=1, cost_usd=None), ("set", "b"): []}
    found = expected(histories, ["first"], "both")
    assert found.usd is None
    assert found.runs == 2


def costs(*runs: Run, prices: dict[str, Price | None] | None = None) -> Expectation:
    made = Expectation(prices or {"first": PRICE}, {"first": 1000, "second": 1000})
    made.learn(runs)
    return made


def test_the_first_run_tries_alone_and_others_follow_what_it_cost() -> None:
    budget, nothing = Budget(1.0), costs()
    alone = [("first", None, Purse(budget))]
    assert may_start(budget, nothing, "first", None, [])
    assert not may_start(budget, nothing, "first", None, alone)
    known = costs(run(cost_usd=0.02))
    assert may_start(budget, known, "first", None, alone)
    assert not may_start(Budget(0.15), known, "first", None, alone)
    assert may_start(Budget(0.15), known, "first", None, [])
    assert not may_start(Budget(0.03), known, "first", None, [])


def test_longer_runs_are_expected_to_cost_by_the_square_of_their_turns() -> None:
    known = costs(run(cap=5, cost_usd=0.01), run(cap=5, cost_usd=0.01))
    cheap, dear = known.of("first", 5, margin=0), known.of("first", 10, margin=0)
    assert cheap == 0.01
    assert dear == 0.04
    assert known.of("first", 1, margin=0) == 0.002


def test_another_model_is_expected_to_cost_by_its_prices() -> None:
    twice = Price(2e-6, 2e-7, 1e-5)
    known = costs(run(cap=5, cost_usd=0.01), prices={"first": PRICE, "second": twice})
    assert known.of("second", 5, margin=0) == 0.02


def test_a_scripted_model_costs_nothing() -> None:
    known = Expectation({"scripted": None}, {})
    assert may_start(Budget(0.0), known, "scripted", None, [])
