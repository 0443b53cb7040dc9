"""What is gone for a while, endpoint or engine: whose runs wait, how long, when to give up."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from docker.errors import DockerException
from requests.exceptions import ConnectionError as EngineConnectionError

from depthkit.errors import DepthkitError
from depthkit.trials import engine
from depthkit.trials.budget import Purse
from depthkit.trials.threads import in_thread

PAUSES: tuple[float, ...] = (30, 60, 120, 240, 480, *[600] * 5)
"""Seconds without new runs of a model whose endpoint does not answer, one after each run that
failed for it: 65 minutes in all, then the model is given up for this schedule."""


@dataclass
class _Outage:
    number: int
    began: float
    until: float


class Outages:
    """Which models' endpoints are gone.

    After a pause one run of the model goes first; the others follow when it is answered.

    Args:
        pauses: As :data:`PAUSES`.
    """

    def __init__(self, pauses: Sequence[float] = PAUSES) -> None:
        self._pauses = pauses
        self._refunds: Counter[Hashable] = Counter()
        self._gone: dict[str, _Outage] = {}

    def failed(self, model: str, started: float) -> bool:
        """Note a run that ended because the endpoint was gone.

        Args:
            model: Its model.
            started: When it started, by the monotonic clock.

        Returns:
            bool: Whether the endpoint has been gone for too long.
        """
        now = time.monotonic()
        last = self._gone.get(model)
        if last is not None and started < last.began:
            return False  # It ran when the pause began: the same outage, not one more.
        number = last.number + 1 if last else 0
        if number >= len(self._pauses):
            return True
        self._gone[model] = _Outage(number, now, now + self._pauses[number])
        return False

    def costs_a_try(self, run: Hashable, purse: Purse) -> bool:
        """Whether a run that the endpoint did not answer was one of its tries.

        It was if it was answered before, or failed as often as there are pauses: then what it asks
        is what fails, while others are answered and no outage ever lasts.

        Args:
            run: Which run, whatever its try.
            purse: Its purse.
        """
        if purse.answered is not None or self._refunds[run] >= len(self._pauses):
            return True
        self._refunds[run] += 1
        return False

    def answered(self, model: str, at: float | None) -> None:
        """Note when the endpoint last answered a run, by the monotonic clock; ``None`` if never."""
        outage = self._gone.get(model)
        # An answer from before it was gone, to a run that ends only now, says nothing.
        if outage is not None and at is not None and at > outage.began:
            del self._gone[model]

    def may_start(self, model: str, running: Iterable[Purse]) -> bool:
        """Whether a run of a model may start beside those of the same model that run."""
        purses = list(running)
        outage = self._gone.get(model)
        if outage is None:
            return True
        if time.monotonic() < outage.until:
            return False
        for purse in purses:
            self.answered(model, purse.answered)
        return not purses or model not in self._gone

    def on_trial(self) -> set[str]:
        """Models whose pause is over and whose endpoint has not answered since."""
        now = time.monotonic()
        return {model for model, outage in self._gone.items() if outage.until <= now}

    def waiting(self) -> dict[str, float]:
        """Seconds until the next try, by model; those on trial already are left out."""
        now = time.monotonic()
        return {m: o.until - now for m, o in self._gone.items() if o.until > now}


async def engine_answers() -> bool:
    """Whether the Docker engine answers within 20 seconds."""
    try:
        return bool(await asyncio.wait_for(in_thread(engine.client().ping), 20))
    except (DockerException, EngineConnectionError, OSError, DepthkitError):
        return False
