set -u
url=svn://127.0.0.1:3691/parts
home=$(mktemp -d)
anybody() { svn "$@" --config-dir "$home" --non-interactive --no-auth-cache; }
clerk() { anybody "$@" --username clerk --password "$(cat /srv/in/password)"; }
tag="$url/tags/1.0"
expect_eq files "$(clerk ls -R "$tag")" "$(clerk ls -R "$url/trunk")" set
expect_out kept '^\*$' -- clerk propget svn:needs-lock "$tag/images/logo@2x.svg@"
expect_fail closed 'tags are closed' -- clerk lock "$tag/README.txt"
expect_ok open -- clerk lock "$url/trunk/README.txt"
# Neither lock is to stay.
for each in "$tag/README.txt" "$url/trunk/README.txt"; do clerk unlock "$each"; done
expect_proc_arg threads svnserve --threads
rm -rf "$home"
