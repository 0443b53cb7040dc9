# shellcheck shell=bash
# What the scripts of env/ share. To be sourced.

env_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
apt_log=$env_dir/cache/apt.log

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }
fail() {
    say "$@"
    exit 1
}

# A short digest of the standard input; macOS has only shasum.
digest() { { sha256sum 2>/dev/null || shasum -a 256; } | cut -c 1-16; }

is_root() { [ "$(id -u)" -eq 0 ]; }
# shellcheck disable=SC1091
os() { (. /etc/os-release 2>/dev/null && eval "echo \"\${$1:-}\"") || true; }
is_debian() { [ "$(os ID)" = debian ]; }

apt_install() { # PACKAGE…
    local install=(apt-get install -y -q --no-install-recommends "$@")
    mkdir -p "$env_dir/cache"
    say "installing $* from Debian"
    # A new machine has no package lists yet, and old lists name packages that are gone.
    {
        DEBIAN_FRONTEND=noninteractive "${install[@]}" ||
            { apt-get update -q && DEBIAN_FRONTEND=noninteractive "${install[@]}"; }
    } </dev/null >>"$apt_log" 2>&1 || fail "apt-get could not install $*; see $apt_log"
}

# Prints the machine's own Debian sources, in apt's one-line format, for another Debian release.
# Asking apt for them covers every format of its files, and no address need be written down here.
debian_sources() { # CODENAME
    local host targets
    host=$(os VERSION_CODENAME)
    targets=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' 'Component: main')
    grep "^$host" <<<"$targets" | sort -u | while read -r release uri; do
        [[ $release =~ ^$host(-updates|-security)?$ ]] || continue
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $1${release#"$host"} main"
    done
}
