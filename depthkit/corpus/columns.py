"""Typed columns of record files: read with Arrow, checked as columns, cached as Parquet.

A file of 100,000 lines becomes a table without a Python object a line. What the columns cannot
vouch for is read again line by line through the record type, which names the line and the field.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import os
import re
import types
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.parquet as pq
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

import depthkit
from depthkit.corpus.files import one_line
from depthkit.errors import DepthkitError
from depthkit.model import NO_RESULT_STOPS, Record, Run

log = logging.getLogger(__name__)

_KEY = b"depthkit.key"
_PACKAGE = Path(depthkit.__file__).parent

_SCALARS: dict[Any, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    datetime: pa.string(),
}


@functools.cache
def code_digest(*modules: str) -> str:
    """SHA-256 of source files of this package and of those that every table is made with.

    Part of the key of whatever is derived, so that no cache outlives the code that made it.

    Args:
        modules: Paths in the package, such as ``corpus/estimates.py``.
    """
    total = hashlib.sha256()
    for name in ("model.py", "corpus/columns.py", *modules):
        total.update((_PACKAGE / name).read_bytes() + b"\0")
    return total.hexdigest()


def schema(model: type[BaseModel]) -> pa.Schema:
    """Arrow schema of a record type as it stands in JSON (times are strings)."""
    return pa.schema([(name, _type(info.annotation)) for name, info in model.model_fields.items()])


def table_schema(model: type[BaseModel]) -> pa.Schema:
    """Arrow schema of a record type as a table (times are microseconds in UTC)."""
    fields = [
        pa.field(f.name, pa.timestamp("us", "UTC")) if f.name in _times(model) else f
        for f in schema(model)
    ]
    return pa.schema(fields)


def _type(annotation: Any) -> pa.DataType:
    """Arrow type of a field: scalars, literals, optionals, tuples, dictionaries and records."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        (inner,) = [arg for arg in args if arg is not type(None)]
        return _type(inner)
    if origin is Literal:
        return pa.string()
    if origin is Annotated:
        return _type(args[0])
    if origin is tuple:
        return pa.list_(_type(args[0]))
    if origin is dict:
        return pa.map_(_type(args[0]), _type(args[1]))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return pa.struct(list(schema(annotation)))
    return _SCALARS[annotation]


def _times(model: type[BaseModel]) -> set[str]:
    return {
        name
        for name, info in model.model_fields.items()
        if datetime in (info.annotation, *get_args(info.annotation))
    }


def read_table(lines: bytes, model: type[Record], path: Path) -> pa.Table:
    """Typed table of the lines of a record file.

    Raises:
        DepthkitError: A line is bad; the message names file, line, field and mend.
    """
    if not lines.strip():
        return table_schema(model).empty_table()
    maps = [field for field in schema(model) if pa.types.is_map(field.type)]
    try:
        table = pj.read_json(
            pa.BufferReader(lines),
            # Threads would hold many blocks at once, and save little beside all else.
            read_options=pj.ReadOptions(
                block_size=max(1 << 22, len(lines) // 16), use_threads=False
            ),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema([f for f in schema(model) if f not in maps]),
                unexpected_field_behavior="infer" if maps else "error",
            ),
        )
        table.validate(full=True)  # above all, that its text is UTF-8
        for field in maps:
            table = _with_map(table, field, lines)
        if set(table.column_names) == set(model.model_fields) and _looks_right(table, model):
            return _with_times(table, model)
    except (pa.ArrowException, ValueError) as error:
        log.debug("%s: %s; reading it line by line", path, error)
    return _with_times(_line_by_line(lines, model, path), model)


def _with_map(table: pa.Table, field: pa.Field, lines: bytes) -> pa.Table:
    """The table with an object of any keys, of which Arrow has made a struct of all, as a map.

    Raises:
        ValueError: A value is no number; null would look like a key that is not there.
    """
    at = table.schema.get_field_index(field.name)
    if at < 0 or pa.types.is_null(table.schema.field(at).type):
        table = table.drop_columns([field.name]) if at >= 0 else table
        return table.append_column(field, pa.nulls(len(table), field.type))
    found = table.schema.field(at).type
    null = rb'"%s"\s*:\s*\{[^{}]*:\s*(null|NaN|-?Inf)' % field.name.encode()
    numbers = pa.types.is_struct(found) and all(_is_number(inner.type) for inner in found)
    if not numbers or re.search(null, lines):
        raise ValueError(f"{field.name} is not numbers by name")
    names = np.array([inner.name for inner in found], dtype=object)
    chunks = []
    for chunk in table[field.name].chunks:
        columns = chunk.flatten()
        there = np.array([c.is_valid() for c in columns], dtype=bool).reshape(-1, len(chunk)).T
        values = np.array([c.cast(pa.float64()) for c in columns]).reshape(-1, len(chunk)).T
        ends = np.append(0, there.sum(axis=1).cumsum())
        gone = np.append(~chunk.is_valid().to_numpy(zero_copy_only=False), False)
        offsets = pa.array(ends, pa.int32(), mask=gone)
        keys = names[np.nonzero(there)[1]]
        chunks.append(pa.MapArray.from_arrays(offsets, pa.array(keys, pa.string()), values[there]))
    return table.set_column(at, field, pa.chunked_array(chunks, field.type))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _looks_right(table: pa.Table, model: type[Record]) -> bool:
    """Check the columns as the record type would."""
    for name, info in model.model_fields.items():
        column = table[name]
        if (info.is_required() or info.default is not None) and column.null_count:
            return False
        if choices := _choices(info.annotation):
            allowed = pc.is_in(column, value_set=pa.array(choices))
            if not pc.all(pc.or_(allowed, pc.is_null(column))).as_py():
                return False
        if not _within_bounds(column, info):
            return False
    if model is Run:
        no_result = pc.is_in(table["stop"], value_set=pa.array(sorted(NO_RESULT_STOPS)))
        if pc.any(pc.and_(no_result, pc.not_equal(table["verdict"], "none"))).as_py():
            return False
    return True


def _choices(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [choice for arg in get_args(annotation) if arg is not ... for choice in _choices(arg)]


def _within_bounds(column: pa.ChunkedArray, info: FieldInfo) -> bool:
    if not _is_number(column.type):
        return True
    low, high = pc.min(column).as_py(), pc.max(column).as_py()
    if low is None:
        return True
    bounds = info.metadata
    return all(
        (not isinstance(b, annotated_types.Ge) or low >= b.ge)
        and (not isinstance(b, annotated_types.Le) or high <= b.le)
        for b in bounds
    )


def _with_times(table: pa.Table, model: type[Record]) -> pa.Table:
    """Turn time strings into UTC timestamps; one without a zone is taken to be UTC."""
    for name in _times(model):
        parsed = pd.to_datetime(table[name].to_pandas(), utc=True, format="ISO8601")
        column = pa.array(parsed, type=pa.timestamp("us", "UTC"), from_pandas=True)
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table.select(list(model.model_fields)).cast(table_schema(model))


def _line_by_line(lines: bytes, model: type[Record], path: Path) -> pa.Table:
    """Read through the record type, to name the first bad line or to accept what it accepts."""
    records = [
        record_of(line, model, path, number)
        for number, line in enumerate(lines.split(b"\n"), start=1)
        if line.strip()
    ]
    rows = [record.model_dump(mode="json") for record in records]
    try:
        return pa.Table.from_pylist(rows, schema=schema(model))
    except (pa.ArrowException, OverflowError) as error:
        raise DepthkitError(
            f"{path}: a number does not fit into 64 bits ({one_line(error, 120)}); correct it."
        ) from error


def record_of[R: Record](line: bytes, model: type[R], path: Path, number: int) -> R:
    """One record from one line.

    Raises:
        DepthkitError: Naming file, line, field and mend.
    """
    try:
        return model.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        if not place or first["type"] == "json_invalid":
            text = (
                f"{path} line {number}: not a {model.__name__} as JSON ({one_line(first['msg'])})"
            )
            raise DepthkitError(f"{text}; correct or delete this line.") from error
        given = "" if first["type"] == "missing" else f" is {one_line(_shown(first['input']), 80)}"
        raise DepthkitError(
            f"{path} line {number}: {place}{given}: {one_line(first['msg'])}; correct this field "
            "or delete the line."
        ) from error


def _shown(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)


def to_frame(table: pa.Table) -> pd.DataFrame:
    """Pandas frame: whole numbers and truth values that may be missing keep their type."""
    mapper = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    frame: pd.DataFrame = table.to_pandas(types_mapper=mapper.get, maps_as_pydicts="strict")
    return frame


def cached(path: Path, key: str, build: Callable[[], pa.Table]) -> pa.Table:
    """The table at ``path`` if it was made from ``key``, else ``build()``, kept for next time."""
    wanted = f"{code_digest()}:{key}".encode()
    try:
        if (pq.read_schema(path).metadata or {}).get(_KEY) == wanted:
            return pq.read_table(path, partitioning=None)
    except FileNotFoundError:
        pass
    except (OSError, pa.ArrowException) as error:
        log.warning("%s: not usable (%s), made again.", path, one_line(error, 120))
    table = build()
    write_parquet(table.replace_schema_metadata({_KEY: wanted}), path)
    return table


def write_parquet(table: pa.Table, path: Path) -> bool:
    """Write a derived table whole or not at all; without room or permission the cache is skipped.

    Returns:
        Whether it was written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(exist_ok=True)
        pq.write_table(table, temporary, compression="zstd")
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):  # There may be none, or no directory for it.
            temporary.unlink()
        log.info("%s: cache not written (%s).", path, error.strerror or error)
        return False
    return True
