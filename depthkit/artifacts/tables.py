"""How tables look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

MISSING = "\N{EN DASH}"
"""Stands for a number that is not known."""

FONTS = ["Source Sans 3", "Segoe UI", "Helvetica Neue", "Arial", "sans-serif"]


def formatted(values: pd.Series, form: str) -> list[str]:
    """Numbers as text, such as ``{:.1f}``; :data:`MISSING` where one is not known."""
    return [MISSING if pd.isna(value) else form.format(value) for value in values]


def plain_table(
    shown: pd.DataFrame,
    table_id: str,
    *,
    rows: str,
    groups: str | None = None,
    left: tuple[str, ...] = (),
    spanners: Mapping[str, tuple[str, ...]] | None = None,
) -> Any:
    """A table of text as the papers set them: rules above and below, numbers to the right.

    Args:
        shown: Text as it is to be read; Great Tables escapes it.
        table_id: Unique on a page, so that tables keep their own style.
        rows: Column of row names.
        groups: Column of headings above rows, if there are any.
        left: Columns set to the left because they hold words.
        spanners: Headings above several columns; what stands in brackets in the name of such a
            column is not printed.

    Returns:
        A ``great_tables.GT``.
    """
    from great_tables import GT

    words = [rows, *left]
    numbers = [column for column in shown if column not in (*words, groups)]
    table = GT(shown, id=table_id, rowname_col=rows, groupname_col=groups)
    for heading, columns in (spanners or {}).items():
        table = table.tab_spanner(heading, list(columns)).cols_label(
            {column: column.partition(" (")[0] for column in columns}
        )
    return (
        table.tab_stubhead(rows)
        .cols_align("right", numbers)
        .cols_align("left", list(left))
        .tab_options(
            table_font_names=FONTS,
            table_font_size="15px",
            table_margin_left="0",
            table_border_top_style="solid",
            table_border_top_width="2px",
            table_border_top_color="#333333",
            table_border_bottom_style="solid",
            table_border_bottom_width="2px",
            table_border_bottom_color="#333333",
            column_labels_font_weight="bold",
            row_group_font_weight="bold",
            row_group_background_color="#F5F5F5",
            data_row_padding="5px",
            stub_border_style="none",
            table_body_hlines_color="#EEEEEE",
        )
    )
