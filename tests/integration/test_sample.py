"""Sampling with the quality check: unfit tasks are replaced, and what is known is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from toys import write_toy

from depthkit.experiments.sample import draw_sample
from depthkit.experiments.sampling import Rules, plan_sample
from depthkit.trials import engine

pytestmark = pytest.mark.docker


def test_a_task_that_fails_the_check_is_replaced_and_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Rules.model_validate(
        {"dataset": "set", "id": ["task"], "n": 1, "evidence": [], "groups": [{"name": "all"}]}
    )
    rows: list[dict[str, Any]] = [{"task": f"t{n}"} for n in range(3)]
    first, second, third = (each.task_id for each in plan_sample(rows, asked).listed)
    write_toy(tmp_path / "set" / first, test="#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n")
    unsure = write_toy(tmp_path / "set" / second)
    with (unsure / "environment" / "Dockerfile").open("a") as dockerfile:
        dockerfile.write("RUN mkdir /src && cd /src && (make -j2 || true)\n")
    out = tmp_path / "out"
    for attempt in range(2):
        if attempt:
            monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
        found = draw_sample(rows, asked, tasks_dir=tmp_path / "set", check=True, out=out)
        reasons = {each.task_id: each.reason for each in found.decisions}
        assert [each.task_id for each in found.sampled] == [second]
        assert reasons[first] == "quality check: doing nothing passes the task"
        assert reasons[second].startswith("unsure whether light, build: environment/Dockerfile:3:")
        assert reasons[third] == "further down the list"
    assert not engine.clean(dry_run=True)
