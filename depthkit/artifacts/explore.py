"""Correlations to explore: any columns of solved tasks, chosen with widgets in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import Any, Literal, get_args

import pandas as pd

from depthkit.artifacts import figures, page
from depthkit.artifacts.artifact import as_corpus
from depthkit.artifacts.datasets import Style
from depthkit.artifacts.samples import EVALUATED, Study, study
from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.stats import Correlation, SampleError, rank_partial_correlation, spearman

COLUMNS = ("D", "D_first", "N", "W", "R", "pass rate", "author rating")
"""What can be correlated: the numbers of :class:`depthkit.artifacts.samples.Study`."""

Method = Literal["percentile", "BCa", "Fisher"]
"""How the interval is found."""


@dataclass(frozen=True)
class Relation:
    """A rank correlation over solved tasks.

    Attributes:
        tasks: Those for which all columns are known: ``dataset``, ``task_id``, x, outcome and
            covariates.
        x: Name of the first column.
        outcome: Name of the second.
        covariates: Names of those that are controlled for.
        method: Of the interval.
        found: ``None`` where the tasks determine no correlation.
        problem: Why they do not.
        styles: Look of each data set.
        provenance: What it rests on.
    """

    tasks: pd.DataFrame
    x: str
    outcome: str
    covariates: tuple[str, ...]
    method: Method
    found: Correlation | None
    problem: str | None
    styles: dict[str, Style]
    provenance: str

    @property
    def summary(self) -> str:
        """For example ``D and pass rate given W, 105 tasks: rho = -0.31 · p = 0.0021``."""
        given = f" given {', '.join(self.covariates)}" if self.covariates else ""
        about = f"{self.x} and {self.outcome}{given}, {len(self.tasks)} tasks"
        if self.found is None:
            return f"{about}: no correlation, as {self.problem}"
        intervals = {
            "percentile": self.found.percentile,
            "BCa": self.found.bca,
            "Fisher": self.found.fisher,
        }
        interval = intervals[self.method]
        parts = [f"{about}: rho = {self.found.value:+.2f}"]
        parts.append("no interval" if interval is None else f"95% interval {interval}")
        if self.found.p_value is not None:
            parts.append(f"p = {self.found.p_value:.4f}")
        return " · ".join([*parts, *self.found.notes])

    def svg(self) -> str:
        """The tasks as a scatter plot, one colour and marker a data set."""
        import matplotlib as mpl
        from matplotlib.figure import Figure

        with mpl.rc_context({"font.size": 8, "svg.hashsalt": "explore", "svg.fonttype": "none"}):
            figure = Figure(figsize=(5.5, 3.4), layout="constrained")
            axes = figure.subplots()
            for name, tasks in self.tasks.groupby("dataset", sort=False):
                style = self.styles[str(name)]
                axes.plot(
                    tasks[self.x],
                    tasks[self.outcome],
                    linestyle="none",
                    marker=style.mpl,
                    color=style.colour,
                    markeredgecolor=figures.DARK,
                    markeredgewidth=0.3,
                    alpha=0.75,
                    label=str(name).replace("$", r"\$"),
                )
            axes.set(xlabel=self.x, ylabel=self.outcome)
            for column, scale in ((self.x, axes.set_xscale), (self.outcome, axes.set_yscale)):
                if column in ("D", "D_first", "N", "W") and (self.tasks[column] > 0).all():
                    scale("log")
            if len(self.tasks):
                figure.legend(loc="outside right upper", frameon=False)
            if said := page.stamp(self.provenance):
                figure.suptitle(said, x=0.995, ha="right", fontsize=6, color=figures.DARK)
            text = StringIO()
            metadata = {"Date": None, "Creator": None, "Description": said or None}
            figure.savefig(text, format="svg", metadata=metadata)
        drawn = text.getvalue()
        return drawn[drawn.index("<svg") :]  # without the XML declaration, which HTML has not


def relate(
    tasks: Study,
    x: str = "D",
    outcome: str = "pass rate",
    covariates: Sequence[str] = ("W",),
    *,
    datasets: Sequence[str] | None = None,
    method: Method = "percentile",
    resamples: int = 2000,
    seed: int = 0,
) -> Relation:
    """Correlate two columns of solved tasks, controlling for others.

    Args:
        tasks: As :func:`depthkit.artifacts.samples.study` gives them.
        x: One of :data:`COLUMNS`.
        outcome: Another one.
        covariates: Further ones; none for Spearman's correlation.
        datasets: Only these, by the names the corpus has; ``None`` for all.
        method: Of the interval.
        resamples: Of the bootstrap over tasks; not used by Fisher's.
        seed: Of the resamples.

    Raises:
        DepthkitError: a column, method or data set is not there, or a column is named twice.
    """
    names = [x, outcome, *covariates]
    if unknown := [name for name in names if name not in COLUMNS]:
        raise DepthkitError(f"There is no column {unknown[0]}; choose from {', '.join(COLUMNS)}.")
    if len(set(names)) < len(names):
        raise DepthkitError(f"x, outcome and covariates are {names}; name each column once.")
    if method not in get_args(Method):
        raise DepthkitError(f"method is {method}; choose from {', '.join(get_args(Method))}.")
    there = tasks.chosen.datasets
    if missing := [name for name in datasets or () if name not in there]:
        raise DepthkitError(f"There is no data set {missing[0]}; choose from {', '.join(there)}.")
    solved = tasks.solved
    if datasets is not None:
        solved = solved[solved["dataset"].isin(list(datasets))]
    known = solved[["dataset", "task_id", *names]].dropna()
    found, problem = None, None
    options: dict[str, Any] = {"resamples": 0 if method == "Fisher" else resamples, "seed": seed}
    try:
        columns = [known[name] for name in covariates]
        found = (
            rank_partial_correlation(known[x], known[outcome], columns, **options)
            if columns
            else spearman(known[x], known[outcome], **options)
        )
    except SampleError as error:
        problem = str(error)
    return Relation(
        tasks=known.reset_index(drop=True),
        x=x,
        outcome=outcome,
        covariates=tuple(covariates),
        method=method,
        found=found,
        problem=problem,
        styles=tasks.chosen.styles,
        provenance=tasks.provenance,
    )


def explore(corpus: Corpus | str, *, evaluated: Sequence[str] = EVALUATED) -> Any:
    """Widgets that choose data sets, columns, method and resamples; the correlation follows.

    Args:
        corpus: What was measured.
        evaluated: Models whose mean is the pass rate of our tasks.

    Returns:
        An ``ipywidgets.VBox``; its last two children show the correlation and the scatter.
    """
    import ipywidgets as widgets

    tasks = study(as_corpus(corpus), None, None, evaluated)
    names = tasks.chosen.datasets
    datasets = widgets.SelectMultiple(options=names, value=names, description="Data sets")
    x = widgets.Dropdown(options=COLUMNS, value="D", description="x")
    outcome = widgets.Dropdown(options=COLUMNS, value="pass rate", description="Outcome")
    covariates = widgets.SelectMultiple(options=COLUMNS, value=("W",), description="Given")
    method = widgets.Dropdown(options=get_args(Method), description="Interval")
    resamples = widgets.IntSlider(
        value=2000, min=200, max=10_000, step=200, description="Resamples", continuous_update=False
    )
    shown, scatter = widgets.HTML(), widgets.HTML()

    def follow(_: Any = None) -> None:
        try:
            relation = relate(
                tasks,
                x.value,
                outcome.value,
                covariates.value,
                datasets=datasets.value,
                method=method.value,
                resamples=resamples.value,
            )
        except DepthkitError as error:  # a choice that cannot be; the next one may
            shown.value, scatter.value = f"<p>{escape(str(error))}</p>", ""
            return
        shown.value = (
            f"<p><b>{escape(relation.summary)}</b></p><p>{escape(relation.provenance)}</p>"
        )
        scatter.value = relation.svg()

    for widget in (datasets, x, outcome, covariates, method, resamples):
        widget.observe(follow, names="value")
    follow()
    left = widgets.VBox([x, outcome, method, resamples])
    return widgets.VBox([widgets.HBox([datasets, left, covariates]), shown, scatter])
