#!/usr/bin/env bash
# Runs all tests with the Python given, with an engine up. Called by `make test`.
#
# Tests on an engine look at all that is in it, so on one engine they run one after another. Mostly
# they wait; so where more engines can be started, each with data, network and temporary files of
# its own, parts of them run on those at the same time. The tests without an engine run beside all.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$1
# A part for each further engine, as long as what is left; their containers need no network.
parts=("ladder limits readme sample" "merge replay segments trial")
export DEPTHKIT_NO_SKIP=1
rm -f .coverage .coverage.*
scratch=$(mktemp -d)
beside=()

engine() { # NUMBER up | down
    DOCKER_HOST=unix://$scratch/$1.sock DEPTHKIT_ENGINE_DIR=$scratch/engine-$1 \
        DEPTHKIT_ENGINE_ARGS="--data-root=$scratch/engine-$1/data --exec-root=$scratch/engine-$1/exec" \
        unshare --net env/engine.sh "$2"
}

finish() {
    [ ${#beside[@]} -eq 0 ] || kill "${beside[@]}" 2>/dev/null || true
    wait
    for number in "${!parts[@]}"; do
        [ ! -d "$scratch/engine-$number" ] || engine "$number" down || true
    done
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
elsewhere=()
if [ "$(uname)" = Linux ] && [ "$(id -u)" -eq 0 ] && command -v dockerd unshare >/dev/null; then
    for number in "${!parts[@]}"; do
        files=()
        for name in ${parts[number]}; do files+=("tests/integration/test_$name.py"); done
        engine "$number" up
        docker save depthkit/base:1 depthkit/tools:1 |
            DOCKER_HOST=unix://$scratch/$number.sock docker load --quiet >/dev/null
        DOCKER_HOST=unix://$scratch/$number.sock start_beside "part-$number" "${files[@]}"
        elsewhere+=("${files[@]/#/--ignore=}")
    done
fi
status=0
tests engine tests/integration "${elsewhere[@]}" || status=$?
for pid in "${beside[@]}"; do wait "$pid" || status=$?; done
beside=()
cat "$scratch"/*.log
"$python" -m coverage combine --quiet
"$python" -m coverage report
exit "$status"
