"""Labels and notes: on a task or a run, with the forms that change them; in lists; as filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from depthkit.dashboard import html
from depthkit.dashboard.html import Context
from depthkit.dashboard.labels import MOST_LABEL, MOST_NOTE
from depthkit.dashboard.listing import View
from depthkit.dashboard.marked import ANY, Marked, Marks, labels_used, notes_count
from depthkit.dashboard.text import block, exact, plain

_MOST_SAID = 200


def marks(context: Context, dataset: str, task_id: str, run_id: str | None) -> str:
    """Labels and notes of a task, or of a run of it."""
    rows = context.snapshot.rows(
        "SELECT * FROM labels WHERE dataset = ? AND task_id = ? AND run_id IS NOT DISTINCT FROM ? "
        'ORDER BY "at", text',
        [dataset, task_id, run_id],
    )
    static = context.site.static
    target = "".join(
        f'<input type="hidden" name="{name}" value="{exact(value)}">'
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
            f'<input type="hidden" name="text" value="{exact(text)}">'
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
    all_notes = f'<a href="{context.page(page, note=ANY)}">all {page} with notes</a>'
    shown = (f'<ul class="labels">{labels}</ul>' if labels else "") + (
        f'<ul class="notes">{notes}<li>{all_notes}</li></ul>' if notes else ""
    )
    if static:
        return f'<section class="marks" aria-label="Labels">{shown}</section>' if shown else ""
    known = "".join(f'<option value="{exact(name)}">' for name, _ in labels_used(context.snapshot))
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


def chips(context: Context, page: str, marks: Marks) -> str:
    """Labels of a row of a list, each a link to those that have it, and whether it has notes."""
    parts = [
        f' <a class="label" href="{context.page(page, label=name)}">{plain(name)}</a>'
        for name in marks.labels
    ]
    if marks.notes:
        said = " · ".join(marks.notes)
        said = said[:_MOST_SAID] + "…" * (len(said) > _MOST_SAID)
        word = "note" if len(marks.notes) == 1 else f"{len(marks.notes)} notes"
        href = context.page(page, note=ANY)
        parts.append(f' <a class="label noted" href="{href}" title="{plain(said)}">{word}</a>')
    return "".join(parts)


def mark_filters(context: Context, page: str, view: View, hidden: Sequence[tuple[str, str]]) -> str:
    """Labels and notes among the filters of a list; nothing where there are none.

    Args:
        context: The corpus.
        page: Of the list.
        view: What it shows.
        hidden: What a form must take along.
    """
    marked = view.marked

    def item(changed: Marked, without: Marked, said: str, n: int) -> str:
        chosen = changed == marked
        # A second click takes it back.
        query = view.query(marked=without if chosen else changed, page=1)
        href = context.page(page, query)
        return f'<li><a href="{href}"{html.pressed(chosen)}>{said} <small>{n:,}</small></a></li>'

    parts = []
    without = replace(marked, label="")
    items = "".join(
        item(replace(marked, label=name), without, f'<span class="label">{plain(name)}</span>', n)
        for name, n in labels_used(context.snapshot)
    )
    if items:
        parts.append(f"<details open><summary>Label</summary><ul>{items}</ul></details>")
    if (notes := notes_count(context.snapshot)) or marked.note:
        text = "" if marked.note == ANY else marked.note
        any_ = item(replace(marked, note=ANY), replace(marked, note=""), "any note", notes)
        parts.append(
            f"<details open><summary>Note</summary><ul>{any_}</ul>"
            f'<form class="search" action="{context.page(page)}"><input type="search" name="note" '
            f'value="{exact(text)}" aria-label="Text in a note" placeholder="text in a note">'
            f"{html.hidden(hidden, 'note')}<button>Apply</button></form></details>"
        )
    return "".join(parts)


def mark_fields(context: Context, marked: Marked) -> str:
    """The same as fields of a form; nothing where there are no labels and notes."""
    names = [name for name, _ in labels_used(context.snapshot)]
    if marked.label and marked.label not in names:
        names.append(marked.label)
    fields = ""
    if names:
        options = "".join(
            f'<option value="{exact(name)}"{" selected" if name == marked.label else ""}>'
            f"{plain(name)}</option>"
            for name in names
        )
        fields = (
            '<select name="label" aria-label="label"><option value="">label: all</option>'
            f"{options}</select>"
        )
    if marked.note or notes_count(context.snapshot):
        fields += (
            f'<input name="note" value="{exact(marked.note)}" size="14" '
            f'aria-label="Text in a note, {ANY} for any note" '
            f'placeholder="text in a note, or {ANY}">'
        )
    return fields
