"""Every number that the papers state, with its source.

A paper is one YAML file: ``tables`` hold rows as they are printed, ``claims`` single numbers.
This module reads and checks them; it compares nothing.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from depthkit.errors import DepthkitError

Kind = Literal["computed", "setting", "not_computable"]
Rule = Literal["rounded", "at_least", "at_most", "above", "below", "interval", "about"]

PAPERS = ("depth",)
"""Papers whose numbers are kept, each as ``published/NAME.yaml``."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class Cell(_Strict):
    """Where an artifact's frames hold a number."""

    column: str
    where: dict[str, str | int] = Field(default_factory=dict)
    """Column and value by which its row is found; data sets are named as the paper names them."""
    part: str | None = None
    """Which of the artifact's ``parts``; its main frame if not given."""


class Claim(_Strict):
    """A number that a paper states.

    Of kind ``computed`` it names an artifact and the cell there; of kind ``setting`` a constant
    of :mod:`depthkit.protocol`, or a number that ``trials/settings.py`` reads off the harness; of
    kind ``not_computable`` the reason.
    """

    id: str
    section: str
    claim: str
    """What the number says, in words of our own."""
    value: str
    """As printed: ``94%``, ``5.8``, or a list such as ``1, 2, 3``."""
    kind: Kind = "computed"
    rule: Rule = "rounded"
    tolerance: Decimal | None = None
    """Only for rule ``about``: how far off still agrees, in the printed unit."""
    datasets: tuple[str, ...] = ()
    """Data sets that it is about; it is computed over exactly these."""
    conditions: str | None = None
    """Which tasks and models, where the artifact does not say it."""
    artifact: str | None = None
    cell: Cell | None = None
    setting: str | None = None
    reason: str | None = None

    @property
    def percent(self) -> bool:
        """Whether it is printed as a percentage; frames hold shares."""
        return self.value.endswith("%")

    @property
    def numbers(self) -> tuple[Decimal, ...]:
        """What is printed, in the printed unit: (94,) for ``94%``, (1, 2) for ``1, 2``."""
        parts = self.value.removesuffix("%").split(", ")
        return tuple(Decimal(part.replace(",", "")) for part in parts)

    @property
    def number(self) -> Decimal:
        """The one printed number."""
        (number,) = self.numbers
        return number

    @property
    def half_unit(self) -> Decimal:
        """Half a unit of the last printed digit."""
        exponent = self.number.as_tuple().exponent
        assert isinstance(exponent, int)  # infinity and nan do not pass validation
        return Decimal(5).scaleb(exponent - 1)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needed = {
            "computed": self.artifact and self.cell and self.datasets,
            "setting": self.setting,
            "not_computable": self.reason,
        }
        if not needed[self.kind]:
            what = {
                "computed": "artifact, cell and datasets",
                "setting": "setting",
                "not_computable": "reason",
            }
            raise ValueError(f"a claim of kind {self.kind} needs {what[self.kind]}")
        if (self.rule == "about") != (self.tolerance is not None):
            raise ValueError("tolerance goes with rule about, and only with it")
        try:
            usable = all(number.is_finite() for number in self.numbers)
        except ArithmeticError:
            usable = False
        if not usable or (len(self.numbers) > 1 and self.kind != "setting"):
            raise ValueError(f"value {self.value!r} is not a number as a paper prints it")
        return self


class _Column(_Strict):
    """One column of a printed table."""

    name: str
    """Of the frame."""
    claim: str
    kind: Kind = "computed"
    reason: str | None = None


class _Table(_Strict):
    """A printed table: one claim for each cell that is not an en dash."""

    id: str
    section: str
    artifact: str
    row: str
    """Column of the frame by which rows are found; row names are data sets."""
    columns: tuple[_Column, ...]
    rows: dict[str, str]
    """Cells as printed, separated by spaces."""

    def claims(self) -> list[Claim]:
        found = []
        for name, line in self.rows.items():
            cells = line.split()
            if len(cells) != len(self.columns):
                raise ValueError(
                    f"table {self.id}, row {name} has {len(cells)} cells for "
                    f"{len(self.columns)} columns"
                )
            for column, value in zip(self.columns, cells, strict=True):
                if value == "\N{EN DASH}":
                    continue
                found.append(
                    Claim(
                        id=f"{self.id}/{name}/{column.name}",
                        section=self.section,
                        claim=f"{name}: {column.claim}",
                        value=value,
                        kind=column.kind,
                        reason=column.reason,
                        datasets=(name,),
                        artifact=self.artifact,
                        cell=Cell(column=column.name, where={self.row: name}),
                    )
                )
        return found


class _Paper(_Strict):
    title: str
    source: str
    tables: tuple[_Table, ...] = ()
    claims: tuple[Claim, ...] = ()


@cache
def published(paper: str) -> tuple[Claim, ...]:
    """All claims of a paper, in the order of its file.

    Args:
        paper: One of :data:`PAPERS`.

    Raises:
        DepthkitError: there is no such paper, or its file is wrong.
    """
    if paper not in PAPERS:
        raise DepthkitError(f"There is no paper {paper}; choose from {', '.join(PAPERS)}.")
    text = files("depthkit.published").joinpath(f"{paper}.yaml").read_text("utf-8")
    return parse(text, f"published/{paper}.yaml")


def parse(text: str, source: str) -> tuple[Claim, ...]:
    """Read claims from YAML.

    Args:
        text: The file.
        source: Its name, for errors.

    Raises:
        DepthkitError: names the file, the field and what is wrong there.
    """
    try:
        data: Any = yaml.safe_load(text)
        paper = _Paper.model_validate(data)
        claims = [claim for table in paper.tables for claim in table.claims()]
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise DepthkitError(f"{source}: {place}: {first['msg']}.") from error
    except (yaml.YAMLError, ValueError) as error:
        raise DepthkitError(f"{source}: {error}.") from error
    claims += paper.claims
    ids = [claim.id for claim in claims]
    if twice := {name for name in ids if ids.count(name) > 1}:
        raise DepthkitError(f"{source}: id {min(twice)} is used twice; claim ids are unique.")
    return tuple(claims)
