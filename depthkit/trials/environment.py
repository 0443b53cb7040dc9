"""Harbor's environment on docker-py: for tasks that are a Dockerfile or a ready image.

Given to Harbor by import path. Beside Harbor's compose environment it makes ``no-network`` work
without a sidecar, runs an init process, enforces CPU and memory limits, labels all it makes with
its owner (:mod:`depthkit.trials.engine`), gives images what they lack for a trial
(:mod:`depthkit.trials.tools`), tells how a container died, and costs a fraction of the time for
each command.
Tasks with a compose file go to Harbor's own Docker environment.
"""

from __future__ import annotations

import asyncio
import shutil
import tarfile
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, cast, override

from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.models.containers import Container
from docker.models.images import Image
from docker.types import Mount
from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import (
    EnvironmentCapabilities,
    EnvironmentResourceCapabilities,
)
from harbor.environments.docker.docker import DockerEnvironment as HarborDocker
from harbor.models.trial.config import ServiceVolumeConfig
from harbor.models.trial.paths import EnvironmentPaths
from harbor.utils.path_filter import filter_paths_by_patterns

from depthkit.trials import copying, engine, tools
from depthkit.trials.images import Build, ensure_image
from depthkit.trials.threads import in_thread

_DYING_SECONDS = 2.0

MOST_PROCESSES = 4096
"""Of one container, threads included; the field that would change it is not one of Harbor's."""
DISK_MB = 10_240
"""What a container may write where its task states no ``storage_mb``."""
DISK_SECONDS = 15.0
"""Between two looks at that. The usual storage of an engine, overlay2 on ext4, knows no limit."""


class ContainerDiedError(RuntimeError):
    """The container is gone or stopped, so nothing can be executed in it."""


class ContainerEndedError(ContainerDiedError):
    """Its first process ended from within, with nobody outside having a hand in it."""


class DockerEnvironment(BaseEnvironment):
    """One container, driven over the engine's API."""

    _container: Container | None = None
    _build: Build
    _disk: asyncio.Task[None] | None = None
    _overfull: str | None = None
    image_id: str | None = None
    """Identity of the image the container was started from."""
    _answered = False
    lacks: frozenset[str] = frozenset()
    """Names of what the image lacks for a trial (:mod:`depthkit.trials.tools`)."""
    guarded: bool = False
    """Whether the container has the tool set, so that its own programs need not be trusted."""
    hostname: str | None = None  # by default the engine gives it one

    @staticmethod
    @override
    def type() -> str:
        return "depthkit-docker"

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True)

    @classmethod
    @override
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        return EnvironmentResourceCapabilities(
            cpu_limit=True, memory_limit=True, fractional_cpus=True
        )

    @override
    def _validate_definition(self) -> None:
        if self.task_env_config.docker_image or self._dockerfile.is_file():
            return
        raise FileNotFoundError(
            f"{self._dockerfile}: there is no Dockerfile, and task.toml names no "
            "[environment] docker_image; give one of the two."
        )

    @property
    def _dockerfile(self) -> Path:
        return self.environment_dir / "Dockerfile"

    @property
    def container(self) -> Container:
        """The running container.

        Raises:
            ContainerDiedError: If it has not been started or was removed.
        """
        if self._container is None:
            raise ContainerDiedError(f"{self.session_id}: the container is not running")
        return self._container

    # --- life ---

    @override
    async def start(self, force_build: bool) -> None:
        await self.start_bare(force_build=force_build)
        await self.ensure_dirs(self._mount_targets(writable_only=True))
        await self._upload_environment_dir_after_start()

    async def start_bare(self, *, force_build: bool = False) -> None:
        """Start the container, without the folders and files that Harbor expects in it."""
        self._build = Build()
        try:
            image = await in_thread(lambda: self._image(force_build))
        finally:
            self._build.end()  # Where its time is over, or this is being ended.
        self.image_id = image.id
        await in_thread(lambda: self._start(image))
        self._disk = asyncio.create_task(self._watch_disk(self.container))

    async def _watch_disk(self, container: Container) -> None:
        """Kill the container once it takes more of the disk than its task may."""
        most = self._effective_storage_mb or DISK_MB
        pause = DISK_SECONDS
        while True:
            await asyncio.sleep(pause)
            began = time.monotonic()
            try:
                taken = await in_thread(lambda: engine.bytes_written(container)) >> 20
            except (DockerException, OSError):
                continue  # what is wrong there, commands tell
            if taken > most:
                self._overfull = (
                    f"the container was killed when it had written {taken} MB, more than the "
                    f"{most} MB that [environment] storage_mb of its task.toml allows"
                )
                await in_thread(lambda: container.kill())
                return
            pause = max(DISK_SECONDS, 20 * (time.monotonic() - began))

    def _image(self, force_build: bool) -> Image:
        ready = self.task_env_config.docker_image
        if ready and not (force_build and self._dockerfile.is_file()):
            images = engine.client().images
            try:
                return images.get(ready)
            except ImageNotFound:
                return images.pull(ready)
        return ensure_image(
            self.environment_dir, self.environment_id, force=force_build, build=self._build
        )

    def _start(self, image: Image) -> None:
        missing = tools.known(image)
        started = self._container = self._run_retrying(missing or tools.Missing(image))
        if missing is None:
            # Most images lack nothing, so the first container of an image is the one to ask.
            missing = self._api_call(lambda: tools.look(image, started))
            if missing.tools:
                engine.remove_container(started)
                self._container = self._run_retrying(missing)
        self.lacks = missing.tools

    def _run_retrying(self, missing: tools.Missing) -> Container:
        try:
            return self._run(missing)
        except NotFound:
            # Another process took away the shared network, or an image it had built, between
            # our look and our use.
            return self._run(replace(missing, image=self._image(force_build=False)))

    def _run(self, missing: tools.Missing) -> Container:
        cpus = self._effective_cpus
        memory = f"{megabytes}m" if (megabytes := self._effective_memory_mb) else None
        options = missing.run_options(self._startup_env())
        self.guarded = "volumes_from" in options
        return engine.client().containers.run(
            missing.image,
            missing.keep_alive(),
            name=f"{self.session_id}-{uuid.uuid4().hex[:8]}",
            hostname=self.hostname,
            detach=True,
            init=True,
            labels=engine.owner().labels,
            network_mode="none" if self._network_disabled else engine.public_network(),
            nano_cpus=int(cpus * 1e9) if cpus else None,
            # Swap counts as memory, or the limit would be no limit.
            mem_limit=memory,
            memswap_limit=memory,
            pids_limit=MOST_PROCESSES,
            working_dir=self.task_env_config.workdir,
            mounts=[self._mount(mount) for mount in self._host_mounts],
            **options,
        )

    @staticmethod
    def _mount(wanted: ServiceVolumeConfig) -> Mount:
        if wanted["type"] == "image":
            raise ValueError(f"{wanted['target']}: mounts of type image are not supported here")
        return Mount(
            target=wanted["target"],
            source=wanted["source"],
            type=wanted["type"],
            read_only=wanted.get("read_only", False),
        )

    @override
    async def stop(self, delete: bool) -> None:
        container, self._container = self._container, None
        if self._disk is not None:
            self._disk.cancel()
        if container is None:
            return
        if delete:
            await in_thread(lambda: engine.remove_container(container))
        else:
            await in_thread(lambda: container.kill())

    # --- files ---

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        target = PurePosixPath(target_path)
        await self.upload_files([(Path(source_path), target.name)], str(target.parent))

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        root = Path(source_dir)
        members = [(path, path.relative_to(root).as_posix()) for path in sorted(root.rglob("*"))]
        await self.upload_files(members, target_dir)

    async def upload_files(self, members: list[tuple[Path, str]], target_dir: str) -> None:
        """Put files and folders, with their names there, into a folder at once, as root's."""
        await in_thread(
            lambda: self._api_call(lambda: copying.put(self.container, target_dir, members))
        )

    @override
    async def is_dir(self, path: str, user: str | int | None = None) -> bool:
        posix = PurePosixPath(path)
        mode = await in_thread(
            lambda: self._api_call(lambda: copying.mode_of(self.container, posix))
        )
        if mode is not None and mode & copying.LINK:
            return await super().is_dir(path, user=user)
        return mode is not None and bool(mode & copying.FOLDER)

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        def fetch() -> None:
            with self._get(source_path) as archive:
                for member in archive:
                    source = archive.extractfile(member) if member.isreg() else None
                    if source is None:
                        raise FileNotFoundError(f"{source_path} is not a regular file")
                    target = Path(target_path)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with target.open("wb") as out:
                        while chunk := source.read(1 << 20):
                            out.write(chunk)
                    return

        await in_thread(fetch)

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        def fetch() -> None:
            target = Path(target_dir)
            target.mkdir(parents=True, exist_ok=True)
            read_whole = PurePosixPath(source_dir) == EnvironmentPaths().verifier_dir
            with self._get(source_dir, copying.MOST_READ if read_whole else None) as archive:
                archive.extractall(target, filter=copying.contents)  # noqa: S202

        await in_thread(fetch)

    @override
    async def download_dir_filtered(
        self,
        *,
        source_dir: str,
        target_dir: Path | str,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        protect: Sequence[str] | None = None,
    ) -> None:
        if "*" in (exclude or ()) and not protect:
            return
        # Harbor packs the wanted files in the container first; one download is quicker.
        with tempfile.TemporaryDirectory() as name:
            everything, target = Path(name), Path(target_dir)
            await self.download_dir(source_dir, everything)
            paths = [p.relative_to(everything).as_posix() for p in everything.rglob("*")]
            wanted = filter_paths_by_patterns(paths, include=include, exclude=exclude)
            for path in {*wanted, *(set(protect or ()) & set(paths))}:
                if (everything / path).is_file():
                    (target / path).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(everything / path, target / path)

    def _get(self, path: str, most: int | None = None) -> tarfile.TarFile:
        def fetch() -> tarfile.TarFile:
            try:
                return copying.get(self.container, path, most or copying.MOST_BYTES)
            except NotFound as error:
                if self._alive():
                    raise FileNotFoundError(f"{path} does not exist in the container") from error
                raise

        return self._api_call(fetch)

    # --- commands ---

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        merged = self._merge_env(env)
        resolved = self._resolve_user(user)
        callback = self._output_callback()
        if timeout_sec is None:
            result = await in_thread(
                lambda: self._exec(command, cwd=cwd, env=merged, user=resolved)
            )
        else:
            result = await self._exec_within(timeout_sec, command, cwd, merged, resolved)
        if callback is not None:
            if result.stdout:
                await callback(result.stdout, "stdout")
            if result.stderr:
                await callback(result.stderr, "stderr")
        return result

    async def exec_guarded(self, command: str) -> ExecResult:
        """Run a command as root, where ``guarded`` with the programs of the tool set alone."""
        own: dict[str, Any] = (
            {"shell": tools.GUARD, "env": tools.GUARD_VARIABLES} if self.guarded else {}
        )
        return await in_thread(lambda: self._exec(command, cwd="/", user="root", **own))

    async def _exec_within(
        self,
        seconds: float,
        command: str,
        cwd: str | None,
        env: dict[str, str] | None,
        user: str | int | None,
    ) -> ExecResult:
        # The engine cannot end what it started with exec, so the processes carry a mark by
        # which they are found.
        mark = uuid.uuid4().hex
        marked = {**(env or {}), "DEPTHKIT_EXEC": mark}
        running = asyncio.ensure_future(
            in_thread(lambda: self._exec(command, cwd=cwd, env=marked, user=user))
        )
        try:
            return await asyncio.wait_for(asyncio.shield(running), seconds)
        except TimeoutError as error:
            await in_thread(lambda: self._exec(_KILL_MARKED.format(mark=mark), user="root"))
            raise RuntimeError(f"Command timed out after {seconds} seconds") from error

    def _exec(
        self,
        command: str,
        *,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | int | None = None,
        shell: Sequence[str] = ("bash",),
    ) -> ExecResult:
        def run() -> ExecResult:
            code, output = self.container.exec_run(
                [*shell, "-c", command],
                demux=True,
                environment=env,
                # By number, since an image need not have a list of users.
                user="" if user is None else "0" if user == "root" else str(user),
                workdir=cwd or self.task_env_config.workdir,
            )
            # A command of a container that was killed ends as if it had been killed itself.
            if code is None or (code > 128 and self._dying()):
                raise self._death(" during a command")
            self._answered = True
            out, err = cast("tuple[bytes | None, bytes | None]", output)
            return ExecResult(stdout=_text(out), stderr=_text(err), return_code=code)

        return self._api_call(run)

    def _api_call[T](self, call: Callable[[], T]) -> T:
        try:
            return call()
        except (APIError, ConnectionError, OSError) as error:
            if isinstance(error, FileNotFoundError) or self._alive():
                raise
            raise self._death(f": {error}") from error

    def _death(self, when: str) -> ContainerDiedError:
        container = self._container
        if self._overfull:
            return ContainerEndedError(f"{self.session_id}: {self._overfull}")
        if container and not self._answered and (why := engine.ended_at_once(container)):
            when = f": {why}"
        elif container and (how := engine.ended_by_itself(container)):
            return ContainerEndedError(f"{self.session_id}: {how}")
        return ContainerDiedError(f"{self.session_id}: the container died{when}")

    def _alive(self) -> bool:
        if self._container is None:
            return False
        try:
            self._container.reload()
        except (APIError, ConnectionError, OSError):
            return False
        return bool(self._container.status == "running")

    def _dying(self) -> bool:
        # The engine still calls a container running for a moment after its last process ended.
        until = time.monotonic() + _DYING_SECONDS
        while self._alive():
            if time.monotonic() > until:
                return False
            time.sleep(0.1)
        return True

    async def is_alive(self) -> bool:
        """Whether the container runs."""
        return await in_thread(self._alive)


class ComposeEnvironment(HarborDocker):
    """Harbor's environment, which would leave compose building when nobody waits any more."""

    @staticmethod
    @override
    async def _collect_buffered_output(
        process: asyncio.subprocess.Process, **options: Any
    ) -> ExecResult:
        try:
            return await HarborDocker._collect_buffered_output(process, **options)
        except asyncio.CancelledError:
            await HarborDocker._terminate_process(process)
            raise


# Plain shell, for images without pkill; kills the marked processes but not this search itself.
_KILL_MARKED = (
    "for p in /proc/[0-9]*; do "
    'while IFS= read -r -d "" v; do '
    '[ "$v" = DEPTHKIT_EXEC={mark} ] && kill -9 "${{p#/proc/}}"; '
    'done 2>/dev/null < "$p/environ"; done'
)


def _text(output: bytes | None) -> str | None:
    return None if output is None else output.decode("utf-8", errors="replace")
