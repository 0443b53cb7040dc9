"""A task of several segments whose checks are written with the check library."""

from __future__ import annotations

import shutil
from pathlib import Path

from depthkit.tasks.check_scripts import LIBRARY, TEST_SH

TOML = """\
schema_version = "1.1"

[agent]
timeout_sec = 600.0

[verifier]
timeout_sec = 600.0

[environment]
network_mode = "no-network"
cpus = 1
memory_mb = 512
"""


def write_checked_task(
    folder: Path, segments: list[dict[str, str]], *, dockerfile: str, toml: str = TOML
) -> Path:
    """A task; each segment has ``instruction``, ``solve``, ``check`` and perhaps ``names``."""
    steps = "".join(f'\n[[steps]]\nname = "s{n}"\n' for n in range(1, len(segments) + 1))
    files = {
        "task.toml": toml + steps,
        "environment/Dockerfile": dockerfile,
        "tests/test.sh": TEST_SH,
    }
    for number, segment in enumerate(segments, 1):
        place = f"steps/s{number}"
        files[f"{place}/instruction.md"] = segment["instruction"]
        files[f"{place}/solution/solve.sh"] = segment["solve"]
        files[f"{place}/tests/check.sh"] = segment["check"]
        if "names" in segment:
            files[f"{place}/names.toml"] = segment["names"]
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shutil.copy(LIBRARY, folder / "tests" / "checks.sh")
    return folder


STOCK = [
    {
        "instruction": (
            "Load the deliveries in /srv/in/deliveries.csv into the database /srv/stock.db, table "
            "`items` (name, amount): one row an item, amounts summed. The file has lines that the "
            "scanner marked as void; leave them out.\n\nWrite /srv/report.txt with a line "
            "`items: N`, N being the number of items.\n"
        ),
        "names": 'names = ["/srv/stock.db", "items", "/srv/report.txt"]\nsettings = []\n',
        "solve": """\
#!/bin/bash
set -eu
cp /srv/in/deliveries.csv /tmp/clean.csv
# key-step: begin
# The scanner marks a void line by a leading tab.
grep -v "$(printf '^\\t')" /srv/in/deliveries.csv >/tmp/clean.csv
# key-step: end
python3 - <<'END'
import sqlite3
db = sqlite3.connect("/srv/stock.db")
db.execute("create table items (name text primary key, amount integer)")
for line in open("/tmp/clean.csv"):
    name, amount = line.strip().split(",")
    db.execute("insert into items values (?, ?) on conflict(name) "
               "do update set amount = amount + excluded.amount", (name, int(amount)))
db.commit()
count = db.execute("select count(*) from items").fetchone()[0]
open("/srv/report.txt", "w").write(f"items: {count}\\n")
END
""",
        "check": """\
set -u
report=/srv/report.txt
stock() { python3 -c 'import sqlite3, sys
for row in sqlite3.connect("/srv/stock.db").execute(sys.argv[1]): print(*row, sep=",")' "$1"; }
wanted() { python3 -c '
total = {}
for line in open("/srv/in/deliveries.csv"):
    if not line.startswith("\\t"):
        name, amount = line.strip().split(",")
        total[name] = total.get(name, 0) + int(amount)
print(*(f"{n},{a}" for n, a in sorted(total.items())), sep="\\n")'; }
expect_eq rows "$(stock 'select name, amount from items order by name')" "$(wanted)"
expect_eq reported "$(field "$report" items)" "$(stock 'select count(*) from items')" int
""",
    },
    {
        "instruction": (
            "Print what is in `items` of /srv/stock.db into the table /srv/list.tsv: a line an "
            "item, columns `name` and `amount` divided by a tab, by amount from the largest. Start "
            "the keeper with `/srv/keeper start` and restart it with `/srv/keeper restart`: the "
            "process `keeper-loop` must be running when you are done. It writes /srv/keeper.log.\n"
        ),
        "names": 'names = ["/srv/list.tsv", "/srv/keeper", "keeper-loop", "/srv/keeper.log"]\n',
        "solve": """\
#!/bin/bash
rows() { python3 -c 'import sqlite3
for row in sqlite3.connect("/srv/stock.db").execute("select * from items order by amount desc"):
    print(*row, sep="\\t")'; }
rows >/srv/list.tsv
/srv/keeper start
# event: begin restart of the keeper
/srv/keeper restart
# event: end
# key-step: begin
# The keeper empties the list when it starts.
rows >/srv/list.tsv
# key-step: end
""",
        "check": """\
set -u
list=/srv/list.tsv
names() { python3 -c 'import sqlite3
for row in sqlite3.connect("/srv/stock.db").execute(
    "select name from items order by amount desc"): print(*row)'; }
expect_eq names "$(column "$list" name:1)" "$(names)" seq
expect_proc keeper keeper-loop
# The keeper's own log says how often it was started.
starts() { grep -c . /srv/keeper.log; }
if (($(starts) > 1)); then pass restarted; else fail restarted "it was started once"; fi
""",
    },
]
"""Loading, then listing: the second segment works on the database of the first."""

STOCK_FILES = {
    "environment/keeper": """\
#!/bin/bash
case $1 in
start)
    : >/srv/list.tsv
    echo started >>/srv/keeper.log
    setsid /srv/keeper-loop </dev/null >/dev/null 2>&1 &
    ;;
stop) pkill -f keeper-loop ;;
restart) "$0" stop && "$0" start ;;
esac
""",
    "environment/keeper-loop": "#!/bin/bash\nwhile :; do sleep 600; done\n",
}
STOCK_DOCKERFILE = r"""FROM depthkit/base:1
RUN mkdir -p /srv/in \
 && printf 'nut,4\nbolt,2\n\tnut,9\nnut,3\nring,5\n\tcog,1\n' > /srv/in/deliveries.csv
COPY keeper keeper-loop /srv/
RUN chmod 755 /srv/keeper /srv/keeper-loop
WORKDIR /srv
"""


def write_stock(folder: Path, segments: int = 2) -> Path:
    """The task of :data:`STOCK`, in which everything is as it should be."""
    write_checked_task(folder, STOCK[:segments], dockerfile=STOCK_DOCKERFILE)
    for name, text in STOCK_FILES.items():
        (folder / name).write_text(text)
    return folder


REAL_TASKS = Path(__file__).with_name("tasks")
"""Tasks with real software from Debian packages; one image serves them all but for their files."""


def copy_real_task(name: str, folder: Path) -> Path:
    """A task of :data:`REAL_TASKS` with the library that travels with it."""
    shutil.copytree(REAL_TASKS / name, folder / name)
    (folder / name / "tests").mkdir()
    (folder / name / "tests" / "test.sh").write_text(TEST_SH)
    shutil.copy(LIBRARY, folder / name / "tests" / "checks.sh")
    return folder / name
