#!/bin/bash
set -eu
url=svn://127.0.0.1:3691/parts
clerk() {
    svn "$@" --username clerk --password "$(cat /srv/in/password)" --non-interactive --no-auth-cache
}
svnadmin create /srv/svn/parts
printf '[general]\nauth-access = write\npassword-db = passwd\n' >/srv/svn/parts/conf/svnserve.conf
# key-step: begin
# Without it, anybody may read.
printf 'anon-access = none\n' >>/srv/svn/parts/conf/svnserve.conf
# key-step: end
printf '[users]\nclerk = %s\n' "$(cat /srv/in/password)" >/srv/svn/parts/conf/passwd
svnserve -d -r /srv/svn --listen-host 127.0.0.1 --listen-port 3691
clerk mkdir "$url/trunk" "$url/tags" -m 'Folders'
