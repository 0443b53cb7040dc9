"""Every number that the papers state, with its source.

A paper is one YAML file; ``docs/published.md`` explains its format. This module reads and checks
it, and says whether printed numbers can hold together; it compares none with a corpus.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import yaml
from pydantic import ValidationError

from depthkit.errors import DepthkitError
from depthkit.published.claim import Cell, Claim, Kind, Rule
from depthkit.published.cross import Checked, CrossCheck, work_out
from depthkit.published.layout import ArtifactScheme, FrameScheme, Paper

__all__ = [
    "PAPERS",
    "ArtifactScheme",
    "Cell",
    "Checked",
    "Claim",
    "CrossCheck",
    "FrameScheme",
    "Kind",
    "Rule",
    "cross_checks",
    "parse",
    "published",
    "schemes",
    "work_out",
]

# Nine times as fast where PyYAML was built with its C library, as its wheels are.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

PAPERS = ("depth",)
"""Papers whose numbers are kept, each as ``published/NAME.yaml``."""


def published(paper: str) -> tuple[Claim, ...]:
    """All claims of a paper, in the order of its sections.

    Args:
        paper: One of :data:`PAPERS`.

    Raises:
        DepthkitError: there is no such paper, or its file is wrong.
    """
    return _load(paper)[1]


def cross_checks(paper: str) -> tuple[Checked, ...]:
    """Which printed numbers constrain each other, and whether they can hold together.

    Args:
        paper: One of :data:`PAPERS`.

    Raises:
        DepthkitError: as for :func:`published`.
    """
    found, claims = _load(paper)
    by_id = {claim.id: claim for claim in claims}
    try:
        return tuple(work_out(check, by_id) for check in found.cross_checks)
    except ValueError as error:
        raise DepthkitError(f"published/{paper}.yaml: cross_checks: {error}.") from error


def schemes(paper: str) -> dict[str, ArtifactScheme]:
    """What the frames of each artifact hold that a claim is about, by the artifact's id.

    Raises:
        DepthkitError: as for :func:`published`.
    """
    return _load(paper)[0].artifacts


@cache
def _load(paper: str) -> tuple[Paper, tuple[Claim, ...]]:
    if paper not in PAPERS:
        raise DepthkitError(f"There is no paper {paper}; choose from {', '.join(PAPERS)}.")
    text = files("depthkit.published").joinpath(f"{paper}.yaml").read_text("utf-8")
    return _parse(text, f"published/{paper}.yaml")


def parse(text: str, source: str) -> tuple[Claim, ...]:
    """Read claims from YAML.

    Args:
        text: The file.
        source: Its name, for errors.

    Raises:
        DepthkitError: names the file, the field and what is wrong there.
    """
    return _parse(text, source)[1]


def _parse(text: str, source: str) -> tuple[Paper, tuple[Claim, ...]]:
    try:
        data: Any = yaml.load(text, Loader=_LOADER)  # noqa: S506 - either is the safe one
        paper = Paper.model_validate(data)
        return paper, paper.expand()
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise DepthkitError(f"{source}: {place}: {first['msg']}.") from error
    except (yaml.YAMLError, ValueError) as error:
        raise DepthkitError(f"{source}: {error}.") from error
