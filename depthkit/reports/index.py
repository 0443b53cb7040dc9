"""The page that lists all reports."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from depthkit.artifacts import page
from depthkit.artifacts.artifact import file_label, slug_of
from depthkit.reports.files import read_json
from depthkit.reports.printing import PDF


def index_page(build: Path) -> str:
    """All reports in a directory: what they rest on, their score, their files, their failures."""
    entries = []
    for directory in sorted(path for path in build.iterdir() if path.is_dir()):
        about = read_json(directory / "report.json")
        failure = read_json(directory / "failure.json")
        if not directory.name.startswith(".") and (about or failure):
            entries.append(_index_entry(directory, about, failure))
    return page.document(
        "depthkit reports",
        "<h1>Reports</h1>\n<p>How deep terminal tasks are. Each report says what its numbers rest "
        f'on.</p>\n<ul class="reports">{"".join(entries)}</ul>',
    )


def _index_entry(directory: Path, about: dict[str, Any], failure: dict[str, Any]) -> str:
    name = directory.name
    parts = [f"<h2>{escape(name)}</h2>"]
    if about:
        title = escape(about["title"])
        shown = [read_json(path) for path in directory.glob("*-*.json")]
        shown.sort(key=lambda artifact: artifact["position"])
        provenance = sorted({artifact["provenance"] for artifact in shown})
        score = directory / "claims.txt"
        parts = [f'<h2><a href="{name}/index.html">{title}</a></h2>']
        parts += [f'<p class="provenance">{escape(line)}</p>' for line in provenance]
        if score.is_file():
            parts.append(f"<p>Published numbers: {escape(score.read_text('utf-8'))}</p>")
        if (directory / PDF).is_file():
            parts.append(f'<p class="files"><a href="{name}/{PDF}">PDF</a></p>')
        for artifact in shown:
            slug = slug_of(artifact["id"])
            links = " ".join(
                f'<a href="{name}/{escape(file)}">{escape(file_label(file, slug))}</a>'
                for file in artifact["files"]
            )
            caption = artifact["title"].partition(". ")[0]
            parts.append(
                f'<figure class="preview">{artifact["preview"]}<figcaption>'
                f"<b>{escape(artifact['section'])}.</b> {escape(caption)}. "
                f'<span class="files">{links}</span></figcaption></figure>'
            )
        parts.append(f"<p><time>Made {escape(about['when'])}</time></p>")
    if failure:
        what = "this is the last good report" if about else "there is no good report yet"
        parts.append(
            f'<p class="failed">The last attempt ({escape(failure["when"])}) failed; {what}.</p>'
            f"<details><summary>Traceback</summary><pre>{escape(failure['error'])}</pre></details>"
        )
    return f"<li>{''.join(parts)}</li>"
