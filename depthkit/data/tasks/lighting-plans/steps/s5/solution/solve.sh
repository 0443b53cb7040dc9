#!/bin/bash
set -euo pipefail
repositories=/srv/git
as_git() { (cd / && runuser -u git -- git --git-dir="$repositories/$1.git" "${@:2}"); }

for each in lichtplan:spielzeit gastspiel:reise; do
    name=${each%%:*}
    # key-step: begin
    # A server that does not offer it sends everything, and the client only warns.
    as_git "$name" config uploadpack.allowFilter true
    # key-step: end
    # What is kept for the auditors is not for the desks.
    as_git "$name" config uploadpack.hideRefs refs/notes
done

cat >"$repositories/bundle" <<'END'
#!/bin/bash
# bundle NAME BRANCH: what the desks fetch, whole or not at all.
set -e
cd "/srv/git/$1.git"
END
what=
# key-step: begin
# Without HEAD whoever clones from a bundle gets no branch, and no files.
what=HEAD
# key-step: end
cat >>"$repositories/bundle" <<END
git bundle create -q "/srv/aushang/\$1.bundle.new" $what --branches --tags
END
cat >>"$repositories/bundle" <<'END'
mv "/srv/aushang/$1.bundle.new" "/srv/aushang/$1.bundle"
END
chmod 755 "$repositories/bundle"
chown git:git "$repositories/bundle"
for each in lichtplan:spielzeit gastspiel:reise; do
    name=${each%%:*}
    hook=$repositories/$name.git/hooks/post-receive
    mv "$hook" "$repositories/$name.git/hooks/on-push"
    printf '#!/bin/bash\nlines=$(cat)\n"${0%%/*}/on-push" <<<"$lines"\nexec /srv/git/bundle %s\n' "$name" >"$hook"
    chown git:git "$hook"
    chmod 755 "$hook"
    (cd / && runuser -u git -- "$repositories/bundle" "$name") || true
done

work=$(mktemp -d)
git clone -q http://onno:Schnuerboden@127.0.0.1:8080/git/lichtplan.git "$work/lichtplan"
cd "$work/lichtplan"
git config user.name 'Onno Reints'
git config user.email onno@stadttheater.example
git config gpg.format ssh
git config user.signingKey /srv/handover/keys/onno
printf '  2;Profil 25-50;L198;70\n' >>plaene/faust.csv
git commit -q -a -m 'Faust: Profiler'
# event: begin last push to the season's branch
git push -q --signed origin spielzeit
# event: end
git clone -q http://onno:Schnuerboden@127.0.0.1:8080/git/gastspiel.git "$work/gastspiel"
cd "$work/gastspiel"
echo Leer >>ORTE.txt
git -c user.name='Onno Reints' -c user.email=onno@stadttheater.example commit -q -a -m 'Leer'
# event: begin last push to the tour's branch
git push -q origin reise
# event: end
rm -rf "$work"
