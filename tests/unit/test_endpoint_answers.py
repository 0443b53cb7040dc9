"""What the endpoint's client makes of odd but legal answers, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from depthkit.corpus.replies import REPLIES_FILE, ReplyLog, read_replies
from depthkit.trials.llm import ModelCallError, ModelEndpoint, RefusedError
from depthkit.trials.patience import PATIENCE, Patience

TEXT = '{"commands": []}'


def completion(message: dict[str, Any], finish: str = "stop", **usage: Any) -> dict[str, Any]:
    tokens = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010, **usage}
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    return {**head, "choices": [choice], "usage": tokens}


def error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", **more}}


CALL = {"id": "1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
ANSWERS: dict[str, tuple[int, Any]] = {
    "tool-calls": (200, completion({"content": None, "tool_calls": [CALL]}, "tool_calls")),
    "reasoning-alone": (200, completion({"content": None, "reasoning_content": TEXT})),
    "empty": (200, completion({"content": ""})),
    "filtered": (200, completion({"content": TEXT}, "content_filter")),
    "refusal": (200, completion({"content": None, "refusal": "I can't help"})),
    "by-code": (400, error("No.", code="content_policy_violation")),
    "by-phrase": (400, error("Your request was flagged as potentially violating our usage policy")),
    "other-400": (400, error("thread-safety: parameter 'foo' refused a connection; unsafety")),
    "rate-limit": (429, error("our safety team refused; flagged", type="rate_limit_error")),
    "unauthorized": (401, error("no such key")),
    "page": (200, b"<html>502 bad gateway</html>"),
    "nothing": (200, b""),
    "stream": (200, b'data: {"choices": [{"delta": {"content": "x"}}]}\n\ndata: [DONE]\n\n'),
    "no-choices": (200, {"data": [{"id": "m"}]}),
    "parts": (200, completion({"content": [{"type": "text", "text": TEXT}]})),
    "error-in-200": (200, {"error": {"message": "upstream overloaded", "code": 502}}),
    "reasoning-apart": (
        200,
        completion(
            {"content": TEXT},
            total_tokens=1510,
            completion_tokens_details={"reasoning_tokens": 500},
        ),
    ),
    "beyond-counting": (200, completion({"content": TEXT}, prompt_tokens=2**63)),
    "reasoning-within": (
        200,
        completion({"content": TEXT}, completion_tokens_details={"reasoning_tokens": 5}),
    ),
}


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        asked = self.path.split("/")[1]
        if asked == "not-http":
            self.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")
            self.close_connection = True
            return
        if asked == "redirects":
            self.send_response(307)
            self.send_header("Location", self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        status, body = ANSWERS[asked]
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture
def endpoint(port: int, request: pytest.FixtureRequest) -> Iterator[ModelEndpoint]:
    prices = {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-5}
    impatient = PATIENCE.set(Patience(tries=2, blip_seconds=0, first_pause=0.01))
    yield ModelEndpoint(
        model_name=f"openai/{request.param}",
        api_base=f"http://127.0.0.1:{port}/{request.param}/v1",
        api_key="k",
        model_info={"max_input_tokens": 100_000, "max_output_tokens": 1_000, **prices},
    )
    PATIENCE.reset(impatient)


def called(endpoint: ModelEndpoint, times: int = 1) -> Exception | None:
    """The error of the last of some calls, if there is one."""

    async def call() -> Exception | None:
        for _ in range(times):
            try:
                await endpoint.call("go", message_history=[])
            except Exception as caught:
                return caught
        return None

    return asyncio.run(call())


@pytest.mark.parametrize("endpoint", ["filtered", "refusal", "by-code", "by-phrase"], indirect=True)
def test_what_the_provider_calls_a_refusal_is_one(endpoint: ModelEndpoint) -> None:
    assert isinstance(called(endpoint), RefusedError)


@pytest.mark.parametrize(
    ("endpoint", "outlook"),
    [("other-400", "stays"), ("rate-limit", "may_pass"), ("unauthorized", "all")],
    indirect=["endpoint"],
)
def test_words_in_an_error_are_no_refusal(endpoint: ModelEndpoint, outlook: str) -> None:
    assert isinstance(called(endpoint), ModelCallError)
    assert endpoint._purse.outlook == outlook


@pytest.mark.parametrize(
    ("endpoint", "named", "held"),
    [
        ("tool-calls", "tool calls", (None, ["bash"])),
        ("reasoning-alone", "reasoning", (TEXT, [])),
    ],
    indirect=["endpoint"],
)
def test_replies_without_text_are_named_by_what_they_hold(
    endpoint: ModelEndpoint, named: str, held: tuple[Any, ...], tmp_path: Path
) -> None:
    endpoint.replies = ReplyLog(tmp_path / "agent" / REPLIES_FILE)
    (tmp_path / "agent").mkdir()
    assert called(endpoint, 2) is None  # a turn each, which does not parse
    fault = called(endpoint)
    assert isinstance(fault, ModelCallError)
    assert f"3 replies with {named} and no text" in str(fault)
    kept = next(read_replies(tmp_path))
    assert kept.reply == ""
    assert (kept.reasoning, [call["function"]["name"] for call in kept.tool_calls]) == held


@pytest.mark.parametrize("endpoint", ["empty"], indirect=True)
def test_empty_replies_alone_are_a_refusal(endpoint: ModelEndpoint) -> None:
    assert isinstance(called(endpoint, 3), RefusedError)


@pytest.mark.parametrize(
    "endpoint",
    ["page", "nothing", "stream", "no-choices", "parts", "not-http", "redirects"],
    indirect=True,
)
def test_an_unreadable_answer_is_said_to_be_one_and_not_waited_for(endpoint: ModelEndpoint) -> None:
    assert "no chat completion; is base_url right?" in str(called(endpoint))
    assert endpoint._purse.outlook == "stays"
    assert endpoint.cost_usd is None  # it may have been billed


@pytest.mark.parametrize("endpoint", ["error-in-200"], indirect=True)
def test_an_error_that_comes_with_status_200_may_pass(endpoint: ModelEndpoint) -> None:
    assert "upstream overloaded" in str(called(endpoint))
    assert endpoint._purse.outlook == "may_pass"


@pytest.mark.parametrize(
    ("endpoint", "output"),
    [("reasoning-apart", 510), ("reasoning-within", 10), ("filtered", 10), ("refusal", 10)],
    indirect=["endpoint"],
)
def test_all_tokens_that_are_billed_are_counted(endpoint: ModelEndpoint, output: int) -> None:
    called(endpoint)
    assert endpoint.tokens == (1000, 0, output)
    assert endpoint.cost_usd == pytest.approx(1000e-6 + output * 1e-5)


@pytest.mark.parametrize("endpoint", ["beyond-counting"], indirect=True)
def test_a_count_that_cannot_be_one_is_unknown(endpoint: ModelEndpoint) -> None:
    assert called(endpoint) is None
    assert (endpoint.usage_complete, endpoint.cost_usd) == (False, None)


@pytest.mark.parametrize("endpoint", ["unauthorized", "other-400", "rate-limit"], indirect=True)
def test_an_error_that_is_not_billed_costs_nothing(endpoint: ModelEndpoint) -> None:
    called(endpoint)
    assert endpoint.cost_usd == 0
