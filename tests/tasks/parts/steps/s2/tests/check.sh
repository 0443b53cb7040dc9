set -u
url=svn://127.0.0.1:3691/parts
home=$(mktemp -d)
anybody() { svn "$@" --config-dir "$home" --non-interactive --no-auth-cache; }
clerk() { anybody "$@" --username clerk --password "$(cat /srv/in/password)"; }
logo="$url/trunk/images/logo@2x.svg@"
committed() { clerk ls -R "$url/trunk" | grep -v '/$'; }
wanted() { (cd /srv/in/tree && find . -type f | cut -c 3-); }
expect_eq files "$(committed)" "$(wanted)" set
expect_out needs-lock '^\*$' -- clerk propget svn:needs-lock "$logo"
expect_out owner 'lock owner: clerk' -- clerk info "$logo"
expect_out comment '^in work$' -- clerk info "$logo"
expect_fail nobody-else E170001 -- anybody ls "$url"
rm -rf "$home"
