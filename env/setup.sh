#!/usr/bin/env bash
# Install the project and everything it needs, as requirements.lock says, into .venv in this checkout.
#
#   env/setup.sh            does it; quick where nothing has changed since the last time
#   env/setup.sh --python   does it, then prints the path of the Python to use
#
# In an active conda environment (other than "base") that environment is used, and conda's versions of
# the packages stay: only what is missing comes from pip. Elsewhere a Python is looked for in $PYTHON,
# on PATH, among pyenv's versions and among uv's.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$env_dir/.."
checkout=$PWD
no_packages="not all packages could be installed (see above): is there a network? Then try again."
wanted="Python 3.12 or 3.13" # as requires-python in pyproject.toml

# Prints X.Y.Z if this Python can be used.
version_of() {
    "$1" -c '
import sys, ctypes, sqlite3, ssl
if (3, 12) <= sys.version_info < (3, 14):
    print(".".join(map(str, sys.version_info[:3])))
else:
    sys.exit(1)' 2>/dev/null
}

candidates() {
    local root=${PYENV_ROOT:-$HOME/.pyenv}
    if [ -n "${PYTHON:-}" ]; then
        command -v "$PYTHON" || true
        return
    fi
    for name in python3.13 python3.12 python3 python; do command -v "$name" || true; done
    # pyenv's versions count whether it is activated or not.
    for path in "$root"/versions/3.13*/bin/python3 "$root"/versions/3.12*/bin/python3; do
        [ ! -x "$path" ] || echo "$path"
    done
    if command -v uv >/dev/null; then uv python find --no-python-downloads '>=3.12,<3.14' 2>/dev/null || true; fi
}

find_python() {
    local path seen=
    while read -r path; do
        if version_of "$path" >/dev/null; then
            echo "$path"
            return
        fi
        seen+=" $path ($("$path" --version 2>&1 | head -n 1 || true))"
    done < <(candidates)
    fail "$wanted is missing (with ssl, sqlite3 and ctypes); looked at:${seen:- nothing}." \
        "Install one, such as with \"pyenv install 3.13\" or \"uv python install 3.13\"," \
        "or use conda: \"conda env create -f environment.yml && conda activate depthkit\"."
}

# The lock, the project's own description and where the checkout lies are what an installation depends on.
state() { cat requirements.lock pyproject.toml - <<<"$checkout" | digest; }

# True if the environment has a Python that can be used, and of the version of $PYTHON where that is set.
is_fitting() {
    local has
    has=$(version_of "$python") || return 1
    [ -z "${PYTHON:-}" ] || [ "$has" = "$(version_of "$PYTHON")" ]
}
is_current() { [ "$(cat "$stamp" 2>/dev/null)" = "$(state)" ] && is_fitting; }

into_conda() {
    version_of "$python" >/dev/null ||
        fail "the active conda environment ($prefix) has no $wanted;" \
            "make one that has: \"conda env create -f environment.yml && conda activate depthkit\"."
    say "installing what the conda environment $prefix lacks"
    # pip reads dependency groups only since 25.1.
    "$python" -c '
import tomllib
with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)
print(*project["project"]["dependencies"], *project["dependency-groups"]["dev"], sep="\n")' |
        "$python" -m pip install --quiet --requirement /dev/stdin || fail "$no_packages"
    "$python" -m pip install --quiet --no-deps --no-build-isolation --editable .
}

into_venv() {
    local base uv
    # Without Debian's python3-venv a half-made environment is left that has a Python, but no pip.
    if ! is_fitting || ! "$python" -m pip --version >/dev/null 2>&1; then
        base=$(find_python)
        say "making .venv with Python $(version_of "$base") ($base)"
        "$base" -m venv --clear .venv || {
            rm -rf .venv
            fail "$base cannot make a virtual environment; on Debian and Ubuntu install python3-venv."
        }
    fi
    say "installing $(grep -c == requirements.lock) packages into .venv"
    # uv takes a tenth of pip's time. It does not read pip's settings, though, such as a package index
    # of one's own: where it fails, pip itself gets its turn.
    if ! uv=$(command -v uv); then
        uv=$checkout/.venv/bin/uv
        "$python" -m pip install --quiet --disable-pip-version-check "$(grep '^uv==' requirements.lock)" || fail "$no_packages"
    fi
    "$uv" pip install --quiet --python "$python" --requirement requirements.lock ||
        "$python" -m pip install --quiet --requirement requirements.lock || fail "$no_packages"
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
    # uv leaves out what pip does: where Python may not write bytecode, as in many containers, each
    # command would compile thousands of modules anew. Files that are no Python of this version stay, and
    # large parts of packages that nothing here imports, or that are there as machine code too.
    local idle='/tests?/|/(fastapi|huggingface_hub|litellm/proxy|mypyc?|pygments/lexers|sklearn)/'
    "$python" -m compileall -qq -j 0 -x "$idle" "$prefix"/lib/python3.*/site-packages || true
}

if [ -n "${CONDA_PREFIX:-}" ] && [ "${CONDA_DEFAULT_ENV:-}" != base ]; then
    prefix=$CONDA_PREFIX
    into=into_conda
else
    prefix=$checkout/.venv
    into=into_venv
fi
python=$prefix/bin/python
stamp=$prefix/depthkit-setup
if ! is_current; then
    rm -f "$stamp"
    $into
    state >"$stamp"
    say "ready in $SECONDS s: $("$python" --version) in $prefix"
fi
if [ "${1:-}" = --python ]; then echo "$python"; fi
