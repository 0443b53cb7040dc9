"""What is being measured into a corpus at this moment, and what it will still take."""

from __future__ import annotations

from depthkit.dashboard.html import Context
from depthkit.dashboard.text import plain
from depthkit.errors import DepthkitError

_MOST_RUNS = 20_000
"""In a larger corpus what the rest will take is left to ``depthkit status``."""


def measuring_now(context: Context) -> str:
    """Trials that run now, what was spent and what is left, for a list that follows."""
    # Late: these import Harbor, which takes seconds.
    from depthkit.experiments.status import status, status_lines
    from depthkit.trials.landing import measuring

    corpus = context.source.corpus
    if corpus is None:
        return ""
    try:
        if measuring(corpus) is None:
            said = ["Nobody is measuring into this corpus now; what is appended appears here."]
        elif context.snapshot.value("SELECT count(*) FROM runs") > _MOST_RUNS:
            said = ["It is being measured; depthkit status says what is left."]
        else:
            found = status(corpus)
            said = status_lines(found)
            if found.expected.runs is not None:
                done = context.snapshot.value(
                    "SELECT count(*) FROM runs WHERE purpose IN ('free', 'ladder')"
                )
                total = done + found.expected.runs
                said = [f"{done:,} runs done, about {total:,.0f} expected in all.", *said]
    except (DepthkitError, OSError) as error:
        return f'<p class="hint">{plain(error)}</p>'
    mark = " data-measuring" if len(said) > 1 else ""
    lines = "".join(f"<p>{plain(line.strip())}</p>" for line in said)
    return f'<div class="measuring" role="status"{mark}>{lines}</div>'
