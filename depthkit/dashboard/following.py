"""What is being measured into a corpus at this moment, and what it will still take."""

from __future__ import annotations

from depthkit.dashboard.html import Context
from depthkit.dashboard.text import plain
from depthkit.errors import DepthkitError

_MOST_RUNS = 20_000
"""In a larger corpus what the rest will take is left to ``depthkit status``."""


def measuring_now(context: Context) -> str:
    """Trials that run now, what was spent and what is left, for a list that follows."""
    from depthkit.corpus import Corpus
    from depthkit.trials.landing import measuring

    corpus = context.source.corpus
    if corpus is None:
        return ""
    try:
        who = measuring(corpus)
        if who is None:
            said = ["Nobody is measuring into this corpus now; what is appended appears here."]
            return _part(said)
        meters = [] if who.max_usd is None else [_budget(who.spent_usd, who.max_usd)]
        if context.snapshot.value("SELECT count(*) FROM runs") > _MOST_RUNS:
            said = ["It is being measured; depthkit status says what is left."]
            return _part(said, meters, running=True)
        # Late: it imports Harbor, which takes seconds and 170 MB.
        from depthkit.experiments.status import status, status_lines

        # Opened anew: the first to measure into a corpus names its models in it.
        found = status(Corpus.open(corpus.path))
    except (DepthkitError, OSError) as error:
        return f'<p class="hint">{plain(error)}</p>'
    if found.expected.runs is not None:
        done = context.snapshot.value(
            "SELECT count(*) FROM runs WHERE purpose IN ('free', 'ladder')"
        )
        total = done + found.expected.runs
        meters.insert(0, _meter("Runs", f"{done:,} of about {total:,.0f}", done, total))
    return _part(status_lines(found), meters, running=True)


def _budget(spent: float, most: float) -> str:
    return _meter("Budget", f"${spent:,.2f} of ${most:,.2f} spent", spent, most)


def _meter(name: str, said: str, value: float, most: float) -> str:
    """A bar with its numbers; the bar alone says nothing that the text does not."""
    return (
        f"<div><dt>{name}</dt><dd>{plain(said)} "
        f'<progress aria-label="{name}" value="{value:.6g}" max="{max(most, value, 1e-9):.6g}">'
        "</progress></dd></div>"
    )


def _part(said: list[str], meters: list[str] | None = None, *, running: bool = False) -> str:
    bars = f"<dl>{''.join(meters)}</dl>" if meters else ""
    lines = "".join(f"<p>{plain(line.strip())}</p>" for line in said)
    mark = " data-measuring" if running else ""
    return f'<section class="measuring" aria-label="Being measured"{mark}>{bars}{lines}</section>'
