"""terminus-2 under a turn cap, over all segments of a task (Sections 2 and 3.1, Appendix B).

The loop, the prompts, the terminal and the parser are Harbor's. Added here: the cap stated in
the instruction, one turn for one reply whatever its fate, segments delivered one at a time in one
conversation, and a record of every turn. The private parts this leans on are pinned by
``tests/integration/test_terminus_conformance.py``.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, override

from harbor.agents.terminus_2.terminus_2 import Command, Terminus2, Terminus2Options
from harbor.agents.terminus_2.tmux_session import TmuxSession
from harbor.environments.base import BaseEnvironment
from harbor.llms.base import BaseLLM, LLMResponse
from harbor.llms.chat import Chat
from harbor.models.agent.context import AgentContext
from harbor.models.trajectories import Step
from harbor.models.trial.paths import EnvironmentPaths
from pydantic import Field

from depthkit.corpus.replies import REPLIES_FILE, ReplyLog
from depthkit.corpus.trajectory import lines_typed
from depthkit.protocol import CEILING, next_part, opening
from depthkit.trials.environment import DockerEnvironment
from depthkit.trials.llm import ModelEndpoint, whole_text
from depthkit.trials.recorder import Recorder
from depthkit.trials.session import Session
from depthkit.trials.threads import in_thread

TURNS_FILE = "turns.jsonl"
"""In the agent's log folder: one :class:`depthkit.model.Turn` a line, without the run's name."""

RECORDING = "recording.cast"
"""In the agent's log folder: the terminal, in all segments."""

METADATA_KEY = "depthkit"
"""Key of our facts in Harbor's ``agent_result.metadata``."""

type End = Literal["submitted", "turns_used", "terminal_broken", "error"]
"""How a segment ended; ``error`` covers a time limit, a model error and a dead container, which
the trial's own result tells apart."""

_CUT = (
    "The reply was cut off at the model's output limit, so none of its commands were run. "
    "Send a shorter reply, splitting long work over several turns."
)

_UNTYPABLE = (
    "The keystrokes hold a character that cannot be typed (U+0000, or half of a UTF-16 surrogate "
    "pair such as \\ud800), so no command was run. Send the commands without it."
)


def _can_be_typed(keystrokes: str) -> bool:
    return "\0" not in keystrokes and whole_text(keystrokes) == keystrokes


@dataclass(frozen=True)
class _Totals:
    """Totals of the conversation that were given to Harbor already."""

    input: int = 0
    cached: int = 0
    output: int = 0
    cost: float = 0.0
    requests: int = 0
    summaries: int = 0
    turns: int = 0


class RunOverError(Exception):
    """The run ended in an earlier segment; Harbor is told so instead of being given a next one."""


class CappedTerminus2Options(Terminus2Options):
    """Options of terminus-2, the cap, and the number of segments."""

    cap: int | None = Field(default=None, ge=1, description="Stated turn cap; none by default.")
    ceiling: int = Field(default=CEILING, ge=1, description="Turns at most when none is stated.")
    segments: int = Field(default=1, ge=1, description="Number of segments of the task.")


class CappedTerminus2(Terminus2):
    """terminus-2 that states a cap, stops after turn T, and counts every reply as one turn.

    A task of several segments is one conversation: :meth:`run` takes the first segment,
    :meth:`resume` each later one. The caller says when the run is over (:meth:`end_run`).
    """

    capabilities = Terminus2.capabilities.model_copy(update={"resume": True})
    options_model = CappedTerminus2Options
    options: CappedTerminus2Options

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["suppress_max_turns_warning"] = True
        super().__init__(*args, **kwargs)
        self._limit = self.options.cap or self.options.ceiling
        self._turns: list[dict[str, Any]] = []
        self._command_lines = 0
        self._segment = 1
        self._instructions: list[str] = []
        self._summaries_seen = 0
        self._reported = _Totals()
        self._confirmed = False
        self._over = False
        self._end: End = "error"
        self._seconds = 0.0

    @override
    def _init_llm(
        self,
        llm_backend: Any,
        model_name: str,
        temperature: float | None,
        collect_rollout_details: bool,
        llm_kwargs: dict[str, Any] | None,
        api_base: str | None,
        session_id: str | None,
        max_thinking_tokens: int | None,
        reasoning_effort: str | None,
        model_info: dict[str, Any] | None,
        use_responses_api: bool,
    ) -> BaseLLM:
        extra = {} if temperature is None else {"temperature": temperature}
        self._endpoint = ModelEndpoint(
            model_name=model_name,
            api_base=api_base,
            collect_rollout_details=collect_rollout_details,
            session_id=session_id,
            max_thinking_tokens=max_thinking_tokens,
            reasoning_effort=reasoning_effort,
            model_info=model_info,
            use_responses_api=use_responses_api,
            **extra,
            **(llm_kwargs or {}),
        )
        return self._endpoint

    @override
    async def setup(self, environment: BaseEnvironment) -> None:
        key = os.environ.get(self._model_api_key_name or "")
        self._endpoint.replies = ReplyLog(self.logs_dir / REPLIES_FILE, key)
        session = self._session = Session(
            session_name=self.name(),
            environment=environment,
            logging_path=EnvironmentPaths.agent_dir / "terminus_2.pane",
            local_asciinema_recording_path=None,
            remote_asciinema_recording_path=None,
            pane_width=self.options.tmux_pane_width,
            pane_height=self.options.tmux_pane_height,
            extra_env=self._extra_env,
            user=environment.default_user,
        )
        await session.start()
        # Tasks with a compose file are not recorded: their container is Harbor's.
        if self.options.record_terminal_session and isinstance(environment, DockerEnvironment):
            recorder = Recorder(
                environment.container,
                self.logs_dir / RECORDING,
                session=self.name(),
                user=None if environment.default_user is None else str(environment.default_user),
                width=self.options.tmux_pane_width,
                height=self.options.tmux_pane_height,
            )
            await in_thread(recorder.start)
            if recorder.error:  # A run without its recording is still a run.
                self.logger.warning("The terminal is not recorded: %s", recorder.error)

    # --- segments ---

    @property
    def segment_unfinished(self) -> bool:
        """Whether the current segment, with others after it, ended without being marked complete.

        Its checks then have nothing to say (DESIGN.md, "What a turn is").
        """
        return self._segment < self.options.segments and not self._confirmed

    def end_run(self) -> None:
        """Let no further segment start."""
        self._over = True

    @override
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        self._instructions = [instruction]
        self._max_episodes = self._limit
        first = opening(instruction, cap=self.options.cap, k=self.options.segments)
        await self._play(super().run(first, environment, context), context)

    @override
    async def resume(
        self,
        instruction: str,
        environment: BaseEnvironment,
        context: AgentContext,
    ) -> None:
        if self._over or len(self._turns) >= self._limit:
            raise RunOverError(f"the run ended in segment {self._segment}")
        self._segment += 1
        self._instructions.append(instruction)
        self._max_episodes = self._limit - len(self._turns)
        self._pending_completion = self._confirmed = False
        self._endpoint.lost_seconds = 0.0
        self._end = "error"
        await self._play(self._continue(context), context)

    async def _continue(self, context: AgentContext) -> None:
        if self._session is None or self._chat is None:
            raise RuntimeError("a segment cannot come before the first one")
        message = next_part(
            self._instructions[-1],
            part=self._segment,
            k=self.options.segments,
            turns=len(self._turns),
            cap=self.options.cap,
            screen=await self._session.capture_pane(),
        )
        self._context = context
        self._trajectory_steps.append(
            Step(
                step_id=len(self._trajectory_steps) + 1,
                timestamp=datetime.now(UTC).isoformat(),
                source="user",
                message=message,
            )
        )
        # A summary must hold every instruction given so far, not the current one alone.
        everything = "\n\n".join(
            f"Part {number} of {self.options.segments}:\n{text}"
            for number, text in enumerate(self._instructions, start=1)
        )
        try:
            await self._run_agent_loop(message, self._chat, everything)
        finally:
            self._dump_trajectory()

    async def _play(self, segment: Coroutine[Any, Any, None], context: AgentContext) -> None:
        """Run one segment to its end and write down how it ended, whatever happens."""
        started = time.monotonic()
        try:
            await segment
            self._endpoint.raise_if_silent()
            self._end = self._how_it_ended()
        except Exception as error:
            # A terminal that broke under the agent's hands is a result, not a fault of ours;
            # but only while the container lives.
            if self._endpoint.failure is not None or await self._session_alive():
                raise
            self.logger.warning("The terminal broke: %s", error)
            self._end = "terminal_broken"
        finally:
            self._seconds += time.monotonic() - started
            if self._endpoint.replies is not None:
                self._endpoint.replies.close()
            self._fill(context)

    def _fill(self, context: AgentContext) -> None:
        """Give Harbor this segment's own share of the conversation's totals."""
        if self._chat is None:
            return
        now = _Totals(
            *self._endpoint.tokens,
            self._chat.total_cost + self._subagent_metrics.total_cost_usd,
            len(self._api_request_times),
            self._summarization_count,
            len(self._turns),
        )
        before, self._reported = self._reported, now
        cost = now.cost - before.cost
        context.n_input_tokens = now.input - before.input
        context.n_cache_tokens = now.cached - before.cached
        context.n_output_tokens = now.output - before.output
        context.cost_usd = cost if cost > 0 else None
        context.metadata = {
            **(context.metadata or {}),
            "n_episodes": now.turns - before.turns,
            "api_request_times_msec": self._api_request_times[before.requests :],
            "summarization_count": now.summaries - before.summaries,
            METADATA_KEY: self.facts(),
        }

    def _how_it_ended(self) -> End:
        if self._confirmed:
            return "submitted"
        return "turns_used" if len(self._turns) >= self._limit else "terminal_broken"

    async def _session_alive(self) -> bool:
        """Whether tmux still answers.

        Raises:
            ContainerDiedError: If the container itself is gone.
        """
        return isinstance(self._session, Session) and await self._session.answers()

    def facts(self) -> dict[str, Any]:
        """What this run says of itself up to now; ``end`` is that of the current segment."""
        claims = [turn["turn"] for turn in self._turns if turn["completion_claim"]]
        last = self._turns[-1] if self._turns else {}
        seen = [last.get("input_tokens"), last.get("output_tokens")]
        return {
            "cap": self.options.cap,
            "segment": self._segment,
            "turns": len(self._turns),
            "turns_left": self._limit - len(self._turns),
            "end": self._end,
            "first_claim_turn": claims[0] if claims else None,
            "parse_errors": sum(turn["parse_error"] for turn in self._turns),
            "context_tokens": None if None in seen else sum(value for value in seen if value),
            "command_lines": self._command_lines,
            "cost_usd": self._endpoint.cost_usd,
            "usage_complete": self._endpoint.usage_complete,
            "endpoint_silent": self._endpoint.silence,
            "agent_seconds": round(self._seconds, 3),
        }

    @override
    async def _run_subagent(self, *args: Any, **kwargs: Any) -> Any:
        """One of the three calls of a summarization."""
        self._endpoint.kind = kwargs["filename_suffix"]
        try:
            return await super()._run_subagent(*args, **kwargs)
        finally:
            self._endpoint.kind = None

    # --- one turn ---

    @override
    async def _query_llm(  # type: ignore[override]
        self,
        chat: Chat,
        prompt: str,
        original_instruction: str = "",
        session: TmuxSession | None = None,
    ) -> LLMResponse:
        # Around Harbor's retries: the endpoint makes them, each request once.
        once = Terminus2._query_llm.__wrapped__
        reply: LLMResponse = await once(self, chat, prompt, original_instruction, session)
        if self._endpoint.failure is not None:
            raise self._endpoint.failure  # The reply is a stand-in, not the model's.
        return reply

    @override
    async def _handle_llm_interaction(
        self,
        chat: Chat,
        prompt: str,
        original_instruction: str = "",
        session: TmuxSession | None = None,
    ) -> tuple[list[Command], bool, str, str, str, LLMResponse]:
        started = time.monotonic()
        commands, complete, feedback, analysis, plan, reply = await super()._handle_llm_interaction(
            chat, prompt, original_instruction, session
        )
        if self._endpoint.cut:
            commands, complete, feedback = [], False, f"ERROR: {_CUT}"
        elif not all(_can_be_typed(command.keystrokes) for command in commands):
            commands, complete, feedback = [], False, f"ERROR: {_UNTYPABLE}"
        analysis, plan = whole_text(analysis), whole_text(plan)
        parse_error = "ERROR:" in feedback
        claim = complete and not parse_error
        self._confirmed = claim and (self._pending_completion or not self._is_last)
        usage = reply.usage
        if not parse_error:  # else none of them runs
            self._command_lines += lines_typed(command.keystrokes for command in commands)
        self._turns.append(
            {
                "turn": len(self._turns) + 1,
                "segment": self._segment,
                "commands": None if parse_error else len(commands),
                "model_seconds": round(time.monotonic() - started, 3),
                "terminal_seconds": 0.0,
                "input_tokens": usage.prompt_tokens if usage else None,
                "cached_tokens": usage.cache_tokens if usage else None,
                "output_tokens": usage.completion_tokens if usage else None,
                "cost_usd": self._endpoint.reply_cost,
                "observation_bytes": None,
                "parse_error": parse_error,
                "cut_reply": self._endpoint.cut,
                "summarization": self._summarization_count > self._summaries_seen,
                "completion_claim": claim,
            }
        )
        self._summaries_seen = self._summarization_count
        if parse_error:
            self._record_turn()
        return commands, complete, feedback, analysis, plan, reply

    @property
    def _is_last(self) -> bool:
        return self._segment == self.options.segments

    @override
    async def _execute_commands(
        self, commands: list[Command], session: TmuxSession
    ) -> tuple[bool, str]:
        started = time.monotonic()
        turn = self._turns[-1]
        if not self._is_last:
            # Confirmation would cost a turn in every segment; only the last one asks for it.
            self._pending_completion = True
        try:
            timed_out, output = await super()._execute_commands(commands, session)
            turn["observation_bytes"] = len(output.encode())
            return timed_out, output
        finally:
            turn["terminal_seconds"] = round(time.monotonic() - started, 3)
            self._record_turn()

    def _record_turn(self) -> None:
        with (self.logs_dir / TURNS_FILE).open("a") as out:
            out.write(json.dumps(self._turns[-1]) + "\n")
