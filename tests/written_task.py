"""A small seed environment and a task of two segments on it.

SQLite by way of Python, from the base image alone.
"""

from __future__ import annotations

from pathlib import Path

from scripted_author import Written

from depthkit.generation import example
from depthkit.generation.draft import Draft, Plan

READINGS = ("north,9", "north,10", "south,100", "south,20")

DOCKERFILE = """\
FROM depthkit/base:1
COPY readings.csv /srv/in/
RUN mkdir /srv/out
WORKDIR /srv
"""

SEED_TOML = """\
name = "readings"
kind = "embedded database"
components = ["SQLite", "Python"]
summary = "Readings of sensors as they were exported, and SQLite to keep them in."
category = "data-processing"
original_lines = 4
memory_mb = 256
"""

GOAL, ASKS = example.GOAL, example.ASKS
KEY_STEPS = (example.KEY_STEP, "The values are texts, of which 9 is larger than 10.")

SEGMENTS: tuple[dict[str, str], ...] = (
    example.FILES,
    {
        "instruction.md": """\
Write the largest value of each sensor in the table `readings` of /srv/data/readings.db into the
table /srv/out/largest.tsv. Leave the database as it is.
""",
        "names.toml": 'names = ["readings", "/srv/data/readings.db", "/srv/out/largest.tsv"]\n',
        "reports.toml": """\
[[reports]]
path = "/srv/out/largest.tsv"
kind = "table"
about = "one row a sensor"
[reports.columns]
sensor = "its name"
largest = "its largest value"
""",
        "solve.sh": """\
#!/bin/bash
set -eu
value=value
# key-step: begin
# As texts 9 is larger than 10.
value='cast(value as integer)'
# key-step: end
python3 - "$value" >/srv/out/largest.tsv <<'END'
import sqlite3, sys
print("sensor", "largest", sep="\\t")
for row in sqlite3.connect("/srv/data/readings.db").execute(
        f"select sensor, max({sys.argv[1]}) from readings group by sensor"):
    print(*row, sep="\\t")
END
""",
        "check.sh": """\
set -u
list=/srv/out/largest.tsv
wanted() { python3 -c '
best = {}
for line in open("/srv/in/readings.csv", encoding="utf-16"):
    sensor, value = line.strip().split(",")
    best[sensor] = max(best.get(sensor, 0), int(value))
print(*(f"{s} {v}" for s, v in best.items()), sep="\\n")'; }
expect_eq sensors "$(column "$list" sensor:1)" "$(wanted | cut -d" " -f1)" set
while read -r sensor value; do
    expect_eq "largest-$sensor" "$(cell "$list" sensor:1 "$sensor" largest:2)" "$value" int
done < <(wanted)
""",
    },
)
"""Loading, then the largest: without the first key step there is nothing to find."""


TASK = Written(GOAL, ASKS, KEY_STEPS, SEGMENTS)


def write_seed(folder: Path) -> Path:
    """The seed environment."""
    folder.mkdir(parents=True)
    (folder / "seed.toml").write_text(SEED_TOML.replace('"readings"', f'"{folder.name}"'))
    (folder / "Dockerfile").write_text(DOCKERFILE)
    (folder / "readings.csv").write_text("\n".join(READINGS) + "\n", encoding="utf-16")
    return folder


def write_draft(folder: Path, *changes: dict[str, str]) -> Draft:
    """The draft of the task with all its files, of which nothing has been replayed.

    Args:
        folder: Where seed and task are put.
        changes: Other files, by segment.
    """
    seed = write_seed(folder / "seeds" / "readings")
    draft = Draft(folder / "tasks" / "readings", seed, len(SEGMENTS))
    draft.write_plan(Plan(GOAL, list(ASKS), list(KEY_STEPS)))
    for number, files in enumerate(SEGMENTS, 1):
        own = changes[number - 1] if number <= len(changes) else {}
        for name, text in {**files, **own}.items():
            draft.write(number, draft.file_name(name), text)
    return draft
