"""env/setup.sh finds a Python by itself, installs what the lock says and is quick the next time.

It runs in a small checkout of its own, whose packages come from a directory: no network is needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = Path(sysconfig.get_config_var("BINDIR")) / "python3"
"""The Python that the one running the tests was made from."""

PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "small"
version = "1.0"
dependencies = ["dependency>=1"]

[dependency-groups]
dev = []
"""

# Builds the project's own editable wheel without any build tool installed.
BACKEND = """\
from pathlib import Path
from wheel_of import write_wheel

def prepare_metadata_for_build_editable(directory, config_settings=None):
    folder = Path(directory, "small-1.0.dist-info")
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\\nName: small\\nVersion: 1.0\\n")
    return folder.name

def build_editable(directory, config_settings=None, metadata_directory=None):
    here = Path(__file__).parent
    return write_wheel(Path(directory), "small", "1.0", {"small.pth": f"{here / 'src'}\\n"}).name
"""

WHEEL_OF = '''\
import zipfile
from pathlib import Path

def write_wheel(folder: Path, name: str, version: str, files: dict[str, str]) -> Path:
    """Write a wheel that holds these files."""
    info = f"{name}-{version}.dist-info"
    files = files | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    record = "".join(f"{each},,\\n" for each in [*files, f"{info}/RECORD"])
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for each, text in (files | {f"{info}/RECORD": record}).items():
            wheel.writestr(each, text)
    return path
'''


@dataclass
class Checkout:
    """A small project with the real scripts, and a machine on which no Python is found."""

    dir: Path
    bin: Path
    env: dict[str, str] = field(default_factory=dict)

    def setup(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.dir / "env/setup.sh", *args],
            env=self.env | env,
            capture_output=True,
            text=True,
            timeout=300,
            stdin=subprocess.DEVNULL,
        )

    def command(self, path: Path, script: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    project = tmp_path / "project"
    shutil.copytree(ROOT / "env", project / "env", ignore=shutil.ignore_patterns("cache"))
    files = {
        "pyproject.toml": PYPROJECT,
        "backend.py": BACKEND,
        "wheel_of.py": WHEEL_OF,
        "requirements.lock": "dependency==1.0\n",
        "src/small.py": "import dependency\nprint(dependency.VERSION)\n",
    }
    for name, text in files.items():
        path = project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    packages = tmp_path / "packages"
    packages.mkdir()
    made: dict = {}
    exec(WHEEL_OF, made)
    for version in ("1.0", "1.1"):
        made["write_wheel"](
            packages, "dependency", version, {"dependency.py": f"VERSION = {version!r}\n"}
        )
    keep = {"PATH", "LANG", "TMPDIR"}
    checkout = Checkout(
        project, tmp_path / "bin", {k: v for k, v in os.environ.items() if k in keep}
    )
    checkout.env |= {
        "HOME": str(tmp_path),
        "PATH": f"{checkout.bin}:{checkout.env['PATH']}",
        "PYENV_ROOT": str(tmp_path / "pyenv"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(packages),
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": str(packages),
    }
    for name in ("python3.13", "python3.12", "python3", "python"):
        checkout.command(checkout.bin / name, "echo none >&2; exit 1")
    # `uv pip` works, but uv knows of no Python.
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    checkout.command(checkout.bin / "uv", f'[ "$1" != python ] || exit 1\nexec "{uv}" "$@"')
    return checkout


def version_seen_by(python: Path) -> str:
    run = subprocess.run([python, "-c", "import small"], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_it_installs_into_venv_and_is_quick_and_silent_the_next_time(
    checkout: Checkout, tmp_path: Path
):
    python = checkout.dir / ".venv/bin/python"
    # pyenv is not activated, and no Python is named
    found = tmp_path / f"pyenv/versions/3.{sys.version_info.minor}.99/bin/python3"
    checkout.command(found, f'exec "{PYTHON}" "$@"')
    first = checkout.setup("--python")
    assert first.returncode == 0, first.stderr
    assert str(found) in first.stderr
    assert first.stdout == f"{python}\n"
    assert version_seen_by(python) == "1.0"

    second = checkout.setup("--python")
    assert second.stdout == f"{python}\n"
    assert second.stderr == ""

    lock = checkout.dir / "requirements.lock"
    lock.write_text("dependency==9.9\n")
    assert checkout.setup().returncode != 0
    lock.write_text("dependency==1.1\n")  # what failed is done again, what changed is installed
    assert checkout.setup().returncode == 0
    assert version_seen_by(python) == "1.1"


def test_after_a_python_without_venv_it_starts_afresh(checkout: Checkout, tmp_path: Path):
    """Debian's Python without python3-venv leaves a .venv with a Python and without pip."""
    broken = checkout.command(
        tmp_path / "debian/python3",
        f'[ "$2" != venv ] || {{ "{PYTHON}" -m venv --without-pip .venv; exit 1; }}\n'
        f'exec "{PYTHON}" "$@"',
    )
    first = checkout.setup(PYTHON=str(broken))
    assert first.returncode != 0
    assert "install python3-venv" in first.stderr
    assert not (checkout.dir / ".venv").exists()

    # What an interrupted set-up has left is not taken for a whole one either.
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", checkout.dir / ".venv"], check=True)
    second = checkout.setup(PYTHON=str(PYTHON))
    assert second.returncode == 0, second.stderr
    assert version_seen_by(checkout.dir / ".venv/bin/python") == "1.0"


def test_it_uses_the_active_conda_environment_and_makes_no_venv(checkout: Checkout, tmp_path: Path):
    conda = tmp_path / "conda"
    subprocess.run([PYTHON, "-m", "venv", conda], check=True)
    env = {"CONDA_PREFIX": str(conda), "CONDA_DEFAULT_ENV": "research"}
    result = checkout.setup("--python", **env)
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{conda}/bin/python\n"
    assert version_seen_by(conda / "bin/python") == "1.1"  # conda's or pip's choice, not the lock's
    assert not (checkout.dir / ".venv").exists()
    assert checkout.setup(**env).stderr == ""


def test_an_active_conda_environment_without_a_fitting_python_is_an_error(checkout: Checkout):
    result = checkout.setup(CONDA_PREFIX="/nowhere", CONDA_DEFAULT_ENV="research")
    assert result.returncode == 1
    assert "(/nowhere) has no Python 3.12 or 3.13" in result.stderr
    assert "conda env create -f environment.yml" in result.stderr


def test_condas_base_environment_is_left_alone(checkout: Checkout):
    result = checkout.setup(CONDA_PREFIX=str(PYTHON.parents[1]), CONDA_DEFAULT_ENV="base")
    assert "Python 3.12 or 3.13 is missing" in result.stderr  # it looks for one for .venv


def test_without_a_fitting_python_it_says_what_it_looked_at_and_what_to_do(checkout: Checkout):
    result = checkout.setup()
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert "Python 3.12 or 3.13 is missing" in line
    assert str(checkout.bin / "python3.13") in line
    assert "pyenv install 3.13" in line
    assert not (checkout.dir / ".venv").exists()
