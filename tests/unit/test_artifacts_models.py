"""Evaluated models and training: small corpora worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from depthkit.artifacts import (
    evaluation_text,
    models_table,
    models_text,
    run_ends_figure,
    segments_figure,
    training_figure,
    training_text,
)
from depthkit.artifacts.model_styles import in_order, model_styles
from depthkit.corpus import Corpus
from depthkit.model import Run, Segment, Task

NUMBER = iter(range(1_000_000))


def task(task_id: str, k: int = 6, dataset: str = "Ours") -> Task:
    group = "ours" if dataset == "Ours" else None
    return Task(
        dataset=dataset,
        task_id=task_id,
        group=group,
        segments=tuple(Segment(index=n, name=f"s{n}") for n in range(1, k + 1)),
        provenance="scripted",
    )


def run(model: str, task_id: str, segments: int | None = None, **fields: Any) -> Run:
    """An evaluation run on a task of six segments; ``None`` for no result."""
    known: dict[str, Any] = {
        "dataset": "Ours",
        "attempt": 1,
        "purpose": "evaluation",
        "verdict": "none" if segments is None else "passed" if segments == 6 else "failed",
        "stop": "infrastructure" if segments is None else "submitted",
        "segments_passed": segments,
        "provenance": "scripted",
        "run_id": f"r{next(NUMBER)}",
    }
    return Run(**(known | {"model": model, "task_id": task_id} | fields))


def corpus_of(path: Path, tasks: Sequence[Task], runs: Sequence[Run]) -> Corpus:
    corpus = Corpus.open_or_create(path, name="small", models=["first", "second"])
    corpus.append_tasks(tasks)
    corpus.append_runs(runs)
    return corpus


def test_table_2_averages_within_tasks_and_then_over_tasks(tmp_path: Path):
    runs = [
        run("a", "t1", 6, turns=10, agent_minutes=1.0, context_tokens=1000),
        run("a", "t1", 3, attempt=2, turns=20, agent_minutes=3.0, context_tokens=3000),
        run("a", "t2", 0, turns=60, agent_minutes=8.0, context_tokens=5000),
        run("a", "t2", None, attempt=2),
    ]
    made = models_table(corpus_of(tmp_path / "c", [task("t1"), task("t2")], runs))
    row = made.frame.iloc[0]
    assert row[["model", "tasks", "runs", "passed"]].tolist() == ["a", 2, 3, 1]
    assert row["pass_at_1"] == pytest.approx((1 / 2 + 0) / 2)  # pooled it would be 1/3
    assert row["segments"] == pytest.approx((3 / 4 + 0) / 2)
    assert row[["turns", "minutes", "tokens_k"]].tolist() == [30, 4, 3]
    assert row[["turns_passed", "minutes_passed"]].tolist() == [10, 1]
    assert "scripted · 2 tasks, 3 runs" in made.provenance


def test_a_number_not_known_of_all_runs_is_over_those_and_said_so(tmp_path: Path):
    runs = [run("a", "t", 1, turns=10), run("a", "t", 1, attempt=2)]
    made = models_table(corpus_of(tmp_path / "c", [task("t")], runs))
    assert made.frame.at[0, "turns"] == 10 and pd.isna(made.frame.at[0, "minutes"])
    assert "Turns: known of 1 of 2 runs" in " ".join(made.notes)


def test_a_suspect_run_is_a_failure_and_none_of_its_segments_counts(tmp_path: Path):
    runs = [run("a", "t", 6, suspect=True), run("a", "t", 6, attempt=2)]
    made = models_table(corpus_of(tmp_path / "c", [task("t")], runs))
    assert made.frame.loc[0, ["pass_at_1", "segments"]].tolist() == [0.5, 0.5]
    assert "1 runs have a verdict that may be forged" in " ".join(made.notes)


def test_of_an_attempt_run_twice_the_first_valid_run_counts(tmp_path: Path):
    runs = [
        run("a", "t", None, started="2026-01-01T00:00:00Z"),
        run("a", "t", 6, started="2026-01-03T00:00:00Z"),
        run("a", "t", 2, started="2026-01-02T00:00:00Z"),
    ]
    made = models_table(corpus_of(tmp_path / "c", [task("t")], runs))
    assert made.frame.loc[0, ["runs", "passed"]].tolist() == [1, 0]


def test_only_evaluation_runs_on_our_tasks_count(tmp_path: Path):
    tasks = [task("t"), task("u", dataset="TB2.1")]
    runs = [
        run("a", "t", 6),
        run("a", "t", 0, attempt=2, purpose="free"),
        run("qwen3-8b", "u", 0, dataset="TB2.1"),
    ]
    corpus = corpus_of(tmp_path / "c", tasks, runs)
    assert models_table(corpus).frame["model"].tolist() == ["a"]
    assert models_table(corpus).frame["runs"].tolist() == [1]
    assert models_table(corpus, datasets=["tb2.1"]).frame["model"].tolist() == ["qwen3-8b"]


def test_figure_6_follows_runs_segment_by_segment(tmp_path: Path):
    runs = [
        run("a", "t1", 6),
        run("a", "t2", 2),
        run("a", "t3", 1, attempt=1),
        run("a", "short", 2, attempt=1, verdict="passed"),
    ]
    tasks = [task("t1"), task("t2"), task("t3"), task("short", 2)]
    made = segments_figure(corpus_of(tmp_path / "c", tasks, runs))
    frame = made.frame.set_index("segment")
    assert frame["runs"].tolist() == [4, 4, 3, 3, 3, 3]
    assert frame["share"].tolist() == pytest.approx([1, 3 / 4, 1 / 3, 1 / 3, 1 / 3, 1 / 3])
    assert frame["reached"].tolist() == [4, 4, 2, 1, 1, 1]
    row = made.parts["rates"].iloc[0]
    assert row["rate"] == pytest.approx((1 * 3 / 4 * 1 / 2) ** (1 / 6))
    assert row["all_six"] == pytest.approx(1 / 3)
    assert made.show()


def test_without_tasks_of_six_segments_no_share_passes_six(tmp_path: Path):
    corpus = corpus_of(tmp_path / "c", [task("t", 3)], [run("a", "t", 3, verdict="passed")])
    row = segments_figure(corpus).parts["rates"].iloc[0]
    assert row["rate"] == 1 and pd.isna(row["all_six"])


def test_section_4_5_compares_models_on_the_tasks_they_share(tmp_path: Path):
    runs = [
        *(run("a", "t1", n, attempt=n) for n in (1, 2)),
        *(run("b", "t1", n, attempt=n) for n in (1, 2)),
        run("a", "t2", 6),
        run("b", "t2", 3),
        run("a", "t3", 6),
        run("b", "t3", None, stop="refused"),
    ]
    tasks = [task(f"t{n}") for n in (1, 2, 3)]
    made = models_text(corpus_of(tmp_path / "c", tasks, runs))
    assert ">2<" in made.show() and ">66.7%<" in made.show()
    row = made.frame.iloc[0]
    assert row[["tasks_all_models", "passed_by_none"]].tolist() == [2, 1]
    assert row["spread"] == pytest.approx(2 / 3)
    # a: 4/4, 3/4, 2/3 and then 1; b: 3/3, 2/3, 1/2 and then 0
    assert row["rate_gap"] == pytest.approx(0.5 ** (1 / 6))
    assert pd.isna(row["all_six_ratio"])  # nobody's share is over 0
    alone = corpus_of(tmp_path / "d", tasks, runs[:2])
    assert models_text(alone).frame.isna().all(axis=None)


def test_appendix_i_tells_refused_tasks_from_others_without_a_result(tmp_path: Path):
    runs = [
        run("a", "t1", None, stop="refused"),
        run("a", "t1", None, stop="infrastructure", attempt=2),
        run("a", "t2", None, stop="model_error"),
        run("a", "t3", None, stop="refused"),
        run("a", "t3", 0, attempt=2),
        run("b", "t1", None, stop="refused"),
        run("b", "t2", 6),
    ]
    made = evaluation_text(corpus_of(tmp_path / "c", [task(f"t{n}") for n in (1, 2, 3)], runs))
    assert made.frame.to_numpy().tolist() == [["a", 1, 1, 1, 2], ["b", 1, 1, 0, 1]]
    assert made.parts["overlap"].to_numpy().tolist() == [["a", "b", 1], ["b", "a", 1]]
    assert made.parts["measuring"].isna().all(axis=None)


def test_the_measuring_models_evaluation_is_compared_with_its_free_runs(tmp_path: Path):
    runs = [run("first", name, 6) for name in ("t1", "t2")]
    runs += [run("first", "t1", 6, purpose="free", attempt=n, turns=1) for n in (1, 2)]
    runs += [run("first", "t2", 0, purpose="free", attempt=n, turns=1) for n in (1, 2)]
    made = evaluation_text(corpus_of(tmp_path / "c", [task("t1"), task("t2")], runs))
    assert made.parts["measuring"].iloc[0].tolist() == [2, 1]


def test_figure_14_classes_failed_runs_by_how_they_stop(tmp_path: Path):
    ends = [
        run("a", "t", 6, stop="time_limit"),  # a run that timed out can have passed
        run("a", "t", 1, first_claim_turn=3, turns=20),
        run("a", "t", 1, first_claim_turn=4, turns=20),
        run("a", "t", 1, turns=2),
        run("a", "t", 1, stop="terminal_broken", first_claim_turn=1),
        run("a", "t", 1, stop="time_limit"),
        run("a", "t", 1, stop="turn_ceiling"),
        run("a", "t", 1, purpose="free", stop="turn_ceiling"),
        run("a", "t", None, stop="refused"),
        run("a", "t", 1, purpose="ladder", cap=5, stop="turn_cap"),
        run("b", "t", 1, purpose="free"),  # not an evaluated model
    ]
    runs = [each.model_copy(update={"attempt": n}) for n, each in enumerate(ends, start=1)]
    made = run_ends_figure(corpus_of(tmp_path / "c", [task("t")], runs))
    assert made.frame["model"].unique().tolist() == ["a"]
    runs_by = made.frame.set_index("outcome")["runs"].to_dict()
    assert runs_by == {"passed": 1, "early": 2, "submitted": 1, "terminal": 1, "limit": 3}
    assert made.frame["share"].sum() == pytest.approx(1)
    assert made.show()


def test_early_submissions_are_unknown_where_the_first_claim_is(tmp_path: Path):
    runs = [run("a", "t", 1, turns=20), run("a", "t", 1, attempt=2, first_claim_turn=2)]
    made = run_ends_figure(corpus_of(tmp_path / "c", [task("t")], runs))
    shares = made.frame.set_index("outcome")["share"]
    assert pd.isna(shares["early"]) and pd.isna(shares["submitted"])
    assert shares["unclear"] == 1
    assert "cannot be told" in " ".join(made.notes)


def test_runs_of_which_nobody_knows_how_they_ended_are_a_class_of_their_own(tmp_path: Path):
    runs = [run("a", "t", 1, stop="unknown", turns=2), run("a", "t", 6, attempt=2, stop="unknown")]
    made = run_ends_figure(corpus_of(tmp_path / "c", [task("t")], runs))
    runs_by = made.frame.set_index("outcome")["runs"].to_dict()
    assert runs_by["unknown"] == runs_by["passed"] == 1 == sum(runs_by.values()) - 1
    assert made.show()


def test_figure_7_averages_over_runs_and_says_how_they_vary(tmp_path: Path):
    tasks = [task(name, 1, "TBLite") for name in ("t1", "t2")] + [task("o")]
    passes = {1: (1, 1), 2: (1, 0), 3: (0, 0)}
    runs = [
        run("qwen3-8b", name, passed, dataset="TBLite", attempt=attempt,
            verdict="passed" if passed else "failed")
        for attempt, outcome in passes.items()
        for name, passed in zip(("t1", "t2"), outcome, strict=True)
    ]  # fmt: skip
    made = training_figure(corpus_of(tmp_path / "c", tasks, [*runs, run("a", "o", 6)]))
    assert made.frame.to_numpy().tolist() == [["TBLite", "qwen3-8b", 2, 0.5, 0.5, 3]]
    assert made.show()
    fewer = training_figure(corpus_of(tmp_path / "d", tasks, runs[:5]))
    assert fewer.frame.at[0, "runs"] == 2
    assert "Not all tasks have equally many runs" in " ".join(fewer.notes)


def test_training_samples_are_summed_over_the_runs_that_gave_some(tmp_path: Path):
    runs = [
        run("a", "t", 6, training_samples=4),
        run("a", "t", 1, attempt=2, purpose="free", training_samples=3),
        run("a", "t", 0, attempt=3, training_samples=0),
        run("b", "t", 0),
    ]
    corpus = corpus_of(tmp_path / "c", [task("t")], runs)
    assert training_text(corpus).frame.iloc[0].tolist() == [2, 7]
    unknown = training_text(corpus_of(tmp_path / "d", [task("t")], runs[3:]))
    assert unknown.frame.isna().all(axis=None)
    assert "No run of this corpus says" in " ".join(unknown.notes)


def test_a_model_looks_the_same_whichever_others_of_the_paper_are_there():
    few, many = model_styles(["gpt-6-luna"]), model_styles(["gpt-6-luna", "glm-5.3-flash", "z"])
    assert few["gpt-6-luna"] == many["gpt-6-luna"]
    assert in_order(["z", "glm-5.3-flash", "claude-sonnet-5.5"])[-1] == "z"
