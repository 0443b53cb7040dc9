"""Search in what agents did: within one trajectory, and across all of a corpus."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from depthkit.corpus import Corpus
from depthkit.corpus.files import UnreadableError
from depthkit.dashboard import text
from depthkit.dashboard.listing import View
from depthkit.dashboard.source import Snapshot
from depthkit.dashboard.trial import Trial
from depthkit.dashboard.turns import Course, course

MOST_NEEDLE = 200
_MOST_HITS = 200


@dataclass(frozen=True)
class Place:
    """A turn in which something stands.

    Attributes:
        turn: Its number; 0 for what stands before the first.
        where: ``output``, ``commands``, ``plan`` and so on.
        matches: How often it stands there.
        excerpt: The first line, as escaped HTML.
    """

    turn: int
    where: str
    matches: int
    excerpt: str


@dataclass(frozen=True)
class Hit:
    """A run in which something stands; ``places`` are in order of turns, all of them."""

    run_id: str
    places: tuple[Place, ...]

    @property
    def matches(self) -> int:
        """How often, in all."""
        return sum(place.matches for place in self.places)


@dataclass(frozen=True)
class Found:
    """What a search has found so far.

    Attributes:
        hits: Runs, in the order of the list.
        searched: Runs looked into, those without files included.
        without_files: Of them, runs of which there are none.
        total: Runs there are.
        problems: Runs that could not be searched, and why.
    """

    hits: tuple[Hit, ...]
    searched: int
    without_files: int
    total: int
    problems: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        """Whether nothing is left to search."""
        return self.searched >= self.total


def search_course(found: Course, needle: str) -> tuple[Place, ...]:
    """Where something stands in a trajectory, in any letter case; messages between turns too."""
    if not needle:
        return ()
    places = [
        Place(between.before, between.kind, matches, text.excerpt(between.text, needle))
        for between in found.between
        if (matches := text.count(between.text, needle))
    ]
    for turn in found.turns:
        places += [
            Place(turn.number, where, matches, text.excerpt(said, needle))
            for where, said in turn.texts().items()
            if (matches := text.count(said, needle))
        ]
    return tuple(sorted(places, key=lambda place: place.turn))


def search_runs(
    corpus: Corpus, run_ids: Sequence[str], needle: str, *, start: int = 0, seconds: float = 2.0
) -> Found:
    """Search trajectories, for so long; begin again at ``searched`` for the rest.

    Args:
        corpus: Where they are.
        run_ids: The runs, in order.
        needle: What to look for, in any letter case.
        start: How many of them to pass over.
        seconds: After which to stop; at least one run is searched.
    """
    until = time.monotonic() + seconds
    hits: list[Hit] = []
    problems: list[str] = []
    without, searched = 0, min(start, len(run_ids))
    forms = _forms(needle)
    for run_id in run_ids[start:]:
        searched += 1
        trial = Trial(corpus, run_id)
        if trial.path is None:
            without += 1
        else:
            try:
                if _may_hold(trial, forms):
                    places = search_course(course(corpus, run_id, playback=False), needle)
                    if places:
                        hits.append(Hit(run_id, places))
            except UnreadableError as error:
                problems.append(f"{run_id}: {error}")
        if len(hits) >= _MOST_HITS or time.monotonic() > until:
            break
    return Found(tuple(hits), searched, without, len(run_ids), tuple(problems))


def run_ids(snapshot: Snapshot, view: View) -> list[str]:
    """Runs of a view, the newest first."""
    where, values = view.where()
    query = f"SELECT run_id FROM runs WHERE {where} ORDER BY place DESC"  # noqa: S608
    return [row["run_id"] for row in snapshot.rows(query, values)]


def _forms(needle: str) -> list[bytes]:
    """How something may stand in JSON, in lower case; without those that case makes longer."""
    forms = {
        json.dumps(needle.lower(), ensure_ascii=ascii_only)[1:-1] for ascii_only in (False, True)
    }
    if any(ord(letter) > 127 for letter in needle):
        return []  # Case folds these in more ways than bytes tell.
    return [form.lower().encode() for form in forms]


def _may_hold(trial: Trial, forms: list[bytes]) -> bool:
    """Whether any trajectory of a trial holds one of these, by its bytes."""
    if not forms:
        return True
    for file in trial.files()[0]:
        name = file.name.split("/")[-1]
        if "trajectory" in name and "summarization" not in name and name.endswith(".json"):
            data = trial.read(file.name).lower()
            if any(form in data for form in forms):
                return True
    return False
