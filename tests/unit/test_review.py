"""Static review: a good task has no finding, and each way to spoil it has one at its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from checked_task import REAL_TASKS, STOCK, copy_real_task, write_stock
from typer.testing import CliRunner

from depthkit.cli import app
from depthkit.tasks import load_task
from depthkit.tasks.findings import RULES
from depthkit.tasks.markers import read_marks, without
from depthkit.tasks.reading import CheckScript
from depthkit.tasks.review import review
from depthkit.tasks.review_checks import review_checks
from depthkit.tasks.words import read_script

CHECK = "steps/s1/tests/check.sh"
SOLVE = "steps/s1/solution/solve.sh"


@pytest.fixture
def stock(tmp_path: Path) -> Path:
    return write_stock(tmp_path / "set" / "stock")


def findings(task: Path) -> list[tuple[str, str]]:
    """Place and rule of each finding."""
    return [(f"{each.file}:{each.line}", each.rule) for each in review(task).findings]


def test_a_good_task_has_no_finding(stock: Path) -> None:
    found = review(stock)
    assert found.error is None
    assert found.findings == []
    assert found.notes == []
    assert found.ok


def test_a_review_counts_what_is_worth_knowing_before_a_run(stock: Path) -> None:
    first, second = review(stock).segments
    assert (first.checks, first.key_steps, first.events) == (2, 1, 0)
    assert (second.checks, second.key_steps, second.events) == (3, 1, 1)
    assert first.words == len(STOCK[0]["instruction"].split())
    # The database, the table, the report and its field.
    assert first.names == 4
    assert first.lines == 15


# A line put at the end of the first check script, and the rules that find it there.
ADDED: list[tuple[str, str | None]] = [
    ("pass done", "cannot-fail"),
    ("[[ -d /srv ]] && pass done || fail done no", None),
    ("[[ -d /srv ]] && pass done", "cannot-fail"),
    ("if [[ -d /srv ]]; then pass done; else pass done; fi", "cannot-fail"),
    ("if true; then pass done; else fail done no; fi", "cannot-fail"),
    ("[ 1 = 1 ] && pass done || fail done no", "cannot-fail"),
    ("expect_ok a -- true", "cannot-fail"),
    ("expect_ok a -- bash -c 'test -s /srv/stock.db || true'", "cannot-fail"),
    ("expect_out a 'x*' -- stock 'select 1'", "cannot-fail"),
    ("expect_out a '[[:space:]]*' -- stock 'select 1'", "cannot-fail"),
    ("expect_out a '[[:alpha:]]+' -- stock 'select 1'", None),
    ("expect_out a nut -- echo nut", "cannot-fail"),
    ('x=$(stock x)\nexpect_out a nut -- echo "$x"', None),
    ("expect_ok a -- test -n x", "cannot-fail"),
    ("expect_ok a -- test -s /srv/stock.db", None),
    ("expect_no_out a nut -- true", "cannot-fail"),
    ("expect_fail a . -- false", "cannot-fail"),
    ('x=$(stock x)\ny=$x\nexpect_eq a "$x" "$y"', "cannot-fail"),
    ('expect_eq a "$(stock x)" "$(stock x)"', "cannot-fail"),
    ('expect_eq a "$(stock x)" 17 int', "expected-written-in"),
    ('n=17\nexpect_eq a "$(stock x)" "$n" int', "expected-written-in"),
    ('expect_eq a "$(stock x)" "$(echo 17)" int', "expected-written-in"),
    ('expect_eq a "$(stock x)" nut,cog set', "expected-written-in"),
    ('expect_eq a "$(field "$report" items)" yes bool', "expected-written-in"),
    ('expect_eq a "$(stock x)" yes bool', None),
    ('expect_eq a "$(stock x)" 0 int', None),
    ('expect_eq a "$(stock x)" void', None),  # stated in the instruction
    ('expect_eq a "$(stock x)" "$(wanted)"', None),
    ('for i in 1 2; do expect_eq "a$i" "$(stock "$i")" "$i"; done', None),
    ("expect_out a '17 rows' -- stock x", "expected-written-in"),
    ('expect_eq a "$(stock x)" "$((10 + 7))" int', "expected-written-in"),
    ('n=17\nn=17\nexpect_eq a "$(stock x)" "$n" int', "expected-written-in"),
    ('expect_eq a "$(stock x)" "${n:-17}" int', "expected-written-in"),
    ('[[ "$(stock x)" == 17 ]] && pass a || fail a no', "expected-written-in"),
    ('[[ "$(stock x)" =~ ^17$ ]] && pass a || fail a no', "expected-written-in"),
    ("if (($(stock x) == 17)); then pass a; else fail a no; fi", "expected-written-in"),
    ("if ((17 <= $(stock x))); then pass a; else fail a no; fi", "expected-written-in"),
    ("if (($(stock x) == $(wanted))); then pass a; else fail a no; fi", None),
    ("case $(stock x) in 17) pass a ;; *) fail a no ;; esac", "expected-written-in"),
    ("case $(stock x) in void) pass a ;; *) fail a no ;; esac", None),
    ("stock x | grep -qx 17 && pass a || fail a no", "expected-written-in"),
    ("stock x | grep -q 127.0.0.1 && pass a || fail a no", None),
    ('expect_ok a -- test "$(stock x)" = 17', "expected-written-in"),
    ("expect_ok a -- bash -c '[ \"$(stock x)\" = 17 ]'", "expected-written-in"),
    ('expect_eq a 7 "$(field "$report" items)" int', "expected-written-in"),
    ('[ "$(field "$report" items)" -eq 7 ] && pass a || fail a no', "expected-written-in"),
    ('[ "$(field "$report" items)" -ge 1 ] && pass a || fail a no', None),
    (
        'if (($(field "$report" items) == 7)); then pass a; else fail a no; fi',
        "expected-written-in",
    ),
    ("expect_out a '^7$' -- field /srv/report.txt items", "expected-written-in"),
    ('n=$(($(wc -l <"$report") + 1))', "report-not-through-reader"),
    ('for ((i = 0; i < 3; i++)); do expect_eq "a$i" "$(stock "$i")" "$(wanted)"; done', None),
    ('expect_ok a -- grep -q items "$report"', "report-not-through-reader"),
    ("expect_out a void -- cat /srv/report.txt", "report-not-through-reader"),
    ('x=$(cat "$report")', "report-not-through-reader"),
    ('while read -r l; do echo "$l"; done <"$report"', "report-not-through-reader"),
    ("expect_ok a -- bash -c 'wc -l /srv/report.txt'", "report-not-through-reader"),
    ('expect_file a "$report"', None),
    ("expect_file a /srv/other.db", "name-not-stated"),
    ("expect_port a localhost 5432", "name-not-stated"),
    ("expect_ok a -- curl http://localhost:8080/", "name-not-stated"),
    ("expect_ok a -- test -e /etc/passwd", None),
    ('expect_eq a "$(field "$report" total)" "$(stock x)"', "name-not-stated"),
    ('expect_eq a "$(field "$report" ITEMS)" "$(stock x)"', None),
    ("expect_out a gadget -- cat /srv/in/deliveries.csv", "string-unknown"),
    ("# printed by sqlite\nexpect_out a gadget -- cat /srv/in/deliveries.csv", None),
    ("expect_out a gadget -- cat /var/log/x.log", "name-not-stated"),
    ("expect_out a gadget -- stock x", None),
    ("expect_ok a -- grep gadget /srv/in/deliveries.csv", "string-unknown"),
    ("expect_ok a -- grep void /srv/in/deliveries.csv", None),
    ("expect_proc a stock.db", "process-not-asked"),
    ("expect_ok rows -- stock x", "name-twice"),
    ("expect_ok a stock x", "arguments"),
    ('expect_eq a "$(column "$report" items)" "$(stock x)"', "arguments"),
    ('expect_eq a "$(field "$report")" "$(stock x)"', "arguments"),
    ("echo seen >/srv/stock.db", "leaves-something"),
    ("expect_ok a -- cp /srv/stock.db /srv/in/deliveries.csv", "leaves-something"),
    ("expect_ok a -- bash -c 'stock x >/srv/stock.db'", "leaves-something"),
    ("stock x >/dev/null 2>&1", None),
    ("expect_ok a -- sed -i s/a/b/ /srv/stock.db", "leaves-something"),
    ("expect_ok a -- curl -s -o /srv/stock.db http://localhost/", "leaves-something"),
    ("expect_ok a -- curl -s -o /dev/null http://localhost/", None),
    ('t=$(mktemp)\nstock x >"$t"', None),
]


@pytest.mark.parametrize(("added", "rule"), ADDED)
def test_a_spoilt_check_is_found_at_its_line(added: str, rule: str | None) -> None:
    text = f"{STOCK[0]['check']}{added}\n"
    script = CheckScript(CHECK, read_script(text), STOCK[0]["instruction"])
    found = [(each.line, each.rule) for each in review_checks(script)]
    assert set(found) == ({(len(text.splitlines()), rule)} if rule else set())


def test_a_script_that_does_not_parse_is_found(stock: Path) -> None:
    path = stock / CHECK
    path.write_text(f"{path.read_text()}if true; then\n")
    line = len(path.read_text().splitlines()) + 1
    assert findings(stock) == [(f"{CHECK}:{line}", "no-check")]


def test_the_record_of_a_task_counts_names_and_marks(stock: Path) -> None:
    first, second = load_task(stock).record.segments
    assert (first.names_stated, first.key_steps, first.events) == (3, 1, 0)
    assert (second.names_stated, second.key_steps, second.events) == (4, 1, 1)


def test_every_rule_is_one_that_is_listed() -> None:
    assert {rule for _, rule in ADDED if rule} <= set(RULES)


def test_a_script_without_checks_is_found(stock: Path) -> None:
    (stock / CHECK).write_text("echo fine\n")
    assert (f"{CHECK}:1", "no-check") in findings(stock)


def test_a_script_that_replaces_a_function_of_the_library_is_found(stock: Path) -> None:
    (stock / CHECK).write_text("report() { :; }\n" + (stock / CHECK).read_text())
    assert findings(stock) == [(f"{CHECK}:1", "library")]


def test_an_altered_or_missing_library_is_found(stock: Path) -> None:
    library = stock / "tests/checks.sh"
    library.write_text(library.read_text() + "report() { echo PASS x; }\n")
    assert findings(stock) == [("tests/checks.sh:1", "library")]
    library.unlink()
    assert findings(stock) == [("tests/checks.sh:1", "library")]


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        ('names = ["/srv/stock.db", "5"]\n', "measured-name"),
        ('names = ["3.11.2"]\n', "measured-name"),
        ('names = ["0123456789abcdef"]\n', "measured-name"),
        ('names = ["clerk"]\n', "name-not-stated"),
        ('names = ["void"]\nsettings = ["5"]\n', None),
    ],
)
def test_measured_values_are_no_names(stock: Path, names: str, rule: str | None) -> None:
    (stock / "steps/s1/names.toml").write_text(names)
    instruction = stock / "steps/s1/instruction.md"
    instruction.write_text(instruction.read_text() + "There are 5, by 3.11.2, 0123456789abcdef.\n")
    assert [each for _, each in findings(stock)] == ([rule] if rule else [])


def test_a_later_segment_may_rely_on_names_of_an_earlier_one_but_not_the_other_way(
    stock: Path,
) -> None:
    first, second = stock / CHECK, stock / "steps/s2/tests/check.sh"
    second.write_text(second.read_text() + "expect_file db /srv/report.txt\n")
    assert findings(stock) == []
    first.write_text(first.read_text() + "expect_file list /srv/list.tsv\n")
    assert [rule for _, rule in findings(stock)] == ["name-not-stated"]


def test_a_check_or_a_later_instruction_in_the_container_is_found(stock: Path) -> None:
    (stock / "environment/check.sh").write_text((stock / CHECK).read_text())
    (stock / "environment/later.txt").write_text("Todo:\n" + STOCK[1]["instruction"])
    assert findings(stock) == [
        ("environment/check.sh:12", "check-in-container"),
        ("environment/later.txt:1", "check-in-container"),
    ]


def test_a_solution_that_knows_of_the_checks_is_found(stock: Path) -> None:
    path = stock / SOLVE
    path.write_text(path.read_text() + "cp /tests/check.sh /srv/\n")
    line = len(path.read_text().splitlines())
    assert findings(stock) == [(f"{SOLVE}:{line}", "check-in-container")]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("# key-step: end\n", "", 4),
        ("# key-step: begin\n", "", 6),
        ("# key-step: end\n", "# key step end\n", 7),
        ("# key-step: end\n", "# key-step: end\n# event: begin\n# event: end\n", 8),
        ("# key-step: end\n", "# event: end\n", 7),
        ("# key-step: begin\n", "# key-step: begin\n# key-step: begin\n", 5),
        ("# key-step: begin\n", "# key-step: begin\nif true; then\n", 4),
        ("import sqlite3\n", "import sqlite3\n# key-step: begin\n", 10),
    ],
)
def test_marks_that_cannot_be_used_are_found(stock: Path, old: str, new: str, line: int) -> None:
    path = stock / SOLVE
    text = path.read_text()
    if "if true" in new:
        text = text.replace("db.commit()", "db.commit()").replace("\nEND\n", "\nEND\nfi\n")
    path.write_text(text.replace(old, new, 1))
    assert (f"{SOLVE}:{line}", "mark") in findings(stock)


def test_a_segment_without_a_key_step_is_found(stock: Path) -> None:
    path = stock / SOLVE
    path.write_text(
        path.read_text().replace("# key-step: begin\n", "").replace("# key-step: end\n", "")
    )
    assert findings(stock) == [(f"{SOLVE}:1", "key-step-missing")]


def test_blocks_are_taken_out_and_other_lines_keep_their_numbers() -> None:
    script = STOCK[1]["solve"]
    marks = read_marks(script)
    assert [block.label for block in marks.events] == ["restart of the keeper"]
    shorter = without(script, marks.events)
    assert "restart" not in shorter
    assert shorter.splitlines()[4] == script.splitlines()[4]
    assert len(shorter.splitlines()) == len(script.splitlines())


def test_a_task_whose_checks_are_its_own_is_reviewed_for_marks_alone(stock: Path) -> None:
    for number in (1, 2):
        (stock / f"steps/s{number}/tests/check.sh").unlink()
        (stock / f"steps/s{number}/tests/test.sh").write_text("#!/bin/bash\ntrue\n")
    found = review(stock)
    assert found.ok
    assert [note.split(":")[0] for note in found.notes] == ["s1", "s2"]


def test_the_command_tells_rule_file_and_line(stock: Path) -> None:
    path = stock / CHECK
    path.write_text(path.read_text() + "pass done\n")
    line = len(path.read_text().splitlines())
    runner = CliRunner()
    told = runner.invoke(app, ["check", "--static", str(stock)])
    assert told.exit_code == 1
    assert told.output.splitlines()[:2] == [
        "FAIL  set/stock",
        f"  - {CHECK}:{line}: cannot-fail: passes whatever the state is",
    ]
    (row,) = json.loads(runner.invoke(app, ["check", "--static", "--json", str(stock)]).output)
    assert row["findings"][0]["rule"] == "cannot-fail"
    assert row["total"]["events"] == 1
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
    assert runner.invoke(app, ["check", "--static", str(stock)]).exit_code == 0
    missing = runner.invoke(app, ["check", "--static", str(stock.parent / "none")])
    assert missing.exit_code == 1
    assert "no such directory" in missing.output


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("real") / "ours"
    for task in REAL_TASKS.iterdir():
        copy_real_task(task.name, folder)
    return folder


@pytest.mark.parametrize("name", ["catalog", "depot", "parts"])
def test_tasks_with_real_software_have_no_finding_and_their_sabotaged_copies_have(
    real: Path, name: str
) -> None:
    task, check = real / name, real / name / "steps/s2/tests/check.sh"
    assert findings(task) == []
    good = check.read_text()
    line = len(good.splitlines()) + 1
    for added, rule in (
        ("[[ -d /srv ]] && pass there", "cannot-fail"),
        ('expect_eq counted "$(look x | wc -l)" 23 int', "expected-written-in"),
    ):
        check.write_text(f"{good}{added}\n")
        assert findings(task) == [(f"steps/s2/tests/check.sh:{line}", rule)]
    check.write_text(good)
    solve = task / "steps/s1/solution/solve.sh"
    first = solve.read_text()
    solve.write_text(first + f"cat >/root/check.sh <<'END'\n{good}END\n")
    assert {rule for _, rule in findings(task)} == {"check-in-container"}
    marks = first.replace("# key-step: begin", "#").replace("# key-step: end", "#")
    solve.write_text(marks)
    assert findings(task) == [("steps/s1/solution/solve.sh:1", "key-step-missing")]
    solve.write_text(first)
