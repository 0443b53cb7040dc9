set -u
h=/srv/handover
export GIT_TERMINAL_PROMPT=0 GIT_CONFIG_GLOBAL=/dev/null
word() { awk -v who="$1" '$1 == who { print $2 }' $h/passwords.txt; }
url() { echo "http://$1:$(word "$1")@127.0.0.1:8080/git/$2.git"; }
board() { curl -sSf "http://127.0.0.1:8080/aushang/$1"; }
work=$(mktemp -d)
shown() { # REPOSITORY BRANCH: the board has each file of the branch as it is, and no other
    local path
    git clone -q -b "$2" "$(url pult "$1")" "$work/$1"
    git -C "$work/$1" ls-files | while read -r path; do
        expect_eq "board-$1-${path//\//.}" "$(board "$1/$path" | md5sum)" "$(md5sum <"$work/$1/$path")"
    done
    expect_eq "files-$1" "$(cd "/srv/aushang/$1" && find . -name .git -prune -o -type f -print)" \
        "$(cd "$work/$1" && find . -name .git -prune -o -type f -print)" set
}
shown lichtplan spielzeit
shown gastspiel reise
log() { git -C "$work/$1" log --format='%an: %s' "${@:2}"; }
expect_out hamlet 'Onno Reints' -- log lichtplan -- plaene/hamlet.csv
expect_file hamlet-board /srv/aushang/lichtplan/plaene/hamlet.csv
expect_fail no-more-opera 'returned error' -- curl -sSf http://127.0.0.1:8080/aushang/lichtplan/plaene/dreigroschenoper.csv
expect_out norden '^Norden$' -- board gastspiel/ORTE.txt
expect_out pushed-lichtplan 'onno .*POST.*lichtplan.*receive-pack' -- cat /var/log/nginx/access.log
expect_out pushed-gastspiel 'onno .*POST.*gastspiel.*receive-pack' -- cat /var/log/nginx/access.log
own=$(git -C "$work/lichtplan" rev-parse --git-dir)
expect_fail history-closed 'returned error' -- board "lichtplan/$own/config"
expect_fail stranger 'Authentication failed|could not read Username' -- git ls-remote http://127.0.0.1:8080/git/lichtplan.git
expect_ok werkstatt -- git ls-remote --exit-code "$(url pult lichtplan)" refs/heads/werkstatt
rm -rf "$work"
