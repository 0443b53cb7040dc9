"""How long a run waits for its model endpoint.

Apart from the endpoint's client, whose libraries take seconds to import: planning needs none.
"""

from __future__ import annotations

import random
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Patience:
    """How long a run tries to get one reply.

    Attributes:
        request_seconds: Longest time a request may take, from sending it to the reply's last byte.
            Reasoning models are slow; LiteLLM's own limit is 100 minutes.
        reply_seconds: Longest time for all requests for one reply and the pauses between them:
            well below the time limit of a segment, which goes on meanwhile.
        silent_seconds: When a time limit ends a run, a request pending for longer, or failed ones
            that took longer in the segment, make it a run without a result: the endpoint used up
            the time, not the model.
        tries: Requests for one reply, at most, in a run that was never answered: whether the
            endpoint is gone is found out between runs, where waiting costs no run its time.
        blip_seconds: A run that was answered before, whose work would be lost, tries for so long
            whatever the number of requests.
        first_pause: Seconds before the second request; each later pause is twice as long, and
            every one is lengthened or shortened by up to a half by chance.
        longest_pause: Bound of a pause.
        longest_asked: Bound of a pause that the endpoint asks for with ``Retry-After``.
    """

    request_seconds: float = 600.0
    reply_seconds: float = 900.0
    silent_seconds: float = 300.0
    tries: int = 6
    blip_seconds: float = 600.0
    first_pause: float = 1.0
    longest_pause: float = 60.0
    longest_asked: float = 300.0

    def pause(self, attempt: int, asked: float | None) -> float:
        """Seconds before the next request after the ``attempt``-th (from 0) failed."""
        # The exponent is bounded because a power of it need not fit a float.
        own: float = self.first_pause * 2 ** min(attempt, 60) * random.uniform(0.5, 1.5)  # noqa: S311
        return max(min(own, self.longest_pause), min(asked or 0.0, self.longest_asked))

    def lasts(self, tried: int, seconds: float, *, answered: bool) -> bool:
        """Whether to send one more request.

        Args:
            tried: Requests sent for this reply.
            seconds: Time from the first of them to the next one.
            answered: Whether the run was ever answered.
        """
        blip = answered and seconds < self.blip_seconds
        return seconds < self.reply_seconds and (tried < self.tries or blip)


PATIENCE: ContextVar[Patience] = ContextVar("depthkit_patience")
"""Patience of the runs started in this context, where it is not the usual one."""
