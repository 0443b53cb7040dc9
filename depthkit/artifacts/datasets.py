"""The data sets of a corpus: their order and look, and the tasks behind a table or figure.

The same data set has the same colour and marker in every figure. Colours are Okabe and Ito's,
which people with colour-blindness can tell apart; they also differ in lightness, and markers
differ as well, so that figures can be read in grey.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import pandas as pd

from depthkit.corpus import Corpus
from depthkit.corpus.files import counted
from depthkit.corpus.show import evaluation_only
from depthkit.errors import DepthkitError
from depthkit.protocol import ABOVE
from depthkit.protocol.verdict import Passes

GROUPS: dict[str, str] = {
    "synthetic": "Synthetic",
    "human-curated": "Human-curated",
    "ours": "Ours",
}
"""The groups of Table 1, in its order, as it prints them."""

NO_GROUP = "Other"
"""Heading of data sets that state no group."""


class Style(NamedTuple):
    """How a data set looks in figures; ``bokeh`` and ``mpl`` name the same marker."""

    colour: str
    bokeh: str
    mpl: str


_PAPER = {
    "tmax": Style("#56B4E9", "circle", "o"),
    "facet": Style("#0072B2", "square", "s"),
    "seta": Style("#F0E442", "triangle", "^"),
    "rst": Style("#009E73", "diamond", "D"),
    "tb2": Style("#CC79A7", "inverted_triangle", "v"),
    "tw": Style("#999999", "hex", "h"),
    "ours": Style("#D55E00", "star", "*"),
}
"""The data sets of the Depth paper, in the order of its Table 1."""

FREE_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999")
FREE_MARKERS = (
    ("circle", "o"),
    ("square", "s"),
    ("triangle", "^"),
    ("diamond", "D"),
    ("inverted_triangle", "v"),
)
"""Colours and markers, taken in turn, of data sets and models that the paper does not have."""


def styles(names: Iterable[str]) -> dict[str, Style]:
    """A colour and marker for each data set; names of the paper keep theirs in any corpus.

    Args:
        names: All data sets of the corpus, shown or not, so that leaving one out of a figure
            changes no other's colour.
    """
    found: dict[str, Style] = {}
    colours, markers = cycle(FREE_COLOURS), cycle(FREE_MARKERS)
    for name in sorted(set(names)):
        known = _PAPER.get(name.casefold())
        found[name] = known or Style(next(colours), *next(markers))
    return found


def order(name: str, group: str | None) -> tuple[int, int, str]:
    """Sort key of a data set: by group, then the paper's order, then by name."""
    groups, paper = list(GROUPS), list(_PAPER)
    key = name.casefold()
    return (
        groups.index(group) if group in GROUPS else len(groups),
        paper.index(key) if key in paper else len(paper),
        key,
    )


def is_existing(groups: pd.Series) -> pd.Series:
    """Which tasks are of existing data sets, by their groups: the synthetic and human-curated.

    Tasks without a group count only where no task states one of these: in a corpus that does,
    they are something else, such as the original tasks of our seed environments.
    """
    stated = groups.isin([group for group in GROUPS if group != "ours"])
    return stated if stated.any() else groups != "ours"


def find_datasets(corpus: Corpus, wanted: Sequence[str]) -> list[str] | None:
    """The corpus' own names for data sets in any letter case; ``None`` if one is missing."""
    by_key = {name.casefold(): name for name in corpus.estimates()["dataset"].unique()}
    names = [by_key.get(name.casefold()) for name in wanted]
    return None if None in names else [name for name in names if name is not None]


@dataclass(frozen=True)
class Audited:
    """The tasks behind a table or figure.

    Attributes:
        tasks: One row a task, columns as in ``Corpus.estimates()``. ``group`` is a string or
            ``None``; ``D`` is a float on the scale ``caps``, ``nan`` where there is no final one.
        datasets: Their names, in the order in which they are shown.
        styles: Colour and marker of each.
        caps: The scale of D.
        provenance: What the numbers rest on, in one line.
    """

    tasks: pd.DataFrame
    datasets: tuple[str, ...]
    styles: dict[str, Style]
    caps: tuple[int, ...]
    provenance: str

    @property
    def solved(self) -> pd.DataFrame:
        """The solved tasks: passed by the first model in at least one of its two free runs."""
        return self.tasks[self.tasks["solved"].eq(True).fillna(False)]


_Key = tuple[str, tuple[str, ...] | None, tuple[int, ...] | None]
_kept: WeakKeyDictionary[Corpus, dict[_Key, Audited]] = WeakKeyDictionary()
"""Almost all that is computed from a corpus begins with the same choices of its tasks."""
_MOST = 64


def audited(
    corpus: Corpus, datasets: Sequence[str] | None = None, caps: Sequence[int] | None = None
) -> Audited:
    """Choose the tasks that a table or figure is about.

    Args:
        corpus: Where they are.
        datasets: Only these data sets (in any letter case); ``None`` for all.
        caps: A coarser scale of D: a task counts as passed under each cap from its D upwards, so
            D becomes the smallest of these caps that is not below it. ``None`` for all caps.

    Raises:
        DepthkitError: a data set is not in the corpus, or a cap was not measured.
    """
    state = corpus.digest()
    key = state, None if datasets is None else tuple(datasets), tuple(caps) if caps else None
    kept = _kept.setdefault(corpus, {})
    if len(kept) >= _MOST or any(old != state for old, *_ in kept):
        kept.clear()
    if key not in kept:
        kept[key] = _audited(corpus, datasets, caps)
    found = kept[key]
    return replace(found, tasks=found.tasks.copy(deep=False), styles=dict(found.styles))


def _audited(corpus: Corpus, datasets: Sequence[str] | None, caps: Sequence[int] | None) -> Audited:
    scale = tuple(sorted(set(caps))) if caps else corpus.caps
    if unknown := [cap for cap in scale if cap not in corpus.caps]:
        raise DepthkitError(
            f"caps has {unknown[0]}, but corpus {corpus.name} was measured with "
            f"{list(corpus.caps)}; choose from these."
        )
    frame = corpus.estimates()
    everything = list(frame["dataset"].unique())
    if datasets is not None:
        names = find_datasets(corpus, datasets)
        if names is None:
            raise DepthkitError(
                f"datasets is {list(datasets)}, but corpus {corpus.name} holds "
                f"{sorted(everything)}."
            )
        frame = frame[frame["dataset"].isin(names)]
    frame = frame.assign(
        group=frame["group"].astype(object).where(frame["group"].notna(), None),
        D=on_scale(frame["D"].where(frame["final"].astype(bool)), scale),
    ).reset_index(drop=True)
    # The group of a data set is that of its tasks; mixed ones are ordered by the first.
    groups: dict[Any, Any] = frame.groupby("dataset", sort=False)["group"].first().to_dict()
    return Audited(
        tasks=frame,
        datasets=tuple(sorted(groups, key=lambda name: order(name, groups[name]))),
        styles=styles(everything),
        caps=scale,
        provenance=_provenance(corpus, frame),
    )


def work_notes(chosen: Audited) -> list[str]:
    """Which data sets' W does not come from reference solutions."""
    of_runs = set(chosen.tasks.loc[chosen.tasks["work_from"] == "run", "dataset"])
    return [
        f"{name} has no reference solutions; its W counts the lines of the commands that the first "
        "model sends in its passing run at the smallest cap it passes."
        for name in chosen.datasets
        if name in of_runs
    ]


def numbers(column: pd.Series) -> pd.Series:
    """As floats, ``nan`` where unknown."""
    return pd.to_numeric(column).astype("Float64").astype(float)


def depth_share(depths: pd.Series, *, least: int = 0, most: int = ABOVE) -> float:
    """Share of the tasks with a D whose D is from ``least`` to ``most``; ``nan`` without any."""
    return float(depths.dropna().between(least, most).mean())


def on_scale(depths: pd.Series, caps: tuple[int, ...]) -> pd.Series:
    """D read on a coarser scale: the smallest cap not below it, else 99."""
    return numbers(depths).map(
        lambda depth: next((cap for cap in caps if cap >= depth), ABOVE), na_action="ignore"
    )


def _provenance(corpus: Corpus, frame: pd.DataFrame) -> str:
    """For example ``scripted · 12 tasks, 96 runs · corpus demo``."""
    kinds = frame["provenance"].dropna().value_counts()
    if len(kinds) > 1:
        source = " and ".join(f"{kind} ({count} tasks)" for kind, count in kinds.items())
    else:
        none = "evaluation runs only" if evaluation_only(corpus) else "no runs"
        source = str(kinds.index[0]) if len(kinds) else none
    return f"{source} · {len(frame)} tasks, {runs_said(frame)} · corpus {corpus.name}"


def runs_said(estimates: pd.DataFrame) -> str:
    """How many runs estimates rest on, with their passes where some of these rest on less."""
    runs, *passes = (
        int(estimates[name].fillna(0).sum())
        for name in ("runs", "passes", "unconfirmed", "suspect")
    )
    return counted(runs, "run") + Passes(*passes).beside
