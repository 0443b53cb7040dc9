"""What a user may rely on when trajectories of other people are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_trials import CONFIRM, WARNING, agent, at, atif, finished, garbled, user

from depthkit.corpus import Trajectory, read_trajectory


def read(directory: Path, **files: Any) -> Trajectory:
    """Write the files (a double underscore in a name stands for a dot) and read them."""
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (directory / name.replace("__", ".")).write_text(text)
    return read_trajectory(directory / "trajectory.json")


def summarized(*calls: str) -> dict[str, Any]:
    references = [{"session_id": call, "trajectory_path": call} for call in calls]
    return {
        "source": "system",
        "message": "Summarized.",
        "observation": {"results": [{"subagent_trajectory_ref": references}]},
    }


CALLS = [f"trajectory.summarization-1-{part}.json" for part in ("summary", "questions", "answers")]


@pytest.mark.parametrize("version", ["1.6", "1.7", "1.8"])
def test_a_turn_is_a_reply_in_every_version(tmp_path: Path, version: str) -> None:
    found = read(tmp_path, trajectory__json=atif(finished(5), version))
    assert (len(found.replies), found.complete, found.version) == (5, True, f"ATIF-v{version}")
    assert (found.confirmed, found.first_claim_turn, found.parse_errors) == (True, 4, 0)
    assert [turn.commands for turn in found.turns("r")] == [1, 1, 1, 0, 0]


def test_command_lines_are_those_typed_file_content_included(tmp_path: Path) -> None:
    steps = [user(), agent("cat > f <<'E'\na\n\n  \nb\nE\n"), garbled(), agent("ls\n", claim=True)]
    assert read(tmp_path, trajectory__json=atif(steps)).command_lines == 5


def test_a_reply_that_does_not_parse_is_a_turn_without_commands(tmp_path: Path) -> None:
    steps = [user(), garbled(), agent("ls\n"), agent(claim=True), garbled(), agent(claim=True)]
    found = read(tmp_path, trajectory__json=atif(steps))
    turns = found.turns("r")
    assert [turn.parse_error for turn in turns] == [True, False, False, True, False]
    assert [turn.commands for turn in turns] == [None, 1, 0, None, 0]
    # A reply that does not parse leaves the open claim open.
    assert found.confirmed


def test_a_warning_about_a_reply_is_no_parse_error(tmp_path: Path) -> None:
    steps = [user(), agent("ls\n", observation=WARNING)]
    found = read(tmp_path, trajectory__json=atif(steps))
    assert (found.parse_errors, len(found.replies)) == (0, 1)


def test_a_terminal_that_shows_the_words_of_a_parse_error_is_none(tmp_path: Path) -> None:
    shown = "New Terminal Output:\n\nPrevious response had parsing errors:\nERROR: made up"
    found = read(tmp_path, trajectory__json=atif([user(), agent("cat x\n", observation=shown)]))
    assert found.parse_errors == 0


def test_a_parse_error_is_also_seen_in_the_message_that_follows(tmp_path: Path) -> None:
    told = user("Previous response had parsing errors:\nERROR: no JSON")
    steps = [user(), agent(observation=None), told, agent("ls\n")]
    found = read(tmp_path, trajectory__json=atif(steps))
    assert [turn.parse_error for turn in found.turns("r")] == [True, False]


def test_going_on_after_a_claim_takes_it_back(tmp_path: Path) -> None:
    steps = [user(), agent(claim=True, observation=CONFIRM), agent("ls\n"), agent(claim=True)]
    found = read(tmp_path, trajectory__json=atif(steps))
    assert (found.confirmed, found.first_claim_turn) == (False, 1)


def test_a_made_up_reply_after_a_failed_request_is_no_turn(tmp_path: Path) -> None:
    stand_in = garbled("Technical difficulties. Please continue.", metrics={"prompt_tokens": 0})
    found = read(tmp_path, trajectory__json=atif([user(), agent("ls\n"), stand_in]))
    assert len(found.replies) == 1


def test_a_step_without_a_model_call_is_no_turn(tmp_path: Path) -> None:
    steps = [user(), agent("ls\n", tokens=None, llm_call_count=0), agent("ls\n", llm_call_count=1)]
    assert len(read(tmp_path, trajectory__json=atif(steps, "1.7")).replies) == 1


def test_summarization_calls_are_no_turns_and_mark_the_turn_they_happen_in(tmp_path: Path) -> None:
    steps = [user(), agent("a\n"), summarized(*CALLS), user("Go on."), agent("b\n"), agent("c\n")]
    inside = [user(), agent(is_copied_context=True), agent()]
    files = {call.replace(".", "__"): atif(inside, "1.7") for call in CALLS}
    found = read(tmp_path, trajectory__json=atif(steps, "1.7"), **files)
    assert found.summarization_calls == set(CALLS)
    turns = found.turns("r", [1000.0, 5000.0, 5000.0, 5000.0, 2000.0, 3000.0])
    assert [turn.summarization for turn in turns] == [False, True, False]
    assert [turn.model_seconds for turn in turns] == [1.0, 2.0, 3.0]


def test_continuation_files_are_read_in_order_without_their_copied_context(tmp_path: Path) -> None:
    copied = [user(is_copied_context=True), agent("x\n", is_copied_context=True)]
    found = read(
        tmp_path,
        trajectory__json=atif(
            [user(), agent("1\n"), summarized("s1")],
            continued_trajectory_ref="trajectory.cont-1.json",
        ),
        **{
            f"trajectory__cont-{n}__json": atif([*copied, agent(f"{n + 1}\n"), *end])
            for n, end in [
                *((n, [summarized(f"s{n + 1}")]) for n in range(1, 10)),
                (10, [agent(claim=True)]),
            ]
        },
    )
    typed = [step.keystrokes for step in found.replies]
    assert typed == [*((f"{n}\n",) for n in range(1, 12)), ()]
    assert found.complete
    assert [turn.summarization for turn in found.turns("r")] == [False] + [True] * 10 + [False]


def test_a_file_written_again_after_a_failed_summarization_is_not_counted_twice(
    tmp_path: Path,
) -> None:
    steps = [user(), agent("1\n"), agent("2\n")]
    longer = [*steps, agent("3\n")]
    found = read(
        tmp_path, trajectory__json=atif(steps), **{"trajectory__cont-1__json": atif(longer)}
    )
    assert [step.keystrokes for step in found.replies] == [("1\n",), ("2\n",), ("3\n",)]


def test_a_missing_continuation_is_told_and_nothing_is_counted_on(tmp_path: Path) -> None:
    document = atif(finished(3), continued_trajectory_ref="trajectory.cont-1.json")
    found = read(tmp_path, trajectory__json=document)
    assert not found.complete
    assert "cont-1.json, which is missing" in found.problems[0]
    gap = read(tmp_path, **{"trajectory__cont-2__json": atif(finished(3))})
    assert "only [2] are there" in gap.problems[0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (json.dumps(atif(finished(4)))[:-40], "not whole JSON"),
        ("", "not whole JSON"),
        ("[" * 200_000, "not whole JSON"),
        ('{"steps": [], "n": ' + "9" * 10_000 + "}", "not whole JSON"),
        ('[{"role": "assistant", "content": "hi"}]', "a plain list of messages, not ATIF"),
        ('{"steps": "none"}', "not ATIF"),
        ('"text"', "not ATIF"),
        (json.dumps(atif(finished(3), "2.0")), "ATIF-v1.x is read"),
    ],
)
def test_what_cannot_be_read_is_told_and_never_raises(
    tmp_path: Path, text: str, problem: str
) -> None:
    found = read(tmp_path, trajectory__json=text)
    assert not found.complete
    assert problem in found.problems[0]
    assert found.turns("r") == []


def test_a_missing_trajectory_is_told(tmp_path: Path) -> None:
    found = read_trajectory(tmp_path / "trajectory.json")
    assert found.problems == ("trajectory.json is missing",)
    assert read_trajectory(tmp_path / "nowhere" / "trajectory.json").replies == []


def test_fields_of_the_wrong_type_are_unknown_not_fatal(tmp_path: Path) -> None:
    odd = agent("ls\n", timestamp=5, metrics={"prompt_tokens": -1, "completion_tokens": 10**30})
    odd["metrics"] |= {"cost_usd": float("nan"), "cached_tokens": True}
    steps: list[Any] = [
        user(7),  # type: ignore[arg-type]
        odd,
        "not a step",
        None,
        {"source": "agent", "message": None, "tool_calls": {"a": 1}, "observation": ["x"]},
        {"source": "agent", "message": "x", "tool_calls": ["x", {"arguments": 3}]},
    ]
    document = atif([])
    document["steps"] = steps
    (turn, second, third) = read(tmp_path, trajectory__json=document).turns("r", [1.0])
    unknown = (turn.input_tokens, turn.output_tokens, turn.cached_tokens, turn.cost_usd)
    assert unknown == (None, None, None, None)
    assert turn.model_seconds is None
    assert (second.commands, third.commands) == (0, 1)


def test_a_reply_kept_as_the_model_wrote_it_is_parsed_for_commands_and_claim(
    tmp_path: Path,
) -> None:
    replies = [
        'Sure. {"analysis": "a", "plan": "p", "commands": [{"keystrokes": "ls\\n"}, '
        '{"keystrokes": "pwd\\n"}]}',
        '{"analysis": "a", "plan": "p", "commands": [], "task_complete": true}',
        "<response><commands><keystrokes>ls\n</keystrokes></commands>"
        "<task_complete>true</task_complete></response>",
    ]
    steps = [user(), *(agent(message=text) for text in replies)]
    found = read(tmp_path, trajectory__json=atif(steps))
    assert [step.keystrokes for step in found.replies] == [("ls\n", "pwd\n"), (), ("ls\n",)]
    assert [step.claim for step in found.replies] == [False, True, True]


def test_seconds_of_a_turn_are_shared_between_model_and_terminal(tmp_path: Path) -> None:
    steps = [user(timestamp=at(0)), agent("a\n", timestamp=at(5)), agent("b\n", timestamp=at(9))]
    found = read(tmp_path, trajectory__json=atif(steps))
    turns = found.turns("r", [4000.0, 1000.0])
    assert [(t.model_seconds, t.terminal_seconds) for t in turns] == [(4.0, 1.0), (1.0, 3.0)]
    # Too few or far too many requests: nobody knows which was which.
    for times in ([4000.0], [1.0] * 9):
        assert {turn.model_seconds for turn in found.turns("r", times)} == {None}


def test_the_context_at_the_end_is_that_of_the_last_reply(tmp_path: Path) -> None:
    steps = [user(), agent("a\n", tokens=(900, 30)), agent("b\n", tokens=(1200, 40))]
    assert read(tmp_path, trajectory__json=atif(steps)).context_tokens == 1240
    steps.append(agent("c\n", tokens=None))
    assert read(tmp_path, trajectory__json=atif(steps)).context_tokens is None


def test_observation_bytes_count_bytes_of_all_parts(tmp_path: Path) -> None:
    step = agent("ls\n") | {
        "observation": {"results": [{"content": [{"type": "text", "text": "ä"}]}, {"content": "b"}]}
    }
    (turn,) = read(tmp_path, trajectory__json=atif([user(), step])).turns("r")
    assert turn.observation_bytes == len("ä\nb".encode())


def test_a_link_that_leads_out_of_the_trial_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text(json.dumps(atif(finished(3))))
    trial = tmp_path / "trial"
    trial.mkdir()
    (trial / "trajectory.json").symlink_to(outside)
    found = read_trajectory(trial / "trajectory.json")
    assert found.problems == ("trajectory.json leads out of its directory",)
    assert found.replies == []
