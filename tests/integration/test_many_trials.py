"""Many trials at once: they stay apart, and an engine does not run out of networks."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from test_environment import opened
from toys import reply, write_toy

from depthkit.corpus import Corpus
from depthkit.tasks import load_task
from depthkit.trials import engine
from depthkit.trials.environment import DockerEnvironment
from depthkit.trials.models import ModelSpec
from depthkit.trials.schedule import Schedule
from depthkit.trials.scripted.policies import Messages, fixed_replies
from depthkit.trials.scripted.server import ScriptedServer

pytestmark = pytest.mark.docker


@pytest.mark.slow
def test_sixty_trials_with_a_network_do_not_use_up_the_engines_networks(tmp_path: Path) -> None:
    async def one(number: int, all_up: asyncio.Barrier) -> str:
        folder = tmp_path / f"trial-{number}"
        folder.mkdir()
        async with opened(DockerEnvironment, folder, config={"network_mode": "public"}) as trial:
            await all_up.wait()
            said = await trial.exec("cat /proc/net/dev | grep -c eth0; hostname -i")
            assert said.return_code == 0
            assert said.stdout is not None
            return said.stdout

    async def sixty() -> list[str]:
        all_up = asyncio.Barrier(60)
        return await asyncio.gather(*(one(number, all_up) for number in range(60)))

    try:
        said = asyncio.run(sixty())
    finally:
        engine.release()
    assert all(text.startswith("1\n") for text in said)
    assert len({text.split()[1] for text in said}) == 60


def test_twelve_trials_at_once_do_not_mix_and_see_their_terminals(tmp_path: Path) -> None:
    """Each task asks for a word of its own, in the same file of its own container."""
    check = (
        "#!/bin/bash\nreward=0\n"
        'if [ "$(cat /app/out)" = "{word}" ]; then reward=1; fi\n'
        "echo $reward > /logs/verifier/reward.txt\n"
    )
    words = [f"word{number}" for number in range(12)]
    tasks = [
        load_task(
            write_toy(
                tmp_path / "set" / word,
                instruction=f"Write ={word}= to /app/out.",
                test=check.format(word=word),
            )
        )
        for word in words
    ]

    screens: list[str] = []

    def policy(messages: Messages) -> str:
        (word,) = {word for word in words if f"={word}=" in str(messages)}
        first = reply(f"echo {word} > /app/out", "sleep 1; cat /app/out", wait=0.5)
        screens.append(str(messages[-1]["content"]))
        answer = fixed_replies([first, reply(complete=True)])(messages)
        assert isinstance(answer, str)
        return answer

    spec = ModelSpec(name="m", litellm="openai/m", context_tokens=100_000)
    with ScriptedServer({"m": policy}) as server:
        outcome = Schedule(
            Corpus.open_or_create(tmp_path / "corpus", models=["m"]),
            tasks,
            [spec],
            scope="free",
            workers=12,
            base_urls={"m": server.base_url},
            record=False,
        ).run()
    assert [screen for screen in screens if "/app#" not in screen] == []  # the prompt at least
    assert outcome.given_up == []
    assert Counter(run.task_id for run in outcome.runs if run.passed) == dict.fromkeys(words, 2)
    # No command waited for another trial's, nor was any lost.
    assert {run.turns for run in outcome.runs} == {3}
