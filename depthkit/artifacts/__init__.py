"""One function for each table and figure of the papers.

Each computes from a corpus alone; :mod:`depthkit.artifacts.claims` compares what they give with
what the papers print.
"""

from depthkit.artifacts.artifact import Artifact, Figure, Table, artifact, build, ids
from depthkit.artifacts.audit import audit_table, audit_text
from depthkit.artifacts.depth_work import depth_work_figure

__all__ = [
    "Artifact",
    "Figure",
    "Table",
    "artifact",
    "audit_table",
    "audit_text",
    "build",
    "depth_work_figure",
    "ids",
]
