"""What a user may rely on of the corpus on disk: its records and its settings."""

from __future__ import annotations

import errno
import json
import logging
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from records import run_of, task_of

from depthkit.corpus import Corpus
from depthkit.dashboard.labels import Labels, Target
from depthkit.errors import DepthkitError, DepthkitWarning
from depthkit.model import Replay

MODELS = ("first", "second")


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
        ({"rewards": {"reward": 1, "style": None}}, "line 2: rewards.style is null"),
        ({"rewards": {"reward": float("nan")}}, "line 2: rewards.reward is NaN"),
        ({"rewards": 1}, "line 2: rewards is 1"),
    ],
)
def test_a_bad_line_is_named_with_its_field(
    corpus: Corpus, line: str | dict[str, Any], says: str
) -> None:
    corpus.append_run(run_of("a", rewards={"reward": 1, "style": 0.4}))
    if isinstance(line, dict):
        line = json.dumps(run_of("b").model_dump(mode="json") | line)
    with (corpus.path / "runs.jsonl").open("a") as handle:
        handle.write(line + "\n")
    corpus = Corpus.open(corpus.path)
    corpus.append_run(run_of("c"))  # A bad line does not cost what is measured after it.
    with pytest.raises(DepthkitError, match=says.replace("[", r"\[")) as told:
        corpus.runs()
    assert str(corpus.path / "runs.jsonl") in str(told.value)


@pytest.mark.parametrize("file", ["tasks.jsonl", "runs.jsonl", "replays.jsonl"])
def test_a_byte_that_is_not_utf_8_is_named_with_its_line(corpus: Corpus, file: str) -> None:
    corpus.append_task(task_of("caf", 3))
    corpus.append_run(run_of("a", task_id="caf"))
    corpus.append_replay(
        Replay(
            dataset="toys",
            task_id="caf",
            change="event_removed",
            segment=1,
            checked_segment=1,
            provenance="scripted",
        )
    )
    path = corpus.path / file
    path.write_bytes(path.read_bytes().replace(b"caf", b"caf\xe9"))
    with pytest.raises(DepthkitError, match=rf"{file} line 1: not a "):
        getattr(Corpus.open(corpus.path), file.removesuffix(".jsonl"))()["task_id"].tolist()


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


def test_a_directory_comes_before_a_bundled_corpus_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bundled = Corpus.open("demo")
    mine = Corpus.open_or_create(Path("demo"), models=MODELS)
    with pytest.warns(DepthkitWarning, match="the corpus in ./demo is used, not the one"):
        assert Corpus.open("demo").models == mine.models != bundled.models


def test_nothing_is_written_into_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    demo = Corpus.open("demo")
    shutil.rmtree(demo.path / "cache", ignore_errors=True)  # of an older version

    def there() -> set[tuple[Path, int]]:
        return {(path, path.stat().st_mtime_ns) for path in demo.path.rglob("*")}

    before = there()
    assert len(demo.runs()) and len(demo.turns()) and len(demo.estimates())
    made = {path.name.split("-")[0] for path in tmp_path.rglob("*.parquet")}
    assert made == {"runs.parquet", "tasks.parquet", "estimates.parquet", "turns"}
    for write in (
        lambda: demo.append_run(run_of("mine")),
        lambda: Corpus.open_or_create(demo.path, models=(*demo.models, "mine")),
        lambda: Labels(demo.path).add(Target("toys", "toy"), "label", "odd"),
    ):
        with pytest.raises(DepthkitError, match="comes with depthkit and is only read; copy it"):
            write()
    assert there() == before


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
    for bad in (b"name = ", b"name = '\xe9'", b"a = " + b"[" * 100_000):
        path.write_bytes(bad)
        with pytest.raises(DepthkitError, match=r"corpus\.toml: cannot be read as TOML"):
            Corpus.open(corpus.path)


def test_a_corpus_toml_that_is_gone_is_missed_and_what_it_must_say_is_told(corpus: Corpus) -> None:
    corpus.append_run(run_of("a"))
    (corpus.path / "corpus.toml").unlink()
    for look in (
        corpus.runs,
        lambda: Corpus.open(corpus.path),
        lambda: Corpus.open_or_create(corpus.path, models=MODELS),
    ):
        with pytest.raises(DepthkitError, match=r"corpus\.toml: is missing.* put it back, with"):
            look()
    (corpus.path / "corpus.toml").write_text('models = ["first", "second"]\n')
    assert Corpus.open(corpus.path).estimates()["runs"].tolist() == [1]


def test_without_file_locks_a_corpus_is_read_and_not_written(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus.append_run(run_of("a"))

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    again = Corpus.open(corpus.path)
    assert (len(again.runs()), len(again.turns())) == (1, 0)
    with pytest.raises(DepthkitError, match=f"{corpus.path}: its file system has no locks"):
        again.append_run(run_of("b"))


def test_a_corpus_that_cannot_be_written_can_still_be_read(corpus: Corpus) -> None:
    corpus.append_run(run_of("a"))
    (corpus.path / "cache").write_text("a file where the cache directory would be")
    again = Corpus.open(corpus.path)
    assert len(again.runs()) == 1
    assert len(again.turns()) == 0
