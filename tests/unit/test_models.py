"""The model registry and what it hands to the harness."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from depthkit.errors import DepthkitError
from depthkit.trials.models import MEASURING_SET, ModelSpec, load_models, select_models
from depthkit.trials.scripted.policies import POLICIES, Reply, fixed_replies
from depthkit.trials.scripted.server import ScriptedServer

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no download of a price list


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


def test_an_id_that_is_not_printed_anywhere_is_asked_for_not_guessed() -> None:
    (spec,) = select_models(["deepseek-v4.1-flash"])
    with pytest.raises(DepthkitError, match=r'models\.toml: \["deepseek-v4\.1-flash"\] litellm is'):
        spec.check_ready({"OPENROUTER_API_KEY": "x"})


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
    assert mine.agent_kwargs() == {"api_base": "http://localhost:8000/v1"}


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
        ("[a", r"own\.toml: not valid TOML"),
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
    path.write_text(text)
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
    with pytest.raises(DepthkitError, match=r"gone\.toml: No such file"):
        load_models(elsewhere / "gone.toml")
    with pytest.raises(DepthkitError, match="'gpt' is not a known model; choose from deepseek-v4"):
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
        logs_dir=logs, model_name=spec.model_name, **spec.agent_kwargs(base_url=base_url)
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
    assert agent._llm._llm_kwargs["api_key"] == "scripted"
