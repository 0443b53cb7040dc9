"""The limits of a schedule (money, the account, a file, time) and what came of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from depthkit.errors import DepthkitError
from depthkit.model import Run
from depthkit.trials.account import Account
from depthkit.trials.budget import Price
from depthkit.trials.models import MODELS_FILE, ModelSpec
from depthkit.trials.threads import in_thread


@dataclass(frozen=True)
class Limits:
    """When no new run is started any more; what runs is finished.

    Attributes:
        max_cost: Dollars that one schedule may spend; kept call by call, inside runs too.
        reserve: Dollars to leave on the account.
        stop_file: Path whose existence stops it.
        max_hours: Hours from its start.
    """

    max_cost: float | None = None
    reserve: float | None = None
    stop_file: Path | None = None
    max_hours: float | None = None

    def prices(self, models: Sequence[ModelSpec]) -> dict[str, Price | None]:
        """Price by model; a scripted policy has none and costs nothing.

        Raises:
            DepthkitError: There is a budget and a model without prices.
        """
        found = {
            spec.name: Price.of(spec.agent_kwargs("http://localhost").get("model_info"))
            for spec in models
        }
        for spec in models:
            if self.max_cost is not None and found[spec.name] is None and spec.policy is None:
                raise DepthkitError(
                    f"--max-cost needs the prices of {spec.name}; set input_usd_per_mtok and "
                    f'output_usd_per_mtok under ["{spec.name}"] in {MODELS_FILE}.'
                )
        return found


@dataclass
class Outcome:
    """What one schedule did.

    Attributes:
        runs: Runs that were carried out, without verdict included.
        given_up: Runs that gave no verdict in several tries, with the last reason, and
            models that cannot be called.
        stopped: Whether it was interrupted before nothing was left.
        limit: Which of the :class:`Limits` ended it before nothing was left, in words.
        spent: Dollars, the worst case of requests of unknown fate included.
    """

    runs: list[Run] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    stopped: bool = False
    limit: str | None = None
    spent: float = 0.0


class Watch:
    """Looks whether one of the limits that hold for a whole schedule is reached.

    Args:
        limits: The limits.
        models: The models; each may have an account of its own.
        base_urls: Endpoint by model, where it is not the registered one.
    """

    def __init__(
        self, limits: Limits, models: Sequence[ModelSpec], base_urls: Mapping[str, str]
    ) -> None:
        self._limits = limits
        self._began = time.monotonic()
        self._accounts = [
            Account(spec, base_urls.get(spec.name))
            for spec in models
            if limits.reserve is not None and spec.policy is None
        ]

    def start(self) -> None:
        """Start the clock, and see that every account tells what is left.

        Raises:
            DepthkitError: One does not.
        """
        self._began = time.monotonic()
        for account in self._accounts:
            account.left()

    async def reached(self) -> str | None:
        """The limit that is reached, in words; ``None`` if none is."""
        limits = self._limits
        if limits.stop_file is not None and limits.stop_file.exists():
            return f"--stop-file {limits.stop_file} exists"
        hours = (time.monotonic() - self._began) / 3600
        if limits.max_hours is not None and hours >= limits.max_hours:
            return f"--max-hours {limits.max_hours:g} are over"
        for account in self._accounts:
            left = await in_thread(account.left)
            if limits.reserve is not None and left < limits.reserve:
                return f"--reserve ${limits.reserve:.2f} is reached (${left:.2f} left)"
        return None
