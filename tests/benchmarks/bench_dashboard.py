"""Time the dashboard on a corpus of 100,000 runs, and a trajectory of 150 turns and 5 MB.

    python tests/benchmarks/bench_dashboard.py [RUNS]

Writes results/dashboard.json. Filters are timed as whole pages over HTTP, as a person waits for
them; brushes in a browser, from the end of the gesture until all linked views show it; memory is
that of the serving process and all it starts, together, also while the corpus is read the first
time and while twenty browser sessions are open. Beside them stands the time from a click in a list
of runs to the rendered turns, with ``harbor view`` on the same trial.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
from beside_harbor import beside_harbor
from browsing import brushes, panel_sessions, sessions
from large_corpus import write_large_corpus, write_long_trial

RESULT = Path(__file__).parent / "results" / "dashboard.json"
FILTERS = (
    "/runs?ending=passed",
    "/runs?q=tmax-task-012",
    "/runs?model=first-model&sort=-cost",
    "/runs?turns_min=10&turns_max=20&dataset=RST",
    "/runs?caps=5&caps=none&sort=started&page=40",
    "/tasks?q=tmax",
    "/tasks?D_min=10&sort=-W",
    "/tasks?outcome=solved&dataset=Ours&dataset=TB2",
    "/runs?label=odd&ending=passed",
    "/tasks?note=look",
)


@contextmanager
def serving(corpus: Path) -> Iterator[tuple[str, int, float]]:
    """Address, process and seconds until it answered."""
    command = [
        sys.executable,
        "-m",
        "depthkit",
        "dashboard",
        "--corpus",
        str(corpus),
        "--port",
        "0",
    ]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found is not None, line
        try:
            yield found[0].rstrip("/") + "/large", process.pid, time.perf_counter() - began
        finally:
            process.terminate()


def timed(client: httpx.Client, url: str, times: int = 9) -> list[float]:
    found = []
    for _ in range(times):
        began = time.perf_counter()
        client.get(url).raise_for_status()
        found.append(1000 * (time.perf_counter() - began))
    return found


def tree(pid: int) -> list[int]:
    """A process and all that it started and that still run."""
    found = [pid]
    for each in found:
        with contextlib.suppress(OSError):
            for children in Path(f"/proc/{each}/task").glob("*/children"):
                found += map(int, children.read_text().split())
    return found


def resident(pid: int) -> float:
    """Megabytes that a process holds now; 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Memory:
    """The most that a process and its children hold at the same time, looked at every 20 ms."""

    def __init__(self, pid: int) -> None:
        self.most = 0.0
        self._pid = pid
        self._over = threading.Event()
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while not self._over.wait(0.02):
            self.most = max(self.most, sum(resident(each) for each in tree(self._pid)))

    def stop(self) -> int:
        """Megabytes."""
        self._over.set()
        return round(self.most)


def read_until(client: httpx.Client, address: str) -> float:
    began = time.perf_counter()
    while not client.get(f"{address}/data/state").json()["read"]:
        time.sleep(0.05)
    return time.perf_counter() - began


def measure(runs: int) -> dict[str, object]:
    found: dict[str, object] = {"runs": runs, "processors": os.cpu_count()}
    with tempfile.TemporaryDirectory() as folder:
        corpus = write_large_corpus(Path(folder) / "large", runs)
        long_run = write_long_trial(corpus)
        with serving(corpus.path) as (address, pid, _), httpx.Client(timeout=60) as client:
            memory = Memory(pid)
            began = time.perf_counter()
            client.get(f"{address}/overview")
            found["first content, nothing cached, ms"] = round(1000 * (time.perf_counter() - began))
            found["corpus read the first time, s"] = round(read_until(client, address), 1)
            client.get(f"{address}/runs").raise_for_status()
            found["memory at most when nothing is cached, MB"] = memory.stop()
        with serving(corpus.path) as (address, pid, started), httpx.Client(timeout=60) as client:
            memory = Memory(pid)
            found["start of the process, s"] = round(started, 1)
            began = time.perf_counter()
            client.get(f"{address}/runs")
            found["first content, ms"] = round(1000 * (time.perf_counter() - began))
            found["corpus read again, s"] = round(read_until(client, address), 1)
            pages = {path: timed(client, address + path) for path in FILTERS}
            every = [each for times in pages.values() for each in times]
            found["filter, median ms"] = round(statistics.median(every))
            found["filter, worst ms"] = round(max(every))
            found["overview, median ms"] = round(
                statistics.median(timed(client, f"{address}/overview"))
            )
            found["plots of the overview, median ms"] = round(
                statistics.median(timed(client, f"{address}/data/plots.json", 3))
            )
            url = f"{address}/run?id={long_run}"
            found["150 turns of 5 MB, median ms"] = round(statistics.median(timed(client, url)))
            found |= brushes(address)
            with ThreadPoolExecutor(20) as pool:
                began = time.perf_counter()
                together = list(
                    pool.map(lambda path: timed(client, address + path, 5), FILTERS * 2)
                )
            each = [each for times in together for each in times]
            found["twenty requests at once, median ms"] = round(statistics.median(each))
            found["twenty requests at once, pages a second"] = round(
                len(each) / (time.perf_counter() - began)
            )
            paths = (*FILTERS, "/overview", f"/run?id={long_run}")
            found |= sessions(address, paths)
            found["memory at most, MB"] = memory.stop()
            found |= beside_harbor(corpus, long_run, 150, address)
            memory = Memory(pid)
            found |= panel_sessions(f"{address.rsplit('/', 1)[0]}/panel")
            found["memory with twenty Panel sessions, MB"] = memory.stop()
    return found


if __name__ == "__main__":
    result = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))
