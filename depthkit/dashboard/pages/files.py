"""What a trial left in files: the verifier's output, and any file as a page."""

from __future__ import annotations

from urllib.parse import urlencode

from depthkit.corpus.files import UnreadableError
from depthkit.dashboard import html
from depthkit.dashboard.html import Context
from depthkit.dashboard.listing import Query
from depthkit.dashboard.text import block, plain, terminal, without_blank_end
from depthkit.dashboard.trial import Trial, summarization_steps

_SHOWN = 48_000


def verifier(trial: Trial, needle: str) -> str:
    """What the verifier left, a file a fold."""
    parts = []
    for checked in trial.checked():
        name = f" of {plain(checked.segment)}" if checked.segment else ""
        for file, text in checked.texts:
            shown, _ = without_blank_end(text)
            if not shown.strip():
                continue
            short = "reward" in file and len(shown) < 40
            opened = " open" if "stdout" in file or short else ""
            parts.append(
                f"<details{opened}><summary>{plain(file.split('/')[-1])}{name} "
                f"<small>{html.size(len(text))}</small></summary>"
                f'<pre class="term">{terminal(shown[:_SHOWN], needle)}</pre>'
                f"{_rest(shown)}</details>"
            )
    return f'<section class="verifier"><h2>Verifier</h2>{"".join(parts)}</section>' if parts else ""


def _rest(text: str) -> str:
    if len(text) <= _SHOWN:
        return ""
    return (
        f'<p class="more">The first {_SHOWN:,} of {len(text):,} characters; the whole is among '
        "the files below.</p>"
    )


def file_list(context: Context, trial: Trial) -> str:
    """All files of a trial, each a link."""
    found, notes = trial.files()
    if not found:
        return ""
    if not context.site.static:
        items = "".join(
            f'<li><a href="{context.page("file", id=trial.run_id, name=file.name)}">'
            f"{plain(file.name)}</a> <small>{html.size(file.size)}</small></li>"
            for file in found
        )
    else:
        items = "".join(
            f"<li>{plain(file.name)} <small>{html.size(file.size)}</small></li>" for file in found
        )
    return (
        f'<section class="files"><details><summary>Files <small>{len(found)}</small></summary>'
        f"<ul>{items}</ul>{html.problems(notes, 'remark')}</details></section>"
    )


def file_page(context: Context, query: Query) -> str | None:
    """A file of a trial as a page; ``None`` if there is no such file."""
    run_id, name = ((query.get(key) or [""])[0] for key in ("id", "name"))
    run = context.snapshot.run(run_id)
    if run is None or context.source.corpus is None:
        return None
    trial = Trial(context.source.corpus, run_id)
    try:
        data = trial.read(name)
    except (FileNotFoundError, UnreadableError) as error:
        why = "There is no such file." if isinstance(error, FileNotFoundError) else f"{error}."
        return html.document(
            context, "runs", "No such file", f"<h1>{plain(name)}</h1>{html.problems([why])}"
        )
    raw = plain(context.site.data(context.key, "file", urlencode({"id": run_id, "name": name})))
    body = (
        f'<p class="crumbs"><a href="{context.run(run_id)}">{plain(run_id)}</a></p>'
        f"<h1>{plain(name)} <small>{html.size(len(data))}</small></h1>"
    )
    if not context.site.static:
        body += f'<p class="tools"><a class="tool" href="{raw}" download>Download</a></p>'

    if "summarization" in name:
        try:
            steps = list(summarization_steps(trial, name))
        except (FileNotFoundError, UnreadableError) as error:
            body += html.problems([f"{error}."])
        else:
            body += "".join(
                f"<h2>{plain(source)}</h2><pre class=file tabindex=0>{block(said)}</pre>"
                for source, said in steps
            )
            return html.document(context, "runs", name, body)
    most = 400_000
    shown = data[:most].decode("utf-8", "replace")
    if len(data) > most:
        body += f'<p class="more">The first {most:,} bytes; download it for the whole.</p>'
    body += f"<pre class=file tabindex=0>{terminal(shown)}</pre>"
    return html.document(context, "runs", name, body)
