"""What a trial's folder says of its verdicts, and which processes count as an idle terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from depthkit.trials.snapshot import is_idle
from depthkit.trials.watch import VERDICTS_FILE, Watch, confirmed, doubt, suspicion

TERMINAL = {
    "10": ("1", "/sbin/docker-init -- sh -c trap '' TERM; exec sleep infinity"),
    "11": ("10", "sh -c trap '' TERM; exec sleep infinity"),
    "12": ("11", "sleep infinity"),
    "20": ("10", "tmux new-session -x 160 -y 40 -d -s terminus-2 bash --login"),
    "21": ("20", "bash --login"),
    "22": ("20", "sh -c cat > /logs/agent/terminus_2.pane"),
    "23": ("22", "cat"),
    "24": ("20", "dd bs=65536"),
    "30": ("21", "/usr/bin/python3 /usr/bin/asciinema rec --stdin /logs/agent/recording.cast"),
    "31": ("30", "/usr/bin/python3 /usr/bin/asciinema rec --stdin /logs/agent/recording.cast"),
    "32": ("30", "sh -c /bin/bash"),
    "33": ("32", "/bin/bash"),
}


def test_the_terminal_and_its_recorder_are_idle() -> None:
    assert [pid for pid in TERMINAL if not is_idle(pid, TERMINAL)] == []


@pytest.mark.parametrize(
    ("parent", "args"),
    [
        ("10", "python3 -m http.server"),
        ("10", "bash"),
        ("10", "sh -c while :; do sleep 1; done"),
        ("33", "/bin/bash"),
        ("33", "sleep 1"),
        ("21", "bash /app/serve.sh"),
        ("20", "bash /app/serve.sh"),
        ("20", "bash -c python3 serve.py"),
        ("10", "cat"),
        ("10", "dd bs=65536"),
    ],
)
def test_whatever_else_runs_is_not(parent: str, args: str) -> None:
    assert not is_idle("99", {**TERMINAL, "99": (parent, args)})


def test_a_trial_without_watched_verdicts_is_not_suspect(tmp_path: Path) -> None:
    assert suspicion(tmp_path) is None
    assert doubt(tmp_path) is None


def test_suspicion_names_the_segment(tmp_path: Path) -> None:
    Watch("one", rewards={"reward": 1}, note="no snapshot").append_to(tmp_path)
    Watch("two", rewards={"reward": 1}, suspect=["this", "that"]).append_to(tmp_path)
    assert suspicion(tmp_path) == "segment two: this; segment two: that"
    assert doubt(tmp_path) == "segment one: no snapshot"
    assert len((tmp_path / VERDICTS_FILE).read_text().splitlines()) == 2


def test_a_single_instruction_needs_no_name(tmp_path: Path) -> None:
    Watch(None, suspect=["this"]).append_to(tmp_path)
    assert suspicion(tmp_path) == "this"


@pytest.mark.parametrize(
    ("of_segments", "expected"),
    [
        ([True], True),
        ([True, True], True),
        ([True, None], None),
        ([None, False, True], False),
        ([], None),
    ],
)
def test_a_pass_is_confirmed_if_that_of_every_segment_is(
    tmp_path: Path, of_segments: list[bool | None], expected: bool | None
) -> None:
    for number, each in enumerate(of_segments):
        Watch(f"s{number}", rewards={"reward": 1}, confirmed=each).append_to(tmp_path)
    assert confirmed(tmp_path) is expected
