"""Tables 3 and 7: what the code does to every task, read off the code itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files

import pandas as pd

from depthkit.artifacts.artifact import Table, artifact
from depthkit.artifacts.tables import plain_table
from depthkit.corpus import Corpus

PROVENANCE = "read off depthkit's own code · no task or run is behind it"

_SIGNATURE = re.compile(r"#   ([a-z_]+(?: \S+)*(?:, [a-z_]+(?: \S+)*)*?)(?: {2,}(\S.*))$")
_CONTINUED = re.compile(r"# {20,}(\S.*)$")


@artifact("depth/table-3", section="B, Table 3")
def harness_table(corpus: Corpus, *, datasets: Sequence[str] | None = None) -> Table:  # noqa: ARG001
    """Settings of the harness: the two rows "This paper" of Table 3.

    One row for existing tasks, which have one segment, and one for ours with six. The rows of the
    other papers describe their code and are not repeated.

    Args:
        corpus: Not read, as the code is the same for all.
        datasets: Not read either.

    Raises:
        RuntimeError: the agent's code no longer has a limit where it was.
    """
    from depthkit.trials.settings import rows

    found = rows()
    fields = ("tasks", "harness", "time_limit_minutes", "output_bytes", "wait_seconds", "blocks")
    frame = pd.DataFrame([{name: row[name] for name in (*fields, "turns")} for row in found])
    heads = ("Harness", "Time limit", "Output", "Wait per command", "Turns")
    shown = pd.DataFrame([row["printed"] for row in found], columns=list(heads))
    shown.insert(0, "Tasks", frame["tasks"])
    return Table(
        title=(
            "Settings of the harness. Time limit: of a task in all, for ours of one with six "
            "segments. Output: most shown after a turn, beginning and end kept. Wait: how long at "
            "most before output is returned. Turns: limit of a run without a stated cap."
        ),
        frame=frame,
        provenance=PROVENANCE,
        draw=lambda: plain_table(shown, "table-3", rows="Tasks", left=heads[:4]),
    )


@artifact("depth/table-7", section="F, Table 7")
def check_library_table(corpus: Corpus, *, datasets: Sequence[str] | None = None) -> Table:  # noqa: ARG001
    """Functions of the check library, as its own file describes them.

    ``frame`` has one row a function: ``kind`` (check or reader), ``function``, its ``call`` with
    arguments, and the ``meaning``: when a check passes, what a reader prints.

    Args:
        corpus: Not read, as the library is the same for all.
        datasets: Not read either.
    """
    frame = pd.DataFrame(_described(), columns=["kind", "function", "call", "meaning"])
    shown = pd.DataFrame(
        {
            "Kind": frame["kind"].map({"check": "Passes when", "reader": "Prints"}),
            "Function": frame["call"],
            "Meaning": frame["meaning"],
        }
    )
    return Table(
        title=(
            "Functions of the check library. NAME is a short check name, unique within the script."
        ),
        frame=frame,
        provenance=PROVENANCE,
        draw=lambda: plain_table(
            shown, "table-7", rows="Function", groups="Kind", left=("Meaning",)
        ),
    )


def _described() -> list[tuple[str, str, str, str]]:
    """The functions in the comment at the head of the library, in its order."""
    library = files("depthkit.tasks").joinpath("checks.sh").read_text("utf-8")
    head = library.partition("\n\n{")[0]
    listed = head[head.index("# A check script is bash.") :]
    rows: list[tuple[str, str, str, str]] = []
    for line in listed.splitlines():
        if found := _SIGNATURE.match(line):
            name = found[1].split()[0]
            kind = "check" if name.startswith("expect_") or name == "pass" else "reader"
            rows.append((kind, name, found[1], found[2]))
        elif rows and (more := _CONTINUED.match(line)):
            *first, meaning = rows[-1]
            rows[-1] = (first[0], first[1], first[2], f"{meaning} {more[1]}")
    return rows
