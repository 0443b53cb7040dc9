"""The fit of the paper's numbers: its pieces, and the corpus that comes with the package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depthkit.artifacts.claims import Claims
from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.fitting import REASONS, fit_published
from depthkit.fitting.audit import least_turns, sampled_tasks
from depthkit.fitting.depths import existing_depths
from depthkit.fitting.pins import Pins, share_out, spread_out
from depthkit.fitting.search import Goal, partial, search, swap
from depthkit.fitting.targets import Target, Targets
from depthkit.protocol import CAPS, next_runs
from depthkit.stats import rank_partial_correlation

BUNDLED = Path(__file__).parents[2] / "depthkit/data/paper"


@pytest.fixture(scope="module")
def paper() -> Corpus:
    return Corpus.open("paper")


# --- quotas ---


def test_a_printed_share_gives_the_whole_numbers_behind_it():
    assert list(Target(0.94, 0.005).counts(296)) == [277, 278, 279]
    assert Target(0.075, 0.0005).count(53) == 4


def test_a_share_that_no_whole_number_has_is_an_error():
    with pytest.raises(DepthkitError, match="out of 300"):
        Target(0.034, 0.0005).count(300)


def test_a_claim_that_is_not_printed_is_an_error():
    with pytest.raises(DepthkitError, match="no claim table-1/TMax/depth"):
        Targets()("table-1/TMax/depth")


# --- quantiles and means ---


@given(st.integers(3, 200), st.integers(2, 90), st.integers(0, 2**32 - 1))
def test_a_pinned_median_is_exact_and_stays_when_a_mean_is_reached(n: int, median: int, seed: int):
    pins = Pins(spread_out(np.random.default_rng(seed), n, median, 0.6), 1, 500)
    pins.pin(0.5, median)
    pins.mean(1.2 * median)
    assert np.median(pins.values) == median
    assert abs(pins.values.mean() - 1.2 * median) <= 0.5 / n + 1e-9
    assert ((pins.values >= 1) & (pins.values <= 500)).all()


def test_pins_of_overlapping_samples_hold_at_once():
    rng = np.random.default_rng(1)
    part = np.arange(100) < 40
    pins = Pins(spread_out(rng, 100, 30, 0.8), 1, 900)
    pins.pin(0.5, 45, part)
    pins.pin(0.5, 30)
    pins.pin(0.9, 100)
    pins.count(6, 20, 25)
    assert np.median(pins.values[part]) == 45
    assert np.quantile(pins.values, [0.5, 0.9]).tolist() == [30, 100]
    assert ((pins.values >= 6) & (pins.values <= 20)).sum() == 25


def test_a_pin_that_contradicts_an_earlier_one_is_an_error():
    pins = Pins(np.arange(1.0, 10.0), 1, 20)
    pins.pin(0.5, 4)
    with pytest.raises(DepthkitError, match="contradicts"):
        pins.pin(0.5, 6)
    with pytest.raises(DepthkitError, match="contradicts"):
        pins.mean(19)


def test_parts_add_up_within_their_bounds():
    parts = share_out(np.array([3.0, 3.0, 3.0]), np.array([1.0, 1, 1]), np.array([4.0, 9, 9]), 17)
    assert parts.sum() == 17
    assert parts[0] <= 4


# --- search ---


def test_the_search_reckons_the_correlation_that_artifacts_compute():
    rng = np.random.default_rng(3)
    x, y, z = rng.integers(0, 9, (3, 80)).astype(float)
    found = rank_partial_correlation(x, y, [z], resamples=0, permutations=0).value
    assert partial(x, y, z) == pytest.approx(found, abs=1e-12)


def test_search_reaches_a_correlation_and_keeps_the_values():
    rng = np.random.default_rng(4)
    x, y, z = rng.normal(size=(3, 60))
    before = np.sort(y)
    aim = Goal(("rho",), lambda: partial(x, y, z), np.array([-0.4]), np.array([0.005]))
    left = search([aim], lambda: swap(y, *rng.integers(0, 60, 2)), rng, steps=5000)
    assert left == 0
    assert partial(x, y, z) == pytest.approx(-0.4, abs=0.005)
    assert (np.sort(y) == before).all()


# --- depth, and runs that give it back ---


def test_the_second_model_lowers_as_many_tasks_as_printed():
    depths = existing_depths(Targets(), np.random.default_rng(5))
    assert len(depths.both) == 401
    assert (depths.first != depths.both).sum() == 40
    assert (depths.first > 1).sum() == 160
    assert (depths.both <= depths.first).all()


@pytest.mark.parametrize("depth", [*CAPS, 99])
def test_the_least_n_is_above_the_cap_before(depth: int):
    least = least_turns(depth)
    assert next((cap for cap in CAPS if cap >= least), 99) == depth
    assert least == 1 or next(cap for cap in CAPS if cap >= least - 1) < depth


def test_middle_turns_are_counted_as_printed():
    tasks = sampled_tasks(Targets(), np.random.default_rng(6))
    middle = tasks[tasks["N"].between(6, 10)]
    assert (len(middle), int((middle["D"] == 1).sum())) == (170, 96)


# --- the bundled corpus ---


def test_estimates_of_the_bundled_corpus_are_final(paper: Corpus):
    frame = paper.estimates()
    measured = frame[frame["solved"].notna()]
    assert measured["final"].all()
    sampled = measured[~measured["dataset"].isin(["Originals"])]
    assert len(sampled) == 734 + 105
    assert int(sampled["solved"].sum()) == 401 + 54


def test_no_run_of_the_bundled_corpus_is_beyond_the_protocol(paper: Corpus):
    history: dict[tuple[str, str], list] = {}
    for run in paper.run_records():
        if run.purpose in ("free", "ladder"):
            history.setdefault((run.dataset, run.task_id), []).append(run)
    for runs in list(history.values())[::7]:
        done: list = []
        for run in runs:
            allowed = [(p.model, p.cap, p.attempt) for p in next_runs(done, paper.models)]
            assert (run.model, run.cap, run.attempt) in allowed, run.run_id
            done.append(run)


def test_everything_in_the_bundled_corpus_says_that_it_is_fitted(paper: Corpus):
    assert set(paper.provenance()) == {"fitted"}
    assert {task.provenance for task in paper.task_records()} == {"fitted"}
    assert {replay.provenance for replay in paper.replay_records()} == {"fitted"}


def test_nearly_all_printed_numbers_come_out_of_the_bundled_corpus(paper_claims: Claims):
    counted = [result for result in paper_claims.results if result.counted]
    assert len(counted) >= 250
    assert sum(bool(result.agrees) for result in counted) >= 0.97 * len(counted)


def test_every_number_that_does_not_come_out_has_its_reason(paper_claims: Claims):
    off = {r.claim.id for r in paper_claims.results if r.counted and not r.agrees}
    assert off == set(REASONS)


def test_no_claim_of_an_artifact_is_left_without_a_number(paper_claims: Claims):
    unknown = [
        r.claim.id
        for r in paper_claims.results
        if r.claim.kind == "computed"
        and r.kind != "computed"
        and r.claim.artifact != "depth/table-1"
    ]
    assert not unknown


def test_the_fit_refuses_a_directory_that_holds_something(tmp_path: Path):
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(DepthkitError, match="not empty"):
        fit_published(tmp_path)


@pytest.mark.slow
def test_a_fit_gives_the_same_bytes_in_another_process(tmp_path: Path):
    # The search, most of the time, is cut short: what it leaves open is drawn all the same.
    code = (
        "import sys; from pathlib import Path\n"
        "from depthkit.fitting import difficulty, fit_published\n"
        "difficulty.STEPS, difficulty.ATTEMPTS = 200, 2; fit_published(Path(sys.argv[1]), seed=5)"
    )
    for seed in ("1", "2"):
        command = [sys.executable, "-c", code, str(tmp_path / seed)]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
    names = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert names == ["corpus.toml", "replays.jsonl", "runs.jsonl", "tasks.jsonl"]
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name


@pytest.mark.slow
def test_the_seed_gives_the_bundled_corpus_again_on_another_processor(tmp_path: Path):
    # Without vector instructions numpy and OpenBLAS add up in another order than with them, and a
    # processor without them takes part as it is.
    features = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    other = {"NPY_DISABLE_CPU_FEATURES": " ".join(features), "OPENBLAS_CORETYPE": "Nehalem"}
    command = [sys.executable, "-m", "depthkit", "fit-published", str(tmp_path / "again"), "--json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | other)
    for name in ("tasks.jsonl", "runs.jsonl", "replays.jsonl"):
        again, bundled = (folder / name for folder in (tmp_path / "again", BUNDLED))
        assert again.read_bytes() == bundled.read_bytes(), "depthkit fit-published made another"


def test_costs_of_generation_are_whole_cents(paper: Corpus):
    lines = (BUNDLED / "runs.jsonl").read_text().splitlines()
    costs = [json.loads(line).get("cost_usd") for line in lines]
    known = [Decimal(repr(cost)) for cost in costs if cost is not None]
    assert len(known) == 136
    assert sum(known) == Decimal("113.66")
