"""The dashboard: see the depth of a task, and what the agent did, turn by turn.

Everything shown is computed from a corpus by functions that know no web server
(:mod:`~depthkit.dashboard.source`, ``listing``, ``ladder``, ``turns``, ``search``); pages turn that
into escaped HTML, and :mod:`~depthkit.dashboard.server` gives them addresses.
:func:`app` shows a corpus in a cell of a notebook.
"""

from depthkit.dashboard.view import app

__all__ = ["app"]
