"""Calibration tasks: solvable, repeatable, and no way to an answer but through the steps.

The scripts name absolute paths (/app, /logs/verifier); here they run with these replaced by a
directory of the test. The same is done in real containers in tests/integration.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from depthkit.errors import DepthkitError
from depthkit.tasks import directory_digest, load_task
from depthkit.tasks.calibration import DEFAULT_NAMES, parse_name, write_family
from depthkit.tasks.calibration.draw import ROWS, Draw
from depthkit.tasks.calibration.selections import KINDS, SEALS_PER_STEP, plan_kinds
from depthkit.tasks.calibration.unlock import WrongAnswerError, seal, unseal

TIME_LIMIT_SEC = 1800


class Place:
    """A calibration task laid out on this machine as its image would have it."""

    def __init__(self, task: Path, root: Path) -> None:
        self.task = task
        self.root = root
        shutil.copytree(task / "environment/app", root / "app")
        (root / "app/answers").mkdir()

    def run(self, script: str) -> str:
        """Run one of the task's scripts; its output."""
        text = (self.task / script).read_text()
        text = text.replace("/app", str(self.root / "app")).replace(
            "/logs", str(self.root / "logs")
        )
        result = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True)
        return result.stdout

    def reward(self) -> str:
        self.run("tests/test.sh")
        return (self.root / "logs/verifier/reward.txt").read_text()

    def unlock(self, step: int, answer: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, self.root / "app/unlock", str(step), answer],
            capture_output=True,
            text=True,
        )


@pytest.fixture(scope="session")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The three default tasks, written once."""
    out = tmp_path_factory.mktemp("calibration")
    return {name: write_family(out, *parse_name(name)) for name in DEFAULT_NAMES}


@pytest.fixture(params=DEFAULT_NAMES)
def task(request: pytest.FixtureRequest, tasks: dict[str, Path]) -> Path:
    return tasks[request.param]


@pytest.fixture
def place(task: Path, tmp_path: Path) -> Place:
    return Place(task, tmp_path)


@pytest.fixture(scope="session")
def solved_roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Where each default task was solved, filled as tests ask for it."""
    return {}


@pytest.fixture
def solved(
    place: Place, solved_roots: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Place:
    """A task after its reference solution has run (once a session: opening steps is slow)."""
    name = place.task.name
    if name not in solved_roots:
        first = Place(place.task, tmp_path_factory.mktemp("solved"))
        first.run("solution/solve.sh")
        solved_roots[name] = first.root
    shutil.copytree(solved_roots[name] / "app", place.root / "app", dirs_exist_ok=True)
    return place


@pytest.fixture
def control(tasks: dict[str, Path], tmp_path: Path) -> Place:
    return Place(tasks["control-6-s1"], tmp_path)


def _rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def _answer_files(place: Place) -> list[Path]:
    found = sorted((place.root / "app/answers").iterdir())
    return found or [place.root / "app/answer.txt"]


def _read_step(text: str, rows: list[list[str]]) -> str:
    """The answer to a control step, read from its words independently of the generator."""
    seals = []
    for phrase in re.findall(r"^- the seal (.*)$", text, re.MULTILINE):
        words = phrase.split()
        inside = [r for r in rows if r[1] == words[-1]] if "zone is" in phrase else rows
        by_weight = sorted(inside, key=lambda row: int(row[2]))
        names = [row[0] for row in rows]
        if phrase.startswith("on line "):
            row = rows[int(words[-1]) - 1]
        elif phrase.startswith("of the row right after the one whose name is "):
            row = rows[names.index(words[-1]) + 1]
        elif phrase.startswith("of the row whose name is "):
            row = rows[names.index(words[-1])]
        elif phrase.startswith("of the first row whose zone is "):
            row = inside[0]
        elif phrase.startswith("of the last row whose zone is "):
            row = inside[-1]
        elif phrase.startswith("of the row with the largest weight"):
            row = by_weight[-1]
        else:
            assert phrase.startswith("of the row with the smallest weight")
            row = by_weight[0]
        seals.append(row[3])
    assert len(seals) == SEALS_PER_STEP
    return "-".join(seals)


# --- all families ---


def test_the_reference_solution_passes(solved: Place) -> None:
    assert solved.reward() == "1\n"


def test_doing_nothing_fails(place: Place) -> None:
    assert place.reward() == "0\n"


def test_one_wrong_answer_fails(solved: Place) -> None:
    last = _answer_files(solved)[-1]
    answer = last.read_text().strip()
    last.write_text(answer[:-1] + ("0" if answer[-1] != "0" else "1"))
    assert solved.reward() == "0\n"


@pytest.mark.parametrize(("ending", "reward"), [("", "1"), ("\n", "1"), ("\n\n", "1"), (" x", "0")])
def test_newlines_after_an_answer_are_tolerated(solved: Place, ending: str, reward: str) -> None:
    for path in _answer_files(solved):
        path.write_text(path.read_text().strip() + ending)
    assert solved.reward() == f"{reward}\n"


@pytest.mark.parametrize("odd", ["directory", "pipe", "device", "huge"])
def test_odd_answer_files_fail_without_hanging_the_verifier(solved: Place, odd: str) -> None:
    path = _answer_files(solved)[0]
    path.unlink()
    if odd == "directory":
        path.mkdir()
    elif odd == "pipe":
        os.mkfifo(path)
    elif odd == "device":
        path.symlink_to("/dev/zero")
    else:
        path.write_bytes(b"\0" * 10_000_000)
    assert solved.reward() == "0\n"


def test_the_same_arguments_give_the_same_bytes(task: Path, tmp_path: Path) -> None:
    """In another process too, with other hash seeds and another umask."""
    program = (
        "import os, sys; os.umask(0o077)\n"
        "from pathlib import Path\n"
        "from depthkit.tasks.calibration import parse_name, write_family\n"
        "write_family(Path(sys.argv[1]), *parse_name(sys.argv[2]))\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    subprocess.run(
        [sys.executable, "-c", program, tmp_path, task.name], check=True, env=environment
    )
    again = tmp_path / task.name
    assert directory_digest(again) == directory_digest(task)
    modes = {p.relative_to(task): p.stat().st_mode for p in task.rglob("*")}
    assert {p.relative_to(again): p.stat().st_mode for p in again.rglob("*")} == modes


def test_another_seed_gives_other_answers(task: Path, tmp_path: Path) -> None:
    family, steps, seed = parse_name(task.name)
    other = write_family(tmp_path, family, steps, seed + 1)
    digests = [
        set(re.findall(r"[0-9a-f]{64}", (t / "tests/test.sh").read_text())) for t in (task, other)
    ]
    assert digests[0]
    assert not digests[0] & digests[1]


def test_a_task_that_is_there_is_left_alone_and_a_changed_one_is_not_overwritten(
    tmp_path: Path,
) -> None:
    task = write_family(tmp_path, "parallel", 2, 1)
    inode = task.stat().st_ino
    assert write_family(tmp_path, "parallel", 2, 1).stat().st_ino == inode
    (task / "instruction.md").write_text("Mine.\n")
    with pytest.raises(DepthkitError, match="exists with other contents; remove it"):
        write_family(tmp_path, "parallel", 2, 1)
    assert (task / "instruction.md").read_text() == "Mine.\n"
    assert [p.name for p in tmp_path.iterdir()] == ["parallel-2-s1"]


@pytest.mark.parametrize(
    ("family", "steps", "seed"),
    [("deep", 2, 1), ("control", 0, 1), ("control", 100, 1), ("control", 2, -1)],
)
def test_other_families_and_sizes_are_refused(
    tmp_path: Path, family: str, steps: int, seed: int
) -> None:
    with pytest.raises(DepthkitError, match="; it must be"):
        write_family(tmp_path, family, steps, seed)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["control", "control-6", "control-06-s1", "deep-6-s1", "control-6-s1/.."]
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(DepthkitError, match="such as control-6-s1"):
        parse_name(name)


def test_harbor_runs_them_offline_for_half_an_hour(task: Path) -> None:
    loaded = load_task(task)
    assert loaded.agent_timeout_sec == TIME_LIMIT_SEC
    assert loaded.config.environment.network_mode.value == "no-network"
    assert loaded.record.group == "synthetic"
    assert (loaded.record.author_rating, loaded.record.generated_label) == (None, None)
    steps = parse_name(task.name)[1]
    work = loaded.record.work
    assert work is not None
    assert work.lines >= steps


def test_every_line_an_agent_reads_fits_the_terminal(tasks: dict[str, Path]) -> None:
    texts = [task / "environment/app/steps.txt" for task in tasks.values()]
    texts += [task / "instruction.md" for task in tasks.values()]
    texts += [tasks["control-6-s1"] / "environment/app/step-1.txt"]
    lines = [line for text in texts if text.exists() for line in text.read_text().splitlines()]
    assert max(map(len, lines)) < 150


# --- no other way to an answer ---


def test_answers_stand_nowhere_but_in_the_tables(solved: Place) -> None:
    """Neither answers nor seals: once in the tables (twice in a chain, as a name), else nowhere."""
    answers = {path.read_text().strip() for path in _answer_files(solved)}
    seals = {seal for answer in answers for seal in answer.split("-")}
    tables = set(solved.task.rglob("*.tsv"))
    table_text = "".join(path.read_text() for path in sorted(tables))
    others = b"".join(
        p.read_bytes() for p in solved.task.rglob("*") if p.is_file() and p not in tables
    )
    limit = 2 if solved.task.name.startswith("static-chain") else 1
    for seal_ in seals:
        assert seal_.encode() not in others
        assert table_text.count(seal_) <= limit


def test_seals_are_unique_and_never_look_like_numbers(task: Path) -> None:
    tables = [_rows(path.read_text()) for path in sorted(task.rglob("*.tsv"))]
    seals = [row[3] for rows in tables for row in rows]
    assert len(set(seals)) == len(seals)
    assert all(re.fullmatch(r"[0-9a-f]{16}", seal) for seal in seals)
    assert not any(re.fullmatch(r"\d+(e\d+)?", seal) for seal in seals)
    for rows in tables:
        assert len(rows) == ROWS
        assert len({row[0] for row in rows}) == ROWS
        assert len({row[2] for row in rows}) == ROWS


def test_numeric_looking_seals_are_drawn_again() -> None:
    class Digits(Draw):
        def __init__(self) -> None:
            super().__init__("x")
            self.drawn = iter("0123456789012345" + "12e4567890123456" + "12f4567890123456")

        def one[T](self, items: object) -> T:
            return next(self.drawn)  # type: ignore[return-value]

    assert Digits().seal() == "12f4567890123456"


def test_a_static_chain_links_every_row_and_not_only_the_right_ones(
    tasks: dict[str, Path],
) -> None:
    """The names of each table are all seals of the one before, so that none stands out."""
    tables = [
        _rows(path.read_text()) for path in sorted(tasks["static-chain-10-s1"].rglob("*.tsv"))
    ]
    assert len(tables) == 10
    for before, after in itertools.pairwise(tables):
        assert {row[0] for row in after} == {row[3] for row in before}
        assert [row[0] for row in after] != [row[3] for row in before]


def test_the_reference_solutions_compute_their_answers(solved: Place) -> None:
    script = (solved.task / "solution/solve.sh").read_text()
    assert not re.search(r"[0-9a-f]{16}", script)
    known = set(re.findall(r"[0-9a-f]{64}", (solved.task / "tests/test.sh").read_text()))
    answers = {hashlib.sha256(p.read_bytes().strip()).hexdigest() for p in _answer_files(solved)}
    assert known == answers


def test_parallel_steps_do_not_name_one_another(tasks: dict[str, Path]) -> None:
    lines = (tasks["parallel-10-s1"] / "environment/app/steps.txt").read_text().splitlines()
    assert len(lines) == 10
    for number, line in enumerate(lines, start=1):
        assert re.fullmatch(
            rf"Step {number}\. From /app/data/{number:02}\.tsv take the seal of the row whose "
            r"name is [a-z]+-\d\d\.",
            line,
        )


# --- control ---


def test_the_control_task_opens_step_by_step_by_reading_it(control: Place) -> None:
    """Reading every step, and only that, leads to the answer that the verifier wants."""
    text = (control.root / "app/step-1.txt").read_text()
    for step in range(1, 7):
        assert text.startswith(f"Step {step}\nFrom /app/step-{step}.tsv take these seals")
        assert max(map(len, text.splitlines())) < 150
        answer = _read_step(text, _rows((control.root / f"app/step-{step}.tsv").read_text()))
        if step < 6:
            assert text.endswith(f"\nOpen the next step with: /app/unlock {step + 1} ANSWER\n")
            opened = control.unlock(step + 1, answer)
            assert (opened.returncode, opened.stderr) == (0, "")
            text = opened.stdout
    assert text.endswith("\nWrite the answer to /app/answer.txt\n")
    (control.root / "app/answer.txt").write_text(answer)
    assert control.reward() == "1\n"


def test_a_wrong_answer_opens_nothing(control: Place) -> None:
    opened = control.unlock(2, "0123456789abcdef-0123456789abcdef-0123456789abcdef")
    assert opened.returncode == 1
    assert opened.stdout == ""
    assert opened.stderr == "Wrong: this is not the answer to step 1.\n"
    assert not (control.root / "app/step-2.tsv").exists()


@pytest.mark.parametrize("arguments", [[], ["2"], ["two", "x"], ["7", "x"], ["../2", "x"]])
def test_a_wrong_call_of_unlock_says_so(control: Place, arguments: list[str]) -> None:
    program = [sys.executable, control.root / "app/unlock", *arguments]
    result = subprocess.run(program, capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr.startswith(("Usage: /app/unlock STEP ANSWER", "There is no sealed step"))


def test_only_the_first_step_of_a_control_task_is_plain(control: Place) -> None:
    names = sorted(p.relative_to(control.root).as_posix() for p in control.root.rglob("*"))
    assert names == [
        "app",
        "app/answers",
        "app/sealed",
        *(f"app/sealed/{step}" for step in range(2, 7)),
        "app/step-1.tsv",
        "app/step-1.txt",
        "app/unlock",
    ]
    for step in range(2, 7):
        sealed = (control.root / f"app/sealed/{step}").read_bytes()
        assert not re.search(rb"[0-9a-f]{16}|Step|seal|kestrel", sealed)
        # Bytes of a cipher are spread evenly: each of the 256 comes up about as often.
        counts = [sealed.count(byte) for byte in range(256)]
        assert min(counts) > len(sealed) / 256 / 3
        assert max(counts) < len(sealed) / 256 * 2


def test_a_sealed_step_is_authenticated() -> None:
    sealed = seal(2, "answer", "Step 2\n", "a\tb\n", b"s" * 16)
    assert unseal(2, "answer", sealed) == ("Step 2\n", "a\tb\n")
    for place in (0, 20, len(sealed) - 1):
        changed = sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :]
        with pytest.raises(WrongAnswerError):
            unseal(2, "answer", changed)
    for step, answer in ((3, "answer"), (2, "Answer"), (2, "")):
        with pytest.raises(WrongAnswerError):
            unseal(step, answer, sealed)


def test_trying_all_answers_of_a_step_takes_far_longer_than_the_time_limit() -> None:
    """On this machine with its every core, and on 256 cores at 25 ms a guess."""
    guesses = ROWS * (ROWS - 1) * (ROWS - 2)
    assert guesses == 63_520_800
    sealed = seal(2, "answer", "", "", b"s" * 16)
    started = time.process_time()
    with pytest.raises(WrongAnswerError):
        unseal(2, "guess", sealed)
    a_guess = time.process_time() - started
    assert guesses * a_guess / (os.cpu_count() or 1) > 3 * TIME_LIMIT_SEC
    assert guesses * 0.025 / 256 > 3 * TIME_LIMIT_SEC


@pytest.mark.parametrize("steps", [1, 2, 3, 6, 8, 9, 12])
@pytest.mark.parametrize("seed", range(20))
def test_each_step_brings_a_kind_of_selection_that_none_before_it_had(
    steps: int, seed: int
) -> None:
    seen: set[str] = set()
    plan = plan_kinds(steps, Draw(str(seed)))
    assert len(plan) == steps
    for step, kinds in enumerate(plan, start=1):
        assert len(kinds) == SEALS_PER_STEP
        if step <= len(KINDS):
            assert set(kinds) - seen
        seen.update(kinds)


@pytest.mark.parametrize("steps", [1, 3])
def test_control_tasks_of_other_sizes_open_too(tmp_path: Path, steps: int) -> None:
    place = Place(write_family(tmp_path / "out", "control", steps, 5), tmp_path / "place")
    place.run("solution/solve.sh")
    assert place.reward() == "1\n"
