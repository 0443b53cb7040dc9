"""One run of a task in which a person, or another program, stands in the model's place.

A blind attempt is evidence about a new task before any model is paid for: whoever makes it sees
what a model would see, the instruction and the screen, and answers as a model would. The harness
is the one that measures models, so turns, checks and the stop at the first failed segment are too.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.model import Run
from depthkit.protocol import Planned
from depthkit.tasks import load_task
from depthkit.trials import engine
from depthkit.trials.landing import Hold, disk_errors, land, recover, running_folder
from depthkit.trials.models import ModelSpec
from depthkit.trials.patience import PATIENCE, Patience
from depthkit.trials.run import run_trial
from depthkit.trials.schedule import Schedule
from depthkit.trials.scripted.policies import Messages
from depthkit.trials.scripted.server import ScriptedServer

SEGMENT_SECONDS = 24 * 3600.0
"""Time limit of a segment: hands are slow, and it is turns that are counted."""

_LOOK_SECONDS = 0.2
_SETTLED_SECONDS = 1.0
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")

type Say = Callable[[str], None]


class Exchange:
    """The policy of the one who answers: each turn is a pair of files in a folder.

    ``turn-001.txt`` holds what the harness said since the last reply; the reply, in the form that
    the first of these files explains, is taken from ``turn-001.json`` once that file has not
    changed for a second. A reply that does not parse is a turn, as it is for a model.

    Args:
        folder: Made if missing; must hold no turns yet.
        say: Called with a sentence whenever a reply is waited for.

    Raises:
        DepthkitError: The folder holds turns of an earlier attempt.
    """

    def __init__(self, folder: Path, say: Say) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.glob("turn-*")):
            raise DepthkitError(f"{folder}: holds turns of an earlier attempt; name a new folder.")
        self._folder, self._say = folder, say
        self._over = threading.Event()

    def close(self) -> None:
        """Wait for no further reply."""
        self._over.set()

    def __call__(self, messages: Messages) -> str:
        """What was answered to the last of these messages, waited for as long as it takes."""
        replies = [i for i, each in enumerate(messages) if each.get("role") == "assistant"]
        name = f"turn-{len(replies) + 1:03}"
        asked, answer = self._folder / f"{name}.txt", self._folder / f"{name}.json"
        new = messages[replies[-1] + 1 :] if replies else messages
        if not asked.exists():  # a request that is made again asks the same
            part = self._folder / f".{name}"
            part.write_text("\n\n".join(map(_text, new)) + "\n", "utf-8")
            part.rename(asked)
            self._say(f"{asked} waits for {answer.name}")
        while not self._over.wait(_LOOK_SECONDS):
            try:
                settled = time.time() - answer.stat().st_mtime > _SETTLED_SECONDS
            except FileNotFoundError:
                continue
            if settled:
                return answer.read_text("utf-8", errors="replace")
        return ""


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content or ""}]
    return "".join(str(part.get("text", "")) for part in parts)


def attempt(task_dir: Path, corpus_dir: Path, folder: Path, *, by: str, say: Say) -> Run:
    """Play one run of a task by hand and append it to a corpus as an evaluation run.

    Such runs never count for an estimate of depth. Their model is ``by-hand-NAME`` and their cost
    is unknown.

    Args:
        task_dir: A Harbor task directory.
        corpus_dir: Made if there is none.
        folder: For the exchange of turns, see :class:`Exchange`.
        by: Who answers; lower-case letters, digits and ``._-``.
        say: Called with what is waited for.

    Raises:
        DepthkitError: The task cannot be loaded or has changed since other runs of the corpus,
            the name or the folder will not do, no engine answers, or another process measures into
            the corpus.
    """
    if not _NAME.fullmatch(by):
        raise DepthkitError(
            f"--by is {by!r}; it must be a name of lower-case letters, digits and . _ -."
        )
    task = load_task(task_dir)
    exchange = Exchange(folder, say)
    corpus = Corpus.open_or_create(corpus_dir)
    model = f"by-hand-{by}"
    key = (task.record.dataset, task.record.task_id)
    schedule = Schedule(corpus, [task], [], scope="evaluation", workers=1)
    with disk_errors(corpus), Hold(corpus):
        engine.clean()
        recover(corpus)
        schedule.read_history()  # before anything is written: it may refuse the task
        schedule.enter_tasks()
        before = [run for run in schedule.history[key] if run.model == model]
        planned = Planned(model=model, cap=None, attempt=len(before) + 1, purpose="evaluation")
        PATIENCE.set(Patience(request_seconds=SEGMENT_SECONDS, reply_seconds=SEGMENT_SECONDS))
        try:
            with ScriptedServer({model: exchange}) as server:
                spec = ModelSpec(name=model, litellm=f"openai/{model}", base_url=server.base_url)
                try:
                    run = asyncio.run(
                        run_trial(
                            task,
                            planned,
                            spec,
                            trials_dir=running_folder(corpus),
                            segment_seconds=SEGMENT_SECONDS,
                        )
                    )
                finally:
                    exchange.close()
            land(corpus, run)
        finally:
            engine.release()
    part = folder / ".run.json"
    part.write_text(json.dumps(run.model_dump(mode="json"), indent=2) + "\n", "utf-8")
    part.replace(folder / "run.json")
    return run
