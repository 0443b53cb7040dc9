"""Labels and notes as filters: of tasks, of runs, and of whatever is made from either.

A run counts as having those of its task too, and a task those of its runs, so that a filter leads
from one list to the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from depthkit.dashboard.labels import Target
from depthkit.dashboard.source import Snapshot

ANY = "*"
"""In place of a note's text: any note."""

_MOST_TEXT = 200

# Two plain subqueries: the same as one with OR in it takes several times as long.
_HAS = {
    "runs": "(run_id IN (SELECT run_id FROM labels WHERE run_id IS NOT NULL AND {0}) OR "
    "(dataset, task_id) IN (SELECT (dataset, task_id) FROM labels WHERE run_id IS NULL AND {0}))",
    "tasks": "(dataset, task_id) IN (SELECT (dataset, task_id) FROM labels WHERE {0})",
}


@dataclass(frozen=True)
class Marked:
    """What labels and notes must be there.

    Attributes:
        label: A label; none in particular if empty.
        note: Text that a note must hold, in any letter case; :data:`ANY` for any note.
    """

    label: str = ""
    note: str = ""

    @classmethod
    def parse(cls, query: Mapping[str, Sequence[str]]) -> Marked:
        """The filter of an address."""
        label, note = ((query.get(name) or [""])[0] for name in ("label", "note"))
        return cls(label, note.strip()[:_MOST_TEXT])

    def __bool__(self) -> bool:
        """Whether anything is asked for."""
        return bool(self.label or self.note)

    def pairs(self) -> list[tuple[str, str]]:
        """Names and values for an address."""
        return [(name, value) for name in ("label", "note") if (value := getattr(self, name))]

    @property
    def note_text(self) -> str:
        """What is asked of notes, as people read it."""
        return "any note" if self.note == ANY else f"note with “{self.note}”"

    def where(self, table: str) -> tuple[list[str], list[Any]]:
        """SQL conditions on rows of ``runs`` or ``tasks``, and their parameters."""
        wanted: list[tuple[str, list[Any]]] = []
        if self.label:
            wanted.append(("kind = 'label' AND text = ?", [self.label]))
        if self.note == ANY:
            wanted.append(("kind = 'note'", []))
        elif self.note:
            wanted.append(("kind = 'note' AND contains(lower(text), lower(?))", [self.note]))
        parts, values = list[str](), list[Any]()
        for condition, given in wanted:
            parts.append(_HAS[table].format(condition))
            values += given * _HAS[table].count("{0}")
        return parts, values


@dataclass(frozen=True)
class Marks:
    """Labels and notes of one row."""

    labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def labels_used(snapshot: Snapshot) -> list[tuple[str, int]]:
    """All labels with how many tasks and runs have each."""
    query = "SELECT text, count(*) AS n FROM labels WHERE kind = 'label' GROUP BY ALL ORDER BY text"
    return [(row["text"], row["n"]) for row in snapshot.rows(query)]


def notes_count(snapshot: Snapshot) -> int:
    """How many notes there are."""
    return int(snapshot.value("SELECT count(*) FROM labels WHERE kind = 'note'"))


def marks_by_target(snapshot: Snapshot) -> dict[Target, Marks]:
    """Labels and notes of all tasks and runs that have some themselves, the oldest first."""
    found: dict[Target, tuple[list[str], list[str]]] = {}
    for row in snapshot.rows('SELECT * FROM labels ORDER BY "at", text'):
        target = Target(row["dataset"], row["task_id"], row["run_id"])
        labels, notes = found.setdefault(target, ([], []))
        (labels if row["kind"] == "label" else notes).append(row["text"])
    return {target: Marks(tuple(labels), tuple(notes)) for target, (labels, notes) in found.items()}
