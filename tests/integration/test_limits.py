"""--reserve, --stop-file, --max-hours and --dry-run: no run is started that should not be.

The real scheduler with conversations in place of trials (see test_budget).
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from test_budget import Conversations, spec_of
from toys import write_toy

from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.experiments.measure import Plan, measure, plan
from depthkit.experiments.status import status, status_lines
from depthkit.model import Run
from depthkit.tasks import LoadedTask, load_task
from depthkit.trials.budget import Price
from depthkit.trials.limits import Limits, Outcome
from depthkit.trials.schedule import Schedule
from depthkit.trials.scripted.policies import fixed_replies
from depthkit.trials.scripted.server import ScriptedServer

PRICE = Price(1e-5, 1e-6, 1e-4)


@pytest.fixture
def tasks(tmp_path: Path) -> list[LoadedTask]:
    return [load_task(write_toy(tmp_path / "set" / f"toy-{i}")) for i in range(6)]


def play(
    tmp_path: Path,
    tasks: list[LoadedTask],
    limits: Limits,
    *,
    during: Callable[[], object] = lambda: None,
    **server: Any,
) -> Outcome:
    """Free runs, one at a time; ``during`` is called within each."""
    policy = fixed_replies(["word " * 100])
    with ScriptedServer({"billed": policy}, prices=PRICE, **server) as serving:
        depth = {task.record.task_id: 2 for task in tasks}
        conversations = Conversations(random.Random(1), depth, serving.base_url)

        async def runner(*args: Any, **kwargs: Any) -> Run:
            during()
            return await conversations(*args, **kwargs)

        return Schedule(
            Corpus.open_or_create(tmp_path / "corpus", models=["billed"]),
            tasks,
            [spec_of(PRICE, base_url=serving.base_url)],
            scope="free",
            workers=1,
            limits=limits,
            runner=runner,
        ).run()


@pytest.mark.docker
def test_once_the_stop_file_exists_no_run_is_started(
    tmp_path: Path, tasks: list[LoadedTask]
) -> None:
    stop = tmp_path / "stop"
    outcome = play(tmp_path, tasks, Limits(stop_file=stop), during=stop.touch)
    assert len(outcome.runs) == 1  # which was finished
    assert outcome.limit == f"--stop-file {stop} exists"
    assert not outcome.stopped


@pytest.mark.docker
def test_after_the_hours_no_run_is_started(tmp_path: Path, tasks: list[LoadedTask]) -> None:
    outcome = play(tmp_path, tasks, Limits(max_hours=1e-9))
    assert (outcome.runs, outcome.limit) == ([], "--max-hours 1e-09 are over")
    assert play(tmp_path, tasks, Limits(max_hours=1)).limit is None


@pytest.mark.docker
def test_money_is_left_on_the_account(
    tmp_path: Path, tasks: list[LoadedTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("depthkit.trials.account._FRESH_SECONDS", 0.0)
    outcome = play(tmp_path, tasks, Limits(reserve=9.90), credit=10.0)
    assert outcome.limit is not None
    assert outcome.limit.startswith("--reserve $9.90 is reached ($9.8")
    assert 1 < len(outcome.runs) < 12
    assert outcome.spent == pytest.approx(0.10, abs=0.05)


@pytest.mark.docker
def test_an_endpoint_that_does_not_tell_what_is_left_is_one_clear_error(
    tmp_path: Path, tasks: list[LoadedTask]
) -> None:
    with pytest.raises(DepthkitError, match="the money left for billed, but its endpoint"):
        play(tmp_path, tasks, Limits(reserve=1.0))
    assert Corpus.open(tmp_path / "corpus").run_records() == []


@pytest.mark.docker
def test_status_says_what_the_rest_will_cost_by_what_is_finished(
    tmp_path: Path, tasks: list[LoadedTask]
) -> None:
    # Two of six tasks have their free runs; their ladders are still missing.
    play(tmp_path, tasks[:2], Limits())
    corpus = Corpus.open(tmp_path / "corpus")
    corpus.append_tasks([task.record for task in tasks])
    found = status(corpus)
    assert [task.state for task in found.tasks[:2]] == ["partly measured"] * 2
    assert [task.state for task in found.tasks[2:]] == ["not started"] * 4
    assert found.expected.runs is None  # nothing is final yet
    assert found.most.runs >= 4 * 18
    assert found.measuring is None
    spent = sum(run.cost_usd or 0 for run in corpus.run_records())
    assert found.spent_usd == pytest.approx(spent)
    assert spent > 0.01
    assert f"Spent so far: ${spent:.2f}." in status_lines(found)


def test_status_says_what_was_spent_of_which_runs(tmp_path: Path) -> None:
    corpus = Corpus.open_or_create(tmp_path / "corpus", models=["m"])

    def add(number: int, cost: float | None, **more: Any) -> None:
        values = {
            "run_id": f"r{number}",
            "dataset": "set",
            "task_id": "toy",
            "model": "m",
            "attempt": number,
            "purpose": "free",
            "verdict": "failed",
            "stop": "submitted",
            "turns": 1,
            "cost_usd": cost,
            "provenance": "measured",
        }
        corpus.append_run(Run(**(values | more)))

    def line() -> str:
        return status_lines(status(corpus))[0]

    add(1, 0.25)
    add(2, 0.5, purpose="evaluation")
    add(3, 0.25, verdict="none", stop="infrastructure")
    add(4, 8.0, provenance="imported")
    add(5, None, provenance="scripted")
    assert line() == "Spent so far: $1.00."
    add(6, None)
    assert line() == "Spent so far: at least $1.00 (1 run of unknown cost)."


# --- --dry-run ---


def dry(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "depthkit", *args, "--dry-run"],
        capture_output=True,
        text=True,
        env={**os.environ, "DOCKER_HOST": "unix:///nowhere.sock"},
    )


def test_a_dry_run_starts_and_writes_nothing_and_needs_no_engine(
    tmp_path: Path, tasks: list[LoadedTask]
) -> None:
    corpus = tmp_path / "corpus"
    options = ("--models", "scripted-merge", "--corpus", str(corpus))
    said = dry("ladder", *(str(task.path) for task in tasks), *options, "--with-free")
    assert said.returncode == 0, said.stderr
    assert "6 of 6 tasks are not finished." in said.stdout
    assert "3 runs would start now:" in said.stdout
    assert "At most: 108 runs" in said.stdout
    assert "Expected: unknown" in said.stdout
    assert not corpus.exists()


@pytest.mark.docker
def test_a_ladder_without_free_runs_says_what_is_missing_and_what_makes_it(
    tmp_path: Path, tasks: list[LoadedTask]
) -> None:
    paths = [task.path for task in tasks]
    said = "6 of 6 tasks lack free runs, without which no capped run starts; --with-free, or"
    planned = plan(paths, tmp_path / "none", models=["scripted-merge"], scope="ladder")
    assert (planned.tasks_left, planned.without_free, planned.starts) == (6, 6, [])
    assert planned.lines()[0] == "6 of 6 tasks are not finished."
    assert planned.lines()[1].startswith(said)
    also = plan(paths, tmp_path / "none", models=["scripted-merge"], scope="both")
    assert (also.tasks_left, also.without_free) == (6, 0)
    printed = StringIO()
    outcome = measure(
        paths,
        tmp_path / "corpus",
        models=["scripted-merge"],
        scope="ladder",
        console=Console(file=printed, width=200),
    )
    assert outcome.runs == []
    assert said in printed.getvalue()


def test_the_first_model_is_evaluated_in_runs_apart_when_asked_for(
    tmp_path: Path, tasks: list[LoadedTask]
) -> None:
    corpus, task = tmp_path / "corpus", str(tasks[0].path)
    Corpus.open_or_create(corpus, models=["scripted-merge"])

    def purposes(*options: str) -> list[tuple[str, str]]:
        said = dry("free", task, "--corpus", str(corpus), "--json", *options)
        assert said.returncode == 0, said.stderr
        return [(each["model"], each["purpose"]) for each in json.loads(said.stdout)["starts"]]

    first, other = "scripted-merge", "scripted-step"
    assert purposes("--model", first) == [(first, "free")] * 2
    assert purposes("--model", first, "--evaluate") == [(first, "evaluation")] * 2
    assert purposes("--model", other) == [(other, "evaluation")] * 2
    both = purposes("--models", f"{first},{other}", "--evaluate", "--workers", "4")
    assert both == [(first, "evaluation")] * 2 + [(other, "evaluation")] * 2
    unnamed = dry("free", task, "--corpus", str(corpus), "--evaluate")
    assert unnamed.returncode == 2
    assert "--evaluate needs the models to evaluate" in unnamed.stderr


def test_the_most_money_of_a_plan_is_the_budget_where_there_is_one(
    tmp_path: Path, tasks: list[LoadedTask]
) -> None:
    def planned(max_cost: float | None) -> Plan:
        models = ["deepseek-v4.1-flash", "glm-5.3-flash"]
        paths, limits = [task.path for task in tasks], Limits(max_cost=max_cost)
        return plan(paths, tmp_path / "none", models=models, scope="both", limits=limits)

    free = planned(None)
    # The paper's models as registered have prices and no bound of a prompt.
    assert (free.most_usd, free.likely_usd) == (None, None)
    unknown = "context_tokens of deepseek-v4.1-flash, context_tokens of glm-5.3-flash"
    assert f"cost unknown ({unknown} not set in models.toml)" in free.lines()[-2]
    assert free.lines()[-1] == "Expected: unknown, no task is finished yet"
    bound = planned(25)
    assert bound.most_usd == 25
    assert bound.lines()[-2].endswith("turns, $25.00 (--max-cost)")


def test_a_plan_prices_each_models_turns_by_its_own_prices_and_by_the_runs_so_far(
    tmp_path: Path, tasks: list[LoadedTask]
) -> None:
    models = tmp_path / "models.toml"
    models.write_text(
        "".join(
            f'["{name}"]\nlitellm = "openai/{name}"\nbase_url = "http://127.0.0.1:9/v1"\n'
            f"input_usd_per_mtok = {usd}\noutput_usd_per_mtok = {usd}\n"
            "context_tokens = 900\nmax_output_tokens = 100\n"
            for name, usd in (("cheap", 100.0), ("dear", 1000.0))
        )
    )
    corpus = Corpus.open_or_create(tmp_path / "corpus", models=["cheap", "dear"])

    def planned(max_cost: float | None = None) -> Plan:
        return plan(
            [tasks[0].path],
            corpus.path,
            scope="both",
            models_file=models,
            limits=Limits(max_cost=max_cost),
        )

    # A call costs 0.1 or 1 dollar at most; a ladder has 322 turns, and free runs 300.
    assert planned().most_usd == pytest.approx(0.1 * (300 + 322) + 1.0 * 322)
    assert planned(1e6).most_usd == planned().most_usd
    assert planned().likely_usd is None
    record = tasks[0].record
    for attempt in (1, 2):
        corpus.append_run(
            Run(
                run_id=f"r{attempt}",
                dataset=record.dataset,
                task_id=record.task_id,
                model="cheap",
                attempt=attempt,
                purpose="free",
                verdict="passed",
                stop="submitted",
                turns=4,
                cost_usd=0.04,
                provenance="measured",
            )
        )
    # Caps 1, 2 and 3 are left, twice each for both: at a cent a turn, and at ten cents.
    after = planned()
    assert after.most_usd == pytest.approx(0.1 * 12 + 1.0 * 12)
    assert after.likely_usd == pytest.approx(0.01 * 12 + 0.1 * 12)
    assert "As the runs so far cost, all of these would cost $1.32" in after.lines()


@pytest.mark.docker
def test_a_dry_run_expects_what_finished_tasks_took(
    tmp_path: Path, tasks: list[LoadedTask]
) -> None:
    play(tmp_path, tasks[:2], Limits())
    models = tmp_path / "models.toml"
    models.write_text(
        '["billed"]\nlitellm = "openai/billed"\nbase_url = "http://127.0.0.1:9/v1"\n'
        "input_usd_per_mtok = 10.0\noutput_usd_per_mtok = 100.0\ncontext_tokens = 1000\n"
        "max_output_tokens = 100\n"
    )
    runs = (tmp_path / "corpus" / "runs.jsonl").read_bytes()
    paths = [str(task.path) for task in tasks]
    options = ("--corpus", str(tmp_path / "corpus"), "--models-file", str(models), "--json")
    plan = json.loads(dry("free", *paths, *options).stdout)
    assert (tmp_path / "corpus" / "runs.jsonl").read_bytes() == runs
    assert [start["task_id"] for start in plan["starts"]] == ["toy-2", "toy-2", "toy-3"]
    assert plan["most"] == {"runs": 8, "turns": 8 * 150}
    assert plan["most_usd"] == pytest.approx(8 * 150 * (1000 * 1e-5 + 100 * 1e-4))
    done = Corpus.open(tmp_path / "corpus").run_records()
    assert plan["expected"]["runs"] == 8
    assert plan["expected"]["usd"] == pytest.approx(2 * sum(run.cost_usd or 0 for run in done))
