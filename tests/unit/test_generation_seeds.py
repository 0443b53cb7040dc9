"""Which environments of released tasks become seeds: rules, a judge, one of each kind."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from task_files import TOML
from typer.testing import CliRunner

from depthkit.cli import app
from depthkit.generation.screening import Screened, screen
from depthkit.generation.seeds import load_seed
from depthkit.trials.limits import Limits
from depthkit.trials.scripted.server import ScriptedServer

MODELS = """\
["judge"]
litellm = "openai/judge"
base_url = "{url}"
context_tokens = 64000
max_output_tokens = 1000
input_usd_per_mtok = 1.0
output_usd_per_mtok = 1.0
"""


def package(folder: Path, dockerfile: str) -> Path:
    files = {
        "task.toml": TOML,
        "instruction.md": "Make the file /app/done.\n",
        "environment/Dockerfile": dockerfile,
        "solution/solve.sh": "#!/bin/bash\ntouch /app/done\n",
        "tests/test.sh": "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def rated(kind: str, *ratings: int) -> str:
    names = ("real", "together", "uncommon", "room")
    told = {
        n: {"rating": r, "reason": f"because of {n}"} for n, r in zip(names, ratings, strict=True)
    }
    summary = "Servers of one kind and what they need."
    return json.dumps({"kind": kind, "components": ["nginx"], "summary": summary, **told})


class Judge:
    """Answers by a word in the Dockerfile; ``SLIP`` gets a bad answer first."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, messages: Sequence[Mapping[str, Any]]) -> str:
        text = str(messages[0]["content"])
        self.asked.append(text)
        text = text.partition("--- Dockerfile ---")[2]
        if "mail" in text:
            return rated("Mail server", 5, 5, 4, 4)
        if "postfix" in text:
            return rated("mail-server", 4, 4, 4, 4)
        if "SLIP" in text and len(messages) == 1:
            return '{"kind": "web server"}'
        if "SLIP" in text:
            return rated("web server", 4, 4, 2, 5)
        return "I cannot say."


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    folder = tmp_path / "released"
    run = "FROM debian:12\nRUN apt-get update && apt-get install -y"
    package(folder / "bare", "FROM debian:12\nWORKDIR /app\n")
    package(folder / "mail", f"{run} mail\n")
    package(folder / "postfix", f"{run} postfix\n")
    package(folder / "same", f"{run} mail\n")
    package(folder / "web", f"{run} nginx SLIP\n")
    package(folder / "dumb", f"{run} dumb\n")
    compose = package(folder / "composed", f"{run} other\n")
    (compose / "environment" / "docker-compose.yaml").write_text("services: {main: {build: .}}\n")
    (folder / "broken").mkdir()
    (folder / "broken" / "task.toml").write_text("no toml\n")
    return folder


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[Judge]:
    made = Judge()
    with ScriptedServer({"judge": made}) as server:
        (tmp_path / "models.toml").write_text(MODELS.format(url=server.base_url))
        yield made


def screened(tmp_path: Path, packages: Path, **more: Any) -> Screened:
    return screen(
        [packages], tmp_path / "seeds.jsonl", models_file=tmp_path / "models.toml", **more
    )


def by_name(found: Screened) -> dict[str, tuple[bool | None, str]]:
    return {Path(c.verdict.path).name: (c.kept, c.reason) for c in found.choices}


def test_rules_alone(tmp_path: Path, packages: Path) -> None:
    found = by_name(screened(tmp_path, packages))
    assert found.pop("broken")[0] is False
    assert found == {
        "bare": (False, "the image holds a base system alone: no software is installed"),
        "composed": (False, "the environment is several containers"),
        "mail": (None, "fits the rules; not judged yet"),
        "postfix": (None, "fits the rules; not judged yet"),
        "web": (None, "fits the rules; not judged yet"),
        "dumb": (None, "fits the rules; not judged yet"),
    }


def test_of_each_kind_the_best_is_kept_and_every_verdict_has_its_reason(
    tmp_path: Path, packages: Path, judge: Judge
) -> None:
    found = by_name(screened(tmp_path, packages, model="judge"))
    assert "name it so: Mail server; mail-server.\n" in judge.asked[-1]
    assert found["mail"] == (True, "rated real 5, together 5, uncommon 4, room 4")
    assert found["postfix"] == (False, "mail is of the same kind and rated at least as high")
    assert found["web"] == (False, "uncommon is rated 2: because of uncommon")
    kept, reason = found["dumb"]
    assert kept is None
    assert reason.startswith("no usable answer of the judge: the reply has no message")


def test_nothing_is_judged_twice_but_what_had_no_answer(
    tmp_path: Path, packages: Path, judge: Judge
) -> None:
    first = by_name(screened(tmp_path, packages, model="judge"))
    asked = len(judge.asked)
    assert by_name(screened(tmp_path, packages, model="judge")) == first
    again = judge.asked[asked:]
    assert len(again) == 3
    assert all("install -y dumb" in text for text in again)


def test_a_budget_ends_it_and_the_same_command_goes_on(
    tmp_path: Path, packages: Path, judge: Judge
) -> None:
    found = screened(tmp_path, packages, model="judge", limits=Limits(max_cost=0.0))
    assert found.limit
    assert found.stopped is not None
    assert "--max-cost" in found.stopped
    assert not judge.asked
    assert by_name(screened(tmp_path, packages, model="judge"))["mail"][0] is True


def test_the_command_writes_seeds_of_those_it_keeps(
    tmp_path: Path, packages: Path, judge: Judge
) -> None:
    arguments = ["generate", "seeds", str(packages), "-o", str(tmp_path / "s.jsonl"), "--json"]
    arguments += ["--model", "judge", "--models-file", str(tmp_path / "models.toml")]
    said = CliRunner().invoke(app, [*arguments, "--write", str(tmp_path / "seeds")])
    assert said.exit_code == 1  # One could not be judged.
    rows = json.loads(said.stdout)
    assert sum(row["kept"] is True for row in rows) == 1
    seed = load_seed(tmp_path / "seeds" / "mail")
    assert (seed.kind, seed.components) == ("Mail server", ["nginx"])
    assert (tmp_path / "seeds" / "mail" / "Dockerfile").is_file()
