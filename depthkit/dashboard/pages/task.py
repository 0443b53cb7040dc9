"""A task's page: what it asks, its work, and its ladder."""

from __future__ import annotations

from typing import Any

from depthkit.artifacts.model_styles import label as model_label
from depthkit.artifacts.tables import MISSING
from depthkit.dashboard import html, taskdir
from depthkit.dashboard.html import Context
from depthkit.dashboard.ladder import Cell, Ladder, Rung, ladder, run_class, run_word
from depthkit.dashboard.listing import Query
from depthkit.dashboard.pages.beside import derived, replays
from depthkit.dashboard.pages.marks import marks
from depthkit.dashboard.pages.solution import code, solution
from depthkit.dashboard.source import ENDINGS
from depthkit.dashboard.text import block, plain
from depthkit.protocol import depth_text

_HINT = (
    '<p class="hint">Its directory is not known here; <code>depthkit dashboard --tasks DIR</code> '
    "shows the solution and the checks too.</p>"
)


def task_page(context: Context, query: Query) -> str:
    """The page of the task that ``dataset`` and ``task`` name."""
    dataset = (query.get("dataset") or [""])[0]
    task_id = (query.get("task") or [""])[0]
    task = context.snapshot.task(dataset, task_id)
    if task is None:
        body = (
            f"<h1>{plain(task_id or 'No task')}</h1><p class=empty>This corpus has no such task. "
            f'<a href="{context.page("tasks")}">All tasks</a>.</p>'
        )
        return html.document(context, "tasks", "No such task", body)
    rungs = ladder(context.snapshot, dataset, task_id)
    body = (
        f'<p class="crumbs"><a href="{context.page("tasks")}">Tasks</a> / '
        f'<a href="{context.page("tasks", dataset=dataset)}">'
        f"{html.dataset(context, dataset)}</a></p>"
        f"<h1>{plain(task_id)}</h1>{_numbers(context, task)}"
        f"{marks(context, dataset, task_id, None)}"
        f"{_ladder(context, task, rungs)}{_others(context, rungs)}"
        f"{derived(context, dataset, task_id)}{replays(context, dataset, task_id)}"
        f"{_about(context, task)}{_directory(context, task)}"
    )
    return html.document(context, "tasks", task_id, body)


def _numbers(context: Context, task: dict[str, Any]) -> str:
    caps = context.snapshot.caps
    depth = depth_text(task["D"], caps) or MISSING
    if task["D"] is not None and not task["final"]:
        depth += " so far"
    source = {"run": " (of a run's commands)"}.get(task["work_from"] or "", "")
    items = [
        ("D", depth, "Depth: the smallest cap under which it is passed"),
        ("N", html.written(task["N"], "number"), "Turns of the shorter passing free run"),
        ("W", html.written(task["W"], "number") + source, "Work: lines of the reference solution"),
        ("R", html.written(task["R"], "share"), "Share of the two free runs that pass"),
        ("Passes", html.passes(task, f" of {task['valid']}"), "Of runs with a result"),
        ("Estimate", task["state"], "Whether further runs could change it"),
    ]
    if task["public_pass_rate"] is not None:
        items.append(("Pass rate", f"{task['public_pass_rate']:.0%}", "As released by others"))
    return (
        '<dl class="numbers">'
        + "".join(
            f'<div title="{plain(about)}"><dt>{name}</dt><dd>{plain(value)}</dd></div>'
            for name, value, about in items
        )
        + "</dl>"
    )


def _ladder(context: Context, task: dict[str, Any], found: Ladder) -> str:
    if not found.rungs:
        return '<h2>Ladder</h2><p class="empty">No free or ladder runs yet.</p>'
    heads = "".join(f"<th scope=col>{'no cap' if cap is None else cap}</th>" for cap in found.caps)
    rows = "".join(_rung(context, rung, found.n_run) for rung in found.rungs)
    used = {run_class(r) for rung in found.rungs for cell in rung.cells for r in cell.runs}
    legend = "".join(
        f'<li><span class="key end-{name.replace(" ", "-")}"></span>{plain(text)}</li>'
        for name, text in ENDINGS.items()
        if name.replace(" ", "-") in used
    )
    if "suspect" in used:
        legend += '<li><span class="key end-suspect"></span>passed, but suspect</li>'
    href = context.page("runs", of_dataset=task["dataset"], of_task=task["task_id"])
    return (
        f'<h2>Ladder <a class="tool" href="{href}">all {task["runs"]:,} runs</a></h2>'
        '<div class="scroll" tabindex="0" role="region" aria-label="Ladder"><table class="ladder">'
        f"<thead><tr><th scope=col>Turn cap</th>{heads}<th scope=col>D</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
        f'<ul class="legend">{legend}<li class="what">A number in a cell is the turns of that run; '
        "the framed column is D, the run marked N gives N.</li></ul>"
    )


def _rung(context: Context, rung: Rung, n_run: str | None) -> str:
    place = f' <small title="Place in the model set">{rung.place}.</small>' if rung.place else ""
    cells = "".join(_cell(context, cell, rung.model, n_run) for cell in rung.cells)
    return (
        f'<tr><th scope=row title="{plain(rung.model)}">{place} '
        f"{plain(model_label(rung.model))}</th>"
        f"{cells}<td class=depth>{plain(rung.depth or MISSING)}</td></tr>"
    )


def _cell(context: Context, cell: Cell, model: str, n_run: str | None) -> str:
    links = "".join(_run(context, run, n_run) for run in cell.runs)
    classes = " ".join(
        name
        for name, holds in {"is-depth": cell.is_depth, "free": cell.cap is None}.items()
        if holds
    )
    empty = f"<td class='{classes}'><span class=none title='{plain(model)}: no run'>·</span></td>"
    return f"<td class='{classes}'>{links}</td>" if links else empty


def _run(context: Context, run: dict[str, Any], n_run: str | None) -> str:
    cap = "no cap" if run["cap"] is None else f"cap {run['cap']}"
    said = (
        f"{model_label(run['model'])}, {cap}, try {run['attempt']}: "
        f"{ENDINGS[run['ending']]}{html.doubt(run, ' ({})')}, stop {run['stop']}, "
        f"{html.written(run['turns'], 'number')} turns"
    )
    is_n = run["run_id"] == n_run
    word = run_word(run)
    mark = "<sup>N</sup>" if is_n else ""
    return (
        f'<a class="run end-{run_class(run)}" href="{context.run(run["run_id"])}" '
        f'title="{plain(said)}" aria-label="{word}{"N" if is_n else ""}: {plain(said)}">'
        f"{word}{mark}</a>"
    )


def _others(context: Context, found: Ladder) -> str:
    if not found.others:
        return ""
    rows = []
    for purpose, runs in sorted(found.others.items()):
        models = sorted({run["model"] for run in runs})
        for model in models:
            cells = "".join(_run(context, run, None) for run in runs if run["model"] == model)
            rows.append(
                [plain(purpose), plain(model_label(model)), f"<div class=cells>{cells}</div>"]
            )
    table = html.table(["Purpose", "Model", "Runs"], rows, label="Other runs")
    return f"<h2>Other runs</h2>{table}"


def _about(context: Context, task: dict[str, Any]) -> str:
    named = {
        "Group": task["family"],
        "Segments": task["k"],
        "Category": task["category"],
        "Author's rating": task["author_rating"],
        "Generated label": task["generated_label"],
        "Instruction words": task["instruction_words"],
        "Work": _work(task),
        "Seed environment": task["seed_env"],
        "Derived from": task["parent"],
        "Provenance": task["provenance"],
    }
    items = "".join(
        f"<dt>{name}</dt><dd>{_linked(context, task, name, value)}</dd>"
        for name, value in named.items()
        if value not in (None, "")
    )
    return f'<h2>About</h2><dl class="facts">{items}</dl>'


def _work(task: dict[str, Any]) -> str | None:
    if task["work_tokens"] is None or task["W"] is None:
        return None
    parts = (
        (task["W"], "lines"),
        (task["work_tokens"], "tokens"),
        (task["work_chars"], "characters"),
    )
    return ", ".join(f"{number or 0:,} {unit}" for number, unit in parts)


def _linked(context: Context, task: dict[str, Any], name: str, value: Any) -> str:
    text = plain(value)
    dataset = task["parent_dataset"] or task["dataset"]
    if name == "Derived from" and context.snapshot.task(dataset, str(value)):
        return f'<a href="{context.task(dataset, str(value))}">{text}</a>'
    return text


def _directory(context: Context, task: dict[str, Any]) -> str:
    found = taskdir.find(context.source, task["dataset"], task["task_id"])
    if found is None:
        told = taskdir.told(context.source, context.snapshot, task["dataset"], task["task_id"])
        hint = "" if context.site.static else _HINT
        if told is None:
            return f"<h2>Instruction</h2>{hint}" if hint else ""
        run_id, text = told
        href = context.run(run_id)
        return (
            f'<h2>Instruction <small>as <a href="{href}">a run</a> was told</small></h2>'
            f"<pre class=file tabindex=0>{block(text)}</pre>{hint}"
        )
    parts = [html.problems(found.problems)]
    for number, segment in enumerate(found.segments, start=1):
        name = f" of segment {number}: {plain(segment.name)}" if len(found.segments) > 1 else ""
        parts.append(
            f"<h2>Instruction{name}</h2>"
            f"<pre class=file tabindex=0>{block(segment.instruction)}</pre>"
        )
        parts += [
            solution(f"Solution{name}", file, text, number) for file, text in segment.solution
        ]
        parts += [code(f"Checks{name}", file, text) for file, text in segment.checks]
    if found.environment:
        parts.append("<h2>Environment</h2>")
    parts += [code("", file, text) for file, text in found.environment]
    return "".join(parts)
