"""Money: what a model call costs, how much may be spent, and which run may still start.

One :class:`Budget` is shared by all trials of a process. The worst case of every request is
reserved before the request is made and settled when its answer states its usage, so the total
cannot pass the limit, whatever runs at the same time. A request whose fate is unknown (it timed
out, or was cut off with its run) stays counted at its worst case, because it may have been billed.

Money spent by earlier processes is no concern of a budget: ``--max-cost`` limits one invocation.
All of an invocation counts, runs without a result too.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

from depthkit.model import Run
from depthkit.protocol import CEILING

OUTPUT_TOKENS = 32_768
"""Largest :func:`output_bound`: without a bound on the reply there is no worst case."""

WAIT_SECONDS = 30.0
"""Longest wait of a call for the requests of other runs to settle and leave money over. Short
beside a run's time limit, which goes on meanwhile."""

_FIRST_PROMPT = 8_000
"""Tokens taken for a prompt where no request of a model has been seen yet."""

_MARGIN = 8
"""How careful to be with few runs known while others run: a run may cost the dearest of n known
ones, and this many n-ths of it on top; alone it may cost one n-th more. With 5 as many as 6%, with
1 as many as 14% of simulated schedules of $1.00 lost a fifth of it to runs that it stopped; the
money that is left over in the end is the same."""

_NEAREST = 5
"""Runs nearest in length from which the cost of one under a cap not run yet is taken."""

type Outlook = Literal["answered", "may_pass", "stays", "all"]
"""What the last call of a run says of the next: the endpoint answers; it does not, but may later;
this request fails again; every request of this model fails again."""


def output_bound(context: int | None, prompt: int) -> int:
    """``max_tokens`` of a request under a budget, for a model whose ``max_output_tokens`` is unset.

    Many servers refuse a request whose prompt and ``max_tokens`` together pass their context. But
    tokens of a prompt are bounded by its bytes, which may be several times as many: an eighth of
    the context is asked for in any case.

    Args:
        context: ``context_tokens``, if known.
        prompt: Most tokens that the prompt may have.
    """
    if context is None:
        return OUTPUT_TOKENS
    return max(min(OUTPUT_TOKENS, max(context - prompt, context // 8)), 1)


class BudgetExceededError(Exception):
    """The worst case of the next model call does not fit into what is left of the budget."""


@dataclass(frozen=True)
class Price:
    """Prices of a model in dollars a token; those of a million tokens are in ``models.toml``."""

    input: float
    cached: float
    output: float

    @classmethod
    def of(cls, model_info: Mapping[str, Any] | None) -> Price | None:
        """Prices in LiteLLM's form, ``None`` where one of the two main ones is not known."""
        info = model_info or {}
        into, out = info.get("input_cost_per_token"), info.get("output_cost_per_token")
        if into is None or out is None:
            return None
        return cls(into, info.get("cache_read_input_token_cost", into), out)

    def cost(self, prompt: int, cached: int, output: int) -> float:
        """Dollars of a call; ``cached`` are those of the ``prompt`` tokens that hit a cache."""
        return (prompt - cached) * self.input + cached * self.cached + output * self.output

    def worst(self, prompt: int, output: int) -> float:
        """Most dollars that a call of at most so many tokens can cost."""
        return prompt * max(self.input, self.cached) + output * self.output


class Budget:
    """What may be spent, by all runs of a process together. Safe for threads and tasks.

    Attributes:
        limit: Dollars, or ``None`` for no limit.
        spent: Dollars so far: what answers cost, and the worst case of requests of unknown fate.
        reserved: Worst case of the requests that are under way.
    """

    def __init__(self, limit: float | None = None) -> None:
        self.limit = limit
        self.spent = 0.0
        self.reserved = 0.0
        self._overrun = 1.0
        self._lock = threading.Lock()

    @property
    def left(self) -> float:
        """Dollars not spent yet, those under way included; infinite without a limit."""
        return float("inf") if self.limit is None else self.limit - self.spent

    def reserve(self, amount: float) -> float | None:
        """Set money aside for a request.

        Returns:
            float | None: What was set aside, to be given to :meth:`settle`; ``None`` if it does
            not fit now.
        """
        if self.limit is None:
            return 0.0
        with self._lock:
            # An endpoint that once billed more than the worst case by its prices may do so again.
            amount *= self._overrun
            if self.spent + self.reserved + amount > self.limit:
                return None
            self.reserved += amount
            return amount

    async def hold(self, amount: float) -> float:
        """:meth:`reserve`, waiting a little for requests under way to leave something over.

        Raises:
            BudgetExceededError: If it does not fit.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        while (held := self.reserve(amount)) is None:
            if self.reserved <= 0 or amount > self.left or time.monotonic() > deadline:
                raise BudgetExceededError(
                    f"the next model call may cost up to ${amount:.4f}; "
                    f"${max(self.left, 0):.4f} of --max-cost ${self.limit:.2f} is left"
                )
            await asyncio.sleep(0.05)
        return held

    def settle(self, held: float, cost: float | None) -> float:
        """Book a request that was made.

        Args:
            held: What was set aside for it.
            cost: What it cost; ``None`` if that is unknown: it then counts as all that was held.

        Returns:
            float: What was booked.
        """
        with self._lock:
            booked = held if cost is None else cost
            self.reserved = max(self.reserved - held, 0.0)
            self.spent += booked
            if held and booked > held:
                self._overrun *= booked / held
            return booked


@dataclass
class Purse:
    """One run's part in the budget, and what its calls say of the endpoint.

    Attributes:
        budget: The one all runs share.
        spent: Dollars booked for this run.
        outlook: See :data:`Outlook`; of the last call, ``None`` before the first.
        answered: When a call was last answered, by the monotonic clock; ``None`` if never.
        tail: Largest amount that was set aside for one request.
    """

    budget: Budget = field(default_factory=Budget)
    spent: float = 0.0
    outlook: Outlook | None = None
    answered: float | None = None
    tail: float = 0.0

    async def hold(self, amount: float) -> float:
        """:meth:`Budget.hold` for this run."""
        self.tail = max(self.tail, amount)
        return await self.budget.hold(amount)

    def settle(self, held: float, cost: float | None) -> None:
        """:meth:`Budget.settle` for this run."""
        self.spent += self.budget.settle(held, cost)


PURSE: ContextVar[Purse | None] = ContextVar("depthkit_purse", default=None)
"""The purse of the run whose task this is. By context, because Harbor builds the agent, and with
it the endpoint, from a configuration of plain values."""


class Expectation:
    """What runs are expected to cost, from the runs so far; on the safe side.

    The more runs of a model under one cap are known, the closer to the dearest of them. From runs
    under other caps, a longer run costs by the square of its turns, since every turn sends the
    conversation again. From another model, by its prices.

    Args:
        prices: Price by model, ``None`` where unknown.
        output_tokens: Bound of a reply by model.
    """

    def __init__(
        self, prices: Mapping[str, Price | None], output_tokens: Mapping[str, int | None]
    ) -> None:
        self._prices = prices
        self._output = output_tokens
        self._tails: defaultdict[str, float] = defaultdict(float)
        self._known: defaultdict[tuple[str, int | None], list[tuple[int, float]]] = defaultdict(
            list
        )

    def learn(self, runs: Iterable[Run]) -> None:
        """Take in finished runs; those without a verdict, turns or cost say nothing."""
        for run in runs:
            if run.valid and run.turns and run.cost_usd is not None:
                self._known[run.model, run.cap].append((run.turns, run.cost_usd))

    def saw(self, model: str, purse: Purse) -> None:
        """Take in how large the requests of a run were."""
        self._tails[model] = max(self._tails[model], purse.tail)

    def one_call(self, model: str) -> float:
        """Dollars that the next call of a model may cost at worst, as far as seen."""
        price = self._prices.get(model)
        if price is None:
            return 0.0
        output = self._output.get(model) or OUTPUT_TOKENS
        return self._tails[model] or price.worst(_FIRST_PROMPT, output)

    def of(self, model: str, cap: int | None, margin: float = 1) -> float | None:
        """Dollars a run may be expected to cost at most; ``None`` where nothing is known.

        Args:
            model: Its model.
            cap: Its cap.
            margin: On top of the dearest of n known runs, this many n-ths of it.
        """
        if self._prices.get(model) is None:
            return 0.0
        same = [cost for _, cost in self._known[model, cap]]
        if same:
            return max(same) * (1 + margin / len(same))
        turns = cap or CEILING
        known = [
            (abs(math.log(turns / took)), cost * self._dearer(model, other) * _longer(turns, took))
            for (other, _), runs in self._known.items()
            for took, cost in runs
        ]
        nearest = [cost for _, cost in sorted(known)[:_NEAREST]]
        if not nearest:
            return None
        return min(max(nearest) * (1 + margin / len(known)), turns * self.one_call(model))

    def _dearer(self, model: str, other: str) -> float:
        mine, its = self._prices.get(model), self._prices.get(other)
        if mine is None or its is None or model == other:
            return 1.0
        pairs = ((mine.input, its.input), (mine.output, its.output))
        return max((a / b for a, b in pairs if b > 0), default=1.0)


def _longer(turns: int, took: int) -> float:
    ratio = turns / took
    return ratio * ratio if ratio > 1 else ratio


def may_start(
    budget: Budget,
    expected: Expectation,
    model: str,
    cap: int | None,
    running: Iterable[tuple[str, int | None, Purse]],
) -> bool:
    """Whether a run can be expected to fit beside those that run already.

    Each needs what it is still expected to cost and, so that none is stopped while the others'
    requests are under way, the worst case of one call on top. Where nothing at all is known one
    run may try alone: what it costs is the first thing to learn.

    Args:
        budget: The budget.
        expected: What runs cost.
        model: Model of the run.
        cap: Its cap.
        running: Model, cap and purse of the runs under way.
    """
    if budget.limit is None:
        return True
    others = list(running)
    margin = _MARGIN if others else 1
    need = expected.of(model, cap, margin)
    if need is None:
        return not others and expected.one_call(model) <= budget.left
    need += expected.one_call(model)
    for other, its_cap, purse in others:
        its_need = expected.of(other, its_cap, margin)
        if its_need is None:
            return False  # It is still trying alone.
        # One that has cost more already than was expected may well cost as much again.
        left = its_need - purse.spent
        need += (left if left > 0 else purse.spent) + max(purse.tail, expected.one_call(other))
    return need <= budget.left
