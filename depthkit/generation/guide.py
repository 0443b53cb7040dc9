"""What a model is told that writes a task (Section 3.3, Appendix F)."""

from __future__ import annotations

import json
from typing import Any

from depthkit.generation.draft import CHECKS, INSTRUCTION, SOLUTION, Draft
from depthkit.tasks.check_scripts import LIBRARY

GUIDE = """\
You write a task for agents that work in a Linux terminal: one goal, pursued in {k} segments in one
container, without network. You write it by doing it. You have a container of the environment; for
each segment you explore, write its instruction, carry it out, and only then write its reference
solution and its checks, from what the software really did.

# How you answer

Every reply is one or several JSON objects and nothing else, each on a line of its own. They are
carried out in order; after one that fails the rest are left. You get one answer for each.

{{"do": "run", "command": "…", "seconds": 60}}   bash in your container, as root, no input
{{"do": "keys", "text": "…\\n", "wait": 1}}   types into a terminal; "key": "C-c" for one key
{{"do": "screen"}}   what the terminal shows
{{"do": "plan", "goal": "…", "segments": ["…"]}}   before anything is written; {k} sentences
{{"do": "write", "file": "…", "text": "…"}}   one of those below
{{"do": "read", "file": "…", "segment": 1}}
{{"do": "replay"}}   reviews the files, then plays solve.sh and check.sh in a clean container
{{"do": "finish", "key_step": "…"}}   after a replay that passed
{{"do": "reset"}}   your container anew, as the segments before left it
{{"do": "back", "segment": 1}}   mend an earlier segment
{{"do": "give_up", "reason": "…"}}

# The plan

One overall goal that a user of this software would pursue. Segment by segment it needs what the
software says when it is run. Segment s+1 must use a result (data, files, accounts, configuration)
that exists only because the key step of segment s was done.

A key step is one where the usual way goes wrong in this environment, with an error or silently, and
only running the commands shows it. Find such steps by working, not by thinking: try the usual way
first, and keep what went wrong. Nothing may be planted.

# The files of a segment

instruction.md: the goal, the deliverables that will be checked, the constraints, and earlier
results by name. Not how to do it, not what will go wrong, no commands, options or names of settings
that the solver is to find out. State every path, port, account and name that the checks rely on.

names.toml: names = ["/srv/x", "8080"], verbatim as in the instruction, and settings = ["250"], the
values that the goal asks for. Never a value that has to be measured.

reports.toml, where the segment has report files: [[reports]] with path, kind = "fields" (lines
name: value), "table" or "json", and [reports.fields] or [reports.columns] with a word on each. The
exact format is written into the instruction for you; do not write it yourself.

solve.sh: bash; it starts from the state that the segments before left. Mark the key step, and each
event that the goal asks for, with comment lines of their own: "# key-step: begin" and "# key-step:
end", "# event: begin restart of the broker" and "# event: end". Without the marked lines the script
must still run. Wait for services until they answer. Files beside it are gone in the next segment.

check.sh: a script for the library below, which is loaded already. Rules:
- Expected values are computed from the live system when the checks run. Counts, identifiers,
  versions or states that you saw are never written in.
- Report files are read only through field, column, cell and rows, by declared names.
- An event is checked through a trace that the software itself keeps. A file that the solver writes
  about it is no evidence; an event that leaves no trace is no deliverable.
- A string looked for in the solver's files stands in the instruction or is printed by the software
  itself (comment: # printed by SOFTWARE).
- A running service is checked by talking to it with its own client; processes only where the
  instruction asks for a process.
- Where a tool's message and the real state disagree, or a requirement can be read in two ways, both
  are accepted.
- Without the key step at least one check fails; before the work at least one fails; what earlier
  segments must keep is checked again where this one could break it.
- A check leaves nothing behind.

# The check library

{library}
"""

BRIEF = """\
The environment: {seed}

{state}
Now write segment {segment} of {k}. Your container is in the state that those before it leave.
"""


def guide(k: int) -> str:
    """The instructions of the author."""
    return GUIDE.format(k=k, library=_library_head())


def _library_head() -> str:
    lines = []
    for line in LIBRARY.read_text().splitlines()[1:]:
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# ") if line == "#" else line[2:])
    return "\n".join(lines)


def brief(draft: Draft, segment: int, hello: dict[str, Any]) -> str:
    """Where the author stands at the beginning of a segment."""
    state = []
    plan = draft.plan
    if plan is None:
        state.append("Explore it first, then send the plan.\n")
    else:
        state.append(f"Your plan: {json.dumps(plan.row(), ensure_ascii=False)}\n")
    state += [
        f"--- segment {number}, {name} ---\n{draft.read(number, name)}"
        for number in range(1, segment)
        for name in (INSTRUCTION, SOLUTION, CHECKS)
    ]
    if hello["files"]:
        state.append(f"Files of segment {segment} that exist: {', '.join(hello['files'])}\n")
    seed = json.dumps(hello["seed"], ensure_ascii=False)
    return BRIEF.format(seed=seed, state="\n".join(state), segment=segment, k=draft.k)
