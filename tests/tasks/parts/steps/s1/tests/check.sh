set -u
url=svn://127.0.0.1:3691/parts
home=$(mktemp -d)
anybody() { svn "$@" --config-dir "$home" --non-interactive --no-auth-cache; }
clerk() { anybody "$@" --username clerk --password "$(cat /srv/in/password)"; }
expect_proc server svnserve
expect_out trunk '^trunk/$' -- clerk ls "$url"
expect_out tags '^tags/$' -- clerk ls "$url"
expect_fail nobody-else E170001 -- anybody ls "$url"
rm -rf "$home"
