"""Whether a task has light dependencies (Appendix C, rule 3), as far as its files show.

It runs in an ordinary container without GPU, privileged mode or systemd, uses no external service,
and needs neither downloads above 200 MB nor builds above 1 GB or 10 minutes. What is in no file
(how large a package is, how long a build takes) is unsure: the image is then built once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from depthkit.tasks.load import LoadedTask

type Part = Literal["dockerfile", "instruction", "solution", "verifier", "compose"]

BUILD_BYTES = 1 << 30
"""Largest image that a build may give."""
BUILD_SECONDS = 600.0
"""Longest build."""

_LOCAL = r"(?!(?:localhost|127\.|0\.0\.0\.0|\[::1\]|\$|[\w-]+(?::\d+)?(?:/|\s|$)))"
_FETCH = r"(?:curl|wget|git clone|aria2c)\b[^\n]*https?://" + _LOCAL

_CALL = r"\b(?:requests\.\w+|urlopen|urlretrieve|fetch)\([^)\n]*https?://" + _LOCAL
_INSTALL = (
    r"\b(?:(?:pip3?|uv pip|npm|cargo|gem|go|yarn|dnf|yum) install|(?:yarn|apk|uv) add"
    r"|npm ci|go get)\b"
)


@dataclass(frozen=True)
class Pattern:
    """What shows a heavy dependency: where, and whether for certain."""

    kind: str
    pattern: str
    parts: tuple[Part, ...]
    sure: bool = True


_RUN: tuple[Part, ...] = ("solution", "verifier")
_CODE: tuple[Part, ...] = ("dockerfile", "compose", *_RUN)

PATTERNS: tuple[Pattern, ...] = (
    Pattern("gpu", r"FROM\s+\S*(?:nvidia|cuda)|--gpus\b|nvidia-smi|driver:\s*nvidia", _CODE),
    Pattern("gpu", r"\b(?:GPU|CUDA)\b", ("instruction",), sure=False),
    Pattern("privileged", r"--privileged\b|privileged:\s*true|docker\.sock|\bSYS_ADMIN\b", _CODE),
    Pattern("privileged", r"\b(?:modprobe|insmod|docker run|losetup|swapon)\b|mount -o loop", _RUN),
    Pattern("privileged", r"\bnetns add\b|/dev/kvm\b|\bNET_ADMIN\b", _CODE),
    Pattern("systemd", r"\b(?:systemctl|systemd-run|journalctl)\b", _RUN),
    Pattern("systemd", r"/(?:s?bin/init|lib/systemd/systemd)\b", ("dockerfile", "compose")),
    Pattern("systemd", r"\bsystemd\b", ("instruction",), sure=False),
    Pattern("external service", _FETCH, _RUN),
    Pattern("external service", _CALL, _RUN),
    Pattern("external service", r"\b[A-Z]+_API_KEY\b|\bapi\.(?:openai|anthropic)\.com\b", _CODE),
    Pattern("external service", _INSTALL, ("solution",)),
    Pattern("external service", r"\bapt(?:-get)? (?:-\S+ )*(?:install|update)\b", ("solution",)),
    Pattern("download", _FETCH + r"|^ADD\s[^\n]*https?://", ("dockerfile",), sure=False),
    Pattern(
        "download",
        r"\b(?:tensorflow|(?:py)?torch|jax|texlive-full|huggingface)\b",
        _CODE,
        sure=False,
    ),
    Pattern("download", r"\.(?:iso|gguf|safetensors)\b|load_dataset\(", _CODE, sure=False),
    Pattern(
        "build", r"\b(?:make -j|cmake --build|cargo build|bazel|ninja\b)", ("dockerfile",), False
    ),
)
"""Rules as data. A verifier that installs its own test tools is released that way and not heavy."""


@dataclass(frozen=True)
class Heavy:
    """One sign of a heavy dependency."""

    kind: str
    file: str
    line: int
    text: str
    sure: bool

    def __str__(self) -> str:
        return f"{self.kind}: {self.file}:{self.line}: {self.text}"


def heavy_signs(task: LoadedTask) -> list[Heavy]:
    """Signs that a task is not light; those that are certain first.

    Any of them that is sure decides; if all are unsure, the image is to be built once.
    """
    signs: list[Heavy] = []
    if task.config.environment.gpus:
        signs.append(Heavy("gpu", "task.toml", 1, "[environment] gpus", sure=True))
    for part, path in _files(task):
        text = path.read_bytes().decode("utf-8", errors="replace")
        file = path.relative_to(task.path).as_posix()
        for each in PATTERNS:
            if part not in each.parts:
                continue
            flags = re.MULTILINE | (re.IGNORECASE if part == "instruction" else 0)
            for found in re.finditer(each.pattern, text, flags):
                line = text.count("\n", 0, found.start()) + 1
                whole = text.split("\n")[line - 1].strip()
                if whole.startswith("#"):
                    continue
                signs.append(Heavy(each.kind, file, line, whole[:100], each.sure))
                break
    return sorted(signs, key=lambda sign: (not sign.sure, sign.file, sign.line))


def _files(task: LoadedTask) -> Iterator[tuple[Part, Path]]:
    root = task.path
    if task.dockerfile:
        yield "dockerfile", task.dockerfile
    if task.compose:
        yield "compose", root / "environment" / "docker-compose.yaml"
    places = [root, *(root / "steps" / step.name for step in task.config.steps or [])]
    for place in places:
        if (place / "instruction.md").is_file():
            yield "instruction", place / "instruction.md"
        for part, folder in (("solution", "solution"), ("verifier", "tests")):
            for path in sorted((place / folder).rglob("*")) if (place / folder).is_dir() else []:
                if path.is_file() and not path.is_symlink() and path.stat().st_size <= 1 << 20:
                    yield part, path  # type: ignore[misc]
