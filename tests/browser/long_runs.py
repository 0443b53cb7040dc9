"""A corpus with what few runs have: recordings of segments, summarizations, continuations."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from fake_trials import START, agent, at, atif, result, user, write_trial

from depthkit.corpus import Corpus
from depthkit.model import Run, Segment, Task, Work

SEGMENTS = "segments-run"
SUMMARIZED = "summarized-run"
COUNTED = {"prompt_tokens": 1200, "completion_tokens": 50, "cost_usd": 0.0125}
CALLS = [f"trajectory.summarization-1-{part}.json" for part in ("summary", "questions", "answers")]


def write_long_runs(folder: Path) -> Corpus:
    """Runs of the task ``tasks/depot``, whose directory lies in ``tests/tasks``."""
    corpus = Corpus.open_or_create(folder, name="long", models=["first", "second"])
    work = Work(lines=20, tokens=90, chars=400)
    corpus.append_tasks(
        [
            Task(
                dataset="tasks",
                task_id="depot",
                segments=tuple(Segment(index=n, name=f"s{n}", work=work) for n in (1, 2, 3)),
                provenance="scripted",
            )
        ]
    )
    corpus.append_runs(
        [
            Run(
                run_id=name,
                dataset="tasks",
                task_id="depot",
                model="first",
                cap=None,
                attempt=attempt,
                purpose="free",
                verdict="failed",
                stop="submitted",
                turns=4,
                agent_minutes=1.0,
                provenance="scripted",
            )
            for attempt, name in enumerate((SEGMENTS, SUMMARIZED), start=1)
        ]
    )
    _segments(corpus.trial_dir(SEGMENTS))
    _summarized(corpus.trial_dir(SUMMARIZED))
    return corpus


def _segments(trial: Path) -> None:
    """Two segments as Harbor keeps them, the second a minute later; a recording of each."""
    outcome = result(SEGMENTS, step_results=[{"step_name": "s1"}, {"step_name": "s2"}])
    trial.mkdir(parents=True)
    (trial / "result.json").write_text(json.dumps(outcome))
    for number in (1, 2):
        begins = 60 * (number - 1)
        folder = trial / "steps" / f"s{number}"
        (folder / "agent").mkdir(parents=True)
        (folder / "verifier").mkdir()
        (folder / "verifier/test-stdout.txt").write_text(f"checks of s{number}\n")
        typed = [f"echo first-of-{number}", f"echo second-of-{number}"]
        steps = [
            user(f"Do part {number}.", timestamp=at(begins)),
            *(
                agent(f"{line}\n", timestamp=at(begins + 4 * turn), metrics=COUNTED)
                for turn, line in enumerate(typed, start=1)
            ),
        ]
        (folder / "agent/trajectory.json").write_text(json.dumps(atif(steps)))
        header = {
            "version": 2,
            "width": 60 + 10 * number,
            "height": 12,
            "timestamp": int((START + timedelta(seconds=begins)).timestamp()),
        }
        events: list[Any] = [[0.2, "o", "$ "]]
        for turn, line in enumerate(typed):
            events += [[4 * turn + 0.5, "o", f"{line}\r\n{line[5:]}\r\n$ "]]
        events.append([7.5, "o", f"end of {number}"])
        lines = [json.dumps(line) for line in [header, *events]]
        (folder / "agent/recording.cast").write_text("\n".join(lines) + "\n")


def _summarized(trial: Path) -> None:
    """One segment, summarized after its second turn and continued in a second file."""
    references = [{"trajectory_path": name} for name in CALLS]
    summarized = {
        "source": "system",
        "message": "Context is full; handed over.",
        "observation": {"results": [{"subagent_trajectory_ref": references}]},
    }
    first = [user("Do it all."), agent("ls\n"), agent("make\n"), summarized]
    copied = [user("What was done: make.", is_copied_context=True)]
    rest = [*copied, agent("make check\n"), agent("make install\n", claim=True)]
    files = {
        name.replace(".", "__"): atif([user("Sum up."), agent() | {"message": f"said in {name}"}])
        for name in CALLS
    }
    write_trial(
        trial,
        result(SUMMARIZED),
        trajectory__json=atif(first, continued_trajectory_ref="trajectory.cont-1.json"),
        **{"trajectory__cont-1__json": atif(rest)},
        **files,
    )
