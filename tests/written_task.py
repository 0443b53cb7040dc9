"""A small seed environment and a task of two segments on it.

SQLite by way of Python, from the base image alone.
"""

from __future__ import annotations

from pathlib import Path

from scripted_author import Written

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

GOAL = "Keep the readings of a site in a database and find the largest."
ASKS = ("Load the exported readings into SQLite", "List the largest reading of each sensor")
KEY_STEPS = (
    "The export has two bytes a letter, so that rows load without an error but hold no readings.",
    "The values are texts, of which 9 is larger than 10.",
)

SOLVE_1 = """\
#!/bin/bash
set -eu
mkdir -p /srv/data
cp /srv/in/readings.csv /tmp/readings.csv
# key-step: begin
# The export has two bytes a letter.
iconv -f UTF-16 -t UTF-8 /srv/in/readings.csv >/tmp/readings.csv
# key-step: end
python3 - <<'END'
import sqlite3
db = sqlite3.connect("/srv/data/readings.db")
db.execute("create table readings (sensor text, value text)")
for line in open("/tmp/readings.csv", errors="replace"):
    sensor, _, value = line.strip().partition(",")
    db.execute("insert into readings values (?, ?)", (sensor, value))
db.commit()
count = db.execute("select count(*) from readings").fetchone()[0]
open("/srv/out/load.txt", "w").write(f"rows: {count}\\n")
END
"""

SEGMENTS: tuple[dict[str, str], ...] = (
    {
        "instruction.md": """\
Load the readings of /srv/in/readings.csv, a sensor and a value in each line, into the table
`readings` of the SQLite database /srv/data/readings.db: a row a reading, columns `sensor` and
`value`, both of type TEXT. Say in /srv/out/load.txt how many rows the table has.
""",
        "names.toml": 'names = ["/srv/in/readings.csv", "/srv/data/readings.db", "readings"]\n',
        "reports.toml": """\
[[reports]]
path = "/srv/out/load.txt"
kind = "fields"
[reports.fields]
rows = "number of rows in the table"
""",
        "solve.sh": SOLVE_1,
        "check.sh": """\
set -u
db() { python3 -c 'import sqlite3, sys
for row in sqlite3.connect("/srv/data/readings.db").execute(sys.argv[1]):
    print(*row, sep=",")' "$1"; }
wanted() { python3 -c '
print(*sorted(open("/srv/in/readings.csv", encoding="utf-16").read().split()), sep="\\n")'; }
expect_eq stored "$(db 'select sensor, value from readings order by sensor, value')" "$(wanted)"
expect_eq rows "$(field /srv/out/load.txt rows)" "$(db 'select count(*) from readings')" int
""",
    },
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
