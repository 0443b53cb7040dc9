"""Imported once, by the process that kernels are forked from."""

import importlib

from depthkit.artifacts import figures

figures.load_backends()
for late in (
    "bokeh.embed",
    "bokeh.resources",
    "ipykernel.kernelapp",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
):
    importlib.import_module(late)
