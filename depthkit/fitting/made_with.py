"""What a fitted corpus was made with, so that it need not be made again to be known as current."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path

from depthkit.corpus.columns import code_digest

LIBRARIES = ("numpy", "pandas", "scipy")
_FOLDERS = ("fitting", "protocol", "published", "stats")


def fitted_with() -> dict[str, str]:
    """Digest of the code and printed numbers that decide a fit, and versions of its libraries.

    Where all are equal, the same seed gives the same bytes.
    """
    package = Path(__file__).parent.parent
    parts = [path for folder in _FOLDERS for path in (package / folder).rglob("*")]
    names = sorted(
        path.relative_to(package).as_posix() for path in parts if path.suffix in (".py", ".yaml")
    )
    return {"fitting": code_digest(*names)[:16]} | {name: version(name) for name in LIBRARIES}


def records_digest(directory: Path) -> str:
    """Digest of what was fitted: tasks, runs and replays as they are in a directory."""
    digest = hashlib.sha256()
    for name in ("tasks", "runs", "replays"):
        digest.update((directory / f"{name}.jsonl").read_bytes() + b"\0")
    return digest.hexdigest()[:16]
