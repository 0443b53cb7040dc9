"""Which tasks of a data set are drawn, in which order (Appendix C). Pure, but for reading rules.

The order of a group is that of a digest of seed, data set and task, so it depends neither on the
order of the table nor on the version of anything.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from depthkit.errors import DepthkitError
from depthkit.model import Group
from depthkit.tasks.text import parsed, read_text

RULES = Path(__file__).with_name("rules")
"""The paper's rules, one file a data set."""

type Cell = str | int | float | bool | None
type Row = Mapping[str, Any]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Range(_Strict):
    """Bounds of a number, both included."""

    at_least: float | None = None
    at_most: float | None = None


type Condition = dict[str, Range | list[Cell] | Cell]
"""By column: a value, several, or bounds. All must hold; a missing value holds for none of them."""


class Evidence(_Strict):
    """What shows that some model has passed a task; for tasks that meet ``where``."""

    text: str
    needs: Condition
    where: Condition = Field(default_factory=dict)


class Keep(_Strict):
    """A condition that tasks must meet, with the reason where they do not."""

    needs: Condition
    reason: str


class GroupRule(_Strict):
    """One group, several by the parts of a column (``split``), or one a value (``each``)."""

    name: str = ""
    where: Condition = Field(default_factory=dict)
    split: str | None = None
    into: int = Field(default=1, ge=1)
    each: str | None = None

    @model_validator(mode="after")
    def _one_way(self) -> GroupRule:
        if (self.split is None) != (self.into == 1):
            raise ValueError("split names the column, into the number of parts; give both")
        if self.split and self.each:
            raise ValueError("split and each exclude each other")
        if not (self.name or self.each):
            raise ValueError("a group needs a name")
        return self


class Rules(_Strict):
    """How one data set is sampled.

    ``made`` says how the data set came about, ``id`` names the columns that make a task's name,
    ``n`` how many tasks are wanted; ``solved``, where it is given, until how many solved tasks the
    list is extended; ``keep`` what the table itself shows about light dependencies.
    """

    dataset: str
    made: Group | None = None
    id: list[str] = Field(min_length=1)
    n: int | Literal["all"]
    solved: int | None = Field(default=None, ge=1)
    seed: int = 1
    evidence: list[Evidence]
    keep: list[Keep] = Field(default_factory=list)
    groups: list[GroupRule] = Field(min_length=1)
    label: str | None = None
    label_source: Literal["author", "generated"] | None = None

    def evidence_words(self) -> list[str]:
        """What shows that some model has passed a task, in words (Table 4)."""
        said = [
            f"{', '.join(f'{key} {value}' for key, value in each.where.items())}: {each.text}"
            if each.where
            else each.text
            for each in self.evidence
        ]
        if not said:
            return ["none released"]
        return said + ["others: none released"] * all(each.where for each in self.evidence)


@dataclass(frozen=True)
class Candidate:
    """A task of the table, with what was decided about it.

    Attributes:
        group: Its group; ``None`` where it is in none.
        position: Its place in the list, from 1; ``None`` where it is not in the list.
        reason: Why it is not in the list.
    """

    task_id: str
    label: str | None
    group: str | None
    position: int | None = None
    reason: str | None = None


@dataclass
class Plan:
    """The list that a sample is taken from.

    Attributes:
        listed: Candidates in the order of the list.
        left_out: All others, by name.
        groups: Names of groups in order, with how many candidates each has.
    """

    rules: Rules
    listed: list[Candidate] = field(default_factory=list)
    left_out: list[Candidate] = field(default_factory=list)
    groups: dict[str, int] = field(default_factory=dict)


def read_rules(name: str | Path) -> Rules:
    """Rules by the name of one of the paper's data sets, or from a YAML file.

    Raises:
        DepthkitError: There is no such file, or it is not of this form.
    """
    bundled = RULES / f"{str(name).lower()}.yaml"
    path = bundled if bundled.is_file() else Path(name)
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in RULES.glob("*.yaml")))
        raise DepthkitError(f"{path}: no such file; give rules in YAML, or one of {known}.")
    try:
        return Rules.model_validate(parsed("YAML", read_text(path, str(path)), str(path)))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise DepthkitError(f"{path}: {where}: {first['msg']}.") from error


def evidence_of(dataset: str) -> str | None:
    """Evidence that the paper's own rules ask for, in words; ``None`` for other data sets."""
    if dataset.lower() not in {path.stem for path in RULES.glob("*.yaml")}:
        return None
    return "; ".join(read_rules(dataset).evidence_words())


def plan_sample(rows: Sequence[Row], rules: Rules) -> Plan:
    """The whole list for a data set, balanced over its groups in every prefix.

    Args:
        rows: One a task; numbers may stand as text.
        rules: How it is sampled.

    Raises:
        DepthkitError: A column is missing, or two tasks have one name.
    """
    _require_columns(rows, rules)
    plan = Plan(rules)
    found: dict[str, Row] = {}
    for row in rows:
        name = "/".join(str(row[column]) for column in rules.id)
        if name in found:
            raise DepthkitError(f"{name} is in the table twice; id must tell tasks apart.")
        found[name] = row
    able: dict[str, Row] = {}
    for name in sorted(found):
        reason = _why_not(found[name], rules)
        if reason is None:
            able[name] = found[name]
        else:
            plan.left_out.append(Candidate(name, _label(found[name], rules), None, reason=reason))
    members = _grouped(able, rules)
    grouped = {name for names in members.values() for name in names}
    plan.left_out += [
        Candidate(name, _label(able[name], rules), None, reason="in no group of the rules")
        for name in able
        if name not in grouped
    ]
    plan.left_out.sort(key=lambda each: each.task_id)
    plan.groups = {group: len(names) for group, names in members.items()}
    drawn = {
        group: sorted(names, key=lambda name: _draw(rules, group, name))
        for group, names in members.items()
    }
    for position, (group, name) in enumerate(interleaved(drawn), 1):
        plan.listed.append(Candidate(name, _label(found[name], rules), group, position))
    return plan


def interleaved(drawn: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """One of each group in turn, until all are used up: in every prefix the counts of two groups
    differ by at most one, unless one of them is exhausted.
    """  # noqa: D205
    longest = max(map(len, drawn.values()), default=0)
    return [
        (group, names[turn])
        for turn in range(longest)
        for group, names in drawn.items()
        if turn < len(names)
    ]


def extension(solved: int, measured: int, target: int, left: int) -> int:
    """How many more tasks to measure, so that about ``target`` are solved.

    At the share solved so far; half of what is measured more where none is solved yet, at least
    one, at most what is left of the list.
    """
    if solved >= target or left <= 0:
        return 0
    more = math.ceil((target - solved) * measured / solved) if solved else max(1, measured // 2)
    return min(more, left)


def _draw(rules: Rules, group: str, name: str) -> str:
    text = f"{rules.seed}\n{rules.dataset}\n{group}\n{name}"
    return hashlib.sha256(text.encode()).hexdigest()


def _why_not(row: Row, rules: Rules) -> str | None:
    for evidence in rules.evidence:
        if meets(row, evidence.where) and not meets(row, evidence.needs):
            return f"no model is known to pass it (needed: {evidence.text})"
    return next((keep.reason for keep in rules.keep if not meets(row, keep.needs)), None)


def meets(row: Row, condition: Condition) -> bool:
    """Whether a task meets a condition."""
    for column, wanted in condition.items():
        value = row[column]
        if isinstance(wanted, Range):
            number = _number(value)
            low, high = wanted.at_least, wanted.at_most
            if number is None or (low is not None and number < low):
                return False
            if high is not None and number > high:
                return False
        elif not any(_same(value, each) for each in _listed(wanted)):
            return False
    return True


def _listed(wanted: list[Cell] | Cell) -> list[Cell]:
    return wanted if isinstance(wanted, list) else [wanted]


def _same(value: object, wanted: Cell) -> bool:
    if wanted is None or wanted == "":
        return value is None or str(value) in ("", "nan")
    left, right = _number(value), _number(wanted)
    if left is not None and right is not None:
        return left == right
    return str(value).casefold() == str(wanted).casefold()


def _number(value: object) -> float | None:
    try:
        number = float(str(value)) if not isinstance(value, bool) else None
    except ValueError:
        return None
    return number if number is not None and math.isfinite(number) else None


def _grouped(able: Mapping[str, Row], rules: Rules) -> dict[str, list[str]]:
    """Tasks by group, in the order of the rules; a task is in the first group that takes it."""
    members: dict[str, list[str]] = {}
    taken: set[str] = set()

    def put(group: str, names: Iterable[str]) -> None:
        members.setdefault(group, []).extend(names)

    for rule in rules.groups:
        names = [name for name in able if name not in taken and meets(able[name], rule.where)]
        if rule.each is not None:
            values = sorted({str(able[name][rule.each]) for name in names} - {"", "nan", "None"})
            for value in values:
                label = f"{rule.name} {value}".strip()
                put(label, [name for name in names if str(able[name][rule.each]) == value])
        elif rule.split is not None:
            for part, parted in enumerate(_parts(able, names, rule.split, rule.into), 1):
                put(f"{rule.name} {part}/{rule.into}", parted)
        else:
            put(rule.name, names)
        taken = {name for each in members.values() for name in each}
    return {group: names for group, names in members.items() if names}


def _parts(able: Mapping[str, Row], names: list[str], column: str, into: int) -> list[list[str]]:
    """Tasks in parts of about equal size by a number; equal numbers stay together."""
    values = {name: _number(able[name][column]) for name in names}
    known = sorted(value for value in values.values() if value is not None)
    parts: list[list[str]] = [[] for _ in range(into)]
    for name, value in values.items():
        if value is not None:
            below = sum(each < value for each in known)
            parts[into * below // len(known)].append(name)
    return parts


def _label(row: Row, rules: Rules) -> str | None:
    value = row[rules.label] if rules.label else None
    return None if value is None or str(value) in ("", "nan") else str(value)


def _require_columns(rows: Sequence[Row], rules: Rules) -> None:
    conditions = [
        *(c for each in rules.evidence for c in (each.where, each.needs)),
        *(each.needs for each in rules.keep),
        *(each.where for each in rules.groups),
    ]
    wanted = {*rules.id, *(column for each in conditions for column in each)}
    wanted |= {column for each in rules.groups for column in (each.split, each.each) if column}
    wanted |= {rules.label} if rules.label else set()
    if not rows:
        raise DepthkitError("the table has no task.")
    missing = sorted(wanted - set(rows[0]))
    if missing:
        raise DepthkitError(f"the table lacks {', '.join(missing)}, which the rules ask for.")
