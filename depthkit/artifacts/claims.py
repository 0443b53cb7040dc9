"""What a corpus gives beside what a paper prints, and whether they agree.

This and ``cross_checks`` are the only modules of this layer that compute with
:mod:`depthkit.published`; artifact functions never do, and views of fitted tables mark what of them
is printed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from os import environ
from pathlib import Path
from typing import Any

import pandas as pd

from depthkit import protocol
from depthkit.artifacts import page
from depthkit.artifacts.artifact import REPORT_DIR, Artifact, as_corpus, build, ids, parameters
from depthkit.artifacts.datasets import audited, find_datasets
from depthkit.artifacts.tables import MISSING, plain_table
from depthkit.corpus import Corpus
from depthkit.errors import DepthkitError
from depthkit.published import PAPERS, Claim, Kind, published, schemes

INTERVAL_TOLERANCE = Decimal("0.03")
"""How far an end of a confidence interval may be off: the papers name neither method nor
resamples."""


@dataclass(frozen=True)
class Result:
    """One published number and what this corpus gives.

    Attributes:
        claim: The published number.
        kind: Of the claim in this corpus: one whose data it lacks is ``not_computable``.
        computed: In the unit of the published number (percent for ``94%``); ``None`` if there is
            none.
        agrees: ``None`` if nothing was computed.
        reason: Why nothing was computed.
        built: Whether depthkit has the artifact; without it a claim is ``not_computable``.
    """

    claim: Claim
    kind: Kind
    computed: tuple[Decimal, ...] | None = None
    agrees: bool | None = None
    reason: str | None = None
    built: bool = True

    @property
    def counted(self) -> bool:
        """Whether it is in numerator and denominator of the score."""
        once = self.claim.repeats is None
        return self.kind == "computed" and self.claim.rule != "about" and once

    def row(self) -> dict[str, Any]:
        """As ``depthkit claims --json`` prints it."""
        return {
            "artifact": self.claim.artifact,
            "claim": self.claim.claim,
            "kind": self.kind,
            "published": _plain(self.claim.numbers),
            "computed": None if self.computed is None else _plain(self.computed),
            "agrees": self.agrees,
            "id": self.claim.id,
            "section": self.claim.section,
            "printed": self.claim.value,
            "rule": self.claim.rule,
            "counted": self.counted,
            "conditions": self.claim.conditions,
            "notes": self.claim.notes,
            "repeats": self.claim.repeats,
            "built": self.built,
            "reason": self.reason,
        }

    @property
    def computed_text(self) -> str:
        """For people: one digit more than printed."""
        if self.computed is None:
            return MISSING
        if len(self.computed) > 1:
            return ", ".join(str(number) for number in self.computed)
        if self.claim.decimals > 6:
            return f"{self.computed[0]:.2e}"
        text = f"{self.computed[0]:.{self.claim.decimals + 1}f}".rstrip("0").rstrip(".")
        return f"{text}%" if self.claim.value.endswith("%") else text


@dataclass(frozen=True)
class Claims:
    """Published numbers beside those of one corpus.

    Attributes:
        results: In the order of the paper.
        corpus: Name of the corpus.
        provenance: What its numbers rest on.
    """

    results: tuple[Result, ...]
    corpus: str
    provenance: str

    @property
    def stamp(self) -> str:
        """The words of the provenance, see :func:`page.stamp`."""
        return page.stamp(self.provenance)

    @property
    def missing(self) -> list[Result]:
        """Numbers that this corpus cannot give, repeats left out."""
        return [r for r in self._without if r.built]

    @property
    def waiting(self) -> list[Result]:
        """Numbers of artifacts that depthkit does not have yet, repeats left out."""
        return [r for r in self._without if not r.built]

    @property
    def _without(self) -> list[Result]:
        return [r for r in self.results if r.kind == "not_computable" and not r.claim.repeats]

    @property
    def score(self) -> str:
        """For example ``measured · 81 of 84 computed numbers agree · 12 not computable in …``."""
        parts = list(filter(None, [self.stamp]))
        counted = [result for result in self.results if result.counted]
        if counted:
            agree = sum(bool(result.agrees) for result in counted)
            parts.append(f"{agree} of {len(counted)} computed numbers agree")
        if missing := len(self.missing):
            parts.append(f"{missing} not computable in corpus {self.corpus}")
        if waiting := len(self.waiting):
            parts.append(f"{waiting} of artifacts not built yet")
        once = [result for result in self.results if result.claim.repeats is None]
        settings = [result for result in once if result.kind == "setting"]
        if settings:
            agree = sum(bool(result.agrees) for result in settings)
            parts.append(f"{agree} of {len(settings)} settings agree")
        about = sum(r.kind == "computed" and r.claim.rule == "about" for r in once)
        if about:
            parts.append(f"{about} approximate, not counted")
        if repeats := len(self.results) - len(once):
            parts.append(f"{repeats} repeat others, not counted")
        return " · ".join(parts) or "no published numbers"

    def show(self) -> page.Fragment:
        """The comparison as a table, for the last line of a notebook cell."""
        if directory := environ.get(REPORT_DIR):
            Path(directory, "claims.txt").write_text(self.score, "utf-8")
        there = [result for result in self.results if result.kind != "not_computable"]
        parts = [f"<p><b>Published numbers.</b> {escape(self.score)}.</p>"]
        if there:
            parts.append(_table_html(there, "claims"))
        for results, what, table_id in (
            (self.missing, f"that corpus {self.corpus} cannot give", "claims-missing"),
            (self.waiting, "of artifacts that are not built yet", "claims-waiting"),
        ):
            if results:
                summary = escape(f"{len(results)} numbers {what}")
                table = _table_html(results, table_id)
                parts.append(f"<details><summary>{summary}</summary>{table}</details>")
        parts.append(f'<p class="provenance">{escape(self.provenance)}</p>')
        return page.Fragment(f'<section class="depthkit claims">{"".join(parts)}</section>')


def claims(
    corpus: Corpus | str | Path, *sections: str, papers: Iterable[str] = PAPERS, **params: Any
) -> Claims:
    """Compare a corpus with the published numbers.

    Each number is computed by its artifact over exactly the data sets it is about; one whose data
    sets the corpus lacks is not computable there.

    Args:
        corpus: A corpus, or the name or directory of one.
        sections: Only numbers of these, such as ``4.2``, and of their tables and figures; all if
            none is named.
        papers: Whose numbers.
        params: Of the artifacts, such as ``caps`` or ``seed``: those of the page on which the
            comparison stands, each for the artifacts that take it. Numbers of data sets that
            ``datasets`` leaves out are not computed.

    Raises:
        DepthkitError: no number is of a section, or a published number names a cell that its
            artifact does not have.
    """
    every = [claim for paper in papers for claim in published(paper)]
    known = {_section(claim) for claim in every}
    if unknown := [section for section in sections if section not in known]:
        raise DepthkitError(
            f"section is {unknown[0]!r}; no published number is of that section, but of "
            f"{', '.join(sorted(known))}."
        )
    wanted = [claim for claim in every if not sections or _section(claim) in sections]
    return compare(wanted, corpus, **params)


def _section(claim: Claim) -> str:
    return claim.section.split(",")[0]


def compare(wanted: Iterable[Claim], corpus: Corpus | str | Path, **params: Any) -> Claims:
    """Compare a corpus with these claims.

    Args:
        wanted: What to compare; as they are, also such as no paper makes.
        corpus: As for :func:`claims`.
        params: As for :func:`claims`.

    Raises:
        DepthkitError: as for :func:`claims`, or no artifact takes a parameter.
    """
    opened = as_corpus(corpus)
    known = set().union(*map(parameters, ids()))
    if unknown := sorted(set(params) - known):
        raise DepthkitError(
            f"no artifact takes the parameter {unknown[0]}; they take {', '.join(sorted(known))}."
        )
    chosen = params.pop("datasets", None)
    if chosen is not None:
        audited(opened, chosen)  # says which are not in the corpus
        chosen = {name.casefold() for name in chosen}
    # Many claims are of one artifact and about the same data sets.
    names = functools.cache(functools.partial(find_datasets, opened))
    built: dict[tuple[str, tuple[str, ...]], Artifact] = {}
    every = audited(opened)
    measured = {
        "solved": set(every.tasks.dropna(subset=["solved"])["dataset"]),
        "D": set(every.solved.dropna(subset=["D"])["dataset"]),
    }
    results = tuple(
        _compare(claim, opened, names, measured, built, chosen, params) for claim in wanted
    )
    return Claims(results, opened.name, every.provenance)


_NEEDED = {"solved": "has two valid runs without a cap", "D": "is solved and has a final D"}


def _compare(
    claim: Claim,
    corpus: Corpus,
    names_in_corpus: Callable[[tuple[str, ...]], list[str] | None],
    measured: dict[str, set[str]],
    built: dict[tuple[str, tuple[str, ...]], Artifact],
    chosen: set[str] | None,
    params: dict[str, Any],
) -> Result:
    if claim.kind == "not_computable":
        return Result(claim, "not_computable", reason=claim.reason)
    if claim.kind == "setting":
        numbers = _setting(claim)
        return Result(claim, "setting", numbers, numbers == claim.numbers)
    assert claim.artifact is not None
    if claim.artifact not in ids():
        reason = f"artifact {claim.artifact} is not built yet"
        return Result(claim, "not_computable", reason=reason, built=False)
    names = names_in_corpus(claim.datasets)
    if names is None:
        absent = [name for name in claim.datasets if names_in_corpus((name,)) is None]
        reason = f"corpus {corpus.name} does not hold {', '.join(absent)}"
        return Result(claim, "not_computable", reason=reason)
    assert claim.cell is not None
    scheme = schemes(claim.artifact.split("/")[0]).get(claim.artifact)
    needs = scheme.needs_of(claim.cell) if scheme else None
    if needs and (without := [name for name in names if name not in measured[needs]]):
        reason = f"no task of {', '.join(without)} {_NEEDED[needs]} in corpus {corpus.name}"
        return Result(claim, "not_computable", reason=reason)
    if left_out := [n for n in names if chosen is not None and n.casefold() not in chosen]:
        reason = f"the parameter datasets leaves out {', '.join(left_out)}"
        return Result(claim, "not_computable", reason=reason)
    key = claim.artifact, tuple(names)
    if key not in built:
        taken = {name: params[name] for name in parameters(claim.artifact) & set(params)}
        built[key] = build(claim.artifact, corpus, datasets=names, **taken)
    found, bound = _look_up(claim, built[key], dict(zip(claim.datasets, names, strict=True)))
    if found is None:
        reason = f"not known from the runs of corpus {corpus.name}"
        return Result(claim, "not_computable", reason=reason)
    value = found * 100 if claim.percent else found
    # A lower bound is no value, so it never agrees with one.
    return Result(claim, "computed", (value,), agrees(claim, value) and not bound)


def _setting(claim: Claim) -> tuple[Decimal, ...]:
    name = claim.setting or ""
    value = getattr(protocol, name, None)
    if value is None:
        from depthkit.trials.settings import published_settings

        value = published_settings().get(name)
    if value is None:
        raise DepthkitError(f"claim {claim.id}: the code has no setting {claim.setting}.")
    return tuple(Decimal(number) for number in (value if isinstance(value, tuple) else (value,)))


def _look_up(claim: Claim, made: Artifact, names: dict[str, str]) -> tuple[Decimal | None, bool]:
    """The number in the cell, and whether it is only a lower bound; ``None`` if unknown."""
    cell = claim.cell
    assert cell is not None
    frame = made.frame if cell.part is None else made.parts.get(cell.part)
    if frame is None or not {cell.column, *cell.where} <= set(frame):
        raise DepthkitError(
            f"claim {claim.id}: {made.id} has no such cell (part {cell.part}, column "
            f"{cell.column}, where {dict(cell.where)})."
        )
    for column, value in cell.where.items():
        frame = frame[frame[column] == names.get(str(value), value)]
    if cell.of is not None:
        frame = frame.sort_values(cell.column, ascending=cell.of == "min", na_position="first")
    elif len(frame) > 1:
        raise DepthkitError(f"claim {claim.id}: {len(frame)} rows of {made.id} fit its cell.")
    # an unknown row sorts first: without it the end of a range is unknown too
    if frame.empty or pd.isna(frame[cell.column].iloc[0]):
        return None, False
    above = f"{cell.column}_above"
    # repr is the shortest decimal for the float, so that 0.575 is a tie and stays one
    number = Decimal(repr(float(frame[cell.column].iloc[0])))
    return number, above in frame and bool(frame[above].iloc[0])


def agrees(claim: Claim, value: Decimal) -> bool:
    """Whether a computed value agrees with the printed one.

    Args:
        claim: The published number.
        value: In the printed unit.
    """
    printed = claim.number
    # drops the error of floating point, far below the last printed digit
    value = value.quantize(min(Decimal("1e-9"), claim.half_unit.scaleb(-4)))
    match claim.rule:
        case "rounded":
            return abs(value - printed) <= claim.half_unit
        case "interval":
            return abs(value - printed) <= INTERVAL_TOLERANCE
        case "about":
            assert claim.tolerance is not None
            return abs(value - printed) <= claim.tolerance
        case "at_least":
            return value >= printed
        case "at_most":
            return value <= printed
        case "above":
            return value > printed
        case "below":
            return value < printed


def _table_html(results: list[Result], table_id: str) -> str:
    shown = pd.DataFrame(
        {
            "Section": [result.claim.section for result in results],
            "Number": [result.claim.claim for result in results],
            "Published": [result.claim.value for result in results],
        }
    )
    if table_id == "claims":
        words = {True: "yes", False: "no", None: ""}
        shown["Computed"] = [result.computed_text for result in results]
        shown["Agrees"] = [words[result.agrees] for result in results]
        left: tuple[str, ...] = ("Number", "Agrees")
    else:
        shown["Why"] = [result.reason or "" for result in results]
        left = ("Number", "Why")
    table = plain_table(shown, table_id, rows="Section", left=left)
    return f'<div class="scroll" tabindex="0">{table.as_raw_html()}</div>'


def _plain(numbers: tuple[Decimal, ...]) -> Any:
    """For JSON: whole numbers without a point; one number not in a list."""
    plain = [int(n) if n == n.to_integral_value() else float(n) for n in numbers]
    return plain[0] if len(plain) == 1 else plain
