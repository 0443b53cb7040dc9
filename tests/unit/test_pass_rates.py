from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest
from graded import Graded, graded_corpus
from public_rates import TASKS, public_rates
from typer.testing import CliRunner

from depthkit.artifacts import labels_figure
from depthkit.cli import app
from depthkit.corpus import Corpus
from depthkit.corpus.pass_rates import PassRates, add_pass_rates, read_pass_rates
from depthkit.errors import DepthkitError

TABLE = """submission,task,reward,started_at
late,org/a,1,2026-03-01T00:00:00
late,org/a,0,2026-03-01T00:00:00
late,b,1,2026-03-02T00:00:00+02:00
late,b,,2026-03-02T00:00:00Z
early,a,1.0,2026-01-05T00:00:00Z
early,a,1,2026-01-01T00:00:00Z
early,b,0.5,2026-01-01T00:00:00Z
early,b,0,
partial,a,1,2025-01-01T00:00:00Z
"""


@pytest.fixture
def trials(tmp_path: Path) -> Path:
    path = tmp_path / "trials.csv"
    path.write_text(TABLE)
    return path


def test_a_rate_is_the_mean_over_submissions_of_the_share_that_passes(trials: Path):
    found = read_pass_rates(trials)
    # a: 1/2, 2/2 and 1/1; b: 1/2 (no reward is a failure) and 0/2 (half a reward is no pass)
    assert found.rates == {"a": Fraction(5, 6), "b": Fraction(1, 4)}
    assert found.source == "mean over 3 submissions in trials.csv"


def test_only_complete_submissions_and_of_these_the_earliest(trials: Path):
    complete = read_pass_rates(trials, at_least=2)
    assert complete.submissions == ("early", "late")
    assert complete.rates == {"a": Fraction(3, 4), "b": Fraction(1, 4)}
    first = read_pass_rates(trials, at_least=2, earliest=1)
    assert first.submissions == ("early",)
    assert first.rates == {"a": 1, "b": 0}
    assert first.source == "mean over 1 earliest complete submissions in trials.csv"


def test_parquet_is_read_as_csv_is(trials: Path, tmp_path: Path):
    pd.read_csv(trials).to_parquet(tmp_path / "trials.parquet")
    from_parquet = read_pass_rates(tmp_path / "trials.parquet", at_least=2, earliest=2)
    assert from_parquet.rates == read_pass_rates(trials, at_least=2, earliest=2).rates


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (None, "no such file"),
        ("submission,task\nx,a\n", "lacks the column reward; it needs submission, task, reward"),
        ("submission,task,reward\n", "has no rows"),
        ("submission,task,reward\nx,a,1\nx,a,good\n", "reward is 'good' in row 2; it must be"),
        ("submission,task,reward\nx,,1\n", "task is missing in row 1"),
        ("submission,task,reward\nx,a,1\ny,b,1\n", "no submission has 1 trials of each of 2 tasks"),
    ],
)
def test_a_table_that_cannot_be_used_is_an_error_that_says_why(
    tmp_path: Path, table: str | None, message: str
):
    path = tmp_path / "t.csv"
    if table is not None:
        path.write_text(table)
    with pytest.raises(DepthkitError, match=message):
        read_pass_rates(path, at_least=1)


@pytest.mark.parametrize(
    ("started", "message"),
    [
        ("yesterday", "started_at is 'yesterday' in row 1; it must be a time"),
        ("", "started_at is missing in all trials of x"),
    ],
)
def test_the_earliest_need_a_time(tmp_path: Path, started: str, message: str):
    path = tmp_path / "t.csv"
    path.write_text(f"submission,task,reward,started_at\nx,a,1,{started}\n")
    with pytest.raises(DepthkitError, match=message):
        read_pass_rates(path, earliest=1)


def test_more_submissions_than_there_are_is_an_error(trials: Path):
    with pytest.raises(DepthkitError, match="2 complete submissions are there, fewer than the 3"):
        read_pass_rates(trials, at_least=2, earliest=3)


def test_a_measured_task_keeps_its_runs_and_all_it_knew(trials: Path, tmp_path: Path):
    tasks = [Graded("TB2", "a", rating="hard", work=7), Graded("TB2", "z"), Graded("TW", "a")]
    corpus = graded_corpus(tmp_path / "c", tasks)
    details = tmp_path / "tasks.csv"
    details.write_text("task,difficulty,category\na,easy,games\n")
    found = read_pass_rates(trials, at_least=2)
    report = add_pass_rates(corpus, "TB2", found, tasks=details, group="human-curated")
    assert (report.new, report.changed) == (["b"], ["a"])
    assert "1 tasks of TB2 have no trial in the table" in report.notes
    assert "1 tasks are not in tasks.csv, such as b" in report.notes
    kept = {(task.dataset, task.task_id): task for task in corpus.task_records()}
    old, new = kept["TB2", "a"], kept["TB2", "b"]
    assert (old.author_rating, old.category, old.public_pass_rate) == ("hard", "games", 0.75)
    assert (old.work and old.work.lines, old.provenance) == (7, "scripted")
    assert (new.public_pass_rate, new.group, new.provenance) == (0.25, "human-curated", "imported")
    assert kept["TW", "a"].public_pass_rate is None
    again = add_pass_rates(corpus, "TB2", found, tasks=details, group="human-curated")
    assert again.same == ["a", "b"]


def test_a_task_listed_twice_is_an_error(trials: Path, tmp_path: Path):
    details = tmp_path / "tasks.csv"
    details.write_text("task,difficulty,category\na,easy,x\na,hard,x\n")
    corpus = graded_corpus(tmp_path / "c", [])
    with pytest.raises(DepthkitError, match="task a stands there twice"):
        add_pass_rates(corpus, "TB2", read_pass_rates(trials), tasks=details)


def test_the_command_says_what_it_did(trials: Path, tmp_path: Path):
    corpus = str(tmp_path / "new")
    command = ["pass-rates", str(trials), "--corpus", corpus, "--dataset", "TB2", "--at-least", "2"]
    said = CliRunner().invoke(app, command)
    assert said.exit_code == 0, said.output
    assert "2 tasks of TB2: mean over 2 complete submissions in trials.csv · 2 new" in said.output
    listed = CliRunner().invoke(app, [*command, "--json"])
    assert json.loads(listed.output)["same"] == ["a", "b"]
    assert Corpus.open(corpus).tasks()["public_pass_rate"].tolist() == [0.75, 0.25]
    wrong = CliRunner().invoke(app, [*command, "--group", "mine"])
    assert wrong.exit_code == 2
    assert "synthetic, human-curated, ours" in wrong.output


@pytest.mark.parametrize(("earliest", "rho"), [(15, -0.458), (72, -0.446)])
def test_figure_8_of_real_pass_rates_gives_the_published_correlation(
    tmp_path: Path, earliest: int, rho: float
):
    corpus = Corpus.open_or_create(tmp_path / "c")
    source = f"mean over {earliest} earliest complete submissions"
    found = PassRates(public_rates(earliest), (), source)
    add_pass_rates(corpus, "TB2", found, tasks=TASKS, group="human-curated")
    figure = labels_figure(corpus, datasets=["TB2"], resamples=1000)
    assert figure.frame["level"].tolist() == ["easy", "medium", "hard"]
    assert figure.frame["tasks"].tolist() == [4, 55, 30]
    row = figure.parts["rho"].iloc[0]
    assert round(row["rho"], 3) == rho
    assert row["n"] == 89
    assert row["high"] < 0
    assert figure.export(tmp_path / "out")
    assert f"{earliest} earliest complete submissions" in figure.show()
