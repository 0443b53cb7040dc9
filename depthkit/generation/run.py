"""``depthkit generate task``: a seed, an author, a task that is accepted or not."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from depthkit.corpus.lines import open_alone
from depthkit.errors import DepthkitError
from depthkit.generation.draft import Draft
from depthkit.generation.log import Event, GenerationLog, read_log
from depthkit.generation.session import Rules, Session
from depthkit.model import Provenance
from depthkit.trials import engine
from depthkit.trials.interrupts import interruptible
from depthkit.trials.limits import Limits, Watch
from depthkit.trials.models import ModelSpec, select_models

MENDS = 8
"""Refused replays of a segment that a model may mend."""


@dataclass(frozen=True)
class Generated:
    """What became of a call.

    Attributes:
        outcome: ``accepted``, ``rejected`` or ``stopped``.
        reason: Why, where it is not accepted.
        limit: Whether one of the limits stopped it.
        task: Where the accepted task stands.
        finished: Segments that are finished.
    """

    outcome: str
    reason: str | None
    limit: bool
    task: Path | None
    finished: int

    def row(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "outcome": self.outcome,
            "reason": self.reason,
            "task": str(self.task) if self.task else None,
            "finished": self.finished,
        }


def generate_task(
    seed_dir: Path,
    out: Path,
    *,
    k: int,
    model: str | None = None,
    models_file: Path | None = None,
    log_file: Path | None = None,
    strict: bool = False,
    mends: int | None = None,
    limits: Limits | None = None,
    workers: int = 2,
    most_turns: int | None = None,
    provenance: Provenance = "measured",
    on_event: Callable[[Event], None] | None = None,
) -> Generated:
    """Let an author write a task, or go on where it was stopped.

    Args:
        seed_dir: The seed environment.
        out: Where the accepted task is to stand; the draft is beside it.
        k: Number of segments.
        model: The author's name in the registry; ``None`` for whoever speaks on stdin.
        models_file: A registry laid over the bundled one.
        log_file: The generation log; by default ``generation.jsonl`` beside ``out``.
        strict: Whether all replays of Table 8 must be noticed.
        mends: Refused replays of a segment that may be mended; by default :data:`MENDS` for a
            model, and as many as it takes on stdin.
        limits: When to stop.
        workers: Containers at a time in acceptance.
        most_turns: Replies of a model for one segment.
        provenance: What the log says of it: ``scripted`` where a policy answers for the model.
        on_event: Is told each event of the log.

    Raises:
        DepthkitError: The seed, the model or the draft cannot be used, another process works on
            the draft, or no engine answers.
    """
    limits = limits or Limits()
    spec = select_models([model], models_file)[0] if model else None
    if spec is not None:
        spec.check_ready(os.environ)
        if spec.policy is not None:
            raise DepthkitError(f"{spec.name} plays terminal tasks; it cannot write one.")
        limits.prices([spec])
    elif limits != Limits():
        raise DepthkitError(
            "Limits are for models; whoever writes over stdin stops when they like."
        )
    out = out.resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    with _held(out):
        log_file = log_file or out.parent / "generation.jsonl"
        draft = Draft(out, seed_dir, k)
        ended = _ended(log_file, out.name) if draft.resumed else None
        if ended == "accepted":
            return Generated("accepted", None, False, draft.publish(), k)
        if ended == "rejected":
            draft.set_aside()
            draft = Draft(out, seed_dir, k)
        log = GenerationLog(
            log_file,
            task=out.name,
            seed=draft.seed.name,
            author=spec.name if spec else "stdio",
            provenance=provenance,
            on_event=on_event,
        )
        rules = Rules(
            strict=strict,
            mends=MENDS if mends is None and spec else mends,
            host_files=spec is None,
            tells_replays=spec is None,
            workers=workers,
        )
        logging.getLogger("LiteLLM").setLevel(logging.ERROR)
        try:
            engine.clean()
            return asyncio.run(_write(draft, log, rules, spec, limits, most_turns))
        except (KeyboardInterrupt, asyncio.CancelledError):
            return Generated("stopped", "interrupted", False, None, draft.finished)
        finally:
            engine.release()


async def _write(
    draft: Draft,
    log: GenerationLog,
    rules: Rules,
    spec: ModelSpec | None,
    limits: Limits,
    most_turns: int | None,
) -> Generated:
    from depthkit.generation import author, stdio
    from depthkit.trials.budget import PURSE, Budget, Purse

    watch = Watch(limits, [spec] if spec else [], {})
    watch.start()
    session = Session(draft, log, rules)
    limit = False
    writing = asyncio.current_task()
    assert writing is not None
    try:
        with interruptible(lambda _: writing.cancel()):
            if spec is None:
                await stdio.drive(session, sys.stdin.fileno(), sys.stdout)
            else:
                PURSE.set(Purse(Budget(limits.max_cost)))
                turns = author.MOST_TURNS if most_turns is None else most_turns
                await author.drive(session, spec, watch, most_turns=turns)
    except author.StoppedError as stopped:
        session.over, session.reason, limit = "stopped", str(stopped), stopped.limit
    except asyncio.CancelledError:
        session.reason = "interrupted"
        raise
    finally:
        await session.close()
    accepted = session.over == "accepted"
    return Generated(
        outcome=session.over or "stopped",
        reason=session.reason,
        limit=limit,
        task=draft.out if accepted else None,
        finished=draft.k if accepted else session.finished,
    )


def _ended(log_file: Path, task: str) -> str | None:
    """The last event of a task: a process may be killed between it and what it tells."""
    if not log_file.exists():
        return None
    return next((e.event for e in reversed(read_log(log_file)) if e.task == task), None)


@contextlib.contextmanager
def _held(out: Path) -> Iterator[None]:
    """Keep other processes from the draft of a task."""
    path = out.with_name(f".{out.name}.lock")
    try:
        held = open_alone(path, "w", wait=False)
    except BlockingIOError as error:
        raise DepthkitError(f"{out}: another process is writing this task.") from error
    with held:
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
