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
import traceback
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from depthkit.corpus.files import hide, one_line
from depthkit.corpus.keep import RUN_FILE
from depthkit.model import Run
from depthkit.protocol import Planned
from depthkit.protocol.verdict import SegmentRecord, judge, passes, rewards_kept
from depthkit.trials import engine
from depthkit.trials.watch import TIMEOUT_MULTIPLIER, VERIFIER, confirmed, doubt, suspicion

if TYPE_CHECKING:
    from harbor.models.trial.config import TrialConfig
    from harbor.models.trial.result import ExceptionInfo, StepResult, TrialResult
    from harbor.trial.trial import Trial

    from depthkit.tasks import LoadedTask
    from depthkit.trials.models import ModelSpec

SEGMENT_SECONDS = 30 * 60
"""Time limit of a segment, in place of the one its data set sets (Appendix B)."""

AGENT = "depthkit.trials.agent:CappedTerminus2"
ENVIRONMENT = "depthkit.trials.environment:DockerEnvironment"
COMPOSE = "depthkit.trials.environment:ComposeEnvironment"


_COMPOSE = re.compile(
    r"Docker compose command failed .*? Return code: \d+\. Stdout: (.*)\. Stderr: None\.",
    re.DOTALL,
)


def time_limit(k: int) -> int:
    """Seconds a task of ``k`` segments has in all: 3, 2.5 and 1.5 hours for six, five and three."""
    return k * SEGMENT_SECONDS


def new_run_id(task_id: str, planned: Planned) -> str:
    """A name for a run that says what it is and which process made it.

    The owner's identity in it lets :func:`depthkit.trials.engine.clean` find what Harbor's
    compose environment leaves behind, which takes its project name from it.
    """
    cap = f"cap{planned.cap}" if planned.cap else "free"
    parts = (_short(task_id), _short(planned.model), cap, str(planned.attempt))
    stem = "__".join(re.sub(r"[^A-Za-z0-9.-]+", "-", part).strip("-.") for part in parts)
    return f"{stem}__{engine.owner().id}{secrets.token_hex(3)}"


def _short(name: str) -> str:
    """A name of at most 40 characters; the end, too, tells one from another."""
    return name if len(name) <= 40 else f"{name[:23]}--{name[-15:]}"


@cache
def harness_digest() -> str:
    """Digest of the code that decides a run: this package's trials and protocol, and versions."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted([*(package.parent / "protocol").glob("*.py"), *package.glob("*.py")]):
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
    segment_seconds: float = SEGMENT_SECONDS,
    record: bool = True,
) -> TrialConfig:
    """Harbor's configuration of one run; the arguments are those of :func:`run_trial`."""
    from harbor.models.trial.config import (
        AgentConfig,
        EnvironmentConfig,
        TaskConfig,
        TrialConfig,
        VerifierConfig,
    )

    options = {
        **spec.agent_kwargs(base_url),
        "cap": planned.cap,
        "segments": task.record.k,
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
            override_timeout_sec=segment_seconds * task.merged_segments,
            resume_trajectory=task.record.k > 1,
            # All of it is written on this side; a container's file of the same name stays there.
            exclude_logs=["*"],
            kwargs=options,
        ),
        environment=EnvironmentConfig(import_path=COMPOSE if task.compose else ENVIRONMENT),
        verifier=VerifierConfig(import_path=VERIFIER),
        verifier_timeout_multiplier=TIMEOUT_MULTIPLIER,
    )


async def run_trial(
    task: LoadedTask,
    planned: Planned,
    spec: ModelSpec,
    *,
    trials_dir: Path,
    base_url: str | None = None,
    segment_seconds: float = SEGMENT_SECONDS,
    record: bool = True,
    depth_before: int | None = None,
) -> Run:
    """Run one trial and write its files to ``trials_dir/RUN_ID``.

    Args:
        task: The task; its segments are played in one conversation and one container.
        planned: Model, cap, attempt and purpose.
        spec: The model; its name is ``planned.model``.
        trials_dir: Folder for the trial's own folder.
        base_url: Endpoint in place of the model's own; needed for a scripted one.
        segment_seconds: Time limit of the agent in each segment; a task that was merged from
            several has the sum, since the paper states none for it (Appendix H).
        record: Whether to record the terminal.
        depth_before: Of a merged task, D before merging; kept in the record.

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
        segment_seconds=segment_seconds,
        record=record,
    )
    trial = await Trial.create(config)
    _leave_artifacts(trial)
    if task.record.k > 1:
        ignore_thresholds(trial)
        _end_at_first_failure(trial)
    started = datetime.now(UTC)
    try:
        try:
            run = _record(task, planned, spec, trial, await trial.run())
        finally:
            _tidy(trials_dir / run_id, task, spec)
    except Exception as error:
        # It was paid for: its files, its cost and what went wrong stay, whatever that is.
        with (trials_dir / run_id / "exception.txt").open("a", encoding="utf-8") as out:
            out.write(hide("".join(traceback.format_exception(error)), _key(spec)))
        run = _unrecorded(task, planned, spec, trial, started, error)
    run = run.model_copy(update={"depth_before": depth_before})
    path = trials_dir / run_id / RUN_FILE
    path.write_text(run.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return run


def ignore_thresholds(trial: Trial) -> None:
    """Let no ``min_reward`` of the task's steps end a trial: that is for our own rule to say.

    Harbor compares a plain number with the key ``reward`` alone, and with more than 1 if asked to.
    """
    for step in trial.task.config.steps or []:
        step.min_reward = None


def _leave_artifacts(trial: Trial) -> None:
    """Fetch no artifacts, which would be deleted unseen, unless a verifier elsewhere needs them."""
    from harbor.models.task.verifier_mode import task_has_any_separate_verifier
    from harbor.models.trial.artifact_manifest import ArtifactManifest

    async def nothing(*_: object, **__: object) -> ArtifactManifest:
        return ArtifactManifest()

    if not task_has_any_separate_verifier(trial.task.config):
        trial._artifact_handler.download_artifacts = nothing  # type: ignore[method-assign]


def _end_at_first_failure(trial: Trial) -> None:
    """Start no segment after one that failed, and verify none that was left unfinished."""
    from harbor.trial.hooks import TrialEvent, TrialHookEvent

    from depthkit.trials.agent import CappedTerminus2

    agent = trial.agent
    if not isinstance(agent, CappedTerminus2):
        raise TypeError(f"a task of several segments needs {AGENT}")

    def end() -> None:
        agent.end_run()
        trial.config.verifier.disable = True

    async def before(event: TrialHookEvent) -> None:
        steps = event.result.step_results or []
        verified = [step.verifier_result for step in steps[:-1]]
        if not all(passes(v.rewards if v else None) for v in verified):
            end()

    async def after(event: TrialHookEvent) -> None:  # noqa: ARG001 - Harbor's signature
        if agent.segment_unfinished:
            end()

    trial.add_hook(TrialEvent.AGENT_START, before)
    trial.add_hook(TrialEvent.AGENT_END, after)


def _record(
    task: LoadedTask, planned: Planned, spec: ModelSpec, trial: Trial, result: TrialResult
) -> Run:
    segments = _segments(result, spec)
    judgement = judge(segments, k=task.record.k)
    facts = next((part.facts for part in reversed(segments) if part.facts), {})
    tokens = result.compute_token_cost_totals()[:3]
    if not facts.get("usage_complete", True):
        tokens = (None, None, None)  # the sums are of the replies that came with their tokens
    image = getattr(trial.agent_environment, "image_id", None)
    suspect = suspicion(trial.paths.trial_dir)
    return Run(
        **_known(task, planned, spec, trial, facts),
        verdict=judgement.verdict,
        stop=judgement.stop,
        suspect=suspect is not None,
        confirmed=confirmed(trial.paths.trial_dir) if judgement.verdict == "passed" else None,
        stop_segment=judgement.stop_segment,
        segments_passed=judgement.segments_passed,
        reward=judgement.reward,
        rewards=next((kept for s in reversed(segments) if (kept := rewards_kept(s.rewards))), None),
        input_tokens=tokens[0],
        cached_tokens=tokens[1],
        output_tokens=tokens[2],
        started=result.started_at,
        image_digest=image,
        detail="; ".join(filter(None, [suspect, judgement.detail])) or doubt(trial.paths.trial_dir),
    )


def _known(
    task: LoadedTask, planned: Planned, spec: ModelSpec, trial: Trial, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Fields of a record that stand whatever became of the trial: what was run, and its agent's."""
    return {
        "run_id": trial.config.trial_name,
        "dataset": task.record.dataset,
        "task_id": task.record.task_id,
        "model": planned.model,
        "cap": planned.cap,
        "attempt": planned.attempt,
        "purpose": planned.purpose,
        "turns": facts.get("turns"),
        "first_claim_turn": facts.get("first_claim_turn"),
        "agent_minutes": round(took / 60, 4) if (took := facts.get("agent_seconds")) else None,
        "context_tokens": facts.get("context_tokens"),
        "command_lines": facts.get("command_lines"),
        "cost_usd": _cost(spec, facts),
        "harness_digest": harness_digest(),
        "task_digest": task.record.digest,
        "provenance": spec.provenance,
    }


def _unrecorded(
    task: LoadedTask,
    planned: Planned,
    spec: ModelSpec,
    trial: Trial,
    started: datetime,
    error: Exception,
) -> Run:
    """A run without a verdict, because the trial's record could not be made."""
    from depthkit.trials.agent import CappedTerminus2

    facts = trial.agent.facts() if isinstance(trial.agent, CappedTerminus2) else {}
    line = one_line(f"the record could not be made: {type(error).__name__}: {error}", 500)
    return Run(
        **_known(task, planned, spec, trial, facts),
        verdict="none",
        stop="infrastructure",
        started=started,
        detail=hide(line, _key(spec)),
    )


def _cost(spec: ModelSpec, facts: Mapping[str, Any]) -> float | None:
    """Dollars; a scripted policy costs none, and that is known."""
    return 0.0 if spec.provenance == "scripted" else facts.get("cost_usd")


type _Part = TrialResult | StepResult


def _parts(result: TrialResult) -> Sequence[_Part]:
    """The segments that were started; Harbor keeps a single one in the trial's own fields."""
    return result.step_results or [result]


def _segments(result: TrialResult, spec: ModelSpec) -> list[SegmentRecord]:
    """What Harbor recorded of each segment; an error of the trial is one of its last segment."""
    records = []
    for part in _parts(result):
        last = part is _parts(result)[-1]
        error = part.exception_info or (result.exception_info if last else None)
        agent, verifier = part.agent_result, part.verifier_result
        records.append(
            SegmentRecord(
                rewards=verifier.rewards if verifier else None,
                error=error.exception_type if error else None,
                message=hide(words_of(error), _key(spec)) if error else None,
                facts=(agent.metadata or {}).get("depthkit", {}) if agent else {},
            )
        )
    return records


def words_of(error: ExceptionInfo) -> str:
    """What an error says, in words for whoever wrote the task where Harbor's are not."""
    text = error.exception_message
    match error.exception_type:
        case "AddTestsDirError" | "DownloadVerifierDirError":  # the reason is the error behind it
            behind = error.exception_traceback.split("\nThe above exception was the direct")[0]
            return f"{text} {behind.strip().rsplit('\n', 1)[-1]}"
        case "RewardFileNotFoundError" | "RewardFileEmptyError":
            return "the verifier gave no reward; it must write 1 or 0 to /logs/verifier/reward.txt"
        case "RuntimeError" if said := _COMPOSE.fullmatch(text.strip()):
            words = " ".join(said[1].split())
            return f"docker compose says: {words if len(words) < 400 else f'…{words[-400:]}'}"
    return text


def _key(spec: ModelSpec) -> str | None:
    return os.environ.get(spec.api_key_env or "")


def _tidy(trial_dir: Path, task: LoadedTask, spec: ModelSpec) -> None:
    """Leave what the corpus keeps: no copies of the set-up or the recording, no paths, no key.

    The conversation is one, so its files stand in ``agent/`` whatever the number of segments;
    Harbor has left a copy with each segment, the last one whole.
    """
    copies = [trial_dir / "steps" / step.name / "agent" for step in task.config.steps or []]
    for copy in reversed(copies):
        if not any((trial_dir / "agent").glob("*")) and any(copy.glob("*")):
            shutil.rmtree(trial_dir / "agent", ignore_errors=True)
            copy.rename(trial_dir / "agent")
        shutil.rmtree(copy, ignore_errors=True)
    for name in ("config.json", "lock.json", "agent/terminus_2.pane"):
        (trial_dir / name).unlink(missing_ok=True)
    for artifacts in (trial_dir / "artifacts", *trial_dir.glob("steps/*/artifacts")):
        shutil.rmtree(artifacts, ignore_errors=True)
    for name in ("result.json", "trial.log", "exception.txt"):
        path = trial_dir / name
        if path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            text = text.replace(str(trial_dir.resolve().parent), "trials")
            named = f"{task.record.dataset}/{task.record.task_id}"
            text = text.replace(str(task.path.resolve()), named)
            path.write_text(text, encoding="utf-8")
    key = _key(spec)
    for path in trial_dir.rglob("*") if key else ():
        # What a compose container left to its own user alone is not ours to read.
        if path.is_file() and not path.is_symlink() and os.access(path, os.R_OK | os.W_OK):
            data = path.read_bytes().decode("utf-8", "surrogateescape")
            if (clean := hide(data, key)) != data:
                path.write_bytes(clean.encode("utf-8", "surrogateescape"))
