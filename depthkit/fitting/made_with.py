"""What a fitted corpus was made with, so that it need not be made again to be known as current."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path

LIBRARIES = ("numpy", "pandas", "scipy")


def fitted_with() -> dict[str, str]:
    """Digest of the code and printed numbers that decide a fit, and versions of its libraries.

    Where all are equal, the same seed gives the same bytes.
    """
    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    folders = ("fitting", "protocol", "published", "stats")
    parts = [path for folder in folders for path in (package / folder).rglob("*")]
    for path in sorted([*parts, package / "model.py"]):
        if path.suffix in (".py", ".yaml"):
            digest.update(path.relative_to(package).as_posix().encode() + b"\0")
            digest.update(path.read_bytes())
    return {"fitting": digest.hexdigest()[:16]} | {name: version(name) for name in LIBRARIES}
