"""env/engine.sh brings an engine up where none answers, and takes down only what it brought up.

Each test has an engine of its own, beside whichever engine this machine has, and in a network
of its own: an engine without a bridge removes `docker0`, which may be another engine's.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "env/engine.sh"
MAY_START = sys.platform == "linux" and os.geteuid() == 0
APART = ["unshare", "--net"] if MAY_START else []

startable = pytest.mark.skipif(
    not MAY_START or shutil.which("dockerd") is None,
    reason="starting an engine needs Linux, root and dockerd",
)


@dataclass(frozen=True)
class Engine:
    """A place where an engine may be started: its socket, data, state and log."""

    dir: Path

    @property
    def env(self) -> dict[str, str]:
        apart = [f"--data-root={self.dir}/data", f"--exec-root={self.dir}/exec"]
        return os.environ | {
            "DOCKER_HOST": f"unix://{self.dir}/docker.sock",
            "DEPTHKIT_ENGINE_DIR": str(self.dir / "state"),
            "DEPTHKIT_ENGINE_ARGS": " ".join([*apart, "--bridge=none", "--iptables=false"]),
        }

    def call(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*APART, SCRIPT, *args],
            env=self.env | env,
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
        )

    def start(self, *args: str, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*APART, SCRIPT, *args],
            env=self.env | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def answers(self) -> bool:
        ask = ["docker", "version", "--format", "{{.Server.Version}}"]
        return subprocess.run(ask, env=self.env, capture_output=True).returncode == 0


@pytest.fixture
def engine() -> Iterator[Engine]:
    # Sockets have short paths: pytest's own temporary directories may be too deep.
    with tempfile.TemporaryDirectory(prefix="dk", ignore_cleanup_errors=True) as folder:
        engine = Engine(Path(folder))
        yield engine
        engine.call("down")


@startable
def test_up_starts_an_engine_that_stays_until_down(engine: Engine):
    assert not engine.answers()
    first = engine.call("up")
    assert (first.returncode, "starting dockerd" in first.stderr) == (0, True)
    assert engine.answers()
    again = engine.call("up")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert engine.call("down").returncode == 0
    assert not engine.answers()


@startable
def test_run_takes_its_engine_down_and_passes_the_exit_status_on(engine: Engine):
    result = engine.call("run", "--", "sh", "-c", "docker version -f '{{.Server.Os}}'; exit 7")
    assert result.stdout == "linux\n"
    assert result.returncode == 7
    assert not engine.answers()


@startable
def test_an_engine_that_was_there_before_is_left_running(engine: Engine):
    engine.call("up")
    assert engine.call("run", "--", "true").returncode == 0
    assert engine.answers()

    elsewhere = {"DEPTHKIT_ENGINE_DIR": str(engine.dir / "another-checkout")}
    assert engine.call("up", **elsewhere).returncode == 0
    assert engine.call("down", **elsewhere).returncode == 0
    assert engine.answers()


@startable
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_command_and_the_engine_still_goes_down(
    engine: Engine, sent: signal.Signals
):
    running = engine.start(
        "run", "--", "sh", "-c", "trap 'exit 9' TERM INT; echo up; sleep 60 & wait"
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "up\n"
    running.send_signal(sent)
    assert running.wait(timeout=60) == 9
    assert not engine.answers()


@startable
@pytest.mark.parametrize("second", ["state", "another-checkout"])
def test_the_last_of_two_runs_takes_the_engine_down(engine: Engine, second: str):
    """Of one checkout or of two, whichever of them started it."""
    until = [f"echo up; while [ ! -e {engine.dir}/{each} ]; do sleep 0.1; done" for each in "ab"]
    places = [engine.dir / "state", engine.dir / second]
    runs = []
    for script, place in zip(until, places, strict=True):
        runs.append(engine.start("run", "--", "sh", "-c", script, DEPTHKIT_ENGINE_DIR=str(place)))
        assert runs[-1].stdout is not None
        assert runs[-1].stdout.readline() == "up\n"
    (engine.dir / "a").touch()
    assert runs[0].wait(timeout=60) == 0
    assert engine.answers()
    (engine.dir / "b").touch()
    assert runs[1].wait(timeout=60) == 0
    assert not engine.answers()


@startable
def test_an_engine_asked_to_stay_by_another_checkout_outlives_the_run(engine: Engine):
    elsewhere = {"DEPTHKIT_ENGINE_DIR": str(engine.dir / "another-checkout")}
    up = f"DEPTHKIT_ENGINE_DIR={elsewhere['DEPTHKIT_ENGINE_DIR']} {SCRIPT} up"
    assert engine.call("run", "--", "sh", "-c", up).returncode == 0
    assert engine.answers()
    assert engine.call("down", **elsewhere).returncode == 0
    assert not engine.answers()


@startable
def test_a_stale_state_file_stops_no_other_process(engine: Engine):
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        state = engine.dir / "docker.sock.depthkit"
        state.write_text(f"{bystander.pid} 1 up {engine.dir}/state\n")
        assert engine.call("down").returncode == 0
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_an_engine_elsewhere_is_not_started_from_here(engine: Engine):
    result = engine.call("up", DOCKER_HOST="tcp://127.0.0.1:9")
    assert result.returncode == 1
    assert "DOCKER_HOST=tcp://127.0.0.1:9" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which only root can")
def test_without_root_it_says_what_to_do(engine: Engine):
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    scripts = Path(tempfile.mkdtemp())
    try:
        shutil.copytree(ROOT / "env", scripts / "env", ignore=shutil.ignore_patterns("cache"))
        subprocess.run(["chmod", "-R", "a+rX", scripts], check=True)
        result = subprocess.run(
            [*as_nobody, scripts / "env/engine.sh", "up"],
            env=engine.env,
            capture_output=True,
            text=True,
        )
    finally:
        shutil.rmtree(scripts)
    assert result.returncode == 1
    assert "needs root: start Docker yourself" in result.stderr


@pytest.mark.parametrize("args", [[], ["sideways"], ["up", "now"], ["run"]])
def test_a_wrong_call_shows_the_usage(engine: Engine, args: list[str]):
    result = engine.call(*args)
    assert result.returncode == 1
    assert "usage: env/engine.sh up | down | run -- CMD" in result.stderr
