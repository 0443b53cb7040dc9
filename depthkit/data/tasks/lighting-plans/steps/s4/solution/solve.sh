#!/bin/bash
set -euo pipefail
repositories=/srv/git
as_git() { (cd / && runuser -u git -- git --git-dir="$repositories/$1.git" "${@:2}"); }
export FILTER_BRANCH_SQUELCH_WARNING=1

# What must not come back: each blob that has the password.
for name in lichtplan gastspiel; do
    as_git "$name" rev-list --objects --all | awk '$2 ~ /\.ini$/ { print $1 }' | sort -u | while read -r blob; do
        ! as_git "$name" cat-file -p "$blob" | grep -q '^password' || echo "$blob"
    done
done | sort -u >"$repositories/blocked"
[ -s "$repositories/blocked" ]

rewrite() { # REPOSITORY
    local scratch
    scratch=$(runuser -u git -- mktemp -d)
    as_git "$1" filter-branch -d "$scratch/rewrite" \
        --tree-filter "sed -i '/^password/d' pult/*.ini 2>/dev/null || true" \
        --tag-name-filter cat -- --branches --tags >/dev/null
    rm -rf "$scratch"
}
rewrite lichtplan
# key-step: begin
# The tour's repository lives on the house's objects: it must be off the old ones before they go.
rewrite gastspiel
# And the old refs are kept aside in both, with all that they lead to.
for name in lichtplan gastspiel; do
    as_git "$name" for-each-ref --format='delete %(refname)' refs/original | as_git "$name" update-ref --stdin
done
# key-step: end
for name in lichtplan gastspiel; do
    as_git "$name" reflog expire --expire=now --all
    as_git "$name" gc -q --prune=now
done
for each in lichtplan:spielzeit gastspiel:reise; do
    rm -rf "/srv/aushang/${each%%:*}"
    (cd / && runuser -u git -- git clone -q -b "${each#*:}" "$repositories/${each%%:*}.git" "/srv/aushang/${each%%:*}") || true
done

hook=$repositories/gastspiel.git/hooks/pre-receive
echo '#!/bin/bash' >"$hook"
for each in lichtplan gastspiel; do
    cat >>"$repositories/$each.git/hooks/pre-receive" <<'END'
# Old clones still have it.
while read -r _ new ref; do
    [ "${new//0/}" ] || continue
    if git rev-list --objects "$new" --not --all | cut -d ' ' -f 1 | grep -qxFf /srv/git/blocked; then
        echo "refused: $ref would bring back what was taken out; clone anew" >&2
        exit 1
    fi
done
END
done
chown git:git "$hook" "$repositories/blocked"
chmod 755 "$hook"

work=$(mktemp -d)
git clone -q http://wanda:Souffleuse@127.0.0.1:8080/git/lichtplan.git "$work/lichtplan"
cd "$work/lichtplan"
git config user.name 'Wanda Kuhlmann'
git config user.email wanda@stadttheater.example
git config gpg.format ssh
git config user.signingKey /srv/handover/keys/wanda
printf '  1;Fluter;L197;100\n' >plaene/faust.csv
git add plaene/faust.csv
git commit -q -m 'Faust, erster Entwurf'
# event: begin signed push after the clearing
git push -q --signed origin spielzeit
# event: end
rm -rf "$work"
