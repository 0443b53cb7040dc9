"""A local OpenAI-compatible HTTP endpoint that plays scripted policies.

The harness reaches it like any provider, through LiteLLM and HTTP; only what the request says
can enter an answer. Token counts are o200k_base counts of the message texts. ``cached_tokens``
models prefix caching: what this request shares with the conversation's previous one, that is all
messages before the last assistant message.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import TracebackType
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from depthkit.tasks.work import work_of_script
from depthkit.trials.budget import Price
from depthkit.trials.scripted.policies import POLICIES, Policy, Reply

_START_SECONDS = 10.0
_ERROR_TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}


class ScriptedServer:
    """The endpoint, as a context manager: serving inside ``with``, gone after it.

    Policies are looked up by the model name of the request (``openai/NAME`` for LiteLLM). A reply
    is cut at the request's ``max_tokens``.

    Args:
        policies: Policy by name; by default all there are.
        prices: What every request that a policy answers is billed at, whether or not the client
            is still there when the answer is ready; nothing is billed without.
        credit: Dollars on the account, told as OpenRouter tells them; not told without.
        states_cost: Whether an answer's usage has its ``cost``.

    Attributes:
        base_url: Address for an OpenAI client, such as ``http://127.0.0.1:41234/v1``.
        billed: Dollars billed so far.
    """

    def __init__(
        self,
        policies: Mapping[str, Policy] | None = None,
        *,
        prices: Price | None = None,
        credit: float | None = None,
        states_cost: bool = False,
    ) -> None:
        self._policies = dict(POLICIES if policies is None else policies)
        self._prices, self._credit, self._states_cost = prices, credit, states_cost
        self.billed = 0.0
        self._requests: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        routes = [
            Route("/v1/chat/completions", self._complete, methods=["POST"]),
            Route("/v1/models", self._models),
            Route("/v1/credits", self._credits),
        ]
        config = uvicorn.Config(
            Starlette(routes=routes),
            lifespan="off",
            log_level="error",
            access_log=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run,
            kwargs={"sockets": [self._socket]},
            name="scripted-model-server",
            daemon=True,
        )

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Bodies of the completion requests received so far, in order; headers are not kept."""
        with self._lock:
            return list(self._requests)

    def __enter__(self) -> Self:
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError("the local server of scripted models did not start")
            time.sleep(0.005)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    async def _models(self, _: Request) -> Response:
        models = [
            {"id": name, "object": "model", "created": 0, "owned_by": "depthkit"}
            for name in self._policies
        ]
        return JSONResponse({"object": "list", "data": models})

    async def _credits(self, _: Request) -> Response:
        if self._credit is None:
            return _error(404, "this endpoint has no accounts")
        return JSONResponse({"data": {"total_credits": self._credit, "total_usage": self.billed}})

    async def _complete(self, request: Request) -> Response:
        try:
            body = json.loads(await request.body())
            model, messages = body["model"], body["messages"]
            prompt, cached = prompt_tokens(messages)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return _error(400, f"not a chat completion request: {error!r}")
        with self._lock:
            self._requests.append(body)
        policy = self._policies.get(model)
        if policy is None:
            return _error(404, f"the model {model!r} does not exist here")
        answer = policy(messages)
        reply = Reply(answer) if isinstance(answer, str) else answer
        written = _tokens(reply.content)
        if written > (most := body.get("max_tokens") or written):
            written = most
            reply = replace(reply, content=_cut(reply.content, most), finish_reason="length")
        usage: dict[str, Any] = {}
        if reply.status == 200 and self._prices is not None:
            cost = self._prices.cost(prompt, cached, written)
            with self._lock:
                self.billed += cost
            usage = {"cost": cost} if self._states_cost else {}
        await asyncio.sleep(reply.delay)
        if reply.status != 200:
            return _error(reply.status, reply.content, reply.headers)
        completion = {
            "id": f"chatcmpl-{len(messages)}",
            "created": int(time.time()),
            "model": model,
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": written,
                "total_tokens": prompt + written,
                "prompt_tokens_details": {"cached_tokens": cached},
                **usage,
            },
        }
        if not reply.usage:
            del completion["usage"]
        if body.get("stream"):
            return StreamingResponse(
                _chunks(completion, reply), media_type="text/event-stream", headers=reply.headers
            )
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": reply.content},
            "finish_reason": reply.finish_reason,
        }
        # In ASCII, which carries half of a UTF-16 pair too.
        return Response(
            json.dumps({**completion, "object": "chat.completion", "choices": [choice]}),
            media_type="application/json",
            headers=reply.headers,
        )


def prompt_tokens(messages: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Tokens of a request's messages, and how many of them the previous request held as well."""
    counts = [_message_tokens(json.dumps(message.get("content"))) for message in messages]
    replies = [i for i, message in enumerate(messages) if message.get("role") == "assistant"]
    return sum(counts), sum(counts[: replies[-1]]) if replies else 0


@lru_cache(maxsize=4096)  # every request repeats the conversation so far
def _message_tokens(content: str) -> int:
    """Tokens of a message's content, given as JSON: a string or a list of text parts."""
    value = json.loads(content)
    parts = value if isinstance(value, list) else [{"text": value or ""}]
    return sum(_tokens(part.get("text", "")) for part in parts)


def _tokens(text: str) -> int:
    return work_of_script(text).tokens


def _cut(text: str, tokens: int) -> str:
    """The longest beginning of a text, by halves, that has at most so many tokens."""
    end = len(text)
    while _tokens(text[:end]) > tokens:
        end //= 2
    return text[:end]


async def _chunks(completion: Mapping[str, Any], reply: Reply) -> AsyncIterator[str]:
    """The same completion as server-sent events: the content, the end, the usage."""
    head = {key: value for key, value in completion.items() if key != "usage"}
    head["object"] = "chat.completion.chunk"
    delta = {"role": "assistant", "content": reply.content}
    for choices, extra in (
        ([{"index": 0, "delta": delta, "finish_reason": None}], {}),
        ([{"index": 0, "delta": {}, "finish_reason": reply.finish_reason}], {}),
        *([([], {"usage": completion["usage"]})] if reply.usage else []),
    ):
        yield f"data: {json.dumps({**head, 'choices': choices, **extra})}\n\n"
    yield "data: [DONE]\n\n"


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error in the shape that OpenAI clients read."""
    kind = _ERROR_TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    body = {"error": {"message": message, "type": kind, "code": None, "param": None}}
    return JSONResponse(body, status_code=status, headers=headers)
