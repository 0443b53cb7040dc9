"""Appendix D: Table 6, Figure 9 and what the text says of runs under a cap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from depthkit.artifacts import (
    at_cap_text,
    audit_table,
    figures,
    run_cost_table,
    work_measures_figure,
)
from depthkit.corpus import Corpus
from depthkit.model import Group, Run, Segment, Task, Verdict, Work

MODELS = ("first", "second")


def task(dataset: str, task_id: str, *works: Work | None, group: Group = "synthetic") -> Task:
    segments = tuple(
        Segment(index=number, name=f"s{number}", work=work)
        for number, work in enumerate(works or (None,), start=1)
    )
    return Task(
        dataset=dataset, task_id=task_id, group=group, segments=segments, provenance="scripted"
    )


def run(task: Task, cap: int | None = None, attempt: int = 1, **fields: Any) -> Run:
    values = {
        "model": "first",
        "purpose": "free" if cap is None else "ladder",
        "verdict": "passed",
        "stop": "submitted",
        "turns": cap or 10,
        "provenance": "scripted",
        **fields,
    }
    name = f"{task.dataset}-{task.task_id}-{values['model']}-{cap}-{attempt}-{values['purpose']}"
    return Run(
        run_id=f"{name}-{values['stop']}",
        dataset=task.dataset,
        task_id=task.task_id,
        cap=cap,
        attempt=attempt,
        **values,
    )


def free(task: Task, turns: tuple[int | None, int], verdicts: str = "pp", **both: Any) -> list[Run]:
    """The two free runs: their turns, and ``p`` or ``f`` for how each ends."""
    words: dict[str, Verdict] = {"p": "passed", "f": "failed"}
    return [
        run(task, attempt=number, turns=n, verdict=words[letter], **both)
        for number, (n, letter) in enumerate(zip(turns, verdicts, strict=True), start=1)
    ]


def corpus_of(folder: Path, tasks: list[Task], runs: list[Run]) -> Corpus:
    corpus = Corpus.open_or_create(folder / "c", name="c", models=list(MODELS))
    corpus.append_tasks(tasks)
    corpus.append_runs(runs)
    return corpus


# --- Table 6 ---


def test_each_sampled_task_is_averaged_over_its_two_free_runs_passed_or_not(tmp_path: Path):
    a, b, c = (task("A", name) for name in "abc")
    runs = free(a, (4, 8), "pf", agent_minutes=1.0, context_tokens=2000)
    runs += free(b, (20, 30), "ff", agent_minutes=7.0, context_tokens=9000)
    runs += free(c, (2, 4), "pp", agent_minutes=2.0, context_tokens=1000)
    row = run_cost_table(corpus_of(tmp_path, [a, b, c], runs)).frame.iloc[0]
    assert (row["sampled"], row["solved"]) == (3, 2)
    assert row["turns_all"] == pytest.approx((6 + 25 + 3) / 3)
    assert row["minutes_all"] == 2  # the median
    assert row["tokens_k_all"] == pytest.approx(4)
    assert row["N_mean"] == 3  # of the solved: 4 and 2


def test_runs_that_do_not_count_change_nothing_in_table_6(tmp_path: Path):
    a, b = task("A", "a"), task("A", "b")
    runs = free(a, (4, 8))
    runs.append(run(a, attempt=1, turns=90, verdict="none", stop="infrastructure"))
    runs.append(run(a, attempt=1, turns=90, purpose="evaluation"))
    runs.append(run(a, attempt=2, turns=90, model="second"))
    runs.append(run(b, attempt=1, turns=70))  # its second free run is not there yet
    row = run_cost_table(corpus_of(tmp_path, [a, b], runs)).frame.iloc[0]
    assert (row["sampled"], row["turns_all"]) == (1, 6)


def test_a_task_with_a_run_of_unknown_length_is_left_out_and_said_so(tmp_path: Path):
    a, b = task("A", "a"), task("A", "b")
    runs = [*free(a, (None, 8), "ff"), *free(b, (3, 5), "ff")]
    table = run_cost_table(corpus_of(tmp_path, [a, b], runs))
    assert table.frame.loc[0, "turns_all"] == 4
    assert "A: Turns of all sampled tasks is over the 1 of 2" in " ".join(table.notes)
    assert "A: Minutes of all sampled tasks is over the 0 of 2" in " ".join(table.notes)
    assert np.isnan(table.frame.loc[0, "minutes_all"])


# --- under the cap ---


def test_lines_and_tokens_at_the_cap_are_set_beside_those_without(tmp_path: Path):
    a, b, c = (task("A", name) for name in "abc")
    runs = free(a, (6, 6), command_lines=20, output_tokens=100)
    runs.append(run(a, 1, command_lines=30, output_tokens=300))  # D = 1
    runs += free(b, (6, 6), command_lines=10, output_tokens=100)
    runs.append(run(b, 1, command_lines=5, output_tokens=100))  # D = 1
    runs += free(c, (6, 6), command_lines=10, output_tokens=100)
    runs += [run(c, 1, n, verdict="failed", command_lines=99) for n in (1, 2)]
    runs.append(run(c, 2, command_lines=11, output_tokens=900))  # D = 2
    runs += [run(c, 1, n, model="second", verdict="failed") for n in (1, 2)]
    made = at_cap_text(corpus_of(tmp_path, [a, b, c], runs))
    assert made.parts["tasks"]["command_lines"].tolist() == [1.5, 0.5, 1.1]
    found = made.frame.iloc[0]
    assert (found["command_lines"], found["command_lines_tasks"]) == (1.1, 3)
    # 3 and 1 of the tasks with D = 1; the 9 of the other does not count
    assert (found["output_tokens"], found["output_tokens_tasks"]) == (2, 2)


def test_only_passing_runs_without_a_cap_are_compared_with(tmp_path: Path):
    a = task("A", "a")
    runs = [
        run(a, attempt=1, turns=6, command_lines=10, output_tokens=50),
        run(a, attempt=2, turns=6, command_lines=90, output_tokens=1, verdict="failed"),
        run(a, 1, command_lines=20, output_tokens=100),
    ]
    found = at_cap_text(corpus_of(tmp_path, [a], runs)).frame.iloc[0]
    assert (found["command_lines"], found["output_tokens"]) == (2, 2)


def test_a_depth_that_is_another_models_or_was_never_run_takes_no_part(tmp_path: Path):
    other, unrun = task("A", "other"), task("A", "unrun")
    runs = free(other, (6, 6), command_lines=10)
    runs += [run(other, 1, n, verdict="failed") for n in (1, 2)]
    runs.append(run(other, 2, command_lines=10))
    runs.append(run(other, 1, model="second", command_lines=50))  # D = 1
    runs += free(unrun, (1, 1), command_lines=10)  # D = 1 without a run under a cap
    made = at_cap_text(corpus_of(tmp_path, [other, unrun], runs))
    assert made.parts["tasks"].empty
    assert "There is no task that the first model passes" in " ".join(made.notes)


def test_without_reference_solutions_work_is_what_a_run_sends(tmp_path: Path):
    capped, counted, unsolved = (task("TMax", name) for name in ("capped", "counted", "unsolved"))
    runs = free(capped, (6, 6), command_lines=20)
    runs.append(run(capped, 1, 1, verdict="failed", command_lines=90))
    runs.append(run(capped, 1, 2, command_lines=30))
    # passed in one turn without a cap, so the cap of 1 counts as passed
    runs += free(counted, (4, 1), command_lines=40)
    runs += free(unsolved, (6, 6), "ff", command_lines=50)
    mixed = [task("A", "with", *works(7)), task("A", "without")]
    for each in mixed:
        runs += free(each, (1, 1), command_lines=60)
    corpus = corpus_of(tmp_path, [capped, counted, unsolved, *mixed], runs)
    rows = corpus.estimates().set_index("task_id")
    known = rows.loc[["capped", "counted", "with"]]
    assert known["work_lines"].tolist() == [30, 40, 7]
    assert known["work_from"].tolist() == ["run", "run", "solution"]
    assert rows.loc[["unsolved", "without"], "work_lines"].isna().all()
    table = audit_table(corpus)
    assert table.frame.set_index("dataset").loc["TMax", "W"] == 35
    assert any(note.startswith("TMax has no reference solutions") for note in table.notes)


# --- Figure 9 ---


def works(*lines: int) -> list[Work]:
    return [Work(lines=n, tokens=10 * n, chars=100 - n) for n in lines]


def test_medians_are_over_sampled_tasks_solved_or_not_and_sum_segments(tmp_path: Path):
    tasks = [task("A", "a", *works(4, 6)), task("A", "b", *works(20)), task("A", "c", *works(90))]
    runs = [*free(tasks[0], (5, 5), "ff"), *free(tasks[1], (5, 5))]  # c was never run
    frame = work_measures_figure(corpus_of(tmp_path, tasks, runs)).frame
    medians = frame.set_index("measure")["W"].to_dict()
    # characters: 96 + 94 of the two segments, and 80
    assert medians == {"lines": 15, "tokens": 150, "chars": (190 + 80) / 2}
    assert frame["n"].tolist() == [2, 2, 2]


def test_measures_agree_by_rank_and_ours_is_set_beside_the_next(tmp_path: Path):
    tasks = [task("A", f"a{n}", *works(n)) for n in (2, 4, 6)]
    tasks += [task("B", "b", *works(10)), task("Mine", "m", *works(25), group="ours")]
    tasks.append(task("TMax", "t"))  # no reference solution
    runs = [each for t in tasks for each in free(t, (5, 5), "ff")]
    figure = work_measures_figure(corpus_of(tmp_path, tasks, runs))
    agreement = figure.parts["agreement"].set_index("measure")
    assert agreement["n"].tolist() == [5, 5]
    assert agreement["rho"].tolist() == pytest.approx([1, -1])
    margin = figure.parts["margin"].set_index("measure")
    assert margin.loc["lines", "above"] == pytest.approx(1.5)
    assert margin.loc["lines", "next"] == "B"
    assert margin.loc["chars", "above"] == pytest.approx(75 / 96 - 1)  # below the next: A's median
    assert margin.loc["chars", "next"] == "A"
    assert "TMax" not in set(figure.frame["dataset"])
    assert "No sampled task of TMax has a reference solution." in figure.notes


def test_a_correlation_that_there_is_not_is_null_with_a_reason(tmp_path: Path):
    tasks = [task("A", name, *works(5)) for name in "abc"]
    runs = [each for t in tasks for each in free(t, (5, 5), "ff")]
    figure = work_measures_figure(corpus_of(tmp_path, tasks, runs))
    assert figure.parts["agreement"]["rho"].isna().all()
    assert "constant" in figure.notes[0]
    assert figure.parts["margin"]["above"].isna().all()


@pytest.mark.parametrize("backend", ["bokeh", "matplotlib"])
def test_bars_end_at_the_medians(tmp_path: Path, backend: figures.Backend):
    tasks = [task("A", "a", *works(7)), task("B", "b", *works(30))]
    runs = [each for t in tasks for each in free(t, (5, 5), "ff")]
    figure = work_measures_figure(corpus_of(tmp_path, tasks, runs))
    figures.load_backends()
    bars = next(iter(next(iter(figure.draw(backend))))).dframe()
    assert sorted(bars.iloc[:, 2]) == [7, 30]
    assert set(bars.iloc[:, 0]) == {0}
