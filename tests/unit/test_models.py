"""The model registry and what it hands to the harness."""

from __future__ import annotations

import asyncio
import http.server
import os
import re
import threading
import tomllib
import urllib.request
from pathlib import Path
from typing import Any, ClassVar

import pytest

from depthkit.errors import DepthkitError
from depthkit.trials import models
from depthkit.trials.models import (
    EVALUATED,
    MEASURING_SET,
    NO_KEY,
    ModelSpec,
    load_models,
    select_models,
)
from depthkit.trials.scripted.policies import POLICIES, Reply, fixed_replies
from depthkit.trials.scripted.server import ScriptedServer


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_measuring_set_has_the_prices_and_providers_of_the_paper() -> None:
    first, second = select_models(MEASURING_SET)
    assert (first.input_usd_per_mtok, first.output_usd_per_mtok) == (0.30, 1.20)
    assert (second.input_usd_per_mtok, second.output_usd_per_mtok) == (0.15, 0.50)
    assert first.providers == ["deepseek", "together", "wafer"]
    assert second.providers == ["fireworks"]
    assert second.model_name == "openrouter/z-ai/glm-5.3-flash"
    assert first.cached_usd_per_mtok is None
    assert {first.provenance, second.provenance} == {"measured"}


def test_every_policy_is_registered_and_marked_as_scripted() -> None:
    scripted = {s.policy: s for s in load_models().values() if s.policy is not None}
    assert set(scripted) == set(POLICIES)
    assert {spec.provenance for spec in scripted.values()} == {"scripted"}
    assert scripted["scripted-merge"].model_name == "openai/scripted-merge"


def test_the_six_evaluated_models_have_the_settings_of_the_paper() -> None:
    specs = select_models(EVALUATED)
    assert [s.effort_reported for s in specs] == ["high", "medium", "medium", "high", "-", "max"]
    assert [s.reasoning_effort for s in specs] == [None, None, "medium", None, None, None]
    assert [s.endpoint_reported for s in specs] == ["TokenRouter"] * 2 + ["OpenRouter"] * 4
    providers = [["openai"], ["deepseek", "together", "wafer"], ["xiaomi"], ["fireworks"]]
    assert [s.providers for s in specs] == [None, None, *providers]
    priced = [s.name for s in specs if s.input_usd_per_mtok is not None]
    assert priced == ["deepseek-v4.1-flash", "glm-5.3-flash"]
    for spec in specs[2:]:
        spec.check_ready({"OPENROUTER_API_KEY": "x"})


@pytest.mark.parametrize("name", ["gpt-6.1-sol", "claude-sonnet-5.5"])
def test_an_id_and_an_address_that_nobody_prints_are_asked_for_not_guessed(name: str) -> None:
    (spec,) = select_models([name])
    with pytest.raises(DepthkitError) as caught:
        spec.check_ready({"TOKENROUTER_API_KEY": "x"})
    assert f'models.toml: ["{name}"] litellm is not set' in str(caught.value)
    assert "through TokenRouter); give the id that LiteLLM calls it by and base_url" in str(
        caught.value
    )


def test_a_missing_key_is_named_before_anything_runs() -> None:
    (spec,) = select_models(["glm-5.3-flash"])
    with pytest.raises(DepthkitError, match="OPENROUTER_API_KEY is not set"):
        spec.check_ready({})
    spec.check_ready({"OPENROUTER_API_KEY": "x"})


def test_the_file_in_the_working_directory_is_laid_over_the_bundled_one(elsewhere: Path) -> None:
    (elsewhere / "models.toml").write_text(
        '["glm-5.3-flash"]\nreasoning_effort = "high"\ninput_usd_per_mtok = 1\n'
        '[mine]\nlitellm = "openai/mine"\nbase_url = "http://localhost:8000/v1"\n'
    )
    glm, mine = select_models(["glm-5.3-flash", "mine"])
    assert (glm.reasoning_effort, glm.input_usd_per_mtok) == ("high", 1)
    assert glm.output_usd_per_mtok == 0.50
    assert mine.agent_kwargs()["api_base"] == "http://localhost:8000/v1"


def test_a_given_file_takes_the_place_of_the_one_in_the_working_directory(elsewhere: Path) -> None:
    (elsewhere / "models.toml").write_text('[here]\nlitellm = "openai/here"\n')
    other = elsewhere / "other.toml"
    other.write_text('[there]\nlitellm = "openai/there"\n')
    assert "there" in load_models(other)
    assert "here" not in load_models(other)
    assert "here" in load_models()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a", r"own\.toml: is not valid TOML"),
        ("a = " + "[" * 100_000, r"own\.toml: is nested too deeply; make it flatter"),
        ("[caf\udce9]", r"own\.toml: line 1 is not UTF-8"),
        ("litellm = 'openai/x'", r"own\.toml: litellm stands outside a model's table"),
        ("[a]\ncolour = 1", r'own\.toml: \["a"\] colour is not a field; use one of api_key_env, '),
        ("[a]\ninput_usd_per_mtok = 'ten'", r'\["a"\] input_usd_per_mtok is "ten"; it must be'),
        ("[a]\ninput_usd_per_mtok = -1", r"input_usd_per_mtok is -1; it must be a price"),
        ("[a]\ninput_usd_per_mtok = inf", r"input_usd_per_mtok is Infinity; it must be a price"),
        ("[a]\ncontext_tokens = 1.5", r"context_tokens is 1\.5; it must be a whole number"),
        ("[a]\nlitellm = 'glm'", r'litellm is "glm"; it must be a LiteLLM id with its provider'),
        ("[a]\npolicy = 'clever'", r'policy is "clever"; it must be one of scripted-merge, '),
        ("[a]\nproviders = 'x'", r'providers is "x"; it must be a list of OpenRouter'),
        ("[a]\nproviders = [1]", r"providers is \[1\]; it must be a list of OpenRouter"),
        ("[a]\nreasoning_effort = 'huge'", r'reasoning_effort is "huge"; it must be one of none, '),
        ("[a]\nbase_url = 'ftp://x'", r"base_url must be an http or https address"),
        ("[a]\nname = 'b'", r"name is not a field; the heading is the name"),
    ],
)
def test_a_bad_file_gives_one_error_with_file_field_and_mend(
    elsewhere: Path, text: str, message: str
) -> None:
    path = elsewhere / "own.toml"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(DepthkitError, match=message) as caught:
        load_models(path)
    assert "\n" not in str(caught.value)


def test_a_key_written_in_place_of_its_variable_is_not_repeated(elsewhere: Path) -> None:
    for text in (
        "[a]\napi_key_env = 'sk-or-v1-abc'",
        "[a]\nbase_url = 'https://me:sk-or-v1-abc@host/v1'",
    ):
        (elsewhere / "models.toml").write_text(text)
        with pytest.raises(DepthkitError) as caught:
            load_models()
        assert "sk-or-v1-abc" not in str(caught.value)


def test_a_missing_file_and_an_unknown_name_are_explained(elsewhere: Path) -> None:
    with pytest.raises(DepthkitError, match=r"gone\.toml: cannot be read .No such file"):
        load_models(elsewhere / "gone.toml")
    with pytest.raises(
        DepthkitError, match="'gpt' is not a known model; choose from claude-sonnet-5"
    ):
        select_models(["gpt"])
    with pytest.raises(DepthkitError, match="named twice"):
        select_models(["scripted-step", "scripted-step"])


def test_prices_reach_the_harness_a_token_and_cached_input_is_never_too_cheap() -> None:
    info = ModelSpec(
        name="a", input_usd_per_mtok=2, output_usd_per_mtok=8, context_tokens=1000
    ).agent_kwargs()["model_info"]
    assert info["input_cost_per_token"] == 2e-6
    assert info["output_cost_per_token"] == 8e-6
    assert info["cache_read_input_token_cost"] == 2e-6
    assert info["max_input_tokens"] == 1000
    cheap = ModelSpec(
        name="a", input_usd_per_mtok=2, cached_usd_per_mtok=0.5, output_usd_per_mtok=8
    ).agent_kwargs()["model_info"]
    assert cheap["cache_read_input_token_cost"] == 5e-7


def test_a_cost_is_unknown_where_a_price_is() -> None:
    assert "model_info" not in ModelSpec(name="a", input_usd_per_mtok=2).agent_kwargs()


def test_a_scripted_model_needs_the_address_of_its_server() -> None:
    (spec,) = select_models(["scripted-step"])
    with pytest.raises(ValueError, match="base_url"):
        spec.agent_kwargs()


def terminus(spec: ModelSpec, base_url: str, logs: Path) -> Any:
    from harbor.agents.terminus_2.terminus_2 import Terminus2

    return Terminus2(
        logs_dir=logs,
        model_name=spec.model_name,
        model_api_key_name=spec.api_key_env,
        **spec.agent_kwargs(base_url=base_url),
    )


def test_terminus_takes_the_options_and_calls_the_endpoint_with_them(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harbor.llms.chat import Chat

    monkeypatch.setenv("OPENAI_API_KEY", "a-real-key")
    pinned = ModelSpec(
        name="pinned",
        litellm="openai/pinned",
        providers=["one", "two"],
        reasoning_effort="low",
        context_tokens=5000,
        input_usd_per_mtok=2,
        output_usd_per_mtok=8,
    )
    (scripted,) = select_models(["scripted-merge"])
    policies = {"pinned": fixed_replies([Reply("hello")]), **POLICIES}
    with ScriptedServer(policies) as server:
        for spec in (pinned, scripted):
            agent = terminus(spec, server.base_url, elsewhere)
            chat = Chat(agent._llm)
            asyncio.run(agent._query_llm(chat, "Task Description:\nhi"))
            assert agent._llm.get_model_context_limit() == spec.context_tokens
            tokens = chat.total_input_tokens, chat.total_output_tokens
            cost = (tokens[0] * 2 + tokens[1] * 8) / 1e6 if spec is pinned else 0
            assert chat.total_cost == pytest.approx(cost)
        sent = server.requests[0]
        assert sent["provider"] == {"order": ["one", "two"], "allow_fallbacks": False}
        assert sent["reasoning_effort"] == "low"
        assert "provider" not in server.requests[1]
    assert agent._llm._llm_kwargs["api_key"] == NO_KEY


def examples() -> dict[str, Any]:
    """The tables that the header of the bundled file shows."""
    header = Path(models.__file__).with_name("models.toml").read_text().split("\n\n")[0]
    shown = re.findall(r"^#   (\[?[\"a-z].*)$", header, re.MULTILINE)
    start = next(i for i, line in enumerate(shown) if line.startswith("["))
    return tomllib.loads("\n".join(shown[start:]))


class Recorder(http.server.BaseHTTPRequestHandler):
    """Passes a request on to the scripted server and keeps what key it carried."""

    upstream = ""
    keys: ClassVar[list[str | None]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.keys.append(self.headers.get("Authorization"))
        address = self.upstream + self.path.removeprefix("/v1")
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(address, body, headers)
        with urllib.request.urlopen(request) as answer:
            data = answer.read()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Nothing on the terminal."""


@pytest.mark.parametrize("name", ["qwen3-vllm", "qwen3-llamacpp", "qwen3-ollama", "my-gateway"])
def test_each_example_of_the_file_calls_its_endpoint_and_with_no_key_but_its_own(
    name: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harbor.llms.chat import Chat

    monkeypatch.setenv("OPENAI_API_KEY", "a-real-key")
    monkeypatch.setenv("GATEWAY_API_KEY", "the-gateway-key")
    table = examples()[name]
    served = table["litellm"].removeprefix("openai/")
    Recorder.keys.clear()
    with ScriptedServer({served: fixed_replies([Reply("hello")])}) as server:
        Recorder.upstream = server.base_url
        with http.server.HTTPServer(("127.0.0.1", 0), Recorder) as front:
            threading.Thread(target=front.serve_forever, daemon=True).start()
            table["base_url"] = f"http://127.0.0.1:{front.server_port}/v1"
            spec = ModelSpec(name=name, **table)
            spec.check_ready(os.environ)
            agent = terminus(spec, table["base_url"], elsewhere)
            asyncio.run(agent._query_llm(Chat(agent._llm), "hi"))
            front.shutdown()
        assert server.requests[-1]["model"] == served
    wanted = "the-gateway-key" if name == "my-gateway" else NO_KEY
    assert Recorder.keys == [f"Bearer {wanted}"]


def test_examples_of_servers_of_one_s_own_leave_room_for_the_reply(tmp_path: Path) -> None:
    bundled = Path(models.__file__).with_name("models.toml").read_text()
    lines = re.findall(r"^#   (\[\".*|[a-z_]+ = .*)$", bundled, re.MULTILINE)
    mine = tmp_path / "models.toml"
    mine.write_text("\n".join(lines))
    known = load_models(mine)
    local = [spec for spec in known.values() if "localhost" in (spec.base_url or "")]
    assert len(local) == 3
    for spec in local:
        assert spec.context_tokens is not None and spec.max_output_tokens is not None
        assert spec.context_tokens + spec.max_output_tokens == 32_768


@pytest.mark.parametrize("key", ["abc\n", " abc", "schlüssel", "a\x00b", "“abc”"])
def test_a_key_that_cannot_be_sent_is_refused_at_the_start(key: str) -> None:
    spec = ModelSpec(name="m", litellm="openai/m", api_key_env="MY_KEY")
    with pytest.raises(DepthkitError, match="MY_KEY holds a character that no key has") as told:
        spec.check_ready({"MY_KEY": key})
    assert key.strip() not in str(told.value)
