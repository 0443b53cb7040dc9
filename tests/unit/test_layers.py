"""Code depends one way: a layer imports only from those before it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "depthkit"
LAYERS = (
    "errors",
    "model",
    "protocol",
    "stats",
    "published",
    "corpus",
    "tasks",
    "trials",
    "experiments",
    "generation",
    "fitting",
    "artifacts",
    "reports",
    "dashboard",
    "data",
    "cli",
)


def imported_layers(source: str, package: str) -> set[str]:
    """The layers that a module of ``package`` ("depthkit.trials") imports, wherever in it."""
    modules = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            base = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
            origin = ".".join(part for part in (base, node.module) if part)
            # `from depthkit import corpus` names a layer only by what it imports
            modules |= {f"{origin}.{alias.name}" for alias in node.names}
    parts = [module.split(".") for module in modules]
    return {part[1] for part in parts if part[0] == "depthkit" and len(part) > 1} & set(LAYERS)


def forbidden(source: str, layer: str, package: str) -> set[str]:
    allowed = LAYERS[: LAYERS.index(layer) + 1]
    return {each for each in imported_layers(source, package) if each not in allowed}


def modules() -> list[Path]:
    return sorted(
        path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or "__" not in path.name
    )


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def test_every_module_belongs_to_a_layer():
    assert {layer_of(path) for path in modules()} <= set(LAYERS)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_earlier_layers(path: Path):
    package = ".".join(path.relative_to(PACKAGE.parent).parent.parts)
    later = forbidden(path.read_text(), layer_of(path), package)
    assert not later, f"{layer_of(path)} comes before {', '.join(sorted(later))}"


@pytest.mark.parametrize(
    "line",
    [
        "import depthkit.artifacts.audit",
        "from depthkit.artifacts import audit_table",
        "from depthkit import artifacts",
        "from ..artifacts import audit_table",
        "from .. import artifacts",
        "def late():\n    from depthkit.artifacts.audit import audit_table",
    ],
)
def test_every_way_to_import_a_later_layer_is_seen(line: str):
    assert forbidden(line, "corpus", "depthkit.corpus") == {"artifacts"}
    assert not forbidden(line, "reports", "depthkit.reports")
