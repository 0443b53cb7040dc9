"""What the dashboard shows of a corpus, before any page is made of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from corpora import Spec, seven_sets, write_corpus

from depthkit.corpus import Corpus
from depthkit.corpus.files import UnreadableError
from depthkit.corpus.replies import read_replies
from depthkit.dashboard import listing
from depthkit.dashboard.compare import align, contest, difference
from depthkit.dashboard.labels import Labels, Target
from depthkit.dashboard.ladder import ladder
from depthkit.dashboard.listing import RUNS, TASKS, View
from depthkit.dashboard.marked import labels_used
from depthkit.dashboard.playback import playback
from depthkit.dashboard.search import run_ids, search_course, search_runs
from depthkit.dashboard.source import Snapshot, Source
from depthkit.dashboard.trial import Trial, read_recording
from depthkit.dashboard.turns import course
from depthkit.errors import DepthkitError

ONE_RUN = "control-10-s1__scripted-merge__cap10__1__f386093946e91b"


@pytest.fixture(scope="module")
def demo() -> Snapshot:
    return Source("demo").load()


@pytest.fixture(scope="module")
def demo_corpus() -> Corpus:
    return Corpus.open("demo")


# --- lists ---


def view(listed: listing.Listing = RUNS, **query: str | list[str]) -> View:
    given = {name: [v] if isinstance(v, str) else v for name, v in query.items()}
    return View.parse(listed, given)


def test_a_list_says_how_many_rows_there_are_and_how_many_match(demo: Snapshot):
    found = listing.page(demo, view(model="scripted-step", size="25"))
    assert found.total == 188
    assert found.matched == demo.value("SELECT count(*) FROM runs WHERE model = 'scripted-step'")
    assert len(found.rows) == 25
    assert {row["model"] for row in found.rows} == {"scripted-step"}


def test_pages_together_are_the_whole_list(demo: Snapshot):
    pages = [listing.page(demo, view(page=str(n), sort="turns")) for n in range(1, 5)]
    ids = [row["run_id"] for found in pages for row in found.rows]
    assert len(ids) == len(set(ids)) == 188
    turns = [row["turns"] for found in pages for row in found.rows]
    assert turns == sorted(turns)
    assert [row for rows in listing.every(demo, view(sort="turns")) for row in rows] == [
        row for found in pages for row in found.rows
    ]


def test_filters_hold_together_and_an_address_restores_them(demo: Snapshot):
    chosen = view(
        q="CONTROL step",
        ending=["passed", "cap"],
        caps=["10", "none"],
        turns_max="9",
        sort="-turns",
    )
    rows = listing.page(demo, chosen).rows
    assert rows
    for row in rows:
        assert row["dataset"] == "control"
        assert row["cap"] in (10, None)
        assert row["turns"] <= 9
    again = View.parse(RUNS, _parsed(chosen.query()))
    assert again == chosen


def _parsed(query: str) -> dict[str, list[str]]:
    from urllib.parse import parse_qs

    return parse_qs(query)


@pytest.mark.parametrize(
    "query",
    [
        {"sort": "passed; DROP TABLE runs"},
        {"page": "-3", "size": "1e99"},
        {"turns_min": "nan", "cost_max": "inf"},
        {"ending": "' OR 1=1 --"},
        {"columns": "nothing"},
        {"page": "99999999999999999999"},
    ],
)
def test_an_address_that_makes_no_sense_still_gives_a_page(demo: Snapshot, query: dict[str, str]):
    found = listing.page(demo, view(**query))
    assert found.total == 188
    assert 1 <= found.view.page <= found.pages


def test_counts_of_a_filter_leave_its_own_choice_open(demo: Snapshot):
    counts = listing.facets(demo, view(dataset="control", ending="passed"), ("dataset", "ending"))
    assert {name for name, _ in counts["dataset"]} == {"control", "parallel", "static-chain"}
    assert dict(counts["ending"])["passed"] == dict(counts["dataset"])["control"]
    assert [name for name, _ in counts["ending"]] == ["passed", "cap"]


def test_tasks_are_listed_with_what_their_runs_say(demo: Snapshot):
    found = listing.page(demo, view(TASKS, dataset="parallel", sort="W"))
    assert [row["W"] for row in found.rows] == [6, 12, 22]
    assert found.rows[0]["D"] == 2
    assert found.rows[0]["passes"] <= found.rows[0]["valid"]


def test_unknown_values_sort_last_and_can_be_chosen():
    snapshot = Source("paper").load()
    rows = listing.page(snapshot, view(TASKS, sort="-D")).rows
    assert rows[0]["D"] == 99
    unknown = listing.page(snapshot, view(TASKS, rating=listing.UNKNOWN))
    assert unknown.matched
    assert {row["rating"] for row in unknown.rows} == {None}


def test_tasks_that_cannot_be_read_leave_the_runs(tmp_path: Path):
    corpus = write_corpus(tmp_path / "c", [Spec("A", 2)])
    runs = len(corpus.run_ids())
    (corpus.path / "tasks.jsonl").write_bytes(b"\xff\xfe\x00\n")
    found = Source(corpus.path).load()
    assert "tasks.jsonl" in found.problems[0]
    assert listing.page(found, view()).total == runs


# --- labels ---


def test_labels_filter_runs_and_their_tasks_and_can_be_taken_back(tmp_path: Path):
    corpus = write_corpus(tmp_path / "c", [Spec("A", 2), Spec("A", 5)])
    source = Source(corpus)
    source.load()
    labels = Labels(corpus.path)
    of_task, of_run = Target("A", "task-0"), Target("A", "task-1", "r1-0")
    labels.add(of_task, "label", "odd <b>")
    labels.add(of_run, "label", "odd <b>")
    labels.add(of_run, "note", "look\nhere")
    found = source.load()
    assert labels_used(found) == [("odd <b>", 2)]
    rows = listing.page(found, view(label="odd <b>", size="200")).rows
    assert {row["task"] for row in rows if row["run_id"] != "r1-0"} == {"task-0"}
    assert any(row["run_id"] == "r1-0" for row in rows)
    assert [row["run_id"] for row in listing.page(found, view(note="*")).rows] == ["r1-0"]
    assert listing.page(found, view(note="LOOK")).matched == 1
    assert listing.page(found, view(note="look")).view.query() == "note=look"
    assert not listing.page(found, view(note="elsewhere")).matched
    assert not listing.page(found, view(note="look", of_dataset="A", of_task="task-0")).matched
    tasks = listing.page(found, view(TASKS, note="*", label="odd <b>")).rows
    assert [row["task"] for row in tasks] == ["task-1"]
    labels.remove(of_run, "label", "odd <b>")
    assert labels_used(source.load()) == [("odd <b>", 1)]


def test_a_label_that_says_nothing_or_too_much_is_refused(tmp_path: Path):
    labels = Labels(tmp_path)
    with pytest.raises(DepthkitError, match="must say something"):
        labels.add(Target("A", "t"), "label", " \n")
    with pytest.raises(DepthkitError, match="at most 60"):
        labels.add(Target("A", "t"), "label", "x" * 500)


def test_a_bad_line_of_labels_is_named_and_the_others_stay(tmp_path: Path):
    labels = Labels(tmp_path)
    labels.add(Target("A", "t"), "label", "kept")
    with labels.path.open("ab") as out:
        out.write(b'{"half\xff\n[1]\n{"action":"add","kind":"x"}\n')
    assert labels.table().num_rows == 1
    assert labels.problems[0].startswith("labels.jsonl line 2: not a label")


# --- ladder ---


def test_the_ladder_has_models_by_caps_and_marks_depth(demo: Snapshot):
    found = ladder(demo, "parallel", "parallel-4-s1")
    assert found.caps == (1, 2, 3, 5, 10, 20, 40, 80, None)
    first, second = found.rungs
    assert (first.model, second.model) == ("scripted-step", "scripted-merge")
    assert [cell.cap for cell in second.cells if cell.is_depth] == [2]
    free = first.cells[-1]
    assert [run["attempt"] for run in free.runs] == [1, 2]
    assert found.n_run in {run["run_id"] for run in free.runs}


def test_a_task_without_runs_has_an_empty_ladder(demo: Snapshot):
    found = ladder(demo, "none", "such")
    assert found.rungs == ()


# --- a run ---


def test_the_turns_of_a_run_tell_what_was_thought_done_and_seen(demo_corpus: Corpus):
    found = course(demo_corpus, ONE_RUN)
    assert found.problems == ()
    assert [turn.number for turn in found.turns] == list(range(1, 11))
    first = found.turns[0]
    assert first.analysis == "Nothing has been done yet."
    assert first.plan == "Read the task."
    assert first.commands == (("cat /app/step-1.txt\n", 0.4),)
    assert "osprey-45" in (first.output or "")
    assert first.record is not None
    asked = next(read_replies(demo_corpus.trial_dir(ONE_RUN)))
    assert first.record.input_tokens == asked.input_tokens
    assert found.between[0].before == 1
    assert "Task Description" in found.between[0].text


def test_each_turn_is_found_in_the_recording(demo_corpus: Corpus):
    found = course(demo_corpus, ONE_RUN)
    cast = Trial(demo_corpus, ONE_RUN).read("agent/recording.cast").splitlines()[1:]
    events = [json.loads(line) for line in cast]
    # The shell shows a command as it is typed.
    begins = [turn.commands[0][0][:8] for turn in found.turns]
    shown = iter(events)
    keys = [next(at for at, _, text in shown if text.startswith(each)) for each in begins]
    starts = [turn.seconds for turn in found.turns]
    assert len(keys) == len(starts)
    assert max(abs(a - b) for a, b in zip(keys, starts, strict=True) if b is not None) < 0.15


def test_a_run_without_files_says_so():
    found = course(Corpus.open("paper"), "tmax-063.deepseek-v4.1-flash.free.2")
    assert found.turns == ()
    assert found.problems == ("This corpus has no files of this run, only its record.",)


@pytest.mark.parametrize("run_id", ["../../etc", "a/b", "", ".", "a\x00b"])
def test_no_run_id_leads_out_of_the_corpus(demo_corpus: Corpus, run_id: str):
    trial = Trial(demo_corpus, run_id)
    assert trial.path is None
    assert trial.problem
    assert trial.files() == ([], [])


@pytest.mark.parametrize(
    "name", ["../run.json", "agent/../../x", "/etc/passwd", "agent//x", "", ".hidden", "agent"]
)
def test_no_file_name_leads_out_of_a_trial(demo_corpus: Corpus, name: str):
    with pytest.raises((FileNotFoundError, UnreadableError)):
        Trial(demo_corpus, ONE_RUN).read(name)


def test_a_link_out_of_the_corpus_is_not_followed(tmp_path: Path):
    corpus = write_corpus(tmp_path / "c", [Spec("A", 2)])
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    folder = corpus.trial_dir("r0-0")
    folder.mkdir(parents=True)
    (folder / "result.json").symlink_to(secret)
    (folder / "verifier").symlink_to(tmp_path)
    trial = Trial(corpus, "r0-0")
    assert trial.result() == {}
    with pytest.raises(UnreadableError, match="leads out"):
        trial.read("result.json")
    with pytest.raises(UnreadableError, match="leads out"):
        trial.read("verifier/secret.txt")
    assert "secret" not in str(trial.checked())


def test_what_the_verifier_said_is_there(demo_corpus: Corpus):
    (checked,) = Trial(demo_corpus, ONE_RUN).checked()
    assert ("verifier/test-stdout.txt", "/app/answer.txt: missing\n") in checked.texts


# --- recordings ---


def test_a_recording_keeps_only_what_a_player_may_have():
    header = {"version": 2, "width": 160, "height": 40, "timestamp": 1, "env": {"SECRET": "x"}}
    events = [
        [0.5, "o", "a\x1b]8;;https://evil.example\x1b\\b\x1b[31mred"],
        [0.4, "i", "typed"],
        [0.3, "o", "late"],
        ["x", "o", "bad"],
        [1, "r", "100x30"],
        [2, "r", "1000000x1"],
        [3, "o", "x" * (2 << 20)],
    ]
    data = "\n".join(json.dumps(line) for line in [header, *events]).encode() + b"\n\xff\xfe"
    found = read_recording(data)
    assert found.header == {"version": 2, "width": 160, "height": 40, "timestamp": 1}
    assert found.events == [
        (0.5, "o", "ab\x1b[31mred"),
        (0.5, "o", "late"),
        (1.0, "r", "100x30"),
    ]
    assert len(found.problems) == 2
    assert json.loads(found.cast().splitlines()[1]) == [0.5, "o", "ab\x1b[31mred"]


# --- search ---


def test_search_within_a_run_counts_matches_and_names_turns(demo_corpus: Corpus):
    places = search_course(course(demo_corpus, ONE_RUN), "OSPREY-45")
    assert {place.turn for place in places} >= {1, 2}
    output = next(place for place in places if (place.turn, place.where) == (1, "output"))
    assert output.matches == 1
    assert "<mark>osprey-45</mark>" in output.excerpt


def test_search_across_runs_finds_what_reading_each_finds(demo: Snapshot, demo_corpus: Corpus):
    ids = run_ids(demo, view(dataset="control"))
    found = search_runs(demo_corpus, ids, 'osprey-45"{print', seconds=60)
    assert found.done
    assert found.total == len(ids)
    slow = {
        run_id: sum(
            p.matches for p in search_course(course(demo_corpus, run_id), 'osprey-45"{print')
        )
        for run_id in ids
    }
    assert {hit.run_id: hit.matches for hit in found.hits} == {k: v for k, v in slow.items() if v}


def test_a_search_that_takes_long_says_how_far_it_came(demo: Snapshot, demo_corpus: Corpus):
    ids = run_ids(demo, view())
    part = search_runs(demo_corpus, ids, "unlock", seconds=0)
    assert not part.done
    assert part.searched == 1
    rest = search_runs(demo_corpus, ids, "unlock", start=part.searched, seconds=60)
    assert rest.done
    assert rest.searched == len(ids)


# --- what is wrong ---


def test_an_empty_corpus_is_no_error(tmp_path: Path):
    found = Source(Corpus.open_or_create(tmp_path / "new")).load()
    assert found.problems == ()
    assert listing.page(found, view()).rows == []
    assert listing.page(found, view(TASKS)).pages == 1


def test_a_directory_that_is_no_corpus_is_named(tmp_path: Path):
    found = Source(tmp_path).load()
    assert "no corpus.toml" in found.problems[0]
    assert listing.page(found, view()).total == 0


def test_runs_without_a_model_set_are_shown_and_the_mend_is_said(tmp_path: Path):
    corpus = seven_sets(tmp_path / "c")
    config = corpus.path / "corpus.toml"
    config.write_text(config.read_text().replace('models = ["first", "second"]', "models = []"))
    found = Source(corpus.path).load()
    assert listing.page(found, view()).total > 0
    assert listing.page(found, view(TASKS)).total > 0
    assert "models is empty" in found.problems[0]


def test_a_bad_line_is_named_and_the_tasks_stay(tmp_path: Path):
    corpus = seven_sets(tmp_path / "c")
    with (corpus.path / "runs.jsonl").open("a") as out:
        out.write('{"run_id": 7}\n')
    found = Source(corpus.path).load()
    assert listing.page(found, view(TASKS)).total == 33
    assert "runs.jsonl line" in found.problems[0]


def test_a_half_written_line_is_left_out_and_said(tmp_path: Path):
    corpus = seven_sets(tmp_path / "c")
    before = listing.page(Source(corpus.path).load(), view()).total
    with (corpus.path / "runs.jsonl").open("a") as out:
        out.write('{"run_id": "r9')
    found = Source(corpus.path).load()
    assert listing.page(found, view()).total == before
    assert "cut off" in found.problems[0]


def test_a_run_that_is_appended_is_seen(tmp_path: Path):
    corpus = write_corpus(tmp_path / "c", [Spec("A", 2)])
    source = Source(corpus.path)
    before = listing.page(source.load(), view()).total
    record = corpus.run_records()[0]
    corpus.append_run(record.model_copy(update={"run_id": "new"}))
    assert listing.page(source.load(), view()).total == before + 1


# --- comparisons ---

SAME = "control-10-s1__scripted-step__free__1__f386093968bb85"


def test_two_runs_are_aligned_and_where_they_part_is_marked(demo_corpus: Corpus):
    pairs = align(course(demo_corpus, ONE_RUN), course(demo_corpus, SAME))
    assert len(pairs) == 13
    assert [number for number, pair in enumerate(pairs, 1) if pair.parts] == [11]
    assert all(pair.same for pair in pairs[:10])
    assert pairs[-1].left is None
    same = align(course(demo_corpus, SAME), course(demo_corpus, SAME))
    assert not any(pair.parts for pair in same)


def test_what_two_commands_share_and_do_not_adds_up_to_both():
    pieces = difference("ls -la /app\n", "ls -l /app/data\n")
    assert "".join(p.text for p in pieces if p.kind != "right") == "ls -la /app\n"
    assert "".join(p.text for p in pieces if p.kind != "left") == "ls -l /app/data\n"
    assert any(p.kind == "same" and "/app" in p.text for p in pieces)


def test_two_models_are_compared_on_tasks_that_both_ran():
    snapshot = Source("paper").load()
    found = contest(snapshot, "gpt-6.1-sol", "gpt-6-luna")
    counted = found.only_left + found.only_right + found.both + found.neither
    assert counted == len(found.outcomes) > 50
    gaps = [abs(each.gap) for each in found.outcomes]
    assert gaps == sorted(gaps, reverse=True)
    assert "sign test" in found.test
    back = contest(snapshot, "gpt-6-luna", "gpt-6.1-sol")
    assert (back.only_left, back.only_right) == (found.only_right, found.only_left)


def test_recordings_that_belong_to_no_segment_are_said_and_not_played(tmp_path: Path):
    corpus = Corpus.open_or_create(tmp_path / "corpus")
    folder = corpus.trial_dir("r")
    for where in ("steps/a/agent", "steps/b/agent", "elsewhere"):
        (folder / where).mkdir(parents=True)
        (folder / where / "recording.cast").write_text('{"version": 2}\n[1.0, "o", "x"]\n')
    (folder / "result.json").write_text(
        '{"step_results": [{"step_name": "b"}, {"step_name": "a"}]}'
    )
    play = playback(Trial(corpus, "r"))
    assert [(part.segment, part.offset) for part in play.parts] == [(0, 0.0), (1, 2.0)]
    assert "1 of 3 recordings" in play.problems[0]
    lines = play.cast().decode().splitlines()
    assert lines[2:] == ['[2.0, "r", "80x24"]', '[2.0, "o", "\\u001bc"]', '[3.0, "o", "x"]']
