"""`depthkit models`, `models test` and `settings`, as a person or a script calls them.

The calls go over HTTP to a local server, through LiteLLM.
"""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from depthkit.artifacts.claims import claims
from depthkit.cli import app
from depthkit.trials.scripted.policies import Policy, Reply, fixed_replies
from depthkit.trials.scripted.server import ScriptedServer
from depthkit.trials.settings import settings

KEY = "sk-test-0123456789abcdef0123"
READABLE = json.dumps(
    {"analysis": "a", "plan": "b", "commands": [{"keystrokes": "ls\n", "duration": 0.1}]}
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    for name in ("OPENROUTER_API_KEY", "TOKENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def register(base_url: str, **fields: str | float) -> None:
    lines = {"litellm": "openai/mine", "base_url": base_url, "api_key_env": "MY_KEY"} | fields
    text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in lines.items())
    Path("models.toml").write_text("[mine]\n" + text)


@contextmanager
def serving(policy: Policy, **fields: str | float) -> Iterator[ScriptedServer]:
    """A model `mine` that plays this policy."""
    with ScriptedServer({"mine": policy}) as server:
        register(server.base_url, **fields)
        yield server


@contextmanager
def answering(status: int, body: dict[str, Any], **fields: str | float) -> Iterator[list[str]]:
    """A model `mine` whose endpoint always answers this; yields the keys that it was sent."""
    keys: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            keys.append(self.headers["Authorization"])
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            """Nothing on the terminal."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        register(f"http://127.0.0.1:{server.server_port}/v1", **fields)
        yield keys
        server.shutdown()


def completion(content: str, **more: Any) -> dict[str, Any]:
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": content},
    }
    return {"id": "1", "object": "chat.completion", "created": 1, "choices": [choice]} | more


# --- the list ---


def test_models_lists_each_with_its_settings_and_whether_its_key_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    result = run("models", "--json")
    assert result.exit_code == 0
    assert KEY not in result.output
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert rows["deepseek-v4.1-flash"] | {"id": ""} == {
        "name": "deepseek-v4.1-flash",
        "id": "",
        "endpoint": "openrouter",
        "providers": ["deepseek", "together", "wafer"],
        "reasoning_effort": None,
        "effort_reported": "high",
        "endpoint_reported": "OpenRouter",
        "context_tokens": None,
        "max_output_tokens": None,
        "input_usd_per_mtok": 0.3,
        "cached_usd_per_mtok": None,
        "output_usd_per_mtok": 1.2,
        "api_key_env": "OPENROUTER_API_KEY",
        "key_set": True,
        "provenance": "measured",
    }
    assert rows["gpt-6-luna"]["reasoning_effort"] == "medium"
    assert rows["gpt-6.1-sol"]["id"] is None
    assert rows["gpt-6.1-sol"]["key_set"] is False
    assert rows["scripted-merge"]["key_set"] is None


def test_models_prints_a_table_for_people_with_a_model_of_ones_own() -> None:
    register("http://localhost:8000/v1?token=abc", input_usd_per_mtok=1.5)
    text = run("models").stdout
    line = next(line for line in text.splitlines() if line.startswith("mine"))
    assert re.split(r"  +", line)[1:] == [
        "openai/mine",
        "http://localhost:8000/v1",
        "default",
        "1.50",
        "-",
        "not set",
        "measured",
    ]
    assert "abc" not in text
    assert "TokenRouter, address not set" in text


# --- one call ---


def test_a_scripted_model_is_served_for_its_test() -> None:
    result = run("models", "test", "scripted-merge", "--json")
    assert result.exit_code == 0
    row = json.loads(result.stdout)
    assert row["ok"] and row["parsed"]
    assert row["provenance"] == "scripted"
    assert row["seconds"] > 0
    assert row["input_tokens"] > 500  # terminus-2's own instructions
    assert row["cost_usd"] is None


def test_a_call_is_made_once_with_terminus_2s_prompt_and_priced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    prices = {"input_usd_per_mtok": 2, "output_usd_per_mtok": 8, "cached_usd_per_mtok": 1}
    with serving(fixed_replies([Reply(READABLE)]), reasoning_effort="low", **prices) as server:
        row = json.loads(run("models", "test", "mine", "--json").stdout)
        (request,) = server.requests
    assert request["reasoning_effort"] == "low"
    assert "task_complete" in str(request["messages"])
    assert row["commands"] == 1
    assert row["cost_from"] == "prices"
    wanted = (row["input_tokens"] * 2 + row["output_tokens"] * 8) / 1e6
    assert row["cost_usd"] == pytest.approx(wanted)


def test_a_router_says_who_served_and_what_it_billed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    usage = {"prompt_tokens": 900, "completion_tokens": 30, "total_tokens": 930, "cost": 0.00078}
    body = completion(READABLE, model="vendor/mine-0901", provider="Fireworks", usage=usage)
    with answering(200, body, input_usd_per_mtok=100, output_usd_per_mtok=100) as keys:
        row = json.loads(run("models", "test", "mine", "--json").stdout)
        said = run("models", "test", "mine").stdout
    assert keys == [f"Bearer {KEY}"] * 2
    assert (row["cost_usd"], row["cost_from"]) == (0.00078, "endpoint")
    assert row["served_model"] == "vendor/mine-0901"
    assert row["served_provider"] == "Fireworks"
    assert "900 tokens in, 30 out, $0.000780 as billed" in said
    assert "Served: vendor/mine-0901 by Fireworks." in said


def test_an_endpoint_that_does_not_say_its_usage_leaves_tokens_and_cost_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    body = completion(READABLE, model="mine")
    with answering(200, body, input_usd_per_mtok=1, output_usd_per_mtok=1):
        row = json.loads(run("models", "test", "mine", "--json").stdout)
    assert row["ok"]
    unknown = ("input_tokens", "cached_tokens", "output_tokens", "cost_usd", "cost_from")
    assert [row[name] for name in unknown] == [None] * 5


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (Reply("I would list the files."), "terminus-2 cannot read the reply: "),
        (Reply(""), "the reply is empty"),
        (Reply(READABLE[:40], finish_reason="length"), "the reply was cut at the model's output"),
        (Reply(f"bad key {KEY}", status=401), "no answer: AuthenticationError: "),
        (Reply("busy", status=429), "no answer: RateLimitError: "),
        (Reply("broken", status=500), "no answer: InternalServerError: "),
        (Reply(READABLE, delay=5), "no answer: Timeout: "),
    ],
    ids=["prose", "empty", "cut", "wrong key", "rate limit", "server error", "hangs"],
)
def test_a_call_that_fails_says_why_in_one_line_without_the_key(
    reply: Reply, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    with serving(fixed_replies([reply])) as server:
        result = run("models", "test", "mine", "--timeout", "2")
        assert len(server.requests) == 1
    assert result.exit_code == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"mine: {problem}")
    assert KEY not in result.output


def test_a_failed_call_is_json_for_scripts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    body = {"error": {"message": f"Incorrect API key provided: {KEY}", "type": "auth"}}
    with answering(401, body):
        result = run("models", "test", "mine", "--json")
    assert result.exit_code == 1
    row = json.loads(result.stdout)
    assert row["ok"] is False
    assert row["parsed"] is None
    assert "Incorrect API key provided: ***" in row["problem"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpt-6.1-sol", "litellm is not set (the paper calls it through TokenRouter)"),
        ("glm-5.3-flash", "The environment variable OPENROUTER_API_KEY is not set"),
        ("nobody", "'nobody' is not a known model"),
    ],
)
def test_a_model_that_cannot_be_called_is_explained_before_any_call(
    name: str, message: str
) -> None:
    result = run("models", "test", name)
    assert result.exit_code == 2
    assert message in result.stderr


# --- settings ---

TABLE_3 = {
    "Ours on existing tasks": ["terminus-2", "30 min", "10,000 bytes", "150"],
    "Ours": ["terminus-2", "3 h", "10,000 bytes", "150"],
}
"""The rows "This paper" of Table 3, without the column on waiting, which is the same in both."""


def test_settings_are_those_that_table_3_prints() -> None:
    rows = json.loads(run("settings", "--json").stdout)
    printed = {row["tasks"]: row["printed"] for row in rows}
    assert {row[3] for row in printed.values()} == {"Up to 60 s, not blocking"}
    assert {tasks: row[:3] + row[4:] for tasks, row in printed.items()} == TABLE_3
    assert rows[1]["time_limit_minutes_by_segments"] == {"6": 180, "5": 150, "3": 90}


def test_settings_prints_the_same_for_people() -> None:
    lines = run("settings").stdout.splitlines()
    for tasks, cells in TABLE_3.items():
        (line,) = (line for line in lines if line.startswith(f"{tasks}  "))
        assert [cell in line for cell in cells] == [True] * 4
    assert lines[-1].strip() == "30 min a segment: 3 h with 6, 2.5 h with 5, 1.5 h with 3 segments."


def test_the_settings_that_the_paper_states_are_claims_that_agree() -> None:
    settings = [r for r in claims("demo", "B").results if r.kind == "setting"]
    found = [r for r in settings if r.claim.id.startswith("table-3/") and not r.claim.repeats]
    assert len(found) == 6
    assert all(result.agrees for result in found)


def test_the_printed_limits_are_the_ones_that_the_agent_keeps(tmp_path: Path) -> None:
    """A model that asks to wait for an hour, and an output of a megabyte, through the agent."""
    import asyncio

    from harbor.llms.chat import Chat

    from depthkit.trials.agent import CappedTerminus2

    (row, _) = settings()
    slow = json.loads(READABLE)
    slow["commands"][0]["duration"] = 3600
    with ScriptedServer({"mine": fixed_replies([Reply(json.dumps(slow))])}) as server:
        agent = CappedTerminus2(
            logs_dir=tmp_path,
            model_name="openai/mine",
            api_base=server.base_url,
            llm_kwargs={"api_key": "none"},
        )
        commands, *_ = asyncio.run(agent._handle_llm_interaction(Chat(agent._llm), "hi"))
    assert commands[0].duration_sec == row.wait_seconds
    shown = agent._limit_output_length("x" * 1_000_000)
    assert shown.count("x") == row.output_bytes
    assert agent.options.ceiling == row.turns
