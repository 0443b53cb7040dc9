#!/bin/bash
set -eu
url=svn://127.0.0.1:3691/parts
clerk() {
    svn "$@" --username clerk --password "$(cat /srv/in/password)" --non-interactive --no-auth-cache
}
work=$(mktemp -d)
clerk checkout -q "$url/trunk" "$work"
cp -r /srv/in/tree/. "$work"
cd "$work"
svn add -q --force README.txt src images
# key-step: begin
# What follows an @ is taken for a revision, unless another @ stands at the end.
svn propset svn:needs-lock '*' images/logo@2x.svg@
# key-step: end
clerk commit -q -m 'Everything'
# key-step: begin
clerk lock -m 'in work' "$url/trunk/images/logo@2x.svg@"
# key-step: end
