"""The nine ways in which a step of a control task selects a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from depthkit.tasks.calibration.draw import Draw, Row

SEALS_PER_STEP = 3


@dataclass(frozen=True)
class Selection:
    """One seal to take: how the step says it, how a person finds it, and the row it is."""

    kind: str
    phrase: str
    """Goes after "the seal"."""
    command: str
    """Prints the seal; ``{file}`` stands for the data file."""
    row: Row


def _named(rows: Sequence[Row], draw: Draw) -> Selection:
    row = draw.one(rows)
    return Selection(
        "name",
        f"of the row whose name is {row.name}",
        f"awk -F'\\t' '$1 == \"{row.name}\" {{print $4}}' {{file}}",
        row,
    )


def _after_named(rows: Sequence[Row], draw: Draw) -> Selection:
    place = draw.below(len(rows) - 1)
    name = rows[place].name
    return Selection(
        "after-name",
        f"of the row right after the one whose name is {name}",
        f"awk -F'\\t' 'found {{print $4; exit}} $1 == \"{name}\" {{found = 1}}' {{file}}",
        rows[place + 1],
    )


def _line(rows: Sequence[Row], draw: Draw) -> Selection:
    place = draw.below(len(rows))
    return Selection(
        "line", f"on line {place + 1}", f"sed -n '{place + 1}p' {{file}} | cut -f4", rows[place]
    )


def _heaviest(rows: Sequence[Row], _draw: Draw) -> Selection:
    return Selection(
        "heaviest",
        "of the row with the largest weight",
        "sort -k3,3n {file} | tail -n 1 | cut -f4",
        max(rows, key=lambda row: row.weight),
    )


def _lightest(rows: Sequence[Row], _draw: Draw) -> Selection:
    return Selection(
        "lightest",
        "of the row with the smallest weight",
        "sort -k3,3n {file} | head -n 1 | cut -f4",
        min(rows, key=lambda row: row.weight),
    )


def _in_zone(
    kind: str, phrase: str, command: str, choose: Callable[[list[Row]], Row]
) -> Callable[[Sequence[Row], Draw], Selection]:
    def select(rows: Sequence[Row], draw: Draw) -> Selection:
        zone = draw.one(rows).zone
        return Selection(
            kind,
            f"{phrase} whose zone is {zone}",
            f"awk -F'\\t' '$2 == \"{zone}\"' {{file}} | {command} | cut -f4",
            choose([row for row in rows if row.zone == zone]),
        )

    return select


_BY_WEIGHT = "sort -k3,3n"
KINDS: dict[str, Callable[[Sequence[Row], Draw], Selection]] = {
    "name": _named,
    "after-name": _after_named,
    "line": _line,
    "heaviest": _heaviest,
    "lightest": _lightest,
    "first-in-zone": _in_zone(
        "first-in-zone", "of the first row", "head -n 1", lambda rows: rows[0]
    ),
    "last-in-zone": _in_zone("last-in-zone", "of the last row", "tail -n 1", lambda rows: rows[-1]),
    "heaviest-in-zone": _in_zone(
        "heaviest-in-zone",
        "of the row with the largest weight",
        f"{_BY_WEIGHT} | tail -n 1",
        lambda rows: max(rows, key=lambda row: row.weight),
    ),
    "lightest-in-zone": _in_zone(
        "lightest-in-zone",
        "of the row with the smallest weight",
        f"{_BY_WEIGHT} | head -n 1",
        lambda rows: min(rows, key=lambda row: row.weight),
    ),
}

_SINGLE_ROW = ("heaviest", "lightest")


def plan_kinds(steps: int, draw: Draw) -> list[list[str]]:
    """The kinds of selection each step uses.

    As long as kinds last (:data:`KINDS` has nine), every step has at least one that no step
    before it had, so that a loop written on the strength of the steps seen so far cannot solve
    the next one. What is left over goes to the first steps.
    """
    # The first kind must select many rows: a first step short of kinds uses it again.
    order = draw.shuffled([kind for kind in KINDS if kind not in _SINGLE_ROW])
    order = [order[0], *draw.shuffled([*order[1:], *_SINGLE_ROW])]
    spare = max(0, len(KINDS) - steps)
    plan: list[list[str]] = []
    used = 0
    for _ in range(steps):
        fresh = min(SEALS_PER_STEP, 1 + spare, len(KINDS) - used)
        spare -= max(0, fresh - 1)
        new = order[used : used + fresh]
        used += fresh
        repeated = [kind for kind in order[:used] if kind not in (*new, *_SINGLE_ROW)]
        while len(new) < SEALS_PER_STEP:
            new.append(draw.one(repeated) if repeated else order[0])
        plan.append(draw.shuffled(new))
    return plan


def select(kinds: Sequence[str], rows: Sequence[Row], draw: Draw) -> list[Selection]:
    """Selections of these kinds from one data file, all of different rows."""
    while True:
        chosen = [KINDS[kind](rows, draw) for kind in kinds]
        if len({selection.row for selection in chosen}) == len(chosen):
            return chosen
