"""Money: the real scheduler, budget and endpoint client against a server that bills.

Only the trial is shortened: a conversation without a container, so that fifty schedules take a
minute. One schedule has real trials.
"""

from __future__ import annotations

import random
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from toys import reply, write_toy

from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.experiments.measure import measure
from depthkit.model import Run
from depthkit.protocol import Planned
from depthkit.tasks import LoadedTask, load_task
from depthkit.trials.budget import BudgetExceededError, Price
from depthkit.trials.limits import Limits
from depthkit.trials.llm import ModelEndpoint
from depthkit.trials.models import ModelSpec
from depthkit.trials.schedule import Schedule
from depthkit.trials.scripted.policies import Messages, fixed_replies
from depthkit.trials.scripted.server import ScriptedServer

pytestmark = pytest.mark.docker

BUDGET = 1.00
SCHEDULES = 50


def spec_of(price: Price, **more: Any) -> ModelSpec:
    return ModelSpec(
        name="billed",
        litellm="openai/billed",
        context_tokens=100_000,
        input_usd_per_mtok=price.input * 1e6,
        cached_usd_per_mtok=price.cached * 1e6,
        output_usd_per_mtok=price.output * 1e6,
        **{"max_output_tokens": 400, **more},
    )


@dataclass
class Conversations:
    """Runs that are a conversation with the endpoint and nothing else.

    A run under a cap passes if the cap is at least what its task demands; it takes some turns
    less or more than others, and its replies are of any length.
    """

    rng: random.Random
    depth: dict[str, int]
    base_url: str
    number: int = 0

    async def __call__(self, task: LoadedTask, planned: Planned, spec: ModelSpec, **_: Any) -> Run:
        self.number += 1
        run_id = f"r{self.number}"
        depth = self.depth[task.record.task_id]
        wanted = max(1, round(depth * self.rng.uniform(0.8, 1.6)))
        turns = min(wanted, planned.cap or 150)
        options = spec.agent_kwargs(self.base_url)
        endpoint = ModelEndpoint(
            model_name=spec.model_name,
            api_base=options["api_base"],
            model_info=options["model_info"],
            **options["llm_kwargs"],
        )
        history: list[dict[str, Any]] = []
        stopped = None
        for turn in range(1, turns + 1):
            prompt = "Go on. " + "output " * self.rng.randrange(5, 120)
            try:
                said = await endpoint.call(prompt, message_history=history)
            except BudgetExceededError as error:
                stopped, turns = error, turn - 1
                break
            history += [
                {"role": "user", "content": prompt},
                {"role": "assistant", "content": said.content},
            ]
        return Run(
            run_id=run_id,
            dataset=task.record.dataset,
            task_id=task.record.task_id,
            model=planned.model,
            cap=planned.cap,
            attempt=planned.attempt,
            purpose=planned.purpose,
            verdict="none" if stopped else "passed" if turns >= depth * 0.8 else "failed",
            stop="budget" if stopped else "submitted",
            turns=turns,
            cost_usd=endpoint.cost_usd,
            detail=str(stopped) if stopped else None,
            provenance="measured",
        )


@dataclass(frozen=True)
class Played:
    """One schedule: dollars that the server billed, that it counted itself, and of which runs."""

    billed: float
    spent: float
    of_runs: float
    of_finished: float
    limited: bool


def play_schedule(seed: int, folder: Path, tasks: list[LoadedTask]) -> Played:
    """One schedule with prices, lengths, depths and workers of its own."""
    rng = random.Random(seed)
    price = Price(*(rng.uniform(*dollars) * 1e-6 for dollars in ((5, 15), (0.5, 5), (40, 120))))
    depth = {task.record.task_id: rng.choice([1, 2, 2, 3, 5, 8]) for task in tasks}

    def chatter(_: Messages) -> str:
        return "word " * rng.randrange(20, 500)

    states_cost = rng.random() < 0.5
    with ScriptedServer({"billed": chatter}, prices=price, states_cost=states_cost) as server:
        schedule = Schedule(
            Corpus.open_or_create(folder, models=["billed"]),
            tasks,
            [spec_of(price)],
            scope="both",
            workers=rng.randrange(1, 9),
            limits=Limits(max_cost=BUDGET),
            runner=Conversations(rng, depth, server.base_url),
        )
        outcome = schedule.run()
        return Played(
            server.billed,
            outcome.spent,
            sum(run.cost_usd or 0 for run in outcome.runs),
            sum(run.cost_usd or 0 for run in outcome.runs if run.valid),
            outcome.limit is not None,
        )


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> list[LoadedTask]:
    folder = tmp_path_factory.mktemp("tasks")
    return [load_task(write_toy(folder / "set" / f"toy-{i}")) for i in range(8)]


@pytest.mark.slow
def test_the_budget_is_never_passed_and_goes_to_runs_that_finish(
    tmp_path: Path, tasks: list[LoadedTask]
) -> None:
    # A process for each core; the schedules have nothing to do with each other.
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        waiting = [
            pool.submit(play_schedule, seed, tmp_path / str(seed), tasks)
            for seed in range(SCHEDULES)
        ]
        played = [each.result() for each in waiting]
    assert max(each.billed for each in played) <= BUDGET
    for each in played:
        assert each.spent == pytest.approx(each.billed)
        assert each.of_runs == pytest.approx(each.billed)
    assert sum(each.limited for each in played) > 0.8 * SCHEDULES
    billed = sum(each.billed for each in played)
    assert sum(each.of_finished for each in played) >= 0.8 * billed
    # A single schedule can be unlucky: its runs may cost a fifth of the budget each, and nothing is
    # known of the dear tasks before one of them has run.
    assert sum(each.of_finished >= 0.8 * each.billed for each in played) >= 0.8 * SCHEDULES
    # And it is not so careful that the money is left over.
    assert billed >= 0.6 * SCHEDULES * BUDGET


def test_a_call_that_may_not_fit_ends_the_run_without_a_result(tmp_path: Path) -> None:
    task = write_toy(tmp_path / "set" / "toy")
    price = Price(1e-6, 1e-6, 1e-4)
    looks = fixed_replies([reply(f"ls # {'look ' * 200}")])
    models = write_models(tmp_path, price)
    with ScriptedServer({"billed": looks}, prices=price) as server:
        models.write_text(models.read_text().replace("BASE", server.base_url))
        outcome = measure(
            [task],
            tmp_path / "corpus",
            models=["billed"],
            scope="free",
            workers=2,
            models_file=models,
            limits=Limits(max_cost=0.20),
            record=False,
        )
        billed = server.billed
    # The only run there is cannot be finished: nothing was known of its cost, so it was tried.
    assert [(run.verdict, run.stop) for run in outcome.runs] == [("none", "budget")]
    assert outcome.runs[0].cost_usd == pytest.approx(billed)
    assert 0.05 < billed <= 0.20
    assert outcome.limit is not None and "--max-cost $0.20" in outcome.limit
    requests = server.requests
    assert all(request["max_tokens"] == 400 for request in requests)


def test_one_budget_holds_for_real_trials_side_by_side(tmp_path: Path) -> None:
    tasks = [write_toy(tmp_path / "set" / f"toy-{i}") for i in range(3)]
    price = Price(2e-6, 1e-6, 1e-5)
    models = write_models(tmp_path, price)
    played = fixed_replies([reply("ls"), reply("echo done > /app/out", complete=True)])
    with ScriptedServer({"billed": played}, prices=price, states_cost=True) as server:
        models.write_text(models.read_text().replace("BASE", server.base_url))
        outcome = measure(
            tasks,
            tmp_path / "corpus",
            models=["billed"],
            scope="free",
            workers=4,
            models_file=models,
            limits=Limits(max_cost=0.035),
            record=False,
        )
        billed = server.billed
    finished = sum(run.cost_usd or 0 for run in outcome.runs if run.valid)
    assert billed <= 0.035
    assert outcome.limit is not None
    assert finished >= 0.8 * billed > 0.005
    assert sum(run.cost_usd or 0 for run in outcome.runs) == pytest.approx(billed)


def write_models(folder: Path, price: Price) -> Path:
    path = folder / "models.toml"
    path.write_text(
        '["billed"]\nlitellm = "openai/billed"\nbase_url = "BASE"\n'
        "context_tokens = 100000\nmax_output_tokens = 400\n"
        f"input_usd_per_mtok = {price.input * 1e6}\n"
        f"cached_usd_per_mtok = {price.cached * 1e6}\n"
        f"output_usd_per_mtok = {price.output * 1e6}\n"
    )
    return path


def test_a_budget_needs_prices(tmp_path: Path) -> None:
    models = tmp_path / "models.toml"
    models.write_text('["cheap"]\nlitellm = "openai/cheap"\nbase_url = "http://127.0.0.1:9/v1"\n')
    task = write_toy(tmp_path / "set" / "toy")
    with pytest.raises(DepthkitError, match=r'prices of cheap; set input_usd.*\["cheap"\]'):
        measure(
            [task],
            tmp_path / "corpus",
            models=["cheap"],
            scope="free",
            models_file=models,
            limits=Limits(max_cost=1),
        )
