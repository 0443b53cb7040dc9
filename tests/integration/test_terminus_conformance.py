"""The private parts of Harbor that the agent leans on are where it expects them.

Harbor promises nothing about these. When a new release moves one, this says which.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from harbor.agents.terminus_2.terminus_2 import Terminus2
from harbor.agents.terminus_2.tmux_session import TmuxSession
from harbor.llms.lite_llm import LiteLLM
from harbor.verifier.verifier import Verifier

MOVED = "Harbor moved a part that depthkit/trials leans on; adapt it before raising the pin."


def assert_used(function: Any, *parts: str) -> None:
    source = inspect.getsource(function)
    assert [part for part in parts if part not in source] == [], MOVED


def parameters(function: object) -> list[str]:
    return list(inspect.signature(function).parameters)  # type: ignore[arg-type]


def test_the_release_line_is_the_one_these_tests_were_made_for() -> None:
    from importlib.metadata import version

    assert version("harbor").startswith("0.25."), MOVED


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("_query_llm", ["self", "chat", "prompt", "original_instruction", "session"]),
        ("_handle_llm_interaction", ["self", "chat", "prompt", "original_instruction", "session"]),
        ("_execute_commands", ["self", "commands", "session"]),
        ("_run_agent_loop", ["self", "initial_prompt", "chat", "original_instruction"]),
        (
            "_init_llm",
            [
                "self",
                "llm_backend",
                "model_name",
                "temperature",
                "collect_rollout_details",
                "llm_kwargs",
                "api_base",
                "session_id",
                "max_thinking_tokens",
                "reasoning_effort",
                "model_info",
                "use_responses_api",
            ],
        ),
    ],
)
def test_overridden_methods_take_what_they_took(method: str, expected: list[str]) -> None:
    assert parameters(getattr(Terminus2, method)) == expected, MOVED


def test_a_terminal_session_is_made_of_what_it_was_made_of() -> None:
    assert set(parameters(TmuxSession.__init__)) == {
        "self",
        "session_name",
        "environment",
        "logging_path",
        "local_asciinema_recording_path",
        "remote_asciinema_recording_path",
        "pane_width",
        "pane_height",
        "extra_env",
        "user",
    }, MOVED


def test_a_terminal_session_starts_asks_and_reads_as_it_did() -> None:
    assert_used(
        TmuxSession.start,
        "self._attempt_tmux_installation()",
        "command=self._tmux_start_session, user=self._user",
        'f"tmux set-option -g history-limit {history_limit}"',
        "history_limit = 10_000_000",
    )
    assert_used(
        TmuxSession.capture_pane,
        "self._tmux_capture_pane(capture_entire=capture_entire), user=self._user",
    )
    # Between reading the screen and this question nothing happens.
    loop = inspect.getsource(Terminus2._run_agent_loop)
    turn = loop[loop.index("range(self._max_episodes)") :]
    asked = turn.index("self._session.is_session_alive()")
    assert asked < turn.index("self._handle_llm_interaction("), MOVED


def test_the_verifier_does_before_its_script_what_root_is_to_do() -> None:
    verify = inspect.getsource(Verifier.verify)
    script = verify.index("command=command,")
    assert verify.index("self._remove_reward_files()") < verify.index("chmod +x") < script, MOVED
    assert 'user="root"' in verify[:script], MOVED
    assert "user=" not in verify[script:], MOVED


def test_retries_can_be_gone_around() -> None:
    assert inspect.iscoroutinefunction(Terminus2._query_llm.__wrapped__), MOVED
    assert inspect.iscoroutinefunction(LiteLLM.call.__wrapped__), MOVED


def test_the_loop_reads_its_bound_and_its_pending_claim_from_the_agent() -> None:
    assert_used(
        Terminus2._run_agent_loop,
        "range(self._max_episodes)",
        "self._handle_llm_interaction(",
        "self._execute_commands(",
        "self._pending_completion",
        'if feedback and "ERROR:" in feedback:',
    )
    assert_used(Terminus2._summarize, "self._summarization_count += 1")


def test_the_usage_of_a_reply_is_read_before_a_cut_becomes_an_error() -> None:
    call = inspect.getsource(LiteLLM.call.__wrapped__)
    assert call.index("self._extract_usage_info(") < call.index("OutputLengthExceededError("), MOVED
