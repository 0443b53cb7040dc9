#!/usr/bin/env bash
# Bring up a Docker engine where none answers, and take it down again.
#
#   env/engine.sh up             start an engine if none answers; see that compose v2 and buildx are there
#   env/engine.sh down           stop the engine, but only one that this checkout started
#   env/engine.sh run -- CMD…    up, CMD, and down again if a `run` started the engine and this is the last one
#
# Several checkouts may use one engine: who started it and who uses it is noted beside its socket.
# Where an engine answers (Docker Desktop, rootless docker, a system service) nothing is started.
# DOCKER_HOST or docker's own context says which engine is meant. Starting one needs root, and Debian
# where docker.io is not installed yet.
#
#   DEPTHKIT_ENGINE_DIR    log and pid file of the engine started here, and which checkout this is  (env/cache/engine)
#   DEPTHKIT_ENGINE_ARGS   more arguments for dockerd, such as --data-root=DIR
set -euo pipefail

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
dir=${DEPTHKIT_ENGINE_DIR:-$env_dir/cache/engine}
host=${DOCKER_HOST:-unix:///var/run/docker.sock}
socket=${host#unix://}
state=$socket.depthkit # "PID STARTTIME MODE DIR"; the start time tells our process from a later one of that pid
users=$socket.depthkit-users # who holds this uses the engine
starts=$socket.depthkit-lock # two calls at once must not both start an engine
log=$dir/dockerd.log
plugin_dir=/usr/local/lib/docker/cli-plugins
usage="usage: env/engine.sh up | down | run -- CMD…"
patience=60 # seconds that dockerd may take to answer or to stop

answers() { docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }
start_time() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }

# Sets what `state` says, if that very process still runs.
started() {
    [ -r "$state" ] && read -r pid since mode owner <"$state" || return 1
    [ -n "$since" ] && [ "$(start_time "$pid")" = "$since" ]
}

# Only Linux starts an engine, and Linux has flock. Where no file is, the engine was not started from here.
lock() { # DESCRIPTOR FILE [-s | -n]
    [ -r "$2" ] || return 0
    eval "exec $1<\"\$2\""
    if command -v flock >/dev/null; then flock ${3:+"$3"} "$1"; fi
}

# --- the engine ---

prepare_to_start() {
    [ "$socket" != "$host" ] ||
        fail "no Docker engine answers at DOCKER_HOST=$host, and one there cannot be started from here."
    if [ -S "$socket" ] && [ ! -w "$socket" ]; then
        fail "you may not use the Docker engine at $socket: join the group \"docker\" and log in again."
    fi
    is_root || fail "no Docker engine answers, and starting one needs root:" \
        "start Docker yourself (Docker Desktop, rootless docker, systemctl start docker) and try again."
    command -v dockerd >/dev/null || is_debian ||
        fail "no Docker engine answers, and it can be installed from here on Debian only:" \
            "install Docker, start it and try again."
    mkdir -p "$(dirname "$socket")"
    touch "$users" "$starts"
}

start() { # MODE
    local pid i
    if ! command -v dockerd >/dev/null || ! command -v docker >/dev/null; then
        apt_install docker.io
        command -v docker >/dev/null || apt_install docker-cli # a package of its own since Debian 13
        if answers; then return; fi                            # the package started a system service
    fi
    say "starting dockerd, log in $log"
    rm -f "$dir/dockerd.pid"
    # shellcheck disable=SC2086 # the arguments are to be split
    setsid dockerd --host "$host" --pidfile "$dir/dockerd.pid" ${DEPTHKIT_ENGINE_ARGS:-} \
        </dev/null >"$log" 2>&1 8>&- 9>&- &
    pid=$!
    echo "$pid $(start_time "$pid") $1 $dir" >"$state"
    for ((i = 0; i < patience * 5; i++)); do
        if answers; then return; fi
        if ! kill -0 "$pid" 2>/dev/null; then
            rm -f "$state"
            tail -n 5 "$log" >&2
            fail "dockerd stopped at once; its last words are above, the rest in $log"
        fi
        sleep 0.2
    done
    stop
    fail "dockerd did not answer within $patience seconds; see $log"
}

stop() { # what `started` has set
    local i
    say "stopping dockerd"
    kill -TERM "$pid"
    for ((i = 0; i < patience * 5; i++)); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.2
    done
    if kill -0 "$pid" 2>/dev/null; then
        say "dockerd does not stop; killing it"
        kill -KILL "$pid"
    fi
    rm -f "$state"
}

up() { # MODE: "up" stays until `down`, "run" goes with the last `run`
    local pid since mode owner
    answers || prepare_to_start
    mkdir -p "$dir"
    lock 9 "$starts"
    if ! answers; then
        start "$1"
    elif [ "$1" = up ] && started && [ "$mode" = run ] && [ -w "$state" ]; then
        echo "$pid $since up $dir" >"$state" # asked for to stay
    fi
    plugins
    exec 9>&-
}

# --- compose v2 and buildx ---

plugins() {
    local missing=()
    docker compose version >/dev/null 2>&1 || missing+=(docker-compose)
    docker buildx version >/dev/null 2>&1 || missing+=(docker-buildx)
    [ ${#missing[@]} -gt 0 ] || return 0
    if is_root && is_debian; then
        say "installing ${missing[*]} from Debian"
        install_plugins "${missing[@]}" && return
        say "could not get ${missing[*]}; see $apt_log"
    fi
    say "Docker lacks ${missing[*]}: without buildx no task image can be built," \
        "without compose no task with a compose file can run. Install Docker's buildx and compose plugins."
}

# Debian 12 has neither, Debian 13's run on it. Its files are taken from its packages by an apt that
# is configured for this call alone: the machine's own sources, lists and packages stay as they are.
# The address is that of the machine's Debian source, and apt checks the archive's signature.
install_plugins() { # PACKAGE…
    local tmp options deb
    tmp=$(mktemp -d)
    debian_sources trixie | grep ' trixie ' >"$tmp/sources" || say "this machine's apt has no Debian source"
    mkdir -p "$tmp/lists/partial" "$tmp/cache/archives/partial" "$tmp/debs" "$tmp/root"
    chmod 755 "$tmp" && chown -R _apt "$tmp" # apt downloads as this user
    options=(-q -o Dir::Etc::sourcelist="$tmp/sources" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::State::lists="$tmp/lists" -o Dir::Cache="$tmp/cache"
        -o Acquire::AllowInsecureRepositories=false -o APT::Get::AllowUnauthenticated=false)
    (
        cd "$tmp/debs" && apt-get "${options[@]}" update && apt-get "${options[@]}" download "$@" || exit 1
        for deb in *.deb; do dpkg-deb -x "$deb" "$tmp/root" || exit 1; done
        mkdir -p "$plugin_dir" && install -m 755 "$tmp"/root/usr/libexec/docker/cli-plugins/* "$plugin_dir"
    ) </dev/null >>"$apt_log" 2>&1
    local result=$?
    rm -rf "$tmp"
    return $result
}

# --- run ---

run() { # CMD…
    local child status=0 pid since mode owner
    answers || prepare_to_start
    lock 8 "$users" -s
    up run
    # In the background, so that a signal is passed on at once; with INT as usual and the terminal's input.
    (
        exec 8>&-
        trap - INT TERM HUP
        exec "$@"
    ) <&0 &
    child=$!
    trap '[ -t 0 ] || kill -INT $child 2>/dev/null' INT # a terminal sends it to CMD as well
    trap 'kill -TERM $child 2>/dev/null' TERM HUP
    while kill -0 "$child" 2>/dev/null; do wait "$child" || true; done # a signal ends `wait`, not CMD
    wait "$child" || status=$?
    trap '' INT TERM HUP
    if started && [ "$mode" = run ] && [ -w "$state" ] && lock 8 "$users" -n; then
        stop
    fi
    exit "$status"
}

case ${1:-} in
up)
    [ $# -eq 1 ] || fail "$usage"
    up up
    ;;
down)
    [ $# -eq 1 ] || fail "$usage"
    if started && [ "$owner" = "$dir" ]; then stop; fi
    ;;
run)
    shift
    if [ "${1:-}" = -- ]; then shift; fi
    [ $# -gt 0 ] || fail "$usage"
    run "$@"
    ;;
*) fail "$usage" ;;
esac
