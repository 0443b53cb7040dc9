"""Seed environments: a Dockerfile, its files, and ``seed.toml`` that says what is in them."""

from __future__ import annotations

import shutil
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from depthkit.errors import DepthkitError
from depthkit.tasks.text import directory_digest, parsed, printable, read_text, walk

SEED_FILE = "seed.toml"


class Seed(BaseModel):
    """``seed.toml``. A field's description is what an error message asks for.

    ``original_lines`` is W of the original task that an environment was released with.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = Field(
        pattern=r"^[a-z0-9][a-z0-9.-]*$",
        description='the directory\'s name in small letters, such as "pooled-database"',
    )
    kind: str = Field(min_length=3, description='the kind of system, such as "mail server"')
    components: list[str] = Field(
        min_length=1, description='a list of the software in it, such as ["nginx", "Redis"]'
    )
    summary: str = Field(min_length=10, description="a sentence on what the environment holds")
    category: str | None = Field(
        default=None, description='a word or two, such as "system-administration"'
    )
    labels: list[str] = Field(default_factory=list, description="a list of words")
    original_lines: int | None = Field(
        default=None, ge=0, description="a whole number of lines, such as 12"
    )
    cpus: int = Field(default=1, ge=1, description="a whole number of CPUs, such as 1")
    memory_mb: int = Field(default=1024, ge=64, description="megabytes, such as 1024")

    def told(self) -> dict[str, object]:
        """What an author is told."""
        return self.model_dump(include={"name", "kind", "components", "summary", "labels"})


def load_seed(folder: Path) -> Seed:
    """The ``seed.toml`` of a seed's directory.

    Raises:
        DepthkitError: It or the Dockerfile is missing, or a field is unknown or wrong.
    """
    shown = printable(str(folder / SEED_FILE))
    if not (folder / SEED_FILE).is_file():
        raise DepthkitError(f"{shown}: is missing; give a seed environment (docs/generation.md).")
    if not (folder / "Dockerfile").is_file():
        raise DepthkitError(f"{printable(str(folder))}: has no Dockerfile; add one.")
    raw = parsed("TOML", read_text(folder / SEED_FILE, shown), shown)
    try:
        seed = Seed.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0]) if first["loc"] else "?"
        known = Seed.model_fields.get(field)
        if known is None:
            raise DepthkitError(
                f"{shown}: {printable(field)} is not a field; use one of "
                f"{', '.join(Seed.model_fields)}."
            ) from None
        raise DepthkitError(f"{shown}: {field} must be {known.description}.") from None
    if seed.name != folder.resolve().name:
        raise DepthkitError(
            f"{shown}: name is {seed.name!r}; it must be that of the directory, "
            f"{printable(folder.resolve().name)!r}."
        )
    return seed


def seed_digest(folder: Path) -> str:
    """SHA-256 of a seed's directory."""
    return directory_digest(folder)


def copy_environment(seed: Path, target: Path) -> None:
    """Make a task's ``environment/`` of a seed: all its files but ``seed.toml``.

    Raises:
        DepthkitError: A link in the seed leaves it.
    """
    root = seed.resolve()

    def left_out(folder: str, _: list[str]) -> list[str]:
        return [SEED_FILE] if Path(folder) == root else []

    for name, _, entry in walk(root):
        if entry.is_symlink() and not entry.resolve().is_relative_to(root):
            raise DepthkitError(f"{printable(str(seed / name))}: is a link that leaves the seed.")
    shutil.copytree(root, target, symlinks=True, ignore=left_out)
