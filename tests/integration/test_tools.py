"""Tasks as released: images that lack tmux or bash are measured all the same."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import re
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from docker.models.containers import Container
from toys import TEST_SH, reply, write_toy

from depthkit.model import Run
from depthkit.protocol import Planned
from depthkit.tasks import load_task
from depthkit.trials import engine, tools
from depthkit.trials.models import ModelSpec
from depthkit.trials.run import run_trial
from depthkit.trials.scripted.policies import Messages, Policy
from depthkit.trials.scripted.server import ScriptedServer

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]

BASE = "FROM depthkit/base:1\nWORKDIR /app\n"

GLIBC = BASE + "RUN rm /usr/bin/tmux && chmod 777 /app\n"
"""Debian, with a bash of its own whose login profile sets PATH anew."""

MUSL = """\
FROM depthkit/base:1 AS made
RUN apt-get update -q \\
 && apt-get install -qy --no-install-recommends busybox-static musl-dev patchelf tcc
RUN mkdir -p /made/bin /made/lib /made/app /made/tmp && chmod 1777 /made/tmp && cd /made/bin \\
 && cp /bin/busybox . && for name in $(./busybox --list); do \\
    [ -e $name ] || ln -s busybox $name; done \\
 && cp -L /lib/ld-musl-*.so.1 ../lib/ && cd /usr/lib/*-linux-musl \\
 && printf '#include <stdio.h>\\nint main() { puts("musl says hello"); return 0; }\\n' >/hello.c \\
 && tcc -nostdinc -nostdlib -I/usr/include/$(basename "$PWD") -o /made/bin/hello \\
    crt1.o crti.o /hello.c libc.so crtn.o \\
 && patchelf --set-interpreter /lib/ld-musl-*.so.1 /made/bin/hello
FROM scratch
COPY --from=made /made /
WORKDIR /app
"""
"""What Alpine is made of: busybox with its sh, musl, a program linked to it; no list of users."""

BARE = """\
FROM depthkit/tools:1 AS made
FROM depthkit/base:1 AS folders
RUN mkdir -p /made/tmp /made/app && chmod 1777 /made/tmp
FROM scratch
COPY --from=folders /made /
COPY --from=made /.dk/libexec/busybox /opt/busybox
WORKDIR /app
"""
"""No shell and no command on PATH; the verifier brings its own."""

PORTABLE_TEST = TEST_SH.replace("#!/bin/bash", "#!/bin/sh")
BARE_TEST = """\
#!/opt/busybox sh
reward=0
read -r text < /app/out
if [ "$text" = "done" ]; then reward=1; fi
echo $reward > /logs/verifier/reward.txt
"""

WRITE = reply("echo done > /app/out", wait=0.5)
CLAIM = reply(complete=True)

WRITTEN_BY_HARNESS = {
    tools.FOLDER,
    "/logs",
    *(f"/logs/{name}" for name in ("artifacts", "agent", "verifier")),
    "/logs/agent/terminus_2.pane",
    "/tmp",
    *(f"/tmp/tmux-{uid}{name}" for uid in (0, 65534) for name in ("", "/default")),
    # The engine's init process; the folder is /usr/sbin where /sbin is a link to it.
    *(f"{usr}/sbin{name}" for usr in ("", "/usr") for name in ("", "/docker-init")),
    "/usr",
}

type Look = Callable[[Container], None]


@pytest.fixture(autouse=True, scope="module")
def tool_set() -> Iterator[None]:
    subprocess.run([ROOT / "env/tools/build.sh"], check=True, timeout=300)
    yield
    engine.release()


def the_container() -> Container:
    query: engine.Filters = {"label": f"{engine.OWNER_LABEL}={engine.owner().id}"}
    (container,) = engine.client().containers.list(filters=query)
    return container


def then_look(first: str, look: Look) -> Policy:
    """Reply, then look at the container before completion is claimed."""

    def policy(messages: Messages) -> str:
        if not any(message["role"] == "assistant" for message in messages):
            return first
        look(the_container())
        return CLAIM

    return policy


def play(
    folder: Path,
    image: str,
    policy: Policy,
    *,
    test: str = PORTABLE_TEST,
    user: str | None = None,
) -> tuple[Run, Path]:
    """A run of the toy task in this image with a cap of two turns, and its files."""
    path = write_toy(folder / "set" / "toy", test=test)
    (path / "environment" / "Dockerfile").write_text(image)
    if user is not None:
        settings = path / "task.toml"
        settings.write_text(
            settings.read_text().replace("[agent]\n", f'[agent]\nuser = "{user}"\n')
        )
    spec = ModelSpec(
        name="m", litellm="openai/m", context_tokens=1_000_000, max_output_tokens=200_000
    )
    with ScriptedServer({"m": policy}) as server:
        run = asyncio.run(
            run_trial(
                load_task(path),
                Planned("m", 2, 1, "ladder"),
                spec,
                trials_dir=folder / "trials",
                base_url=server.base_url,
            )
        )
    return run, folder / "trials" / run.run_id


def changed(container: Container) -> set[str]:
    return {str(change["Path"]) for change in container.diff()}


def said(container: Container, *command: str) -> str:
    """What a command prints in the container."""
    output = container.exec_run(list(command), user="0").output
    assert isinstance(output, bytes)
    return output.decode()


def recorded(folder: Path) -> tuple[dict[str, Any], Sequence[tuple[float, str, str]]]:
    """Header and events of the recording."""
    header, *events = (folder / "agent" / "recording.cast").read_text().splitlines()
    return json.loads(header), [json.loads(event) for event in events]


@pytest.mark.parametrize(
    ("image", "test", "user"),
    [
        pytest.param(GLIBC, TEST_SH, None, id="glibc"),
        pytest.param(GLIBC, TEST_SH, "nobody", id="glibc-not-root"),
        pytest.param(MUSL, PORTABLE_TEST, None, id="musl"),
        pytest.param(BARE, BARE_TEST, None, id="no-shell"),
    ],
)
def test_an_image_without_the_tools_is_measured_and_recorded_and_stays_as_it_is(
    image: str, test: str, user: str | None, tmp_path: Path
) -> None:
    seen: dict[str, Any] = {}

    def look(container: Container) -> None:
        seen["networks"] = set(container.attrs["NetworkSettings"]["Networks"])
        seen["changed"] = changed(container)
        seen["refused"] = container.exec_run(
            [f"{tools.FOLDER}/bin/bash", "-c", f"echo > {tools.FOLDER}/bin/tmux"], user="0"
        )

    run, folder = play(tmp_path, image, then_look(WRITE, look), test=test, user=user)
    assert (run.verdict, run.stop, run.turns, run.detail) == ("passed", "turn_cap", 2, None)
    # Nothing can have been downloaded, and nothing was put among the files of the image.
    assert seen["networks"] == {"none"}
    assert seen["changed"] <= {"/app", "/app/out", *WRITTEN_BY_HARNESS}
    assert seen["refused"].exit_code == 1
    assert b"Read-only file system" in seen["refused"].output

    header, events = recorded(folder)
    assert (header["version"], header["width"], header["height"]) == (2, 160, 40)
    times = [moment for moment, _, _ in events]
    assert times == sorted(times)
    assert {kind for _, kind, _ in events} == {"o"}
    shown = "".join(text for _, _, text in events)
    assert "echo done > /app/out" in shown
    assert re.search(r"[$#] ", shown)  # the prompt; what was typed before it came stands above it


def test_the_programs_of_a_musl_image_run_in_the_terminal_and_long_commands_show_whole(
    tmp_path: Path,
) -> None:
    screen: list[str] = []
    words = " ".join(f"word{i}" for i in range(60))

    def look(container: Container) -> None:
        screen.append(said(container, f"{tools.FOLDER}/bin/tmux", "capture-pane", "-p"))

    first = reply(f"hello; echo h\u00e9llo {words} >/dev/null; echo done > /app/out", wait=5.0)
    run, _ = play(tmp_path, MUSL, then_look(first, look))
    assert run.verdict == "passed"
    assert "musl says hello" in screen[0]
    assert "h\u00e9llo" in screen[0]
    assert words in screen[0].replace("\n", "")


def test_an_image_that_has_the_tools_keeps_its_path_and_has_them_for_the_guards_only(
    tmp_path: Path,
) -> None:
    seen: dict[str, Any] = {}

    def look(container: Container) -> None:
        seen["mounts"] = [mount["Destination"] for mount in container.attrs["Mounts"]]
        seen["variables"] = container.attrs["Config"]["Env"]
        assert container.image is not None
        seen["image"] = container.image.attrs["Config"]["Env"]

    run, folder = play(tmp_path, BASE, then_look(WRITE, look))
    assert run.verdict == "passed"
    assert recorded(folder)[0]["version"] == 2
    assert seen["mounts"] == [tools.FOLDER]
    assert sorted(seen["variables"]) == sorted(seen["image"])


def test_what_the_image_has_comes_before_the_tool_set(tmp_path: Path) -> None:
    own = (
        f"{BASE}RUN rm /usr/bin/base64 && mkdir /opt/own && cd /opt/own \\\n"
        " && printf '#!/bin/sh\\nexec /usr/bin/tmux \"$@\"\\n' >tmux && chmod 755 tmux\n"
        "ENV PATH=/opt/own:/usr/bin:/bin\n"
    )
    seen: list[str] = []

    def look(container: Container) -> None:
        seen.extend(
            said(container, "bash", "-c", "command -v tmux bash base64; echo $PATH").split()
        )

    run, folder = play(tmp_path, own, then_look(WRITE, look))
    assert run.verdict == "passed"
    assert seen == [
        "/opt/own/tmux",
        "/usr/bin/bash",
        "/.dk/box/base64",
        "/opt/own:/usr/bin:/bin:/.dk/box",
    ]
    assert recorded(folder)[0]["version"] == 2


def test_without_the_tool_set_a_run_says_how_to_build_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.release()  # also of the tool set that this process has at hand
    monkeypatch.setattr(tools, "IMAGE", "depthkit/tools:not-built")
    run, _ = play(tmp_path, GLIBC, lambda _: WRITE, test=TEST_SH)
    assert (run.verdict, run.stop) == ("none", "infrastructure")
    assert run.detail is not None
    assert "has no tmux," in run.detail
    assert "env/tools/build.sh" in run.detail


def test_without_the_tool_set_a_pass_says_that_its_guards_can_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.release()
    monkeypatch.setattr(tools, "IMAGE", "depthkit/tools:not-built")
    run, _ = play(tmp_path, BASE, lambda _: WRITE, test=TEST_SH)
    assert (run.verdict, run.suspect) == ("passed", False)
    assert run.detail is not None
    assert "make tools" in run.detail


def test_what_the_tool_set_takes_in_the_engine_is_released(tmp_path: Path) -> None:
    def volumes() -> set[str]:
        return {str(volume.id) for volume in engine.client().volumes.list()}

    before = volumes()
    engine.release()
    between = volumes()
    made: set[str] = set()
    run, _ = play(tmp_path, GLIBC, then_look(WRITE, lambda _: made.update(volumes())), test=TEST_SH)
    assert run.verdict == "passed"
    assert len(made - between) == 1
    engine.release()
    assert not made - before & volumes()


# All of ASCII that can be typed, except that an interactive shell has a meaning of its own for "!".
LINE = "".join(map(chr, range(32, 127))).replace("!", "") + " h\u00e9llo \u20ac"
BIG = "".join(f"{i:06} {LINE}\n" for i in range(1_800))


@pytest.mark.parametrize(
    ("image", "test"),
    [
        pytest.param(BASE, TEST_SH, id="base"),
        pytest.param(MUSL, PORTABLE_TEST, id="musl"),
    ],
)
def test_200_kilobytes_of_keystrokes_arrive_whole(image: str, test: str, tmp_path: Path) -> None:
    assert len(BIG.encode()) >= 200_000
    got: list[bytes] = []

    def look(container: Container) -> None:
        deadline = time.monotonic() + 60
        while "done" not in said(container, "cat", "/app/out") and time.monotonic() < deadline:
            time.sleep(0.3)
        chunks, _ = container.get_archive("/app/big")
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
            member = archive.extractfile("big")
            assert member is not None
            got.append(member.read())

    command = f"cat > /app/big <<'END OF IT'\n{BIG}END OF IT\necho done > /app/out"
    first = reply(command, wait=1.0)
    run, folder = play(tmp_path, image, then_look(first, look), test=test)
    assert run.verdict == "passed"
    assert "001799" in "".join(text for _, _, text in recorded(folder)[1])
    assert hashlib.sha256(got[0]).hexdigest() == hashlib.sha256(BIG.encode()).hexdigest()
