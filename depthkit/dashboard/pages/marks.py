"""Labels and notes on a task or a run, with the forms that change them."""

from __future__ import annotations

from depthkit.dashboard.html import Context
from depthkit.dashboard.labels import MOST_LABEL, MOST_NOTE
from depthkit.dashboard.listing import labels_used
from depthkit.dashboard.text import block, plain


def marks(context: Context, dataset: str, task_id: str, run_id: str | None) -> str:
    """Labels and notes of a task, or of a run of it."""
    rows = context.snapshot.rows(
        "SELECT * FROM labels WHERE dataset = ? AND task_id = ? AND run_id IS NOT DISTINCT FROM ? "
        'ORDER BY "at", text',
        [dataset, task_id, run_id],
    )
    static = context.site.static
    target = "".join(
        f'<input type="hidden" name="{name}" value="{plain(value)}">'
        for name, value in (("dataset", dataset), ("task", task_id), ("run", run_id))
        if value is not None
    )
    action = f'<form method="post" action="{context.data("labels")}">{target}'

    def remove(kind: str, text: str) -> str:
        if static:
            return ""
        return (
            f'{action}<input type="hidden" name="action" value="remove">'
            f'<input type="hidden" name="kind" value="{kind}">'
            f'<input type="hidden" name="text" value="{plain(text)}">'
            f'<button class="quiet" aria-label="Remove {kind} {plain(text)}">&times;</button>'
            "</form>"
        )

    page = "tasks" if run_id is None else "runs"
    labels = "".join(
        f'<li><a class="label" href="{context.page(page, label=row["text"])}">'
        f"{plain(row['text'])}</a>{remove('label', row['text'])}</li>"
        for row in rows
        if row["kind"] == "label"
    )
    notes = "".join(
        f"<li><p>{block(row['text'])}</p><small>{plain((row['at'] or '')[:16].replace('T', ' '))}"
        f"</small>{remove('note', row['text'])}</li>"
        for row in rows
        if row["kind"] == "note"
    )
    shown = (f'<ul class="labels">{labels}</ul>' if labels else "") + (
        f'<ul class="notes">{notes}</ul>' if notes else ""
    )
    if static:
        return f'<section class="marks" aria-label="Labels">{shown}</section>' if shown else ""
    known = "".join(f'<option value="{plain(name)}">' for name, _ in labels_used(context.snapshot))
    forms = (
        f'{action}<input type="hidden" name="kind" value="label">'
        f'<input name="text" list="labels-known" maxlength="{MOST_LABEL}" required '
        'placeholder="label" aria-label="New label"><button>Add label</button></form>'
        f'<datalist id="labels-known">{known}</datalist>'
        f'<details><summary>Note</summary>{action}<input type="hidden" name="kind" value="note">'
        f'<textarea name="text" rows="3" maxlength="{MOST_NOTE}" required aria-label="New note">'
        "</textarea><button>Add note</button></form></details>"
    )
    return f'<section class="marks" aria-label="Labels and notes">{shown}{forms}</section>'
