#!/usr/bin/env bash
# Write requirements.lock anew: every package that the project and its tests need, at today's newest
# version that fits, the same on each supported Python. Plain lines, so that pip and uv both read it
# and ask whichever package index this machine is set up for.
set -euo pipefail
export LC_ALL=C # sorts the same everywhere
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$env_dir/.."

uv=$(command -v uv || command -v .venv/bin/uv) || fail "uv is missing: run make setup first"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/lock"
for version in 3.12 3.13; do
    # What an earlier Python needs binds the next: one version of a package for all of them.
    "$uv" pip compile --quiet --python-version "$version" --group dev pyproject.toml \
        --constraint "$work/lock" --no-annotate --no-header --output-file "$work/$version"
    sort -u -o "$work/lock" "$work/lock" "$work/$version"
done
cp "$work/lock" requirements.lock
say "requirements.lock names $(grep -c == requirements.lock) packages"
