"""Print a report's page to PDF, with a Chromium or Chrome that is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from depthkit.errors import DepthkitError

PDF = "report.pdf"
"""Name of the printed page in a report's directory."""

SECONDS = 120
"""After which a browser that does not end fails its report."""

_NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
_MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
_DATE = re.compile(rb"\(D:(\d{14})")
_NODE = re.compile(rb"\(node(\d{8})\)")


def find_browser() -> str:
    """Path of a browser; ``$CHROMIUM`` names one in an unusual place, as for ``env/browser.sh``.

    Raises:
        DepthkitError: there is none.
    """
    for name in (os.environ.get("CHROMIUM"), *_NAMES, _MAC):
        if name and (found := shutil.which(name)):
            return found
    raise DepthkitError(
        "A PDF is printed by Chromium or Chrome, and there is none; install one, such as with "
        "env/browser.sh --install, or name it in $CHROMIUM."
    )


def print_page(page: Path, target: Path) -> None:
    """Print a page once its figures are drawn; the same page gives the same bytes.

    Args:
        page: HTML file.
        target: PDF file, written whole or not at all.

    Raises:
        DepthkitError: the browser fails, or takes longer than :data:`SECONDS`.
    """
    with tempfile.TemporaryDirectory(prefix=".print-", dir=target.parent) as scratch:
        printed = Path(scratch, PDF).resolve()
        command = [
            find_browser(),
            "--headless",
            "--disable-gpu",
            "--disable-extensions",
            "--no-first-run",
            # Scripts run on a clock of their own, which stands still while they have work to do.
            "--virtual-time-budget=20000",
            "--no-pdf-header-footer",
            f"--user-data-dir={Path(scratch, 'profile').resolve()}",
            f"--print-to-pdf={printed}",
            page.resolve().as_uri(),
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # Chromium refuses to run as root with one
        try:
            done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise DepthkitError(f"{page}: the browser did not print it in {SECONDS} s.") from error
        if done.returncode or not printed.is_file():
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise DepthkitError(f"{page}: the browser did not print it ({' '.join(said)}).")
        printed.write_bytes(_lasting(printed.read_bytes()))
        printed.replace(target)


def _lasting(pdf: bytes) -> bytes:
    """Without what differs from one time to the next, byte for byte: a PDF counts where it is."""
    # Elements are numbered by nodes, of which a page has now one more, now one less on the way.
    nodes = {node: place for place, node in enumerate(sorted(set(_NODE.findall(pdf))))}
    pdf = _NODE.sub(lambda found: b"(node%08d)" % nodes[found[1]], pdf)
    return _DATE.sub(b"(D:19700101000000", pdf)
