"""Libraries of notebooks, imported without what takes seconds and no notebook needs."""

from __future__ import annotations

import importlib
import sys

_GRAMMARS = "rfc3987_syntax"


def without_grammars() -> None:
    """Import jsonschema, which nbformat needs, without its check that a text is an IRI.

    Where that optional part is installed (JupyterLab brings it), jsonschema compiles forty grammars
    at import, for one to two seconds; no schema of notebooks asks for an IRI.
    """
    if "jsonschema" in sys.modules:
        return
    sys.modules.setdefault(_GRAMMARS, None)  # type: ignore[arg-type]  # reads as not installed
    try:
        importlib.import_module("jsonschema")
    finally:
        if sys.modules.get(_GRAMMARS) is None:
            sys.modules.pop(_GRAMMARS, None)
