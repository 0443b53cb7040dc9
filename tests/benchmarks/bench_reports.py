"""All reports cold and warm, beside papermill and nbconvert run on one notebook after another.

Cold makes every report into an empty directory; warm finds all of them fresh. The other way is what
a user would type: ``papermill`` and then ``jupyter nbconvert --to html`` a report, which gives
pages without exported figures, index or check that they open offline. Wall seconds, one run each.
Prints and writes them; cold must stay under 60 s and warm under 3 s.

    python tests/benchmarks/bench_reports.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from depthkit.reports import Report, find_project, load_reports

HERE = Path(__file__).parent
COLD, WARM = 60, 3
OURS = """
import sys
from pathlib import Path
from depthkit.reports import find_project, load_reports, make_reports
if __name__ == "__main__":
    project = find_project()
    made = make_reports(load_reports(project), Path(sys.argv[1]), fork=True)
    sys.exit(any(outcome.state != sys.argv[2] for outcome in made))
"""


def timed(*commands: list[str]) -> float:
    """Wall seconds of commands, one after another, none of which may fail."""
    start = time.perf_counter()
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{command} failed:\n{done.stdout}{done.stderr}")
    return round(time.perf_counter() - start, 1)


def by_hand(report: Report, directory: Path) -> list[list[str]]:
    """What a user would type for one report."""
    ran = directory / f"{report.name}.ipynb"
    values = yaml.safe_dump(dict(report.parameters))
    paper = ["papermill", str(report.notebook), str(ran), "-k", "python3", "-y", values]
    return [
        [sys.executable, "-m", *paper],
        [sys.executable, "-m", "nbconvert", "--to", "html", "--no-input", str(ran)],
    ]


def main() -> int:
    """Measure, print and keep the result; 1 if a bound is not met."""
    project = find_project(HERE)
    os.chdir(project)
    os.environ["PYTHONPATH"] = str(project)
    reports = load_reports(project)
    with tempfile.TemporaryDirectory() as scratch:
        script, build = Path(scratch, "ours.py"), str(Path(scratch, "build"))
        script.write_text(OURS)
        load = os.getloadavg()[0]
        cold = timed([sys.executable, str(script), build, "built"])
        warm = timed([sys.executable, str(script), build, "fresh"])
        theirs = timed(*(c for report in reports for c in by_hand(report, Path(scratch))))
    result = {
        "benchmark": "reports",
        "reports": len(reports),
        "cores": os.cpu_count(),
        "load_before": round(load, 1),
        "seconds": {"cold": cold, "warm": warm, "papermill and nbconvert": theirs},
        "bounds": {"cold": COLD, "warm": WARM},
    }
    text = json.dumps(result, indent=2)
    print(text)
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "reports.json").write_text(text + "\n")
    return 0 if cold < COLD and warm < WARM else 1


if __name__ == "__main__":
    sys.exit(main())
