"""Notebooks to HTML pages that open offline; only what is stale runs.

``reports/reports.yaml`` says which notebook with which parameters makes which report. Each report
is a directory ``build/NAME/`` that is replaced as a whole once its notebook has run through, so
that a failing notebook leaves the last good report.
"""

from depthkit.reports.listing import (
    Report,
    check_parameters,
    find_project,
    load_reports,
    read_value,
)
from depthkit.reports.making import Outcome, make_reports

__all__ = [
    "Outcome",
    "Report",
    "check_parameters",
    "find_project",
    "load_reports",
    "make_reports",
    "read_value",
]
