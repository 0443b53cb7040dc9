"""Money of one process: what is set aside, what is booked, and which run may still start."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from protocol_runs import a_run

from depthkit.trials.budget import (
    OUTPUT_TOKENS,
    WAIT_SECONDS,
    Budget,
    BudgetExceededError,
    Expectation,
    Price,
    Purse,
    may_start,
    output_bound,
)

PRICE = Price(1e-6, 1e-7, 1e-5)


def test_requests_under_way_count_at_their_worst_until_they_are_settled() -> None:
    budget = Budget(1.0)
    first = budget.reserve(0.6)
    assert first == 0.6
    assert budget.reserve(0.5) is None
    assert budget.reserve(0.4) == 0.4  # to the last cent
    assert budget.settle(first, 0.1) == 0.1
    assert (budget.spent, budget.left) == (0.1, 0.9)
    assert budget.reserved == pytest.approx(0.4)
    assert budget.reserve(0.5) == 0.5


def test_a_request_of_unknown_cost_counts_as_all_that_was_set_aside() -> None:
    purse = Purse(Budget(1.0))
    purse.settle(asyncio.run(purse.hold(0.7)), None)
    assert (purse.spent, purse.budget.spent, purse.budget.reserved) == (0.7, 0.7, 0.0)
    assert purse.budget.reserve(0.4) is None


def test_after_an_endpoint_billed_more_than_the_worst_case_more_is_set_aside() -> None:
    budget = Budget(2.0)
    held = budget.reserve(0.1)
    assert held is not None
    budget.settle(held, 0.3)
    again = budget.reserve(0.1)
    assert again == pytest.approx(0.3)
    budget.settle(again, 0.2)  # less than was set aside is nothing to learn from
    assert budget.reserve(0.1) == pytest.approx(0.3)
    assert budget.reserve(0.5) is None  # it may cost 1.5, and 1.2 is left


def test_without_a_limit_nothing_is_set_aside_and_all_is_booked() -> None:
    budget = Budget()
    assert budget.reserve(5.0) == 0.0
    assert budget.settle(0.0, 5.0) == 5.0
    assert (budget.spent, budget.left) == (5.0, float("inf"))


def test_a_call_waits_while_another_s_money_may_come_back_and_no_longer() -> None:
    async def at_once(held: Coroutine[Any, Any, float]) -> float:
        return await asyncio.wait_for(held, WAIT_SECONDS / 3)

    async def check() -> None:
        budget = Budget(1.0)
        with pytest.raises(BudgetExceededError, match=r"up to \$1\.5000; \$1\.0000 of --max-cost"):
            await at_once(budget.hold(1.5))
        held = await budget.hold(0.8)
        waiting = asyncio.ensure_future(budget.hold(0.5))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        budget.settle(held, 0.4)
        assert await waiting == 0.5
        budget.settle(0.5, 0.5)
        with pytest.raises(BudgetExceededError):  # nothing is under way: none comes back
            await at_once(budget.hold(0.2))

    asyncio.run(check())


def test_a_purse_knows_its_own_part_and_its_largest_request() -> None:
    budget = Budget(1.0)
    mine, other = Purse(budget), Purse(budget)
    for amount in (0.3, 0.1):
        mine.settle(asyncio.run(mine.hold(amount)), amount)
    other.settle(asyncio.run(other.hold(0.2)), 0.2)
    assert (mine.spent, mine.tail) == (pytest.approx(0.4), 0.3)
    assert budget.spent == pytest.approx(0.6)


def test_tokens_that_hit_a_cache_cost_what_the_cache_costs() -> None:
    assert PRICE.cost(1000, 400, 100) == pytest.approx(600e-6 + 40e-6 + 1000e-6)
    assert PRICE.worst(1000, 100) == pytest.approx(1000e-6 + 1000e-6)
    assert Price(1e-6, 2e-6, 0).worst(1000, 0) == pytest.approx(2000e-6)  # writing may cost more
    info = {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-5}
    assert Price.of(info) == Price(1e-6, 1e-6, 1e-5)
    assert Price.of(info | {"cache_read_input_token_cost": 1e-7}) == PRICE
    assert Price.of({"output_cost_per_token": 0.0}) is None
    assert Price.of({"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}) == Price(0, 0, 0)


@pytest.mark.parametrize(
    ("context", "prompt", "bound"),
    [
        (None, 10**9, OUTPUT_TOKENS),
        (200_000, 10_000, OUTPUT_TOKENS),
        (40_000, 30_000, 10_000),
        (40_000, 39_000, 5_000),
        (4, 4, 1),
    ],
)
def test_a_reply_s_bound_fits_beside_its_prompt_down_to_an_eighth_of_the_context(
    context: int | None, prompt: int, bound: int
) -> None:
    assert output_bound(context, prompt) == bound


def test_the_dearest_of_the_known_runs_is_what_is_expected() -> None:
    known = Expectation({"m": PRICE}, {})
    assert known.of("m", None) is None
    known.learn(
        a_run("m", None, n, run_id=f"r{n}", turns=4, cost_usd=cost, verdict=verdict)
        for n, cost, verdict in (
            (1, 0.2, "passed"),
            (2, 0.5, "failed"),
            (3, None, "passed"),  # of unknown cost: says nothing, not that it was free
            (4, 9.0, "none"),
        )
    )
    assert known.of("m", None, margin=0) == 0.5
    assert known.of("m", None, margin=1) == 0.75


def test_a_run_may_start_only_beside_what_the_others_may_still_cost() -> None:
    known = Expectation({"m": PRICE}, {})
    known.learn(a_run("m", None, n, run_id=f"r{n}", turns=4, cost_usd=0.5) for n in range(1, 9))
    known.saw("m", Purse(tail=0.1))
    # The dearest of n, and an n-th on top; eight of them while others run: 1.00, and one call.

    def starts(limit: float, *others: Purse) -> bool:
        running = [("m", None, other) for other in others]
        return may_start(Budget(limit), known, "m", None, running)

    assert starts(0.67)
    assert not starts(0.66)
    assert starts(2.21, Purse())
    assert not starts(2.19, Purse())
    assert starts(1.61, Purse(spent=0.6))  # what it has cost is spent already
    assert not starts(1.59, Purse(spent=0.6))
    assert not starts(3.15, Purse(spent=2.0))  # dearer than expected: as much again
    assert starts(3.21, Purse(spent=2.0))
    assert not starts(2.3, Purse(tail=0.3))  # its largest request so far
    assert starts(2.41, Purse(tail=0.3))
