"""``depthkit …``: thin, one function a command; what a command needs is imported when it runs."""

# ruff: noqa: I001 - imported in the order in which --help lists the commands
from depthkit.cli import (
    tasks,
    trials,
    replaying,
    sampling,
    merging,
    generation,
    corpus,
    dashboard,
    models,
    fitting,
    reports,
)
from depthkit.cli.base import app

__all__ = [
    "app",
    "corpus",
    "dashboard",
    "fitting",
    "generation",
    "merging",
    "models",
    "replaying",
    "reports",
    "sampling",
    "tasks",
    "trials",
]
