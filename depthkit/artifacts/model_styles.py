"""How models look in figures and in which order they stand.

The same model has the same colour and marker in every figure; colours as for data sets.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle

from depthkit.artifacts.datasets import FREE_COLOURS, FREE_MARKERS, Style

_PAPER: dict[str, tuple[str, Style]] = {
    "claude-sonnet-5.5": ("Claude Sonnet 5.5", Style("#D55E00", "circle", "o")),
    "gpt-6.1-sol": ("GPT-6.1 Sol", Style("#009E73", "square", "s")),
    "gpt-6-luna": ("GPT-6 Luna", Style("#56B4E9", "triangle", "^")),
    "deepseek-v4.1-flash": ("DeepSeek-V4.1-Flash", Style("#0072B2", "diamond", "D")),
    "mimo-v2.6-flash": ("MiMo-V2.6-Flash", Style("#E69F00", "inverted_triangle", "v")),
    "glm-5.3-flash": ("GLM-5.3-Flash", Style("#CC79A7", "hex", "h")),
    "qwen3-8b": ("Qwen3-8B", Style("#D9D9D9", "circle", "o")),
    "qwen3-8b-thinking": ("Qwen3-8B, thinking", Style("#8C8C8C", "square", "s")),
    "qwen3-8b-tuned": ("Qwen3-8B, fine-tuned", Style("#D55E00", "diamond", "D")),
}
"""The models of the Depth paper, in the order of its Table 2 and then of its Figure 7."""


def in_order(models: Iterable[str]) -> list[str]:
    """Models of the paper in its order, then all others by name."""
    paper = list(_PAPER)
    return sorted(
        set(models), key=lambda name: (paper.index(name) if name in paper else len(paper), name)
    )


def label(model: str) -> str:
    """A model as the paper prints it; others by their name in the registry."""
    return _PAPER[model][0] if model in _PAPER else model


def model_styles(models: Iterable[str]) -> dict[str, Style]:
    """A colour and marker for each model.

    Args:
        models: All models of the corpus, shown or not, so that leaving one out of a figure
            changes no other's colour.
    """
    colours, markers = cycle(FREE_COLOURS), cycle(FREE_MARKERS)
    return {
        name: _PAPER[name][1] if name in _PAPER else Style(next(colours), *next(markers))
        for name in in_order(models)
    }
