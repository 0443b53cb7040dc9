"""The client of a model endpoint against a real HTTP server that misbehaves and bills."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from harbor.llms.base import LLMResponse

from depthkit.trials.budget import (
    OUTPUT_TOKENS,
    PURSE,
    Budget,
    BudgetExceededError,
    Price,
    Purse,
    output_bound,
)
from depthkit.trials.llm import (
    EMPTY_REPLIES,
    ModelCallError,
    ModelEndpoint,
    RefusedError,
)
from depthkit.trials.patience import PATIENCE, Patience
from depthkit.trials.run import SEGMENT_SECONDS
from depthkit.trials.scripted.policies import Policy, Reply, after_faults, fixed_replies
from depthkit.trials.scripted.server import ScriptedServer

PRICE = Price(2e-6, 5e-7, 1e-5)
QUICK = Patience(
    request_seconds=1.0, tries=3, first_pause=0.01, longest_pause=0.4, longest_asked=0.8
)


class Line:
    """An endpoint client, the server behind it, and the purse it pays from."""

    def __init__(
        self,
        server: ScriptedServer,
        purse: Purse,
        *,
        price: Price | None,
        patience: Patience,
        tokens: tuple[int, int | None],
    ) -> None:
        self.server, self.purse = server, purse
        info: dict[str, Any] = {"max_input_tokens": tokens[0], "max_output_tokens": tokens[1]}
        if price is not None:
            info |= {
                "input_cost_per_token": price.input,
                "cache_read_input_token_cost": price.cached,
                "output_cost_per_token": price.output,
            }
        # A context of its own, so that no later test pays from this purse.
        self._context = copy_context()
        self._context.run(PURSE.set, purse)
        self._context.run(PATIENCE.set, patience)
        self.endpoint = self._context.run(
            ModelEndpoint,
            model_name="openai/m",
            api_base=server.base_url,
            model_info=info,
            api_key="none",
        )

    def reply(self, prompt: str = "Go on.") -> LLMResponse:
        return self._context.run(asyncio.run, self.endpoint.call(prompt))

    def cut_off(self, seconds: float) -> None:
        """A call that the run's time limit ends."""

        async def run() -> None:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(self.endpoint.call("Go on."), seconds)

        self._context.run(asyncio.run, run())

    def call(self, prompt: str = "Go on.") -> str:
        return self.reply(prompt).content


@contextmanager
def line(
    policy: Policy | Sequence[str | Reply],
    *,
    limit: float | None = None,
    price: Price | None = PRICE,
    patience: Patience = QUICK,
    tokens: tuple[int, int | None] = (50_000, 500),
    **server: Any,
) -> Iterator[Line]:
    played = policy if callable(policy) else fixed_replies(policy)
    with ScriptedServer({"m": played}, prices=PRICE, **server) as serving:
        purse = Purse(Budget(limit))
        yield Line(serving, purse, price=price, patience=patience, tokens=tokens)


# --- faults ---


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
def test_what_may_pass_is_tried_again(status: int) -> None:
    with line(after_faults([Reply("busy", status=status)] * 2, fixed_replies(["ok"]))) as it:
        assert it.call() == "ok"
        assert len(it.server.requests) == 3
        assert it.purse.outlook == "answered"


@pytest.mark.parametrize(("status", "outlook"), [(400, "stays"), (401, "all"), (402, "all")])
def test_what_will_not_pass_is_not_tried_again(status: int, outlook: str) -> None:
    with line([Reply("no", status=status)]) as it:
        with pytest.raises(ModelCallError):
            it.call()
        assert len(it.server.requests) == 1
        assert it.purse.outlook == outlook


def test_retry_after_is_heeded_and_bounded() -> None:
    # Longer than pauses of our own, if the endpoint says so; but not for ever.
    for asked, least in ((0.6, 0.6), (3600, QUICK.longest_asked)):
        busy = Reply("busy", status=429, headers={"Retry-After": str(asked)})
        with line(after_faults([busy], fixed_replies(["ok"]))) as it:
            started = time.monotonic()
            it.call()
            assert least <= time.monotonic() - started < 60


def test_retry_after_may_be_a_date() -> None:
    patience = replace(QUICK, longest_asked=3600)
    for asked, least in ((3, 2.0), (-3600, 0.0)):
        date = format_datetime(datetime.now(UTC) + timedelta(seconds=asked), usegmt=True)
        busy = Reply("busy", status=503, headers={"Retry-After": date})
        with line(after_faults([busy], fixed_replies(["ok"])), patience=patience) as it:
            started = time.monotonic()
            it.call()
            assert least <= time.monotonic() - started < 60


def test_a_run_that_was_answered_lasts_through_a_blip() -> None:
    busy = [Reply("busy", status=503)] * 8
    patience = replace(QUICK, longest_pause=0.05, blip_seconds=20.0)
    with line(after_faults(busy, fixed_replies(["ok"])), patience=patience) as it:
        with pytest.raises(ModelCallError):
            it.call()
        assert len(it.server.requests) == patience.tries
    replies = iter(["first", *busy, "ok"])
    with line(lambda _: next(replies), patience=patience) as it:
        assert it.call() == "first"
        assert it.call() == "ok"
        assert len(it.server.requests) == 10
        assert it.endpoint.cost_usd == pytest.approx(it.server.billed)  # errors are not billed
    replies = iter(["first", *[Reply("gone", status=503)] * 10_000])
    with line(lambda _: next(replies), patience=replace(patience, blip_seconds=1.0)) as it:
        it.call()
        started = time.monotonic()
        with pytest.raises(ModelCallError):
            it.call()
        assert 0.8 < time.monotonic() - started < 20  # ten thousand tries take minutes


def test_all_requests_for_one_reply_end_well_before_a_segment_does() -> None:
    usual = Patience()
    assert usual.reply_seconds <= SEGMENT_SECONDS / 2
    assert usual.blip_seconds >= 5 * 60
    assert not usual.lasts(1, usual.reply_seconds, answered=True)
    patience = replace(QUICK, tries=100, reply_seconds=1.5)
    with line([Reply("late", delay=30)], patience=patience) as it:
        started = time.monotonic()
        with pytest.raises(ModelCallError):
            it.call()
        assert 1.0 < time.monotonic() - started < 30  # a hundred tries take longer


def test_a_time_limit_while_nothing_is_answered_is_the_endpoint_s_doing() -> None:
    patient = replace(QUICK, request_seconds=30.0, silent_seconds=0.3)
    with line([Reply("late", delay=30)], patience=patient) as it:
        it.cut_off(0.8)
        assert it.endpoint.silence is not None
        assert it.purse.outlook == "may_pass"
    with line([Reply("late", delay=30)], patience=replace(patient, silent_seconds=5.0)) as it:
        it.cut_off(0.8)
        assert it.endpoint.silence is None
    # A model that is as slow as before.
    replies = iter([Reply("slow", delay=1.0), Reply("slow", delay=30)])
    with line(lambda _: next(replies), patience=patient) as it:
        it.call()
        it.cut_off(0.8)
        assert it.endpoint.silence is None
    # Errors, one after the other, each as quick as can be.
    replies = iter(["first", *[Reply("busy", status=429)] * 1000])
    with line(lambda _: next(replies), patience=replace(patient, silent_seconds=60.0)) as it:
        it.call()
        assert it.endpoint.silence is None
        it.cut_off(0.5)
        assert it.endpoint.silence == "no answer to the last request (RateLimitError)"


def test_time_that_went_by_in_back_off_is_the_endpoint_s_doing_too() -> None:
    busy = Reply("busy", status=429, headers={"Retry-After": "0.5"})
    for silent, said in ((0.3, "failed requests took"), (10.0, None)):
        patience = replace(QUICK, silent_seconds=silent)
        with line(after_faults([busy], fixed_replies(["ok"])), patience=patience) as it:
            it.call()
            assert it.endpoint.failure is None
            assert (it.endpoint.silence or "").startswith(said or "")
            assert (it.endpoint.silence is None) == (said is None)


def test_pauses_grow_and_differ() -> None:
    patience = Patience(first_pause=1.0, longest_pause=60.0)
    pauses = [[patience.pause(attempt, None) for attempt in range(8)] for _ in range(50)]
    for attempt in range(6):
        drawn = [each[attempt] for each in pauses]
        assert 0.5 * 2**attempt <= min(drawn) < max(drawn) <= 1.5 * 2**attempt
        assert len(set(drawn)) > 40
    assert max(each[7] for each in pauses) == 60.0


def test_an_endpoint_that_hangs_is_given_up_and_may_have_billed() -> None:
    with line([Reply("late", delay=30)], limit=1.0) as it:
        started = time.monotonic()
        with pytest.raises(ModelCallError, match="Time"):
            it.call()
        assert time.monotonic() - started < 30
        # The server has billed each of the three; the budget knows of none and counts the worst.
        assert 0 < it.server.billed <= it.purse.spent
        assert it.purse.outlook == "may_pass"
        assert it.endpoint.cost_usd is None


def test_an_endpoint_that_is_gone_costs_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with line(["ok"], limit=1.0) as it:
        it.endpoint._api_base = f"http://127.0.0.1:{port}/v1"
        with pytest.raises(ModelCallError):
            it.call()
        assert it.purse.outlook == "may_pass"
        assert it.purse.spent == 0


def test_an_error_as_an_answer_costs_nothing() -> None:
    for status in (429, 500, 400, 401):
        with line([Reply("no", status=status)], limit=1.0) as it:
            with pytest.raises(ModelCallError):
                it.call()
            assert it.purse.spent == it.server.billed == 0


# --- refusals ---


@pytest.mark.parametrize(
    "refusal",
    [
        Reply("", finish_reason="content_filter"),
        Reply("Flagged as a possible cybersecurity risk", status=400),
        Reply("Your request was flagged by moderation", status=403),
        Reply("content_policy_violation", status=400),
    ],
    ids=["finish-reason", "cybersecurity", "moderation", "policy"],
)
def test_a_refusal_is_told_from_an_error(refusal: Reply) -> None:
    with line([refusal]) as it:
        with pytest.raises(RefusedError):
            it.call()
        with pytest.raises(RefusedError):
            it.call()
        assert len(it.server.requests) == 1  # it is not asked again, whatever Harbor does


def test_nothing_but_empty_replies_is_a_refusal() -> None:
    with line([""]) as it:
        for _ in range(EMPTY_REPLIES - 1):
            assert it.call() == ""
        with pytest.raises(RefusedError, match="empty"):
            it.endpoint.raise_if_silent()  # the run's last turn was used up
        with pytest.raises(RefusedError, match="empty"):
            it.call()


def test_an_empty_reply_among_others_is_not() -> None:
    replies = iter(["a word", "", "", "", ""])
    with line(lambda _: next(replies)) as it:
        for _ in range(5):
            it.call()
        it.endpoint.raise_if_silent()


def test_a_reply_cut_before_its_first_word_is_not_a_refusal() -> None:
    with line([Reply("", finish_reason="length")]) as it:
        for _ in range(5):
            it.call()
        it.endpoint.raise_if_silent()


# --- money ---


def test_cost_is_what_the_endpoint_states() -> None:
    with line(["word " * 50], states_cost=True, price=Price(1, 1, 1)) as it:
        it.call()
        assert it.endpoint.cost_usd == pytest.approx(it.server.billed)


def test_else_it_follows_the_prices_with_cached_tokens_apart() -> None:
    with line(["word " * 50]) as it:
        history: list[dict[str, Any]] = []
        for turn in range(3):
            prompt = f"{turn} " + "more " * 100
            reply = asyncio.run(it.endpoint.call(prompt, message_history=list(history)))
            history += [
                {"role": "user", "content": prompt},
                {"role": "assistant", "content": reply.content},
            ]
        assert reply.usage.cache_tokens > 100
        assert it.endpoint.cost_usd == pytest.approx(it.server.billed)


def test_else_it_is_unknown_and_never_zero() -> None:
    with line(["word"], price=None) as it:
        it.call()
        assert it.endpoint.cost_usd is None
        assert it.endpoint.reply_cost is None


def test_a_reply_without_usage_is_booked_at_its_worst_and_its_tokens_are_unknown() -> None:
    with line([Reply("word " * 400, usage=False)], limit=0.05) as it:
        reply = it.reply()
        assert reply.usage is None
        assert it.endpoint.reply_cost is None
        assert it.endpoint.cost_usd is None
        assert not it.endpoint.usage_complete
        assert 0 < it.server.billed <= it.purse.spent
        with pytest.raises(BudgetExceededError):
            for _ in range(100):
                it.call()
        assert it.server.billed <= 0.05


def test_the_worst_case_is_reserved_and_never_passed() -> None:
    # A reply of any length is cut where the reservation ends.
    with line(["word " * 5_000], limit=0.02) as it:
        with pytest.raises(BudgetExceededError, match=r"--max-cost \$0\.02"):
            for _ in range(100):
                it.call("go on " * 50)
        assert 0.01 < it.server.billed <= 0.02
        assert it.purse.budget.reserved == pytest.approx(0)
        assert {request["max_tokens"] for request in it.server.requests} == {500}


def test_under_a_budget_the_longest_reply_fits_into_the_context() -> None:
    patience = replace(QUICK, request_seconds=30.0)  # the server counts tokens slowly
    long = ["word " * 4_000]
    with line(long, limit=10.0, tokens=(4_000, None), patience=patience) as it:
        it.call("go on " * 100)
        assert it.endpoint.cut
        it.call("go on " * 2_000)  # more bytes than the context has tokens
        first, second = (request["max_tokens"] for request in it.server.requests)
        assert 3_000 < first < 4_000 - 200
        assert second == 4_000 // 8
    assert output_bound(None, 10**9) == OUTPUT_TOKENS
    assert output_bound(10**6, 5_000) == OUTPUT_TOKENS
    assert output_bound(32_768, 8_000) == 32_768 - 8_000
    assert output_bound(1, 8_000) == 1


def test_a_request_of_unknown_fate_makes_the_cost_unknown_and_stays_booked() -> None:
    replies = iter(["first", Reply("late", delay=30), "second", "third"])
    with line(lambda _: next(replies), limit=1.0) as it:
        it.call()
        assert it.endpoint.cost_usd == pytest.approx(it.server.billed)
        assert it.call() == "second"
        assert it.endpoint.cost_usd is None
        assert 0 < it.server.billed <= it.purse.spent
        assert it.call() == "third"
        assert it.endpoint.cost_usd is None
    with line(after_faults([Reply("first")], fixed_replies([Reply("late", delay=30)]))) as it:
        it.call()
        it.cut_off(0.5)
        assert it.endpoint.cost_usd is None


def test_a_refusal_that_came_as_an_error_is_not_booked() -> None:
    with line([Reply("content_policy_violation", status=400)], limit=1.0) as it:
        with pytest.raises(RefusedError):
            it.call()
        assert it.purse.spent == it.server.billed == 0


def test_the_longest_reply_that_the_registry_names_is_asked_for_without_a_budget_too() -> None:
    with line(["word " * 5_000], price=None) as it:
        it.call()
        assert it.endpoint.cut
        assert [request["max_tokens"] for request in it.server.requests] == [500]


def test_a_request_on_its_way_is_counted_before_it_is_answered() -> None:
    with line([Reply("word " * 400, delay=0.3)], limit=0.0125) as it:

        async def both() -> list[Any]:
            return await asyncio.gather(
                it.endpoint.call("one"), it.endpoint.call("two"), return_exceptions=True
            )

        results = asyncio.run(both())
        # Each may cost 0.0055 and does cost 0.004: the second waits and then fits; a third cannot.
        assert not [each for each in results if isinstance(each, Exception)]
        with pytest.raises(BudgetExceededError):
            for _ in range(3):
                it.call("three")
        assert it.server.billed <= 0.0125
