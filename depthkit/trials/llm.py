"""The model endpoint of a run: Harbor's LiteLLM client with its edges made definite.

A request is retried for a bounded time and then fails with :class:`ModelCallError`; no
request waits for ever; a reply cut at its length limit is a reply, with its tokens counted; a
refusal ends the run (:class:`RefusedError`); and each request is paid for (:mod:`.budget`).
"""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any, override

from harbor.llms.base import ContextLengthExceededError, LLMResponse, OutputLengthExceededError
from harbor.llms.lite_llm import LiteLLM
from harbor.models.metric import UsageInfo

from depthkit.corpus.replies import CallKind, ModelCall, ReplyLog
from depthkit.trials import faults
from depthkit.trials.budget import (
    PURSE,
    BudgetExceededError,
    Price,
    Purse,
    output_bound,
)
from depthkit.trials.patience import PATIENCE, Patience

EMPTY_REPLIES = 3
"""Replies, all of them empty, after which a run counts as refused (Appendix I: "returned empty
responses and gave no valid result"). A run that is over before that without a word counts as
refused too. An empty reply among others is a turn like any other that does not parse."""

_MESSAGE_TOKENS = 16
_REQUEST_TOKENS = 128
"""Tokens that a chat template may add to a message, and to a request."""

_MOST_TOKENS = 1 << 40
"""More than this is no count of tokens, and a sum of them would not fit a record."""


class ModelCallError(Exception):
    """The endpoint gave no reply.

    Not a ``TimeoutError`` whatever the cause: Harbor would take that for the end of the run's
    own time.

    Attributes:
        kind: Class name of the last error of the endpoint.
    """

    def __init__(self, cause: Exception) -> None:
        self.kind = type(cause).__name__
        super().__init__(f"{self.kind}: {cause}")


class RefusedError(Exception):
    """The model, its provider or a filter in between will not work on this task."""


class _ProviderError(Exception):
    """An error that came as an answer."""

    status_code = 502


class UnusableReplyError(Exception):
    """Answers that came, none of which terminus-2 can use."""


class ModelEndpoint(LiteLLM):
    """LiteLLM client of one run.

    Attributes:
        cut: Whether the last reply was cut at its length limit.
        failure: Error of the last request, or ``None`` if it was answered. terminus-2 answers
            some errors with a reply of its own making; this tells one from the model's.
        reply_cost: Dollars of the last reply, ``None`` when unknown.
        tokens: Input, cached and output tokens of all answers so far, a refusal's included.
        usage_complete: Whether every reply so far came with its tokens.
        replies: Where each answered call is kept; ``None`` for nowhere.
        kind: What the next call is for, where that is not seen from its arguments.
        lost_seconds: Time that failed requests and the pauses after them took; the agent sets it
            to 0 when a segment, and with it a time limit, begins.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cut = False
        self.failure: Exception | None = None
        self.reply_cost: float | None = None
        self.usage_complete = True
        self.tokens = (0, 0, 0)
        self.replies: ReplyLog | None = None
        self.kind: CallKind | None = None
        self.lost_seconds = 0.0
        self._purse = PURSE.get() or Purse()
        self._patience = PATIENCE.get(Patience())
        info: dict[str, Any] = self._model_info or {}
        self._price = Price.of(info)
        self._context_tokens: int | None = info.get("max_input_tokens")
        self._output_tokens: int | None = info.get("max_output_tokens")
        self._costs: list[float | None] = []
        self._over: Exception | None = None
        self._empty, self._spoke, self._instead = 0, False, ""
        self._usage: UsageInfo | None = None
        self._slowest = 0.0
        self._answered = False
        self._finish = ""
        self._tool_calls: list[dict[str, Any]] = []
        self._sent: tuple[list[dict[str, Any]], int] | None = None

    @property
    def cost_usd(self) -> float | None:
        """Dollars of all requests of this run; ``None`` when that of any is unknown.

        A request that was never answered may have been billed, unless an error answered it.
        """
        known = [cost for cost in self._costs if cost is not None]
        return sum(known) if len(known) == len(self._costs) else None

    @property
    def silence(self) -> str | None:
        """Why a time limit that ends the run now is the endpoint's doing; ``None`` where not.

        See :attr:`Patience.silent_seconds`; and nothing but failures since the last answer.
        Without the endpoint's own words, which may hold a key.
        """
        if isinstance(self.failure, ModelCallError):
            return f"no answer to the last request ({self.failure.kind})"
        if self.lost_seconds > self._patience.silent_seconds:
            return f"failed requests took {self.lost_seconds:.0f} s"
        return None

    def raise_if_silent(self) -> None:
        """To be called when the run is over.

        Raises:
            RefusedError: If all its replies were empty.
            ModelCallError: If they were tool calls or reasoning and nothing else.
        """
        if self._empty and not self._spoke:
            if self._instead:
                raise ModelCallError(
                    UnusableReplyError(
                        f"{self._empty} replies with {self._instead} and no text, which terminus-2 "
                        "cannot use; see the model's settings"
                    )
                )
            raise RefusedError(f"nothing but empty replies ({self._empty})")

    @override
    async def call(self, prompt: str, **kwargs: Any) -> LLMResponse:  # type: ignore[override]
        """One reply.

        Raises:
            ModelCallError: If no request was answered.
            RefusedError: If the task is refused; from then on every call raises it.
            BudgetExceededError: If the next request may cost more than is left; likewise.
            ContextLengthExceededError: If the conversation is too long for the model.
        """
        # terminus-2 goes on after some errors: without a call it cannot make up for these.
        if self._over is not None:
            self.failure = self._over
            raise self._over
        self.cut, self.failure, self.reply_cost = False, None, None
        # Beside those of summaries, terminus-2 makes one kind of call outside the conversation.
        kind = self.kind or ("turn" if "message_history" in kwargs else "short_summary")
        began = time.monotonic()
        for tried in itertools.count(1):
            sent = time.monotonic()
            try:
                reply = await self._request(prompt, kwargs, began + self._patience.reply_seconds)
                self._keep(reply, [*kwargs.get("message_history", ()), _user(prompt)], kind)
                self._look_at(reply)
            except (BudgetExceededError, RefusedError) as error:
                self._over = self.failure = error
                raise
            except ContextLengthExceededError as error:
                self._purse.outlook = "stays"
                self.failure = error
                raise
            except ModelCallError as error:  # nothing but replies that are of no use
                self._purse.outlook = "stays"
                self._over = self.failure = error
                raise
            except Exception as error:
                unreadable = faults.unreadable(error)
                self.failure = ModelCallError(_unreadable(error) if unreadable else error)
                self._purse.outlook = faults.outlook(error)
                pause = self._patience.pause(tried - 1, faults.retry_after(error))
                self.lost_seconds += time.monotonic() - sent + pause
                seconds = time.monotonic() + pause - began
                answered = self._purse.answered is not None
                again = self._patience.lasts(tried, seconds, answered=answered)
                if self._purse.outlook != "may_pass" or not again:
                    if unreadable:
                        self._purse.outlook = "stays"  # It is there: nobody need wait for it.
                    raise self.failure from error
                await asyncio.sleep(pause)
            else:
                self.failure = None
                self._purse.outlook, self._purse.answered = "answered", time.monotonic()
                # What is kept is what came; what goes on must be text that can be sent again.
                reply.content = whole_text(reply.content)
                return reply
        raise AssertionError("unreachable")

    async def _request(self, prompt: str, kwargs: dict[str, Any], until: float) -> LLMResponse:
        """One request, paid for, answered before ``until`` by the monotonic clock."""
        messages = [*kwargs.get("message_history", ()), _user(prompt)]
        # Retries are made by `call` alone: the client library's are switched off.
        kwargs = {**kwargs, "max_retries": 0}
        if self._output_tokens is not None:
            kwargs.setdefault("max_tokens", self._output_tokens)
        held = 0.0
        if self._purse.budget.limit is not None and self._price is not None:
            most = self._most_tokens(messages)
            output = kwargs.setdefault("max_tokens", output_bound(self._context_tokens, most))
            held = await self._purse.hold(self._price.worst(most, output))
        self._answered, self._usage, self._finish = False, None, ""
        booked: float | None = None
        sent = time.monotonic()
        seconds = max(min(self._patience.request_seconds, until - sent), 0.0)
        try:
            # In all, not only between two bytes: a proxy may keep a dead request alive with blanks.
            async with asyncio.timeout(seconds):
                reply: LLMResponse = await LiteLLM.call.__wrapped__(
                    self, prompt, **{**kwargs, "timeout": seconds}
                )
        except OutputLengthExceededError as error:
            self.cut = True
            return LLMResponse(
                content=error.truncated_response or "",
                model_name=self._model_name,
                usage=self._usage,
            )
        except asyncio.CancelledError:
            waited = time.monotonic() - sent
            if self.failure is not None or waited > self._longest_silence:
                late = ModelCallError(TimeoutError(f"no answer in {waited:.0f} s"))
                self.failure = self.failure or late
                self._purse.outlook = "may_pass"
            raise
        except Exception as error:
            if not faults.may_be_billed(error):
                booked = 0.0
            if faults.refuses(error):
                raise RefusedError(f"{type(error).__name__}: {error}") from error
            raise
        else:
            return reply
        finally:
            if self._answered:
                booked = self.reply_cost
                self._slowest = max(self._slowest, time.monotonic() - sent)
                if self._usage is not None:
                    self._sent = (messages, self._usage.prompt_tokens)
            self._costs.append(booked)
            self._purse.settle(held, booked)

    def _keep(self, reply: LLMResponse, messages: list[dict[str, Any]], kind: CallKind) -> None:
        if self.replies is None:
            return
        usage = self._usage
        self.replies.add(
            ModelCall(
                kind=kind,
                messages=messages,
                reply=reply.content,
                reasoning=reply.reasoning_content,
                tool_calls=self._tool_calls,
                finish=self._finish,
                input_tokens=usage.prompt_tokens if usage else None,
                cached_tokens=usage.cache_tokens if usage else None,
                output_tokens=usage.completion_tokens if usage else None,
            )
        )

    @property
    def _longest_silence(self) -> float:
        """Seconds without an answer that are not the pace of a slow model."""
        return max(self._patience.silent_seconds, self._slowest)

    def _most_tokens(self, messages: list[dict[str, Any]]) -> int:
        """A bound of the request's tokens, whatever the tokenizer.

        What the last request held is known from its usage; of the rest a token is at least one
        byte.
        """
        known, base = 0, _REQUEST_TOKENS
        if self._sent is not None and messages[: len(self._sent[0])] == self._sent[0]:
            known, base = len(self._sent[0]), self._sent[1]
        new = messages[known:]
        size = sum(len(str(m.get("content") or "").encode()) + _MESSAGE_TOKENS for m in new)
        total = base + size
        return total if self._context_tokens is None else min(total, self._context_tokens)

    def _look_at(self, reply: LLMResponse) -> None:
        if self._finish == "error":
            raise _ProviderError("the reply was broken off by an error of the provider")
        if self._finish in ("content_filter", "refusal"):
            raise RefusedError(f"the reply ended with finish reason {self._finish}")
        if reply.content.strip() or self.cut:
            self._spoke = True
            return
        self._empty += 1
        if self._finish in ("tool_calls", "function_call"):
            self._instead = "tool calls"
        elif reply.reasoning_content:
            self._instead = "reasoning"
        if self._empty >= EMPTY_REPLIES:
            self.raise_if_silent()

    @override
    def _extract_usage_info(self, response: Any) -> UsageInfo | None:
        # The one place that sees the whole answer, that of a cut reply too.
        self._answered = True
        self._finish = _finish_reason(response)
        calls = getattr(response.choices[0].message, "tool_calls", None) or ()
        self._tool_calls = [call.model_dump(mode="json") for call in calls]
        self._usage = super()._extract_usage_info(response)
        usage = getattr(response, "usage", None)
        if self._usage is not None and not _counts(self._usage, response):
            self._usage, self.usage_complete = None, False
        if self._usage is not None:
            written = self._usage.completion_tokens + _apart(usage)
            self._usage = self._usage.model_copy(update={"completion_tokens": written})
            read, cached, before = self.tokens
            read, cached = read + self._usage.prompt_tokens, cached + self._usage.cache_tokens
            self.tokens = read, cached, before + written
        stated = getattr(usage, "cost", None)
        if isinstance(stated, int | float) and stated >= 0:
            self.reply_cost = float(stated)
        elif self._price is not None and self._usage is not None:
            self.reply_cost = self._price.cost(
                self._usage.prompt_tokens,
                min(self._usage.cache_tokens, self._usage.prompt_tokens),
                self._usage.completion_tokens,
            )
        else:
            self.reply_cost = None
        if self._usage is not None:
            # Harbor's sum has no notion of unknown; ours is `cost_usd`.
            self._usage = self._usage.model_copy(update={"cost_usd": self.reply_cost or 0.0})
        return self._usage


def _user(prompt: str) -> dict[str, Any]:
    return {"role": "user", "content": prompt}


def whole_text(text: str) -> str:
    """Text without halves of UTF-16 pairs, which no encoding can carry; U+FFFD in their place."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unreadable(error: Exception) -> Exception:
    return UnusableReplyError(f"an answer that is no chat completion; is base_url right? ({error})")


def _apart(usage: Any) -> int:
    """Reasoning tokens that are billed as output but not among the completion's tokens."""
    details = getattr(usage, "completion_tokens_details", None)
    reasoning = getattr(details, "reasoning_tokens", None) or 0
    stated = (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)
    return max(min((usage.total_tokens or 0) - stated, reasoning), 0)


def _counts(usage: UsageInfo, response: Any) -> bool:
    """Whether the endpoint counted tokens: LiteLLM fills in zeros where it did not."""
    written = bool(response.choices[0].message.content)
    told = usage.prompt_tokens > 0 and (usage.completion_tokens > 0 or not written)
    return told and max(usage.prompt_tokens, usage.completion_tokens) < _MOST_TOKENS


def _finish_reason(response: Any) -> str:
    """Why the reply ended: LiteLLM's word, or ``refusal`` or ``error`` where more is known.

    OpenRouter answers with status 200 when the provider behind it fails later on.
    """
    choice = response.choices[0]
    fields = getattr(choice, "provider_specific_fields", None) or {}
    if fields.get("native_finish_reason") == "refusal" or getattr(choice.message, "refusal", None):
        return "refusal"
    return "error" if fields.get("error") else str(choice.finish_reason or "")
