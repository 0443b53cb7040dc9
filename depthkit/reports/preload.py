"""Imported once, by the process that kernels are forked from."""

import gc
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

# What is imported stays: no kernel need look for garbage in it, nor get pages of its own for that.
gc.collect()
gc.freeze()
gc.set_threshold(50_000)
