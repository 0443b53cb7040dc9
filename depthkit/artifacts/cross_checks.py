"""Which printed numbers constrain each other, and whether they can hold together.

No corpus takes part: it is arithmetic on what the papers print, with its rounding.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pandas as pd

from depthkit.artifacts.artifact import Table
from depthkit.artifacts.tables import plain_table
from depthkit.published import Checked, cross_checks, published

_RELATIONS = {"equal": "=", "at_most": "≤", "at_least": "≥"}


def cross_check_table(paper: str = "depth") -> Table:
    """Sums over data sets, counts behind rounded shares, denominators and splits.

    One row a relation: what it is about, the intervals of both sides (a printed number stands for
    all that round to it), for a share the whole numbers that round to it, and whether the numbers
    can hold together. Those that cannot come first.

    Args:
        paper: One of :data:`depthkit.published.PAPERS`.

    Raises:
        DepthkitError: there is no such paper, or its file is wrong.
    """
    checked = sorted(cross_checks(paper), key=lambda each: each.holds)
    frame = pd.DataFrame([_row(each) for each in checked])
    broken = int((~frame["holds"]).sum())
    return Table(
        title=(
            f"Published numbers that constrain each other. Of {len(frame)} relations {broken} "
            "cannot hold as printed. A rounded number stands for the interval that rounds to it; "
            "counts are the whole numbers that a printed share can stand for."
        ),
        frame=frame,
        provenance=f"arithmetic on {len(published(paper))} printed numbers · no corpus",
        draw=lambda: _table(frame),
        id=f"{paper}/cross-checks",
        section="All sections",
    )


def _row(checked: Checked) -> dict[str, Any]:
    check, right, counts = checked.check, checked.right, checked.counts
    relation = "counts" if counts is not None else _RELATIONS[check.relation]
    return {
        "id": check.id,
        "about": check.about,
        "left_low": float(checked.left[0]),
        "left_high": float(checked.left[1]),
        "relation": relation,
        "right_low": None if right is None else float(right[0]),
        "right_high": None if right is None else float(right[1]),
        "of": check.of,
        "counts": None if counts is None else _counts(counts),
        "holds": checked.holds,
        "note": check.note,
        "left": _interval(checked.left),
        "right": _interval(right) if right is not None else f"{_counts(counts)} of {check.of}",
    }


def _counts(counts: range | None) -> str:
    if not counts:
        return "none"
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _interval(ends: tuple[Fraction, Fraction]) -> str:
    low, high = (f"{float(end):.4g}" for end in ends)
    return low if low == high else f"{low} to {high}"


def _table(frame: pd.DataFrame) -> Any:
    shown = pd.DataFrame(
        {
            "Relation": frame["about"],
            "Holds": frame["holds"].map({True: "yes", False: "no"}),
            "Left": frame["left"],
            "": frame["relation"],
            "Right": frame["right"],
            "Note": frame["note"].fillna(""),
        }
    )
    return plain_table(shown, "depth-cross-checks", rows="Relation", left=("Holds", "Note"))
