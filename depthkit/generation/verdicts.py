"""What is said of environments that may be seeds, and which of each kind is kept (Section 3.2)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from depthkit.corpus.lines import Lines
from depthkit.errors import DepthkitError
from depthkit.model import Record

RATINGS: dict[str, str] = {
    "real": "the components are real software, packaged or built from its source, not stand-ins "
    "written for the task",
    "together": "several components work together: servers, clients, stores, tools with a common "
    "state",
    "uncommon": "the software is uncommon: few people have run it by hand, and fewer this version",
    "room": "it can carry several segments of work, each on the result of the one before",
}
"""What the judge rates, from 1 (not at all) to 5 (fully)."""

LEAST = 3
"""Rating below which an environment is not kept."""


class SeedVerdict(Record):
    """What was found of one environment.

    Attributes:
        digest: Of its ``environment/``; the same one is not looked at twice.
        stage: Which of the two said so: rules or judge.
        kept: Whether it goes on; ``None`` where the judge gave no usable answer.
        kind: The kind of system, as the judge calls it.
        ratings: Rating and reason by name.
        original_lines: W of the task it was released with.
    """

    digest: str
    path: str
    stage: Literal["rules", "judge"]
    kept: bool | None
    reason: str
    kind: str | None = None
    components: tuple[str, ...] = ()
    summary: str | None = None
    ratings: dict[str, tuple[int, str]] = Field(default_factory=dict)
    category: str | None = None
    original_lines: int | None = None
    model: str | None = None
    cost_usd: float | None = None


@dataclass(frozen=True)
class Choice:
    """One environment in the end.

    Attributes:
        kept: Whether it is a seed; ``None`` where it was not judged.
    """

    verdict: SeedVerdict
    kept: bool | None
    reason: str

    def row(self) -> dict[str, Any]:
        """For scripts."""
        row = self.verdict.model_dump(mode="json")
        return {**row, "kept": self.kept, "reason": self.reason}


def read_verdicts(path: Path) -> list[SeedVerdict]:
    """The verdicts in a file; none where there is no such file.

    Raises:
        DepthkitError: A line is no verdict.
    """
    found = []
    for number, line in enumerate(Lines(path).read().splitlines(), 1):
        try:
            found.append(SeedVerdict.model_validate_json(line))
        except ValidationError as error:
            raise DepthkitError(f"{path}: line {number} is no verdict on a seed.") from error
    return found


def choose(verdicts: Iterable[SeedVerdict], least: int = LEAST) -> list[Choice]:
    """At most one environment for each kind of system: the one with the highest ratings.

    Of equal ones the first is kept.
    """
    rows = list(verdicts)
    best: dict[str, SeedVerdict] = {}
    for verdict in rows:
        if verdict.stage == "judge" and _weakest(verdict, least) is None and verdict.kept:
            kind = _folded(verdict.kind)
            if kind not in best or _sum(verdict) > _sum(best[kind]):
                best[kind] = verdict
    choices = []
    for verdict in rows:
        weak = _weakest(verdict, least) if verdict.stage == "judge" else None
        if verdict.stage == "rules" or not verdict.kept:
            told = None if verdict.stage == "rules" and verdict.kept else verdict.kept
            choices.append(Choice(verdict, told, verdict.reason))
        elif weak is not None:
            rating, reason = verdict.ratings[weak]
            choices.append(Choice(verdict, False, f"{weak} is rated {rating}: {reason}"))
        elif best[_folded(verdict.kind)] is verdict:
            choices.append(Choice(verdict, True, verdict.reason))
        else:
            other = Path(best[_folded(verdict.kind)].path).name
            choices.append(
                Choice(verdict, False, f"{other} is of the same kind and rated at least as high")
            )
    return choices


def _weakest(verdict: SeedVerdict, least: int) -> str | None:
    low = [name for name, (rating, _) in verdict.ratings.items() if rating < least]
    return min(low, key=lambda name: verdict.ratings[name][0]) if low else None


def _sum(verdict: SeedVerdict) -> int:
    return sum(rating for rating, _ in verdict.ratings.values())


def _folded(kind: str | None) -> str:
    return " ".join(re.sub(r"[^\w]+", " ", (kind or "").casefold()).split())
