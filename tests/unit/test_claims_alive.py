"""Numbers are computed, not remembered: shuffle the data and the claims about them fail.

Each mutation changes one thing in a copy of the fitted corpus, which agrees with the paper. A claim
that still agrees under all of them would agree whatever the runs say, so it must be among
``INSENSITIVE`` with the reason.
"""

from __future__ import annotations

import ast
import json
import random
import shutil
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import depthkit.artifacts
from depthkit.artifacts.claims import Claims, Result, compare
from depthkit.published import published

SEED = 20
Line = dict[str, Any]


@dataclass
class Lines:
    """The records of a corpus, as they stand in its files."""

    tasks: list[Line]
    runs: list[Line]
    replays: list[Line]

    @classmethod
    def read(cls, corpus: Path) -> Lines:
        names = "tasks", "runs", "replays"
        return cls(*(list(map(json.loads, (corpus / f"{n}.jsonl").open())) for n in names))

    def write(self, corpus: Path) -> None:
        for name, lines in vars(self).items():
            (corpus / f"{name}.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in lines))

    @property
    def segments(self) -> list[Line]:
        return [segment for task in self.tasks for segment in task["segments"]]


def permute(lines: list[Line], *fields: str) -> None:
    """Hand these fields, together, from line to line."""
    values = [{f: line.pop(f) for f in fields if f in line} for line in lines]
    random.Random(SEED).shuffle(values)
    for line, value in zip(lines, values, strict=True):
        line.update(value)


def verdicts(all_: Lines) -> None:
    """How runs ended, among those for the same purpose and with as many segments to pass."""
    k = {(task["dataset"], task["task_id"]): len(task["segments"]) for task in all_.tasks}
    alike = defaultdict(list)
    for run in all_.runs:
        alike[run["purpose"], k.get((run["dataset"], run["task_id"]))].append(run)
    for runs in alike.values():
        permute(runs, "verdict", "stop", "segments_passed", "stop_segment")


def work(all_: Lines) -> None:
    """W of every segment, in whatever task and data set."""
    permute([segment for segment in all_.segments if "work" in segment], "work")


def measured(all_: Lines) -> None:
    """The measuring runs of every task, thus D and N, in whatever data set."""
    runs = [run for run in all_.runs if run["purpose"] in ("free", "ladder")]
    measured = sorted({(run["dataset"], run["task_id"]) for run in runs})
    to = dict(zip(measured, random.Random(SEED).sample(measured, len(measured)), strict=True))
    for run in runs:
        run["dataset"], run["task_id"] = to[run["dataset"], run["task_id"]]
        if run["dataset"] != "Ours":
            run.pop("segments_passed", None)
            run.pop("stop_segment", None)


def labels(all_: Lines) -> None:
    """What authors and others say of a task: rates, ratings, labels, categories, origins."""
    permute(all_.tasks, "public_pass_rate")
    permute(all_.tasks, "category")
    permute(all_.tasks, "seed_env")
    permute([task for task in all_.tasks if "parent" in task], "parent")
    alike = defaultdict(list)
    for task in all_.tasks:
        alike[task["dataset"]].append(task)
    for tasks in alike.values():
        permute(tasks, "author_rating")
        permute(tasks, "generated_label")
        permute(tasks, "sampling_group")


def replays(all_: Lines) -> None:
    """Results of replays, whatever was changed."""
    permute(all_.replays, "holds", "reason")


def sizes(all_: Lines) -> None:
    """Turns, minutes and tokens of runs, for whatever purpose."""
    permute(all_.runs, "turns", "first_claim_turn")
    permute(all_.runs, "agent_minutes")
    permute(all_.runs, "context_tokens")
    permute(all_.runs, "command_lines", "output_tokens")


def doubled(all_: Lines) -> None:
    """Sizes and costs of which the paper prints sums, or quantiles over all: no exchange moves
    those, so they are doubled."""
    for segment in all_.segments:
        for field in ("instruction_words", "names_stated"):
            if field in segment:
                segment[field] *= 2
        for field in segment.get("work", ()):
            segment["work"][field] *= 2
    for run in all_.runs:
        for field in ("cost_usd", "training_samples"):
            if field in run:
                run[field] *= 2


def thinned(all_: Lines) -> None:
    """A fifth of the tasks is gone, with all about them: no exchange moves counts of tasks."""
    gone = {(task["dataset"], task["task_id"]) for task in all_.tasks}
    gone = set(random.Random(SEED).sample(sorted(gone), len(gone) // 5))
    for name, lines in vars(all_).items():
        setattr(all_, name, [r for r in lines if (r["dataset"], r["task_id"]) not in gone])


# What each must move. Figures with many resamples stand under one or two, to keep this test short.
REACHES: dict[Callable[[Lines], None], str] = {
    verdicts: "figure-6 figure-7 figure-14 section-4.5 section-I table-1 table-2 table-10",
    work: "figure-3 figure-9 section-4.2 table-1 table-9",
    measured: "figure-3 figure-4 figure-5 figure-10 figure-11 figure-12 section-4.2 section-4.3 "
    "section-4.6 section-G table-1 table-5",
    labels: "figure-4 figure-8 figure-13 section-4.3 section-G table-5",
    replays: "table-8",
    sizes: "figure-10 section-4.2 section-D table-1 table-2 table-6",
    doubled: "section-4.4 section-4.6 section-G table-9",
    thinned: "figure-6 figure-7 figure-9 figure-11 figure-14 section-4.2 section-4.4 section-4.5 "
    "section-4.6 section-G section-I table-1 table-2 table-5 table-8 table-10",
}

INSENSITIVE = {
    "section-1/frontier": "an inequality: the best of six models passes below half",
    "table-1/TMax/D": "the median D of solved tasks of all data sets together is 1 too",
    "table-1/SETA/D": "the median D of solved tasks of all data sets together is 1 too",
    "section-4.3/rating-W-low": "an inequality: the interval contains 0, more so after a shuffle",
    "section-4.3/rating-W-high": "an inequality: the interval contains 0, more so after a shuffle",
    "section-4.3/rating-N-low": "an inequality: the interval contains 0, more so after a shuffle",
    "section-4.4/fewest-segments": "counts segments, which stay with their tasks",
    "section-4.4/most-segments": "counts segments, which stay with their tasks",
    "figure-7/runs": "counts runs a task, which stay with their tasks",
    "table-4/FACET/groups": "counts groups of the sample, of which none vanishes",
    "table-4/RST/groups": "counts groups of the sample, of which none vanishes",
    "table-4/SETA/groups": "counts groups of the sample, of which none vanishes",
    "table-4/TB2/groups": "counts groups of the sample, of which none vanishes",
    "table-4/TMax/groups": "counts groups of the sample, of which none vanishes",
}
"""Claims that agree under every mutation, and why."""


@pytest.fixture(scope="module")
def outcomes(
    tmp_path_factory: pytest.TempPathFactory, paper_claims: Claims
) -> dict[str, dict[str, Result]]:
    """By mutation, and ``""`` for none: the counted claims by id."""
    original = Path(str(files("depthkit"))) / "data" / "paper"
    wanted = published("depth")
    found = {"": {each.claim.id: each for each in paper_claims.results}}
    for mutate, reaches in REACHES.items():
        corpus = tmp_path_factory.mktemp("alive") / "paper"
        shutil.copytree(original, corpus, ignore=shutil.ignore_patterns("cache"))
        lines = Lines.read(corpus)
        mutate(lines)
        lines.write(corpus)
        artifacts = {f"depth/{name}" for name in reaches.split()}
        chosen = [claim for claim in wanted if claim.artifact in artifacts]
        results = compare(chosen, corpus).results
        found[mutate.__name__] = {each.claim.id: each for each in results}
    return found


def agreeing(outcomes: dict[str, dict[str, Result]]) -> dict[str, Result]:
    return {i: result for i, result in outcomes[""].items() if result.counted and result.agrees}


@pytest.mark.slow
@pytest.mark.parametrize("mutate", REACHES, ids=lambda mutate: mutate.__name__)
def test_a_mutation_moves_numbers_of_every_artifact_that_depends_on_it(
    mutate: Callable[[Lines], None], outcomes: dict[str, dict[str, Result]]
):
    before, after = agreeing(outcomes), outcomes[mutate.__name__]
    moved = {r.claim.artifact for i, r in after.items() if i in before and not r.agrees}
    dead = {f"depth/{name}" for name in REACHES[mutate].split()} - moved
    assert not dead


@pytest.mark.slow
def test_every_claim_fails_on_other_data_or_is_listed_with_the_reason(
    outcomes: dict[str, dict[str, Result]],
):
    before = agreeing(outcomes)
    mutated = [results for name, results in outcomes.items() if name]
    sensitive = {i for results in mutated for i, r in results.items() if not r.agrees}
    assert {i for i in before if i not in sensitive} == set(INSENSITIVE)


def reads_published(source: str) -> bool:
    """Whether a module imports ``depthkit.published`` or names its files."""
    for node in ast.walk(ast.parse(source)):
        named: list[str] = []
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            named = [f"{node.module or ''}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = [node.value] if node.value.endswith((".yaml", "/published")) else []
        if any(
            "published" in name.replace("/", ".").split(".") or ".yaml" in name for name in named
        ):
            return True
    return False


def test_no_artifact_function_reads_the_published_numbers():
    modules = Path(depthkit.artifacts.__file__).parent.glob("*.py")
    reading = {path.name for path in modules if reads_published(path.read_text())}
    # artifact.py marks which fitted cells are printed: in views, after all is computed.
    assert reading == {"claims.py", "cross_checks.py", "artifact.py"}
