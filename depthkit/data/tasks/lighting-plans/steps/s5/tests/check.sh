set -u
h=/srv/handover
export GIT_TERMINAL_PROMPT=0 GIT_CONFIG_GLOBAL=/dev/null
word() { awk -v who="$1" '$1 == who { print $2 }' $h/passwords.txt; }
url() { echo "http://$1:$(word "$1")@127.0.0.1:8080/git/$2.git"; }
work=$(mktemp -d)
at() { git -C "$work/$1" "${@:2}"; }
for each in lichtplan:spielzeit gastspiel:reise; do
    name=${each%%:*}
    branch=${each#*:}
    tip=$(git ls-remote "$(url pult "$name")" "refs/heads/$branch" | cut -f 1)
    # The desk's way without Git's protocol.
    expect_ok "download-$name" -- curl -sf -o "$work/$name.bundle" "http://127.0.0.1:8080/aushang/$name.bundle"
    expect_ok "clone-$name" -- git clone -q "$work/$name.bundle" "$work/$name-desk"
    expect_eq "branch-$name" "$(at "$name-desk" symbolic-ref HEAD)" "refs/heads/$branch"
    expect_eq "tip-$name" "$(at "$name-desk" rev-parse HEAD)" "$tip"
    expect_file "files-$name" "$work/$name-desk/plaene/nabucco.csv"
    expect_eq "refs-$name" "$(git bundle list-heads "$work/$name.bundle" | grep -v HEAD)" \
        "$(git ls-remote "$(url wanda "$name")" 'refs/heads/*' 'refs/tags/*' | grep -v '\^{}' | tr '\t' ' ')" set
    # With it: history now, files when they are asked for.
    partly() { git clone -q --no-checkout --filter=blob:none "$(url pult "$1")" "$work/$1-part"; }
    expect_no_out "partly-$name" 'not recognized|warning' -- partly "$name"
    missing=$(at "$name-part" rev-list --objects --all --missing=print | grep -c '^?')
    if ((missing > 0)); then pass "files-left-$name"; else fail "files-left-$name" 'nothing was left on the server'; fi
    expect_eq "commits-$name" "$(at "$name-part" rev-list --count "origin/$branch")" "$(at "$name-desk" rev-list --count HEAD)" int
    expect_ok "files-later-$name" -- git -C "$work/$name-part" checkout -q "$branch"
    expect_no_out "no-certificates-$name" 'refs/notes' -- git ls-remote "$(url pult "$name")"
    expect_eq "board-$name" "$(curl -sf "http://127.0.0.1:8080/aushang/$name/plaene/nabucco.csv" | md5sum)" \
        "$(md5sum <"$work/$name-desk/plaene/nabucco.csv")"
done
expect_out faust 'Onno Reints' -- at lichtplan-desk log -1 --format=%an -- plaene/faust.csv
expect_out leer '^Leer$' -- at gastspiel-desk show HEAD:ORTE.txt
expect_out norden '^Norden$' -- at gastspiel-desk show HEAD:ORTE.txt
expect_no_out cleared '^password' -- at lichtplan-desk show premiere-2019:pult/ftp.ini
on_server() { (cd / && runuser -u git -- git --git-dir=/srv/git/lichtplan.git "$@"); }
expect_out certified 'refs/heads/spielzeit' -- on_server notes --ref certs show "$(at lichtplan-desk rev-parse HEAD)"
push() { git -C "$work/lichtplan-desk" push "$(url onno lichtplan)" HEAD:refs/heads/probe-$$; }
expect_fail unsigned 'pre-receive hook declined|rejected' -- push
sweep() { # whatever the pushes above have left
    local name
    for name in lichtplan gastspiel; do
        (cd / && runuser -u git -- git --git-dir="/srv/git/$name.git" for-each-ref --format='delete %(refname)' | grep probe- |
            runuser -u git -- git --git-dir="/srv/git/$name.git" update-ref --stdin)
    done
}
sweep 2>/dev/null
rm -rf "$work"
