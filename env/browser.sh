#!/usr/bin/env bash
# Print the path of a Chromium or Chrome for the browser tests.
#
#   env/browser.sh             fails where there is none
#   env/browser.sh --install   installs Debian's, and what driving it needs, on Debian as root
#
# $CHROMIUM names one in an unusual place.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

find_browser() {
    for name in "${CHROMIUM:-chromium}" chromium-browser google-chrome google-chrome-stable \
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
        if command -v "$name"; then return; fi
    done
    return 1
}

if [ "${1:-}" = --install ] && is_root && is_debian; then
    missing=()
    find_browser >/dev/null || missing+=(chromium)
    # Playwright's driver needs it; a small Debian lacks it.
    ldconfig -p | grep -q libatomic.so.1 || missing+=(libatomic1)
    [ ${#missing[@]} -eq 0 ] || apt_install "${missing[@]}"
fi
find_browser || fail "no Chromium or Chrome found: install one, or name it in \$CHROMIUM."
