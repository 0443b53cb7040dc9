"""How far a notebook has run, cell by cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from papermill.engines import NBClientEngine, papermill_engines

NAME = "depthkit-cells"
"""Of the engine; it calls ``told`` with how many cells have run, and of how many."""


class CellsEngine(NBClientEngine):  # type: ignore[misc]  # papermill has no types
    """Papermill's own engine, which also says when a cell has run."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: Any, kernel_name: str, *, told: Callable[[int, int], object], **kwargs: Any
    ) -> Any:
        """Run the cells in order."""
        complete, cells = nb_man.cell_complete, len(nb_man.nb.cells)

        def cell_complete(cell: Any, cell_index: int | None = None, **more: Any) -> None:
            complete(cell, cell_index=cell_index, **more)
            told((cell_index or 0) + 1, cells)

        nb_man.cell_complete = cell_complete
        return super().execute_managed_notebook(nb_man, kernel_name, **kwargs)


papermill_engines.register(NAME, CellsEngine)
