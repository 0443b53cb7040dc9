"""Our tasks, merged tasks, original tasks and replays: small corpora worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from depthkit.artifacts import (
    checks_table,
    example_table,
    merging_figure,
    originals_figure,
    our_data_text,
    our_tasks_text,
    task_size_table,
)
from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.model import Change, Replay, Run, Segment, Task, Work
from depthkit.protocol import ABOVE, CAPS
from depthkit.protocol.merged import merged_depth

MODELS = ["first", "second"]


def segment(index: int, lines: int | None = 10, words: int | None = 200) -> Segment:
    work = None if lines is None else Work(lines=lines, tokens=1, chars=1)
    return Segment(
        index=index, name=f"s{index}", work=work, instruction_words=words, names_stated=index
    )


def task(task_id: str, segments: Sequence[Segment] = (), **fields: Any) -> Task:
    known: dict[str, Any] = {"dataset": "Ours", "group": "ours", "provenance": "scripted"}
    parts = tuple(segments) or (segment(1), segment(2))
    return Task(**(known | {"task_id": task_id, "segments": parts} | fields))


def run(run_id: str, task_id: str, passed: bool | None, **fields: Any) -> Run:
    known: dict[str, Any] = {
        "dataset": "Ours",
        "model": "first",
        "attempt": 1,
        "verdict": {True: "passed", False: "failed", None: "none"}[passed],
        "stop": "infrastructure" if passed is None else "submitted",
        "provenance": "scripted",
    }
    return Run(**(known | {"run_id": run_id, "task_id": task_id} | fields))


def solved(task_id: str, depth: int, dataset: str = "Ours") -> list[Run]:
    """Free runs of as many turns as D, and failures of both models under all smaller caps."""
    turns = 120 if depth == ABOVE else depth
    made = [
        run(f"{task_id}-f{n}", task_id, True, dataset=dataset, attempt=n, purpose="free",
            turns=turns)
        for n in (1, 2)
    ]  # fmt: skip
    for model in MODELS:
        for cap in (cap for cap in CAPS if cap < depth):
            for n in (1, 2):
                name = f"{task_id}-{model}-{cap}-{n}"
                made.append(
                    run(name, task_id, False, dataset=dataset, model=model, cap=cap, attempt=n,
                        purpose="ladder", turns=cap)
                )  # fmt: skip
    return made


def merged(task_id: str, outcomes: dict[int, Sequence[bool | None]]) -> list[Run]:
    """Merged runs by cap."""
    return [
        run(f"{task_id}-m{cap}-{n}", task_id, passed, dataset="Merged", cap=cap, attempt=n,
            purpose="merged")
        for cap, passes in outcomes.items()
        for n, passed in enumerate(passes, start=1)
    ]  # fmt: skip


def corpus_of(path: Path, tasks: Sequence[Task], runs: Sequence[Run] = ()) -> Corpus:
    corpus = Corpus.open_or_create(path, name="small", models=MODELS)
    corpus.append_tasks(tasks)
    corpus.append_runs(runs)
    return corpus


# --- Section 4.4, Appendix G ---


def test_our_tasks_are_those_of_group_ours_without_merged_ones(tmp_path: Path):
    tasks = [
        task("a", [segment(n) for n in range(1, 7)], seed_env="x"),
        task("b", [segment(n) for n in range(1, 4)], seed_env="y"),
        task("c", seed_env="y"),
        task("a-merged", [segment(1)], dataset="Merged", parent="a", seed_env="x"),
        task("o", [segment(1)], dataset="TW", group="human-curated", seed_env="x"),
    ]
    made = our_tasks_text(corpus_of(tmp_path / "c", tasks, [*solved("a", 40), *solved("b", 20)]))
    assert made.frame.iloc[0].to_dict() == {
        "tasks": 3,
        "seed_envs": 2,
        "k_min": 2,
        "k_max": 6,
        "D_ge_40": 1,
    }
    assert made.parts["generation"].isna().all(axis=None)
    assert "no generation runs" in " ".join(made.notes)


def test_numbers_that_are_not_known_are_null_and_not_zero(tmp_path: Path):
    made = our_tasks_text(corpus_of(tmp_path / "c", [task("a", seed_env="x"), task("b")]))
    assert made.frame[["seed_envs", "D_ge_40"]].isna().all(axis=None)
    assert "1 tasks do not name their seed environment" in " ".join(made.notes)


def test_a_corpus_that_marks_no_task_as_ours_says_that_all_are_taken(tmp_path: Path):
    corpus = corpus_of(tmp_path / "c", [task("a", group=None), task("b", group="synthetic")])
    made = our_tasks_text(corpus)
    assert made.frame.at[0, "tasks"] == 2
    assert "all its tasks stand for our own" in " ".join(made.notes)


def generation(task_id: str, cost: float | None) -> Run:
    return run(f"g-{task_id}", task_id, True, purpose="generation", cost_usd=cost)


def test_generation_costs_are_per_accepted_task_and_include_rejected_ones(tmp_path: Path):
    runs = [generation("a", 1.5), generation("b", 0.5), generation("gone", 1.0)]
    made = our_tasks_text(corpus_of(tmp_path / "c", [task("a"), task("b")], runs))
    assert ">3<" in made.show() and ">$1.50<" in made.show()
    row = made.parts["generation"].iloc[0]
    assert (row["seeds"], row["accepted"]) == (3, 2)
    assert row["accepted_share"] == pytest.approx(2 / 3)
    assert (row["cost_usd"], row["cost_usd_per_accepted"]) == (3.0, 1.5)
    unknown = corpus_of(tmp_path / "d", [task("a")], [generation("a", 1.0), generation("b", None)])
    row = our_tasks_text(unknown).parts["generation"].iloc[0]
    assert row["accepted"] == 1
    assert pd.isna(row["cost_usd"]) and pd.isna(row["cost_usd_per_accepted"])


def test_table_9_is_over_segments_and_over_tasks(tmp_path: Path):
    tasks = [
        task("a", [segment(1, 10), segment(2, 20)]),
        task("b", [segment(1, 30), segment(2, 40)]),
        task("c", [segment(1, 50), segment(2, None)]),
    ]
    made = task_size_table(corpus_of(tmp_path / "c", tasks))
    lines = made.frame.set_index("measure").loc["lines"]
    assert (lines["segment_median"], lines["segments"]) == (30, 5)
    assert (lines["segment_p10"], lines["segment_p90"]) == (14, 46)
    assert (lines["task_median"], lines["tasks"]) == (50, 2)  # 30 and 70
    assert (lines["task_p10"], lines["task_p90"]) == (34, 66)
    assert made.frame.set_index("measure").at["names", "task_median"] == 3
    assert "2 of 3 tasks" in " ".join(made.notes)


def test_appendix_g_counts_segments_words_depths_and_categories(tmp_path: Path):
    tasks = [
        task("a", [segment(1, words=100), segment(2, words=300)], category="System-Administration"),
        task("b", [segment(1, words=200), segment(2, words=500)], category="system_administration"),
        task("c", [segment(n, words=400) for n in range(1, 5)], category="security"),
        task("d", category="other"),
        task("e"),
    ]
    runs = [*solved("a", 40), *solved("b", ABOVE), *solved("c", 40)]
    made = our_data_text(corpus_of(tmp_path / "c", tasks, runs), least=2)
    assert made.frame.to_numpy().tolist() == [[2, 4], [3, 0], [4, 1]]
    words = made.parts["words"].set_index("segment")["median"]
    assert (words["first"], words["later"]) == (200, 400)
    depths = made.parts["depths"].set_index("D")["tasks"]
    assert (depths[40], depths[ABOVE], depths[80], depths.sum()) == (2, 1, 0, 3)
    assert made.parts["categories"].to_numpy().tolist() == [
        ["system administration", 2, 1],
        ["other", 2, 2],
        ["none", 1, 0],
    ]


# --- Figure 5 ---


def test_figure_5_counts_tasks_by_depth_before_and_after_merging(tmp_path: Path):
    depths = {"same": 20, "one": 20, "two": 20, "not": 40, "above": ABOVE, "open": 20}
    tasks = [task(name) for name in depths]
    tasks += [
        task(f"{name}-merged", [segment(1)], dataset="Merged", parent=name) for name in depths
    ]
    runs = [each for name, depth in depths.items() for each in solved(name, depth)]
    fails = (False, False)
    runs += merged("same-merged", {20: (False, True), 10: fails})
    runs += merged("one-merged", {20: (True,), 10: (True,), 5: fails})
    runs += merged("two-merged", {20: (True,), 10: (True,), 5: (True,), 3: fails})
    runs += merged("not-merged", {40: fails, 20: (True,)})  # not tried after a failed cap
    runs += merged("above-merged", {80: fails})
    runs += merged("open-merged", {20: (True,), 10: (False, None)})
    made = merging_figure(corpus_of(tmp_path / "c", tasks, runs))
    assert made.frame.to_numpy().tolist() == [
        [20, "5", 1],
        [20, "10", 1],
        [20, "20", 1],
        [40, "not solved within", 1],
        [ABOVE, "not solved within", 1],
    ]
    summary = made.parts["summary"].iloc[0].to_dict()
    assert summary.pop("not_lower_share") == pytest.approx(3 / 5)
    assert summary == {
        "merged": 5,
        "not_lower": 3,
        "same": 1,
        "not_within": 2,
        "lower": 2,
        "lower_by_1": 1,
        "lower_by_2": 1,
    }
    assert "1 merged tasks are left out" in " ".join(made.notes)
    assert "1 merged task had D above 80 before and was measured from 80 down" in str(made.notes)
    firsts = made.parts["tasks"].set_index("task_id")["first_cap"].to_dict()
    assert firsts["above-merged"] == 80 and firsts["not-merged"] == 40
    assert made.show()


def test_without_merged_tasks_the_counts_are_null(tmp_path: Path):
    made = merging_figure(corpus_of(tmp_path / "c", [task("a")], solved("a", 10)))
    assert made.frame.empty and made.parts["summary"].isna().all(axis=None)
    assert "no merged tasks" in " ".join(made.notes)


@given(passes=st.dictionaries(st.sampled_from(CAPS), st.booleans()), original=st.sampled_from(CAPS))
@settings(max_examples=200)
def test_merged_depth_is_the_end_of_an_unbroken_run_of_passes(
    passes: dict[int, bool], original: int
):
    history = merged("m", {cap: (passed, passed) for cap, passed in passes.items()})
    found = merged_depth(history, "first", original=original)
    tried = [cap for cap in reversed(CAPS) if cap <= original]
    expected: int | None = ABOVE
    for cap in tried:
        if cap not in passes:
            expected = None
            break
        if not passes[cap]:
            break
        expected = cap
    assert found == expected
    assert merged_depth(history, "second", original=original) is None


# --- Figure 13 ---


def test_figure_13_pairs_solved_tasks_with_the_original_of_their_environment(tmp_path: Path):
    def original(task_id: str, env: str, lines: int | None) -> Task:
        parts = [segment(1, lines)]
        return task(task_id, parts, dataset="TW", group="human-curated", seed_env=env)

    tasks = [task(name, seed_env=f"env-{name}") for name in "abcdef"]
    tasks += [task("a-merged", [segment(1)], dataset="Merged", parent="a", seed_env="env-a")]
    tasks += [
        original("oa", "env-a", 5),
        original("ob", "env-b", 40),
        original("oc", "env-c", None),
    ]
    tasks += [original("od", "env-d", 5)]  # never run
    tasks += [original("oe", "env-e", 5), original("oe2", "env-e", 5)]
    runs = [each for name in "abcde" for each in solved(name, 40 if name != "b" else 20)]
    runs += [*solved("oa", 1, "TW"), *solved("ob", 20, "TW"), *solved("oc", 10, "TW")]
    made = originals_figure(corpus_of(tmp_path / "c", tasks, runs))
    shown = made.frame.set_index("task_id")
    assert list(shown.index) == ["a", "b", "c"]
    assert shown.loc["a"].tolist() == [40, 1, 20, 5]
    summary = made.parts["summary"].iloc[0]
    counts = ["pairs", "original_le_10", "original_eq_1", "ours_ge_20", "ours_deeper"]
    assert summary[counts].tolist() == [3, 2, 1, 3, 2]
    assert summary["p"] == pytest.approx(0.5)  # 2 of 2, the tie left out
    assert summary[["with_W", "ours_longer"]].tolist() == [2, 1]
    assert summary[["W", "W_original", "W_ratio_min"]].tolist() == [20, 22.5, 0.5]
    text = " ".join(made.notes)
    assert "1 tasks share their environment" in text and "W is not known" in text


def test_the_sign_test_over_35_of_35_pairs_is_the_papers(tmp_path: Path):
    tasks, runs = [], []
    for n in range(35):
        tasks += [task(f"a{n}", seed_env=f"e{n}")]
        tasks += [task(f"o{n}", [segment(1)], dataset="TW", group="synthetic", seed_env=f"e{n}")]
        runs += [*solved(f"a{n}", 5), *solved(f"o{n}", 1, "TW")]
    made = originals_figure(corpus_of(tmp_path / "c", tasks, runs), datasets=["ours"])
    assert f"{made.parts['summary'].at[0, 'p']:.1e}" == "5.8e-11"


def test_without_pairs_nothing_is_claimed(tmp_path: Path):
    made = originals_figure(corpus_of(tmp_path / "c", [task("a", seed_env="x")], solved("a", 5)))
    assert made.frame.empty and made.parts["summary"].isna().all(axis=None)


# --- Table 8 ---


def replay(segment: int, holds: bool | None, change: Change = "key_step_removed") -> Replay:
    return Replay(
        dataset="Ours",
        task_id="a",
        change=change,
        segment=segment,
        checked_segment=segment,
        holds=holds,
        provenance="scripted",
    )


def test_table_8_leaves_replays_without_a_result_out_of_the_share(tmp_path: Path):
    corpus = corpus_of(tmp_path / "c", [task("a")])
    for each in (replay(1, True), replay(2, False), replay(3, True), replay(4, None)):
        corpus.append_replay(each)
    corpus.append_replay(replay(5, None))
    corpus.append_replay(replay(5, True))  # done again
    corpus.append_replay(replay(1, True, "checks_before_work"))
    made = checks_table(corpus)
    assert made.frame["change"].tolist() == ["checks_before_work", "key_step_removed"]
    assert made.frame.iloc[1, 1:].tolist() == [3, 4, 0.75, 1]
    assert "1 task, 6 replays" in made.provenance
    assert checks_table(corpus_of(tmp_path / "d", [task("a")])).frame.empty


# --- Table 10 ---


def test_table_10_finds_the_papers_example_by_its_environment(tmp_path: Path):
    tasks = [task("a", seed_env="networkmanager-l2tp-1.20.4"), task("b")]
    runs = solved("a", 40)
    for model, passes in {"first": (True, False), "second": (True, True), "x": (False,)}.items():
        runs += [
            run(f"e-{model}-{n}", "a", passed, model=model, attempt=n, purpose="evaluation")
            for n, passed in enumerate(passes, start=1)
        ]
    corpus = corpus_of(tmp_path / "c", tasks, runs)
    made = example_table(corpus)
    assert made.frame.iloc[0].tolist() == [40, 40, 20, 2]
    assert made.parts["models"].to_numpy().tolist() == [
        ["first", 1, 2],
        ["second", 2, 2],
        ["x", 0, 1],
    ]
    assert made.parts["outcomes"].to_numpy().tolist() == [[0, 1], [1, 1], [2, 1]]
    assert len(made.parts["segments"]) == 2
    assert pd.isna(example_table(corpus, task="B").frame.at[0, "D"])
    with pytest.raises(DepthkitError, match=r"task is 'c'; corpus small holds no such task.*a, b"):
        example_table(corpus, task="c")
