"""A verifier whose verdict cannot be forged quietly (given to Harbor by import path).

Harbor's verifier writes its verdict into a file of a world-writable folder in the container in
which the agent's processes still run. Released tasks must be verified that way. Around Harbor's
own verifier, which runs unchanged, the following is done, with the programs of the tool set and
the engine's archive API alone; whatever it finds makes the run ``suspect``, and a suspect run
never counts as a pass.

Before: the files of the container are kept as a snapshot, its processes are listed from the
engine's host, what the agent left in ``/tests`` is removed, and ``/logs/verifier`` is emptied and
closed to all but the verifier's user. Where the agent has a user of its own, so is ``/tests``.

At the start: a reward file that is there already was written by somebody else.

On return: the folder is read once, over the engine's archive API, and what was read is the
verdict. Two reward files that contradict each other have two authors.

Where the verdict is a pass, then: *bait*, two reward files that say "failed", put into the
emptied folder for a second; nobody has a reason to touch them. Meanwhile the same verifier runs
on the snapshot, in a fresh container of the same name without the agent's processes. If it fails
there, twice, and the live container had nothing that a snapshot does not hold, then something else
than the state of the container made it pass. If it had (a service that is to be checked, a socket,
an access list), the task may need that, and the run's detail says that the two could not be
compared. A reward file that the verifier does not write in the snapshot, and that no test names,
was not written by it in the container either.

Afterwards: processes and temporary files of the verifier, ``/tests`` and ``/logs/verifier`` are
gone, so a later segment finds nothing of the checks.

A container that the agent's processes bring to an end, or to a state in which nothing can be
verified, is a result and no fault of ours: else a run that fails could ask for another try.

What a root agent can still do is in ``docs/verdicts.md``. Verifiers in an environment of their
own (``environment_mode = "separate"``) meet no process of the agent and run as they are.
"""

from __future__ import annotations

import asyncio
import shlex
import tempfile
from collections.abc import Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast, override

from docker.errors import APIError, DockerException
from harbor.environments.base import BaseEnvironment
from harbor.models.task.config import StepConfig, VerifierEnvironmentMode
from harbor.models.task.verifier_mode import resolve_step_verifier_mode, resolve_task_verifier_mode
from harbor.models.trial.paths import EnvironmentPaths, TrialPaths
from harbor.models.verifier.result import VerifierResult
from harbor.verifier.verifier import (
    AddTestsDirError,
    DownloadVerifierDirError,
    RewardFileEmptyError,
    RewardFileNotFoundError,
    Verifier,
    VerifierOutputParseError,
)

from depthkit.protocol.verdict import passes
from depthkit.tasks.text import printable
from depthkit.trials import engine
from depthkit.trials.copying import TooLargeError
from depthkit.trials.environment import ContainerEndedError, DockerEnvironment
from depthkit.trials.snapshot import (
    SHOW_ENGINE_FILES,
    NoSnapshotError,
    drop_snapshot,
    engine_files,
    not_in_a_snapshot,
    other_processes,
    removal_of_added,
    started_from,
    take_snapshot,
)
from depthkit.trials.threads import in_thread
from depthkit.trials.traces import Threshold, UnfitContainerError, as_root, no_traces
from depthkit.trials.watch import Watch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from docker.models.images import Image

BAIT_SECONDS = 1.0

_LOGS = str(EnvironmentPaths().verifier_dir)
_TESTS = str(EnvironmentPaths().tests_dir)
_REWARDS = ("reward.txt", "reward.json")
_BAIT = {"reward.txt": "0\n", "reward.json": '{"reward": 0}\n'}
_NO_REWARD = (RewardFileNotFoundError, RewardFileEmptyError, VerifierOutputParseError)

_UNREACHED = (AddTestsDirError, DownloadVerifierDirError)

_UNGUARDED = (
    "the tool set is not built (make tools), so the guards ran programs that the agent may have "
    "replaced"
)


class VerifierTooSlowError(RuntimeError):
    """The verifier took longer than the task allows, so there is no verdict."""


@dataclass(frozen=True)
class _Before:
    """The container as it was before the verification.

    Attributes:
        snapshot: Its files, or why there is none.
        planted: Removes what the agent put where the tests will be; nothing if it is empty.
        closing: What else has been done to it.
        of_the_engine: Contents of the engine's files, as they were shown.
        running: Its processes beside the idle terminal; ``None`` if the engine could not list them.
    """

    snapshot: Image | NoSnapshotError
    planted: str
    closing: str
    of_the_engine: str
    running: list[str] | None


class WatchedVerifier(Verifier):
    """Harbor's verifier, watched."""

    @override
    async def verify(self) -> VerifierResult:
        """Verify, watch, and leave a :class:`Watch` in the trial's folder.

        Raises:
            VerifierTooSlowError: If the verifier takes longer than the task allows.
            ContainerEndedError: If the container is ended from within meanwhile.
            UnfitContainerError: If what the agent left cannot be verified at all.
        """
        watch = Watch(self.step_name)
        if self._is_separate():
            result = await super().verify()
            watch.rewards, watch.confirmed = result.rewards, passes(result.rewards) or None
            watch.append_to(self.trial_paths.trial_dir)
            return result
        try:
            return await self._verify_watched(watch)
        except Exception as error:
            await self._raise_what_the_agent_did(watch, error)
            raise
        finally:
            watch.append_to(self.trial_paths.trial_dir)

    async def _raise_what_the_agent_did(self, watch: Watch, error: Exception) -> None:
        """Raise what says so, where an error is the container's and not the engine's."""
        environment, cause = self.environment, error.__cause__
        if not isinstance(environment, DockerEnvironment):
            return
        if not isinstance(error, (*_NO_REWARD, VerifierTooSlowError)):
            await in_thread(environment._dying)  # The engine may not know it yet.
        if how := await in_thread(lambda: engine.ended_by_itself(environment.container)):
            watch.suspect.append(f"{how} while it was verified")
            raise ContainerEndedError(f"{environment.session_id}: {how}") from error
        if isinstance(cause, ContainerEndedError):
            raise cause
        if isinstance(error, _UNREACHED) and (
            isinstance(cause, FileNotFoundError)
            or (isinstance(cause, APIError) and cause.is_client_error())
        ):
            raise UnfitContainerError(f"{environment.session_id}: {error} {cause}") from error

    @property
    def _step(self) -> StepConfig | None:
        steps = self.task.config.steps or []
        return next((step for step in steps if step.name == self.step_name), None)

    def _is_separate(self) -> bool:
        config, step = self.task.config, self._step
        if step is None:
            return resolve_task_verifier_mode(config) == VerifierEnvironmentMode.SEPARATE
        return resolve_step_verifier_mode(config, step) == VerifierEnvironmentMode.SEPARATE

    @property
    def _seconds(self) -> float:
        """The task's own limit for one verification."""
        step = self._step
        own = step.verifier.timeout_sec if step else None
        return self.task.config.verifier.timeout_sec if own is None else own

    async def _verify_watched(self, watch: Watch) -> VerifierResult:
        async with self._snapshot() as snapshot:
            running = await self._processes()
            planted = await removal_of_added(self.environment, _TESTS)
            closing = await self._closing()
            async with no_traces(
                self.environment,
                prepare=f"{planted}\n{closing}\n{SHOW_ENGINE_FILES}",
                emptied=[_TESTS, _LOGS],
            ) as marked:
                before = _Before(snapshot, planted, closing, marked.said, running)
                result = await self._verify_live(watch, marked.variables)
                watch.rewards = result.rewards
                contents = _rewards_in(self.trial_paths.verifier_dir)
                if len({bool(passes(self._parsed(name))) for name in contents}) > 1:
                    watch.suspect.append("reward.txt and reward.json contradict each other")
                if passes(result.rewards):
                    bait = asyncio.create_task(self._lay_bait(watch))
                    try:
                        await self._compare(watch, before, set(contents))
                    finally:
                        await bait
                    if isinstance(self.environment, DockerEnvironment) and (
                        not self.environment.guarded
                    ):
                        watch.note = "; ".join(filter(None, [watch.note, _UNGUARDED]))
            return result

    async def _verify_live(self, watch: Watch, variables: dict[str, str]) -> VerifierResult:
        environment, override = self.environment, self.override_env
        declared = {**self.task.config.verifier.env, **(self.verifier_env or {}), **override}
        self.override_env = {**variables, **declared}

        async def start(first: str) -> None:
            await _at_start(environment, watch, first)

        self.environment = cast("BaseEnvironment", Threshold(environment, start))
        try:
            async with asyncio.timeout(self._seconds) as limit:
                return await super().verify()
        except DownloadVerifierDirError as error:
            if isinstance(error.__cause__, TooLargeError):  # a result: the container lives
                raise VerifierOutputParseError(str(error.__cause__)) from error
            raise
        except TimeoutError as error:
            if limit.expired():
                raise VerifierTooSlowError(
                    f"the verifier took longer than {self._seconds:g} s"
                ) from error
            raise
        finally:
            self.environment, self.override_env = environment, override

    # --- before ---

    @asynccontextmanager
    async def _snapshot(self) -> AsyncIterator[Image | NoSnapshotError]:
        try:
            image = await take_snapshot(self.environment)
        except NoSnapshotError as error:
            yield error
            return
        try:
            yield image
        finally:
            await drop_snapshot(image)

    async def _processes(self) -> list[str] | None:
        """Command lines beside the idle terminal; ``None`` if the engine cannot list them."""
        if not isinstance(self.environment, DockerEnvironment):
            return None
        try:
            return await other_processes(self.environment)
        except DockerException:
            return None

    async def _closing(self) -> str:
        """Commands that empty the folder of the verdict and close it to others."""
        owner = self.environment.default_user
        if owner is None and isinstance(self.environment, DockerEnvironment):
            owner = self.environment.container.attrs["Config"]["User"] or "root"
        elif owner is None:
            owner = ((await self.environment.exec("id -u")).stdout or "0").strip()
        lines = [
            "set -e",
            f"if [ -L {_LOGS} ] || [ ! -d {_LOGS} ]; then rm -rf {_LOGS}; fi",
            f"mkdir -p {_LOGS}",
            f"find {_LOGS} -mindepth 1 -maxdepth 1 -exec rm -rf {{}} +",
            *_close(_LOGS, owner),
        ]
        step, config = self._step, self.task.config
        agent = step.agent.user if step and step.agent.user is not None else config.agent.user
        if agent is not None and str(agent) not in ("root", "0", str(owner)):
            lines += [f"mkdir -p {_TESTS}", *_close(_TESTS, owner)]
        return "\n".join(lines)

    # --- at the start, on return, after it ---

    def _parsed(self, name: str) -> Mapping[str, float] | None:
        try:
            json_one = name.endswith(".json")
            return self._parse_reward_json() if json_one else self._parse_reward_text()
        except _NO_REWARD:
            return None

    async def _lay_bait(self, watch: Watch) -> None:
        """Put reward files that say "failed" where the verifier wrote, and see who changes them."""
        writes = "\n".join(
            f"printf %s {shlex.quote(text)} > {_LOGS}/{name}" for name, text in _BAIT.items()
        )
        await as_root(
            self.environment,
            f"find {_LOGS} -mindepth 1 -maxdepth 1 -exec rm -rf {{}} +\n{writes}\n"
            f"sleep {BAIT_SECONDS}",
        )
        with tempfile.TemporaryDirectory(prefix="depthkit-") as folder:
            try:
                await self.environment.download_dir(_LOGS, folder)
                untouched = _rewards_in(Path(folder)) == _BAIT
            except TooLargeError:
                untouched = False
            if not untouched:
                watch.suspect.append("a reward file was written after the verifier had returned")

    async def _compare(self, watch: Watch, before: _Before, written: set[str]) -> None:
        """Verify the snapshot."""
        snapshot, beside = before.snapshot, before.running
        if isinstance(snapshot, NoSnapshotError):
            watch.note = f"there was no snapshot to compare with: {snapshot}"
            return
        try:
            # Twice if it fails and that is to count, since a verdict may vary by itself.
            for _ in range(1 if beside else 2):
                rewards, names = await self._verify_copy(snapshot, before)
                watch.confirmed = bool(passes(rewards))
                if watch.confirmed:
                    break
            if not watch.confirmed and beside == []:
                live = cast("DockerEnvironment", self.environment)
                beside = await not_in_a_snapshot(live, self._test_texts())
        except (DockerException, RuntimeError, TimeoutError, *_UNREACHED) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            watch.note, watch.confirmed = f"the snapshot could not be verified: {reason}", None
            return
        for other in sorted(written - names) if names else ():
            if not any(other in text for text in self._test_texts()):
                watch.suspect.append(f"the verifier does not write {other}, but it was there")
        if watch.confirmed:
            return
        if beside == []:
            watch.suspect.append(
                "the same files fail the same verifier where none of the agent's processes run"
            )
            return
        watch.confirmed = None
        what = ", ".join(printable(each)[:80] for each in (beside or [])[:5])
        watch.note = (
            "the snapshot fails, but could not be compared: the container also had "
            f"{what or 'processes that the engine could not list'}"
        )

    def _test_texts(self) -> list[str]:
        """What the files of the verifier say."""
        found = (path for folder in self._resolve_tests()[0] for path in sorted(folder.rglob("*")))
        return [path.read_text("utf-8", "replace") for path in found if path.is_file()]

    async def _verify_copy(
        self, image: Image, before: _Before
    ) -> tuple[Mapping[str, float] | None, set[str]]:
        """The verdict on a snapshot, and the names of the reward files written there."""
        with tempfile.TemporaryDirectory(prefix="depthkit-") as folder:
            paths = TrialPaths(Path(folder))
            paths.mkdir()  # type: ignore[no-untyped-call]
            async with (
                asyncio.timeout(self._seconds),
                started_from(self.environment, image) as twin,
            ):

                async def start(first: str) -> None:
                    live = cast("DockerEnvironment", self.environment)
                    files = engine_files(before.of_the_engine, live, twin)
                    await as_root(twin, f"{before.closing}\nset +e\n{files}\n{first}\n:")

                verifier = Verifier(
                    task=self.task,
                    trial_paths=paths,
                    environment=cast("BaseEnvironment", Threshold(twin, start)),
                    override_env=self.override_env,
                    logger=self.logger,
                    verifier_env=self.verifier_env,
                    step_name=self.step_name,
                )
                try:
                    if before.planted:
                        await as_root(twin, before.planted)
                    rewards = (await verifier.verify()).rewards
                except _NO_REWARD:
                    rewards = None
            return rewards, set(_rewards_in(paths.verifier_dir))


async def _at_start(environment: BaseEnvironment, watch: Watch, first: str) -> None:
    """Look for reward files, then run what is to be run first."""
    names = " -o ".join(f"-name {name}" for name in _REWARDS)
    found = await as_root(
        environment,
        f"find {_LOGS} -mindepth 1 -maxdepth 1 \\( {names} \\) -print -exec rm -rf {{}} + "
        f"|| exit\n{first}\n:",
    )
    if found.strip():
        watch.suspect.append("a reward file was written before the verifier started")


def _close(folder: str, owner: str | int) -> list[str]:
    chown = [] if str(owner) in ("root", "0") else [f"chown {shlex.quote(str(owner))} {folder}"]
    return [*chown, f"chmod 700 {folder}"]


def _rewards_in(folder: Path) -> dict[str, str]:
    """The reward files of a folder by name; links are none."""
    return {
        name: path.read_text(encoding="utf-8", errors="replace")
        for name in _REWARDS
        if (path := folder / name).is_file() and not path.is_symlink()
    }
