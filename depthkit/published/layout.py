"""How a paper's YAML file is laid out: artifacts, tables, blocks of claims, cross-checks.

``docs/published.md`` explains the format to those who write it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field, ValidationError

from depthkit.published.claim import Cell, Claim, Kind, Strict
from depthkit.published.cross import CrossCheck

_MODEL_KEYS = ("model", "other")
"""Key columns that hold models."""

DASH = "\N{EN DASH}"
"""What a table prints where it has no number."""


class FrameScheme(Strict):
    """A frame of an artifact: what tells its rows apart, and the numbers that claims use.

    A frame may have more columns. No ``rows``: it has one row.
    """

    rows: dict[str, str] = Field(default_factory=dict)
    """Key columns, each with the values that occur."""
    columns: dict[str, str]
    """Columns with what they hold; shares are of 1, minutes and thousands as printed."""
    needs: Literal["solved", "D"] | None = None
    """What some task of each data set must have, or a count of nothing would pass for a number:
    two valid runs without a cap, or a final D; for parts too unless they say otherwise."""


class ArtifactScheme(FrameScheme):
    """An artifact: its main frame, and its further frames by name."""

    parts: dict[str, FrameScheme] = Field(default_factory=dict)

    def needs_of(self, cell: Cell) -> Literal["solved", "D"] | None:
        """What the frame of a cell needs."""
        return (self.parts[cell.part].needs if cell.part else None) or self.needs

    def lacks(self, cell: Cell) -> str | None:
        """What of a cell this artifact does not have; ``None`` if it is all there."""
        frame = self if cell.part is None else self.parts.get(cell.part)
        if frame is None:
            return f"part {cell.part}"
        if cell.column not in frame.columns:
            return f"column {cell.column}"
        if unknown := set(cell.where) - set(frame.rows):
            return f"key {min(unknown)}"
        missing = set(frame.rows) - set(cell.where)
        if missing and cell.of is None:
            return f"a single row (where lacks {min(missing)})"
        return None


class _Column(Strict):
    """One column of a printed table."""

    name: str
    """Of the frame."""
    claim: str
    kind: Kind = "computed"
    reason: str | None = None
    unit: str | None = None
    repeats: str | None = None
    """Id of the same number elsewhere, with ``{row}`` for the row."""


class Table(Strict):
    """A printed table: one claim for each cell that is not an en dash."""

    id: str
    section: str
    artifact: str | None = None
    part: str | None = None
    row: str
    """Column of the frame by which rows are found."""
    datasets: tuple[str, ...] = ()
    """What each row is about; if not given, row names are data sets."""
    conditions: str | None = None
    columns: tuple[_Column, ...]
    rows: dict[str, str]
    """Cells as printed, separated by spaces."""

    def expand(self) -> Iterator[dict[str, Any]]:
        """One claim a cell, row by row."""
        for name, line in self.rows.items():
            cells = line.split()
            if len(cells) != len(self.columns):
                raise ValueError(
                    f"table {self.id}, row {name} has {len(cells)} cells for "
                    f"{len(self.columns)} columns"
                )
            for column, value in zip(self.columns, cells, strict=True):
                if value == DASH:
                    continue
                claim = {
                    "id": f"{self.id}/{name}/{column.name}",
                    "section": self.section,
                    "claim": f"{name}: {column.claim}",
                    "value": value,
                    "unit": column.unit,
                    "conditions": self.conditions,
                }
                if column.repeats:
                    yield claim | {"repeats": column.repeats.format(row=name)}
                    continue
                yield claim | {
                    "kind": column.kind,
                    "reason": column.reason,
                    "datasets": self.datasets or (name,),
                    "artifact": self.artifact,
                    "cell": {"part": self.part, "column": column.name, "where": {self.row: name}},
                }


class _Short(Strict):
    """A claim within a block; whatever it leaves out is the block's."""

    id: str
    claim: str
    value: str
    section: str | None = None
    printed: str | None = None
    unit: str | None = None
    kind: Kind | None = None
    rule: str = "rounded"
    tolerance: str | None = None
    repeats: str | None = None
    setting: str | None = None
    reason: str | None = None
    datasets: tuple[str, ...] = ()
    conditions: str | None = None
    notes: str | None = None
    artifact: str | None = None
    part: str | None = None
    column: str | None = None
    where: dict[str, str | int] = Field(default_factory=dict)
    of: str | None = None


class Block(Strict):
    """Claims that share section, artifact and data sets."""

    id: str
    """In front of the ids of its claims."""
    section: str
    kind: Kind = "computed"
    reason: str | None = None
    datasets: tuple[str, ...] = ()
    conditions: str | None = None
    artifact: str | None = None
    part: str | None = None
    column: str | None = None
    where: dict[str, str | int] = Field(default_factory=dict)
    claims: tuple[_Short, ...]

    def expand(self) -> Iterator[dict[str, Any]]:
        """Its claims, whole."""
        for short in self.claims:
            kind = short.kind or self.kind
            own = short.model_dump(
                include={
                    *("claim", "value", "printed", "unit", "rule", "tolerance", "repeats"),
                    *("setting", "notes"),
                }
            )
            claim = own | {
                "id": f"{self.id}/{short.id}",
                "section": short.section or self.section,
                "conditions": short.conditions or self.conditions,
            }
            if short.repeats:
                yield claim
                continue
            claim |= {
                "kind": kind,
                "reason": (short.reason or self.reason) if kind == "not_computable" else None,
                "datasets": short.datasets or self.datasets,
            }
            if kind == "computed":
                claim["artifact"] = short.artifact or self.artifact
                if column := short.column or self.column:
                    part = self.part if short.artifact is None else None
                    claim["cell"] = {
                        "part": short.part or part,
                        "column": column,
                        "where": self.where | short.where,
                        "of": short.of,
                    }
            yield claim


class Paper(Strict):
    """A file, whole."""

    title: str
    source: str
    sections: tuple[str, ...] = ()
    """In the order of the paper; claims are listed in this order. Any section if not given."""
    models: dict[str, str] = Field(default_factory=dict)
    """Models as the paper names them, and the names of this project."""
    groups: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Data sets together, for YAML anchors."""
    artifacts: dict[str, ArtifactScheme] = Field(default_factory=dict)
    """What each artifact's frames hold; not checked if not given."""
    tables: tuple[Table, ...] = ()
    blocks: tuple[Block, ...] = ()
    claims: tuple[Claim, ...] = ()
    cross_checks: tuple[CrossCheck, ...] = ()

    def expand(self) -> tuple[Claim, ...]:
        """All claims, in the order of the sections.

        Raises:
            ValueError: an id is used twice; a section, a cell or a repeated claim is unknown; a
                claim is incomplete (pydantic's own, with its id in front).
        """
        raw = [claim for table in self.tables for claim in table.expand()]
        raw += [claim for block in self.blocks for claim in block.expand()]
        raw += [claim.model_dump(exclude_unset=True) for claim in self.claims]
        by_id: dict[str, dict[str, Any]] = {}
        for claim in raw:
            if claim["id"] in by_id:
                raise ValueError(f"id {claim['id']} is used twice; claim ids are unique")
            by_id[claim["id"]] = claim
        found = [self._whole(claim, by_id) for claim in raw]
        return tuple(sorted(found, key=lambda claim: self._place(claim)))

    def _whole(self, raw: Mapping[str, Any], by_id: Mapping[str, Mapping[str, Any]]) -> Claim:
        """A claim that repeats another takes over what that one is about."""
        fields = {name: value for name, value in raw.items() if value is not None}
        if first := fields.get("repeats"):
            target = by_id.get(first)
            if target is None or target.get("repeats"):
                raise ValueError(f"claim {raw['id']} repeats {first}, which is no claim of its own")
            for name in ("kind", "reason", "setting", "datasets", "conditions", "artifact", "cell"):
                if target.get(name) is not None:
                    fields.setdefault(name, target[name])
        try:
            claim = Claim.model_validate(fields)
        except ValidationError as error:
            raise ValueError(f"claim {raw['id']}: {error.errors()[0]['msg']}") from error
        if claim.kind != "computed":
            return claim
        assert claim.artifact is not None and claim.cell is not None
        where = {
            key: self.models.get(str(value), value) if key in _MODEL_KEYS else value
            for key, value in claim.cell.where.items()
        }
        cell = claim.cell.model_copy(update={"where": where})
        if self.artifacts:
            scheme = self.artifacts.get(claim.artifact)
            if lacks := "this artifact" if scheme is None else scheme.lacks(cell):
                raise ValueError(f"claim {claim.id}: the scheme of {claim.artifact} lacks {lacks}")
        return claim.model_copy(update={"cell": cell})

    def _place(self, claim: Claim) -> int:
        if not self.sections:
            return 0
        name = claim.section.split(",")[0]
        if name not in self.sections:
            raise ValueError(f"claim {claim.id}: section {name} is not in sections")
        return self.sections.index(name)
