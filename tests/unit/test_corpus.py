"""What a user may rely on of the corpus on disk."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from depthkit.corpus import Corpus, columns
from depthkit.errors import DepthkitError
from depthkit.model import Replay, Run, Segment, Task, Work

MODELS = ("first", "second")


def run_of(run_id: str, **fields: Any) -> Run:
    given: dict[str, Any] = {
        "run_id": run_id,
        "dataset": "toys",
        "task_id": "toy",
        "model": "first",
        "attempt": 1,
        "purpose": "free",
        "verdict": "passed",
        "stop": "submitted",
        "turns": 7,
        "agent_minutes": 1.5,
        "context_tokens": 4000,
        "provenance": "scripted",
    }
    return Run(**given | fields)


def task_of(task_id: str, *lines: int | None, **fields: Any) -> Task:
    segments = tuple(
        Segment(
            index=number,
            name=f"s{number}",
            work=None if n is None else Work(lines=n, tokens=10 * n, chars=40 * n),
        )
        for number, n in enumerate(lines, start=1)
    )
    given = {"dataset": "toys", "task_id": task_id, "segments": segments, "provenance": "scripted"}
    return Task(**given | fields)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus.open_or_create(tmp_path / "c", models=MODELS)


def test_records_come_back_as_they_were_appended(corpus: Corpus) -> None:
    run = run_of("a", detail="näher „besehen“\nzweite Zeile", started="2026-05-01T12:00:00Z")
    replay = Replay(
        dataset="toys",
        task_id="toy",
        change="event_removed",
        segment=1,
        event=2,
        checked_segment=1,
        holds=True,
        provenance="scripted",
    )
    corpus.append_run(run)
    corpus.append_replay(replay)
    again = Corpus.open(corpus.path)
    assert again.run_records() == [run]
    assert again.replay_records() == [replay]
    assert again.replays().loc[0, "event"] == 2
    assert again.models == MODELS


def test_last_line_of_a_task_wins(corpus: Corpus) -> None:
    corpus.append_task(task_of("toy", 3))
    corpus.append_task(task_of("other", 5))
    corpus.append_task(task_of("toy", 4, 6))
    assert [(t.task_id, t.k) for t in corpus.task_records()] == [("other", 1), ("toy", 2)]
    frame = corpus.tasks().set_index("task_id")
    assert list(frame.index) == ["other", "toy"]
    assert frame.loc["toy", ["k", "work_lines", "work_tokens", "work_chars"]].tolist() == [
        2,
        10,
        100,
        400,
    ]


def test_work_of_a_task_is_missing_if_one_segment_has_no_reference_solution(
    corpus: Corpus,
) -> None:
    corpus.append_task(task_of("toy", 3, None))
    assert corpus.tasks()["work_lines"].isna().all()
    assert corpus.estimates()["work_lines"].isna().all()


def test_a_run_id_can_be_appended_only_once(corpus: Corpus) -> None:
    corpus.append_run(run_of("a"))
    for other in (corpus, Corpus.open(corpus.path)):
        with pytest.raises(DepthkitError, match=r"runs\.jsonl: run_id 'a' is already there"):
            other.append_run(run_of("a", verdict="failed"))
    assert [run.verdict for run in corpus.run_records()] == ["passed"]


@pytest.mark.parametrize("run_id", ["../x", "a/b", ".hidden", "", "a b", "a\n", "x" * 201])
def test_a_run_id_must_be_a_plain_name(corpus: Corpus, run_id: str) -> None:
    with pytest.raises(DepthkitError, match="plain name"):
        corpus.append_run(run_of(run_id))
    with pytest.raises(DepthkitError, match="plain name"):
        corpus.trial_dir(run_id)
    assert corpus.run_records() == []


def test_a_trial_directory_that_is_a_link_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    (corpus.path / "trials").mkdir()
    (corpus.path / "trials" / "a").symlink_to(tmp_path)
    with pytest.raises(DepthkitError, match="symbolic link"):
        corpus.trial_dir("a")


def test_several_processes_append_without_losing_or_mixing_lines(corpus: Corpus) -> None:
    script = (
        "import sys; from depthkit.corpus import Corpus; from depthkit.model import Run\n"
        "corpus = Corpus.open(sys.argv[1])\n"
        "for n in range(60):\n"
        "    corpus.append_run(Run(run_id=f'{sys.argv[2]}-{n}', dataset='toys', task_id='toy',\n"
        "        model='first', attempt=1, purpose='evaluation', verdict='failed',\n"
        "        stop='submitted', detail='x' * 5000, provenance='scripted'))\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(corpus.path), f"w{number}"])
        for number in range(3)
    ]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0]
    ids = corpus.runs()["run_id"]
    assert len(ids) == 180
    assert ids.is_unique
    for number in range(3):
        own = [run_id for run_id in ids if run_id.startswith(f"w{number}-")]
        assert own == [f"w{number}-{n}" for n in range(60)]


@pytest.mark.parametrize("torn", ['{"run_id": "b", "data', '{"run_id": "b"', "\0\0\0\0", "{"])
def test_a_torn_last_line_is_reported_and_never_in_the_way(
    corpus: Corpus, torn: str, caplog: pytest.LogCaptureFixture
) -> None:
    corpus.append_run(run_of("a"))
    path = corpus.path / "runs.jsonl"
    with path.open("a") as handle:
        handle.write(torn)
    again = Corpus.open(corpus.path)
    with caplog.at_level(logging.WARNING):
        assert [run.run_id for run in again.run_records()] == ["a"]
        assert len(again.runs()) == 1
    assert "cut off" in caplog.text
    again.append_run(run_of("b"))
    assert [run.run_id for run in Corpus.open(corpus.path).run_records()] == ["a", "b"]
    assert path.with_name("runs.jsonl.torn").read_text() == torn + "\n"


def test_a_whole_last_line_without_its_newline_is_kept(corpus: Corpus) -> None:
    corpus.append_run(run_of("a"))
    path = corpus.path / "runs.jsonl"
    path.write_text(path.read_text().rstrip("\n"))
    again = Corpus.open(corpus.path)
    assert [run.run_id for run in again.run_records()] == ["a"]
    with pytest.raises(DepthkitError, match="already there"):
        again.append_run(run_of("a"))
    again.append_run(run_of("b"))
    assert [run.run_id for run in again.run_records()] == ["a", "b"]


def test_a_full_disk_loses_only_the_record_in_flight(corpus: Corpus) -> None:
    corpus.append_run(run_of("a"))
    before = (corpus.path / "runs.jsonl").read_bytes()
    script = (
        "import resource, signal, sys\n"
        "from depthkit.corpus import Corpus; from depthkit.errors import DepthkitError\n"
        "corpus = Corpus.open(sys.argv[1]); run = corpus.run_records()[0]\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before)} + 100,) * 2)\n"
        "try: corpus.append_run(run.model_copy(update={'run_id': 'b'}))\n"
        "except DepthkitError as error: print(error)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script, str(corpus.path)], capture_output=True, text=True, check=True
    )
    assert "could not append" in told.stdout
    assert (corpus.path / "runs.jsonl").read_bytes() == before
    corpus.append_run(run_of("b"))
    assert len(corpus.run_records()) == 2


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("not json", "line 2: not a Run as JSON"),
        ('{"run_id": "b"}', "line 2: dataset"),
        ({"verdict": "psased"}, 'line 2: verdict is "psased"'),
        ({"attempt": 0}, "line 2: attempt is 0"),
        ({"turns": "many"}, 'line 2: turns is "many"'),
        ({"turn": 3}, "line 2: turn is 3: Extra inputs"),
        ({"stop": "budget"}, "line 2"),
        ({"turns": 2**70}, "64 bits"),
    ],
)
def test_a_bad_line_is_named_with_its_field(
    corpus: Corpus, line: str | dict[str, Any], says: str
) -> None:
    corpus.append_run(run_of("a"))
    if isinstance(line, dict):
        line = json.dumps(run_of("b").model_dump(mode="json") | line)
    with (corpus.path / "runs.jsonl").open("a") as handle:
        handle.write(line + "\n")
    corpus = Corpus.open(corpus.path)
    corpus.append_run(run_of("c"))  # A bad line does not cost what is measured after it.
    with pytest.raises(DepthkitError, match=says.replace("[", r"\[")) as told:
        corpus.runs()
    assert str(corpus.path / "runs.jsonl") in str(told.value)


def test_a_line_may_leave_out_what_has_a_default(corpus: Corpus) -> None:
    corpus.append_run(run_of("a"))
    short = run_of("b", started="2026-05-01T14:00:00+02:00").model_dump(
        mode="json", exclude_defaults=True
    )
    with (corpus.path / "runs.jsonl").open("a") as handle:
        handle.write(json.dumps(short) + "\n")
    frame = corpus.runs()
    assert frame["suspect"].tolist() == [False, False]
    assert frame.loc[1, "started"].isoformat() == "2026-05-01T12:00:00+00:00"


def test_the_same_run_id_on_two_lines_is_an_error(corpus: Corpus) -> None:
    corpus.append_run(run_of("a"))
    path = corpus.path / "runs.jsonl"
    path.write_text(path.read_text() * 2)
    with pytest.raises(DepthkitError, match="run_id 'a' stands on several lines"):
        Corpus.open(corpus.path).runs()


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
    start = time.monotonic()
    assert len(corpus.runs()) == 100_000
    loaded = time.monotonic() - start
    assert len(corpus.estimates()) == 500
    estimated = time.monotonic() - start
    again = Corpus.open(corpus.path)
    start = time.monotonic()
    again.estimates()
    cached = time.monotonic() - start
    # Generous: the machine may be busy with other tests.
    assert loaded < 5
    assert estimated < 15
    assert cached < 2


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


def test_models_can_only_be_added_at_the_end(corpus: Corpus) -> None:
    longer = Corpus.open_or_create(corpus.path, models=(*MODELS, "third"))
    assert longer.models == (*MODELS, "third")
    assert Corpus.open_or_create(corpus.path, models=MODELS).models == (*MODELS, "third")
    with pytest.raises(DepthkitError, match=r"corpus\.toml: models is"):
        Corpus.open_or_create(corpus.path, models=("second", "first"))


def test_what_is_no_corpus_is_refused_with_the_bundled_names(tmp_path: Path) -> None:
    with pytest.raises(DepthkitError, match="bundled"):
        Corpus.open("no-such-corpus")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DepthkitError, match="exists and is no corpus"):
        Corpus.open_or_create(tmp_path)


def test_a_malformed_corpus_toml_is_named_with_its_field(corpus: Corpus) -> None:
    path = corpus.path / "corpus.toml"
    good = path.read_text()
    path.write_text(good.replace('["first", "second"]', '"first"'))
    with pytest.raises(DepthkitError, match=r"corpus\.toml: models must be a list"):
        Corpus.open(corpus.path)
    for old, new, why in (
        ("ceiling = 150", "ceiling = 200", "ceiling is 200, but this version always uses 150"),
        ("free_runs = 2", "free_runs = 3", "free_runs is 3"),
        ("runs_per_cap = 2", "runs_per_cap = 1", "runs_per_cap is 1"),
        ("[1, 2, 3, 5, 10, 20, 40, 80]", "[5, 3]", "caps must be increasing"),
        ("[1, 2, 3, 5, 10, 20, 40, 80]", "[]", "caps must be increasing"),
    ):
        assert old in good
        path.write_text(good.replace(old, new))
        with pytest.raises(DepthkitError, match=rf"corpus\.toml: \[protocol\] {why}"):
            Corpus.open(corpus.path)
    path.write_text("name = ")
    with pytest.raises(DepthkitError, match=r"corpus\.toml: cannot be read as TOML"):
        Corpus.open(corpus.path)


def test_a_corpus_that_cannot_be_written_can_still_be_read(corpus: Corpus) -> None:
    corpus.append_run(run_of("a"))
    (corpus.path / "cache").write_text("a file where the cache directory would be")
    again = Corpus.open(corpus.path)
    assert len(again.runs()) == 1
    assert len(again.turns()) == 0


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
