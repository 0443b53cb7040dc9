"""Calibration tasks: what a model must merge, and what it cannot (Appendix B)."""

from depthkit.tasks.calibration.families import (
    DEFAULT_NAMES,
    FAMILIES,
    MAX_STEPS,
    family_name,
    parse_name,
    write_family,
)

__all__ = [
    "DEFAULT_NAMES",
    "FAMILIES",
    "MAX_STEPS",
    "family_name",
    "parse_name",
    "write_family",
]
