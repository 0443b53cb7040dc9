"""The local endpoint, over real HTTP and through LiteLLM."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from depthkit.trials.models import select_models
from depthkit.trials.scripted.policies import Reply, after_faults, fixed_replies
from depthkit.trials.scripted.server import ScriptedServer, prompt_tokens

GO = [{"role": "user", "content": "go"}]

DELAY = 1.0
"""Seconds that a late reply takes."""

POLICIES = {
    "plain": fixed_replies(["first", "second"]),
    "cut": fixed_replies([Reply("half of a", finish_reason="length")]),
    "empty": fixed_replies([""]),
    "busy": fixed_replies([Reply("slow down", status=429, headers={"retry-after": "0"})]),
    "broken": fixed_replies([Reply("out of order", status=500)]),
    "closed": fixed_replies([Reply("no such key", status=401)]),
    "late": fixed_replies([Reply("here", delay=DELAY)]),
    "hangs": fixed_replies([Reply("never", delay=3600)]),
}


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(POLICIES) as running:
        yield running


def post(server: ScriptedServer, **body: Any) -> httpx.Response:
    return httpx.post(f"{server.base_url}/chat/completions", json=body, timeout=60)


def test_a_reply_comes_back_as_a_chat_completion(server: ScriptedServer) -> None:
    reply = post(server, model="plain", messages=GO).raise_for_status().json()
    assert reply["object"] == "chat.completion"
    assert reply["model"] == "plain"
    (choice,) = reply["choices"]
    assert choice["message"] == {"role": "assistant", "content": "first"}
    assert choice["finish_reason"] == "stop"


def test_models_are_listed(server: ScriptedServer) -> None:
    listed = httpx.get(f"{server.base_url}/models").raise_for_status().json()
    assert [model["id"] for model in listed["data"]] == list(POLICIES)


def test_an_unknown_model_and_a_malformed_request_are_errors(server: ScriptedServer) -> None:
    unknown = post(server, model="nobody", messages=GO)
    assert unknown.status_code == 404
    assert "nobody" in unknown.json()["error"]["message"]
    for body in ({"model": "plain"}, {"model": "plain", "messages": "go"}):
        assert post(server, **body).status_code == 400
    url = f"{server.base_url}/chat/completions"
    assert httpx.post(url, content=b"{not json").status_code == 400
    assert httpx.post(url, content=b"[]").status_code == 400


@pytest.mark.parametrize(("model", "status"), [("busy", 429), ("broken", 500), ("closed", 401)])
def test_faults_are_played(server: ScriptedServer, model: str, status: int) -> None:
    response = post(server, model=model, messages=GO)
    assert response.status_code == status
    assert response.json()["error"]["message"] in {"slow down", "out of order", "no such key"}
    assert response.headers.get("retry-after") == ("0" if model == "busy" else None)


def test_cut_and_empty_replies_are_played(server: ScriptedServer) -> None:
    cut = post(server, model="cut", messages=GO).json()["choices"][0]
    assert (cut["message"]["content"], cut["finish_reason"]) == ("half of a", "length")
    assert post(server, model="empty", messages=GO).json()["choices"][0]["message"]["content"] == ""


def test_a_late_reply_holds_up_nobody_else(server: ScriptedServer) -> None:
    started = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        late = [pool.submit(post, server, model="late", messages=GO) for _ in range(8)]
        assert post(server, model="plain", messages=GO).status_code == 200
        replies = [each.result().json() for each in late]
    assert all(reply["choices"][0]["message"]["content"] == "here" for reply in replies)
    assert DELAY <= time.monotonic() - started < 8 * DELAY  # at the same time, not in turn


def test_usage_counts_tokens_and_what_the_previous_request_held(server: ScriptedServer) -> None:
    question = {"role": "user", "content": "List the files, please."}
    answer = {"role": "assistant", "content": "ls -la"}
    first = post(server, model="plain", messages=[question]).json()["usage"]
    assert first["prompt_tokens"] > 3
    assert first["completion_tokens"] == 1
    assert first["prompt_tokens_details"]["cached_tokens"] == 0
    then = post(server, model="plain", messages=[question, answer, question]).json()["usage"]
    assert then["prompt_tokens_details"]["cached_tokens"] == first["prompt_tokens"]
    assert then["total_tokens"] == then["prompt_tokens"] + then["completion_tokens"]


def test_text_parts_count_like_a_string() -> None:
    parts = [{"type": "text", "text": "List the files, please."}]
    assert prompt_tokens([{"role": "user", "content": parts}]) == prompt_tokens(
        [{"role": "user", "content": "List the files, please."}]
    )
    assert prompt_tokens([{"role": "user", "content": None}]) == (0, 0)


def test_requests_are_recorded_as_they_came_without_the_key() -> None:
    with ScriptedServer({"plain": fixed_replies(["yes"])}) as server:
        httpx.post(
            f"{server.base_url}/chat/completions",
            json={"model": "plain", "messages": GO, "provider": {"order": ["x"]}},
            headers={"Authorization": "Bearer sk-very-secret"},
        )
        assert server.requests == [{"model": "plain", "messages": GO, "provider": {"order": ["x"]}}]
        assert "sk-very-secret" not in json.dumps(server.requests)


def test_the_server_is_gone_after_the_block_even_while_a_request_hangs() -> None:
    threads = threading.active_count()
    with ScriptedServer(POLICIES) as server:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(
                f"{server.base_url}/chat/completions",
                json={"model": "hangs", "messages": GO},
                timeout=0.2,
            )
        started = time.monotonic()
    assert time.monotonic() - started < 30
    assert threading.active_count() == threads
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.base_url}/models")


def test_a_streamed_reply_holds_the_same(server: ScriptedServer) -> None:
    response = post(server, model="cut", messages=GO, stream=True)
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    assert lines.pop() == "[DONE]"
    chunks = [json.loads(line) for line in lines]
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    assert "".join(choice["delta"].get("content", "") for choice in choices) == "half of a"
    assert choices[-1]["finish_reason"] == "length"
    assert chunks[-1]["usage"]["prompt_tokens"] == 1


# --- as the harness reaches it ---


def ask(server: ScriptedServer, model: str, **options: Any) -> Any:
    import litellm

    return litellm.completion(
        model=f"openai/{model}",
        api_base=server.base_url,
        api_key="scripted",
        messages=GO,
        max_retries=0,
        **options,
    )


def test_litellm_reads_reply_and_usage(server: ScriptedServer) -> None:
    response = ask(server, "plain")
    assert response.choices[0].message.content == "first"
    assert response.usage.prompt_tokens == 1
    assert ask(server, "cut").choices[0].finish_reason == "length"
    parts = [chunk.choices[0].delta.content or "" for chunk in ask(server, "plain", stream=True)]
    assert "".join(parts) == "first"


def test_litellm_tells_the_faults_apart(server: ScriptedServer) -> None:
    import litellm

    for model, error in (
        ("busy", litellm.RateLimitError),
        ("broken", litellm.InternalServerError),
        ("closed", litellm.AuthenticationError),
        ("nobody", litellm.NotFoundError),
    ):
        with pytest.raises(error):
            ask(server, model)
    with pytest.raises(litellm.Timeout):
        ask(server, "hangs", timeout=0.2)


def test_a_passing_fault_passes() -> None:
    import litellm

    flaky = after_faults([Reply("later", status=500)], fixed_replies(["fine"]))
    with ScriptedServer({"flaky": flaky}) as server:
        with pytest.raises(litellm.InternalServerError):
            ask(server, "flaky")
        assert ask(server, "flaky").choices[0].message.content == "fine"
        assert len(server.requests) == 2


def test_the_registered_policies_answer_in_the_format_of_the_harness() -> None:
    from harbor.agents.terminus_2.terminus_json_plain_parser import TerminusJSONPlainParser

    template = "Task Description:\n{}\n\nCurrent terminal state:\n"
    task = "See /app/steps.txt. Write the answer to step i to /app/answers/i."
    with ScriptedServer() as server:
        for spec in select_models(["scripted-merge", "scripted-step"]):
            assert spec.policy is not None
            messages = [{"role": "user", "content": template.format(task)}]
            reply = post(server, model=spec.policy, messages=messages).json()
            content = reply["choices"][0]["message"]["content"]
            parsed = TerminusJSONPlainParser().parse_response(content)
            assert (parsed.error, parsed.warning) == ("", "")
            assert [c.keystrokes for c in parsed.commands] == ["cat /app/steps.txt\n"]
