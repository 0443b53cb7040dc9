#!/usr/bin/env bash
# Runs all tests with the Python given: those that use the engine one after another, because they
# look at all that is in it, and the others beside them. Called by `make test`, with an engine up.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$1
export DEPTHKIT_NO_SKIP=1
rm -f .coverage .coverage.*
scratch=$(mktemp -d)
other=
trap '[ -z "$other" ] || kill "$other" 2>/dev/null || true; rm -rf "$scratch"' EXIT

# With a folder of its own for temporary files, so that its owners lie apart from those that the
# tests on the engine leave on purpose.
mkdir "$scratch/tmp"
TMPDIR=$scratch/tmp COVERAGE_FILE=.coverage.beside \
  "$python" -m pytest --cov --cov-report= tests/unit tests/browser >"$scratch/log" 2>&1 &
other=$!
status=0
COVERAGE_FILE=.coverage.engine "$python" -m pytest --cov --cov-report= tests/integration || status=$?
wait "$other" || status=$?
other=
cat "$scratch/log"
"$python" -m coverage combine --quiet
"$python" -m coverage report
exit "$status"
