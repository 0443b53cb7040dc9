"""What Harbor asks of an environment holds of ours and of Harbor's own, by the same tests."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import threading
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from docker.errors import NotFound
from faulty import processes_of_the_host
from harbor.environments.base import BaseEnvironment
from harbor.environments.docker.docker import DockerEnvironment as HarborDocker
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths

from depthkit.errors import DepthkitError, DepthkitWarning
from depthkit.trials import copying, engine, environment, images, tools
from depthkit.trials.environment import (
    ComposeEnvironment,
    ContainerDiedError,
    ContainerEndedError,
    DockerEnvironment,
)

pytestmark = pytest.mark.docker

DOCKERFILE = "FROM depthkit/base:1\nWORKDIR /app\nRUN echo built > /app/made\n"

type Opened = Callable[..., Any]


async def until_none(env: BaseEnvironment, count: str) -> None:
    """Until a command that counts something prints 0, which may take a busy machine a while."""
    for _ in range(100):
        counted = (await env.exec(count)).stdout
        if counted == "0\n":
            return
        await asyncio.sleep(0.2)
    raise AssertionError(f"{count} still prints {counted}")


@asynccontextmanager
async def opened(
    kind: type[BaseEnvironment], folder: Path, *, config: dict[str, Any], **kwargs: Any
) -> AsyncIterator[BaseEnvironment]:
    source = folder / "environment"
    source.mkdir(exist_ok=True)
    (source / "Dockerfile").write_text(kwargs.pop("dockerfile", DOCKERFILE))
    paths = TrialPaths(folder / "trial")
    paths.mkdir()
    logs = [
        {"type": "bind", "source": str(paths.agent_dir), "target": "/logs/agent"},
        {"type": "bind", "source": str(paths.verifier_dir), "target": "/logs/verifier"},
    ]
    if issubclass(kind, HarborDocker):
        init = folder / "init.yaml"
        init.write_text("services:\n  main:\n    init: true\n")
        kwargs["extra_docker_compose"] = [init]
    environment = kind(
        environment_dir=source,
        environment_name="conformance",
        session_id=f"conformance-{folder.name}".lower().replace("_", "-")[:50],
        trial_paths=paths,
        task_env_config=EnvironmentConfig(**config),
        auto_mounts=logs,
        **kwargs,
    )
    await environment.start(force_build=False)
    try:
        yield environment
    finally:
        await environment.stop(delete=True)


@pytest.fixture(params=[DockerEnvironment, HarborDocker], ids=["depthkit", "harbor"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Open either environment with the same arguments."""

    def open_(**kwargs: Any) -> Any:
        config = kwargs.pop("config", {})
        return opened(request.param, tmp_path, config=config, **kwargs)

    return open_


@pytest.fixture
def ours(tmp_path: Path) -> Opened:
    def open_(**kwargs: Any) -> Any:
        config = kwargs.pop("config", {})
        return opened(DockerEnvironment, tmp_path, config=config, **kwargs)

    return open_


@pytest.fixture(autouse=True, scope="module")
def tidy_engine() -> Any:
    yield
    engine.release()


def test_commands_give_their_output_errors_and_status(either: Opened) -> None:
    async def check() -> None:
        async with either() as env:
            result = await env.exec("cat made; echo oops >&2; exit 7")
            assert result.return_code == 7
            # Harbor's own merges the two streams.
            assert sorted(f"{result.stdout}{result.stderr or ''}".split()) == ["built", "oops"]
            shell = await env.exec('x=(a b); echo "${x[1]} $BASH_VERSION"')
            assert shell.stdout.startswith("b 5.")

    asyncio.run(check())


def test_a_busy_process_loses_no_output_of_commands(ours: Opened) -> None:
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            sum(range(20_000))

    async def check() -> None:
        async with ours() as env:
            numbers = range(60)
            done = await asyncio.gather(*(env.exec(f"echo {each}") for each in numbers))
            assert [each.stdout for each in done] == [f"{each}\n" for each in numbers]

    threads = [threading.Thread(target=busy) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        asyncio.run(check())
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_commands_run_in_the_folder_with_the_variables_and_as_the_user_asked(
    either: Opened,
) -> None:
    async def check() -> None:
        async with either(config={"env": {"COLOUR": "blue"}}) as env:
            said = await env.exec(
                "pwd; echo $COLOUR $MORE; id -un", cwd="/tmp", env={"MORE": "x y"}
            )
            assert said.stdout.splitlines() == ["/tmp", "blue x y", "root"]
            nobody = await env.exec("id -un", user="nobody")
            assert nobody.stdout == "nobody\n"
            with env.with_default_user("nobody"):
                assert (await env.exec("id -un")).stdout == "nobody\n"

    asyncio.run(check())


def test_a_command_over_its_time_is_an_error(either: Opened) -> None:
    async def check() -> None:
        async with either() as env:
            with pytest.raises(RuntimeError, match="timed out"):
                await env.exec("sleep 30", timeout_sec=1)
            assert (await env.exec("echo still here")).stdout == "still here\n"

    asyncio.run(check())


def test_a_command_over_its_time_is_ended(ours: Opened) -> None:
    async def check() -> None:
        async with ours() as env:
            with pytest.raises(RuntimeError, match="timed out"):
                await env.exec("sleep 4321 & sleep 4321", timeout_sec=1)
            await until_none(env, "ps -eo args | grep -c '^sleep 4321' || true")

    asyncio.run(check())


def test_files_and_folders_go_in_and_come_out_whole(either: Opened, tmp_path: Path) -> None:
    source = tmp_path / "in"
    (source / "deep" / "er").mkdir(parents=True)
    data = os.urandom(300_000)
    (source / "deep" / "er" / "data.bin").write_bytes(data)
    script = source / "run me.sh"
    script.write_text("echo ran\n")
    script.chmod(0o755)

    async def check() -> None:
        async with either() as env:
            await env.upload_dir(source, "/opt/new/place")
            assert (await env.exec("'/opt/new/place/run me.sh'")).stdout == "ran\n"
            await env.upload_file(script, "/opt/other/name.sh")
            assert (await env.exec("cat /opt/other/name.sh")).stdout == "echo ran\n"
            await env.download_dir("/opt/new/place", tmp_path / "out")
            assert (tmp_path / "out" / "deep" / "er" / "data.bin").read_bytes() == data
            await env.download_file("/opt/other/name.sh", tmp_path / "one" / "name.sh")
            assert (tmp_path / "one" / "name.sh").read_text() == "echo ran\n"
            assert await env.is_dir("/opt/new")
            assert not await env.is_dir("/opt/other/name.sh")
            assert not await env.is_dir("/opt/nothing")
            # A link to a folder is as good as the folder; what was there keeps its permissions.
            await env.exec(
                "mkdir -m 750 /srv/own && ln -s /srv/own /linked && ln -s /made /dangling"
            )
            await env.upload_file(script, "/linked/a/b/name.sh")
            modes = await env.exec("stat -c %a /srv/own /srv/own/a /srv/own/a/b")
            assert modes.stdout.split() == ["750", "755", "755"]
            assert (await env.exec("bash /srv/own/a/b/name.sh")).stdout == "ran\n"
            assert await env.is_dir("/linked")
            assert not await env.is_dir("/dangling")

    (tmp_path / "one").mkdir()
    asyncio.run(check())


def test_limits_of_memory_and_processors_are_enforced(either: Opened) -> None:
    async def check() -> None:
        async with either(config={"cpus": 0.5, "memory_mb": 300}) as env:
            limits = await env.exec(
                "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max 2>/dev/null || "
                "cat /sys/fs/cgroup/memory/memory.limit_in_bytes "
                "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"
            )
            memory, processors = limits.stdout.splitlines()
            assert int(memory) == 300 << 20
            assert int(processors.split()[0]) == 50_000

    asyncio.run(check())


def test_processes_are_limited(ours: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "MOST_PROCESSES", 60)

    async def check() -> None:
        async with ours() as env:
            many = "for (1..90) { exec 'sleep', 300 unless fork // die qq($!\\n) }"
            failed = await env.exec(f'perl -e "{many}"'.replace("$", r"\$"))
            assert failed.stderr == "Resource temporarily unavailable\n"
            await env.exec("exec pkill -9 -f 'sleep 300'")
            assert (await env.exec("echo alive")).stdout == "alive\n"

    asyncio.run(check())


@pytest.mark.parametrize("stated", [{"storage_mb": 50}, {}])
def test_a_container_that_takes_too_much_of_the_disk_is_killed(
    ours: Opened, monkeypatch: pytest.MonkeyPatch, stated: dict[str, int]
) -> None:
    monkeypatch.setattr(environment, "DISK_MB", 50)
    monkeypatch.setattr(environment, "DISK_SECONDS", 0.1)

    async def check() -> None:
        async with ours(config=stated) as env:
            await env.exec("head -c 40M /dev/zero > /srv/fits; sleep 2")
            with pytest.raises(ContainerDiedError, match=r"written \d+ MB, more than the 50 MB"):
                await env.exec("head -c 40M /dev/zero > /srv/more; sleep 100")

    asyncio.run(check())


def test_log_folders_exist_and_anyone_may_write_there(either: Opened) -> None:
    async def check() -> None:
        async with either() as env:
            made = await env.exec("touch /logs/agent/a /logs/verifier/v", user="nobody")
            assert made.return_code == 0

    asyncio.run(check())


def test_no_network_means_none(ours: Opened) -> None:
    async def check() -> None:
        policy = NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)
        async with ours(network_policy=policy) as env:
            devices = await env.exec("ls /sys/class/net")
            assert devices.stdout.split() == ["lo"]

    asyncio.run(check())


def test_that_a_network_reaches_the_host_is_said_once(ours: Opened) -> None:
    engine._warn_of_network.cache_clear()

    async def check() -> None:
        async with ours(config={"network_mode": "public"}):
            pass

    with pytest.warns(DepthkitWarning, match="reach what listens on this machine"):
        asyncio.run(check())
    with warnings.catch_warnings():
        warnings.simplefilter("error", DepthkitWarning)
        asyncio.run(check())


def test_containers_with_a_network_share_one(ours: Opened) -> None:
    async def check() -> None:
        async with ours() as env:
            env.container.reload()
            networks = env.container.attrs["NetworkSettings"]["Networks"]
            assert list(networks) == [engine.NETWORK]

    asyncio.run(check())


def test_an_init_process_reaps_orphans(ours: Opened) -> None:
    async def check() -> None:
        async with ours() as env:
            await env.exec("(sleep 0.1 &) ; true")
            await until_none(env, "ps -eo stat,args | grep -c -e ^Z -e ' [s]leep 0.1' || true")

    asyncio.run(check())


def test_links_do_not_come_out_of_a_container(ours: Opened, tmp_path: Path) -> None:
    async def check() -> None:
        async with ours() as env:
            await env.exec(
                "mkdir /out && cd /out && ln -s /etc/passwd link && mkfifo pipe && echo x > plain"
                " && ln -s ../../../.. up"
            )
            await env.download_dir("/out", tmp_path / "out")
            assert [p.name for p in (tmp_path / "out").iterdir()] == ["plain"]
            with pytest.raises(FileNotFoundError):
                await env.download_file("/out/nothing", tmp_path / "nothing")

    asyncio.run(check())


def test_of_long_output_the_end_is_kept(ours: Opened) -> None:
    async def check() -> None:
        async with ours() as env:
            result = await env.exec("head -c 40M /dev/zero | tr '\\0' x; echo end; echo why >&2")
        said, _, kept = result.stdout.partition("\n")
        left_out = (40 << 20) + len("end\n") - engine.MOST_OUTPUT
        assert said.startswith(f"[depthkit: {left_out} bytes before this were left out")
        assert len(kept) == engine.MOST_OUTPUT
        assert kept.endswith("xend\n")
        assert result.stderr == "why\n"

    asyncio.run(check())


def test_what_comes_out_of_a_container_is_bounded(
    ours: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "MOST_BYTES", 96 << 20)

    async def check() -> None:
        async with ours() as env:
            await env.exec("mkdir /out && truncate -s 80M /out/a /logs/verifier/reward.json")
            await env.download_dir("/out", tmp_path / "out")
            assert (tmp_path / "out" / "a").stat().st_size == 80 << 20
            # Of the verifier's folder files are read whole.
            with pytest.raises(copying.TooLargeError, match=r"^/logs/verifier in .* than 64 MB"):
                await env.download_dir("/logs/verifier", tmp_path / "verifier")
            await env.exec("truncate -s 3G /out/b")
            for fetch, source in ((env.download_dir, "/out"), (env.download_file, "/out/b")):
                with pytest.raises(copying.TooLargeError, match=f"^{source} in .* than 96 MB"):
                    await fetch(source, tmp_path / "more")

    asyncio.run(check())


def test_a_dead_container_is_told_from_a_failed_command(ours: Opened) -> None:
    async def check() -> None:
        async with ours() as env:
            env.container.kill()
            with pytest.raises(ContainerDiedError):
                await env.exec("true")

    asyncio.run(check())


def test_a_container_that_dies_during_a_command_is_noticed(ours: Opened) -> None:
    async def check() -> None:
        async with ours() as env:
            running = asyncio.ensure_future(env.exec("sleep 60"))
            await asyncio.sleep(1)
            env.container.kill()
            with pytest.raises(ContainerDiedError):
                await asyncio.wait_for(running, 20)

    asyncio.run(check())


@pytest.mark.parametrize(
    ("end", "by_itself"),
    [
        (lambda box: box.container.exec_run(["bash", "-c", "kill -9 -1"]), True),
        (lambda box: box.container.kill(), False),
        (lambda box: box.container.stop(timeout=1), False),
        (lambda box: box.container.remove(force=True), False),
    ],
    ids=["from-within", "killed", "stopped", "removed"],
)
def test_a_container_ended_from_within_is_told_from_one_that_somebody_ended(
    ours: Opened, end: Callable[[DockerEnvironment], object], by_itself: bool
) -> None:
    async def check() -> None:
        async with ours() as box:
            await asyncio.to_thread(end, box)
            with contextlib.suppress(NotFound):
                await asyncio.to_thread(box.container.wait)
            with pytest.raises(ContainerDiedError) as told:
                await box.exec("true")
            assert isinstance(told.value, ContainerEndedError) == by_itself
            assert bool(engine.ended_by_itself(box.container)) == by_itself

    asyncio.run(check())


@pytest.mark.parametrize("built", [True, False])
def test_a_guard_runs_programs_that_the_container_cannot_replace(
    ours: Opened, built: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not built:
        engine.release()  # also of the tool set that this process has at hand
        monkeypatch.setattr(tools, "IMAGE", "depthkit/tools:not-built")

    async def check() -> None:
        async with ours() as box:
            replace = (
                "printf '#!/bin/sh\\necho forged' > /usr/local/bin/id; chmod 755 /usr/local/bin/id"
            )
            await box.exec(f"{replace}; echo /gone.so > /etc/ld.so.preload")
            assert (await box.exec_guarded("id -u")).stdout == ("0\n" if built else "forged\n")

    asyncio.run(check())


def test_an_image_is_built_once_for_the_same_content(ours: Opened) -> None:
    async def check() -> None:
        async with ours() as env:
            first = env.image_id
        async with ours() as env:
            assert env.image_id == first
        async with ours(dockerfile=DOCKERFILE + "RUN echo other > /app/made\n") as env:
            assert env.image_id != first

    asyncio.run(check())


def test_a_build_that_fails_names_the_dockerfile_and_shows_the_log(ours: Opened) -> None:
    async def check() -> None:
        async with ours(dockerfile="FROM depthkit/base:1\nRUN echo so-it-goes && false\n"):
            pass

    with pytest.raises(DepthkitError, match=r"(?s)environment/Dockerfile.*so-it-goes"):
        asyncio.run(check())


@pytest.mark.parametrize(
    ("kind", "buildx"),
    [(DockerEnvironment, True), (DockerEnvironment, False), (ComposeEnvironment, True)],
)
def test_a_build_over_its_time_is_killed(
    kind: type[BaseEnvironment], buildx: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "has_buildx", lambda: buildx)
    hung = f"sleep 4{secrets.randbelow(10**6)}"

    async def check() -> None:
        dockerfile = f"FROM depthkit/base:1\nRUN {hung}\n"
        opening = opened(kind, tmp_path, config={}, dockerfile=dockerfile).__aenter__()
        starting = asyncio.ensure_future(opening)
        while hung not in await asyncio.to_thread(processes_of_the_host):
            assert not starting.done()
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        for _ in range(100):
            if hung not in processes_of_the_host():
                return
        raise AssertionError(f"{hung} still runs")

    asyncio.run(check())


def test_everything_carries_its_owner(ours: Opened) -> None:
    async def check() -> None:
        async with ours() as env:
            labels = env.container.labels
            assert labels[engine.OWNER_LABEL] == engine.owner().id
            assert labels[engine.HOST_LABEL] == socket.gethostname()
            image = engine.client().images.get(env.image_id)
            assert image.labels[engine.OWNER_LABEL]

    asyncio.run(check())
