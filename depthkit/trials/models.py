"""The model registry: which models can be measured, how they are called, what they cost.

Bundled entries are in ``models.toml`` beside this module; a person's own file is laid over them.
A key is only ever named by its environment variable, never held here. The measuring set is that
of Section 3.1 of the Depth paper, the evaluated models those of Section 4.5; prices are those of
its Appendix B, serving providers and efforts those of Appendix I and Table 2.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from depthkit.errors import DepthkitError
from depthkit.model import Provenance
from depthkit.tasks.text import parsed, read_text
from depthkit.trials.scripted.policies import POLICIES

MEASURING_SET: tuple[str, ...] = ("deepseek-v4.1-flash", "glm-5.3-flash")
"""The paper's measuring set, in order; the first one also makes the free runs."""

EVALUATED: tuple[str, ...] = (
    "claude-sonnet-5.5",
    "gpt-6.1-sol",
    "gpt-6-luna",
    "deepseek-v4.1-flash",
    "mimo-v2.6-flash",
    "glm-5.3-flash",
)
"""The six models of Table 2, in its order."""

MODELS_FILE = "models.toml"
"""Name of a person's own registry in the working directory."""

NO_KEY = "no-key"
"""Sent in place of a key to an endpoint that has an address of its own and names no key."""

_BUNDLED = Path(__file__).with_name(MODELS_FILE)
_UNREPEATED = frozenset({"api_key_env", "base_url"})  # a wrong value may be or hold a key

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max", "default"]


class ModelSpec(BaseModel):
    """One model. ``None`` means not known or not set; nothing is filled in for it.

    A field's description is what an error message asks for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = Field(min_length=1, description="a name")
    litellm: str | None = Field(
        default=None,
        pattern=r"^[^/\s]+/\S+$",
        description='a LiteLLM id with its provider, such as "openrouter/z-ai/glm-5.3-flash"',
    )
    base_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s@]+$",
        description="an http or https address without a user name or password in it",
    )
    api_key_env: str | None = Field(
        default=None,
        pattern=r"^[A-Z_][A-Z0-9_]*$",
        description="the name of an environment variable in capitals, such as OPENROUTER_API_KEY "
        "(never the key itself)",
    )
    reasoning_effort: Effort | None = Field(
        default=None,
        description="one of none, minimal, low, medium, high, xhigh, max and default",
    )
    effort_reported: str | None = Field(
        default=None,
        description='a level as a paper prints it, such as "high", or "-" for not configurable',
    )
    endpoint_reported: str | None = Field(
        default=None, description='the endpoint that a paper names, such as "OpenRouter"'
    )
    providers: list[str] | None = Field(
        default=None,
        min_length=1,
        description='a list of OpenRouter provider names, such as ["fireworks"]',
    )
    context_tokens: int | None = Field(
        default=None, gt=0, description="a whole number of tokens, such as 128000"
    )
    max_output_tokens: int | None = Field(
        default=None, gt=0, description="a whole number of tokens, such as 16384"
    )
    input_usd_per_mtok: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="a price in US dollars, such as 0.30"
    )
    cached_usd_per_mtok: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="a price in US dollars, such as 0.03"
    )
    output_usd_per_mtok: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="a price in US dollars, such as 1.20"
    )
    policy: str | None = Field(default=None, description=f"one of {', '.join(POLICIES)}")

    @field_validator("policy")
    @classmethod
    def _policy_exists(cls, policy: str | None) -> str | None:
        if policy is not None and policy not in POLICIES:
            raise ValueError("unknown policy")
        return policy

    @property
    def provenance(self) -> Provenance:
        """What a run of this model is: ``scripted`` where a policy stands in, else ``measured``."""
        return "scripted" if self.policy is not None else "measured"

    @property
    def model_name(self) -> str:
        """The id to call through LiteLLM (Harbor's ``AgentConfig.model_name``).

        Raises:
            DepthkitError: The id of this model is not known.
        """
        if self.policy is not None:
            return f"openai/{self.policy}"
        if self.litellm is None:
            address = "" if self.endpoint_reported in (None, "OpenRouter") else " and base_url"
            where = f" (the paper calls it through {self.endpoint_reported})" if address else ""
            raise DepthkitError(
                f"{MODELS_FILE}: [{json.dumps(self.name)}] litellm is not set{where}; give the id "
                f"that LiteLLM calls it by{address} in a {MODELS_FILE} in the working directory, "
                'such as litellm = "openrouter/z-ai/glm-5.3-flash".'
            )
        return self.litellm

    @property
    def endpoint(self) -> str:
        """Who answers a call: the address, else the provider; ``-`` where neither is known."""
        if self.policy is not None:
            return "local, scripted"
        if self.base_url is not None:
            return self.base_url.partition("?")[0]
        if self.litellm is not None:
            return self.litellm.partition("/")[0]
        return f"{self.endpoint_reported}, address not set" if self.endpoint_reported else "-"

    def check_ready(self, environ: Mapping[str, str]) -> None:
        """Say before any run starts what is missing to call this model.

        Args:
            environ: The environment; of the key, whether it can be one.

        Raises:
            DepthkitError: The LiteLLM id or the key is missing, or the key cannot be sent.
        """
        _ = self.model_name
        if self.api_key_env is None:
            return
        key = environ.get(self.api_key_env)
        if not key:
            raise DepthkitError(
                f"The environment variable {self.api_key_env} is not set; {self.name} needs it "
                f"(api_key_env in {MODELS_FILE})."
            )
        if not (key.isascii() and key.isprintable() and key == key.strip()):
            raise DepthkitError(
                f"The environment variable {self.api_key_env} holds a character that no key has (a "
                "space or newline at an end, a control or a non-ASCII character); set it again, "
                "such as with $(tr -d '\\n' < FILE)."
            )

    def agent_kwargs(self, base_url: str | None = None) -> dict[str, Any]:
        """Options of terminus-2 for this model (Harbor's ``AgentConfig.kwargs``).

        The model's id and the name of the key's variable are not among them: Harbor takes those
        as ``AgentConfig.model_name`` and ``AgentConfig.model_api_key_name``.

        Args:
            base_url: Endpoint to call instead of the registered one; that of the local server for
                a scripted policy, which has no other.

        Raises:
            ValueError: A scripted policy without the address of its server.
        """
        endpoint = base_url or self.base_url
        if self.policy is not None and endpoint is None:
            raise ValueError(f"{self.name} is scripted; pass the base_url of its ScriptedServer")
        options: dict[str, Any] = {}
        if endpoint is not None:
            options["api_base"] = endpoint
        if self.providers:
            # OpenRouter tries those of `order` one at a time, and without fallbacks no other.
            pin = {"order": list(self.providers), "allow_fallbacks": False}
            options["llm_call_kwargs"] = {"extra_body": {"provider": pin}}
        if self.reasoning_effort is not None:
            options["reasoning_effort"] = self.reasoning_effort
        if info := self.model_info():
            options["model_info"] = info
        if endpoint is not None and self.api_key_env is None:
            # Clients want some key, and take OPENAI_API_KEY or the like where none is given: a
            # real key would go to whatever answers at this address.
            options["llm_kwargs"] = {"api_key": NO_KEY}
        return options

    def model_info(self) -> dict[str, Any]:
        """What LiteLLM is told about the model: limits in tokens, prices in dollars a token."""
        info: dict[str, Any] = {}
        if self.context_tokens is not None:
            info["max_input_tokens"] = self.context_tokens
        if self.max_output_tokens is not None:
            info["max_output_tokens"] = self.max_output_tokens
        if self.input_usd_per_mtok is not None and self.output_usd_per_mtok is not None:
            cached = self.cached_usd_per_mtok
            info["input_cost_per_token"] = self.input_usd_per_mtok / 1e6
            info["output_cost_per_token"] = self.output_usd_per_mtok / 1e6
            # Without a published price for cached input the full one is charged, so that a cost
            # is never too low for a budget.
            cached = self.input_usd_per_mtok if cached is None else cached
            info["cache_read_input_token_cost"] = cached / 1e6
            info["cache_creation_input_token_cost"] = self.input_usd_per_mtok / 1e6
        return info


def load_models(models_file: Path | None = None) -> dict[str, ModelSpec]:
    """All known models by name: the bundled ones, with a person's own file laid over them.

    Args:
        models_file: That file; by default ``models.toml`` in the working directory if there is
            one.

    Raises:
        DepthkitError: A file is missing, is not TOML, or has an unknown or wrong field.
    """
    tables = _read(_BUNDLED)
    sources = dict.fromkeys(tables, _BUNDLED)
    if models_file is None and Path(MODELS_FILE).is_file():
        models_file = Path(MODELS_FILE)
    if models_file is not None:
        for name, table in _read(models_file).items():
            tables[name] = {**tables.get(name, {}), **table}
            sources[name] = models_file
    return {name: _spec(name, table, sources[name]) for name, table in tables.items()}


def select_models(names: Iterable[str], models_file: Path | None = None) -> list[ModelSpec]:
    """The models of these names, in this order.

    Raises:
        DepthkitError: A name is unknown or given twice, or the registry is unusable.
    """
    known = load_models(models_file)
    chosen: dict[str, ModelSpec] = {}
    for name in names:
        if name not in known:
            raise DepthkitError(
                f"{name!r} is not a known model; choose from {', '.join(sorted(known))}, or add "
                f"it to {models_file or f'a {MODELS_FILE} in the working directory'}."
            )
        if name in chosen:
            raise DepthkitError(f"Model {name} is named twice; name each model once.")
        chosen[name] = known[name]
    return list(chosen.values())


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """The tables of one file."""
    tables: dict[str, Any] = parsed("TOML", read_text(path, str(path)), str(path))
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise DepthkitError(
                f"{path}: {name} stands outside a model's table; put it under a heading such as "
                '["my-model"].'
            )
    return tables


def _spec(name: str, table: dict[str, Any], source: Path) -> ModelSpec:
    """Check one table."""
    where = f"{source}: [{json.dumps(name)}]"
    if "name" in table:
        raise DepthkitError(f"{where} name is not a field; the heading is the name. Remove it.")
    try:
        return ModelSpec(name=name, **table)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0]) if first["loc"] else "?"
        known = ModelSpec.model_fields.get(field)
        if known is None:
            fields = ", ".join(sorted(set(ModelSpec.model_fields) - {"name"}))
            raise DepthkitError(f"{where} {field} is not a field; use one of {fields}.") from None
        if field in _UNREPEATED:
            raise DepthkitError(f"{where} {field} must be {known.description}.") from None
        value = json.dumps(table.get(field), default=str)
        raise DepthkitError(
            f"{where} {field} is {value}; it must be {known.description}."
        ) from None
