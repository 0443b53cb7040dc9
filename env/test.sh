#!/usr/bin/env bash
# Runs all tests with the Python given, in three processes side by side: tests on the engine that may
# meet those of others, tests on the engine that may not (marked `alone`), and all the rest.
# Called by `make test`, with an engine up.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$1
export DEPTHKIT_NO_SKIP=1
rm -f .coverage .coverage.*
scratch=$(mktemp -d)
running=()
trap '[ ${#running[@]} -eq 0 ] || kill "${running[@]}" 2>/dev/null || true; rm -rf "$scratch"' EXIT

tests() { # NAME PYTEST-ARGUMENT…
    local name=$1
    shift
    COVERAGE_FILE=.coverage.$name "$python" -m pytest --cov --cov-report= "$@"
}

beside() { # NAME PYTEST-ARGUMENT…: in the background, into a file
    # With a folder of its own for temporary files each has its owners apart, so that none finds
    # (and removes) what another left on purpose.
    mkdir "$scratch/$1"
    TMPDIR=$scratch/$1 tests "$@" >"$scratch/$1.log" 2>&1 &
    running+=($!)
}

status=0
beside unit tests/unit tests/browser
beside many tests/integration -m "not alone"
tests alone tests/integration -m alone || status=$?
for process in "${running[@]}"; do wait "$process" || status=$?; done
running=()
cat "$scratch"/*.log
"$python" -m coverage combine --quiet
"$python" -m coverage report
exit "$status"
