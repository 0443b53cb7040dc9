"""``python -m depthkit``: the command line without an installed script."""

from depthkit.cli import app

app()
