"""Tasks of several segments: what the agent is told, what it can see, and what counts.

Asserted from what the model server received and from what commands in the container printed.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from toys import reply, write_segments

from depthkit.artifacts.model_results import evaluation
from depthkit.corpus import Corpus
from depthkit.corpus.replies import read_replies
from depthkit.experiments.measure import measure
from depthkit.model import Run
from depthkit.protocol import Planned
from depthkit.tasks import load_task
from depthkit.trials import engine
from depthkit.trials.models import ModelSpec
from depthkit.trials.run import run_trial, time_limit
from depthkit.trials.scripted.policies import Policy, Reply, fixed_replies
from depthkit.trials.scripted.server import ScriptedServer

pytestmark = pytest.mark.docker

CONFIRM = "Are you sure you want to mark the task as complete?"


@pytest.fixture(autouse=True, scope="module")
def tidy_engine() -> Any:
    yield
    engine.release()


def work(number: int) -> str:
    """The command that does a segment's work."""
    return f"echo part-{number} > /app/out-{number}"


def do(*numbers: int, complete: bool = True) -> str:
    """One batch that does these segments' work."""
    return reply(*map(work, numbers), complete=complete)


class Played:
    def __init__(self, run: Run, folder: Path, requests: list[dict[str, Any]]) -> None:
        self.run = run
        self.folder = folder
        self.requests = requests

    @property
    def prompts(self) -> list[str]:
        """The newest message of each request: what the agent was told before each turn."""
        return [request["messages"][-1]["content"] for request in self.requests]

    @property
    def outcome(self) -> tuple[str, str, int | None, int | None, int | None]:
        run = self.run
        return run.verdict, run.stop, run.stop_segment, run.segments_passed, run.turns


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Played]:
    def play_(
        k: int,
        replies: Sequence[str | Reply] | Policy,
        *,
        cap: int | None = None,
        **kwargs: Any,
    ) -> Played:
        monkeypatch.setenv("OPENAI_API_KEY", "unused")
        folder = write_segments(tmp_path / "set" / f"segments-{k}", k)
        if edit := kwargs.pop("edit", None):
            edit(folder)
        task = load_task(folder)
        context = kwargs.pop("context_tokens", 100_000)
        spec = ModelSpec(
            name="m",
            litellm=f"openai/m-{context}",
            context_tokens=context,
            max_output_tokens=1_000,
        )
        policy = replies if callable(replies) else fixed_replies(replies)
        with ScriptedServer({f"m-{context}": policy}) as server:
            run = asyncio.run(
                run_trial(
                    task,
                    Planned("m", cap, 1, "ladder" if cap else "free"),
                    spec,
                    trials_dir=tmp_path / "trials",
                    base_url=server.base_url,
                    **({"record": False} | kwargs),
                )
            )
            return Played(run, tmp_path / "trials" / run.run_id, server.requests)

    return play_


def test_three_segments_are_one_conversation_with_one_confirmation(
    play: Callable[..., Played],
) -> None:
    played = play(3, [do(1), do(2), do(3), reply(complete=True)], record=True)
    assert played.outcome == ("passed", "submitted", 3, 3, 4)
    first, second, third, last = played.prompts
    assert "This task has 3 parts" in first
    assert "Write part-1" in first
    assert "Write part-2" not in first
    assert "Part 1 is marked complete. Here is part 2 of 3." in second
    assert "Write part-2 to /app/out-2." in second
    assert "Current terminal screen:" in second
    assert "echo part-1 > /app/out-1" in second
    assert "Part 2 is marked complete. Here is part 3 of 3." in third
    # Confirmation is asked for in the last segment only.
    assert [CONFIRM in prompt for prompt in played.prompts] == [False, False, False, True]
    # One conversation: each request holds all that came before it.
    for earlier, later in zip(played.requests, played.requests[1:], strict=False):
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]
    assert "turn" not in last.lower().replace("return", "")


def test_a_cap_covers_all_parts_and_every_part_reports_the_turns_used(
    play: Callable[..., Played],
) -> None:
    played = play(3, [do(1, complete=False), do(complete=True), do(2), do(3)], cap=5)
    assert "for the whole task, all 3 parts together" in played.prompts[0]
    assert "Parts not finished by turn 5 fail" in played.prompts[0]
    assert "Turns used so far: 2 of 5." in played.prompts[2]
    assert "Turns used so far: 3 of 5." in played.prompts[3]


@pytest.mark.parametrize("min_reward", ["1.0", "{ reward = 1.0, style = 0.9 }"])
def test_no_threshold_of_the_task_ends_a_run_whose_segments_pass(
    play: Callable[..., Played], min_reward: str
) -> None:
    def edit(folder: Path) -> None:
        config = folder / "task.toml"
        text = config.read_text().replace("[[steps]]", f"[[steps]]\nmin_reward = {min_reward}")
        config.write_text(text)
        for number, verdict in enumerate(
            ('"reward": $reward, "style": 0.4', '"correct": $reward', '"reward": $reward, "s": 12'),
            start=1,
        ):
            test = folder / f"steps/s{number}/tests/test.sh"
            written = f"echo {json.dumps('{' + verdict + '}')} > /logs/verifier/reward.json"
            test.write_text(
                test.read_text().replace("echo $reward > /logs/verifier/reward.txt", written)
            )

    played = play(3, [do(1), do(2), do(3), reply(complete=True)], edit=edit)
    assert played.outcome == ("passed", "submitted", 3, 3, 4)
    assert played.run.rewards == {"reward": 1.0, "s": 12.0}


def test_the_cap_stops_the_run_in_the_middle_of_a_segment(play: Callable[..., Played]) -> None:
    # The work of segment 2 is done but not marked complete in turn 3: it fails unverified.
    played = play(3, [do(1), reply("ls"), do(2, complete=False), do(3)], cap=3)
    assert played.outcome == ("failed", "turn_cap", 2, 1, 3)
    assert len(played.requests) == 3
    assert not list(played.folder.glob("steps/s2/verifier/reward*"))


def test_marked_complete_in_the_last_turn_counts_for_segments_only(
    play: Callable[..., Played],
) -> None:
    played = play(3, [do(1), do(2), do(3)], cap=2)
    assert played.outcome == ("failed", "turn_cap", 2, 2, 2)
    assert played.run.reward == pytest.approx(2 / 3)
    assert len(played.requests) == 2


def test_the_last_segment_is_verified_as_it_stands(play: Callable[..., Played]) -> None:
    played = play(2, [do(1), do(2, complete=False), reply("ls")], cap=2)
    assert played.outcome == ("passed", "turn_cap", 2, 2, 2)


def test_the_run_stops_at_the_first_failed_segment(play: Callable[..., Played]) -> None:
    played = play(3, [do(1), reply("true", complete=True), do(3), do(3)])
    assert played.outcome == ("failed", "submitted", 2, 1, 2)
    assert len(played.requests) == 2
    assert not list(played.folder.glob("steps/s3/verifier/reward*"))


def test_a_time_limit_within_a_segment_stops_the_run_there(play: Callable[..., Played]) -> None:
    played = play(2, [do(1, complete=False), reply("sleep 60", wait=60), do(2)], segment_seconds=4)
    assert played.outcome == ("failed", "time_limit", 1, 0, 2)


@pytest.mark.parametrize("k", [3, 6])
def test_segments_batched_one_a_turn_take_k_turns_under_a_cap(
    play: Callable[..., Played], k: int
) -> None:
    played = play(k, [do(i) for i in range(1, k + 1)], cap=10)
    # One request a segment and one that confirms: each says what its part is and no later one.
    assert len(played.prompts) == k + 1
    for i, prompt in enumerate(played.prompts[:k], start=1):
        assert re.findall(r"Write part-(\d) to", prompt)[-1:] == [str(i)]
        conversation = str(played.requests[i - 1]["messages"])
        assert set(re.findall(r"Write part-(\d) to", conversation)) == set(
            map(str, range(1, i + 1))
        )
        if i > 1:
            assert f"Here is part {i} of {k}." in prompt
            assert f"Turns used so far: {i - 1} of 10." in prompt
    assert [CONFIRM in prompt for prompt in played.prompts] == [False] * k + [True]
    # And what is kept of it says the same.
    assert played.outcome == ("passed", "submitted", k, k, k + 1)
    turns = [json.loads(x) for x in (played.folder / "agent/turns.jsonl").read_text().splitlines()]
    assert [turn["segment"] for turn in turns] == [*range(1, k + 1), k]
    assert [turn["turn"] for turn in turns] == list(range(1, k + 2))
    assert played.run.input_tokens == sum(turn["input_tokens"] for turn in turns)
    assert played.run.output_tokens == sum(turn["output_tokens"] for turn in turns)


def search(name: str, text: str) -> str:
    """A command that prints a line for each file or process of the container that has a text.

    The text's brackets keep it from finding itself.
    """
    files = f"grep -rla '{text}' / --exclude-dir=proc --exclude-dir=sys"
    processes = f"grep -la '{text}' /proc/[0-9]*/environ /proc/[0-9]*/cmdline"
    return f"( {files}; {processes} ) 2>/dev/null | sed 's/^/{name}: /'"


LOOK = "; ".join(
    [
        "clear",
        search("checks", "canary-of-the-chec[k]s"),
        search("later", "part-[3]"),
        "ls -A /tests /logs/verifier 2>/dev/null | grep -v : | sed 's/^/listed: /'",
        "echo search-is-over",
    ]
)


@pytest.mark.parametrize("planted", [False, True])
def test_neither_earlier_checks_nor_later_instructions_are_in_the_container(
    play: Callable[..., Played], planted: bool
) -> None:
    plant = "echo canary-of-the-checks part-3 > /var/planted" if planted else "true"
    first = reply(plant, work(1), complete=True)
    played = play(3, [first, reply(LOOK, wait=8), do(2), do(3), reply(complete=True)])
    assert played.run.verdict == "passed"
    seen = played.prompts[2]
    assert re.search("^search-is-over *$", seen, re.MULTILINE)
    found = re.findall(r"^(checks|later|listed): (.*\S) *$", seen, re.MULTILINE)
    if planted:  # to see that the search finds what is there
        assert {("checks", "/var/planted"), ("later", "/var/planted")} <= set(found)
    else:
        assert found == []


def test_a_summary_keeps_all_instructions_and_is_recorded_in_its_turn(
    play: Callable[..., Played],
) -> None:
    long_output = reply("head -c 9000 /dev/urandom | base64 -w 0 | head -c 9000; echo", wait=1)
    driving = iter([do(1), *[long_output] * 3, do(2), reply(complete=True)])

    def policy(messages: Sequence[Any]) -> str:
        newest = messages[-1]["content"]
        if "hand off your work" in newest or "asking several questions" in newest:
            return "What was done so far is done."
        if "next agent has a few questions" in newest or "answer each of them" in newest.lower():
            return "Answers."
        return next(driving)

    played = play(2, policy, context_tokens=16_000, cap=20)
    turns = [json.loads(x) for x in (played.folder / "agent/turns.jsonl").read_text().splitlines()]
    summarized = [turn for turn in turns if turn["summarization"]]
    assert [turn["segment"] for turn in summarized] == [2]
    (handed_over,) = [p for p in played.prompts if "hand off your work" in p]
    assert "Write part-1 to /app/out-1." in handed_over
    assert "Write part-2 to /app/out-2." in handed_over
    assert played.outcome == ("passed", "submitted", 2, 2, 6)
    # The three calls of a summary are no turns, but their tokens are counted.
    assert len(played.requests) == 6 + 3
    assert played.run.input_tokens > sum(turn["input_tokens"] for turn in turns)
    # Each call is kept as the server received it.
    calls = list(read_replies(played.folder))
    assert [call.messages for call in calls] == [each["messages"] for each in played.requests]
    kinds = [call.kind for call in calls]
    assert sorted(kinds) == sorted(["turn"] * 6 + ["summary", "questions", "answers"])
    at = kinds.index("summary")
    assert [call.kind for call in calls[at : at + 3]] == ["summary", "questions", "answers"]
    assert calls[at].reply == "What was done so far is done."
    assert sum(call.input_tokens or 0 for call in calls) == played.run.input_tokens


def test_time_limits_are_those_of_the_paper() -> None:
    assert [time_limit(k) / 3600 for k in (6, 5, 3)] == [3, 2.5, 1.5]


def test_the_corpus_keeps_one_trajectory_for_the_whole_conversation(
    play: Callable[..., Played], tmp_path: Path
) -> None:
    played = play(2, [do(1), do(2), reply(complete=True)], record=True)
    trajectory = json.loads((played.folder / "agent" / "trajectory.json").read_text())
    sources = [step["source"] for step in trajectory["steps"]]
    assert sources == ["user", "agent", "user", "agent", "agent"]
    cast = (played.folder / "agent" / "recording.cast").read_text()
    assert "part-1" in cast
    assert "part-2" in cast
    assert sorted(p.name for p in (played.folder / "steps").iterdir()) == ["s1", "s2"]
    assert not list(played.folder.glob("steps/*/agent"))
    corpus = Corpus.open_or_create(tmp_path / "corpus", models=("m",))
    corpus.trial_dir(played.run.run_id).parent.mkdir()
    played.folder.rename(corpus.trial_dir(played.run.run_id))
    corpus.append_run(played.run)
    assert list(corpus.turns()["segment"]) == [1, 2, 2]


def batch_each_segment(messages: Sequence[Any]) -> str:
    """A policy that does a segment's work in one turn, as it is asked for."""
    newest = messages[-1]["content"]
    asked = re.findall(r"Write part-(\d+) to /app/out-", newest)
    return do(int(asked[-1])) if asked else reply(complete=True)


def test_depth_is_the_smallest_cap_with_a_turn_for_every_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    tasks = [write_segments(tmp_path / "set" / f"segments-{k}", k) for k in (3, 6)]
    registry = tmp_path / "models.toml"
    with ScriptedServer({"batch": batch_each_segment}) as server:
        registry.write_text(f'[batch]\nlitellm = "openai/batch"\nbase_url = "{server.base_url}"\n')
        outcome = measure(
            tasks,
            tmp_path / "corpus",
            models=["batch"],
            models_file=registry,
            scope="both",
            workers=4,
            record=False,
        )
        evaluated = measure(
            tasks[:1],
            tmp_path / "corpus",
            models=["batch"],
            models_file=registry,
            scope="evaluation",
            record=False,
        )
    assert outcome.given_up == []
    (row,) = evaluation(Corpus.open(tmp_path / "corpus")).to_dict("records")
    assert (row["runs"], row["pass_at_1"], row["segments"]) == (2, 1.0, 1.0)
    assert [(run.cap, run.purpose) for run in evaluated.runs] == [(None, "evaluation")] * 2
    rows = Corpus.open(tmp_path / "corpus").estimates().set_index("task_id")
    assert rows["D"].to_dict() == {"segments-3": 3, "segments-6": 10}
    assert rows["k"].to_dict() == {"segments-3": 3, "segments-6": 6}
    runs = Corpus.open(tmp_path / "corpus").run_records()
    # Under a cap below k no run can pass, and what it got done is counted.
    short = {(r.task_id, r.cap): r.segments_passed for r in runs if r.cap and not r.passed}
    assert short[("segments-3", 2)] == 2
    assert short[("segments-6", 5)] == 5
