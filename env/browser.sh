#!/usr/bin/env bash
# Print the path of a Chromium or Chrome for the browser tests.
#
#   env/browser.sh             fails where there is none
#   env/browser.sh --install   installs Debian's where there is none and this is Debian and root
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

if find_browser; then exit; fi
if [ "${1:-}" = --install ] && is_root && is_debian; then
    apt_install chromium
    find_browser
else
    fail "no Chromium or Chrome found: install one, or name it in \$CHROMIUM."
fi
