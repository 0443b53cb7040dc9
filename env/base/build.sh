#!/usr/bin/env bash
# Build depthkit/base:1, the image that task images start from: Debian 12 with bash, tmux, python3,
# procps and asciinema, and nothing more.
#
#   env/base/build.sh                   from Debian packages where this is Debian and root, else as below
#   env/base/build.sh --from-registry   from debian:bookworm-slim (see Dockerfile)
#
# Nothing happens where the image is there already and was made by this same recipe.
set -euo pipefail
# shellcheck source=../lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
here=$env_dir/base
tag=depthkit/base:1
label=depthkit.recipe
log=$env_dir/cache/base.log

from_packages() {
    local work id
    mkdir -p "$env_dir/cache"
    command -v mmdebstrap >/dev/null || apt_install mmdebstrap debian-archive-keyring
    work=$(mktemp -d)
    # shellcheck disable=SC2064 # $work is known now and gone then
    trap "rm -rf '$work'" EXIT
    printf '%s\n' "$sources" >"$work/sources.list"
    # As in debian:bookworm-slim: no manuals or translations, also of packages that tasks add,
    # and no package starts its service while it is installed.
    printf 'path-exclude=%s\n' /usr/share/doc/'*' /usr/share/man/'*' /usr/share/info/'*' /usr/share/locale/'*' \
        >"$work/dpkg.cfg"
    printf '#!/bin/sh\nexit 101\n' >"$work/policy-rc.d"
    # Packages compile their Python when installed; a file is newer than that only if its date is in
    # the future, so clamping to today keeps those dates and makes builds of one day alike.
    export SOURCE_DATE_EPOCH
    SOURCE_DATE_EPOCH=$(date -u -d "$(date -u +%F)" +%s)
    # usr-is-merged spares perl; the excludes come after the first extraction, which they would slow down.
    # An image gets its name only once all of it is there.
    id=$(
        mmdebstrap --quiet --variant=apt --include=usr-is-merged,asciinema,procps,python3,tmux \
            --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
            --aptopt='Acquire::Languages "none"' --dpkgopt=force-unsafe-io \
            --extract-hook="cp '$work/dpkg.cfg' \"\$1/etc/dpkg/dpkg.cfg.d/slim\"" \
            --customize-hook='cd "$1/usr/share" && rm -rf doc/* man/* info/* locale/*' \
            --customize-hook='rm "$1/etc/dpkg/dpkg.cfg.d/99mmdebstrap"' \
            --customize-hook="install -m 755 '$work/policy-rc.d' \"\$1/usr/sbin/policy-rc.d\"" \
            bookworm - "$work/sources.list" 2>"$log" |
            docker import --change "LABEL $label=$recipe" --change 'ENV LANG=C.UTF-8' \
                --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
                --change 'CMD ["bash"]' -
    ) || {
        tail -n 5 "$log" >&2
        fail "the image could not be made; see above and $log"
    }
    docker tag "$id" "$tag"
}

from_registry() {
    docker build --label "$label=$recipe" --tag "$tag" "$here"
}

way=from_registry
sources=
if [ $# -eq 0 ] && is_debian && is_root; then
    way=from_packages
    sources=$(debian_sources bookworm)
    [ -n "$sources" ] || fail "apt on this machine has no Debian source (see /etc/apt/sources.list.d)"
elif [ $# -gt 0 ] && [ "$*" != --from-registry ]; then
    fail "usage: env/base/build.sh [--from-registry]"
fi
recipe=$(cat "$here/build.sh" "$here/Dockerfile" - <<<"$way $sources" | digest)
made_by=$(docker image inspect --format "{{index .Config.Labels \"$label\"}}" "$tag" 2>/dev/null) || made_by=
[ "$made_by" != "$recipe" ] || exit 0
say "building $tag"
$way
say "built $tag in $SECONDS s"
