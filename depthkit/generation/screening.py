"""``depthkit generate seeds``: which environments of released tasks are fit to be seeds (3.2).

First rules, which cost nothing; then a model judges what is left; then of each kind of system the
best one is kept. Verdicts are appended to a file as they are made, and none is made twice.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from depthkit.corpus.lines import Lines
from depthkit.errors import DepthkitError
from depthkit.generation.author import StoppedError
from depthkit.generation.judging import Judge
from depthkit.generation.seeds import SEED_FILE
from depthkit.generation.verdicts import LEAST, Choice, SeedVerdict, choose, read_verdicts
from depthkit.tasks.load import LoadedTask, load_task
from depthkit.tasks.text import directory_digest, printable, walk
from depthkit.trials.limits import Limits

MOST_BYTES = 50 << 20
"""Files of an environment that may be larger than this together are not looked at."""

_INSTALLS = re.compile(
    r"\b(?:apt-get|apt|apk|dnf|yum|zypper|pacman|pip3?|npm|gem|go|cargo|conda|mamba|cpan)\s+"
    r"(?:-\S+\s+)*(?:install|add|-S)\b|\bmake\s+install\b|\b(?:curl|wget)\b|\bgit\s+clone\b"
)
_BARE = re.compile(
    r"(?:[\w.-]+/)*(?:debian|ubuntu|alpine|fedora|centos|rockylinux|busybox|python|node|golang|"
    r"rust|ruby|openjdk|gcc|base)(?::|@|$)"
)
_FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(\S+)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Screened:
    """What a call did: every environment, and which limit or fault ended it early."""

    choices: list[Choice]
    stopped: str | None = None
    limit: bool = False


def screen(
    folders: Sequence[Path],
    verdicts_file: Path,
    *,
    model: str | None = None,
    models_file: Path | None = None,
    limits: Limits | None = None,
    least: int = LEAST,
) -> Screened:
    """Judge the environments of task packages, going on where an earlier call stopped.

    Args:
        folders: Harbor task packages, or directories of them.
        verdicts_file: Where verdicts are appended to, one a line.
        model: The judge; without one the rules alone are applied.
        models_file: A registry laid over the bundled one.
        limits: When to stop.
        least: Least rating in each of the four.

    Raises:
        DepthkitError: There is no task package, or the model cannot be called.
    """
    packages = _packages(folders)
    lines = Lines(verdicts_file)
    known = {verdict.digest: verdict for verdict in read_verdicts(verdicts_file)}
    waiting: list[tuple[str, LoadedTask]] = []
    order: dict[str, None] = {}
    for package in packages:
        task, verdict = _by_rules(package)
        if verdict.digest in order:
            continue
        order[verdict.digest] = None
        before = known.get(verdict.digest)
        if before is None and verdict.kept is False:
            lines.append([verdict])
            known[verdict.digest] = verdict
        elif task is not None and (before is None or before.kept is None):
            known[verdict.digest] = verdict
            waiting.append((verdict.digest, task))
    stopped, limit = None, False
    if model is not None and waiting:
        judge = Judge(model, models_file, limits or Limits())
        try:
            asyncio.run(judge.all(waiting, known, lines))
        except StoppedError as error:
            stopped, limit = str(error), error.limit
    return Screened(choose([known[digest] for digest in order], least), stopped, limit)


# --- rules ---


def _packages(folders: Sequence[Path]) -> list[Path]:
    found = []
    for folder in folders:
        if (folder / "task.toml").is_file():
            found.append(folder)
        else:
            inside = sorted(path.parent for path in folder.glob("*/task.toml"))
            if not inside:
                raise DepthkitError(f"{folder}: holds no Harbor task packages.")
            found += inside
    return found


def _by_rules(package: Path) -> tuple[LoadedTask | None, SeedVerdict]:
    environment = package / "environment"
    path = str(package)

    def no(reason: str, digest: str) -> tuple[None, SeedVerdict]:
        return None, SeedVerdict(
            digest=digest, path=path, stage="rules", kept=False, reason=printable(reason)
        )

    try:
        digest = directory_digest(environment if environment.is_dir() else package)
        task = load_task(package)
        size = sum(status.st_size for _, status, _ in walk(environment))
    except DepthkitError as error:
        return no(str(error), directory_digest(package))
    dockerfile = task.dockerfile
    if task.compose:
        return no("the environment is several containers", digest)
    if dockerfile is None:
        return no("the environment is a ready image, not a Dockerfile", digest)
    if task.config.environment.gpus:
        return no("the environment needs a GPU", digest)
    if size > MOST_BYTES:
        return no(f"the environment has {size >> 20} MB of files", digest)
    text = dockerfile.read_text(encoding="utf-8", errors="replace").replace("\\\n", " ")
    bases = _FROM.findall(text)
    if not _INSTALLS.search(text) and all(_BARE.match(base) for base in bases):
        return no("the image holds a base system alone: no software is installed", digest)
    works = [segment.work for segment in task.record.segments]
    return task, SeedVerdict(
        digest=digest,
        path=path,
        stage="rules",
        kept=True,
        reason="fits the rules; not judged yet",
        category=task.record.category,
        original_lines=None if None in works else sum(work.lines for work in works if work),
    )


# --- writing them ---


def write_seeds(choices: Iterable[Choice], folder: Path) -> list[Path]:
    """Make a seed of each environment that is kept; one that is there is left alone."""
    written = []
    for choice in choices:
        verdict = choice.verdict
        if not choice.kept:
            continue
        name = re.sub(r"[^a-z0-9.-]+", "-", Path(verdict.path).name.casefold()).strip("-.")
        target = folder / name
        if not target.exists():
            shutil.copytree(Path(verdict.path) / "environment", target, symlinks=True)
            (target / SEED_FILE).write_text(_seed_toml(name, verdict), encoding="utf-8")
            written.append(target)
    return written


def _seed_toml(name: str, verdict: SeedVerdict) -> str:
    values: dict[str, Any] = {
        "name": name,
        "kind": verdict.kind,
        "components": list(verdict.components),
        "summary": verdict.summary,
        "category": verdict.category,
        "original_lines": verdict.original_lines,
    }
    # A JSON text, number or list of texts is TOML as well.
    return "".join(
        f"{key} = {json.dumps(value, ensure_ascii=False)}\n"
        for key, value in values.items()
        if value is not None
    )
