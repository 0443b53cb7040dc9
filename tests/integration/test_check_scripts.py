"""Check scripts answer over the stream of one command; nothing in the container can add to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import EnvironmentConfig
from harbor.models.trial.paths import TrialPaths

from depthkit.trials import engine
from depthkit.trials.checks import CheckOutcome, CheckResult, run_checks
from depthkit.trials.environment import ContainerDiedError, DockerEnvironment

pytestmark = pytest.mark.docker


@pytest.fixture(autouse=True, scope="module")
def tidy_engine() -> Any:
    yield
    engine.release()


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[DockerEnvironment]:
    (folder / "Dockerfile").write_text("FROM depthkit/base:1\nWORKDIR /app\n")
    environment = DockerEnvironment(
        environment_dir=folder,
        environment_name="checks",
        session_id="checks",
        trial_paths=TrialPaths(folder / "trial"),
        task_env_config=EnvironmentConfig(),
    )
    await environment.start(force_build=False)
    try:
        yield environment
    finally:
        await environment.stop(delete=True)


def outcomes(tmp_path: Path, *scripts: str, user: str | None = None) -> list[CheckOutcome]:
    async def run() -> list[CheckOutcome]:
        async with opened(tmp_path) as environment:
            return [await run_checks(environment, script, user=user) for script in scripts]

    return asyncio.run(run())


def test_every_check_is_one_result_and_all_must_pass(tmp_path: Path) -> None:
    good, bad, none = outcomes(
        tmp_path,
        "pass one\necho talk\npass two",
        "pass one\nfail two the answer is wrong\npass three",
        "true",
    )
    assert good.passed
    assert [result.name for result in good.results] == ["one", "two"]
    assert good.log == "talk\n"
    assert not bad.passed
    assert bad.results[1] == CheckResult("two", passed=False, reason="the answer is wrong")
    assert none.finished
    assert not none.passed


@pytest.mark.parametrize(
    "ending",
    [
        "exit 0",
        "kill -9 $$",
        "set -e\nfalse\npass two",
        "if true; then",
        "echo 'not closed",
        "cat <<END_OF_TEXT",
    ],
)
def test_a_script_that_stops_before_its_last_line_fails(tmp_path: Path, ending: str) -> None:
    (outcome,) = outcomes(tmp_path, f"pass one\n{ending}\n")
    assert [result.name for result in outcome.results] == ["one"]
    assert not outcome.finished
    assert not outcome.passed


def test_what_programs_print_is_no_result_and_hides_none(tmp_path: Path) -> None:
    (outcome,) = outcomes(
        tmp_path,
        "echo 'PASS forged'\n"
        "bash -c 'echo PASS forged >&9; printf half-a-line >&9'\n"
        "fail real 'two\nlines'\n",
    )
    assert outcome.results == (CheckResult("real", passed=False, reason="two lines"),)
    assert "PASS forged" in outcome.log


def test_programs_of_a_check_do_not_read_the_script(tmp_path: Path) -> None:
    (outcome,) = outcomes(tmp_path, "cat\npass still-there\n" + "# long\n" * 40_000)
    assert outcome.passed


def test_the_script_is_in_no_file_and_on_no_command_line(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path) as environment:
            script = "canary-of-the-checks() { sleep 1.5; }\ncanary-of-the-checks\npass one"
            running = asyncio.ensure_future(run_checks(environment, script))
            await asyncio.sleep(0.8)
            look = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ | tr '\\0' ' '; grep -rl canary-"
            seen = (await environment.exec(f"{look}of-the /app /tmp /root /logs")).stdout or ""
            assert "eval" in seen
            assert "canary-of-the-checks" not in seen
            assert (await running).passed

    asyncio.run(check())


def test_a_root_process_that_writes_to_the_stream_cannot_add_a_result(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path) as environment:
            flood = "for p in /proc/[0-9]*; do echo PASS forged > $p/fd/1; echo END > $p/fd/9; done"
            await environment.exec(f"(while :; do {flood}; done) >/dev/null 2>&1 &")
            outcome = await run_checks(environment, "sleep 1\nfail real reason\nexit")
            assert outcome.results == (CheckResult("real", passed=False, reason="reason"),)
            assert not outcome.finished
            assert "PASS forged" in outcome.log

    asyncio.run(check())


def test_a_script_over_its_time_is_ended_and_fails(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path) as environment:
            script = "pass one\nmktemp\nsleep 777"
            outcome = await run_checks(environment, script, seconds=1)
            assert outcome.results == (CheckResult("one", passed=True),)
            assert not outcome.passed
            left = await environment.exec("ps -eo args; ls -A /tmp")
            assert "777" not in (left.stdout or "")
            assert "dk-" not in (left.stdout or "")

    asyncio.run(check())


def test_checks_run_as_the_user_asked(tmp_path: Path) -> None:
    (outcome,) = outcomes(tmp_path, '[ "$(id -un)" = nobody ] && pass me', user="nobody")
    assert outcome.passed


def test_a_container_that_dies_during_checks_is_no_verdict(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path) as environment:
            running = asyncio.ensure_future(run_checks(environment, "sleep 60\npass one"))
            await asyncio.sleep(1)
            environment.container.kill()
            with pytest.raises(ContainerDiedError):
                await asyncio.wait_for(running, 20)

    asyncio.run(check())
