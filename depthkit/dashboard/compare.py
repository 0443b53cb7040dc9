"""Two runs of a task beside each other, and two models over a data set."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from depthkit.dashboard.marked import Marked
from depthkit.dashboard.source import Snapshot
from depthkit.dashboard.turns import Course, ShownTurn
from depthkit.protocol.verdict import Passes
from depthkit.stats import SampleError, sign_test

_LONG = 4000


@dataclass(frozen=True)
class Pair:
    """Turns that stand at the same place of two runs.

    Attributes:
        segment: Their segment.
        left: ``None`` where that run has ended, or left the segment.
        right: The same.
        parts: Whether this is the first place where what they type differs.
        same: Whether they type the same.
    """

    segment: int
    left: ShownTurn | None
    right: ShownTurn | None
    parts: bool
    same: bool


@dataclass(frozen=True)
class Piece:
    """A part of what was typed: in both runs, or in one alone."""

    kind: Literal["same", "left", "right"]
    text: str


def align(left: Course, right: Course) -> list[Pair]:
    """Turns of two runs side by side: by segment, and by turn within it."""
    segments: dict[int, tuple[list[ShownTurn], list[ShownTurn]]] = {}
    for side, found in enumerate((left, right)):
        for turn in found.turns:
            segments.setdefault(turn.segment, ([], []))[side].append(turn)
    pairs: list[Pair] = []
    parted = False
    for segment, (ones, others) in sorted(segments.items()):
        for place in range(max(len(ones), len(others))):
            one = ones[place] if place < len(ones) else None
            other = others[place] if place < len(others) else None
            same = one is not None and other is not None and typed(one) == typed(other)
            pairs.append(Pair(segment, one, other, not same and not parted, same))
            parted = parted or not same
    return pairs


def typed(turn: ShownTurn) -> str:
    """All keystrokes of a turn."""
    return "".join(keys for keys, _ in turn.commands or ())


def difference(left: str, right: str) -> list[Piece]:
    """What was typed in both, and in one alone: by words, or by lines where it is long."""
    if len(left) + len(right) > _LONG:
        ones, others = left.splitlines(keepends=True), right.splitlines(keepends=True)
    else:
        ones, others = _words(left), _words(right)
    pieces: list[Piece] = []
    for kind, a, b, c, d in SequenceMatcher(None, ones, others, autojunk=False).get_opcodes():
        if kind == "equal":
            pieces.append(Piece("same", "".join(ones[a:b])))
            continue
        if b > a:
            pieces.append(Piece("left", "".join(ones[a:b])))
        if d > c:
            pieces.append(Piece("right", "".join(others[c:d])))
    return pieces


def _words(text: str) -> list[str]:
    """Runs of letters and digits, and every other character by itself."""
    words: list[str] = []
    for letter in text:
        if words and letter.isalnum() and words[-1][-1].isalnum():
            words[-1] += letter
        else:
            words.append(letter)
    return words


@dataclass(frozen=True)
class Outcome:
    """How two models did on one task.

    Attributes:
        left: Passes and results of the first model; ``right`` those of the second.
        left_run: A run of it to look at, a passing one if there is; ``right_run`` the same.
        left_apart: What to say beside its passes (:class:`Passes`); ``right_apart`` the same.
    """

    dataset: str
    task_id: str
    left: tuple[int, int]
    right: tuple[int, int]
    left_run: str
    right_run: str
    left_apart: str = ""
    right_apart: str = ""

    @property
    def gap(self) -> float:
        """Share of passes of the first less that of the second."""
        return self.left[0] / self.left[1] - self.right[0] / self.right[1]


@dataclass(frozen=True)
class Contest:
    """Two models over the tasks that both have results on.

    Attributes:
        outcomes: The largest difference first.
        only_left: Tasks that only the first passes at all; ``only_right``, ``both`` and
            ``neither`` likewise.
        test: The sign test over shares of passes in one line; empty if all are equal.
    """

    outcomes: tuple[Outcome, ...]
    only_left: int
    only_right: int
    both: int
    neither: int
    test: str


def contest(
    snapshot: Snapshot,
    left: str,
    right: str,
    *,
    cap: str = "none",
    dataset: str = "",
    marked: Marked | None = None,
) -> Contest:
    """Compare two models by their runs under one cap.

    Args:
        snapshot: Of the corpus.
        left: A model.
        right: Another.
        cap: ``none`` for runs without a stated cap, free and evaluation runs alike.
        dataset: Only this one; all if empty.
        marked: Only tasks with such labels and notes.
    """
    conditions, values = (marked or Marked()).where("tasks")
    which = " AND ".join(["true", *conditions])
    rows = snapshot.rows(
        f"""
        SELECT dataset, task_id, model, count(*) FILTER (passed) AS passes, count(*) AS results,
            count(*) FILTER (standing = 'unconfirmed') AS unconfirmed,
            count(*) FILTER (standing = 'suspect') AS suspect,
            arg_max(run_id, passed::INT) AS run_id, min(place) AS place
        FROM runs
        WHERE verdict <> 'none' AND model IN (?, ?) AND cap_name = ? AND (? = '' OR dataset = ?)
            AND purpose IN ('free', 'ladder', 'evaluation')
            AND (dataset, task_id) IN (SELECT (dataset, task_id) FROM tasks WHERE {which})
        GROUP BY ALL ORDER BY place
        """,  # noqa: S608 - of our own text only
        [left, right, cap, dataset, dataset, *values],
    )
    tasks: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        tasks[row["dataset"], row["task_id"]][row["model"]] = row
    outcomes = [
        Outcome(
            *key,
            (by[left]["passes"], by[left]["results"]),
            (by[right]["passes"], by[right]["results"]),
            by[left]["run_id"],
            by[right]["run_id"],
            *(Passes(0, by[m]["unconfirmed"], by[m]["suspect"]).apart for m in (left, right)),
        )
        for key, by in tasks.items()
        if left in by and right in by
    ]
    outcomes.sort(key=lambda each: (-abs(each.gap), -each.gap))
    states = [(each.left[0] > 0, each.right[0] > 0) for each in outcomes]
    try:
        found = sign_test(
            [each.left[0] / each.left[1] for each in outcomes],
            [each.right[0] / each.right[1] for each in outcomes],
        )
        test = f"{left} is ahead on {found.greater} of {found.n} tasks on which they differ"
        test += f" (sign test, p = {found.p_value:.2g})"
    except SampleError:
        test = ""
    return Contest(
        tuple(outcomes),
        states.count((True, False)),
        states.count((False, True)),
        states.count((True, True)),
        states.count((False, False)),
        test,
    )
