"""``depthkit check`` on real tasks: what it finds, says, and exits with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from toys import TASK_TOML, TEST_SH, write_segments, write_toy

from depthkit.trials import engine

pytestmark = pytest.mark.docker

ONLINE = """\
#!/bin/bash
[ "$(ls /sys/class/net)" = lo ] || echo done > /app/out
"""


SERVED = """\
#!/bin/bash
reward=0
page='import urllib.request as u; print(u.urlopen("http://127.0.0.1:8000/out").read())'
if python3 -c "$page" | grep -q done; then reward=1; fi
echo $reward > /logs/verifier/reward.txt
"""
TWO_FACED = """\
#!/bin/bash
[ -e /app/out ] && echo '{"reward": 1}' > /logs/verifier/reward.json
echo 0 > /logs/verifier/reward.txt
"""


def write_tasks(folder: Path) -> None:
    write_toy(folder / "good")
    write_segments(folder / "good-parts", 2)
    wrong = write_toy(folder / "wrong")
    (wrong / "solution" / "solve.sh").write_text("#!/bin/bash\necho I cannot >&2\nexit 3\n")
    (wrong / "tests" / "test.sh").write_text("echo looking at it\n" + TEST_SH)
    write_toy(folder / "easy", test="#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n")
    lax = write_segments(folder / "lax-parts", 2)
    (lax / "steps/s2/tests/test.sh").write_text("#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n")
    broken = write_segments(folder / "broken-parts", 2)
    (broken / "steps/s2/solution/solve.sh").write_text("#!/bin/bash\ntrue\n")
    (write_toy(folder / "unsolved") / "solution" / "solve.sh").unlink()
    networked = write_toy(folder / "networked")
    (networked / "task.toml").write_text(TASK_TOML.replace("no-network", "public"))
    (networked / "solution" / "solve.sh").write_text(ONLINE)
    served = write_toy(folder / "served", test=SERVED)
    (served / "solution" / "solve.sh").write_text(
        "#!/bin/bash\ncd /app; echo done > out\nsetsid python3 -m http.server >/dev/null 2>&1 &\n"
    )
    write_toy(folder / "two-faced", test=TWO_FACED)
    silent = write_toy(folder / "silent", test="#!/bin/bash\ntrue\n")
    assert silent.is_dir()
    ends = write_toy(folder / "ends") / "environment" / "Dockerfile"
    ends.write_text('FROM depthkit/base:1\nWORKDIR /app\nENTRYPOINT ["/bin/true"]\n')
    open_ = TASK_TOML.replace('network_mode = "no-network"\n', "")
    composed = write_toy(folder / "composed", toml=open_) / "environment" / "docker-compose.yaml"
    composed.write_text("services:\n  main:\n    init: true\n    colour: red\n")
    (write_toy(folder / "misspelt") / "task.toml").write_text("[agnet]\n")
    (folder / "no-task").mkdir()


def check(*arguments: str | Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "depthkit", "check", *map(str, arguments)],
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("check") / "set"
    write_tasks(made)
    return made


@pytest.fixture(scope="module")
def rows(folder: Path) -> dict[str, Any]:
    status, printed = check(*sorted(folder.iterdir()), "--json", "--workers", "4")
    assert status == 1
    return {row["task_id"]: row for row in json.loads(printed)}


def test_tasks_whose_solution_passes_and_that_nothing_fails_are_ok(rows: dict[str, Any]) -> None:
    fit = {"good", "good-parts", "lax-parts", "served"}
    assert {name for name, row in rows.items() if row["ok"]} == fit
    assert [s["passed"] for s in rows["good-parts"]["solution"]["segments"]] == [True, True]
    assert [s["passed"] for s in rows["good-parts"]["nothing"]["segments"]] == [False, False]
    assert rows["good"]["dataset"] == "set"


def test_passes_that_would_be_suspect_or_unconfirmed_are_told_with_cause_and_remedy(
    rows: dict[str, Any],
) -> None:
    (fault,) = rows["two-faced"]["faults"]
    assert "contradict each other" in fault
    assert "let the verifier write one reward file" in fault
    (note,) = rows["served"]["notes"]
    assert "http.server" in note
    assert 'environment_mode = "separate"' in note
    assert rows["served"]["solution"]["unconfirmed"]
    assert rows["good"]["solution"]["unconfirmed"] is None


def test_a_solution_that_fails_is_shown_with_the_last_lines(rows: dict[str, Any]) -> None:
    (fault,) = rows["wrong"]["faults"]
    assert "the reference solution fails with reward 0" in fault
    for line in ("I cannot", "(solve.sh ended with status 3)", "looking at it"):
        assert f"| {line}" in fault
    assert rows["wrong"]["solution"]["passed"] is False


def test_a_task_that_passes_by_itself_is_a_fault(rows: dict[str, Any]) -> None:
    assert rows["easy"]["faults"] == ["doing nothing passes the task"]
    assert rows["easy"]["nothing"]["passed"] is True


def test_segments_are_reported_one_by_one(rows: dict[str, Any]) -> None:
    assert [s["passed"] for s in rows["lax-parts"]["nothing"]["segments"]] == [False, True]
    assert rows["lax-parts"]["notes"] == ["doing nothing passes segment s2"]
    assert rows["good-parts"]["notes"] == rows["easy"]["notes"] == []
    (fault,) = rows["broken-parts"]["faults"]
    assert "fails segment s2" in fault


def test_faults_of_every_directory_are_told(rows: dict[str, Any]) -> None:
    assert "agnet is not a field" in rows["misspelt"]["faults"][0]
    assert "is no Harbor task" in rows["no-task"]["faults"][0]
    assert "solution/solve.sh: is missing" in rows["unsolved"]["faults"][0]
    assert rows["unsolved"]["solution"] is None
    assert rows["unsolved"]["nothing"]["passed"] is False


def test_a_verifier_that_says_nothing_is_a_fault_of_both(rows: dict[str, Any]) -> None:
    (fault,) = rows["silent"]["faults"]  # told once
    assert (
        "the reference solution gave no verdict: RewardFileNotFoundError: the verifier gave no "
        "reward; it must write 1 or 0 to /logs/verifier/reward.txt"
    ) in fault
    assert rows["silent"]["nothing"]["passed"] is None


def test_an_image_that_ends_at_once_is_told_from_a_container_that_died(
    rows: dict[str, Any],
) -> None:
    fault, *_ = rows["ends"]["faults"]
    assert (
        'it ended at once with status 0: its ENTRYPOINT ["/bin/true"] does not run the command '
        'that it is given (exec "$@"); mend the Dockerfile'
    ) in fault


def test_of_a_compose_file_that_fails_the_reason_is_told_and_not_the_command_line(
    rows: dict[str, Any],
) -> None:
    fault, *_ = rows["composed"]["faults"]
    assert "docker compose says:" in fault
    assert "colour" in fault
    assert "--project-name" not in fault


def test_tasks_are_checked_offline_and_it_says_what_they_declare(rows: dict[str, Any]) -> None:
    (fault,) = rows["networked"]["faults"]
    assert "(checked offline; the task declares public)" in fault
    assert rows["networked"]["network_not_given"] == "public"
    assert rows["good"]["network_not_given"] is None


def test_online_gives_the_network_and_strict_asks_more(folder: Path) -> None:
    status, printed = check(folder / "networked", folder / "lax-parts", "--online", "--strict")
    assert status == 1
    assert printed.splitlines() == [
        "ok    set/networked",
        "FAIL  set/lax-parts",
        "  - doing nothing passes segment s2",
    ]


def test_a_segment_that_passes_by_itself_is_a_note(folder: Path) -> None:
    status, printed = check(folder / "lax-parts")
    assert status == 0
    assert printed.splitlines() == [
        "ok    set/lax-parts",
        "  note: doing nothing passes segment s2",
    ]


def test_faults_that_can_be_read_need_no_engine(folder: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    status, printed = check(folder / "misspelt")
    assert status == 1
    assert printed.startswith("FAIL  set/misspelt\n  - ")


def test_a_check_leaves_nothing_in_the_engine(rows: dict[str, Any]) -> None:
    assert rows
    assert not engine.clean(dry_run=True)
