"""Table 3's settings of this harness, read off the code that uses them (Appendix B).

Nothing is written down twice: the agent class is the one that trials import, its limits are read in
its own source, turns and times are the constants that runs are started with.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harbor.models.agent.name import AgentName
from rich.table import Table

from depthkit.protocol import CEILING
from depthkit.trials.checks import CHECK_SECONDS
from depthkit.trials.run import AGENT, SEGMENT_SECONDS, time_limit

_READ = ("depthkit.", "harbor.")
"""Packages in which bases of the agent are looked for."""

PRINTED_SEGMENTS = 6
"""The paper prints the time limit of its tasks with six segments, the 98 of 105."""


@dataclass(frozen=True)
class Settings:
    """One row of Table 3.

    Attributes:
        tasks: Which tasks, as the paper names its two rows.
        harness: Name of the agent.
        time_limit_minutes: Of a task in all.
        output_bytes: Most output shown after a turn, beginning and end kept.
        wait_seconds: Longest wait before the output of a command is returned.
        blocks: Whether a command that still runs is waited for.
        turns: Limit of a run without a stated cap.
    """

    tasks: str
    harness: str
    time_limit_minutes: float
    output_bytes: int
    wait_seconds: float
    blocks: bool
    turns: int

    def cells(self) -> tuple[str, ...]:
        """The row as the paper prints it: harness, time limit, output, wait, turns."""
        wait = f"up to {self.wait_seconds:g} s"
        return (
            self.harness,
            duration(self.time_limit_minutes),
            f"{self.output_bytes:,} bytes",
            f"Blocks {wait}" if self.blocks else f"{wait.capitalize()}, not blocking",
            str(self.turns),
        )


@functools.cache
def settings() -> tuple[Settings, Settings]:
    """The two rows "This paper" of Table 3: existing tasks, which have one segment, and ours.

    Read once a process: it takes a while to parse the agent's source.

    Raises:
        RuntimeError: The agent's code no longer has a limit where it was.
    """
    limits: dict[str, Any] = {
        "harness": _name(),
        "output_bytes": _output_bytes(),
        "wait_seconds": _wait_seconds(),
        "blocks": _blocks(),
        "turns": CEILING,
    }
    return (
        Settings("Ours on existing tasks", time_limit_minutes=time_limit(1) / 60, **limits),
        Settings("Ours", time_limit_minutes=time_limit(PRINTED_SEGMENTS) / 60, **limits),
    )


def published_settings() -> dict[str, float]:
    """Numbers of Table 3 and beside it, by the names that :mod:`depthkit.published` uses.

    Output and wait are those of both rows; the turns are :data:`depthkit.protocol.CEILING`.
    """
    existing, ours = settings()
    return {
        "existing_minutes": existing.time_limit_minutes,
        "ours_hours": ours.time_limit_minutes / 60,
        "ours_hours_5": time_limit(5) / 3600,
        "ours_hours_3": time_limit(3) / 3600,
        "output_bytes": ours.output_bytes,
        "wait_seconds": ours.wait_seconds,
        "check_minutes": CHECK_SECONDS / 60,
    }


def rows() -> list[dict[str, Any]]:
    """Both rows for scripts, each with its printed cells and the limits of fewer segments."""
    found = []
    for row, segments in zip(settings(), ((1,), (6, 5, 3)), strict=True):
        by_segments = {str(k): time_limit(k) / 60 for k in segments}
        found.append(
            asdict(row)
            | {"time_limit_minutes_by_segments": by_segments, "printed": list(row.cells())}
        )
    return found


def settings_table() -> Table:
    """Both rows as the paper prints them, and what it says of fewer segments below."""
    table = Table(box=None, header_style="bold", pad_edge=False, caption_justify="left")
    for heading in ("Tasks", "Harness", "Time limit", "Output", "Wait per command", "Turns"):
        table.add_column(heading)
    for row in settings():
        table.add_row(row.tasks, *row.cells())
    fewer = ", ".join(f"{duration(time_limit(k) / 60)} with {k}" for k in (6, 5, 3))
    table.caption = f"{duration(SEGMENT_SECONDS / 60)} a segment: {fewer} segments."
    return table


def duration(minutes: float) -> str:
    """Minutes below an hour and a half as such, else hours: ``30 min``, ``2.5 h``."""
    return f"{minutes:g} min" if minutes < 90 else f"{minutes / 60:g} h"


def _classes() -> Iterator[ast.ClassDef]:
    """The class that a trial runs, by the path it is configured with, then its bases in turn.

    Read and not imported: the agent takes seconds to import, with all that it needs to call models.
    """
    module, _, name = AGENT.partition(":")
    while True:
        tree = ast.parse(_source(module))
        found = next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name), None)
        if found is None:
            raise RuntimeError(f"{module} has no class {name}")
        yield found
        origins = {
            alias.asname or alias.name: (node.module, alias.name)
            for node in tree.body
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }
        bases = (origins.get(base.id) for base in found.bases if isinstance(base, ast.Name))
        inherited = [origin for origin in bases if origin and origin[0].startswith(_READ)]
        if not inherited:
            return
        module, name = inherited[0]


def _source(module: str) -> str:
    """Source of a module of an installed package, without running the package."""
    package, *parts = module.split(".")
    spec = find_spec(package)
    for part in parts:
        where = spec.submodule_search_locations if spec else None
        package = f"{package}.{part}"
        spec = PathFinder.find_spec(package, where)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"{module} was not found where the agent is read")
    return Path(spec.origin).read_text("utf-8")


def _methods(name: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every definition of a method that a call passes through, our own first."""
    found = [
        node
        for owner in _classes()
        for node in owner.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    ]
    if not found:
        raise RuntimeError(f"{AGENT} has no method {name}")
    return found


def _name() -> str:
    """What ``name()`` of the agent returns: a member of Harbor's list of agents."""
    for node in ast.walk(_methods("name")[0]):
        match node:
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="AgentName"), attr=member)):
                return AgentName[member].value
    raise RuntimeError(f"{AGENT} no longer has its name from Harbor's list of agents")


def _output_bytes() -> int:
    arguments = _methods("_limit_output_length")[0].args
    defaults = dict(zip(reversed(arguments.args), reversed(arguments.defaults), strict=False))
    for argument, default in defaults.items():
        match argument.arg, default:
            case "max_bytes", ast.Constant(value=int() as most):
                return most
    raise RuntimeError(f"_limit_output_length of {AGENT} has no limit of its own")


def _wait_seconds() -> float:
    """The constant in ``min(…duration, N)``, with which the agent bounds what a model asks for."""
    for node in _nodes("_handle_llm_interaction"):
        match node:
            case ast.Call(
                func=ast.Name(id="min"),
                args=[ast.Attribute(attr="duration"), ast.Constant(value=int() | float() as most)],
            ):
                return most
    raise RuntimeError(f"{AGENT} no longer bounds the wait for a command where it did")


def _blocks() -> bool:
    """What the agent passes as ``block`` when it types a command."""
    for node in _nodes("_execute_commands"):
        match node:
            case ast.keyword(arg="block", value=ast.Constant(value=bool() as blocks)):
                return blocks
    raise RuntimeError(f"{AGENT} no longer says whether typing a command blocks")


def _nodes(method: str) -> list[ast.AST]:
    return [node for definition in _methods(method) for node in ast.walk(definition)]
