"""Three tasks with real software: fit, and noticed when a part is missing.

A web server with a database, a version-control server and a directory service, all from Debian
packages in one image, without network.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from checked_task import copy_real_task

from depthkit.experiments.check import CheckedTask, check_tasks
from depthkit.experiments.replay import Replayed, replay_tasks

pytestmark = [pytest.mark.docker, pytest.mark.slow]

NAMES = ("catalog", "parts", "depot")


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("real") / "ours"
    return [copy_real_task(name, folder) for name in NAMES]


@pytest.fixture(scope="module")
def checked(tasks: list[Path]) -> list[CheckedTask]:
    return check_tasks(tasks, workers=3, strict=True)


@pytest.fixture(scope="module")
def replayed(tasks: list[Path], checked: list[CheckedTask]) -> list[Replayed]:
    return replay_tasks(tasks, tasks[0].parents[1] / "corpus", workers=3)


def test_their_solutions_pass_and_doing_nothing_fails_each_segment(
    checked: list[CheckedTask],
) -> None:
    assert {row.task_id: row.faults for row in checked} == {n: [] for n in NAMES}
    # Their daemons run, which no snapshot holds.
    assert {row.task_id: len(row.notes) for row in checked} == dict.fromkeys(NAMES, 1)
    assert all("is not confirmed" in row.notes[0] for row in checked)


def test_the_checks_notice_whatever_is_missing(replayed: list[Replayed]) -> None:
    for found in replayed:
        reasons = [each.reason for each in found.replays if each.holds is None]
        assert reasons == []
        assert len(found.replays) == 3 + 2 + 1 + 3 + 2
    missed = {
        (each.task_id, each.change, each.segment)
        for found in replayed
        for each in found.replays
        if not each.holds
    }
    assert missed == set()
