"""Is a task fit to be measured: its solution passes, and doing nothing does not (Appendix C, F).

Both are tried through Harbor's own trial, with its ``oracle`` and ``nop`` agents, in fresh
containers and with the verifier that measures runs: what passes here is verified alike there.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from depthkit.errors import DepthkitError
from depthkit.protocol import Planned
from depthkit.protocol.verdict import all_pass, passes, reward_of
from depthkit.tasks import LoadedTask, load_task
from depthkit.tasks.text import printable
from depthkit.trials import engine
from depthkit.trials.run import COMPOSE, ENVIRONMENT, ignore_thresholds, new_run_id, words_of
from depthkit.trials.watch import TIMEOUT_MULTIPLIER, VERIFIER, doubt, suspicion

if TYPE_CHECKING:
    from harbor.models.trial.config import EnvironmentConfig, TrialConfig
    from harbor.models.trial.result import StepResult, TrialResult

type Role = Literal["solution", "nothing"]

AGENTS: dict[Role, str] = {"solution": "oracle", "nothing": "nop"}
"""Harbor's agents for the two trials."""

OFFLINE_ENVIRONMENT = "depthkit.trials.offline:OfflineEnvironment"

LAST_LINES = 8
"""How much is shown of what a verifier or solution printed."""


@dataclass(frozen=True)
class SegmentResult:
    """One segment of one trial.

    Attributes:
        name: Its name; the task's in a single-instruction task.
        passed: Whether its checks passed; ``None`` if there is no verdict.
        reward: The number behind it.
        last_lines: The end of what the verifier printed, and before it, where the solution ended
            with an error, the end of what that printed; untrusted text.
    """

    name: str
    passed: bool | None = None
    reward: float | None = None
    last_lines: str = ""


@dataclass(frozen=True)
class TrialOutcome:
    """One trial: of the reference solution, or of doing nothing.

    Attributes:
        passed: Whether every segment passed; ``None`` if the trial gave no verdict.
        segments: One for each segment of the task, whether or not it was reached.
        error: Why there is no verdict.
        suspect: Why the verdict may be forged, or would be taken for it.
        unconfirmed: Why a pass could not be compared with one of the same files alone.
    """

    passed: bool | None
    segments: tuple[SegmentResult, ...]
    error: str | None = None
    suspect: str | None = None
    unconfirmed: str | None = None


@dataclass
class CheckedTask:
    """What became of one directory.

    Attributes:
        network: What the task declares, when it was checked without; ``None`` otherwise.
        faults: What is wrong, in order of importance; empty for a task that is fit.
        notes: What a person may want to look at, though the task is fit.
    """

    dataset: str
    task_id: str
    path: str
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    network: str | None = None
    solution: TrialOutcome | None = None
    nothing: TrialOutcome | None = None

    @property
    def ok(self) -> bool:
        """Whether there is no fault."""
        return not self.faults

    def row(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {
            "dataset": self.dataset,
            "task_id": self.task_id,
            "ok": self.ok,
            "faults": self.faults,
            "notes": self.notes,
            "network_not_given": self.network,
            "solution": asdict(self.solution) if self.solution else None,
            "nothing": asdict(self.nothing) if self.nothing else None,
        }


def check_tasks(
    task_dirs: Sequence[Path],
    *,
    workers: int = 3,
    strict: bool = False,
    online: bool = False,
    console: Console | None = None,
) -> list[CheckedTask]:
    """Check task directories: what can be read first, then two trials of each that can be read.

    Args:
        task_dirs: Harbor task directories; the same one twice is checked once.
        workers: Trials at a time.
        strict: Whether doing nothing must fail every segment, not only the task.
        online: Give tasks the network that they declare; by default they get none.
        console: Where to draw progress; none is drawn without.

    Returns:
        list[CheckedTask]: One a directory, in the order given.

    Raises:
        DepthkitError: If no engine answers.
    """
    rows, loaded = _load(task_dirs)
    if not loaded:
        return rows
    try:
        engine.clean()
        with (
            tempfile.TemporaryDirectory(prefix="depthkit-check-") as folder,
            _progress(console, 2 * len(loaded)) as advance,
        ):
            asyncio.run(_try_all(loaded, Path(folder), workers, online, advance))
    finally:
        engine.release()
    for row, task in loaded:
        row.faults += _faults(row, task, strict)
        row.notes += _notes(row, task, strict)
    return rows


def _load(
    task_dirs: Sequence[Path],
) -> tuple[list[CheckedTask], list[tuple[CheckedTask, LoadedTask]]]:
    rows, loaded = [], []
    for path in {path.resolve(): path for path in task_dirs}.values():
        real = path.resolve()
        row = CheckedTask(real.parent.name, real.name, str(path))
        rows.append(row)
        try:
            task = load_task(path)
        except DepthkitError as error:
            row.faults.append(str(error))
            continue
        loaded.append((row, task))
    return rows, loaded


# --- trials ---


async def _try_all(
    loaded: Sequence[tuple[CheckedTask, LoadedTask]],
    folder: Path,
    workers: int,
    online: bool,
    advance: Callable[[], None],
) -> None:
    free = asyncio.Semaphore(workers)

    async def attempt(row: CheckedTask, task: LoadedTask, role: Role) -> None:
        async with free:
            outcome = await _try(task, role, folder, online)
        setattr(row, role, outcome)
        advance()

    async with asyncio.TaskGroup() as group:
        for row, task in loaded:
            declared = task.config.environment.network_mode.value
            row.network = declared if not online and declared != "no-network" else None
            if None not in task.solutions:
                group.create_task(attempt(row, task, "solution"))
            else:
                advance()
            group.create_task(attempt(row, task, "nothing"))


async def _try(task: LoadedTask, role: Role, folder: Path, online: bool) -> TrialOutcome:
    from harbor.trial.trial import Trial

    name = new_run_id(task.record.task_id, Planned(role, None, 1, "free"))
    try:
        trial = await Trial.create(_config(task, role, name, folder, online))
    except (ValueError, RuntimeError, OSError) as error:
        # Harbor refuses the task, for example for a network policy that cannot be kept.
        return TrialOutcome(None, _no_segments(task), error=_line(error))
    ignore_thresholds(trial)  # Every segment is to be tried.
    result = await trial.run()
    return _outcome(task, result, folder / name)


def _config(task: LoadedTask, role: Role, name: str, folder: Path, online: bool) -> TrialConfig:
    from harbor.models.trial.config import AgentConfig, TaskConfig, TrialConfig, VerifierConfig

    return TrialConfig(
        task=TaskConfig(path=task.path),
        trial_name=name,
        trials_dir=folder,
        agent=AgentConfig(name=AGENTS[role]),
        environment=_environment(task, folder, online),
        verifier=VerifierConfig(import_path=VERIFIER),
        verifier_timeout_multiplier=TIMEOUT_MULTIPLIER,
    )


def _environment(task: LoadedTask, folder: Path, online: bool) -> EnvironmentConfig:
    from harbor.models.trial.config import EnvironmentConfig

    if not task.compose:
        return EnvironmentConfig(import_path=ENVIRONMENT if online else OFFLINE_ENVIRONMENT)
    overlays = []
    if not online:
        # Services still reach each other.
        overlay = folder / "offline.yaml"
        overlay.write_text("networks:\n  default:\n    internal: true\n")
        overlays = [overlay]
    return EnvironmentConfig(import_path=COMPOSE, extra_docker_compose=overlays)


# --- what came out ---


def _no_segments(task: LoadedTask) -> tuple[SegmentResult, ...]:
    return tuple(SegmentResult(segment.name) for segment in task.record.segments)


def _outcome(task: LoadedTask, result: TrialResult, folder: Path) -> TrialOutcome:
    parts: Sequence[TrialResult | StepResult] = result.step_results or [result]
    segments = list(_no_segments(task))
    errors = [result.exception_info]
    for number, part in enumerate(parts):
        name = segments[number].name
        where = folder / "steps" / name if result.step_results else folder
        rewards = part.verifier_result.rewards if part.verifier_result else None
        errors.append(part.exception_info)
        segments[number] = SegmentResult(
            name=name,
            passed=passes(rewards),
            reward=reward_of(rewards),
            last_lines=_last_lines(where),
        )
    error = next((e for e in errors if e is not None), None)
    return TrialOutcome(
        passed=all_pass([segment.passed for segment in segments]),
        segments=tuple(segments),
        error=_line(f"{error.exception_type}: {words_of(error)}") if error else None,
        suspect=suspicion(folder),
        unconfirmed=doubt(folder),
    )


def _last_lines(folder: Path) -> str:
    texts = []
    if (folder / "agent" / "exit-code.txt").is_file():
        status = (folder / "agent" / "exit-code.txt").read_text()
        texts += [*_tail(folder / "agent" / "oracle.txt"), f"(solve.sh ended with status {status})"]
    return "\n".join([*texts, *_tail(folder / "verifier" / "test-stdout.txt")])


def _tail(path: Path) -> list[str]:
    if not path.is_file():
        return []
    with path.open("rb") as source:
        source.seek(max(0, path.stat().st_size - (8 << 10)))
        text = source.read().decode("utf-8", errors="replace")
    return [printable(line)[:300] for line in text.splitlines() if line.strip()][-LAST_LINES:]


def _line(text: object) -> str:
    return printable(" ".join(str(text).split()))[:500]


def _faults(row: CheckedTask, task: LoadedTask, strict: bool) -> list[str]:
    faults = []
    for segment, script in zip(task.record.segments, task.solutions, strict=True):
        if script is None:
            name = f"steps/{segment.name}/" if task.record.k > 1 else ""
            faults.append(
                f"{row.path}/{name}solution/solve.sh: is missing; without it there is "
                "nothing to check."
            )
    offline = f" (checked offline; the task declares {row.network})" if row.network else ""
    if row.solution is not None:
        faults += _solution_faults(row.solution, task.record.k, offline)
    same = row.solution and row.solution.error and row.nothing == row.solution
    if row.nothing is not None and not same:
        faults += _nothing_faults(row.nothing, task.record.k, strict)
    return faults


def _solution_faults(outcome: TrialOutcome, k: int, offline: str) -> list[str]:
    if outcome.passed:
        # Every honest pass of this task would be taken for a forged one.
        if outcome.suspect:
            return [
                f"the reference solution passes, but its verdict is suspect: {outcome.suspect}. "
                f"No honest run of this task can count as solved; {_remedy(outcome.suspect)}."
            ]
        return []
    faults = []
    for segment in outcome.segments:
        if segment.passed is False:
            where = f" segment {segment.name}" if k > 1 else ""
            faults.append(
                f"the reference solution fails{where} with reward {segment.reward:g}{offline}"
                + _indented(segment.last_lines)
            )
    if outcome.passed is None:
        faults.append(_no_verdict("the reference solution", outcome, k, offline))
    return faults


_SEPARATE = 'one with an environment of its own (environment_mode = "separate" in task.toml)'
_REMEDIES = {
    "was written before": "let nothing but the verifier write to /logs/verifier",
    "after the verifier had returned": "let the verifier end what it starts before it returns",
    "contradict each other": "let the verifier write one reward file",
    "the verifier does not write": "let the verifier write one reward file",
}


def _remedy(suspicion: str) -> str:
    """What to do about a task whose honest passes are suspect."""
    known = {remedy: None for cause, remedy in _REMEDIES.items() if cause in suspicion}
    return ", and ".join(known) or (
        "let the verifier ask for nothing but files and running processes, or use " + _SEPARATE
    )


def _nothing_faults(outcome: TrialOutcome, k: int, strict: bool) -> list[str]:
    if outcome.passed:
        return ["doing nothing passes the task"]
    faults = []
    if outcome.passed is None or (strict and any(s.passed is None for s in outcome.segments)):
        faults.append(_no_verdict("doing nothing", outcome, k, ""))
    return faults + (_idle_segments(outcome) if strict else [])


def _notes(row: CheckedTask, task: LoadedTask, strict: bool) -> list[str]:
    """Passes that cannot be confirmed.

    Without ``strict``: segments that pass by themselves, though the task does not.
    """
    notes = []
    if row.solution and row.solution.passed and row.solution.unconfirmed:
        notes.append(
            f"the reference solution passes, but is not confirmed: {row.solution.unconfirmed}. "
            "Passes of this task will count apart; a verifier that starts itself what it needs, "
            f"or {_SEPARATE}, gives passes that are confirmed."
        )
    if strict or task.record.k == 1 or row.nothing is None or row.nothing.passed:
        return notes
    return [*notes, *_idle_segments(row.nothing)]


def _idle_segments(outcome: TrialOutcome) -> list[str]:
    return [
        f"doing nothing passes segment {segment.name}"
        for segment in outcome.segments
        if segment.passed
    ]


def _no_verdict(what: str, outcome: TrialOutcome, k: int, offline: str) -> str:
    segment = next(s for s in outcome.segments if s.passed is None)
    where = f" in segment {segment.name}" if k > 1 else ""
    reason = outcome.error or "the verifier was not reached"
    return f"{what} gave no verdict{where}: {reason}{offline}" + _indented(segment.last_lines)


def _indented(lines: str) -> str:
    return "".join(f"\n    | {line}" for line in lines.splitlines())


@contextlib.contextmanager
def _progress(console: Console | None, trials: int) -> Iterator[Callable[[], None]]:
    if console is None:
        yield lambda: None
        return
    bar = Progress(TextColumn("Checking"), BarColumn(), MofNCompleteColumn(), console=console)
    with bar:
        shown = bar.add_task("", total=trials)
        yield lambda: bar.advance(shown)
