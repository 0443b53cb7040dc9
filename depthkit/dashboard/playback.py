"""The terminal of a run as one recording, and where in it each turn begins.

A trial of several segments may have a recording of each. They are played one after another, the
screen cleared in between, so that player and list of turns need to know nothing of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from depthkit.corpus.files import UnreadableError
from depthkit.corpus.turns import agent_folders
from depthkit.dashboard.trial import Recording, Trial, read_recording

_NAME = "recording.cast"
_PAUSE = 1.0
"""Seconds that the last screen of a segment stays."""

_CLEAR = "\x1bc"


@dataclass(frozen=True)
class Timed:
    """What of a turn says when it was.

    Attributes:
        end: When it ended, by its step.
        seconds: How long it took in the terminal.
        typed: Its commands.
    """

    end: datetime | None
    seconds: float | None
    typed: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """One recording of a run.

    Attributes:
        segment: Number of the agent's folder it is of, from 0; ``None`` for one of all.
        offset: Seconds into the whole at which it begins.
        recording: It.
    """

    segment: int | None
    offset: float
    recording: Recording


@dataclass(frozen=True)
class Playback:
    """All recordings of a run.

    Attributes:
        parts: In the order in which they are played.
        problems: What cannot be played, and why.
    """

    parts: tuple[Part, ...]
    problems: tuple[str, ...] = ()

    def cast(self) -> bytes:
        """As one asciicast."""
        if not self.parts:
            return Recording({}, [], []).cast()
        header = self.parts[0].recording.header
        events = list(self.parts[0].recording.events)
        for part in self.parts[1:]:
            size = f"{part.recording.header['width']}x{part.recording.header['height']}"
            events += [(part.offset, "r", size), (part.offset, "o", _CLEAR)]
            events += [
                (round(part.offset + at, 4), kind, text) for at, kind, text in part.recording.events
            ]
        return Recording(header, events, []).cast()

    def starts(self, segment: int, turns: Sequence[Timed]) -> list[float | None]:
        """Seconds into the whole at which each turn of an agent's folder begins."""
        for part in self.parts:
            if part.segment in (None, segment):
                found = turn_starts(turns, part.recording)
                return [None if at is None else round(at + part.offset, 3) for at in found]
        return [None] * len(turns)


def playback(trial: Trial) -> Playback:
    """The recordings of a trial, in the order of its segments; without any it has no parts."""
    names = trial.recordings()
    if trial.path is None or not names:
        return Playback(())
    chosen: list[tuple[int | None, str]] = [(None, names[0])]
    if len(names) > 1:
        folders = agent_folders(trial.path, trial.result())
        inside = [folder.relative_to(trial.path).as_posix() for folder, _ in folders]
        wanted = [f"{where}/{_NAME}" for where in inside]
        chosen = [(n, name) for n, name in enumerate(wanted) if name in names] or chosen
    parts: list[Part] = []
    problems: list[str] = []
    at = 0.0
    for segment, name in chosen:
        try:
            recording = read_recording(trial.read(name))
        except (FileNotFoundError, UnreadableError) as error:
            problems.append(str(error))
            continue
        problems += [f"{name}: {problem}" for problem in recording.problems]
        parts.append(Part(segment, at, recording))
        last = recording.events[-1][0] if recording.events else 0.0
        at = round(at + last + _PAUSE, 4)
    left = len(names) - len(chosen)
    if left:
        problems.append(
            f"{left} of {len(names)} recordings belong to no segment and are not played; they are "
            "among the files"
        )
    return Playback(tuple(parts), tuple(problems))


def turn_starts(turns: Sequence[Timed], recording: Recording) -> list[float | None]:
    """Seconds into a recording at which each turn's commands begin.

    A step is stamped when its turn ends. The recording begins within the second that its header
    names; where commands can be found in what the terminal echoed, they say where in it. Without a
    record of how long turns took, one begins where the one before ends, the first at 0.
    """
    stamp = recording.header.get("timestamp")
    if stamp is None:
        return [None] * len(turns)
    starts: list[float | None] = []
    before: datetime | None = None
    for turn in turns:
        start = None
        if turn.end is not None:
            if turn.seconds is not None:
                start = turn.end.timestamp() - turn.seconds - stamp
            elif before is not None:
                start = before.timestamp() - stamp
            elif not starts:
                start = 0.0
        starts.append(start)
        before = turn.end
    shift = _shift(turns, starts, recording)
    last = recording.events[-1][0] if recording.events else 0.0
    return [None if s is None else round(min(max(0.0, s - shift), last), 3) for s in starts]


def _shift(turns: Sequence[Timed], starts: list[float | None], recording: Recording) -> float:
    """How far times by the header are ahead of those in the recording: 0 to 1 second."""
    times = [event[0] for event in recording.events]
    shifts = []
    for turn, start in zip(turns[:40], starts, strict=False):
        typed = next((keys for keys in turn.typed if len(keys.strip()) > 4), "")
        echoed = typed.strip().split("\n")[0][:16]
        if start is None or not echoed:
            continue
        for at in range(bisect_left(times, start - 1.5), len(times)):
            if times[at] > start + 0.7:
                break
            if echoed in recording.events[at][2]:
                shifts.append(start - times[at])
                break
    return min(1.0, max(0.0, median(shifts))) if shifts else 0.5
