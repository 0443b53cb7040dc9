"""The check library (``depthkit/tasks/checks.sh``): every function of Table 7, on real things."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from check_cases import COMMANDS, EQ
from reader_cases import READERS

LIBRARY = Path(__file__).parents[2] / "depthkit" / "tasks" / "checks.sh"

WAYS: dict[str, tuple[str, dict[str, str]]] = {
    "bash-5.2": ("set -u", {"LANG": "C.UTF-8"}),
    "as-bash-4.4": ("set -u\nBASH_COMPAT=4.4", {"LANG": "C"}),
    "in-c": ("set -u", {"LC_ALL": "C"}),
    "hostile": (
        "set -eufEC -o pipefail\ntrap 'exit 9' ERR\nshopt -s nocasematch extglob nullglob\nIFS=ab:",
        {"LANG": "C.UTF-8"},
    ),
}
"""How the shell is set up that runs all cases: options, and the locale it is started in."""

BEFORE = """\
{options}
report() {{ printf '%s\\0' "$*"; }}
. {library}
says_it() {{ echo fn "$@"; }}
file=1 out=2 pid=3 name=4 status=5 kind=6 mark=7 size=8 ifs=$IFS
sees_its_own() {{ printf '%s ' "$file" "$out" "$pid" "$name" "$status" "$kind" "$mark" "$size"; }}
has_its_ifs() {{ [ "$IFS" = "$ifs" ]; }}
head() {{ echo no; }}
date() {{ echo no; }}
stops_at_unset() {{ : "$no_such_variable"; true; }}
answers() {{ # READER ARGUMENT…
    local answer
    answer=$("$@" && printf x) || true
    if [ -z "$answer" ]; then printf 'None\\0'; else printf 'Some%s\\0' "${{answer%x}}"; fi
}}
scratch={scratch} open={open} closed={closed}
"""


@dataclass(frozen=True)
class World:
    """What cases speak of."""

    scratch: Path
    open: int
    closed: int


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("scratch")
    (folder / "full").write_text("x")
    (folder / "empty").touch()
    (folder / "empty folder").mkdir()
    (folder / "link").symlink_to("full")
    (folder / "dangling").symlink_to("none")
    for name, text in {
        "a tool": '#!/bin/bash\n[ "$1" = "with spaces" ] && [ "$2" = \'$(no)\' ]\n',
        "dk-script.py": "import time\ntime.sleep(600)\n",
        "dk-script.sh": "sleep 600\ntrue\n",
        "dk-script.awk": "{ print }\n",
        "dk-shebang": f"#!{sys.executable}\nimport time\ntime.sleep(600)\n",
        "dk-named.py": (
            "import time\nopen('/proc/self/comm', 'w').write('dk-named')\ntime.sleep(600)\n"
        ),
    }.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    for name in ("dk-daemon", "dk-target"):
        shutil.copy(shutil.which("sleep") or "", folder / name)
    (folder / "dk-alias").symlink_to("dk-target")
    for number, text in enumerate(READERS):
        (folder / f"report-{number}").write_bytes(text.encode())
    with socket.socket() as listening, _Processes(folder):
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield World(folder, listening.getsockname()[1], _free_port())


class _Processes:
    """Real processes, each one way in which a program runs or only seems to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, *words: str, program: str | None = None) -> int:
        self.started.append(
            subprocess.Popen(
                words,
                executable=program and shutil.which(program),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
        return self.started[-1].pid

    def __enter__(self) -> None:
        python, folder = sys.executable, self.folder
        self.start(f"{folder}/dk-daemon", "600")
        self.start(f"{folder}/dk-alias", "600")
        script = f"{folder}/dk-script.py"
        self.start(python, "-u", "-W", "ignore", script, "--port", "8080", "two words")
        self.start(python, script, "dk-argument")
        self.start("bash", "-o", "pipefail", f"{folder}/dk-script.sh")
        self.start(f"{folder}/dk-shebang")
        self.start("awk", "-F", ":", "-f", f"{folder}/dk-script.awk")
        self.start(python, "-m", "http.server", str(_free_port()), "--bind", "127.0.0.1")
        self.start("bash", "-c", "sleep 600; dk-inline")
        # One that rewrote its command line has one string; one that waits for its input.
        self.start("dk-titled: worker process 600", program="cat")
        named = self.start(python, f"{folder}/dk-named.py")
        zombie = self.start("dk-zombie", program="true")
        _wait_for(lambda: Path(f"/proc/{named}/comm").read_text() == "dk-named\n")
        _wait_for(lambda: ") Z " in Path(f"/proc/{zombie}/stat").read_text())

    def __exit__(self, *_: object) -> None:
        for process in self.started:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def _wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def bash(script: str, way: str = "bash-5.2", **variables: str) -> str:
    """What a script prints in a shell that is set up in one way; what it says else is an error."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    done = subprocess.run(
        ["bash", "-s"],
        input=script.encode(),
        capture_output=True,
        env=kept | WAYS[way][1] | variables,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def before(world: World, way: str = "bash-5.2") -> str:
    return BEFORE.format(
        options=WAYS[way][0],
        library=shlex.quote(str(LIBRARY)),
        scratch=shlex.quote(str(world.scratch)),
        open=world.open,
        closed=world.closed,
    )


def all_cases() -> list[tuple[str, object, str]]:
    """What each case is, what it should give, and its line of bash."""
    cases: list[tuple[str, object, str]] = []
    for passes, kind, actual, expected in EQ:
        line = shlex.join(["expect_eq", "CHECK", actual, expected, kind])
        cases.append((line, passes, line))
    cases += [(line, passes, line) for passes, line in COMMANDS]
    for number, (text, answers) in enumerate(READERS.items()):
        for answer, line in answers:
            filled = line.replace("FILE", f'"$scratch/report-{number}"')
            cases.append((f"{line} of {text!r}", (answer,), f"answers {filled}"))
    return [
        (what, wanted, line.replace("CHECK", f"c{number}"))
        for number, (what, wanted, line) in enumerate(cases)
    ]


def test_there_are_at_least_300_cases() -> None:
    assert len(all_cases()) >= 300


@pytest.mark.parametrize("way", WAYS)
def test_every_case_gives_what_the_table_says(world: World, way: str) -> None:
    cases = all_cases()
    script = before(world, way) + "\n".join(line for _, _, line in cases) + "\n"
    records = bash(script, way).split("\0")[:-1]
    assert len(records) == len(cases)
    wrong = []
    for number, ((what, wanted, _), record) in enumerate(zip(cases, records, strict=True)):
        if isinstance(wanted, tuple):
            answer = None if record == "None" else record.removeprefix("Some")
            whole = wanted[0] if wanted[0] is None or wanted[0] == "" else f"{wanted[0]}\n"
            right = answer in ((whole, "\n") if whole == "" else (whole,))
        else:
            kind, _, rest = record.partition(" ")
            name, _, reason = rest.partition(": ")
            # A fail says why, on its line.
            right = (kind == "PASS") == wanted and name == f"c{number}" and "\n" not in record
            right = right and bool(reason) != wanted
        if not right:
            wrong.append((what, wanted, record))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize(
    "name", ["", "a b", "a:b", "-a", "a\nb", "../a", "x" * 81, "é", "a[$(id)]"]
)
def test_a_name_is_short_and_plain(world: World, name: str) -> None:
    (record,) = bash(before(world) + shlex.join(["expect_ok", name, "--", "true"])).split("\0")[:-1]
    assert record.startswith("FAIL unnamed: ")
    assert "\n" not in record


def test_a_name_is_used_once_in_a_script(world: World) -> None:
    script = before(world) + "pass one\nexpect_ok two -- true\nfail one again\npass two\n"
    assert bash(script).split("\0")[:-1] == [
        "PASS one",
        "PASS two",
        "FAIL one: the name is used twice in this script",
        "FAIL two: the name is used twice in this script",
    ]


def test_a_name_that_the_library_needs_is_not_made_readonly(world: World) -> None:
    """It would keep the script's value, and the check look at something else."""
    script = before(world) + (
        "readonly port=$open\nexpect_port a 127.0.0.1 $closed\nexpect_ok b -- true\n"
        "answers field /etc/passwd x\n"
    )
    reason = "the script makes port readonly, which the library uses"
    assert bash(script).split("\0")[:-1] == [f"FAIL a: {reason}", f"FAIL b: {reason}", "None"]


def test_all_names_that_the_library_needs_are_known_to_it() -> None:
    text, _, _ = LIBRARY.read_text().partition("# --- running a script ---")
    listed = set(re.findall(r"_ck_locals=\(([^)]*)\)", text)[0].split())
    quoted = r"\$\{[^}]*\}|\"[^\"]*\"|\$?'[^']*'|\([^)]*\)"
    used = {
        word.partition("=")[0]
        for line in re.findall(r"^ *local (?:-A )?(.*)$", text, re.MULTILINE)
        for word in re.sub(quoted, "", line).split()
    }
    used |= set(re.findall(r"\bfor (\w+) in", text))
    assert {name for name in used if re.match("[a-z]", name)} <= listed


def test_a_check_tells_why_it_fails(world: World) -> None:
    script = before(world) + (
        "expect_ok a -- bash -c 'echo it broke >&2; echo; exit 3'\n"
        "expect_eq b '5 rows' 6 int\n"
        "expect_out c 'x|y' -- printf 'one\\ntwo\\n'\n"
        "expect_eq d x,z x,y set\n"
        "expect_eq e b,a a,b seq\n"
        "expect_file f /nowhere\n"
        "fail g 'two\nlines \x1b[31mred'\n"
        "_ck_most_bytes=$((1 << 20))\nexpect_ok i -- yes\n"
        "expect_out j z -- dd if=/dev/zero bs=1000000 count=1 status=none\n"
        f"fail h {'x' * 1000}\n"
    )
    *reasons, long = bash(script).split("\0")[:-1]
    assert reasons == [
        "FAIL a: ended with status 3; it said: it broke",
        "FAIL b: is '5 rows', expected '6'",
        "FAIL c: no line matches x|y; it said: two",
        "FAIL d: has 'z', which is not expected",
        "FAIL e: item 1 is 'b', expected 'a'",
        "FAIL f: /nowhere is missing",
        "FAIL g: two lines ?[31mred",
        "FAIL i: printed more than 1 MB",
        "FAIL j: no line matches z; it printed nothing",
    ]
    assert len(long) < 500


def test_a_command_over_its_time_fails_with_all_it_started(world: World, tmp_path: Path) -> None:
    mine = f"dk-slow-{tmp_path.name}"
    script = before(world) + (
        "_ck_seconds=1\n"
        f"slow() {{ sh -c 'sleep 500 # {mine}'; }}\n"
        f"expect_fail a . -- sh -c 'echo begun; sleep 500 # {mine}'\n"
        "expect_out b . -- slow\n"
        "expect_ok c -- true\n"
    )
    began = time.monotonic()
    records = bash(script, TMPDIR=str(tmp_path)).split("\0")[:-1]
    assert time.monotonic() - began < 20
    assert records == [
        "FAIL a: still ran after 1 seconds",
        "FAIL b: still ran after 1 seconds",
        "PASS c",
    ]
    left = subprocess.run(["pgrep", "-f", mine], capture_output=True, text=True)
    assert left.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_proc_start_tells_which_of_two_was_started_later(world: World, tmp_path: Path) -> None:
    later = shutil.copy(world.scratch / "dk-daemon", tmp_path / "dk-later")
    with subprocess.Popen([later, "600"]) as process:
        script = before(world) + (
            "old=$(proc_start dk-daemon) new=$(proc_start /any/dk-later)\n"
            'printf \'%s\\0\' "$old" "$new" "$(proc_start dk-absent 2>/dev/null; echo $?)"\n'
        )
        old, new, absent = bash(script).split("\0")[:-1]
        process.kill()
    assert float(old) <= float(new)
    assert len(new) == len(old)  # so that they can be compared as text
    assert new[-3] == "."
    assert abs(time.time() - float(new)) < 30
    assert absent == "1"


# --- scripts ---


def run_script(
    tmp_path: Path, script: str, library: Path = LIBRARY, *more: str
) -> tuple[int, list[str]]:
    (tmp_path / "check.sh").write_text(script)
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    done = subprocess.run(
        ["bash", library, tmp_path / "check.sh", *more],
        capture_output=True,
        text=True,
        env=os.environ | {"TMPDIR": str(scratch)},
        timeout=60,
    )
    assert list(scratch.iterdir()) == []
    return done.returncode, done.stdout.splitlines()


def test_a_script_passes_if_all_its_checks_do(tmp_path: Path) -> None:
    script = "set -eu\nexpect_ok a -- cat\necho PASS talk\nreport_of() { echo x; }\npass b"
    assert run_script(tmp_path, script) == (0, ["PASS a", "PASS b"])
    script = "expect_ok a -- false\nexpect_ok b -- true"
    status, lines = run_script(tmp_path, script)
    assert status == 1
    assert lines == ["FAIL a: ended with status 1; it printed nothing", "PASS b"]


def test_the_outcome_of_checks_that_are_left_out_does_not_count(tmp_path: Path) -> None:
    script = "pass a\nfail b no\n"
    dropped = run_script(tmp_path, script, LIBRARY, "--without", "b")
    assert dropped == (0, ["PASS a", "DROP b"])
    assert run_script(tmp_path, "fail a no\n", LIBRARY, "--without", "a") == (0, ["DROP a"])
    assert run_script(tmp_path, script, LIBRARY, "--without", "a")[0] == 1
    assert run_script(tmp_path, "fail b no\nexit", LIBRARY, "--without", "b")[0] == 1
    assert run_script(tmp_path, script, LIBRARY, "b")[0] == 2


@pytest.mark.parametrize(
    ("script", "last"),
    [
        ("pass a\nexit 0", "it stopped before its last line"),
        ("pass a\nset -u\necho $nothing\n", "it stopped before its last line"),
        ("pass a\nset -e\nfalse\n", "it stopped before its last line"),
        ("pass a\nkill -9 $$\n", "it stopped before its last line"),
        ("pass a\nif true; then\n", "it stopped before its last line"),
        ("pass a\ncat <<END_OF_TEXT\n", "it stopped before its last line"),
        ("true", "it has no check"),
        (
            "expect_ok a -- printf 'PASS b\\n'\n(pass c)\n(pass c)\n",
            "two checks have the same name",
        ),
        ("expect_ok a -- bash -c 'echo PASS b >&9'\necho PASS c", None),
    ],
)
def test_a_script_must_reach_its_last_line_and_check_something(
    tmp_path: Path, script: str, last: str | None
) -> None:
    status, lines = run_script(tmp_path, script)
    assert status == 1
    if last is None:
        assert [line.split(":")[0] for line in lines] == ["FAIL a"]
    else:
        assert lines[-1] == f"FAIL script: {last}"


def test_a_script_over_its_time_is_ended_and_leaves_nothing(tmp_path: Path) -> None:
    hasty = tmp_path / "checks.sh"
    hasty.write_text(LIBRARY.read_text().replace("_ck_script_seconds=600", "_ck_script_seconds=1"))
    mine = f"dk-left-{tmp_path.name}"
    script = f"pass a\nmktemp -u\n(sh -c 'sleep 500 # {mine}' &)\nsh -c 'sleep 500 # {mine}'\n"
    status, lines = run_script(tmp_path, script, hasty)
    assert (status, lines) == (1, ["PASS a", "FAIL script: it stopped before its last line"])
    left = subprocess.run(["pgrep", "-f", mine], capture_output=True, text=True)
    assert left.stdout == ""


def test_shellcheck_finds_nothing_in_the_library_and_no_danger_in_other_scripts() -> None:
    root = LIBRARY.parents[2]
    program = Path(sys.executable).with_name("shellcheck")
    # Scripts of seed environments are what an old machine left, and no part of the project.
    ours = (path for path in root.glob("env/**/*.sh") if "seeds" not in path.parts)
    others = [*ours, root / ".ci/run"]
    for command in ([LIBRARY], ["-x", "-P", "SCRIPTDIR", "-S", "warning", *others]):
        done = subprocess.run([program, *command], capture_output=True, text=True)
        assert done.stdout == ""
        assert done.returncode == 0
