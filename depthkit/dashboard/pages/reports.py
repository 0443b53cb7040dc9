"""The page Reports: what the checkout's notebooks make, when it was made, and making it again."""

from __future__ import annotations

from depthkit.dashboard import html
from depthkit.dashboard.building import BuiltReport, Job, Parameter, built_reports
from depthkit.dashboard.html import Context
from depthkit.dashboard.listing import Query
from depthkit.dashboard.text import block, exact, plain
from depthkit.errors import DepthkitError

_HIDDEN = (".json",)


def reports_page(context: Context, query: Query, job: Job | None = None) -> str:
    """All reports; ``error`` is a sentence on why one was not made."""
    errors = html.problems(query.get("error", ())[:1])
    try:
        found = built_reports()
    except DepthkitError as error:
        body = f'<h1>Reports</h1><p class="empty">{plain(error)}</p>'
        return html.document(context, "reports", "Reports", body)
    entries = "".join(_report(context, report, job) for report in found)
    body = (
        "<h1>Reports</h1>"
        '<p class="hint">Each is a notebook that has run with its parameters; the files are those '
        f'that <code>depthkit report</code> makes.</p>{errors}<div class="reports">{entries}</div>'
    )
    return html.document(context, "reports", "Reports", body)


def _report(context: Context, report: BuiltReport, job: Job | None) -> str:
    built = f"/built/{plain(report.name)}/"
    title = plain(report.title)
    if report.made:
        title = f'<a class="row" href="{built}index.html">{title}</a>'
    state = f"made {report.made}" if report.made else "not made yet"
    if report.with_:
        state += " with " + ", ".join(f"{name} = {text}" for name, text in report.with_.items())
    wanted = {each.name: each.text for each in report.parameters}
    about = [f"<small>{plain(report.notebook)} · {plain(state)}</small>"]
    files = " ".join(
        f'<a href="{built}{plain(name)}" download="{plain(_saved_as(report, name))}">'
        f"{plain(name)}</a>"
        for name in report.files
        if not name.endswith(_HIDDEN)
    )
    fields = "".join(map(_field, report.parameters))
    busy = job is not None and job.status is None
    form = (
        f'<form method="post" action="{context.data("report")}">'
        f'<input type="hidden" name="name" value="{exact(report.name)}">{fields}'
        f"<button{' disabled' if busy else ''}>Make it{' again' if report.made else ''}</button>"
        "</form>"
    )
    parts = [f"<h2>{title}</h2>", *about]
    if report.score:
        parts.append(f"<p>{plain(report.score)}</p>")
    if report.failure:
        parts.append(
            "<details><summary class=flag>The last attempt failed</summary>"
            f"<pre class=term>{block(report.failure)}</pre></details>"
        )
    if job is not None and job.name == report.name:
        parts.append(_progress(context, job, f"{built}index.html"))
    if files:
        parts.append(f"<details><summary>Files</summary><p class=built>{files}</p></details>")
    opened = "" if wanted else " hidden"
    parts.append(f"<details{opened}><summary>Parameters</summary>{form}</details>")
    return f'<section class="report" id="report-{plain(report.name)}">{"".join(parts)}</section>'


def _saved_as(report: BuiltReport, name: str) -> str:
    return f"{report.name}.html" if name == "index.html" else name


def _field(parameter: Parameter) -> str:
    """A field for a parameter, of the kind that its type asks for."""
    name, text = plain(parameter.name), plain(parameter.text)
    if parameter.annotation == "bool":
        options = "".join(
            f"<option{' selected' if value == parameter.text else ''}>{value}</option>"
            for value in ("true", "false")
        )
        field = f'<select name="p_{name}">{options}</select>'
    else:
        number = ' inputmode="decimal"' if parameter.annotation in ("int", "float") else ""
        field = f'<input name="p_{name}" value="{text}"{number}>'
    about = f"<small>{plain(parameter.about)}</small>" if parameter.about else ""
    return f"<label>{name} <small>{plain(parameter.annotation)}</small>{field}{about}</label>"


def _progress(context: Context, job: Job, built: str) -> str:
    said = block("\n".join(job.lines))
    if job.status is None:
        done = f' value="{job.cells[0]}" max="{job.cells[1]}"' if job.cells else ""
        return (
            f'<div class="progress" data-progress="{context.data("job")}" role="status">'
            f'<progress aria-label="Cells that have run"{done}></progress> being made …'
            f"<pre class=term>{said}</pre></div>"
        )
    word = "It could not be made:"
    if job.status == 0:
        cells = f", {job.cells[0]} of {job.cells[1]} cells have run" if job.cells else ""
        word = f'Made{cells}. <a href="{built}">Open it</a>'
    return f'<div class="progress" role="status">{word}<pre class=term>{said}</pre></div>'
