"""One function for each table and figure of the papers.

Each computes from a corpus alone; :mod:`depthkit.artifacts.claims` compares what they give with
what the papers print.
"""

from depthkit.artifacts.artifact import Artifact, Figure, Table, artifact, build, ids
from depthkit.artifacts.at_cap import at_cap_text
from depthkit.artifacts.audit import audit_table, audit_text
from depthkit.artifacts.checks import checks_table
from depthkit.artifacts.cost import run_cost_table
from depthkit.artifacts.depth_work import depth_work_figure
from depthkit.artifacts.difficulty import difficulty_figure, difficulty_text
from depthkit.artifacts.example_task import example_table
from depthkit.artifacts.failed_runs import failed_runs_figure
from depthkit.artifacts.labels import labels_figure
from depthkit.artifacts.merging import merging_figure
from depthkit.artifacts.model_results import models_table, models_text
from depthkit.artifacts.of_the_code import check_library_table, harness_table
from depthkit.artifacts.originals import originals_figure
from depthkit.artifacts.our_data import our_data_text, our_tasks_text, task_size_table
from depthkit.artifacts.run_ends import evaluation_text, run_ends_figure
from depthkit.artifacts.sampling import reweighting_table, sampling_table
from depthkit.artifacts.second_model import model_set_figure, second_model_figure
from depthkit.artifacts.segments import segments_figure
from depthkit.artifacts.training import training_figure, training_text
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
    "check_library_table",
    "checks_table",
    "depth_work_figure",
    "difficulty_figure",
    "difficulty_text",
    "evaluation_text",
    "example_table",
    "failed_runs_figure",
    "harness_table",
    "ids",
    "labels_figure",
    "merging_figure",
    "model_set_figure",
    "models_table",
    "models_text",
    "originals_figure",
    "our_data_text",
    "our_tasks_text",
    "reweighting_table",
    "run_cost_table",
    "run_ends_figure",
    "sampling_table",
    "second_model_figure",
    "segments_figure",
    "task_size_table",
    "training_figure",
    "training_text",
    "work_measures_figure",
]
