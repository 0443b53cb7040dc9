"""What the two policies do with a calibration task, in a real shell."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sealed_rows import choices, table, write

from depthkit.tasks.calibration import write_family
from depthkit.trials.scripted.policies import (
    Policy,
    Reply,
    after_faults,
    fixed_replies,
    merge,
    step,
)

PROMPT = "root@c0ffee:/app# "


def as_terminus_shows(text: str) -> str:
    """Break lines at the terminal's width and cut the middle out, as the harness does."""
    lines = [
        line[i : i + 160] for line in text.split("\n") for i in range(0, max(len(line), 1), 160)
    ]
    data = "\n".join(lines).encode()
    if len(data) > 10_000:
        left_out = len(data) - 10_000
        note = f"\n[... output limited to 10000 bytes; {left_out} interior bytes omitted ...]\n"
        data = data[:5000] + note.encode() + data[-5000:]
    return data.decode()


@dataclass
class Session:
    """A chat between a policy and a real bash, in the words of terminus-2."""

    policy: Policy
    instruction: str
    cwd: Path
    moved: str | None = None
    """Where the task's /app really is."""
    messages: list[dict[str, str]] = field(default_factory=list)
    replies: list[dict[str, Any]] = field(default_factory=list)

    def play(self, after_turn: Callable[[int], None] = lambda _: None, most: int = 150) -> int:
        """Run to the confirmed claim; give the number of turns."""
        prompt = (
            "You are an assistant.\n\nTask Description:\n"
            f"{self.instruction}\n\nCurrent terminal state:\nCurrent Terminal Screen:\n{PROMPT}\n"
        )
        pending = False
        while len(self.replies) < most:
            self.messages.append({"role": "user", "content": prompt})
            content = self.policy(self.messages)
            assert isinstance(content, str)
            self.messages.append({"role": "assistant", "content": content})
            reply = json.loads(content)
            self.replies.append(reply)
            screen = "".join(self._type(c["keystrokes"]) for c in reply["commands"])
            shown = as_terminus_shows(f"New Terminal Output:\n{screen}{PROMPT}")
            after_turn(len(self.replies))
            if reply["task_complete"] and pending:
                return len(self.replies)
            pending = reply["task_complete"]
            prompt = (
                f"Current terminal state:\n{shown}\n\nAre you sure you want to mark the task as "
                "complete? This will trigger your solution to be graded."
                if pending
                else shown
            )
        return len(self.replies)

    def _type(self, keys: str) -> str:
        done = subprocess.run(
            ["bash"],
            input=keys.replace("/app", self.moved) if self.moved else keys,
            cwd=self.cwd,
            text=True,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        echo = PROMPT + keys.rstrip("\n").replace("\n", "\n> ") + "\n"
        return echo + done.stdout


@dataclass
class ListTask:
    """A parallel or static-chain task below a directory."""

    root: Path
    steps: int
    chained: bool = False
    answers: dict[int, str] = field(default_factory=dict)
    instruction: str = ""

    def __post_init__(self) -> None:
        rng = random.Random(self.steps)
        (self.root / "data").mkdir()
        lines, names = [], None
        for i in range(1, self.steps + 1):
            rows = table(rng, names)
            path = self.root / "data" / f"{i:02}.tsv"
            write(path, rows)
            phrase, answer = rng.choice(choices(rows, rng))
            if self.chained and i > 1:
                phrase = f"of the row whose name is the answer to step {i - 1}"
                answer = next(row[3] for row in rows if row[0] == self.answers[i - 1])
            self.answers[i] = answer
            names = rng.sample([row[3] for row in rows], len(rows)) if self.chained else None
            lines.append(f"Step {i}. From {path} take the seal {phrase}.\n")
        (self.root / "steps.txt").write_text("".join(lines))
        self.instruction = (
            f"The steps are listed in {self.root}/steps.txt. Write the answer to step i to "
            f"{self.root}/answers/i, the seal alone."
        )

    def solved(self) -> bool:
        files = {i: self.root / "answers" / str(i) for i in self.answers}
        return all(
            path.is_file() and path.read_text().strip() == self.answers[i]
            for i, path in files.items()
        )


@dataclass
class ChainTask:
    """A task whose next step is only printed for the right answer to this one."""

    root: Path
    steps: int
    answer: str = ""
    instruction: str = ""

    def __post_init__(self) -> None:
        rng = random.Random(self.steps)
        locked = self.root / "locked"
        locked.mkdir()
        unlock = self.root / "unlock"
        for i in range(1, self.steps + 1):
            rows = table(rng)
            data = self.root / f"step-{i}.tsv"
            chosen = rng.sample(choices(rows, rng), 3)
            items = "".join(f"- the seal {phrase}\n" for phrase, _ in chosen)
            end = (
                f"Open the next step with: {unlock} {i + 1} ANSWER\n"
                if i < self.steps
                else f"Write the answer to {self.root}/answer.txt\n"
            )
            text = (
                f"Step {i}\nFrom {data} take these seals and join them with hyphens, in this "
                f"order:\n{items}{end}"
            )
            if i == 1:
                (self.root / "step-1.txt").write_text(text)
                write(data, rows)
            else:
                (locked / f"{i}-{self.answer}.txt").write_text(text)
                write(locked / f"{i}-{self.answer}.tsv", rows)
            self.answer = "-".join(answer for _, answer in chosen)
        unlock.write_text(
            textwrap.dedent(f"""\
                #!/bin/bash
                cd {self.root} && cp locked/$1-$2.tsv step-$1.tsv 2>&1 || exit 1
                cat locked/$1-$2.txt
            """)
        )
        unlock.chmod(0o755)
        self.instruction = (
            f"Follow the chain of steps that starts in {self.root}/step-1.txt. Write the last "
            f"answer to {self.root}/answer.txt."
        )

    def solved(self) -> bool:
        path = self.root / "answer.txt"
        return path.is_file() and path.read_text().strip() == self.answer


def turns_of(policy: Policy, task: ListTask | ChainTask) -> tuple[int, int | None]:
    """Turns to the end, and the turn after which the task was solved."""
    solved: list[int] = []

    def look(turn: int) -> None:
        if task.solved():
            solved.append(turn)

    turns = Session(policy, task.instruction, task.root).play(look)
    return turns, min(solved, default=None)


@pytest.mark.parametrize("chained", [False, True])
def test_merging_policy_solves_a_list_in_its_second_turn(tmp_path: Path, chained: bool) -> None:
    assert turns_of(merge, ListTask(tmp_path, 10, chained)) == (3, 2)


@pytest.mark.parametrize("chained", [False, True])
def test_step_policy_takes_a_turn_for_each_step_of_a_list(tmp_path: Path, chained: bool) -> None:
    assert turns_of(step, ListTask(tmp_path, 10, chained)) == (13, 11)


def test_no_policy_can_merge_the_steps_of_a_locked_chain(tmp_path: Path) -> None:
    for name, policy, turns in (("merge", merge, 8), ("step", step, 9)):
        root = tmp_path / name
        root.mkdir()
        assert turns_of(policy, ChainTask(root, 6)) == (turns, 7)


@pytest.mark.parametrize("policy", [merge, step])
def test_steps_cut_out_of_a_long_output_are_read_again(tmp_path: Path, policy: Policy) -> None:
    _, solved = turns_of(policy, ListTask(tmp_path, 100, chained=True))
    assert solved == (3 if policy is merge else 102)


@pytest.mark.parametrize("policy", [merge, step])
@pytest.mark.parametrize(
    "instruction",
    [
        "Make the web server answer on port 8080.",
        "Read /nowhere/steps.txt and write the answer to step i to /nowhere/answers/i.",
    ],
)
def test_a_policy_that_does_not_understand_gives_up_instead_of_crashing(
    tmp_path: Path, policy: Policy, instruction: str
) -> None:
    session = Session(policy, instruction, tmp_path)
    assert session.play() <= 6
    assert "could not make sense" in session.replies[-1]["analysis"]
    assert any("do not understand" in reply["analysis"] for reply in session.replies)


def test_output_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    task = ListTask(tmp_path, 2)
    session = Session(merge, task.instruction, tmp_path)
    session.play()
    # The same chat, but the screen after the script shows no answers.
    empty = "Current terminal state:\nCurrent Terminal Screen:\n\n\n"
    question = "Are you sure you want to mark the task as complete?"
    chat = [*session.messages[:4], {"role": "user", "content": empty + question}]
    waiting = json.loads(str(merge(chat)))
    assert waiting["task_complete"] is False
    assert waiting["commands"] == [{"keystrokes": "", "duration": 2.0}]


def test_a_shell_that_has_not_started_yet_is_given_time() -> None:
    chat = "Task Description:\nSee /app/steps.txt.\n\nCurrent terminal state:\n"
    waits = [
        json.loads(merge([{"role": "user", "content": chat + screen}]))["commands"][0]["duration"]
        for screen in ("Current Terminal Screen:\nroot@c0ffee:/app# \n\n", "\n\n")
    ]
    assert waits == [0.4, 3.0]


def test_an_answer_below_a_command_that_just_fills_the_terminal_is_seen(tmp_path: Path) -> None:
    session = Session(step, ListTask(tmp_path, 3).instruction, tmp_path)
    session.play(most=2)
    shown = f"New Terminal Output:\n{'x' * 160}\nanswer 1: 0123456789abcdef\n{PROMPT}"
    reply = step([*session.messages[:4], {"role": "user", "content": shown}])
    assert json.loads(reply)["plan"] == "Do step 2."


def test_a_wrong_answer_on_the_way_ends_in_giving_up(tmp_path: Path) -> None:
    task = ChainTask(tmp_path, 3)
    (tmp_path / "unlock").write_text("#!/bin/bash\necho wrong; exit 1\n")
    session = Session(merge, task.instruction, tmp_path)
    assert session.play() == 7
    assert not task.solved()


def test_policies_depend_on_the_messages_alone(tmp_path: Path) -> None:
    session = Session(step, ListTask(tmp_path, 4).instruction, tmp_path)
    session.play()
    for i in range(0, len(session.messages), 2):
        assert step(session.messages[: i + 1]) == session.messages[i + 1]["content"]


@pytest.mark.parametrize(
    ("family", "steps", "policy", "turns"),
    [
        ("parallel", 10, merge, 3),
        ("static-chain", 10, merge, 3),
        ("control", 6, merge, 8),
        ("parallel", 10, step, 13),
        ("static-chain", 10, step, 13),
        ("control", 6, step, 9),
    ],
)
def test_the_calibration_tasks_are_solved_from_what_the_terminal_shows(
    tmp_path: Path, family: str, steps: int, policy: Policy, turns: int
) -> None:
    task = write_family(tmp_path, family, steps, seed=1)
    app = tmp_path / "moved"
    shutil.copytree(task / "environment" / "app", app)
    (app / "answers").mkdir()
    verifier = (task / "tests" / "test.sh").read_text()
    verifier = verifier.replace("/app", str(app)).replace("/logs", str(tmp_path / "logs"))
    solved: list[int] = []

    def verify(turn: int) -> None:
        subprocess.run(["bash", "-c", verifier], check=True, capture_output=True)
        if (tmp_path / "logs/verifier/reward.txt").read_text() == "1\n":
            solved.append(turn)

    session = Session(policy, (task / "instruction.md").read_text(), app, moved=str(app))
    assert session.play(verify) == turns
    assert solved[0] == (turns - 1 if policy is merge else turns - 2)


# --- helpers for tests ---


def test_fixed_replies_follow_the_turns_and_end_with_the_last() -> None:
    policy = fixed_replies(["one", Reply("two", finish_reason="length")])
    chat: list[dict[str, str]] = [{"role": "user", "content": "go"}]
    assert policy(chat) == policy(chat) == "one"
    chat += [{"role": "assistant", "content": "one"}, {"role": "user", "content": "on"}]
    assert policy(chat) == Reply("two", finish_reason="length")
    chat += [{"role": "assistant", "content": "two"}, {"role": "user", "content": "on"}]
    assert policy(chat) == Reply("two", finish_reason="length")
    with pytest.raises(ValueError, match="at least one"):
        fixed_replies([])


def test_faults_are_met_once_each_then_the_policy_answers() -> None:
    policy = after_faults([Reply("busy", status=429)], fixed_replies(["fine"]))
    chat = [{"role": "user", "content": "go"}]
    assert policy(chat) == Reply("busy", status=429)
    assert policy(chat) == policy(chat) == "fine"
