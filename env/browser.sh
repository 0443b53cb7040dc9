#!/usr/bin/env bash
# Print the path of a Chromium or Chrome for the browser tests.
#
#   env/browser.sh             fails where there is none
#   env/browser.sh --install   installs Debian's, and what driving it needs, on Debian as root
#
# $CHROMIUM names one in an unusual place. A headless shell goes before a whole browser: it draws the
# same, and with no windows of its own around its pages takes two thirds of the time.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

find_browser() {
    for name in "${CHROMIUM:-chromium-headless-shell}" chromium chromium-browser google-chrome google-chrome-stable \
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
        if command -v "$name"; then return; fi
    done
    return 1
}

if [ "${1:-}" = --install ] && is_root && is_debian; then
    # Playwright's driver needs it; a small Debian lacks it.
    ldconfig -p | grep -q libatomic.so.1 || apt_install libatomic1
    # Beside a whole browser too: it saves more in one run than it costs.
    if [ -z "${CHROMIUM:-}" ] && ! command -v chromium-headless-shell >/dev/null; then
        (apt_install chromium-headless-shell) || find_browser >/dev/null || apt_install chromium
    fi
fi
find_browser || fail "no Chromium or Chrome found: install one, or name it in \$CHROMIUM."
