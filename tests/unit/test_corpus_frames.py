"""What a user may rely on of the frames of a corpus: estimates, turns, and their caches."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from records import run_of, task_of

from depthkit.corpus import Corpus, columns
from depthkit.errors import DepthkitError

MODELS = ("first", "second")


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus.open_or_create(tmp_path / "c", models=MODELS)


def test_frames_follow_appends_and_do_without_their_cache(corpus: Corpus) -> None:
    corpus.append_run(run_of("a"))
    assert len(corpus.runs()) == 1
    corpus.append_run(run_of("b", attempt=2))
    assert len(corpus.runs()) == 2
    assert (corpus.path / "cache" / "runs.parquet").is_file()
    fresh = Corpus.open(corpus.path)
    before = fresh.estimates()
    shutil.rmtree(corpus.path / "cache")
    again = Corpus.open(corpus.path)
    assert again.estimates().equals(before)
    (corpus.path / "cache" / "runs.parquet").write_bytes(b"not parquet")
    assert len(Corpus.open(corpus.path).runs()) == 2


def test_rewards_keep_every_key_beside_lines_of_before_there_were_any(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_line(*_: object) -> None:
        raise AssertionError("100,000 lines are not read one by one")

    corpus.append_run(run_of("a", rewards={"reward": 1, "style": 0.4}, confirmed=True))
    corpus.append_run(run_of("b", attempt=2, rewards={}))
    old = run_of("c").model_dump_json(exclude={"rewards", "confirmed"}) + "\n"
    with (corpus.path / "runs.jsonl").open("a") as handle:
        handle.write(old)
    monkeypatch.setattr(columns, "_line_by_line", by_line)
    frame = corpus.runs().set_index("run_id")
    assert frame["rewards"].tolist() == [{"reward": 1.0, "style": 0.4}, {}, None]
    assert frame.loc["a", "confirmed"]
    assert frame["confirmed"].isna().tolist() == [False, True, True]
    assert [run.rewards for run in corpus.run_records()] == frame["rewards"].tolist()
    (corpus.path / "runs.jsonl").write_text(old)
    assert corpus.runs()["rewards"].tolist() == [None]


def test_a_frame_that_is_changed_changes_nothing_in_the_corpus(corpus: Corpus) -> None:
    corpus.append_run(run_of("a"))
    frame = corpus.runs()
    frame.loc[0, "turns"] = 0
    frame["mine"] = 1
    assert corpus.runs().loc[0, "turns"] == 7
    assert "mine" not in corpus.runs()


def test_a_hundred_thousand_runs_are_workable(tmp_path: Path) -> None:
    corpus = Corpus.open_or_create(tmp_path / "c", models=MODELS)
    line = run_of("ID", task_id="TASK", attempt=1).model_dump_json()
    ladder = run_of("ID", task_id="TASK", purpose="ladder", cap=5).model_dump_json()
    with (corpus.path / "runs.jsonl").open("w") as handle:
        for number in range(100_000):
            form = line if number < 500 else ladder
            text = form.replace('"ID"', f'"r{number}"').replace("TASK", f"t{number % 500}")
            handle.write(text + "\n")
    assert len(corpus.runs()) == 100_000
    found = corpus.estimates()
    assert len(found) == 500
    assert Corpus.open(corpus.path).estimates().equals(found)  # from the cache


def test_estimates_follow_the_protocol_and_name_the_run_of_n(corpus: Corpus) -> None:
    corpus.append_task(task_of("toy", 12, group="synthetic", author_rating="hard"))
    corpus.append_task(task_of("untouched", 1))
    for run in (
        run_of("f1", turns=9, agent_minutes=3.0, context_tokens=9000),
        run_of("f2", attempt=2, turns=6, agent_minutes=2.0, context_tokens=6000),
        run_of("e1", purpose="evaluation", turns=1),
        *(run_of(f"l1-{n}", purpose="ladder", cap=1, verdict="failed", attempt=n) for n in (1, 2)),
        *(run_of(f"l2-{n}", purpose="ladder", cap=2, verdict="failed", attempt=n) for n in (1, 2)),
        run_of("l3", purpose="ladder", cap=3),
        *(
            run_of(
                f"m{c}-{n}", model="second", purpose="ladder", cap=c, verdict="failed", attempt=n
            )
            for c in (1, 2)
            for n in (1, 2)
        ),
    ):
        corpus.append_run(run)
    frame = corpus.estimates().set_index("task_id")
    toy = frame.loc["toy"]
    assert (toy["solved"], toy["N"], toy["R"], toy["D"]) == (True, 6, 1.0, 3)
    assert toy["D_by_model"] == {"first": 3, "second": None}
    assert (toy["n_run_id"], toy["n_minutes"], toy["n_context_tokens"]) == ("f2", 2.0, 6000)
    assert (toy["work_lines"], toy["group"], toy["author_rating"]) == (12, "synthetic", "hard")
    assert (toy["provenance"], toy["runs"], toy["final"]) == ("scripted", 11, True)
    other = frame.loc["untouched"]
    assert other[["solved", "N", "D", "provenance"]].isna().all()
    assert other["runs"] == 0


def test_runs_of_other_purposes_are_in_no_estimate_and_those_without_a_verdict_in_no_count(
    corpus: Corpus,
) -> None:
    corpus.append_run(run_of("e", purpose="evaluation", provenance="measured"))
    corpus.append_run(run_of("m", purpose="merged", cap=5, provenance="imported"))
    corpus.append_run(run_of("o", agent="another", provenance="imported"))
    assert len(corpus.estimates()) == 0
    corpus.append_run(run_of("f1", verdict="none", stop="infrastructure"))
    corpus.append_run(run_of("f2", attempt=2, turns=1))
    row = corpus.estimates().iloc[0]
    assert (row["runs"], row["provenance"], row["final"]) == (1, "scripted", False)
    assert row[["solved", "N", "D", "n_run_id"]].isna().all()
    corpus.append_run(run_of("f3", turns=3))
    row = corpus.estimates().iloc[0]
    assert (row["runs"], row["solved"], row["N"], row["D"]) == (2, True, 1, 1)


def test_work_is_taken_from_runs_only_where_a_data_set_has_no_solution_at_all(
    corpus: Corpus,
) -> None:
    corpus.append_task(task_of("solved", 12))
    for dataset, task in (("toys", "none"), ("runs-alone", "none")):
        corpus.append_task(task_of(task, None, dataset=dataset))
        for attempt in (1, 2):
            corpus.append_run(
                run_of(
                    f"{dataset}-{attempt}",
                    dataset=dataset,
                    task_id=task,
                    attempt=attempt,
                    turns=1,
                    command_lines=7,
                )
            )
    frame = corpus.estimates().set_index(["dataset", "task_id"])
    assert frame.loc["toys", "solved"][["work_lines", "work_from"]].tolist() == [12, "solution"]
    assert frame.loc["runs-alone", "none"][["work_lines", "work_from"]].tolist() == [7, "run"]
    assert frame.loc["toys", "none"][["work_lines", "work_from"]].isna().all()


def test_mixed_provenance_is_never_hidden(corpus: Corpus) -> None:
    corpus.append_run(run_of("a"))
    corpus.append_run(run_of("b", attempt=2, provenance="measured"))
    assert corpus.estimates()["provenance"].tolist() == ["measured+scripted"]
    assert corpus.provenance() == {"measured": 1, "scripted": 1}
    assert "2 runs (1 measured, 1 scripted)" in corpus.provenance_line()


def test_estimates_need_a_model_set_once_there_are_runs_to_estimate_from(tmp_path: Path) -> None:
    corpus = Corpus.open_or_create(tmp_path / "c")
    corpus.append_task(task_of("toy", 1))
    assert corpus.estimates()["solved"].isna().all()
    corpus.append_run(run_of("a"))
    with pytest.raises(DepthkitError, match=r"corpus\.toml: models is empty.*'first'"):
        corpus.estimates()


def test_turns_are_read_once_and_then_only_for_new_runs(corpus: Corpus) -> None:
    def recorded(run_id: str, turns: int) -> None:
        agent = corpus.trial_dir(run_id) / "agent"
        agent.mkdir(parents=True)
        rows = [{"turn": n, "commands": n, "parse_error": n == 2} for n in range(1, turns + 1)]
        (agent / "turns.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        corpus.append_run(run_of(run_id, attempt=1, purpose="evaluation"))

    recorded("b", 3)
    assert corpus.turns()[["run_id", "turn", "commands"]].values.tolist() == [
        ["b", 1, 1],
        ["b", 2, 2],
        ["b", 3, 3],
    ]
    shutil.rmtree(corpus.trial_dir("b"))  # What was read once is not read again.
    recorded("a", 2)
    corpus.append_run(run_of("no-files"))
    frame = Corpus.open(corpus.path).turns()
    assert frame["run_id"].tolist() == ["b", "b", "b", "a", "a"]
    assert frame["parse_error"].tolist() == [False, True, False, False, True]
    assert set(frame["provenance"]) == {"scripted"}


def test_turns_of_many_small_batches_stay_together(corpus: Corpus) -> None:
    for number in range(40):
        agent = corpus.trial_dir(f"r{number}") / "agent"
        agent.mkdir(parents=True)
        (agent / "turns.jsonl").write_text('{"turn": 1}\n')
        corpus.append_run(run_of(f"r{number}", purpose="evaluation"))
        corpus.turns()
    assert corpus.turns()["run_id"].tolist() == [f"r{number}" for number in range(40)]
    assert len(list((corpus.path / "cache").glob("turns-*.parquet"))) <= 20


def test_a_trajectory_outside_the_corpus_is_not_followed(corpus: Corpus, tmp_path: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_text('{"turn": 1}\n')
    agent = corpus.trial_dir("a") / "agent"
    agent.mkdir(parents=True)
    (agent / "turns.jsonl").symlink_to(secret)
    corpus.append_run(run_of("a"))
    assert len(corpus.turns()) == 0


def test_the_digest_changes_with_every_record(corpus: Corpus) -> None:
    digests = [corpus.digest()]
    corpus.append_task(task_of("toy", 1))
    digests.append(corpus.digest())
    corpus.append_run(run_of("a"))
    digests.append(corpus.digest())
    assert len(set(digests)) == 3
    assert Corpus.open(corpus.path).digest() == digests[-1]


def test_no_cache_outlives_the_code_that_made_it(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    corpus.append_task(task_of("a", 1))
    corpus.append_run(run_of("r1"))
    corpus.trial_dir("r1").mkdir(parents=True)

    def kept() -> dict[str, bytes | None]:
        fresh = Corpus.open(corpus.path)
        fresh.turns()
        fresh.estimates()
        keys = {
            path.name: (pq.read_schema(path).metadata or {}).get(b"depthkit.key")
            for path in (corpus.path / "cache").glob("*.parquet")
        }
        assert len(keys) == 4
        return keys

    before = kept()
    assert kept() == before
    package = tmp_path / "package"
    shutil.copytree(columns._PACKAGE, package, ignore=shutil.ignore_patterns("data", "__pyc*"))
    monkeypatch.setattr(columns, "_PACKAGE", package)
    for module, changed in {
        "protocol/__init__.py": {"estimates.parquet"},
        "corpus/estimates.py": {"estimates.parquet"},
        "corpus/trajectory.py": {"turns"},
        "corpus/turns.py": {"turns"},
        "model.py": {"estimates.parquet", "turns", "runs.parquet", "tasks.parquet"},
    }.items():
        with (package / module).open("a") as file:
            file.write("# changed\n")
        columns.code_digest.cache_clear()
        after = kept()
        fresh = {name for name in after if after[name] != before.get(name, b"absent")}
        assert {"turns" if name.startswith("turns-") else name for name in fresh} == changed
        before = after
    columns.code_digest.cache_clear()
