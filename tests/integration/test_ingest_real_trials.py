"""Real trials of other people, each checked by hand against its files.

The table was written by reading every trial: the reward and the error in ``result.json``, the
number of recorded model requests, each observation's first words, and each completion mark.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from depthkit.cli import app
from depthkit.corpus import Corpus, read_trajectory
from depthkit.corpus.ingest import ingest

TRAJECTORIES = Path(__file__).parents[3] / "shared" / "data" / "trajectories"

pytestmark = pytest.mark.skipif(
    not TRAJECTORIES.is_dir(), reason="real public trials are not beside the checkout (shared/data)"
)

# trial: verdict, stop, turns, parse errors, first completion claim
ENDLESS = {
    "task_000000_021e3bf6__Qeu8j9E": ("failed", "submitted", 8, 0, 5),
    "task_000000_021e3bf6__zq3oeto": ("failed", "submitted", 7, 0, 4),
    # The first reply lacks all three fields: a parse error; later ones only draw warnings.
    "task_000000_10e4fe12__SS4sN7S": ("failed", "submitted", 9, 1, 8),
    "task_000000_14c0e8b5__RYhy3Cy": ("passed", "submitted", 8, 1, 7),
    "task_000000_14c0e8b5__d2tGu27": ("passed", "submitted", 5, 1, 4),
    # Claims in turn 8, takes it back, claims in turn 10, is not parsed, confirms in turn 12.
    "task_000000_251abc07__gCtriXW": ("failed", "submitted", 12, 1, 8),
    # Cancelled while the fourth reply was awaited: four episodes, three replies.
    "task_000000_2e124b49__jUz9v4E": ("none", "cancelled", 3, 0, None),
    # Three replies; the harness could not type the commands of the third, so its step is missing
    # and nothing was verified.
    "task_000000_8ba0f37c__3p57MWk": ("none", "infrastructure", 3, 0, None),
    # Cancelled while the image was built: no agent ran, no trajectory.
    "task_000000_adf53ad2__JMPsD4C": ("none", "cancelled", None, None, None),
    "task_000000_d720b0d6__PrV6SBW": ("passed", "submitted", 31, 0, 16),
}


def test_terminus2_trials_are_read_as_checked_by_hand(tmp_path: Path) -> None:
    told = CliRunner().invoke(
        app,
        [
            "ingest",
            str(TRAJECTORIES / "terminus2_endless"),
            "--corpus",
            str(tmp_path / "c"),
            "--json",
        ],
    )
    assert told.exit_code == 0
    summary = json.loads(told.stdout)
    assert (summary["bad"], summary["notes"]) == ([], [])
    corpus = Corpus.open(tmp_path / "c")
    claims = {run.run_id: run.first_claim_turn for run in corpus.run_records()}
    found = {
        row["run_id"].rpartition("-")[0]: (
            row["verdict"],
            row["stop"],
            row["turns"],
            row["parse_errors"],
            claims[row["run_id"]],
        )
        for row in summary["added"]
    }
    assert found == ENDLESS


def test_turns_of_the_same_trials_add_up(tmp_path: Path) -> None:
    report = ingest([TRAJECTORIES / "terminus2_endless"], tmp_path / "c")
    turns = Corpus.open(tmp_path / "c").turns()
    for taken in report.added:
        name = taken.run.run_id.rpartition("-")[0]
        own = turns[turns["run_id"] == taken.run.run_id]
        _, _, replies, errors, _ = ENDLESS[name]
        unwritten = 1 if name.endswith("3p57MWk") else 0
        assert len(own) == (replies or 0) - unwritten, name
        assert own["parse_error"].sum() == (errors or 0)
        if len(own) and not unwritten:
            assert own["input_tokens"].sum() == taken.run.input_tokens
            assert own["output_tokens"].sum() == taken.run.output_tokens
        # Waiting for the model and for the terminal makes up the agent's time.
        if len(own) and not unwritten and taken.run.verdict != "none":
            seconds = own["model_seconds"].sum() + own["terminal_seconds"].sum()
            assert seconds == pytest.approx((taken.run.agent_minutes or 0) * 60, abs=1.0)


@pytest.mark.parametrize(
    ("name", "version", "turns", "errors", "claim", "confirmed", "summarized", "context"),
    [
        ("hello-world-context-summarization", "1.7", 7, 0, 6, True, [4], 880),
        ("hello-world-context-summarization-linear-history", "1.7", 7, 0, 6, True, [4], 880),
        ("hello-world-invalid-json", "1.7", 4, 1, 3, True, [], 120),
        ("hello-world-timeout", "1.6", 3, 0, None, False, [], 130),
    ],
)
def test_harbors_own_examples_are_read_as_checked_by_hand(
    name: str,
    version: str,
    turns: int,
    errors: int,
    claim: int | None,
    confirmed: bool,
    summarized: list[int],
    context: int,
) -> None:
    folder = TRAJECTORIES / "golden_harbor_0.9.0" / name
    found = read_trajectory(folder / f"{name}.trajectory.json")
    assert (found.complete, found.version) == (True, f"ATIF-v{version}")
    records = found.turns("r")
    assert (len(records), found.parse_errors) == (turns, errors)
    assert (found.first_claim_turn, found.confirmed) == (claim, confirmed)
    assert [turn.turn for turn in records if turn.summarization] == summarized
    assert len(found.summarization_calls) == 3 * len(summarized)
    assert found.context_tokens == context


def test_plain_message_lists_keep_their_verdict_and_have_unknown_turns(tmp_path: Path) -> None:
    report = ingest([TRAJECTORIES / "vanillux2_tmax_tb2"], tmp_path / "c")
    found = {
        taken.run.run_id.rpartition("__")[0]: (taken.run.verdict, taken.run.stop)
        for taken in report.added
        if not taken.run.task_id.startswith("adaptive")
    }
    assert found == {
        "git-leak-recovery": ("passed", "unknown"),
        "torch-pipeline-parallelism": ("none", "infrastructure"),
        "caffe-cifar-10": ("none", "cancelled"),
        "qemu-startup": ("passed", "time_limit"),
        "hf-model-inference": ("failed", "time_limit"),
    }
    assert len(report.added) == 7
    assert {taken.run.turns for taken in report.added} == {None}
    assert {taken.run.agent for taken in report.added} == {"vanillux2-agent"}
    # Costs of zero stand for a model without a price.
    assert {taken.run.cost_usd for taken in report.added} == {None}
