"""depthkit: measure how deep terminal tasks are, and look into what agents did."""

from importlib.metadata import version

__version__ = version("depthkit")
