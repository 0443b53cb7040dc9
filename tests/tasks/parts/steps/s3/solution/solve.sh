#!/bin/bash
set -eu
url=svn://127.0.0.1:3691/parts
clerk() {
    svn "$@" --username clerk --password "$(cat /srv/in/password)" --non-interactive --no-auth-cache
}
clerk copy "$url/trunk" "$url/tags/1.0" -m 'Release 1.0'
cat >/srv/svn/parts/hooks/pre-lock <<'END'
#!/bin/sh
case $2 in
/tags/*)
    echo 'tags are closed' >&2
    exit 1
    ;;
esac
END
# key-step: begin
chmod 755 /srv/svn/parts/hooks/pre-lock
# key-step: end
# event: begin restart of the server
pkill -x svnserve
for _ in {1..100}; do pgrep -x svnserve >/dev/null || break; sleep 0.1; done
svnserve -d --threads -r /srv/svn --listen-host 127.0.0.1 --listen-port 3691
# event: end
