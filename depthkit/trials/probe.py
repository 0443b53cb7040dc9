"""One call to a model, to see before money is spent that it answers as terminus-2 needs.

The prompt, the client and the parser are those of Harbor's terminus-2, with the options that a
trial gives it. The call is made once; nothing is retried.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from depthkit.corpus.files import mask_text, one_line
from depthkit.model import Provenance
from depthkit.trials.budget import Price
from depthkit.trials.models import ModelSpec
from depthkit.trials.scripted.server import ScriptedServer

INSTRUCTION = "List the files in the current directory."
"""The task of the probe: one harmless command, which is never run."""

_SCREEN = "root@probe:/app# "


@dataclass(frozen=True)
class Probe:
    """What one call gave. ``None`` means that the endpoint did not say.

    Attributes:
        ok: The call was answered and terminus-2 can read the answer.
        problem: Why not, in one line without keys.
        seconds: From the request to the whole reply.
        input_tokens: All of the prompt, cached ones among them.
        cost_usd: As the endpoint bills it, else by the registered prices.
        cost_from: Which of the two.
        parsed: Whether Harbor's parser could read the reply; ``None`` without a reply.
        commands: How many commands it read.
        served_model: The model's name in the reply.
        served_provider: Who served it, where a router says so.
    """

    model: str
    id: str
    endpoint: str
    provenance: Provenance
    ok: bool
    problem: str | None
    seconds: float
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    cost_from: Literal["endpoint", "prices"] | None = None
    parsed: bool | None = None
    commands: int | None = None
    warning: str | None = None
    served_model: str | None = None
    served_provider: str | None = None

    def row(self) -> dict[str, Any]:
        """For scripts."""
        return asdict(self)


def probe(
    spec: ModelSpec, *, timeout: float = 180, environ: Mapping[str, str] | None = None
) -> Probe:
    """Call a model once.

    Args:
        spec: The model; a scripted one is served locally for the call.
        timeout: Most seconds to wait for the reply.
        environ: Where its key is and which texts are secret; the process's own by default.

    Returns:
        Probe: Also for a call that failed.

    Raises:
        DepthkitError: The model's id or key is missing, so that no call can be made.
    """
    environ = os.environ if environ is None else environ
    spec.check_ready(environ)
    with _served(spec) as base_url, tempfile.TemporaryDirectory() as logs:
        return asyncio.run(_call(spec, base_url, Path(logs), timeout, environ))


async def _call(
    spec: ModelSpec, base_url: str | None, logs: Path, timeout: float, environ: Mapping[str, str]
) -> Probe:
    from harbor.agents.terminus_2.terminus_2 import Terminus2
    from harbor.llms.base import OutputLengthExceededError
    from harbor.llms.lite_llm import LiteLLM

    # LiteLLM warns about its own bookkeeping.
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    agent = Terminus2(
        logs_dir=logs,
        model_name=spec.model_name,
        model_api_key_name=spec.api_key_env,
        **spec.agent_kwargs(base_url),
    )
    llm = agent._llm
    assert isinstance(llm, LiteLLM)
    seen: dict[str, Any] = {}
    usage_of = llm._extract_usage_info

    def keep(response: Any) -> Any:
        seen["response"] = response
        return usage_of(response)

    llm._extract_usage_info = keep  # type: ignore[method-assign]  # sees a cut reply as well
    prompt = agent._prompt_template.format(instruction=INSTRUCTION, terminal_state=_SCREEN)
    known: dict[str, Any] = {
        "model": spec.name,
        "id": spec.model_name,
        "endpoint": spec.endpoint,
        "provenance": spec.provenance,
    }
    problem: str | None
    started = time.monotonic()
    try:
        # Around Harbor's retries: one call is one request.
        once = LiteLLM.call.__wrapped__
        reply = await once(llm, prompt, timeout=timeout, max_retries=0, **agent._llm_call_kwargs)
        content, cut = reply.content, False
    except OutputLengthExceededError as error:
        content, cut = error.truncated_response or "", True
    except Exception as error:
        # LiteLLM says the class of an error up to three times.
        said = re.sub(r"^(?:litellm\.)?(\w+): (?:\1: )?", r"\1: ", str(error))
        why = said if said.startswith(type(error).__name__) else f"{type(error).__name__}: {said}"
        seconds = round(time.monotonic() - started, 3)
        problem = f"no answer: {redacted(why, environ)}"
        return Probe(**known, ok=False, problem=problem, seconds=seconds)
    known["seconds"] = round(time.monotonic() - started, 3)
    known |= _usage(spec, seen.get("response"))
    result = agent._parser.parse_response(content)
    problem = None
    if cut:
        problem = "the reply was cut at the model's output limit"
    elif not content.strip():
        problem = "the reply is empty"
    elif result.error:
        problem = f"terminus-2 cannot read the reply: {one_line(result.error)}"
    return Probe(
        **known,
        ok=problem is None,
        problem=problem and redacted(problem, environ),
        parsed=problem is None,
        commands=len(result.commands) if problem is None else None,
        warning=one_line(result.warning) if result.warning else None,
    )


def _usage(spec: ModelSpec, response: Any) -> dict[str, Any]:
    """What the endpoint says of tokens, cost and who served the call."""
    usage = getattr(response, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    tokens = {
        "input_tokens": getattr(usage, "prompt_tokens", None),
        "cached_tokens": getattr(details, "cached_tokens", None),
        "output_tokens": getattr(usage, "completion_tokens", None),
    }
    # LiteLLM fills in zeros for a reply without usage.
    if not tokens["input_tokens"]:
        tokens = dict.fromkeys(tokens)
    billed = getattr(usage, "cost", None)
    cost = billed if isinstance(billed, int | float) else _priced(spec, **tokens)
    model, provider = getattr(response, "model", None), getattr(response, "provider", None)
    return tokens | {
        "cost_usd": cost,
        "cost_from": None if cost is None else "prices" if cost is not billed else "endpoint",
        "served_model": one_line(model) if model else None,
        "served_provider": one_line(provider) if provider else None,
    }


def _priced(
    spec: ModelSpec,
    input_tokens: int | None,
    cached_tokens: int | None,
    output_tokens: int | None,
) -> float | None:
    price = Price.of(spec.model_info())
    if price is None or input_tokens is None or output_tokens is None:
        return None
    return price.cost(input_tokens, cached_tokens or 0, output_tokens)


@contextlib.contextmanager
def _served(spec: ModelSpec) -> Iterator[str | None]:
    """Address of a scripted model's server while it is needed; ``None`` for any other."""
    if spec.policy is None:
        yield None
        return
    with ScriptedServer() as server:
        yield server.base_url


def redacted(text: str, environ: Mapping[str, str]) -> str:
    """One line without keys: neither values of variables that hold one nor what looks like one."""
    for name, value in environ.items():
        secret = any(word in name.upper() for word in ("KEY", "TOKEN", "SECRET", "PASSW"))
        if secret and len(value) >= 6:
            text = text.replace(value, "***")
    return one_line(mask_text(text), 400)
