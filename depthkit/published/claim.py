"""A number that a paper states."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Kind = Literal["computed", "setting", "not_computable"]
Rule = Literal["rounded", "at_least", "at_most", "above", "below", "interval", "about"]


class Strict(BaseModel):
    """Base of all that stands in a paper's file: immutable, unknown fields are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class Cell(Strict):
    """Where an artifact's frames hold a number."""

    column: str
    where: dict[str, str | int] = Field(default_factory=dict)
    """Column and value by which its row is found; data sets are named as the paper names them."""
    part: str | None = None
    """Which of the artifact's ``parts``; its main frame if not given."""
    of: Literal["min", "max"] | None = None
    """An end of a printed range: the least or greatest over all rows that fit."""


class Claim(Strict):
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
    """As printed: ``94%``, ``5.8``, ``$1.08``, or a list such as ``1, 2, 3``."""
    printed: str | None = None
    """How it stands in the paper where ``value`` does not: a word, a power of ten, a range."""
    unit: Literal["percent"] | None = None
    """``percent`` where the sign stands elsewhere, as in a table's head."""
    kind: Kind = "computed"
    rule: Rule = "rounded"
    tolerance: Decimal | None = None
    """Only for rule ``about``: how far off still agrees, in the printed unit."""
    datasets: tuple[str, ...] = ()
    """Data sets that it is about; it is computed over exactly these."""
    conditions: str | None = None
    """Which tasks and models, where the artifact does not say it."""
    notes: str | None = None
    """What a reader should know about the printed number."""
    repeats: str | None = None
    """Id of the claim whose number this one states again; compared, but not counted."""
    artifact: str | None = None
    cell: Cell | None = None
    setting: str | None = None
    reason: str | None = None

    @property
    def percent(self) -> bool:
        """Whether it is printed as a percentage; frames hold shares."""
        return self.value.endswith("%") or self.unit == "percent"

    @property
    def numbers(self) -> tuple[Decimal, ...]:
        """What is printed, in the printed unit: (94,) for ``94%``, (1, 2) for ``1, 2``."""
        parts = self.value.removesuffix("%").removeprefix("$").split(", ")
        return tuple(Decimal(part.replace(",", "")) for part in parts)

    @property
    def number(self) -> Decimal:
        """The one printed number."""
        (number,) = self.numbers
        return number

    @property
    def decimals(self) -> int:
        """Digits after the point of what is printed: 1 for ``5.8``, 12 for ``5.8e-11``."""
        exponent = self.number.as_tuple().exponent
        assert isinstance(exponent, int)  # infinity and nan do not pass validation
        return max(0, -exponent)

    @property
    def half_unit(self) -> Decimal:
        """Half a unit of the last printed digit."""
        exponent = self.number.as_tuple().exponent
        assert isinstance(exponent, int)
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
