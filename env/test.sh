#!/usr/bin/env bash
# Checks style and types and runs all tests with the Python given, with an engine up. Called by
# `make test`.
#
# Tests on an engine look at all that is in it, so on one engine they run one after another. Mostly
# they wait; so where more engines can be started, each with data, network and temporary files of
# its own, parts of them run on those at the same time. The tests without an engine run beside all.
#
# A test that fails is not run again: what fails now and then is a fault, and so is a test that cannot
# wait. For the same reason one part, which is most of what trials ask of an engine, runs on purpose
# beside busy processes; alone and after all others, so that it makes none of them late.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$1
# A part for each further engine, as long as what is left; their containers need no network.
parts=(
    "budget endpoint ladder readme verdict_ways"
    "check faults merge trial"
    "attempt calibration_tasks endpoint_faults forgery live replay sample segments"
)
loaded="environment many_trials"
load=3 # busy processes
export DEPTHKIT_NO_SKIP=1
rm -f .coverage .coverage.*
scratch=$(mktemp -d)
chmod 755 "$scratch" # a test becomes another user
echo '{"defaultAction": "SCMP_ACT_ALLOW"}' >"$scratch/filter.json"
types= # pid of the type checker
beside=() # pids of what else runs in the background; names, engines and arguments of all parts follow
names=()
hosts=()
arguments=()
verdicts=()
last= # index of the part with the first engine, in the foreground; the loaded part comes after it
busy=()

# A third of what a command in a container costs is its filter of system calls, made anew for each. The
# first engine has Docker's own; further ones let all calls through.
engine() { # NUMBER up | down
    local own=$scratch/engine-$1
    DOCKER_HOST=unix://$scratch/$1.sock DEPTHKIT_ENGINE_DIR=$own \
        DEPTHKIT_ENGINE_ARGS="--data-root=$own/data --exec-root=$own/exec --seccomp-profile=$scratch/filter.json" \
        unshare --net env/engine.sh "$2"
    [ "$2" = up ] || rm -rf "$own"
}

finish() {
    [ -z "$types" ] || kill "$types" 2>/dev/null || true
    [ ${#beside[@]} -eq 0 ] || kill "${beside[@]}" 2>/dev/null || true
    [ ${#busy[@]} -eq 0 ] || kill "${busy[@]}" 2>/dev/null || true
    wait
    for number in "${!parts[@]}"; do
        [ ! -d "$scratch/engine-$number" ] || engine "$number" down &
    done
    wait
    [ ${#verdicts[@]} -eq 0 ] || printf 'test: %s\n' "${verdicts[@]}" # last, so that it is seen
    rm -rf "$scratch"
}
trap finish EXIT

part() { # NAME DOCKER_HOST PYTEST-ARGUMENTS…; no name of a test file has a space
    names+=("$1")
    hosts+=("$2")
    arguments+=("${*:3}")
    mkdir "$scratch/$1"
}

tests() { # INDEX
    local name=${names[$1]}
    # Where processes note what they have in an engine: one place for each engine.
    if [ "$name" != engine ] && [ "$name" != load ]; then export TMPDIR=$scratch/$name; fi
    if [ -n "${hosts[$1]}" ]; then export DOCKER_HOST=${hosts[$1]}; fi
    # shellcheck disable=SC2086 # the arguments are to be split
    COVERAGE_FILE=$(mktemp -u ".coverage.$name.XXXX") "$python" -m pytest -o cache_dir="$scratch/$name/cache" \
        --cov --cov-report= --durations=8 --durations-min=10 ${arguments[$1]}
}

begin() { # INDEX
    # A person's clicks want a prompt answer: a browser follows the longer half of the unit tests.
    local first=
    if [ "${names[$1]}" = browser ]; then first=${beside[1]}; fi
    (
        while [ -n "$first" ] && kill -0 "$first" 2>/dev/null; do sleep 1; done
        if [[ ${names[$1]} = part-* ]]; then
            engine "${names[$1]#part-}" up
            docker save depthkit/base:1 depthkit/tools:1 | docker -H "${hosts[$1]}" load --quiet >/dev/null
        fi
        tests "$1" || exit
        # Its files are many: they go while others still test.
        if [[ ${names[$1]} = part-* ]]; then engine "${names[$1]#part-}" down || true; fi
    ) >"$scratch/${names[$1]}.log" 2>&1 &
    beside+=($!)
}

failures() { sed -n -E 's/^(FAILED|ERROR) ([^ ]+).*/\2/p' "$1"; } # LOG

# --- style, engines and images ---

"$python" -m ruff format --check .
"$python" -m ruff check .
"$python" -m mypy >"$scratch/types.log" 2>&1 &
types=$!
# In two, or with all that runs beside them they would end last, alone on one core.
part unit-0 "" tests/unit/test_[a-d]*.py
part unit-1 "" tests/unit --ignore-glob='*/unit/test_[a-d]*.py'
begin 0
begin 1
env/base/build.sh
env/tools/build.sh
files=()
for name in $loaded; do files+=("tests/integration/test_$name.py"); done
under_load=${files[*]}
elsewhere=("${files[@]/#/--ignore=}")
if [ "$(uname)" = Linux ] && [ "$(id -u)" -eq 0 ] && command -v dockerd unshare >/dev/null; then
    for number in "${!parts[@]}"; do
        files=()
        for name in ${parts[number]}; do files+=("tests/integration/test_$name.py"); done
        part "part-$number" "unix://$scratch/$number.sock" "${files[@]}"
        elsewhere+=("${files[@]/#/--ignore=}")
    done
fi
part browser "" tests/browser
part engine "" tests/integration "${elsewhere[@]}"
last=$((${#names[@]} - 1))
part load "" "$under_load"

# --- tests ---

for ((i = 2; i < last; i++)); do begin "$i"; done
results=()
foreground=0
(tests "$last") 2>&1 | tee "$scratch/${names[last]}.log" || foreground=$?
for ((i = 0; i < last; i++)); do
    results[i]=0
    wait "${beside[i]}" || results[i]=$?
    cat "$scratch/${names[i]}.log"
done
results[last]=$foreground
beside=()

for ((i = 0; i < load; i++)); do
    (while kill -0 $$ 2>/dev/null && [ "$SECONDS" -lt 3600 ]; do :; done) &
    busy+=($!)
done
results[last + 1]=0
(tests "$((last + 1))") 2>&1 | tee "$scratch/load.log" || results[last + 1]=$?
kill "${busy[@]}"
busy=()

status=0
if ! wait "$types"; then
    status=1
    verdicts+=("failed: mypy, see below"$'\n'"$(cat "$scratch/types.log")")
fi
types=
for i in "${!results[@]}"; do
    [ "${results[i]}" -ne 0 ] || continue
    failed=$(failures "$scratch/${names[i]}.log")
    status=${results[i]}
    verdicts+=("failed: ${failed//$'\n'/, } (${names[i]}, exit code ${results[i]})")
done
"$python" -m coverage combine --quiet
"$python" -m coverage report
exit "$status"
