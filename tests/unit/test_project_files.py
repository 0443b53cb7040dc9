"""The files around the package agree with each other."""

from __future__ import annotations

import ast
import json
import re
import stat
import subprocess
import tomllib
from collections.abc import Mapping
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def locked() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    return dict(line.split("==") for line in lines)


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_the_lock_holds_plain_lines_only():
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9.-]+==[\w.+!]+", line)] == []
    names = [line.split("==")[0] for line in lines]
    assert len(names) == len(set(names)), "two versions of a package"


def test_the_lock_gives_what_pyproject_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    versions = locked()
    unmet = [
        line
        for line in asked
        if not Requirement(line).specifier.contains(
            versions.get(canonicalize_name(Requirement(line).name), "0")
        )
    ]
    assert not unmet, "make lock"


def imported_packages(folder: str, providers: Mapping[str, list[str]]) -> set[str]:
    """Distributions that modules below ``folder`` import, by their canonical names."""
    found = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                modules = [str(node.module)]
            else:
                continue
            for module in modules:
                found |= set(providers.get(module.split(".")[0], []))
    # pydantic's own parts, which it pins itself
    own = {"depthkit", "pydantic-core", "annotated-types"}
    return {canonicalize_name(each) for each in found} - own


def test_what_is_imported_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = {canonicalize_name(Requirement(r).name) for r in project["project"]["dependencies"]}
    for_tests = {
        canonicalize_name(Requirement(r).name) for r in project["dependency-groups"]["dev"]
    }
    providers = packages_distributions()  # looks at every file that is installed
    assert imported_packages("depthkit", providers) <= needed
    assert imported_packages("tests", providers) <= needed | for_tests


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_has_one_parameters_cell_and_no_outputs(path: Path):
    cells = json.loads(path.read_text())["cells"]
    tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    assert len(tagged) == 1
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def test_make_alone_lists_every_target():
    # Under `make test` this make is a sub-make, which would say that it enters a directory.
    command = ["make", "--no-print-directory"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {line.split()[1] for line in listing.splitlines()} == make_targets()


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "environment.yml"])
def test_documents_name_only_targets_that_exist(name: str):
    # In code only: "make sure" in a sentence is no target.
    code = re.findall(r"`[^`]*`|^\$ .*$", (ROOT / name).read_text(), re.MULTILINE)
    named = {word for span in code for word in re.findall(r"\bmake ([a-z-]+)", span)}
    assert named <= make_targets()


def test_ci_runs_what_a_person_runs():
    script = ROOT / ".ci/run"
    assert script.stat().st_mode & stat.S_IXUSR
    assert script.read_text().rstrip().endswith("exec make test")


def test_the_license_is_the_whole_apache_license():
    text = (ROOT / "LICENSE").read_text()
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
