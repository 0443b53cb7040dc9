#!/usr/bin/env bash
# Runs all tests with the Python given, with an engine up. Called by `make test`.
#
# Tests on an engine look at all that is in it, so on one engine they run one after another. Mostly
# they wait; so where a second engine can be started, with data, network and temporary files of its
# own, half of them run on that at the same time. The tests without an engine run beside both.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$1
# They take as long as all other tests on an engine, and their containers need no network.
second_half=(tests/integration/test_{ladder,limits,merge,readme,replay,sample,segments,trial}.py)
export DEPTHKIT_NO_SKIP=1
rm -f .coverage .coverage.*
scratch=$(mktemp -d)
beside=()

second_engine() { # up | down
    DOCKER_HOST=unix://$scratch/docker.sock DEPTHKIT_ENGINE_DIR=$scratch/engine \
        DEPTHKIT_ENGINE_ARGS="--data-root=$scratch/data --exec-root=$scratch/exec" \
        unshare --net env/engine.sh "$1"
}

finish() {
    [ ${#beside[@]} -eq 0 ] || kill "${beside[@]}" 2>/dev/null || true
    wait
    [ ! -d "$scratch/engine" ] || second_engine down || true
    rm -rf "$scratch"
}
trap finish EXIT

tests() { # NAME PYTEST-ARGUMENTS…
    COVERAGE_FILE=.coverage.$1 "$python" -m pytest --cov --cov-report= "${@:2}"
}

start_beside() { # NAME PYTEST-ARGUMENTS…
    mkdir "$scratch/$1"
    TMPDIR=$scratch/$1 tests "$@" >"$scratch/$1.log" 2>&1 &
    beside+=($!)
}

start_beside others tests/unit tests/browser
here=()
if [ "$(uname)" = Linux ] && [ "$(id -u)" -eq 0 ] && command -v dockerd unshare >/dev/null; then
    second_engine up
    docker save depthkit/base:1 depthkit/tools:1 |
        DOCKER_HOST=unix://$scratch/docker.sock docker load --quiet >/dev/null
    DOCKER_HOST=unix://$scratch/docker.sock start_beside second "${second_half[@]}"
    here=("${second_half[@]/#/--ignore=}")
fi
status=0
tests engine tests/integration "${here[@]}" || status=$?
for pid in "${beside[@]}"; do wait "$pid" || status=$?; done
beside=()
cat "$scratch"/*.log
"$python" -m coverage combine --quiet
"$python" -m coverage report
exit "$status"
