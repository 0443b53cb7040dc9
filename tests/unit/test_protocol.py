"""The protocol, against a second reading of Section 3.1 and Appendix B written for this test."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from protocol_runs import a_run

from depthkit.errors import DepthkitError
from depthkit.model import Run
from depthkit.protocol import (
    ABOVE,
    CAPS,
    CEILING,
    REFUSALS,
    Planned,
    cap_statement,
    counted_runs,
    estimate,
    next_runs,
    run_of_n,
)

MODELS = ("first", "second", "third")


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


def test_one_free_run_says_nothing_before_the_other_is_in() -> None:
    for first in (free_runs(8), free_runs(None)):
        got = the_estimate(first)
        assert (got.solved, got.R, got.N, got.D, got.final) == (None, None, None, None, False)


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
        a_run("first", None, 1, "passed", turns=1, agent="another", run_id="f"),
    ]
    assert the_estimate(others) == the_estimate([])
    assert next_runs(others, MODELS) == next_runs([], MODELS)
    assert counted_runs(others, MODELS) == []


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


@pytest.mark.parametrize(
    ("history", "final"),
    [
        # Solved or not, hangs on it.
        ([a_run(attempt=1, verdict="passed", suspect=True, turns=1), a_run(attempt=2)], False),
        # As do N and R.
        ([a_run(attempt=1, verdict="passed", suspect=True, turns=1), *free_runs(1, 1)[1:]], False),
        # And D.
        (
            [
                *free_runs(2, 2),
                a_run("first", 1, 1, "passed", suspect=True),
                a_run("first", 1, 2),
                *(a_run(model, 1, n) for model in MODELS[1:] for n in (1, 2)),
            ],
            False,
        ),
        # A failure that is suspect decides nothing, nor does a forgery beside an honest pass.
        ([a_run(attempt=1, suspect=True), a_run(attempt=2)], True),
        (
            [
                *free_runs(2, 2),
                a_run("first", 1, 1, "passed", suspect=True),
                a_run("first", 1, 2, "passed"),
            ],
            True,
        ),
    ],
)
def test_an_estimate_that_hangs_on_a_suspect_run_is_not_final(
    history: list[Run], final: bool
) -> None:
    assert next_runs(history, MODELS) == []
    assert the_estimate(history).final is final


def refusals(model: str, cap: int | None = None) -> list[Run]:
    return [
        a_run(model, cap, 1, "none", stop="refused", run_id=f"{model}-refuses-{n}")
        for n in range(REFUSALS)
    ]


def test_a_later_model_that_refuses_a_task_leaves_its_estimate_final() -> None:
    done = [*free_runs(2, 2), *(a_run("first", 1, n) for n in (1, 2))]
    assert not the_estimate(done).final
    refused = [*done, *refusals("second", 1)]
    assert next_runs(refused, MODELS[:2]) == []
    got = the_estimate(refused, MODELS[:2])
    assert (got.D, got.D_by_model, got.final) == (2, {"first": 2, "second": None}, True)
    # What it does when it is evaluated is another matter.
    elsewhere = [run.model_copy(update={"purpose": "evaluation"}) for run in refusals("second", 1)]
    assert not the_estimate([*done, *elsewhere], MODELS[:2]).final


def test_less_than_a_lasting_refusal_leaves_no_model_aside() -> None:
    done = [*free_runs(2, 2), *(a_run("first", 1, n) for n in (1, 2))]
    once = refusals("second", 1)[1:]
    broken = [
        a_run("second", 1, 1, "none", stop="model_error", run_id=f"broken-{n}")
        for n in range(REFUSALS)
    ]
    for history in (once, broken):
        assert next_runs([*done, *history], MODELS[:2]) == [Planned("second", 1, 1, "ladder")]
    answered = a_run("second", 1, 1, run_id="z")  # after all, and so it is asked again
    history = [*done, *refusals("second", 1), answered]
    assert next_runs(history, MODELS[:2]) == [Planned("second", 1, 2, "ladder")]


def test_a_task_that_the_first_model_refuses_is_left_alone_and_never_final() -> None:
    for history in (refusals("first"), [*free_runs(2, 2), *refusals("first", 1)]):
        assert next_runs(history, MODELS) == []
        got = the_estimate(history)
        assert (got.D, got.final) == (None, False)


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
