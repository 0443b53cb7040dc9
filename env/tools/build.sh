#!/usr/bin/env bash
# Build depthkit/tools:1: tmux and bash with all they need in one folder, /.dk. Trials
# mount it read-only into containers of images that lack one of them; nothing is installed there.
#
#   env/tools/build.sh                   from Debian packages where this is Debian and root, else as below
#   env/tools/build.sh --from-registry   from debian:bookworm-slim (see Dockerfile)
#
# Nothing happens where the image is there already and was made by this same recipe.
set -euo pipefail
# shellcheck source=../lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
here=$env_dir/tools
tag=depthkit/tools:1
label=depthkit.recipe
log=$env_dir/cache/tools.log

from_packages() {
    local work
    mkdir -p "$env_dir/cache"
    command -v mmdebstrap >/dev/null || apt_install mmdebstrap debian-archive-keyring
    work=$(mktemp -d)
    # shellcheck disable=SC2064 # $work is known now and gone then
    trap "rm -rf '$work'" EXIT
    printf '%s\n' "$sources" >"$work/sources.list"
    {
        # Unpacked only: none of the packages is set up, and none of their scripts runs.
        mmdebstrap --quiet --variant=extract --aptopt='Acquire::Languages "none"' \
            --include=attr,bash-static,busybox-static,libc-bin,ncurses-base,patchelf,tmux \
            bookworm "$work/root" "$work/sources.list" &&
            sh "$here/assemble.sh" "$work/root" "$work/out"
    } 2>"$log" || {
        tail -n 5 "$log" >&2
        fail "the tool set could not be made; see above and $log"
    }
    tar -C "$work/out" --owner=0 --group=0 --numeric-owner -c .dk |
        docker import --change "LABEL $label=$recipe" --change 'VOLUME /.dk' --change 'CMD ["/.dk/bin/bash"]' -
}

from_registry() {
    docker build --quiet --label "$label=$recipe" "$here"
}

# An image gets its name only once all of it is there and its programs run, with nothing else around.
try_out() { # IMAGE
    local program
    for program in 'tmux -V' 'bash -c :'; do
        # shellcheck disable=SC2086 # the arguments are to be split
        docker run --rm --network none --entrypoint /.dk/bin/${program%% *} "$1" ${program#* } >/dev/null ||
            fail "$program does not run in the tool set"
    done
}

way=from_registry
sources=
if [ $# -eq 0 ] && is_debian && is_root; then
    way=from_packages
    sources=$(debian_sources bookworm)
    [ -n "$sources" ] || fail "apt on this machine has no Debian source (see /etc/apt/sources.list.d)"
elif [ $# -gt 0 ] && [ "$*" != --from-registry ]; then
    fail "usage: env/tools/build.sh [--from-registry]"
fi
recipe=$(cat "$here"/{build.sh,assemble.sh,Dockerfile} - <<<"$way $sources" | digest)
made_by=$(docker image inspect --format "{{index .Config.Labels \"$label\"}}" "$tag" 2>/dev/null) || made_by=
[ "$made_by" != "$recipe" ] || exit 0
say "building $tag"
id=$($way)
try_out "$id"
docker tag "$id" "$tag"
say "built $tag in $SECONDS s"
