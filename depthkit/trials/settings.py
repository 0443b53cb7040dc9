"""Table 3's settings of this harness, read off the code that uses them (Appendix B).

Nothing is written down twice: the agent class is the one that trials import, its limits are those
of its own code, turns and times are the constants that runs are started with.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from depthkit.protocol import CEILING
from depthkit.trials.checks import CHECK_SECONDS
from depthkit.trials.run import AGENT, SEGMENT_SECONDS, time_limit

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


def settings() -> tuple[Settings, Settings]:
    """The two rows "This paper" of Table 3: existing tasks, which have one segment, and ours.

    Raises:
        RuntimeError: The agent's code no longer has a limit where it was.
    """
    agent = _agent_class()
    limits = {
        "harness": agent.name(),
        "output_bytes": _output_bytes(agent),
        "wait_seconds": _wait_seconds(agent),
        "blocks": _blocks(agent),
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


def _agent_class() -> Any:
    """The class that a trial runs, by the path that it is configured with."""
    from importlib import import_module

    module, _, name = AGENT.partition(":")
    return getattr(import_module(module), name)


def _output_bytes(agent: Any) -> int:
    default = inspect.signature(agent._limit_output_length).parameters["max_bytes"].default
    if not isinstance(default, int):
        raise RuntimeError(f"{agent.__name__}._limit_output_length has no limit of its own")
    return default


def _wait_seconds(agent: Any) -> float:
    """The constant in ``min(…duration, N)``, with which the agent bounds what a model asks for."""
    for node in _nodes(agent, "_handle_llm_interaction"):
        match node:
            case ast.Call(
                func=ast.Name(id="min"),
                args=[ast.Attribute(attr="duration"), ast.Constant(value=int() | float() as most)],
            ):
                return most
    raise RuntimeError(f"{agent.__name__} no longer bounds the wait for a command where it did")


def _blocks(agent: Any) -> bool:
    """What the agent passes as ``block`` when it types a command."""
    for node in _nodes(agent, "_execute_commands"):
        match node:
            case ast.keyword(arg="block", value=ast.Constant(value=bool() as blocks)):
                return blocks
    raise RuntimeError(f"{agent.__name__} no longer says whether typing a command blocks")


def _nodes(agent: Any, method: str) -> list[ast.AST]:
    """Syntax of every definition of a method that a call passes through, our own first."""
    return [
        node
        for base in agent.__mro__
        if method in vars(base)
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(vars(base)[method]))))
    ]
