"""``depthkit …``: thin, one function a command; what a command needs is imported when it runs."""

# In the order in which --help lists the commands.
from depthkit.cli import tasks, trials, corpus, dashboard, models, fitting, reports  # noqa: I001
from depthkit.cli.base import app

__all__ = ["app", "corpus", "dashboard", "fitting", "models", "reports", "tasks", "trials"]
