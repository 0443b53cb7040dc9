"""Small files beside a report."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def read_json(path: Path) -> dict[str, Any]:
    """Empty where there is no such file, or one cut short."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def write(path: Path, text: str) -> None:
    """Whole or not at all."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, "utf-8")
    temporary.replace(path)


def now() -> str:
    """In universal time, to the minute."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
