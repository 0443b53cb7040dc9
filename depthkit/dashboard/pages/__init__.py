"""The pages, each a function from a corpus and the query of its address to escaped HTML."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from depthkit.dashboard.html import Context
from depthkit.dashboard.listing import Query
from depthkit.dashboard.pages.compare import compare_page
from depthkit.dashboard.pages.files import file_page
from depthkit.dashboard.pages.lists import export_csv, list_page
from depthkit.dashboard.pages.overview import claims_part, overview_page
from depthkit.dashboard.pages.reports import reports_page
from depthkit.dashboard.pages.run import run_page
from depthkit.dashboard.pages.search import search_page
from depthkit.dashboard.pages.task import task_page
from depthkit.dashboard.pages.turnlist import whole_output

__all__ = ["PAGES", "claims_part", "export_csv", "reports_page", "whole_output"]


def _list(page: str, context: Context, query: Query) -> str:
    return list_page(context, page, query)


PAGES: dict[str, Callable[[Context, Query], str | None]] = {
    "overview": overview_page,
    "tasks": partial(_list, "tasks"),
    "task": task_page,
    "runs": partial(_list, "runs"),
    "run": run_page,
    "file": file_page,
    "search": search_page,
    "compare": compare_page,
}
"""By their name in addresses; a page that gives ``None`` is not there."""
