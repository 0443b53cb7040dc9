"""What ``depthkit ingest`` and ``depthkit estimates`` show a person, or print as JSON."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast, get_args

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from depthkit.corpus.files import one_line
from depthkit.corpus.ingest import IngestReport, ingest
from depthkit.corpus.store import Corpus
from depthkit.errors import DepthkitError, DepthkitWarning
from depthkit.model import Purpose, Run, Verdict
from depthkit.protocol import ABOVE, depth_text
from depthkit.protocol.merged import merged_depth
from depthkit.protocol.verdict import Passes

_JSON_FIELDS = (
    "dataset",
    "task_id",
    "solved",
    "N",
    "D",
    "D_by_model",
    "R",
    "work_lines",
    "work_tokens",
    "work_chars",
    "lowest_passing_cap",
    "final",
    "runs",
    "passes",
    "unconfirmed",
    "suspect",
    "provenance",
)


def run_ingest(
    sources: Sequence[Path],
    corpus_dir: Path,
    dataset: str | None,
    purpose: str,
    *,
    models: Sequence[str] = (),
    show: bool,
) -> tuple[dict[str, Any], int]:
    """Ingest with a progress bar and a summary.

    Args:
        sources: As for :func:`depthkit.corpus.ingest.ingest`.
        corpus_dir: Made if there is no corpus.
        dataset: Data set of all trials, or ``None``.
        purpose: Purpose of all runs.
        models: Model set of the corpus, in order.
        show: Whether to print the bar and the summary.

    Returns:
        The summary for scripts, and the exit status: 0 if any trial was read, else 1.

    Raises:
        DepthkitError: Unknown purpose, no trial found, or the corpus cannot be written.
    """
    purposes = get_args(Purpose)
    if purpose not in purposes:
        raise DepthkitError(f"--purpose is {purpose!r}; choose one of {', '.join(purposes)}.")
    console = Console(stderr=True)
    columns = (
        TextColumn("Ingesting"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("trials"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not show) as bar:
        task = bar.add_task("", total=None)
        report = ingest(
            sources,
            corpus_dir,
            dataset=dataset,
            purpose=cast(Purpose, purpose),
            models=models,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if show:
        print_report(report)
    if purpose in ("free", "ladder") and report.added and not report.corpus.models:
        named = ",".join(sorted({taken.run.model for taken in report.added}))
        warnings.warn(
            DepthkitWarning(
                f"{report.corpus.path}: names no model set yet, without which nothing says how "
                f"deep a task is; give it with --models {named} (the one that made the free runs "
                "first), the same trials again do no harm."
            ),
            stacklevel=2,
        )
    read = len(report.added) + len(report.known)
    return report_summary(report), 0 if read else 1


def estimate_rows(corpus: Corpus) -> list[dict[str, Any]]:
    """One object a task, unknown values as ``None``.

    What runs of merged tasks say stands apart, in ``merged`` (:func:`merged_rows`).
    """
    rows = corpus.estimates()[list(_JSON_FIELDS)].to_dict("records")
    merged = merged_rows(corpus)
    return [
        {str(name): _plain(value) for name, value in row.items()}
        | {"merged": merged.get((row["dataset"], row["task_id"]))}
        for row in rows
    ]


def merged_rows(corpus: Corpus) -> dict[tuple[str, str], dict[str, int | None]]:
    """What merged runs of the first model say of each task that has any (Appendix H).

    ``D_before`` is the D of the task before merging that they were made with; ``first_cap`` the
    largest that was tried, which is lower where ``D_before`` is above all caps; ``D`` is missing
    while runs are.
    """
    if not (corpus.runs()["purpose"] == "merged").any():  # told without reading records
        return {}
    histories: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in corpus.run_records():
        if run.purpose == "merged" and run.cap and run.valid and run.model in corpus.models[:1]:
            histories[run.dataset, run.task_id].append(run)
    found = {}
    for key, runs in histories.items():
        first_cap = max(run.cap or 0 for run in runs)
        before = max((run.depth_before for run in runs if run.depth_before), default=None)
        depth = merged_depth(runs, corpus.models[0], original=before or first_cap, caps=corpus.caps)
        found[key] = {"D_before": before, "first_cap": first_cap, "D": depth}
    return found


def print_estimates(corpus: Corpus) -> None:
    """Print the estimates as a table with the corpus' provenance under it.

    Provenance has a column of its own where tasks differ in it.
    """
    rows = estimate_rows(corpus)
    kinds = {row["provenance"] for row in rows} - {None}
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("data set", "task", "solved"):
        table.add_column(name, overflow="fold")
    for name in ("N", "D", "R", "W", "runs"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ["passes", "D by model", "provenance"][: 3 if len(kinds) > 1 else 2]:
        table.add_column(name, overflow="fold")
    for row in rows:
        depth = depth_text(row["D"], corpus.caps) or None
        if depth and not row["final"]:
            depth += " so far"
        known = {model: d for model, d in row["D_by_model"].items() if d is not None}
        by_model = ", ".join(f"{model} {depth_text(d, corpus.caps)}" for model, d in known.items())
        # Two failed free runs settle it, but for a pass that may be forged.
        no = "no" if row["final"] else "no so far"
        solved = {True: "yes", False: no, None: None}[row["solved"]]
        passes = f"{row['passes']}{Passes(0, row['unconfirmed'], row['suspect']).apart}"
        values = [row["dataset"], row["task_id"], solved, row["N"], depth, row["R"]]
        values += [row["work_lines"], row["runs"], passes, by_model, row["provenance"]]
        cells = (Text("-" if value is None else one_line(value)) for value in values)
        table.add_row(*list(cells)[: len(table.columns)])
    console = Console()
    if rows:
        console.print(table)
    if merged := merged_rows(corpus):
        console.print(_merged_table(merged, corpus.caps))
    console.print(Text(corpus.provenance_line()))
    if said := evaluation_only(corpus):
        console.print(Text(said.capitalize()))


def evaluation_only(corpus: Corpus) -> str | None:
    """What is to be said of a corpus that has evaluation runs and no others; else ``None``."""
    if set(corpus.runs()["purpose"]) != {"evaluation"}:
        return None
    return (
        "all runs are evaluation runs, which say nothing of depth; depthkit evaluate shows them, "
        "and depthkit free and ladder measure depth."
    )


def _merged_table(
    merged: dict[tuple[str, str], dict[str, int | None]], caps: Sequence[int]
) -> Table:
    table = Table(
        box=None, header_style="bold", pad_edge=False, title="Merged", title_justify="left"
    )
    for name in ("data set", "task"):
        table.add_column(name, overflow="fold")
    for name in ("D before", "first cap", "D"):
        table.add_column(name, justify="right", no_wrap=True)
    for key, row in merged.items():
        before, after = (depth_text(row[name], caps) or "-" for name in ("D_before", "D"))
        depth = "not within" if row["D"] == ABOVE else after
        cells = (*map(one_line, key), before, str(row["first_cap"]), depth)
        table.add_row(*map(Text, cells))
    return table


def print_report(report: IngestReport) -> None:
    """Print what came of an ingest."""
    console = Console(highlight=False, soft_wrap=True)
    runs = [taken.run for taken in report.added]
    passes, counts = Passes.of(runs), Counter(run.verdict for run in runs)
    verdicts = ", ".join(
        f"{passes.counted} {name}{passes.apart}"
        if verdict == "passed"
        else f"{counts[verdict]} {name}"
        for verdict, name in _VERDICTS.items()
        if counts[verdict]
    )
    console.print(
        f"Trials added: {len(report.added)}{f' ({verdicts})' if verdicts else ''}, "
        f"already there: {len(report.known)}, not readable: {len(report.bad)}."
    )
    for note in report.notes:
        console.print(Text(f"note: {one_line(note, 400)}"))
    for bad in report.bad:
        console.print(Text(f"{one_line(bad.path, 300)}: {one_line(bad.reason, 300)}", style="red"))
    console.print(Text(report.corpus.provenance_line()))


_VERDICTS: dict[Verdict, str] = {"passed": "passed", "failed": "failed", "none": "without a result"}


def report_summary(report: IngestReport) -> dict[str, Any]:
    """The same for scripts."""
    return {
        "corpus": str(report.corpus.path),
        "added": [
            {
                "run_id": taken.run.run_id,
                "dataset": taken.run.dataset,
                "task_id": taken.run.task_id,
                "model": taken.run.model,
                "verdict": taken.run.verdict,
                "stop": taken.run.stop,
                "turns": taken.run.turns,
                "parse_errors": taken.parse_errors,
                "detail": taken.run.detail,
            }
            for taken in report.added
        ],
        "already_there": list(report.known),
        "bad": [{"path": bad.path, "reason": bad.reason} for bad in report.bad],
        "notes": list(report.notes),
    }


def _plain(value: Any) -> Any:
    """A value as JSON has it: no NaN or NA, and Python's own numbers."""
    if isinstance(value, dict):
        return value
    if pd.isna(value):
        return None
    return value.item() if hasattr(value, "item") else value
