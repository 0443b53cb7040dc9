"""Writes trial directories as Harbor leaves them, for tests and the ingest benchmark."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
CONFIRM = "Current terminal state:\nNew Terminal Output:\n\nAre you sure?"
PARSE_ERROR = "Previous response had parsing errors:\nERROR: No valid JSON found in response"
WARNING = "Previous response had warnings:\nWARNINGS: - Extra text\n\nNew Terminal Output:\n\n$"


def at(seconds: float) -> str:
    """A time in UTC, so many seconds after the start of the trial."""
    return (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def user(text: str = "Do it.", **more: Any) -> dict[str, Any]:
    """A user step; ``step_id`` is filled in by :func:`atif`."""
    return {"source": "user", "message": text} | more


def agent(
    *keystrokes: str,
    claim: bool = False,
    observation: str | None = "New Terminal Output:\n\n$ ",
    tokens: tuple[int, int] | None = (1000, 50),
    **more: Any,
) -> dict[str, Any]:
    """A reply that parsed: its commands, and whether it marks the task complete."""
    calls = [
        {
            "tool_call_id": f"call_{number}",
            "function_name": "bash_command",
            "arguments": {"keystrokes": typed, "duration": 0.1},
        }
        for number, typed in enumerate(keystrokes)
    ]
    if claim:
        calls.append({"tool_call_id": "c", "function_name": "mark_task_complete", "arguments": {}})
    step: dict[str, Any] = {"source": "agent", "message": "Analysis: so.\nPlan: thus."}
    if calls:
        step["tool_calls"] = calls
    if observation is not None:
        step["observation"] = {"results": [{"content": observation}]}
    if tokens is not None:
        step["metrics"] = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
    return step | more


def garbled(text: str = "I would rather talk.", **more: Any) -> dict[str, Any]:
    """A reply that did not parse."""
    return agent(observation=PARSE_ERROR) | {"message": text} | more


def finished(turns: int) -> list[dict[str, Any]]:
    """Steps of a run that works, claims completion and confirms it, in so many replies."""
    work = [agent(f"echo {number}\n") for number in range(turns - 2)]
    return [user(), *work, agent(claim=True, observation=CONFIRM), agent(claim=True)]


def atif(steps: list[dict[str, Any]], version: str = "1.8", **more: Any) -> dict[str, Any]:
    """A trajectory document."""
    numbered = [
        {"step_id": number, "timestamp": at(2 * number)} | step
        for number, step in enumerate(steps, start=1)
    ]
    return {
        "schema_version": f"ATIF-v{version}",
        "session_id": "s",
        "agent": {"name": "terminus-2", "version": "2.0.0", "model_name": "openai/some-model"},
        "steps": numbered,
        "final_metrics": {"total_prompt_tokens": 9000, "total_completion_tokens": 400},
    } | more


def result(
    name: str = "toy__abc1234",
    *,
    reward: float | None = 1.0,
    requests: int | None = None,
    error: tuple[str, str] | None = None,
    metadata: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A trial's ``result.json``; ``requests`` model requests took a second each."""
    if requests is not None:
        metadata = {
            "n_episodes": requests,
            "api_request_times_msec": [1000.0] * requests,
            "summarization_count": 0,
        } | (metadata or {})
    return {
        "id": f"id-of-{name}",
        "task_name": name.split("__")[0],
        "trial_name": name,
        "trial_uri": f"file:///somewhere/{name}",
        "source": "toys",
        "task_checksum": "0123abcd",
        "config": {"trial_name": name, "agent": {"model_name": "openai/some-model", "kwargs": {}}},
        "agent_info": {
            "name": "terminus-2",
            "version": "2.0.0",
            "model_info": {"name": "some-model", "provider": "openai"},
        },
        "agent_result": {
            "n_input_tokens": 5000,
            "n_cache_tokens": 100,
            "n_output_tokens": 250,
            "cost_usd": 0.25,
            "metadata": metadata,
        },
        "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
        "exception_info": None
        if error is None
        else {
            "exception_type": error[0],
            "exception_message": error[1],
            "exception_traceback": f"Traceback\n{error[0]}: {error[1]}\n",
        },
        "started_at": at(0),
        "finished_at": at(100),
        "agent_execution": {"started_at": at(1), "finished_at": at(91)},
    } | more


def write_trial(
    directory: Path, outcome: dict[str, Any] | None, **files: dict[str, Any] | list[Any] | str
) -> Path:
    """Write a trial directory as Harbor lays it out.

    Args:
        directory: Made with its parents.
        outcome: ``result.json``; ``None`` for none.
        files: Files of the agent's folder; a double underscore in a name stands for a dot.
    """
    (directory / "agent").mkdir(parents=True)
    (directory / "verifier").mkdir()
    (directory / "config.json").write_text('{"env": {"API_KEY": "sk-real-secret-0123456789"}}')
    (directory / "verifier" / "reward.txt").write_text("1")
    (directory / "agent" / "recording.cast").write_text('{"version": 2}\n[0.1, "o", "$ "]\n')
    if outcome is not None:
        (directory / "result.json").write_text(json.dumps(outcome))
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (directory / "agent" / name.replace("__", ".")).write_text(text)
    return directory
