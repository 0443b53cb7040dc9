"""The segment that authors are shown whole; tests play it."""

from __future__ import annotations

GOAL = "Keep the readings of a site in a database and find the largest."
ASKS = ("Load the exported readings into SQLite", "List the largest reading of each sensor")

KEY_STEP = (
    "The export has two bytes a letter, so that rows load without an error but hold no readings."
)

FILES = {
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
    "solve.sh": """\
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
""",
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
}
