"""A reference solution played by hand: a fresh offline container, a script, its checks.

For what Harbor's trial cannot do: solutions with parts taken out, checks at any time, several in
one container (Appendices F and H). Images, limits and users are those of a trial.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from docker.models.images import Image
from harbor.models.trial.paths import TrialPaths

from depthkit.errors import DepthkitError
from depthkit.tasks import LoadedTask
from depthkit.tasks.check_scripts import full_script
from depthkit.tasks.text import encoding_of, printable
from depthkit.trials import engine
from depthkit.trials.checks import CheckOutcome, run_checks
from depthkit.trials.environment import DockerEnvironment
from depthkit.trials.offline import OfflineEnvironment
from depthkit.trials.snapshot import not_in_a_snapshot, other_processes, take_snapshot
from depthkit.trials.traces import as_root

SOLUTION = "/solution"
LOG = "/logs/agent/oracle.txt"
"""Where Harbor's oracle leaves what a solution prints."""

SOLUTION_SECONDS = 30 * 60.0
"""Time limit of a segment's solution where the task sets none."""


@dataclass(frozen=True)
class Played:
    """How a solution ended.

    Attributes:
        status: Its exit status; ``None`` if it did not end in time.
        said: The end of what it printed; untrusted text.
    """

    status: int | None
    said: str


@asynccontextmanager
async def offline_container(
    task: LoadedTask, *, name: str, image: Image | None = None
) -> AsyncIterator[DockerEnvironment]:
    """A fresh container of a task without network; it is removed afterwards.

    Args:
        task: The task; its environment must be a Dockerfile or a ready image.
        name: Told in the container's name.
        image: Snapshot to start from, in place of the task's image.

    Raises:
        DepthkitError: The task uses a compose file, or its image does not build.
    """
    if task.compose:
        raise DepthkitError(f"{task.path}: environments with a compose file are not replayed.")
    config = task.config.environment
    if image is not None:
        config = config.model_copy(update={"docker_image": image.id})
    stem = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{task.record.task_id[:40]}-{name}").strip("-.")
    with tempfile.TemporaryDirectory(prefix="depthkit-play-") as folder:
        environment = OfflineEnvironment(
            environment_dir=task.path / "environment",
            environment_name=task.record.task_id,
            session_id=f"{stem}__{engine.owner().id}",
            trial_paths=TrialPaths(Path(folder)),
            task_env_config=config,
        )
        environment.default_user = task.config.agent.user
        try:
            if image is None:
                await environment.start(force_build=False)
            else:  # Folders for logs and the loose files of a ready image are in the snapshot.
                await environment.start_bare()
            yield environment
        finally:
            await environment.stop(delete=True)


async def play_solution(
    environment: DockerEnvironment, task: LoadedTask, index: int, *, script: str | None = None
) -> Played:
    """Run the reference solution of a segment, as Harbor's oracle does.

    Args:
        environment: A running container.
        task: The task.
        index: The segment, from 0.
        script: In place of its ``solve.sh``; the files beside it are there all the same.

    Raises:
        DepthkitError: The segment has no solution.
        ContainerDiedError: If the container dies.
    """
    path = task.solutions[index]
    if path is None:
        raise DepthkitError(f"{task.path}: segment {index + 1} has no solution/solve.sh.")
    beside = [each for each in sorted(path.parent.rglob("*")) if each != path]
    members = [(each, each.relative_to(path.parent).as_posix()) for each in beside]
    with tempfile.TemporaryDirectory() as folder:
        played = Path(folder) / "solve.sh"
        played.write_bytes(
            path.read_bytes() if script is None else script.encode(encoding_of(path))
        )
        played.chmod(0o755)
        await environment.upload_files([*members, (played, "solve.sh")], SOLUTION)
    await as_root(
        environment,
        f"mkdir -p /logs/agent && chmod 777 /logs /logs/agent {SOLUTION} && rm -f {LOG}",
    )
    status: int | None
    end = f"tail -c 2000 {LOG} 2>/dev/null"
    seconds = _seconds(task, index)
    try:
        # Into a file, so that a daemon that keeps its output open holds nobody up.
        done = await environment.exec(
            f"{SOLUTION}/solve.sh >{LOG} 2>&1 </dev/null; status=$?; {end}; exit $status",
            env={"DEBIAN_FRONTEND": "noninteractive", **_variables(task)},
            timeout_sec=int(seconds),
        )
        status, said = done.return_code, done.stdout
    except RuntimeError as error:
        if "timed out" not in str(error):
            raise
        status, said = None, (await environment.exec(end, user="root")).stdout
    lines = [printable(line)[:300] for line in (said or "").splitlines() if line.strip()]
    return Played(status, "\n".join(lines[-8:]))


def _seconds(task: LoadedTask, index: int) -> float:
    steps = task.config.steps
    own = steps[index].agent.timeout_sec if steps else None
    seconds = own or task.agent_timeout_sec or SOLUTION_SECONDS
    return float(seconds) * task.merged_segments


def _variables(task: LoadedTask) -> dict[str, str]:
    from harbor.utils.env import resolve_env_vars

    return dict(resolve_env_vars(task.config.solution.env)) if task.config.solution.env else {}


async def run_check_script(
    environment: DockerEnvironment, task: LoadedTask, index: int
) -> CheckOutcome:
    """Run the check script of a segment, by its place from 0; nothing of it stays.

    Raises:
        DepthkitError: The segment's checks are not written with the check library.
        ContainerDiedError: If the container dies.
    """
    script = full_script(task, index)
    if script is None:
        name = task.record.segments[index].name
        raise DepthkitError(
            f"{task.path}: the checks of segment {name} are not written with the check library "
            "(tests/check.sh)."
        )
    return await run_checks(environment, script, user=task.config.verifier.user)


async def resting_image(environment: DockerEnvironment) -> Image | None:
    """A snapshot of a container that is at rest; ``None`` where it would lose something.

    A snapshot keeps files alone: no process beside the one that keeps the container alive may run,
    and nothing may be there that it does not hold.

    Raises:
        NoSnapshotError: It cannot be made.
    """
    if await other_processes(environment) or await not_in_a_snapshot(environment):
        return None
    return await take_snapshot(environment)
