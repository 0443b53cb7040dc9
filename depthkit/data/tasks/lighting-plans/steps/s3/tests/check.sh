set -u
h=/srv/handover
export GIT_TERMINAL_PROMPT=0 GIT_CONFIG_GLOBAL=/dev/null
word() { awk -v who="$1" '$1 == who { print $2 }' $h/passwords.txt; }
url() { echo "http://$1:$(word "$1")@127.0.0.1:8080/git/$2.git"; }
work=$(mktemp -d)
on_server() { (cd / && runuser -u git -- git -C /srv/git/lichtplan.git "$@"); }
git clone -q "$(url pult lichtplan)" "$work/plan"
plan() { git -C "$work/plan" -c user.name=probe -c user.email=probe@stadttheater.example "$@"; }
tip=$(plan rev-parse HEAD)
expect_out hamlet 'Wanda Kuhlmann' -- plan log -1 --format=%an spielzeit -- plaene/hamlet.csv
expect_eq board "$(curl -sf http://127.0.0.1:8080/aushang/lichtplan/plaene/hamlet.csv | md5sum)" "$(md5sum <"$work/plan/plaene/hamlet.csv")"
# The certificate of the push: for this tip, signed with Wanda's key.
on_server notes --ref certs show "$tip" >"$work/note" 2>/dev/null
head=$(grep -n 'BEGIN SSH SIGNATURE' "$work/note" | cut -d : -f 1) # printed by Git
head -n "$((head - 1))" "$work/note" >"$work/said"
tail -n "+$((head))" "$work/note" >"$work/signature"
awk '{ print $3, $1, $2 }' $h/keys/*.pub >"$work/signers"
verify() { ssh-keygen -Y verify -n git -f "$work/signers" -I "$1" -s "$work/signature" <"$work/said"; }
expect_ok certificate -- verify wanda@stadttheater.example
expect_out certified "$tip refs/heads/spielzeit" -- cat "$work/said"
# A signature takes as long as somebody takes to type a passphrase.
printf '#!/bin/sh\nsleep 3\nexec ssh-keygen "$@"\n' >"$work/slowly"
chmod 755 "$work/slowly"
push() { # USER KEY PROGRAM OPTION REF
    plan -c gpg.format=ssh -c "user.signingKey=$2" -c "gpg.ssh.program=$3" push $4 "$(url "$1" lichtplan)" "HEAD:$5"
}
probe=refs/heads/probe-$$
plan commit -q --allow-empty -m probe
expect_ok signed-slowly -- push wanda $h/keys/wanda "$work/slowly" --signed $probe
expect_ok probe-certified -- on_server notes --ref certs show "$(plan rev-parse HEAD)"
forget() { # what the push above left
    on_server update-ref -d $probe
    on_server -c user.name=git -c user.email=git@stadttheater.example notes --ref certs remove --ignore-missing "$(plan rev-parse HEAD)"
}
forget 2>/dev/null
plan commit -q --allow-empty -m probe
expect_ok signed-by-onno -- push onno $h/keys/onno ssh-keygen --signed $probe
forget 2>/dev/null
expect_fail unsigned 'pre-receive hook declined|rejected' -- push onno $h/keys/onno ssh-keygen --no-signed $probe
expect_fail not-in-own-name 'pre-receive hook declined|rejected' -- push onno $h/keys/wanda ssh-keygen --signed $probe
ssh-keygen -q -t ed25519 -N '' -C wanda@stadttheater.example -f "$work/forged"
expect_fail unknown-key 'pre-receive hook declined|rejected' -- push wanda "$work/forged" ssh-keygen --signed $probe
expect_fail unsigned-tag 'pre-receive hook declined|rejected' -- push wanda $h/keys/wanda ssh-keygen --no-signed refs/tags/probe-$$
expect_eq tip-stays "$(git ls-remote "$(url pult lichtplan)" refs/heads/spielzeit | cut -f 1)" "$tip"
unsigned_tour() { git -C "$work/plan" push --dry-run "$(url onno gastspiel)" HEAD:refs/heads/probe; }
expect_ok tour-as-before -- unsigned_tour
sweep() { # whatever the pushes above have left
    local name
    for name in lichtplan gastspiel; do
        (cd / && runuser -u git -- git --git-dir="/srv/git/$name.git" for-each-ref --format='delete %(refname)' | grep probe- |
            runuser -u git -- git --git-dir="/srv/git/$name.git" update-ref --stdin)
    done
}
sweep 2>/dev/null
rm -rf "$work"
