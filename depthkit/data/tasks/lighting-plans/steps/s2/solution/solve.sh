#!/bin/bash
set -euo pipefail
board=/srv/aushang
install -d -o git -g git "$board"
as_git() { (cd / && runuser -u git -- "$@"); }
for each in lichtplan:spielzeit gastspiel:reise; do
    as_git git clone -q -b "${each#*:}" "/srv/git/${each%%:*}.git" "$board/${each%%:*}"
done

for each in lichtplan:spielzeit gastspiel:reise; do
    hook=/srv/git/${each%%:*}.git/hooks/post-receive
    cat >"$hook" <<END
#!/bin/bash
# The board follows its branch.
name=${each%%:*}
branch=${each#*:}
END
    # key-step: begin
    # Git tells its hooks which repository they are in, and means it wherever they go.
    echo 'unset $(git rev-parse --local-env-vars)' >>"$hook"
    # key-step: end
    cat >>"$hook" <<'END'
while read -r _ new ref; do
    [ "$ref" = "refs/heads/$branch" ] || continue
    cd "/srv/aushang/$name" || exit 1
    git fetch -q origin "$branch" && git reset -q --hard "$new" && git clean -qfdx
done
END
    chown git:git "$hook"
    chmod 755 "$hook"
done

sed -i 's|^    location ~ ^/git(/.\*)|    location /aushang/ {\n        auth_basic off;\n        root /srv;\n        location ~ /\\.git { return 404; }\n    }\n&|' /etc/nginx/sites-available/git
nginx -s reload
for _ in {1..50}; do [ "$(curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8080/aushang/gastspiel/ORTE.txt)" = 200 ] && break; sleep 0.1; done

work=$(mktemp -d)
commit() { git -c user.name='Onno Reints' -c user.email=onno@stadttheater.example commit -q -m "$1"; }
remote=http://onno:Schnuerboden@127.0.0.1:8080/git
git clone -q "$remote/lichtplan.git" "$work/lichtplan"
cd "$work/lichtplan"
printf '  1;PC 1000;L101;80\n  2;Profil 25-50;L214;35\n' >plaene/hamlet.csv
git rm -q plaene/dreigroschenoper.csv
git add plaene/hamlet.csv
commit 'Hamlet statt Dreigroschenoper'
# event: begin push to the season's branch
git push -q origin spielzeit
# event: end
git clone -q "$remote/gastspiel.git" "$work/gastspiel"
cd "$work/gastspiel"
echo Norden >>ORTE.txt
git add ORTE.txt
commit 'Norden'
# event: begin push to the tour's branch
git push -q origin reise
# event: end
rm -rf "$work"
