"""What is left on the account of an endpoint that tells it, as OpenRouter does.

``GET /credits`` gives what was bought and used, ``GET /key`` what the key may still spend; either
may be refused or unlimited. Sources: OpenRouter's API reference, "Get credits" and "Get key".
"""

from __future__ import annotations

import os
import time

import httpx

from depthkit.errors import DepthkitError
from depthkit.trials.models import MODELS_FILE, ModelSpec

_OPENROUTER = "https://openrouter.ai/api/v1"
_FRESH_SECONDS = 30.0
_TIMEOUT = 20.0


class Account:
    """The account behind one model.

    Args:
        spec: The model.
        base_url: Its endpoint where it is not the registered one.
    """

    def __init__(self, spec: ModelSpec, base_url: str | None = None) -> None:
        default = _OPENROUTER if spec.model_name.startswith("openrouter/") else None
        self._url = base_url or spec.base_url or default
        self._key = os.environ.get(spec.api_key_env or "")
        self._name = spec.name
        self._known: float | None = None
        self._asked = float("-inf")

    def left(self) -> float:
        """Dollars left, not older than half a minute; asks the endpoint when needed.

        An endpoint that once answered and does not now: the last number it gave.

        Raises:
            DepthkitError: The endpoint does not tell.
        """
        if time.monotonic() - self._asked > _FRESH_SECONDS:
            self._asked = time.monotonic()
            told = [amount for amount in (self._credits(), self._key_limit()) if amount is not None]
            if told:
                self._known = min(told)
        if self._known is None:
            raise DepthkitError(
                f"--reserve needs to know the money left for {self._name}, but its endpoint "
                f"({self._url or 'not an OpenRouter one'}) does not tell; leave --reserve out and "
                f"use --max-cost, or set base_url in {MODELS_FILE} to an endpoint that answers "
                "GET /credits or GET /key as OpenRouter does."
            )
        return self._known

    def _credits(self) -> float | None:
        match self._get("credits"):
            case {"data": {"total_credits": int() | float() as all_, "total_usage": used}}:
                return float(all_) - float(used)
        return None

    def _key_limit(self) -> float | None:
        match self._get("key"):
            case {"data": {"limit_remaining": int() | float() as left}}:
                return float(left)
        return None

    def _get(self, path: str) -> object:
        if self._url is None:
            return None
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            answer = httpx.get(f"{self._url.rstrip('/')}/{path}", headers=headers, timeout=_TIMEOUT)
            return answer.json() if answer.status_code == 200 else None
        except (httpx.HTTPError, ValueError):
            return None
