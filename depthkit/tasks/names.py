"""``names.toml`` of a segment: which names its instruction states (Table 9).

It lists, as ``names``, paths, ports, accounts and other names that the checks rely on, each stated
verbatim in the instruction, and, as ``settings``, the values that the goal asks for. What the
solver must measure stands in neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from depthkit.errors import DepthkitError
from depthkit.tasks.text import parsed, printable, read_text


@dataclass(frozen=True)
class Names:
    """What ``names.toml`` of a segment lists."""

    names: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()


def read_names(path: Path, shown: str) -> Names | None:
    """The names of a segment; ``None`` where there is no such file.

    Raises:
        DepthkitError: It is no TOML of the two lists.
    """
    if not path.is_file():
        return None
    raw = parsed("TOML", read_text(path, shown), shown)
    for key, value in raw.items():
        if key not in ("names", "settings"):
            raise DepthkitError(f"{shown}: has {printable(key)}; it may have names and settings.")
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise DepthkitError(f"{shown}: {key} must be a list of texts, each in quotes.")
    return Names(tuple(raw.get("names", ())), tuple(raw.get("settings", ())))
