"""Time the dashboard on a corpus of 100,000 runs, and a trajectory of 150 turns and 5 MB.

    python tests/benchmarks/bench_dashboard.py [RUNS]

Writes results/dashboard.json. Filters are timed as whole pages over HTTP, as a person waits for
them; memory is that of the serving process, which also reads the corpus the first time.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
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
        yield found[0].rstrip("/") + "/large", process.pid, time.perf_counter() - began
        process.terminate()


def timed(client: httpx.Client, url: str, times: int = 9) -> list[float]:
    found = []
    for _ in range(times):
        began = time.perf_counter()
        client.get(url).raise_for_status()
        found.append(1000 * (time.perf_counter() - began))
    return found


def memory(pid: int) -> float:
    """Megabytes at most so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


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
            began = time.perf_counter()
            client.get(f"{address}/overview")
            found["first content, nothing cached, ms"] = round(1000 * (time.perf_counter() - began))
            found["corpus read the first time, s"] = round(read_until(client, address), 1)
            found["memory at most when nothing is cached, MB"] = round(memory(pid))
        with serving(corpus.path) as (address, pid, started), httpx.Client(timeout=60) as client:
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
            with ThreadPoolExecutor(20) as pool:
                began = time.perf_counter()
                together = list(
                    pool.map(lambda path: timed(client, address + path, 5), FILTERS * 3)
                )
            each = [each for times in together for each in times]
            found["twenty at once, median ms"] = round(statistics.median(each))
            found["twenty at once, pages a second"] = round(
                len(each) / (time.perf_counter() - began)
            )
            found["memory at most, MB"] = round(memory(pid))
    return found


if __name__ == "__main__":
    result = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))
