"""The protocol that every author speaks: a message in, an answer out (docs/generation.md).

It knows neither models nor terminals of people. What happens is told to the log as it happens.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker.errors import DockerException

from depthkit.errors import DepthkitError
from depthkit.generation.acceptance import Verdict, accept
from depthkit.generation.draft import Draft, Plan
from depthkit.generation.log import GenerationLog
from depthkit.generation.terminal import MOST_SECONDS
from depthkit.generation.world import Replayed, World
from depthkit.tasks.text import read_text
from depthkit.trials.environment import ContainerDiedError
from depthkit.trials.threads import in_thread

PROTOCOL = 1

type Message = Mapping[str, Any]
type Answer = dict[str, Any]


@dataclass(frozen=True)
class Rules:
    """What a session allows.

    Attributes:
        strict: Whether every replay of Table 8 must be noticed.
        mends: Refused replays and acceptances of a segment that may be mended, whichever process
            saw them; ``None`` for no limit.
        host_files: Whether the author may give files of this machine.
        tells_replays: Whether the author is told the replays of Table 8.
        workers: Containers at a time in acceptance.
    """

    strict: bool = False
    mends: int | None = None
    host_files: bool = False
    tells_replays: bool = True
    workers: int = 2


class Session:
    """One author at work on one draft; to be closed.

    Attributes:
        over: How it ended: ``accepted``, ``rejected`` or ``stopped``; ``None`` while it goes on.
        reason: Of a rejection.
        finished: Segments that were finished when it was over.
    """

    def __init__(self, draft: Draft, log: GenerationLog, rules: Rules) -> None:
        self.draft, self.log, self.rules = draft, log, rules
        self.over: str | None = None
        self.reason: str | None = None
        self.world = World(draft)
        self._segment = min(draft.finished + 1, draft.k)
        self.finished = draft.finished
        self._passed: str | None = None
        log.add(
            "started",
            details={
                "k": draft.k,
                "resumed": draft.resumed,
                "finished": draft.finished,
                "strict": rules.strict,
                "original_lines": draft.seed.original_lines,
            },
        )

    @property
    def segment(self) -> int:
        """The segment that is being written, from 1."""
        return self._segment

    def hello(self) -> Answer:
        """What an author is told first."""
        plan = self.draft.plan
        return {
            "type": "hello",
            "protocol": PROTOCOL,
            "seed": self.draft.seed.told(),
            "k": self.draft.k,
            "segment": self._segment,
            "finished": self.draft.finished,
            "draft": str(self.draft.task),
            "files": self.draft.written(self._segment),
            "plan": plan.row() if plan else None,
            "faults": self.draft.faults,
            "resumed": self.draft.resumed,
        }

    async def close(self) -> None:
        """Remove the containers, and say in the log if the task did not come to its end."""
        await self.world.close()
        if self.over in (None, "stopped"):
            self.finished = self.draft.finished
            self.over = "stopped"
            self.log.add("stopped", self._segment, details={"reason": self.reason or "quit"})

    async def answer(self, message: Any) -> Answer:
        """Carry out a message of the author."""
        if not isinstance(message, dict) or message.get("do") not in _DO:
            return _no(f'a message is an object with "do", one of {", ".join(_DO)}')
        allowed = _DO[message["do"]]
        unknown = sorted(set(message) - {"do", *allowed})
        if unknown:
            return _no(
                f"{message['do']} has no {unknown[0]}; it has {', '.join(allowed) or 'none'}"
            )
        handle: Callable[[Message], Awaitable[Answer]] = getattr(self, f"_{message['do']}")
        try:
            return await handle(message)
        except ContainerDiedError:
            await self.world.reset()
            return _no("the container died; the next one is as the segments before leave it")
        except (DepthkitError, DockerException, RuntimeError) as error:
            return _no(str(error).replace(f"{self.draft.task}/", ""))

    # --- in the work container ---

    async def _run(self, message: Message) -> Answer:
        command = _text(message, "command")
        seconds = min(_number(message, "seconds", 60), MOST_SECONDS)
        ran = await (await self.world.work()).run(command, seconds)
        return {"ok": True, "status": ran.status, "output": ran.output, "seconds": ran.seconds}

    async def _keys(self, message: Message) -> Answer:
        if ("text" in message) == ("key" in message):
            raise DepthkitError("keys needs text or key, one of the two.")
        text = _text(message, "text") if "text" in message else None
        key = _text(message, "key") if "key" in message else None
        wait = _number(message, "wait", 1)
        return {"ok": True, "screen": await (await self.world.work()).keys(text, key, wait)}

    async def _screen(self, _: Message) -> Answer:
        return {"ok": True, "screen": await (await self.world.work()).screen()}

    async def _reset(self, _: Message) -> Answer:
        await self.world.reset()
        await self.world.work()
        return {"ok": True}

    # --- the files ---

    async def _plan(self, message: Message) -> Answer:
        goal, segments = _text(message, "goal"), message.get("segments")
        k, old = self.draft.k, self.draft.plan
        if not isinstance(segments, list) or not all(
            isinstance(each, str) and each.strip() for each in segments
        ):
            raise DepthkitError("segments must be a list of sentences.")
        if len(segments) != k:
            raise DepthkitError(f"segments has {len(segments)} items; the task has {k} segments.")
        done = self.draft.finished
        if old and [each.strip() for each in segments[:done]] != old.segments[:done]:
            raise DepthkitError(f"the first {done} segments are finished; leave them as they are.")
        plan = Plan(goal.strip(), [s.strip() for s in segments], old.key_steps if old else [])
        self.draft.write_plan(plan)
        self.log.add("planned", details={"goal": plan.goal, "segments": plan.segments})
        return {"ok": True}

    async def _write(self, message: Message) -> Answer:
        if self.draft.plan is None:
            raise DepthkitError('there is no plan yet; send {"do": "plan", …} first.')
        name = self.draft.file_name(message.get("file"))
        if "from" in message:
            if not self.rules.host_files:
                raise DepthkitError("write needs text.")
            path = Path(_text(message, "from"))
            text = read_text(path, str(path))
        else:
            text = _text(message, "text")
        self.draft.write(self._segment, name, text)
        return {"ok": True}

    async def _read(self, message: Message) -> Answer:
        name = self.draft.file_name(message.get("file"))
        number = int(_number(message, "segment", self._segment))
        return {"ok": True, "text": self.draft.read(number, name)}

    # --- a segment ---

    async def _replay(self, _: Message) -> Answer:
        self._stay_in_order()
        faults = await in_thread(lambda: self.draft.format_faults(self._segment))
        if faults:
            self.log.add("format_error", self._segment, details={"faults": faults})
            return self._refuse({"format": faults})
        replayed = await self._replayed()
        if not replayed.passed:
            return self._refuse({"replay": replayed.row()})
        return {"ok": True, "replay": replayed.row()}

    async def _replayed(self) -> Replayed:
        digest = self.draft.digest(self._segment)
        replayed = await self.world.replay(self._segment)
        self.log.add(
            "replay",
            self._segment,
            seconds=replayed.seconds,
            details={
                "passed": replayed.passed,
                "reason": replayed.reason(),
                "checks": len(replayed.checks),
            },
        )
        self._passed = digest if replayed.passed else None
        return replayed

    async def _finish(self, message: Message) -> Answer:
        self._stay_in_order()
        number = self._segment
        if self.draft.finished < number:
            key_step = _text(message, "key_step").strip()
            if not key_step:
                raise DepthkitError("key_step must say what goes wrong in the usual way.")
            if self._passed is None or self.draft.digest(number) != self._passed:
                raise DepthkitError(
                    f"the files of segment {number} as they are have passed no replay; send "
                    '{"do": "replay"} first.'
                )
            self.draft.finish(number, key_step)
            self.log.add("finished", number, details={"key_step": key_step})
            await self.world.hand_over()
        if number < self.draft.k:
            self._segment, self._passed = number + 1, None
            return {"ok": True, "finished": number, "segment": self._segment}
        return await self._accept()

    async def _accept(self) -> Answer:
        await self.world.close()
        began = time.monotonic()
        rules = self.rules
        verdict: Verdict = await in_thread(
            lambda: accept(self.draft, strict=rules.strict, workers=rules.workers)
        )
        seconds = round(time.monotonic() - began, 2)
        told = verdict.report(with_replays=rules.tells_replays or rules.strict)
        ended = {"finished": self.draft.k, "report": told}
        if verdict.accepted:
            # The log first: who is killed in between goes on from what it says (`run`).
            self.log.add("accepted", seconds=seconds, details={"report": verdict.report()})
            path = self.draft.publish()
            self.over = "accepted"
            return {"ok": True, "accepted": True, "task": str(path), **ended}
        details = {"faults": verdict.faults, "report": verdict.report()}
        self.log.add("refused", seconds=seconds, details=details)
        return self._refuse(
            {"accepted": False, "faults": verdict.faults, **ended},
            faults=verdict.faults,
        )

    async def _back(self, message: Message) -> Answer:
        number = int(_number(message, "segment", self._segment))
        if not 1 <= number <= self.draft.finished + 1 or number > self.draft.k:
            most = min(self.draft.finished + 1, self.draft.k)
            raise DepthkitError(f"segment must be from 1 to {most}.")
        self.draft.go_back(number)
        self._segment, self._passed = number, None
        await self.world.reset()
        return {"ok": True, "segment": number}

    def _stay_in_order(self) -> None:
        if self.draft.plan is None:
            raise DepthkitError('there is no plan yet; send {"do": "plan", …} first.')
        if self.draft.finished < self._segment - 1:
            first = self.draft.finished + 1
            raise DepthkitError(
                f'the files of segment {first} have changed since it passed; send {{"do": "back", '
                f'"segment": {first}}} and replay it.'
            )

    def _refuse(self, said: Answer, *, faults: list[str] | None = None) -> Answer:
        number = self._segment
        refused = self.draft.refuse(number, faults)
        allowed = self.rules.mends
        if allowed is not None and refused > allowed:
            told = (
                f"not accepted: {faults[0].splitlines()[0]}"
                if faults
                else f"segment {number} was still refused after {allowed} mends: {_first(said)}"
            )
            self.reject(told)
            return {"ok": False, **said, "rejected": told}
        if allowed is not None:
            said = {**said, "mends_left": allowed - refused}
        return {"ok": False, **said}

    def reject(self, reason: str) -> None:
        """The task is rejected; the draft stays for whoever wants to look at it."""
        self.over, self.reason = "rejected", reason
        self.log.add("rejected", self._segment, details={"reason": reason})
        self.finished = self.draft.finished
        self.draft.set_aside()

    def malformed(self, error: str) -> Answer:
        """What a reply is answered that holds no message; it counts as one to be mended."""
        self.log.add("format_error", self._segment, details={"faults": [error]})
        return self._refuse({"error": error})

    async def _give_up(self, message: Message) -> Answer:
        reason = _text(message, "reason").strip() or "no reason given"
        self.reject(f"given up: {reason}")
        return {"ok": True, "rejected": self.reason}

    async def _quit(self, _: Message) -> Answer:
        self.over = "stopped"
        return {"ok": True}


_DO: dict[str, tuple[str, ...]] = {
    "plan": ("goal", "segments"),
    "run": ("command", "seconds"),
    "keys": ("text", "key", "wait"),
    "screen": (),
    "write": ("file", "text", "from"),
    "read": ("file", "segment"),
    "replay": (),
    "finish": ("key_step",),
    "reset": (),
    "back": ("segment",),
    "give_up": ("reason",),
    "quit": (),
}
"""Messages, with what each may have beside ``do``."""


def _no(error: str) -> Answer:
    return {"ok": False, "error": error}


def _text(message: Message, name: str) -> str:
    value = message.get(name)
    if not isinstance(value, str):
        raise DepthkitError(f"{message['do']} needs {name}, a text.")
    return value


def _number(message: Message, name: str, default: float) -> float:
    value = message.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise DepthkitError(f"{name} must be a number.")
    return float(value)


def _first(said: Answer) -> str:
    if "error" in said:
        return str(said["error"])
    if "format" in said:
        return str(said["format"][0])
    replay = Replayed(**said["replay"]) if "replay" in said else None
    return replay.reason() if replay else json.dumps(said)[:300]
