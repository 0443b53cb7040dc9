"""What an error of a model endpoint means: what comes next, was it billed, how long to wait."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

from depthkit.trials.budget import Outlook

_UNSENT = ("ConnectError", "ConnectTimeout", "ClientConnectorError", "gaierror")
"""Errors, by class, of a request that never left: it cannot have been billed."""

_REFUSAL = re.compile(
    r"content[ _-]?(policy|filter|management)|moderation|flagged|safety|refus(ed|al)"
    r"|cyber[ _-]?(security|policy|risk)|usage polic",
    re.IGNORECASE,
)


def _response(error: BaseException) -> Any:
    """The endpoint's own response to a request that failed; ``None`` if it did not answer.

    Not the status of the error itself: the client library makes one up where there is none.
    """
    for cause in _causes(error):
        if type(cause).__name__ == "HTTPStatusError":
            return getattr(cause, "response", None)
    return None


def _status(error: BaseException) -> int | None:
    status: int | None = getattr(_response(error), "status_code", None)
    return status


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def outlook(error: Exception) -> Outlook:
    """What an error says of the next request."""
    status = _status(error)
    if status in (401, 402, 404):
        return "all"
    if status is not None and 400 <= status < 500 and status not in (408, 409, 425, 429):
        return "stays"
    return "may_pass"


def refuses(error: Exception) -> bool:
    """Whether the provider, or a filter in between, will not work on the task."""
    return _status(error) in (400, 403, 422, 451) and _REFUSAL.search(str(error)) is not None


def may_be_billed(error: Exception) -> bool:
    """Whether a request that failed may have been billed: not if an error answered it."""
    if _status(error) is not None:
        return _status(error) in (408, 504)  # A proxy gave up; the model may have gone on.
    return not any(type(cause).__name__ in _UNSENT for cause in _causes(error))


def retry_after(error: Exception) -> float | None:
    """Seconds the endpoint asks to wait, in a number or by a date (RFC 9110, section 10.2.3)."""
    headers = getattr(_response(error), "headers", None) or {}
    asked = headers.get("retry-after", "")
    try:
        seconds = float(asked)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(asked).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None  # absent, or neither
    return seconds if math.isfinite(seconds) else None
