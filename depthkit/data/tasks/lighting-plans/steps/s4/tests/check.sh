set -u
h=/srv/handover
export GIT_TERMINAL_PROMPT=0 GIT_CONFIG_GLOBAL=/dev/null
word() { awk -v who="$1" '$1 == who { print $2 }' $h/passwords.txt; }
url() { echo "http://$1:$(word "$1")@127.0.0.1:8080/git/$2.git"; }
work=$(mktemp -d)
tar -C "$work" --no-same-owner -xzf $h/repositories.tar.gz
echo "$work/repositories/lichtplan.git/objects" >"$work/repositories/gastspiel.git/objects/info/alternates"
old() { git --git-dir="$work/repositories/$1.git" "${@:2}"; }
new() { git -C "$work/$1" "${@:2}"; }
for name in lichtplan gastspiel; do git clone -q "$(url pult $name)" "$work/$name"; done
secret=$(old lichtplan show premiere-2019:pult/ftp.ini | grep '^password' | cut -d = -f 2 | tr -d ' ')
# Nowhere below /srv but in the handover, packed or not.
repositories() { find /srv /home -path $h -prune -o -type f -name HEAD -printf '%h\n' | while read -r each; do ! git --git-dir="$each" rev-parse 2>/dev/null || echo "$each"; done; }
holding() {
    local each
    [ -n "$secret" ] || echo 'no secret is known'
    for each in $(repositories); do
        ! git --git-dir="$each" cat-file --batch-all-objects --batch --unordered 2>/dev/null | grep -qaF "$secret" || echo "$each"
    done
    grep -rlaF --exclude-dir=handover "$secret" /srv /home
}
expect_eq holding "$(holding)" "$(find $h -maxdepth 0 -empty)" set
expect_ok found-repositories -- test -n "$(repositories)"
# Otherwise history is what it was.
history() { "$1" "$2" log --format='%an <%ae> %aI %cI %s' "$3"; }
same_history() { # REPOSITORY BRANCH
    local was
    was=$(history old "$1" "$2")
    expect_eq "history-$1-$2" "$(history new "$1" "origin/$2" | tail -n "$(wc -l <<<"$was")")" "$was" exact
}
for each in lichtplan:spielzeit lichtplan:werkstatt gastspiel:reise gastspiel:spielzeit gastspiel:werkstatt; do same_history "${each%%:*}" "${each#*:}"; done
plans() { "$1" "$2" ls-tree -r "$3" plaene; }
for each in lichtplan:werkstatt gastspiel:spielzeit; do
    expect_eq "plans-${each/:/.}" "$(plans new "${each%%:*}" "origin/${each#*:}")" "$(plans old "${each%%:*}" "${each#*:}")" exact
done
sound() { (cd / && runuser -u git -- git --git-dir="/srv/git/$1.git" fsck --full); }
for name in lichtplan gastspiel; do
    expect_eq "tag-$name" "$(new $name tag -l --format='%(objecttype) %(taggername) %(taggerdate:iso) %(subject)' premiere-2019)" \
        "$(old $name tag -l --format='%(objecttype) %(taggername) %(taggerdate:iso) %(subject)' premiere-2019)" exact
    expect_eq "settings-$name" "$(new $name show premiere-2019:pult/ftp.ini)" \
        "$(old $name show premiere-2019:pult/ftp.ini | grep -v '^password')" exact
    expect_ok "sound-$name" -- sound $name
done
# The tour still comes from the house.
new lichtplan fetch -q "$(url pult gastspiel)" reise:tour
expect_eq common "$(new lichtplan log -1 --format=%s "$(new lichtplan merge-base tour spielzeit)")" \
    "$(old gastspiel log -1 --format=%s "$(old gastspiel merge-base reise spielzeit)")"
expect_out hamlet 'Wanda Kuhlmann' -- new lichtplan log -1 --format=%an spielzeit -- plaene/hamlet.csv
expect_out norden '^Norden$' -- new gastspiel show origin/reise:ORTE.txt
expect_eq board "$(curl -sf http://127.0.0.1:8080/aushang/lichtplan/plaene/faust.csv | md5sum)" "$(md5sum <"$work/lichtplan/plaene/faust.csv")"
expect_file faust "$work/lichtplan/plaene/faust.csv"
expect_eq board-tour "$(curl -sf http://127.0.0.1:8080/aushang/gastspiel/ORTE.txt | md5sum)" "$(md5sum <"$work/gastspiel/ORTE.txt")"
on_server() { (cd / && runuser -u git -- git --git-dir=/srv/git/lichtplan.git "$@"); }
tip=$(new lichtplan rev-parse origin/spielzeit)
expect_out certified "$tip refs/heads/spielzeit" -- on_server notes --ref certs show "$tip"
# It cannot come back, and signed pushes go on as before, however slow.
printf '#!/bin/sh\nsleep 3\nexec ssh-keygen "$@"\n' >"$work/slowly"
chmod 755 "$work/slowly"
push() { # FROM USER TO REF [OPTION]
    "${@:1:2}" -c gpg.format=ssh -c "user.signingKey=$h/keys/$3" -c "gpg.ssh.program=$work/slowly" push ${6-} "$(url "$3" "$4")" "$5"
}
expect_fail back-to-lichtplan 'pre-receive hook declined|rejected' -- push old lichtplan wanda lichtplan premiere-2019^0:refs/heads/probe-$$ --signed
expect_fail back-to-gastspiel 'pre-receive hook declined|rejected' -- push old gastspiel onno gastspiel reise:refs/heads/probe-$$
new lichtplan -c user.name=probe -c user.email=probe@stadttheater.example commit -q --allow-empty -m probe
expect_ok signed-slowly -- push new lichtplan wanda lichtplan "HEAD:refs/heads/probe-$$" --signed
on_server update-ref -d refs/heads/probe-$$
on_server -c user.name=git -c user.email=git@stadttheater.example notes --ref certs remove --ignore-missing "$(new lichtplan rev-parse HEAD)" 2>/dev/null
expect_fail unsigned 'pre-receive hook declined|rejected' -- push new lichtplan wanda lichtplan "$tip:refs/heads/probe-$$" --no-signed
sweep() { # whatever the pushes above have left
    local name
    for name in lichtplan gastspiel; do
        (cd / && runuser -u git -- git --git-dir="/srv/git/$name.git" for-each-ref --format='delete %(refname)' | grep probe- |
            runuser -u git -- git --git-dir="/srv/git/$name.git" update-ref --stdin)
    done
}
sweep 2>/dev/null
rm -rf "$work"
