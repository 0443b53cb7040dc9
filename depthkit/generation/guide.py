"""What a model is told that writes a task (Section 3.3, Appendix F)."""

from __future__ import annotations

import json
from typing import Any

from depthkit.generation import example
from depthkit.generation.draft import CHECKS, INSTRUCTION, SOLUTION, Draft
from depthkit.tasks.check_scripts import LIBRARY

GUIDE = """\
You write a task for agents that work in a Linux terminal: one goal, pursued in {k} segments in one
container, without network. You write it by doing it: you have a container of the environment, and
carry out each segment in it before you write its reference solution and its checks, from what the
software really did.

# What the task is for

It is to be deep. Its depth is the number of turns that must happen one after another, because the
commands of a turn can only be chosen after the output of the turn before has been read. Much work
alone is not deep: one script does it in one turn. Depth comes from details of real software that
nobody knows in advance: defaults of this version, old interfaces, real formats, parts that do not
fit together, a fault that shows only once the one before it is mended. It does not come from
puzzles, hidden or planted faults, vague wording, long lists of like items, or mere waiting. Ask of
each segment: could somebody who knows the software well, but has not looked at this container,
write one script that passes? Then it is not deep yet.

# The plan

One overall goal that a user of this software would pursue, split into {k} segments of real work.

Each segment has a key step: a step where the usual way of doing it goes wrong in this environment,
with an error or silently, and only running it shows that. Find such steps by working: try the usual
way first, look at the real state and not at messages alone, and keep what went wrong.

Segment s+1 works on a result (data, files, accounts, configuration) that exists only because the
key step of segment s was done: without it, the checks of s fail, and those of s+1 fail too.

You may send the plan again while you learn more; what is finished stays.

# How you answer

A reply is one or several JSON objects, one after another, and nothing else. They are carried out in
order; each has one answer, a JSON object on a line: "ok", and output and status of a command, a
screen, a text, what a replay gave, or where "ok" is false what is wrong: "error", "format",
"replay" or "faults". After such an answer the rest of the reply is not carried out. A command that
fails is no such answer: it has its status. Nothing after "finish" or "back" is carried out: the
next segment is a new conversation, which begins with the plan and the files of those before.

{{"do": "run", "command": "…", "seconds": 60}}   bash in your container, as root, no input, no
    terminal; ended after its seconds (at most 1800); of long output the middle is left out
{{"do": "keys", "text": "…\\n", "wait": 1}}   types into a terminal; "key": "C-c" for one key
{{"do": "screen"}}   what the terminal shows
{{"do": "plan", "goal": "…", "segments": ["…"]}}   {k} sentences; before any file is written
{{"do": "write", "file": "…", "text": "…"}}   one of the five files below, whole
{{"do": "read", "file": "…", "segment": 1}}
{{"do": "replay"}}   reviews the files, then plays solve.sh and check.sh in the clean container
{{"do": "finish", "key_step": "…"}}   after a replay that passed; in a sentence, what goes wrong
{{"do": "reset"}}   your container anew, as the segments before left it
{{"do": "back", "segment": 1}}   mend an earlier segment; it and those after it are to be replayed
{{"do": "give_up", "reason": "…"}}   where the environment carries no such task

Errors of form and replays that fail are told exactly. Some may be mended: "mends_left" says how
many more.

# The replay

The clean container holds what the solve.sh of the segments before left, and nothing else: what you
did by run or keys is not in it. In it solve.sh runs as root, by bash, without input or network,
for at most 30 minutes, and has to end with status 0; check.sh runs right after it, and all its
checks have to pass. Nothing starts services but solve.sh; what it starts in the background goes on,
into the next segments too. Wait until a service answers: never for a fixed time. After "finish" you
go on in that container.

When all are finished, the task is accepted if it passes in a fresh container from the first segment
on, and fails where nothing is done. Each segment is then also replayed before its work, without the
segment before, without each event, without its key step, and after the one before without its key
step: each time its checks should say FAIL, and the check script itself must not break off.

# The files of a segment

instruction.md: all that the solver sees, with the screen. The goal, the deliverables that are
checked, the constraints, earlier results by name and which of them must stay. Not how to do it, not
what will go wrong. It must be enough: whatever check.sh demands follows from it, and it can be met
in one way of reading only. State every path, port, account and name that the checks rely on.

It leaks nothing. This is reviewed by comparing texts: of all solve.sh and check.sh it may have no
option, no name of a setting, no path, no word with digits or signs in it, no number of three digits
or more, no command with its argument, no four words of a line (five of a comment) in a row, unless
it is in names.toml, is a report's path, field or column, or is put together from those. Put into
names.toml what the solver must know, and leave out of the instruction what gives the way away.

names.toml: names = ["/srv/x", "8080"], verbatim as in the instruction, and settings = ["250"], the
values that the goal asks for. Never a value that has to be measured.

reports.toml, where the solver is to write reports: [[reports]] with path, kind = "fields" (lines
name: value), "table" or "json", optionally about, and [reports.fields] ([reports.columns] of a
table) with a word on what each is, never its value. The instruction says what is reported where;
the exact format is written below it for you. Do not repeat it.

solve.sh: the solution. Mark the key step, and each event that the goal asks for (a restart, a
failover), with comment lines of their own: "# key-step: begin" and "# key-step: end", "# event:
begin restart of the broker" and "# event: end"; blocks do not overlap. Without its key step the
script is the usual way: it still runs to its end, and what it leaves does not pass. Files beside it
are gone in the next segment.

check.sh: a script for the library below, which is loaded already. Rules:
- Expected values are computed from the live system, or from what it was given, when the checks run.
  Counts, identifiers, versions or states that you saw are never written in.
- Any solution that does what the instruction asks passes, not only yours.
- Report files are read only through field, column, cell and rows, by declared names.
- An event is checked through a trace that the software itself keeps. A file that the solver writes
  about it is no evidence; an event that leaves no trace is no deliverable.
- A string looked for in the solver's files stands in the instruction or is printed by the software
  itself (then with a comment before: # printed by SOFTWARE).
- A running service is checked by talking to it with its own client; processes only where the
  instruction asks for a process.
- Where a tool's message and the real state disagree, or a requirement can be read in two ways, both
  are accepted.
- Before the work at least one check fails, and without the key step at least one; what earlier
  segments must keep is checked again where this one could break it.
- A check leaves nothing behind, and ends within 10 minutes, each command within 120 seconds.

# The check library

{library}

KIND: int and num compare the first number of each value, version the first number or dotted
version, bool takes yes, true, pass, ok, on and 1 for the same, set and seq compare the items of
lists (divided at commas and line ends, or at spaces), exact takes every character as it is.

# An example

The first segment of a small task of two, as its author's messages, with the answers in brackets.
It shows the form; yours is of more work.

{example}
"""

_LOOK = {"do": "run", "command": "ls -l /srv/in; head -c 60 /srv/in/readings.csv | od -c"}

BRIEF = """\
The environment: {seed}

{state}
Now write segment {segment} of {k}. Your container is in the state that those before it leave.
"""


def guide(k: int) -> str:
    """The instructions of the author."""
    return GUIDE.format(k=k, library=_library_head(), example=_example())


def _example() -> str:
    lines = [
        _line(_LOOK),
        "(the answer shows two bytes a letter; loaded as it is, each row held one letter)",
        _line({"do": "plan", "goal": example.GOAL, "segments": example.ASKS}),
        *(_line({"do": "write", "file": n, "text": t}) for n, t in example.FILES.items()),
        _line({"do": "replay"}),
        '(the answer: {"ok": true, "replay": {"passed": true, …}})',
        _line({"do": "finish", "key_step": example.KEY_STEP}),
    ]
    return "\n".join(lines)


def _line(message: dict[str, Any]) -> str:
    return json.dumps(message, ensure_ascii=False)


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
        names = ", ".join(hello["files"])
        state.append(f"Files of segment {segment} that exist: {names}. Read them first.\n")
    if hello["faults"]:
        faults = "\n".join(f"- {fault}" for fault in hello["faults"])
        state.append(f"All segments were finished, but the task was not accepted:\n{faults}\n")
    seed = json.dumps(hello["seed"], ensure_ascii=False)
    return BRIEF.format(seed=seed, state="\n".join(state), segment=segment, k=draft.k)
