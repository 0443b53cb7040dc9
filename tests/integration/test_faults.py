"""Faults of containers, engines and disks, kills and secrets: nothing is lost or left."""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from faulty import (
    KEY,
    PASSES,
    WRITE,
    BilledServer,
    containers_of,
    cost_of,
    made_here,
    measure,
    processes_of_the_host,
    start,
    wait_until,
    write_models,
)
from toys import reply, write_toy

from depthkit.corpus import Corpus
from depthkit.experiments.status import status
from depthkit.model import Run
from depthkit.tasks.calibration import write_family
from depthkit.trials import engine
from depthkit.trials.scripted.policies import Messages, Reply, after_faults, fixed_replies

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("model_key", "no_leftovers")]


def test_a_volume_or_container_that_is_left_is_seen(toy: Path) -> None:
    before = made_here(others=True)
    labels = engine.owner().labels
    made = engine.client().containers.create(
        "depthkit/base:1", labels=labels, volumes=["/scratch"], name=f"{toy.name}__left"
    )
    try:
        after = made_here()
        assert after["containers"] - before["containers"] == {f"{toy.name}__left"}
        assert after["volumes"] - before["volumes"]
    finally:
        engine.remove_container(made)


# --- containers and engines ---


def test_a_killed_container_costs_a_retry_and_no_verdict(tmp_path: Path, toy: Path) -> None:
    slow = fixed_replies([reply("sleep 3", wait=3), WRITE, WRITE])
    killed = threading.Event()

    def kill() -> None:
        wait_until(lambda: [c for c in containers_of(toy) if c.status == "running"])
        time.sleep(2.5)
        containers_of(toy)[0].kill()
        killed.set()

    with BilledServer({"m": slow}) as server:
        threading.Thread(target=kill, daemon=True).start()
        done = measure(tmp_path, server, toy, workers=1)
    assert killed.is_set()
    assert done.ends.count(("none", "infrastructure")) == 1
    assert done.ends.count(("passed", "submitted")) == 2
    assert done.outcome.given_up == []


def test_a_terminal_that_the_agent_breaks_is_a_result_and_not_run_again(
    tmp_path: Path, toy: Path
) -> None:
    with BilledServer({"m": fixed_replies([reply("tmux kill-server"), WRITE])}) as server:
        done = measure(tmp_path, server, toy)
    assert done.ends == [("failed", "terminal_broken")] * 2
    assert done.outcome.given_up == []
    assert server.billed > 0


MAY_START = sys.platform == "linux" and os.geteuid() == 0 and shutil.which("dockerd") is not None


@pytest.mark.slow
@pytest.mark.skipif(not MAY_START, reason="a second engine needs Linux, root and dockerd")
def test_an_engine_that_restarts_in_mid_run_costs_a_retry(
    tmp_path: Path, second_engine: dict[str, str]
) -> None:
    task = write_toy(tmp_path / "set" / "toy")
    settings = task / "task.toml"
    settings.write_text(settings.read_text() + 'docker_image = "depthkit/base:1"\n')
    shutil.rmtree(task / "environment")
    (task / "environment").mkdir()
    replies = [reply("mkdir -p /app; sleep 6", wait=6), WRITE, WRITE]
    with BilledServer({"m": fixed_replies(replies)}) as server:
        models = write_models(tmp_path, server.base_url)
        running = start(
            *("free", [task], tmp_path / "corpus", "--models", "m"),
            *("--models-file", str(models), "--workers", "1"),
            DOCKER_HOST=second_engine["DOCKER_HOST"],
        )
        wait_until(lambda: server.requests)
        engine_script("down", second_engine)
        time.sleep(3)
        engine_script("up", second_engine)
        _, err = running.communicate(timeout=120)
    assert running.returncode == 0, err
    runs = Corpus.open(tmp_path / "corpus").run_records()
    assert [run.verdict for run in runs].count("passed") == 2
    assert {run.stop for run in runs if run.verdict == "none"} == {"infrastructure"}
    assert len(runs) > 2
    assert 0 < cost_of(Corpus.open(tmp_path / "corpus")) <= server.billed * 1.000001
    left = subprocess.run(
        ["docker", "ps", "-aq"], env=second_engine, capture_output=True, text=True, check=True
    )
    assert left.stdout == ""


def engine_script(what: str, env: dict[str, str]) -> None:
    script = Path(__file__).parents[2] / "env/engine.sh"
    subprocess.run(
        ["unshare", "--net", script, what], env=env, check=True, capture_output=True, timeout=120
    )


@pytest.fixture
def second_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = Path("/tmp") / f"dk{secrets.token_hex(3)}"
    folder.mkdir()
    options = f"--data-root={folder}/data --exec-root={folder}/exec --bridge=none --iptables=false"
    env = {
        **os.environ,
        "DOCKER_HOST": f"unix://{folder}/docker.sock",
        "DEPTHKIT_ENGINE_DIR": f"{folder}/state",
        "DEPTHKIT_ENGINE_ARGS": options,
    }
    try:
        engine_script("up", env)
        save = subprocess.Popen(["docker", "save", "depthkit/base:1"], stdout=subprocess.PIPE)
        subprocess.run(
            ["docker", "load"], stdin=save.stdout, env=env, check=True, capture_output=True
        )
        save.wait()
        yield env
    finally:
        engine_script("down", env)
        shutil.rmtree(folder, ignore_errors=True)


# --- the disk ---


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    where, image = tmp_path / "disk", tmp_path / "disk.img"
    where.mkdir()
    image.write_bytes(b"\0" * (4 << 20))
    made = subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], capture_output=True)
    loop = ["mount", "-o", "loop", str(image), str(where)]
    tmpfs = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(where)]
    mounted = not made.returncode and not subprocess.run(loop, capture_output=True).returncode
    if not mounted and subprocess.run(tmpfs, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield where
    subprocess.run(["umount", "-l", where], check=True)


def test_a_full_tmpdir_is_said_to_be_that(tmp_path: Path, small_disk: Path, toy: Path) -> None:
    (toy / "tests" / "data").write_bytes(b"x" * (6 << 20))
    with BilledServer({"m": PASSES}) as server:
        models = write_models(tmp_path, server.base_url)
        options = ("--models", "m", "--models-file", str(models))
        full = start("free", [toy], tmp_path / "corpus", *options, TMPDIR=str(small_disk))
        _, err = full.communicate(timeout=120)
    assert full.returncode == 2
    assert f"{small_disk} (TMPDIR): the disk is full" in err
    assert "Traceback" not in err
    assert {r.stop for r in Corpus.open(tmp_path / "corpus").run_records()} == {"infrastructure"}


def test_a_full_disk_is_one_line_and_loses_nothing(
    tmp_path: Path, small_disk: Path, toy: Path
) -> None:
    second = write_toy(tmp_path / "set" / "second")
    corpus, filler = small_disk / "corpus", small_disk / "filler"
    with BilledServer({"m": PASSES}) as server:
        models = write_models(tmp_path, server.base_url)
        options = ("--models", "m", "--models-file", str(models))
        first = start("free", [toy], corpus, *options)
        _, err = first.communicate(timeout=120)
        assert first.returncode == 0, err
        measured = (corpus / "runs.jsonl").read_bytes()
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as handle:
            while handle.write(b"x" * 4096):
                pass
        for left in (0, 48 << 10):  # nothing can be written, and: it fills up in mid-run
            os.truncate(filler, filler.stat().st_size - left)
            full = start("free", [toy, second], corpus, *options)
            _, err = full.communicate(timeout=120)
            assert full.returncode == 2
            assert err.count("No space left on device") == 1
            assert "make room and run the same command again" in err
            assert "Traceback" not in err
            assert (corpus / "runs.jsonl").read_bytes().startswith(measured)
        kept = [run.run_id for run in Corpus.open(corpus).run_records()]
        assert len(kept) >= 2
        filler.unlink()
        last = start("free", [toy, second], corpus, *options)
        _, err = last.communicate(timeout=120)
        assert last.returncode == 0, err
    runs = Corpus.open(corpus).run_records()
    assert [run.run_id for run in runs][: len(kept)] == kept
    passed = Counter(run.task_id for run in runs if run.passed)
    assert passed == {toy.name: 2, "second": 2}
    assert containers_of(second) == []


# --- signals ---


def test_ctrl_c_twice_stops_at_once_and_leaves_nothing(tmp_path: Path, toy: Path) -> None:
    with BilledServer({"m": fixed_replies([reply("sleep 60", wait=60)])}) as server:
        models = write_models(tmp_path, server.base_url)
        running = start(
            *("free", [toy], tmp_path / "corpus", "--models", "m"),
            *("--models-file", str(models)),
        )
        wait_until(lambda: len(server.requests) == 2)
        seen = status(Corpus.open(tmp_path / "corpus"))
        assert seen.measuring is not None and seen.measuring.pid == running.pid
        assert [each.run_id.split("__")[0] for each in seen.in_flight] == [toy.name] * 2
        assert seen.tasks[0].state == "measuring"
        running.send_signal(signal.SIGINT)
        time.sleep(1)
        assert running.poll() is None  # what runs is being finished
        started = time.monotonic()
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
        assert time.monotonic() - started < 30
    assert running.returncode == 130
    assert "the same command goes on" in err
    assert status(Corpus.open(tmp_path / "corpus")).measuring is None
    assert containers_of(toy) == []
    assert not list((tmp_path / "corpus" / "trials").glob("*__*"))
    # What was cancelled is no result; it is run again.
    assert Corpus.open(tmp_path / "corpus").run_records() == []
    assert server.billed > 0


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_check_that_is_stopped_kills_its_build(
    tmp_path: Path, toy: Path, sent: signal.Signals
) -> None:
    hung = f"sleep 4{secrets.randbelow(10**6)}"
    with (toy / "environment" / "Dockerfile").open("a") as dockerfile:
        dockerfile.write(f"RUN {hung}\n")
    checking = subprocess.Popen([sys.executable, "-m", "depthkit", "check", str(toy)])
    wait_until(lambda: hung in processes_of_the_host())
    checking.send_signal(sent)
    assert checking.wait(60) == 128 + sent
    wait_until(lambda: hung not in processes_of_the_host(), 30)


@pytest.mark.slow
def test_twenty_kills_at_random_moments_lose_nothing(tmp_path: Path) -> None:
    task = write_family(tmp_path / "set", "parallel", 3, 1)
    toys = [write_toy(tmp_path / "set" / f"toy-{secrets.token_hex(3)}") for _ in range(4)]
    corpus = tmp_path / "corpus"
    # One process imports everything and forks, so that a kill costs no start of Python.
    script = textwrap.dedent("""
        import os, sys
        from pathlib import Path
        import harbor.trial.trial, harbor.agents.terminus_2.terminus_2, litellm
        import depthkit.trials.agent, depthkit.trials.environment
        from depthkit.experiments.measure import measure
        for line in sys.stdin:
            pid = os.fork()
            if pid == 0:
                measure(
                    [Path(name) for name in sys.argv[2:]], Path(sys.argv[1]),
                    models=["scripted-merge"], scope="both", workers=4, record=False,
                )
                os._exit(0)
            print(pid, flush=True)
            print(os.waitpid(pid, 0)[1], flush=True)
    """)
    forker = subprocess.Popen(
        [sys.executable, "-c", script, str(corpus), str(task), *map(str, toys)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert forker.stdin is not None
    assert forker.stdout is not None

    def go() -> int:
        assert forker.stdin is not None and forker.stdout is not None
        forker.stdin.write("go\n")
        forker.stdin.flush()
        return int(forker.stdout.readline())

    rng, before, mid_run = random.Random(20), b"", 0
    lines = corpus / "runs.jsonl"

    def runs_now() -> bool:
        return any((corpus / "trials" / ".running").glob("*__*"))

    def lives(pid: int) -> bool:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 0)
            return True
        return False

    for number in range(20):
        pid = go()
        # Every other one at any moment, the others after a run began, on a slow machine too.
        while number % 2 and not runs_now() and lives(pid):
            time.sleep(0.05)
        time.sleep(rng.uniform(0.1, 2.0 if number % 2 else 3.0))
        mid_run += runs_now()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        # Killed, unless all was measured before.
        assert forker.stdout.readline() in (f"{signal.SIGKILL:d}\n", "0\n")
        after = lines.read_bytes() if lines.exists() else b""
        assert after.startswith(before[: before.rfind(b"\n") + 1])
        before = after
    assert mid_run >= 5  # the others hit the start, the end, or what comes before
    go()
    assert forker.stdout.readline() == "0\n"
    forker.stdin.close()
    assert forker.wait(timeout=30) == 0
    runs = Corpus.open(corpus).run_records()
    ids = [run.run_id for run in runs]
    assert lines.read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    assert len(set(ids)) == len(ids)
    slots = Counter((r.task_id, r.model, r.cap, r.attempt) for r in runs if r.valid)
    assert set(slots.values()) == {1}
    assert status(Corpus.open(corpus)).most.runs == 0
    assert {path.name for path in (corpus / "trials").iterdir()} == set(ids)
    for each in (task, *toys):
        assert containers_of(each) == []
    assert not engine.clean(dry_run=True)


# --- secrets ---


def test_no_byte_written_holds_the_key(tmp_path: Path, toy: Path) -> None:
    other = write_toy(tmp_path / "set" / "other", instruction="Harmless. Write done to /app/out.")
    # Wherever a program writes of its own accord: the working, home and temporary directory.
    places = {name: tmp_path / name for name in ("cwd", "home", "tmp")}
    for place in places.values():
        place.mkdir()
    looked_into: list[str] = []

    def look_into_container() -> None:
        (container,) = containers_of(other)
        everything = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; grep -rahs sk-a-k / "
        script = everything + "--exclude-dir=proc --exclude-dir=sys; echo looked"
        looked_into.append(
            container.exec_run(["bash", "-c", script]).output.decode("utf-8", "replace")
        )
        looked_into.append(json.dumps(container.attrs))

    def policy(messages: Messages) -> str | Reply:
        if "Harmless" in str(messages):
            if not looked_into:
                look_into_container()
            return PASSES(messages)
        return Reply(f"wrong key {KEY} in Authorization: Bearer {KEY}", status=400)

    with BilledServer({"m": after_faults([Reply(KEY, status=500)], policy)}) as server:
        models = write_models(tmp_path, server.base_url)
        options = ("--models", "m", "--models-file", str(models), "--json", "--workers", "1")
        running = start(
            *("free", [toy, other], tmp_path / "corpus", *options),
            cwd=places["cwd"],
            HOME=str(places["home"]),
            TMPDIR=str(places["tmp"]),
        )
        out, err = running.communicate(timeout=180)
    runs = [Run.model_validate(run) for run in json.loads(out)]
    assert {run.stop for run in runs} == {"submitted", "model_error"}
    assert cost_of(Corpus.open(tmp_path / "corpus")) == pytest.approx(server.billed)
    assert "wrong key ***" in err
    assert KEY not in out + err
    assert looked_into[0].rstrip().endswith("looked")
    assert KEY not in "".join(looked_into)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
    assert containers_of(toy) + containers_of(other) == []
