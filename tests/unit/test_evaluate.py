"""pass@1 and the fraction of segments, per task and pooled."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from depthkit.artifacts import audit_table
from depthkit.artifacts.model_results import evaluation, models_table
from depthkit.cli import app
from depthkit.corpus import Corpus
from depthkit.model import Purpose, Run, Segment, Task, Verdict
from depthkit.protocol import Planned, evaluation_runs
from depthkit.trials.run import new_run_id


def run(
    task: str,
    attempt: int,
    verdict: Verdict,
    passed: int | None,
    *,
    purpose: Purpose = "evaluation",
    model: str = "m",
    suspect: bool = False,
    run_id: str = "",
) -> Run:
    return Run(
        run_id=run_id or f"{task}-{model}-{purpose}-{attempt}",
        dataset="d",
        task_id=task,
        model=model,
        attempt=attempt,
        purpose=purpose,
        verdict=verdict,
        stop="refused" if verdict == "none" else "submitted",
        segments_passed=passed,
        suspect=suspect,
        turns=4,
        provenance="scripted",
    )


def test_a_corpus_of_evaluation_runs_alone_says_so(tmp_path: Path) -> None:
    made = Corpus.open_or_create(tmp_path / "c")
    made.append_run(run("one", 1, "passed", 1))
    estimates = CliRunner().invoke(app, ["estimates", str(made.path)], env={"COLUMNS": "200"})
    status = CliRunner().invoke(app, ["status", str(made.path)])
    assert (estimates.exit_code, status.exit_code) == (0, 2)
    for said in (estimates.stdout, status.stderr):
        assert "ll runs are evaluation runs, which say nothing of depth" in said
        assert "depthkit evaluate shows them" in said
    assert audit_table(made).provenance.startswith("evaluation runs only · 0 tasks, 0 runs")


def test_two_models_with_long_names_are_told_apart(tmp_path: Path) -> None:
    made = Corpus.open_or_create(tmp_path / "c")
    names = [f"a-model-of-a-very-long-name-2026-thinking-{effort}" for effort in ("high", "low")]
    segment = Segment(index=1, name="s1")
    made.append_task(Task(dataset="d", task_id="one", segments=(segment,), provenance="scripted"))
    made.append_runs([run("one", 1, "passed", 1, model=name) for name in names])
    shown = CliRunner().invoke(app, ["evaluate", str(made.path)], env={"COLUMNS": "80"}).stdout
    first = "".join(line.split(" ")[0] for line in shown.splitlines()[1:])
    assert all(name in first for name in names)
    planned = [Planned(name, 3, 1, "ladder") for name in names]
    stems = {new_run_id("t" * 60, each).rsplit("__", 1)[0] for each in planned}
    assert len(stems) == 2
    assert max(map(len, stems)) < 100


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    made = Corpus.open_or_create(tmp_path / "c", models=("first",))
    for name, k in {"one": 1, "three": 3, "refused": 3}.items():
        segments = tuple(Segment(index=i + 1, name=f"s{i}") for i in range(k))
        made.append_task(Task(dataset="d", task_id=name, segments=segments, provenance="scripted"))
    made.append_runs(
        [
            run("one", 1, "passed", 1),
            run("one", 2, "failed", 0),
            run("three", 1, "failed", 2),
            run("refused", 1, "none", None),
            run("one", 1, "passed", 1, purpose="free", model="first"),
        ]
    )
    return made


def test_shares_are_averaged_within_a_task_and_then_over_tasks(corpus: Corpus) -> None:
    (row,) = evaluation(corpus).to_dict("records")
    assert row["pass_at_1"] == pytest.approx((0.5 + 0) / 2)
    assert row["segments"] == pytest.approx((0.5 + 2 / 3) / 2)
    assert row["pooled_pass"] == pytest.approx(1 / 3)
    assert row["pooled_segments"] == pytest.approx((1 + 0 + 2 / 3) / 3)


def test_a_task_without_a_result_leaves_the_denominator(corpus: Corpus) -> None:
    (row,) = evaluation(corpus).to_dict("records")
    assert (row["tasks"], row["runs"], row["without_result"]) == (2, 3, 1)


def test_runs_that_measure_depth_do_not_count(corpus: Corpus) -> None:
    assert list(evaluation(corpus)["model"]) == ["m"]


def test_a_suspect_pass_is_no_pass(corpus: Corpus) -> None:
    corpus.append_run(run("three", 2, "passed", 3, suspect=True))
    (row,) = evaluation(corpus).to_dict("records")
    assert row["pass_at_1"] == pytest.approx(0.25)
    # Nor do its segments count.
    assert row["segments"] == pytest.approx((0.5 + (2 / 3 + 0) / 2) / 2)
    assert row["pooled_segments"] == pytest.approx((1 + 0 + 2 / 3 + 0) / 4)
    assert (row["passed"], row["unconfirmed"], row["suspect"]) == (1, 1, 1)
    shown = CliRunner().invoke(app, ["evaluate", str(corpus.path)], env={"COLUMNS": "200"}).stdout
    assert "1 (1 unconfirmed), 1 suspect" in shown


def test_an_unknown_cost_is_not_counted_as_nothing(corpus: Corpus) -> None:
    assert evaluation(corpus)["cost_usd"].isna().all()


def test_the_command_prints_what_table_2_says(corpus: Corpus) -> None:
    """Of an attempt that was run twice, one run counts, and a pass is of all segments."""
    corpus.append_run(run("three", 1, "passed", None, run_id="z-again"))
    corpus.append_run(run("three", 2, "passed", None))
    (row,) = evaluation(corpus).to_dict("records")
    (printed,) = models_table(corpus).frame.to_dict("records")
    assert {name: row[name] for name in printed} == pytest.approx(printed, nan_ok=True)
    assert row["runs"] == 4
    assert row["segments"] == pytest.approx((0.5 + (2 / 3 + 1) / 2) / 2)
    said = CliRunner().invoke(app, ["evaluate", str(corpus.path)]).stdout
    assert f"{row['pass_at_1']:.0%}" in said and "0.67" in said


def test_evaluation_is_two_runs_a_model_apart_from_those_that_measure_depth() -> None:
    history = [
        run("one", 1, "passed", 1, purpose="free", model="first"),
        run("one", 1, "none", None, model="other"),
        run("one", 2, "failed", 0, model="other"),
    ]
    assert evaluation_runs(history, ["first", "other"]) == [
        Planned("first", None, 1, "evaluation"),
        Planned("first", None, 2, "evaluation"),
        Planned("other", None, 1, "evaluation"),
    ]
