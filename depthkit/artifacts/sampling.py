"""Appendix C: how tasks were sampled, and the samples against their original data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from depthkit.artifacts.artifact import Table, artifact
from depthkit.artifacts.datasets import GROUPS, NO_GROUP, Audited, audited, depth_share, is_existing
from depthkit.artifacts.levels import level
from depthkit.artifacts.samples import task_details
from depthkit.artifacts.tables import MISSING, plain_table
from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.experiments.sampling import evidence_of
from depthkit.stats import reweighted_share

_FIELDS = ["author_rating", "generated_label", "sampling_group", "public_pass_rate"]

LABEL_NAMES = {
    "author_rating": "author rating",
    "generated_label": "generated label",
    "sampling_group": "sampling group",
}
"""Fields of a task that can hold a difficulty label, as tables name them."""

LABELS: Mapping[str, str] = {"tw": "sampling_group"}
"""Field of a task that holds the label of Table 5, where it is not the author rating or, without
one, the generated label. TerminalWorld's is the empirical difficulty by which it was sampled; the
difficulty in its task files is another label, that of Figure 8."""


@artifact("depth/table-4", section="C, Table 4")
def sampling_table(corpus: Corpus, *, datasets: Sequence[str] | None = None) -> Table:
    """Groups that each existing data set was sampled from, and how many tasks were sampled.

    ``groups`` counts the different ``sampling_group`` of sampled tasks and is missing where tasks
    name none; ``parts["groups"]`` has one row each. ``released`` are sampled tasks with a public
    pass rate, ``released_passed`` those of them that some model passed. ``evidence`` is what the
    bundled rules of a data set of that name ask for, in words; missing where there are none.

    Args:
        corpus: What was measured.
        datasets: Only these; ``None`` for all.
    """
    chosen, tasks = _existing(corpus, datasets)
    rows, groups, notes = [], [], []
    for name in _names(chosen):
        sampled = tasks[(tasks["dataset"] == name) & tasks["sampled"]]
        named = sampled.dropna(subset=["sampling_group"])
        rate = sampled["public_pass_rate"]
        rows.append(
            {
                "dataset": name,
                "group": _group(chosen, name),
                "groups": named["sampling_group"].nunique() if len(named) else float("nan"),
                "sampled": len(sampled),
                "evidence": evidence_of(name),
                "released": int(rate.notna().sum()),
                "released_passed": int((rate > 0).sum()),
            }
        )
        groups += [
            {"dataset": name, "sampling_group": each, "sampled": len(found)}
            | {"solved": int(found["solved"].sum())}
            for each, found in named.groupby("sampling_group", sort=True)
        ]
        if without := len(sampled) - len(named):
            notes.append(f"{name}: {without} sampled tasks name no group.")
    columns = ["dataset", "group", "groups", "evidence", "sampled", "released", "released_passed"]
    frame = pd.DataFrame(rows, columns=columns)
    parts = pd.DataFrame(groups, columns=["dataset", "sampling_group", "sampled", "solved"])
    return Table(
        title=(
            "Groups used to sample each existing data set. Evidence: what shows that a model "
            "passed a task, by the sampling rules of that name. Released: sampled tasks with a "
            "public pass rate; passed: those of them that at least one run behind it passes."
        ),
        frame=frame,
        parts={"groups": parts},
        provenance=chosen.provenance,
        draw=lambda: _table_4(frame, parts),
        # Tasks of a group are of the part groups
        cells=(
            *("group", "dataset", "groups", "evidence", "group"),
            *("released", "released_passed", "sampled"),
        ),
        notes=tuple(notes),
    )


@artifact("depth/table-5", section="C, Table 5")
def reweighting_table(
    corpus: Corpus,
    *,
    datasets: Sequence[str] | None = None,
    caps: Sequence[int] | None = None,
    labels: Mapping[str, str] = LABELS,
) -> Table:
    """Samples against their original data sets, by the labels that each data set releases.

    The original data set is every task of it in the corpus, the sample those with two valid free
    runs. ``reweighted`` is the share of solved tasks with D ≥ 5 when each label takes its original
    proportion, over the labels that solved tasks have; ``rise`` by how much it is above the share
    as sampled, ``D_ge_5``; ``coverage`` the share of original tasks
    whose label is in the sample. Both are missing where the corpus holds the sample alone, or all
    tasks have one label. ``parts["labels"]`` has one row a data set and label.

    Args:
        corpus: What was measured, and the tasks that were not sampled.
        datasets: Only these; ``None`` for all.
        caps: A coarser scale of D; ``None`` for all caps.
        labels: Field of a task with its label, by data set in lower case; for all others the
            author rating or, without one, the generated label.
    """
    if unknown := [field for field in labels.values() if field not in LABEL_NAMES]:
        raise DepthkitError(
            f"labels names the field {unknown[0]!r}; choose from {', '.join(LABEL_NAMES)}."
        )
    chosen, tasks = _existing(corpus, datasets, caps)
    rows, parts, notes = [], [], []
    for name in _names(chosen):
        own = tasks[tasks["dataset"] == name]
        solved = own[own["solved"]].dropna(subset=["D"])
        label = labels.get(name.casefold()) or _usual(own)
        row: dict[str, Any] = {"dataset": name, "group": _group(chosen, name), "labels": label}
        row |= {"D_ge_5": depth_share(solved["D"], least=5), "reweighted": float("nan")}
        row |= {"coverage": float("nan"), "solved": len(solved)}
        row |= {"sampled": int(own["sampled"].sum()), "original": len(own)}
        if label is not None:
            found = own.assign(label=own[label])
            parts += _label_rows(name, found)
            values, why = _reweighted(name, found)
            row |= values
            row["rise"] = row["reweighted"] - row["D_ge_5"]
            notes += why
        else:
            notes.append(f"{name}: its tasks have no label.")
        rows.append(row)
    frame = pd.DataFrame(
        rows,
        columns=[
            *("dataset", "group", "labels", "D_ge_5", "reweighted", "rise", "coverage"),
            *("solved", "sampled", "original"),
        ],
    )
    by_label = pd.DataFrame(
        parts,
        columns=[
            *("dataset", "label", "sampled", "share", "original", "original_share"),
            *("solved", "D_le_3", "D_ge_5"),
        ],
    )
    return Table(
        title=(
            "Samples against the original data sets, by the labels each data set releases: share "
            "of each label among sampled and among original tasks. D ≥ 5: share, or for a label "
            "count, of solved tasks with a final D; reweighted so that each label takes its "
            "original proportion. Covered: share of original tasks whose label is in the sample."
        ),
        frame=frame,
        parts={"labels": by_label},
        provenance=chosen.provenance,
        draw=lambda: _table_5(frame, by_label),
        notes=tuple(notes),
    )


def _existing(
    corpus: Corpus, datasets: Sequence[str] | None, caps: Sequence[int] | None = None
) -> tuple[Audited, pd.DataFrame]:
    """Every task of data sets that are not ours: whether sampled, solved, with D and labels."""
    chosen = audited(corpus, datasets, caps)
    measured = chosen.tasks[["dataset", "task_id", "group", "solved", "D"]]
    measured = measured[is_existing(measured["group"])]
    tasks = measured.merge(
        task_details(corpus, datasets, _FIELDS), on=["dataset", "task_id"], how="left"
    )
    return chosen, tasks.assign(
        sampled=tasks["solved"].notna(), solved=tasks["solved"].fillna(False).astype(bool)
    )


def _names(chosen: Audited) -> list[str]:
    """Existing data sets in the order in which they are shown."""
    existing = set(chosen.tasks.loc[is_existing(chosen.tasks["group"]), "dataset"])
    return [name for name in chosen.datasets if name in existing]


def _group(chosen: Audited, name: str) -> str | None:
    found = chosen.tasks.loc[chosen.tasks["dataset"] == name, "group"].dropna()
    return str(found.iloc[0]) if len(found) else None


def _usual(tasks: pd.DataFrame) -> str | None:
    """The field that holds the label of a data set's tasks."""
    fields = ("author_rating", "generated_label")
    return next((field for field in fields if tasks[field].notna().any()), None)


def _place(label: str) -> tuple[bool, float, str]:
    """Sorts labels from easiest to hardest; those of unknown order follow by name."""
    place = level(label)
    return pd.isna(place), 0 if pd.isna(place) else place, label


def _label_rows(name: str, tasks: pd.DataFrame) -> list[dict[str, Any]]:
    labelled = tasks.dropna(subset=["label"])
    sampled = int(labelled["sampled"].sum())
    whole = not tasks["sampled"].all()  # else the original data set is not known
    labels = sorted(labelled["label"].unique(), key=_place)
    rows = []
    for label in labels:
        found = labelled[labelled["label"] == label]
        solved = found[found["solved"]]
        known = solved["D"].notna().any() or solved.empty
        inside = int(found["sampled"].sum())
        rows.append(
            {
                "dataset": name,
                "label": label,
                "sampled": inside,
                "share": inside / sampled if sampled else float("nan"),
                "original": len(found) if whole else float("nan"),
                "original_share": len(found) / len(labelled) if whole else float("nan"),
                "solved": len(solved),
                "D_le_3": int((solved["D"] <= 3).sum()) if known else float("nan"),
                "D_ge_5": int((solved["D"] >= 5).sum()) if known else float("nan"),
            }
        )
    return rows


def _reweighted(name: str, tasks: pd.DataFrame) -> tuple[dict[str, float], list[str]]:
    """The columns that need the original proportions, and why they are missing."""
    notes = []
    if unlabelled := int((tasks["sampled"] & tasks["label"].isna()).sum()):
        notes.append(f"{name}: {unlabelled} sampled tasks have no label.")
    labelled = tasks.dropna(subset=["label"])
    original = labelled["label"].value_counts()
    if len(original) < 2:
        return {}, [*notes, f"{name}: all tasks have one label, so nothing is reweighted."]
    if tasks["sampled"].all():
        said = "the corpus holds no task beyond the sample, so original proportions are not known."
        return {}, [*notes, f"{name}: {said}"]
    sample = set(labelled.loc[labelled["sampled"], "label"])
    values = {"coverage": float(original[original.index.isin(sample)].sum() / original.sum())}
    solved = labelled[labelled["solved"]].dropna(subset=["D"])
    if len(solved):
        found = reweighted_share(solved["D"] >= 5, solved["label"], original.to_dict())
        values["reweighted"] = found.value
        if found.absent:
            absent = ", ".join(sorted(map(str, found.absent)))
            notes.append(
                f"{name}: reweighted over the labels of solved tasks, {found.covered:.0%} of the "
                f"original ones; without any: {absent}."
            )
    return values, notes


def _table_4(frame: pd.DataFrame, groups: pd.DataFrame) -> Any:
    sizes = groups.groupby("dataset")["sampled"].agg(["min", "max"])
    ranges = {
        name: f"{low}" if low == high else f"{low} to {high}"
        for name, low, high in sizes.itertuples(name=None)
    }
    shown = pd.DataFrame(
        {
            "group": [GROUPS.get(group, NO_GROUP) for group in frame["group"]],
            "Dataset": frame["dataset"],
            "Groups": [MISSING if pd.isna(n) else f"{n:.0f}" for n in frame["groups"]],
            "Evidence": [MISSING if pd.isna(text) else text for text in frame["evidence"]],
            "Tasks of a group": [ranges.get(name, MISSING) for name in frame["dataset"]],
            "Released": frame["released"].map("{:d}".format),
            "Passed": frame["released_passed"].map("{:d}".format),
            "Sampled": frame["sampled"].map("{:d}".format),
        }
    )
    return plain_table(shown, "depth-table-4", groups="group", rows="Dataset", left=("Evidence",))


def _table_5(frame: pd.DataFrame, labels: pd.DataFrame) -> Any:
    shown = []
    for row in frame.to_dict("records"):
        own = labels[labels["dataset"] == row["dataset"]].to_dict("records")
        known = LABEL_NAMES.get(row["labels"], "no label")
        rest = {"D ≥ 5": _percent(row["D_ge_5"], 1), "Reweighted": _percent(row["reweighted"], 1)}
        rest |= {"Covered": _percent(row["coverage"], 0)}
        shown.append(
            {
                "dataset": f"{row['dataset']} ({known})",
                "Label": "all",
                "Sampled": str(row["sampled"]),
                "Share": MISSING,
                "Original": MISSING,
                "Solved": str(row["solved"]),
            }
            | rest
        )
        shown += [
            {
                "dataset": f"{row['dataset']} ({known})",
                "Label": each["label"],
                "Sampled": str(each["sampled"]),
                "Share": _percent(each["share"], 0),
                "Original": _percent(each["original_share"], 0),
                "Solved": str(each["solved"]),
            }
            | {"Reweighted": "", "Covered": ""}
            | {"D ≥ 5": MISSING if pd.isna(each["D_ge_5"]) else f"{each['D_ge_5']:.0f}"}
            for each in own
        ]
    columns = ["dataset", "Label", "Sampled", "Share", "Original", "Solved"]
    table = pd.DataFrame(shown, columns=[*columns, "D ≥ 5", "Reweighted", "Covered"])
    return plain_table(table, "depth-table-5", groups="dataset", rows="Label")


def _percent(share: float, digits: int) -> str:
    return MISSING if pd.isna(share) else f"{share:.{digits}%}"
