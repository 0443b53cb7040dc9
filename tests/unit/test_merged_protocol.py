"""Merged tasks are measured downward, two runs a cap, until both fail (Appendix H)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from checked_task import write_stock
from task_files import TOML, MakeTask
from typer.testing import CliRunner

from depthkit.artifacts.own_tasks import own_tasks
from depthkit.cli import app
from depthkit.corpus import Corpus
from depthkit.corpus.show import estimate_rows
from depthkit.errors import DepthkitError
from depthkit.experiments.merge import depths_before, write_merged
from depthkit.experiments.status import status
from depthkit.model import Run, Segment, Task
from depthkit.protocol import ABOVE
from depthkit.protocol.merged import merged_depth, merged_runs
from depthkit.tasks import LoadedTask, load_task
from depthkit.trials.forecast import most_runs, pending


def run(cap: int, attempt: int, passed: bool | None, **changes: object) -> Run:
    values: dict[str, object] = {
        "run_id": f"r-{cap}-{attempt}-{passed}",
        "dataset": "d",
        "task_id": "t",
        "model": "m",
        "cap": cap,
        "attempt": attempt,
        "purpose": "merged",
        "verdict": "none" if passed is None else "passed" if passed else "failed",
        "stop": "model_error" if passed is None else "submitted",
        "turns": 1,
        "provenance": "scripted",
    }
    return Run.model_validate(values | changes)


def world(passes_from: int, original: int) -> tuple[list[int], int | None]:
    """Caps run in order, and D, where a model passes at this cap and above."""
    history: list[Run] = []
    while planned := merged_runs(history, "m", original=original):
        for each in planned:
            assert each.purpose == "merged"
            history.append(run(each.cap or 0, each.attempt, (each.cap or 0) >= passes_from))
    return [each.cap or 0 for each in history], merged_depth(history, "m", original=original)


@pytest.mark.parametrize(
    ("passes_from", "original", "caps", "depth"),
    [
        (10, 10, [10, 10, 5, 5], 10),
        (5, 10, [10, 10, 5, 5, 3, 3], 5),
        (20, 10, [10, 10], ABOVE),
        (1, 3, [3, 3, 2, 2, 1, 1], 1),
        (80, ABOVE, [80, 80, 40, 40], 80),
        (99, ABOVE, [80, 80], ABOVE),
    ],
)
def test_caps_are_tried_from_the_original_d_downward(
    passes_from: int, original: int, caps: list[int], depth: int
) -> None:
    assert world(passes_from, original) == (caps, depth)


def test_both_runs_of_a_cap_are_made_and_one_pass_is_enough() -> None:
    history = [run(5, 1, True)]
    assert [(p.cap, p.attempt) for p in merged_runs(history, "m", original=5)] == [(5, 2)]
    assert merged_depth(history, "m", original=5) is None
    history.append(run(5, 2, False))
    assert [(p.cap, p.attempt) for p in merged_runs(history, "m", original=5)] == [(3, 1), (3, 2)]


def test_a_run_without_a_verdict_is_made_again() -> None:
    assert [p.attempt for p in merged_runs([run(5, 1, None)], "m", original=5)] == [1, 2]


def test_only_merged_runs_of_the_model_count() -> None:
    others = [run(5, 1, True, purpose="ladder"), run(5, 1, True, model="n")]
    assert len(merged_runs(others, "m", original=5)) == 2


def test_the_scheduler_asks_within_the_caps_of_the_task() -> None:
    planned = pending([], ["m", "n"], "merged", caps=[1, 2, 3])
    assert {(each.model, each.cap) for each in planned} == {("m", 3)}
    assert [each.cap for each in most_runs(("d", "t"), [], ["m"], "merged", caps=[1, 2])] == [
        2, 2, 1, 1,
    ]  # fmt: skip


# --- from which depth ---

type Merged = Callable[[str], LoadedTask]


@pytest.fixture
def merged(single: MakeTask) -> Merged:
    """A task merged from one called before; more may be said of it."""

    def make(more: str = "") -> LoadedTask:
        said = f'\n[metadata.depthkit]\nparent = "before"\nmerged_segments = 2\n{more}'
        return load_task(single({"task.toml": TOML + said}, "before-merged"))

    return make


def parents(folder: Path, depths: dict[str, int]) -> Corpus:
    """Data sets, each with a task called before of this D."""
    corpus = Corpus.open_or_create(folder, models=["m"])
    for dataset, depth in depths.items():
        parts = tuple(Segment(index=n, name=f"s{n}") for n in (1, 2))
        corpus.append_tasks(
            [Task(dataset=dataset, task_id="before", segments=parts, provenance="scripted")]
        )
        where = {"dataset": dataset, "task_id": "before"}
        for n in (1, 2):
            free = {"run_id": f"{dataset}-f{n}", "purpose": "free", "cap": None, "turns": 149}
            corpus.append_run(run(1, n, True).model_copy(update={**where, **free}))
            for cap in (cap for cap in corpus.caps if cap <= depth):
                more = {"run_id": f"{dataset}-{cap}-{n}", "purpose": "ladder"}
                corpus.append_run(run(cap, n, cap == depth, **where, **more))
    return corpus


def test_above_all_caps_it_starts_at_the_largest_which_is_said_and_kept(
    merged: Merged, tmp_path: Path
) -> None:
    task, corpus = merged(), parents(tmp_path / "c", {"Ours": ABOVE})
    key = (task.record.dataset, task.record.task_id)
    assert depths_before(corpus, [task]) == {key: ABOVE}
    registry = tmp_path / "models.toml"
    registry.write_text('[m]\nlitellm = "openai/m"\ncontext_tokens = 1000\n')
    command = ["ladder", "--merged", str(task.path), "--corpus", str(corpus.path), "--dry-run"]
    done = CliRunner().invoke(app, [*command, "--models-file", str(registry)])
    assert "from cap 80 downward (D before is above 80)" in done.output
    assert "m, cap 80, run 2" in done.output
    corpus.append_tasks([task.record])
    where = {"dataset": key[0], "task_id": key[1], "depth_before": ABOVE}
    corpus.append_runs([run(80, n, True, **where) for n in (1, 2)])
    corpus.append_runs([run(40, n, False, **where) for n in (1, 2)])
    rows = {row["task_id"]: row for row in estimate_rows(corpus)}
    assert rows[key[1]]["merged"] == {"D_before": ABOVE, "first_cap": 80, "D": 80}
    assert rows["before"]["merged"] is None
    assert [each.task_id for each in status(corpus).tasks] == ["before"]
    shown = CliRunner().invoke(app, ["estimates", str(corpus.path)])
    assert shown.output.splitlines()[-2].split()[-3:] == [">80", "80", "80"]


def test_a_parent_is_told_apart_by_its_data_set(merged: Merged, tmp_path: Path) -> None:
    corpus = parents(tmp_path / "c", {"A": 3, "B": 20})
    with pytest.raises(DepthkitError, match=r"before is a task of A, B in .*parent_dataset"):
        depths_before(corpus, [merged()])
    task = merged('parent_dataset = "B"\n')
    assert list(depths_before(corpus, [task]).values()) == [20]
    with pytest.raises(DepthkitError, match="D of C/before with m is not known"):
        depths_before(corpus, [merged('parent_dataset = "C"\n')])
    corpus.append_tasks([task.record])
    assert own_tasks(corpus).merged == [(("B", "before"), task.record)]


# --- its files ---


def test_a_merged_solution_keeps_the_bytes_of_its_parts(tmp_path: Path) -> None:
    task = write_stock(tmp_path / "Ours" / "stock")
    solutions = [task / f"steps/s{number}/solution/solve.sh" for number in (1, 2)]
    for path, text in zip(solutions, (b"echo '\xe9'\n", "echo 'é'\n".encode()), strict=True):
        path.write_bytes(path.read_bytes() + text)
    write_merged(load_task(task), tmp_path / "merged", ())
    script = (tmp_path / "merged/solution/solve.sh").read_bytes()
    for path in solutions:
        assert path.read_bytes().rstrip() in script
    solutions[1].write_text("cat <<'END'\n")
    with pytest.raises(DepthkitError, match="merged, its solution does not parse"):
        write_merged(load_task(task), tmp_path / "again", ())
