"""Tables of a calibration task and what may be asked of them."""

from __future__ import annotations

import random
from pathlib import Path

Row = tuple[str, str, int, str]


# --- tasks, written here with their answers ---


def seal(rng: random.Random) -> str:
    return f"{rng.getrandbits(64):016x}"


def table(rng: random.Random, names: list[str] | None = None) -> list[Row]:
    words = ["kestrel", "heron", "swift", "avocet"]
    names = names or [f"{rng.choice(words)}-{i}" for i in range(60)]
    weights = rng.sample(range(1000, 9999), len(names))
    zones = ["north", "south", "upper-east"]
    return [(n, rng.choice(zones), w, seal(rng)) for n, w in zip(names, weights, strict=True)]


def write(path: Path, rows: list[Row]) -> None:
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))


def choices(rows: list[Row], rng: random.Random) -> list[tuple[str, str]]:
    """Each kind of selection in English, with the seal it means, found without awk."""
    i = rng.randrange(len(rows) - 1)
    name, zone = rows[i][0], rows[i][1]
    there = [row for row in rows if row[1] == zone]

    def weight(row: Row) -> int:
        return row[2]

    return [
        (f"of the row whose name is {name}", rows[i][3]),
        ("of the row with the largest weight", max(rows, key=weight)[3]),
        ("of the row with the smallest weight", min(rows, key=weight)[3]),
        (f"on line {i + 1}", rows[i][3]),
        (f"of the first row whose zone is {zone}", there[0][3]),
        (f"of the last row whose zone is {zone}", there[-1][3]),
        (f"of the row right after the one whose name is {name}", rows[i + 1][3]),
        (f"of the row with the largest weight whose zone is {zone}", max(there, key=weight)[3]),
        (f"of the row with the smallest weight whose zone is {zone}", min(there, key=weight)[3]),
    ]
