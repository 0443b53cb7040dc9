"""One run: a task, a model and a cap, through Harbor's trial, to a record.

Harbor builds the trial, runs terminus-2 in the container, calls the verifier and writes its
files; here its inputs are put together and its outcome is read.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from datetime import datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from depthkit.model import Run
from depthkit.protocol import Planned
from depthkit.trials import engine
from depthkit.trials.verdict import Judgement, judge

if TYPE_CHECKING:
    from harbor.models.trial.config import TrialConfig
    from harbor.models.trial.result import TrialResult
    from harbor.trial.trial import Trial

    from depthkit.tasks import LoadedTask
    from depthkit.trials.models import ModelSpec

AGENT_SECONDS = 30 * 60
"""Time limit of a single-instruction task, in place of the one its data set sets (Appendix B)."""

RUN_FILE = "run.json"
"""The record, written beside what Harbor wrote before the run enters the corpus."""

AGENT = "depthkit.trials.agent:CappedTerminus2"
ENVIRONMENT = "depthkit.trials.environment:DockerEnvironment"

# Harbor and LiteLLM would otherwise ask the network when they are imported.
os.environ.setdefault("HARBOR_TELEMETRY", "0")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")


def new_run_id(task_id: str, planned: Planned) -> str:
    """A name for a run that says what it is and which process made it.

    The owner's identity in it lets :func:`depthkit.trials.engine.clean` find what Harbor's
    compose environment leaves behind, which takes its project name from it.
    """
    cap = f"cap{planned.cap}" if planned.cap else "free"
    parts = (task_id[:40], planned.model[:24], cap, str(planned.attempt))
    stem = "__".join(re.sub(r"[^A-Za-z0-9.-]+", "-", part).strip("-.") for part in parts)
    return f"{stem}__{engine.owner().id}{secrets.token_hex(3)}"


@cache
def harness_digest() -> str:
    """Digest of the code that decides a run: this package's trials and protocol, and versions."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted([package.parent / "protocol.py", *package.glob("*.py")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    for name in ("harbor", "litellm"):
        digest.update(f"{name}=={version(name)}".encode())
    return digest.hexdigest()[:16]


def trial_config(
    task: LoadedTask,
    planned: Planned,
    spec: ModelSpec,
    *,
    base_url: str | None,
    run_id: str,
    trials_dir: Path,
    agent_seconds: float = AGENT_SECONDS,
    record: bool = True,
) -> TrialConfig:
    """Harbor's configuration of one run; the arguments are those of :func:`run_trial`."""
    from harbor.models.environment_type import EnvironmentType
    from harbor.models.trial.config import (
        AgentConfig,
        EnvironmentConfig,
        TaskConfig,
        TrialConfig,
    )

    options = {
        **spec.agent_kwargs(base_url),
        "cap": planned.cap,
        "record_terminal_session": record,
    }
    return TrialConfig(
        task=TaskConfig(path=task.path),
        trial_name=run_id,
        trials_dir=trials_dir,
        agent=AgentConfig(
            import_path=AGENT,
            model_name=spec.model_name,
            model_api_key_name=spec.api_key_env,
            override_timeout_sec=agent_seconds,
            # The trajectory is written on this side; a container's file of that name stays there.
            include_logs=["recording.cast"],
            kwargs=options,
        ),
        environment=(
            EnvironmentConfig(type=EnvironmentType.DOCKER)
            if task.compose
            else EnvironmentConfig(import_path=ENVIRONMENT)
        ),
    )


async def run_trial(
    task: LoadedTask,
    planned: Planned,
    spec: ModelSpec,
    *,
    trials_dir: Path,
    base_url: str | None = None,
    agent_seconds: float = AGENT_SECONDS,
    record: bool = True,
) -> Run:
    """Run one trial and write its files to ``trials_dir/RUN_ID``.

    Args:
        task: A single-instruction task.
        planned: Model, cap, attempt and purpose.
        spec: The model; its name is ``planned.model``.
        trials_dir: Folder for the trial's own folder.
        base_url: Endpoint in place of the model's own; needed for a scripted one.
        agent_seconds: Time limit of the agent.
        record: Whether to record the terminal.

    Returns:
        Run: The record; a trial that could not be carried out is a run without a verdict, not an
        exception.
    """
    from harbor.trial.trial import Trial

    run_id = new_run_id(task.record.task_id, planned)
    config = trial_config(
        task,
        planned,
        spec,
        base_url=base_url,
        run_id=run_id,
        trials_dir=trials_dir,
        agent_seconds=agent_seconds,
        record=record,
    )
    trial = await Trial.create(config)
    result = await trial.run()
    run = _record(task, planned, spec, trial, result)
    _keep(trials_dir / run_id, run, task.path)
    return run


def _record(
    task: LoadedTask, planned: Planned, spec: ModelSpec, trial: Trial, result: TrialResult
) -> Run:
    facts = _facts(result)
    judgement = _judge(result, facts, spec)
    agent = result.agent_result
    phase = result.agent_execution
    image = getattr(trial.agent_environment, "image_id", None)
    return Run(
        run_id=result.trial_name,
        dataset=task.record.dataset,
        task_id=task.record.task_id,
        model=planned.model,
        cap=planned.cap,
        attempt=planned.attempt,
        purpose=planned.purpose,
        verdict=judgement.verdict,
        stop=judgement.stop,
        stop_segment=1,
        segments_passed=None if judgement.verdict == "none" else int(judgement.verdict == "passed"),
        reward=judgement.reward,
        turns=facts.get("turns"),
        first_claim_turn=facts.get("first_claim_turn"),
        agent_minutes=_minutes(phase.started_at, phase.finished_at) if phase else None,
        context_tokens=facts.get("context_tokens"),
        input_tokens=agent.n_input_tokens if agent else None,
        cached_tokens=agent.n_cache_tokens if agent else None,
        output_tokens=agent.n_output_tokens if agent else None,
        cost_usd=agent.cost_usd if agent else None,
        started=result.started_at,
        harness_digest=harness_digest(),
        task_digest=task.record.digest,
        image_digest=image,
        detail=judgement.detail,
        provenance=spec.provenance,
    )


def _facts(result: TrialResult) -> dict[str, Any]:
    metadata = (result.agent_result.metadata if result.agent_result else None) or {}
    facts = metadata.get("depthkit", {})
    return facts if isinstance(facts, dict) else {}


def _judge(result: TrialResult, facts: dict[str, Any], spec: ModelSpec) -> Judgement:
    error = result.exception_info
    return judge(
        rewards=result.verifier_result.rewards if result.verifier_result else None,
        error=error.exception_type if error else None,
        error_message=_redacted(error.exception_message, spec) if error else None,
        facts=facts,
    )


def _redacted(text: str, spec: ModelSpec) -> str:
    """The text without the model's key, should an error message repeat it."""
    key = os.environ.get(spec.api_key_env or "")
    return text.replace(key, "***") if key else text


def _minutes(started: datetime | None, finished: datetime | None) -> float | None:
    if started is None or finished is None:
        return None
    return round((finished - started).total_seconds() / 60, 4)


def _keep(trial_dir: Path, run: Run, task_dir: Path) -> None:
    """Leave what the corpus keeps: no copies of the set-up or the recording, no host's paths."""
    for name in ("config.json", "lock.json", "agent/terminus_2.pane"):
        (trial_dir / name).unlink(missing_ok=True)
    shutil.rmtree(trial_dir / "artifacts", ignore_errors=True)
    for name in ("result.json", "trial.log", "exception.txt"):
        path = trial_dir / name
        if path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            text = text.replace(str(trial_dir.resolve().parent), "trials")
            text = text.replace(str(task_dir.resolve()), f"{run.dataset}/{run.task_id}")
            path.write_text(text, encoding="utf-8")
    (trial_dir / RUN_FILE).write_text(run.model_dump_json(indent=2) + "\n", encoding="utf-8")
