"""One function for each table and figure of the papers.

Each computes from a corpus alone; :mod:`depthkit.artifacts.claims` compares what they give with
what the papers print.
"""

from depthkit.artifacts.artifact import Artifact, Figure, Table, artifact, build, ids
from depthkit.artifacts.at_cap import at_cap_text
from depthkit.artifacts.audit import audit_table, audit_text
from depthkit.artifacts.cost import run_cost_table
from depthkit.artifacts.depth_work import depth_work_figure
from depthkit.artifacts.difficulty import difficulty_figure, difficulty_text
from depthkit.artifacts.failed_runs import failed_runs_figure
from depthkit.artifacts.labels import labels_figure
from depthkit.artifacts.sampling import reweighting_table, sampling_table
from depthkit.artifacts.second_model import model_set_figure, second_model_figure
from depthkit.artifacts.work_measures import work_measures_figure

__all__ = [
    "Artifact",
    "Figure",
    "Table",
    "artifact",
    "at_cap_text",
    "audit_table",
    "audit_text",
    "build",
    "depth_work_figure",
    "difficulty_figure",
    "difficulty_text",
    "failed_runs_figure",
    "ids",
    "labels_figure",
    "model_set_figure",
    "reweighting_table",
    "run_cost_table",
    "sampling_table",
    "second_model_figure",
    "work_measures_figure",
]
