"""The page Reports: what the checkout's notebooks make, when it was made, and making it again."""

from __future__ import annotations

from depthkit.dashboard import html
from depthkit.dashboard.building import BuiltReport, Job, built_reports
from depthkit.dashboard.html import Context
from depthkit.dashboard.listing import Query
from depthkit.dashboard.text import block, plain
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
    wanted = {each.name: each.text for each in report.parameters}
    about = [f"<small>{plain(report.notebook)} · {plain(state)}</small>"]
    files = " ".join(
        f'<a href="{built}{plain(name)}" download>{plain(name)}</a>'
        for name in report.files
        if not name.endswith(_HIDDEN) and name != "index.html"
    )
    fields = "".join(
        f"<label>{plain(each.name)} <small>{plain(each.annotation)}</small>"
        f'<input name="p_{plain(each.name)}" value="{plain(each.text)}"></label>'
        for each in report.parameters
    )
    busy = job is not None and job.status is None
    form = (
        f'<form method="post" action="{context.data("report")}">'
        f'<input type="hidden" name="name" value="{plain(report.name)}">{fields}'
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
        parts.append(_progress(context, job))
    if files:
        parts.append(f"<details><summary>Files</summary><p class=built>{files}</p></details>")
    opened = "" if wanted else " hidden"
    parts.append(f"<details{opened}><summary>Parameters</summary>{form}</details>")
    return f'<section class="report" id="report-{plain(report.name)}">{"".join(parts)}</section>'


def _progress(context: Context, job: Job) -> str:
    said = block("\n".join(job.lines))
    if job.status is None:
        return (
            f'<div class="progress" data-progress="{context.data("job")}" role="status">'
            f"<progress>working</progress> being made …<pre class=term>{said}</pre></div>"
        )
    word = "Made." if job.status == 0 else "It could not be made:"
    return f'<div class="progress" role="status">{word}<pre class=term>{said}</pre></div>'
