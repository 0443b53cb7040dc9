"""The model endpoint of a run: Harbor's LiteLLM client with three things made definite.

A request is retried a bounded number of times and then fails with :class:`ModelCallError`; a
reply cut at its length limit is a reply, with its tokens counted; and no request waits for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any, override

from harbor.llms.base import ContextLengthExceededError, LLMResponse, OutputLengthExceededError
from harbor.llms.lite_llm import LiteLLM
from harbor.models.metric import UsageInfo

REQUEST_SECONDS = 600
"""Longest time one request may take. Reasoning models are slow; LiteLLM's own limit is 100 min."""

TRIES = 4
"""Requests made for one reply before the run ends with a model error."""

_PAUSES = (1.0, 4.0, 15.0)


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


class ModelEndpoint(LiteLLM):
    """LiteLLM client of one run.

    Attributes:
        cut: Whether the last reply was cut at its length limit.
        failure: Error of the last request, or ``None`` if it was answered. terminus-2 answers
            some errors with a reply of its own making; this tells one from the model's.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cut = False
        self.failure: Exception | None = None
        self._usage: UsageInfo | None = None

    @override
    async def call(self, prompt: str, **kwargs: Any) -> LLMResponse:  # type: ignore[override]
        """One reply, after at most :data:`TRIES` requests.

        Raises:
            ModelCallError: If no request was answered.
            ContextLengthExceededError: If the conversation is too long for the model.
        """
        self.cut, self.failure, self._usage = False, None, None
        # Retries are made here alone: the client library's are switched off by `max_retries`.
        once = LiteLLM.call.__wrapped__
        kwargs = {"timeout": REQUEST_SECONDS, **kwargs, "max_retries": 0}
        for attempt in range(TRIES):
            try:
                reply: LLMResponse = await once(self, prompt, **kwargs)
            except OutputLengthExceededError as error:
                self.cut = True
                return LLMResponse(
                    content=error.truncated_response or "",
                    model_name=self._model_name,
                    usage=self._usage,
                )
            except ContextLengthExceededError as error:
                self.failure = error
                raise
            except Exception as error:
                self.failure = ModelCallError(error)
                if attempt == TRIES - 1 or not _may_pass(error):
                    raise self.failure from error
                await asyncio.sleep(_PAUSES[attempt])
            else:
                self.failure = None
                return reply
        raise AssertionError("unreachable")

    @override
    def _extract_usage_info(self, response: Any) -> UsageInfo | None:
        # The one place that sees the usage of a cut reply before it becomes an exception.
        self._usage = super()._extract_usage_info(response)
        return self._usage


def _may_pass(error: Exception) -> bool:
    """Whether the same request may succeed later: everything but the client's own mistakes."""
    status = getattr(error, "status_code", None)
    return not (isinstance(status, int) and 400 <= status < 500 and status not in (408, 409, 429))
