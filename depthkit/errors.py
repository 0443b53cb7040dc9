"""The one exception that a person is meant to read."""

from __future__ import annotations


class DepthkitError(Exception):
    """Bad input or a missing prerequisite, in one sentence that says what to do.

    The message names the file and the field where there is one, for example
    ``tasks/foo/task.toml: [verifier] timeout_sec is "ten"; it must be a number of seconds, such
    as 600.`` The command line prints it without a traceback and exits with status 2.
    """


class DepthkitWarning(UserWarning):
    """Something a person should know that stops nothing; the command line prints it as one line."""
