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

_REFUSAL_CODE = re.compile(
    r"content_?(policy|filter)|responsible_?ai|moderation|safety|refus|cyber_?(policy|security)",
    re.IGNORECASE,
)
"""In the code or type of an error, which providers choose."""

_REFUSAL = re.compile(
    r"\bcontent[ _-](policy|filter|management)|\bmoderation\b|\bflagged (as|by|for)\b"
    r"|\bsafety (system|filter|setting|polic|guideline)|\busage polic|\bcyber[ -]?(policy|risk)",
    re.IGNORECASE,
)
"""In its message: what providers write, whole phrases, since a word alone says nothing."""

_UNANSWERED = ("APIConnectionError", "TransportError", "ClientError", "TimeoutError")
"""Errors, by class or base class, of a request to which no whole answer came."""

_MISREAD = ("BadStatusLine", "DecodingError", "TooManyRedirects")
"""Those among them, by class, of answers that did come."""


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
    if _status(error) not in (400, 403, 422, 451):
        return False
    for cause in _causes(error):
        if isinstance(body := getattr(cause, "body", None), dict):
            codes = f"{body.get('code')} {body.get('type')}"
            text = f"{body.get('message')} {body.get('metadata')}"
            return bool(_REFUSAL_CODE.search(codes) or _REFUSAL.search(text))
    return _REFUSAL.search(str(error)) is not None


def unreadable(error: Exception) -> bool:
    """Whether an answer came that is neither a completion nor an error: a page, a stream, nothing.

    The client library gives such an error a status of its own making.
    """
    if _status(error) is not None:
        return False
    if any(type(cause).__name__ in _MISREAD for cause in _causes(error)):
        return True
    for cause in _causes(error):
        if any(base.__name__ in _UNANSWERED for base in type(cause).__mro__):
            return False
        if getattr(cause, "status_code", 500) != 500:
            return False  # an error that came with status 200
    return True


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
