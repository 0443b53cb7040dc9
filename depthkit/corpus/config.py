"""``corpus.toml``: name, models, protocol settings and versions; and which corpora are bundled."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
import warnings
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

from depthkit.corpus.files import require_plain_name
from depthkit.corpus.lines import sync_directory
from depthkit.errors import DepthkitError, DepthkitWarning
from depthkit.protocol import CAPS, CEILING, FREE_RUNS, RUNS_PER_CAP

CONFIG = "corpus.toml"
FIXED = {"ceiling": CEILING, "free_runs": FREE_RUNS, "runs_per_cap": RUNS_PER_CAP}
"""Settings of ``[protocol]`` that are written down, but can only have these values."""


def default_name(path: Path, name: str | None) -> str:
    """Name of a new corpus: the one given, else made from its directory's."""
    if name is not None:
        return require_plain_name(name, f"{path}: name")
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.resolve().name).strip("-.") or "corpus"


_DATA = Path(str(files("depthkit"))) / "data"


def bundled_corpora() -> dict[str, Path]:
    """Corpora that come with the package, by name."""
    return {path.parent.name: path.parent for path in _DATA.glob(f"*/{CONFIG}")}


def _is_bundled(path: Path) -> bool:
    return path.resolve().is_relative_to(_DATA.resolve())


def refuse_bundled(path: Path) -> None:
    """Refuse to write below the package."""
    if _is_bundled(path):
        raise DepthkitError(
            f"{path}: comes with depthkit and is only read; copy it, and name the copy."
        )


def warn_of_two(name: str) -> None:
    """Say that a directory was taken in place of a bundled corpus."""
    warnings.warn(
        DepthkitWarning(
            f"{name}: the corpus in ./{name} is used, not the one of that name that comes with "
            "depthkit."
        ),
        stacklevel=3,
    )


def has_corpus(path: Path) -> bool:
    """Whether a corpus is in a directory, if only its runs: that it lacks the rest is then said."""
    return (path / CONFIG).is_file() or (path / "runs.jsonl").is_file()


def cache_folder(path: Path) -> Path:
    """Where what is derived from a corpus is kept: ``cache/`` in it.

    Nothing is written into the package, so that of a bundled corpus is in the user's own cache
    directory.
    """
    if not _is_bundled(path):
        return path / "cache"
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("HOME", "") + "/.cache"
    place = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:8]
    folder = Path(home) / "depthkit" / f"{path.name}-{place}"
    with suppress(OSError):  # without it nothing is cached
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def load_config(path: Path) -> dict[str, Any]:
    """Settings of the corpus in a directory.

    Raises:
        DepthkitError: They cannot be read.
    """
    where = path / CONFIG
    try:
        if not where.exists():
            raise DepthkitError(
                f"{where}: is missing, though the corpus has runs; put it back, with at least "
                'models = ["first", "second"], the model set in its order.'
            )
        return tomllib.loads(where.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DepthkitError(f"{where}: cannot be read as TOML ({error}); correct it.") from error


def write_config(
    path: Path,
    name: str,
    models: tuple[str, ...],
    old: dict[str, Any] | None = None,
) -> None:
    """Write ``corpus.toml`` whole or not at all; settings that are there stay.

    Args:
        path: Directory of the corpus.
        name: Its name.
        models: Its model set, the first one first.
        old: Settings that are there.
    """
    old = old or {}
    protocol = {"caps": list(CAPS), **FIXED} | old.get("protocol", {})
    versions = {"depthkit": _version("depthkit"), "harbor": _version("harbor")}
    created = old.get("created", datetime.now(UTC).replace(microsecond=0).isoformat())
    text = "".join(
        [
            f"name = {_toml(name)}\n",
            f"created = {_toml(str(created))}\n",
            f"models = {_toml(list(models))}\n",
            *("\n[protocol]\n", *(f"{k} = {_toml(v)}\n" for k, v in protocol.items())),
            *("\n[versions]\n", *(f"{k} = {_toml(v)}\n" for k, v in versions.items())),
        ]
    )
    temporary = path / f".{CONFIG}"
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path / CONFIG)
    sync_directory(path)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _toml(value: Any) -> str:
    """Text, whole numbers and lists of them; TOML writes these as JSON does."""
    return json.dumps(value, ensure_ascii=False)
