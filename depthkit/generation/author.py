"""An author that is a model: its replies are messages of the protocol.

Each segment is a conversation of its own, which begins with what the segments before are: so a
task of many segments fits into a context, and a draft goes on after a stop as it would have
without one.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from harbor.llms.base import ContextLengthExceededError

from depthkit.generation.guide import brief, guide
from depthkit.generation.session import Answer, Session
from depthkit.trials.budget import BudgetExceededError
from depthkit.trials.limits import Watch
from depthkit.trials.llm import ModelCallError, ModelEndpoint, RefusedError
from depthkit.trials.models import ModelSpec

MOST_TURNS = 120
"""Replies for one segment, after which the task is rejected."""

_KEPT = 6
"""The last messages of a conversation, which are never shortened."""

_SHORT = 1200
_FULL = 0.75
"""Share of a model's context from which the older messages of a conversation are shortened."""

_CHARS_A_TOKEN = 3
"""Where an endpoint does not count: rather too few, so that a text counts for too much."""


class StoppedError(Exception):
    """The author cannot go on for now; the message says why.

    Attributes:
        limit: Whether one of the limits ended it.
    """

    def __init__(self, message: str, *, limit: bool = False) -> None:
        super().__init__(message)
        self.limit = limit


def endpoint(spec: ModelSpec, base_url: str | None = None) -> tuple[ModelEndpoint, dict[str, Any]]:
    """The client of a model, as in a trial, and the options of each of its calls."""
    options = spec.agent_kwargs(base_url)
    own = dict(options.get("llm_kwargs", {}))
    if spec.api_key_env is not None and (key := os.environ.get(spec.api_key_env)):
        own["api_key"] = key
    client = ModelEndpoint(
        model_name=spec.model_name,
        api_base=options.get("api_base"),
        reasoning_effort=options.get("reasoning_effort"),
        model_info=options.get("model_info"),
        **own,
    )
    return client, options.get("llm_call_kwargs", {})


async def drive(
    session: Session,
    spec: ModelSpec,
    watch: Watch,
    *,
    base_url: str | None = None,
    most_turns: int = MOST_TURNS,
) -> None:
    """Let a model write until the task is over.

    Raises:
        StoppedError: A limit is reached, or the endpoint does not answer.
    """
    client, options = endpoint(spec, base_url)
    if session.draft.finished == session.draft.k:
        # Stopped in acceptance: that needs no word of the model.
        await session.answer({"do": "finish"})
    while session.over is None:
        talk = _Conversation(session, spec, client, options)
        await talk.segment(watch, most_turns)


class _Conversation:
    """The conversation about one segment."""

    def __init__(
        self, session: Session, spec: ModelSpec, client: ModelEndpoint, options: dict[str, Any]
    ) -> None:
        self._session, self._spec, self._client, self._options = session, spec, client, options
        self._history: list[dict[str, Any]] = [
            {"role": "system", "content": guide(session.draft.k)}
        ]

    async def segment(self, watch: Watch, most_turns: int) -> None:
        session, number = self._session, self._session.segment
        prompt = brief(session.draft, number, session.hello())
        for _ in range(most_turns):
            if limit := await watch.reached():
                raise StoppedError(limit, limit=True)
            prompt = await self._turn(prompt)
            if session.over is not None or session.segment != number:
                return
        session.reject(f"segment {number} was not finished in {most_turns} turns")

    async def _turn(self, prompt: str) -> str:
        """One reply, carried out; gives what the model is told next."""
        session, number, began = self._session, self._session.segment, time.monotonic()
        try:
            reply = await self._call(prompt)
        except BudgetExceededError as error:
            raise StoppedError(str(error), limit=True) from error
        except ModelCallError as error:
            if error.kind == ContextLengthExceededError.__name__:
                if len(self._history) > 1:  # It begins anew, with the files that there are.
                    del self._history[1:]
                    return brief(session.draft, number, session.hello())
                session.reject(
                    f"segment {number} does not fit into the context of {self._spec.name}"
                )
                return ""
            raise StoppedError(f"the model does not answer ({error.kind})") from error
        except RefusedError:
            session.reject("the model or its provider refused to work on this task")
            return ""
        usage = reply.usage
        # A reply that says nothing is one all the same, but no endpoint takes an empty message.
        said = _middle(reply.content, 4 * _SHORT) if self._client.cut else reply.content
        self._history += [
            {"role": "user", "content": prompt},
            {"role": "assistant", "content": said.strip() or "(nothing)"},
        ]
        session.log.add(
            "turn",
            number,
            seconds=round(time.monotonic() - began, 3),
            cost_usd=self._client.reply_cost,
            input_tokens=usage.prompt_tokens if usage else None,
            cached_tokens=usage.cache_tokens if usage else None,
            output_tokens=usage.completion_tokens if usage else None,
        )
        answers = await self._carry_out(reply.content)
        counted = usage.prompt_tokens + usage.completion_tokens if usage else None
        self._shorten(self._guess() if counted is None else counted)
        return "\n".join(json.dumps(answer, ensure_ascii=False) for answer in answers)

    async def _call(self, prompt: str) -> Any:
        try:
            return await self._client.call(prompt, message_history=self._history, **self._options)
        except ContextLengthExceededError:
            self._shorten(1 << 62)
            prompt = _middle(prompt, 4 * _SHORT)
            try:
                return await self._client.call(
                    prompt, message_history=self._history, **self._options
                )
            except ContextLengthExceededError as error:
                raise ModelCallError(error) from error

    async def _carry_out(self, content: str) -> list[Answer]:
        session = self._session
        if self._client.cut:
            return [session.malformed("the reply was cut at the model's output limit; split it")]
        messages, fault = read_messages(content)
        if fault is not None:
            return [session.malformed(fault)]
        answers: list[Answer] = []
        number = session.segment
        for message in messages:
            if answers and not answers[-1]["ok"]:
                error = "not carried out, since a message before it failed"
                answers.append({"ok": False, "error": error})
                continue
            answers.append(await session.answer(message))
            if session.over is not None or session.segment != number:
                break  # What follows was written without knowing this.
        return answers

    def _guess(self) -> int:
        return sum(len(str(each["content"])) for each in self._history) // _CHARS_A_TOKEN

    def _shorten(self, tokens: int) -> None:
        """Shorten what is old in the conversation where its tokens fill too much of the context.

        Answers first; where that is not enough, replies too, whose files can be read again.
        """
        most = _FULL * (self._spec.context_tokens or 128_000)
        before = self._guess()
        for role in ("user", "assistant"):
            if tokens - (before - self._guess()) < most:
                return
            for message in self._history[2:-_KEPT]:
                if message["role"] == role:
                    message["content"] = _middle(str(message["content"]), _SHORT)


def _middle(text: str, most: int) -> str:
    """A text without its middle, where it is longer."""
    if len(text) <= most + _SHORT // 10:  # Shortened before, it is left as it is.
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


def read_messages(content: str) -> tuple[list[Any], str | None]:
    """The JSON objects of a reply, and what is wrong where one cannot be read.

    Text around them is passed over: fences, a word to begin with.
    """
    decoder = json.JSONDecoder(strict=False)  # Line ends within texts are meant as such.
    messages: list[Any] = []
    at = content.find("{")
    while at >= 0:
        try:
            message, end = decoder.raw_decode(content, at)
        except ValueError as error:
            if not isinstance(error, json.JSONDecodeError):
                return [], f"message {len(messages) + 1} is no JSON: {error}"
            return [], (
                f"message {len(messages) + 1} is no JSON: {error.msg}, at line {error.lineno}, "
                f"column {error.colno} of the reply; no message of it was carried out"
            )
        except RecursionError:
            return [], f"message {len(messages) + 1} is nested too deeply"
        messages.append(message)
        at = content.find("{", end)
    if not messages:
        return [], 'the reply has no message; send JSON objects such as {"do": "screen"}'
    return messages, None
