"""What an author writes: seeds, report formats, and what is told of errors without running."""

from __future__ import annotations

from pathlib import Path

import pytest
from written_task import SEGMENTS, write_draft, write_seed

from depthkit.errors import DepthkitError
from depthkit.generation.draft import Draft
from depthkit.generation.formats import HEADING, read_reports, with_formats, without_formats
from depthkit.generation.leaks import leaks
from depthkit.generation.log import GenerationLog
from depthkit.generation.rules import task_faults
from depthkit.generation.run import generate_task
from depthkit.generation.seeds import load_seed


def faults(tmp_path: Path, number: int = 1, **changed: str) -> list[str]:
    names = {"check": "check.sh", "solve": "solve.sh", "reports": "reports.toml"}
    names |= {"instruction": "instruction.md", "names": "names.toml"}
    own = {names[key]: text for key, text in changed.items()}
    draft = write_draft(tmp_path, *[{}] * (number - 1), own)
    for before in range(1, number):
        assert draft.format_faults(before) == []
    return draft.format_faults(number)


# --- seeds ---


def test_a_seed_says_what_it_is(tmp_path: Path) -> None:
    seed = load_seed(write_seed(tmp_path / "readings"))
    assert (seed.kind, seed.original_lines, seed.cpus) == ("embedded database", 4, 1)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('kind = "embedded database"\n', "", 'kind must be the kind of system, such as "mail'),
        ("memory_mb = 256", "memory = 256", "memory is not a field; use one of name, kind"),
        ("memory_mb = 256", 'memory_mb = "256"', "memory_mb must be megabytes"),
        ('name = "readings"', 'name = "others"', "name is 'others'; it must be that of the dir"),
    ],
)
def test_a_wrong_seed_is_told(tmp_path: Path, old: str, new: str, said: str) -> None:
    seed = write_seed(tmp_path / "readings")
    text = (seed / "seed.toml").read_text()
    (seed / "seed.toml").write_text(text.replace(old, new))
    with pytest.raises(DepthkitError, match=said):
        load_seed(seed)


def test_a_task_has_the_files_of_its_seed_but_what_says_that_it_is_one(tmp_path: Path) -> None:
    draft = write_draft(tmp_path)
    names = {path.name for path in (draft.task / "environment").iterdir()}
    assert names == {"Dockerfile", "readings.csv"}


# --- report formats ---

REPORTS = """\
[[reports]]
path = "/srv/out/a.txt"
kind = "fields"
[reports.fields]
items = "number of items"

[[reports]]
path = "/srv/out/b.tsv"
kind = "table"
about = "one row an item"
[reports.columns]
name = "its name"
cents = "its price"

[[reports]]
path = "/srv/out/c.json"
kind = "json"
[reports.fields]
"totals.cents" = "sum of prices"
"""


def test_exact_formats_are_written_from_what_is_declared(tmp_path: Path) -> None:
    (tmp_path / "reports.toml").write_text(REPORTS)
    reports = read_reports(tmp_path / "reports.toml", "reports.toml")
    whole = with_formats("Write three reports.\n", reports)
    assert whole.startswith(f"Write three reports.\n\n{HEADING}\n\n`/srv/out/a.txt` has one line")
    assert "- `items`: number of items\n" in whole
    assert "`/srv/out/b.tsv` (one row an item) is a table. Its first line holds the names" in whole
    assert "- `cents` in the object `totals`: sum of prices\n" in whole
    assert with_formats(whole, reports) == whole
    assert without_formats(whole) == "Write three reports.\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[reports]]\nkind = "list"\n', 'report 1: kind must be "fields", "table" or "json"'),
        ('[[reports]]\nkind = "json"\npath = "c"\n', "report 1: path must be an absolute path"),
        ('[[reports]]\nkind = "table"\npath = "/c"\n', r"needs \[reports.columns\]"),
        ("[report]\n", r"may hold \[\[reports\]\] tables only"),
        (REPORTS + REPORTS, "/srv/out/a.txt is declared twice"),
    ],
)
def test_a_wrong_declaration_is_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "reports.toml").write_text(text)
    with pytest.raises(DepthkitError, match=said):
        read_reports(tmp_path / "reports.toml", "reports.toml")


# --- what is told before anything runs ---


def test_a_good_draft_has_no_faults(tmp_path: Path) -> None:
    draft = write_draft(tmp_path)
    assert draft.format_faults(1) == draft.format_faults(2) == []
    assert leaks(draft.load(2)) == []


def test_a_file_that_is_missing_is_told(tmp_path: Path) -> None:
    draft = write_draft(tmp_path)
    draft.path(1, "tests/check.sh").unlink()
    assert draft.format_faults(1) == ["steps/s1/tests/check.sh: is missing"]


def test_a_value_that_was_measured_must_not_be_written_into_a_check(tmp_path: Path) -> None:
    check = SEGMENTS[0]["check.sh"].replace("\"$(db 'select count(*) from readings')\"", "4")
    [fault] = faults(tmp_path, check=check)
    assert "expected-written-in: the expected value '4' is written in" in fault


def test_only_declared_fields_are_read(tmp_path: Path) -> None:
    reports = SEGMENTS[0]["reports.toml"].replace('rows = "', 'lines = "')
    [undeclared] = [f for f in faults(tmp_path, reports=reports) if "reports.toml" in f]
    assert "/srv/out/load.txt has no field or column 'rows' in reports.toml" in undeclared


def test_a_declared_report_is_read_by_readers_alone(tmp_path: Path) -> None:
    check = SEGMENTS[0]["check.sh"] + "expect_ok told -- grep -q rows /srv/out/load.txt\n"
    check += "expect_out again '[0-9]' -- field /srv/out/load.txt rows\n"
    check = check.replace('expect_eq rows "$(field /srv/out/load.txt rows)"', 'expect_eq rows "$n"')
    assert faults(tmp_path, check=check) == [
        "steps/s1/tests/check.sh:9: report-not-through-reader: expect_ok looks into "
        "/srv/out/load.txt"
    ]


def test_the_formats_must_stand_as_they_are_declared(tmp_path: Path) -> None:
    draft = write_draft(tmp_path)
    assert draft.format_faults(1) == []
    text = draft.path(1, "instruction.md").read_text()
    draft.path(1, "instruction.md").write_text(text.replace("number of rows", "rows"))
    assert task_faults(draft.load(1)) == [
        "steps/s1/instruction.md: does not end with the formats that reports.toml declares"
    ]
    assert draft.format_faults(1) == []  # They are written anew.


def test_a_key_step_must_be_marked(tmp_path: Path) -> None:
    solve = SEGMENTS[0]["solve.sh"].replace("# key-step", "# step")
    [fault] = faults(tmp_path, solve=solve)
    assert "key-step-missing" in fault


@pytest.mark.parametrize(
    ("told", "leaked"),
    [
        ("The file was written by `iconv -f UTF-16`.", "iconv -f"),
        ("It is in UTF-16.", "UTF-16"),
        ("The export has two bytes a letter.", "The export has two bytes"),
        ("Use `create table readings (sensor text, value text)` for it.", "create table readings"),
        ("Put a copy into /tmp/readings.csv first.", "/tmp/readings.csv"),
    ],
)
def test_an_instruction_leaks_nothing_of_the_solution(
    tmp_path: Path, told: str, leaked: str
) -> None:
    instruction = SEGMENTS[0]["instruction.md"] + told + "\n"
    found = faults(tmp_path, instruction=instruction)
    assert any(leaked in fault and "the instruction of segment 1 has" in fault for fault in found)


def test_nor_of_the_checks_or_of_another_segment(tmp_path: Path) -> None:
    instruction = (
        SEGMENTS[1]["instruction.md"] + "Mind that `best.get` is slow, and errors=replace.\n"
    )
    found = faults(tmp_path, 2, instruction=instruction)
    assert len(found) == 2
    assert "'best.get', as steps/s2/tests/check.sh:" in found[0]
    assert "'errors=replace', as steps/s1/solution/solve.sh" in found[1]


@pytest.mark.parametrize(
    ("line", "least"),
    [("make the records whole again now", 4), ("# keep every record that came first", 5)],
)
def test_so_many_words_in_a_row_are_a_leak_and_one_less_is_none(
    tmp_path: Path, line: str, least: int
) -> None:
    """Four of a command, five of a comment; none of these words would be told by itself."""
    words = line.strip("# ").split()
    solve = SEGMENTS[0]["solve.sh"] + line + "\n"
    for count, leaked in ((least - 1, False), (least, True)):
        told = SEGMENTS[0]["instruction.md"] + "Mind: " + " ".join(words[:count]) + "\n"
        draft = write_draft(tmp_path / str(count), {"solve.sh": solve, "instruction.md": told})
        assert draft.format_faults(1) == [] or leaked
        found = [leak.text for leak in leaks(draft.load(1))]
        assert found == ([" ".join(words[:count])] if leaked else [])


def test_a_name_that_is_stated_leaks_nothing(tmp_path: Path) -> None:
    names = 'names = ["/srv/in/readings.csv", "/srv/data/readings.db", "readings", "UTF-16"]\n'
    instruction = SEGMENTS[0]["instruction.md"] + "The file is in UTF-16, of a host 127.0.0.1.\n"
    assert faults(tmp_path, instruction=instruction, names=names) == []


# --- how far a draft is ---


def test_a_finished_segment_that_changes_is_not_finished_any_more(tmp_path: Path) -> None:
    draft = write_draft(tmp_path)
    for number in (1, 2):
        assert draft.format_faults(number) == []
        draft.finish(number, "it goes wrong")
    again = Draft(draft.out, tmp_path / "seeds" / "readings", 2)
    assert (again.resumed, again.finished) == (True, 2)
    again.write(1, "names.toml", 'names = ["/srv/in/readings.csv"]\n')
    assert again.finished == 0


def test_killed_after_the_verdict_the_same_command_does_what_the_log_says(tmp_path: Path) -> None:
    draft = write_draft(tmp_path)
    (draft.path(1, "check.sh").parent / ".check.sh.new").write_text("half")
    GenerationLog(
        tmp_path / "tasks" / "generation.jsonl", task="readings", seed="readings", author="stdio"
    ).add("accepted")
    again = generate_task(tmp_path / "seeds" / "readings", draft.out, k=2)
    assert (again.outcome, again.task, again.finished) == ("accepted", draft.out, 2)
    assert (draft.out / "steps/s1/tests/check.sh").is_file()
    assert not list(draft.out.rglob(".*"))
    assert not draft.out.with_name("readings.draft").exists()


def test_a_draft_of_another_task_is_left_alone(tmp_path: Path) -> None:
    draft = write_draft(tmp_path)
    seed = tmp_path / "seeds" / "readings"
    with pytest.raises(DepthkitError, match="is the draft of another task, not of k 3"):
        Draft(draft.out, seed, 3)
    (seed / "Dockerfile").write_text("FROM depthkit/base:1\n")
    with pytest.raises(DepthkitError, match="not of the seed as it is now"):
        Draft(draft.out, seed, 2)
