"""Reading ``task.toml``: Harbor's own model decides, a person gets one sentence back."""

from __future__ import annotations

import copy
import difflib
import json
import math
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from depthkit.errors import DepthkitError
from depthkit.model import Group
from depthkit.tasks.text import parsed, printable

if TYPE_CHECKING:
    from harbor.models.task.config import TaskConfig
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

_OLD_NAMES = {"TaskConfig": {"version"}, "EnvironmentConfig": {"memory", "storage"}}
"""Fields that Harbor still reads though its models no longer list them."""

_NEAR_MISS = 0.75
"""Likeness of two names (difflib's ratio) from which one is taken for the other, misspelt, if its
value would do there."""


class TaskMetadata(BaseModel):
    """``[metadata.depthkit]`` of a task: what cannot be read off its files.

    ``names_stated``, ``key_steps`` and ``events`` are lists with one number a segment.
    ``label_source`` says who set ``[metadata] difficulty``: ``"author"`` makes it the author
    rating of the record, ``"generated"`` its generated label; without it the record has neither.
    ``merged_segments`` says how many segments of the parent this task's one instruction holds. The
    other keys go into the record as they are.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    group: Group | None = None
    label_source: Literal["author", "generated"] | None = None
    sampling_group: str | None = None
    seed_env: str | None = None
    parent: str | None = None
    parent_dataset: str | None = None
    public_pass_rate: float | None = Field(default=None, ge=0, le=1)
    public_pass_rate_source: str | None = None
    names_stated: list[int] | None = None
    key_steps: list[int] | None = None
    events: list[int] | None = None
    merged_segments: int | None = Field(default=None, ge=2)


def parse_config(text: str, shown: str) -> tuple[TaskConfig, TaskMetadata, tuple[str, ...]]:
    """The text of a ``task.toml`` as Harbor's configuration and our own metadata.

    ``shown`` names the file in errors. Third come the fields that neither knows: Harbor ignores
    them, and public tasks have some.

    Raises:
        DepthkitError: no TOML, a misspelt or wrong field, no positive time limit, another
            operating system than Linux, an empty list of steps, or per-segment metadata whose
            length is not the number of segments.
    """
    from harbor.models.task.config import TaskConfig, TaskOS

    raw = parsed("TOML", text, shown)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            # Harbor's validators change what they are given; errors are to quote the original.
            config = TaskConfig.model_validate(copy.deepcopy(raw))
    except ValidationError as error:
        raise _wrong_field(error.errors(include_url=False), raw, (), shown) from error
    ignored = tuple(dict.fromkeys(_unknown_fields(raw, config, (), shown)))
    if config.steps is not None and not config.steps:
        raise DepthkitError(
            f"{shown}: steps is an empty list; add a [[steps]] table for each segment, or "
            "remove it."
        )
    if config.environment.os != TaskOS.LINUX:
        raise DepthkitError(
            f'{shown}: [environment] os is "{config.environment.os.value}"; it must be "linux".'
        )
    _check_time_limits(config, shown)
    return config, _metadata(raw, len(config.steps or [None]), shown), ignored


def _metadata(raw: dict[str, Any], segments: int, shown: str) -> TaskMetadata:
    where = ("metadata", "depthkit")
    table = raw.get("metadata", {}).get("depthkit", {})
    try:
        metadata = TaskMetadata.model_validate(table)
    except ValidationError as error:
        raise _wrong_field(error.errors(include_url=False), raw, where, shown) from error
    for name in ("names_stated", "key_steps", "events"):
        counts = getattr(metadata, name)
        if counts is not None and (len(counts) != segments or min(counts) < 0):
            raise DepthkitError(
                f"{shown}: {_field((*where, name))} is {_quote(counts)}; it must be a list of "
                f"{segments} whole number{'s' if segments > 1 else ''}, one a segment."
            )
    if metadata.label_source and not isinstance(raw["metadata"].get("difficulty"), str):
        raise DepthkitError(
            f"{shown}: {_field((*where, 'label_source'))} says who set [metadata] difficulty, "
            'which must then be text, such as "hard".'
        )
    return metadata


def _check_time_limits(config: TaskConfig, shown: str) -> None:
    limits: list[tuple[tuple[str | int, ...], float | None]] = [
        (("agent", "timeout_sec"), config.agent.timeout_sec),
        (("verifier", "timeout_sec"), config.verifier.timeout_sec),
        (("environment", "build_timeout_sec"), config.environment.build_timeout_sec),
    ]
    for number, step in enumerate(config.steps or []):
        limits.append((("steps", number, "agent", "timeout_sec"), step.agent.timeout_sec))
        limits.append((("steps", number, "verifier", "timeout_sec"), step.verifier.timeout_sec))
    for where, value in limits:
        if value is not None and not (math.isfinite(value) and value > 0):
            raise DepthkitError(
                f"{shown}: {_field(where)} is {value:g}; it must be a positive number of "
                "seconds, such as 600."
            )


# --- errors for people ---


def _unknown_fields(
    raw: dict[str, Any], model: BaseModel, where: tuple[str | int, ...], shown: str
) -> Iterator[str]:
    """Fields that Harbor ignores; a misspelt time limit among them would go unnoticed."""
    fields = type(model).model_fields
    allowed = {*fields, *_OLD_NAMES.get(type(model).__name__, ())}
    for key, value in raw.items():
        if key not in allowed:
            close = difflib.get_close_matches(key, allowed, n=1, cutoff=_NEAR_MISS)
            if close and _fits(fields.get(close[0]), value):
                raise _unknown_field((*where, key), allowed, shown)
            # The same field of several steps is one.
            names = [part for part in (*where, key) if isinstance(part, str)]
            yield f"[[steps]] {'.'.join(names[1:])}" if where[:1] == ("steps",) else _field(names)
        for place, inner_raw, inner in _nested(value, getattr(model, key, None)):
            yield from _unknown_fields(inner_raw, inner, (*where, key, *place), shown)


def _fits(field: FieldInfo | None, value: object) -> bool:
    """Whether a value may be meant for a field: ``[[sources]]`` is no ``source``, which is text."""
    if field is None or field.annotation is None:
        return True  # an old name
    try:
        TypeAdapter(field.annotation).validate_python(copy.deepcopy(value))
    except ValidationError:
        return False
    return True


def _nested(raw: object, value: object) -> Iterator[tuple[tuple[int, ...], Any, BaseModel]]:
    if isinstance(raw, dict) and isinstance(value, BaseModel):
        yield (), raw, value
    elif isinstance(raw, list) and isinstance(value, list):
        for number, (inner_raw, inner) in enumerate(zip(raw, value, strict=False)):
            for place, deeper_raw, deeper in _nested(inner_raw, inner):
                yield (number, *place), deeper_raw, deeper


def _unknown_field(where: Sequence[str | int], allowed: set[str], shown: str) -> DepthkitError:
    close = difflib.get_close_matches(str(where[-1]), sorted(allowed), n=1)
    mend = f"did you mean {close[0]}?" if close else "remove it."
    return DepthkitError(f"{shown}: {_field(where)} is not a field of Harbor tasks; {mend}")


def _wrong_field(
    errors: Sequence[ErrorDetails], raw: dict[str, Any], prefix: tuple[str, ...], shown: str
) -> DepthkitError:
    """The first of pydantic's errors as one sentence: what stands there, and the mend."""
    error = errors[0]
    where, value = _resolve(raw, (*prefix, *error["loc"]), missing=error["type"] == "missing")
    if error["type"] == "missing":
        return DepthkitError(f"{shown}: {_field(where)} is missing; add it.")
    if error["type"] == "extra_forbidden":
        return _unknown_field(where, set(TaskMetadata.model_fields), shown)
    what = f"{_field(where)} is {_quote(value)}" if where else "the file as a whole is wrong"
    return DepthkitError(f"{shown}: {what}; {_mend(error, str(where[-1]) if where else '')}")


def _resolve(
    raw: object, location: Sequence[str | int], *, missing: bool
) -> tuple[tuple[str | int, ...], object]:
    """The part of pydantic's location that exists in the file (it also names union members)."""
    where: list[str | int] = []
    for part in location:
        in_list = isinstance(raw, list) and isinstance(part, int) and part < len(raw)
        if in_list or (isinstance(raw, dict) and part in raw):
            raw = raw[part]  # type: ignore[index]
        elif missing and part == location[-1]:
            pass
        else:
            break
        where.append(part)
    return tuple(where), raw


_KINDS = {
    "bool": "true or false",
    "string": "text in quotes",
    "list": "a list",
    "dict": "a table",
    "model": "a table",
}


def _mend(error: ErrorDetails, name: str) -> str:
    kind = error["type"].split("_")[0]
    if kind in ("float", "int"):
        if name.endswith("_sec"):
            return "it must be a number of seconds, such as 600."
        if name.endswith("_mb"):
            return "it must be a whole number of megabytes, such as 2048."
        return "it must be a number." if kind == "float" else "it must be a whole number."
    if kind in ("literal", "enum"):
        return f"it must be {error['ctx']['expected']}."
    if kind in _KINDS:
        return f"it must be {_KINDS[kind]}."
    message = str(error.get("ctx", {}).get("error", error["msg"]))
    return printable(message).rstrip(".") + "."


def _field(where: Sequence[str | int]) -> str:
    """``[verifier] timeout_sec``, or ``[[steps]] number 2, verifier.timeout_sec`` in a list."""
    names = [printable(str(part)) for part in where]
    for place, part in enumerate(where):
        if isinstance(part, int):
            rest = ".".join(names[place + 1 :])
            head = f"[[{'.'.join(names[:place])}]] number {part + 1}"
            return f"{head}, {rest}" if rest else head
    if len(names) == 1:
        return names[0]
    return f"[{'.'.join(names[:-1])}] {names[-1]}"


def _quote(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else text[:77] + "..."
