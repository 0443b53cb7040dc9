"""Users of conda and users of pip get the same packages."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]
PYPI_NAME = {"docker-py": "docker", "python-duckdb": "duckdb"}
"""Packages that conda-forge calls by another name."""


def bounds(lines: list[str]) -> dict[str, SpecifierSet]:
    requirements = [Requirement(line) for line in lines]
    return {PYPI_NAME.get(each.name, each.name): each.specifier for each in requirements}


def conda_lines() -> list[str]:
    listed = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    (pip_section,) = [each["pip"] for each in listed if isinstance(each, dict)]
    return [each for each in listed if isinstance(each, str)] + pip_section


def pyproject() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_conda_users_get_the_packages_of_pyproject_with_the_same_bounds():
    conda = bounds(conda_lines())
    del conda["python"], conda["pip"]
    project = pyproject()
    assert conda == bounds(project["project"]["dependencies"] + project["dependency-groups"]["dev"])


def test_conda_users_get_a_python_that_the_project_allows():
    allowed = pyproject()["project"]["requires-python"]
    assert bounds(conda_lines())["python"] == SpecifierSet(allowed)


def test_no_package_is_listed_twice():
    names = [Requirement(line).name for line in conda_lines()]
    assert sorted(names) == sorted(set(names))
