set -u
h=/srv/handover
export GIT_TERMINAL_PROMPT=0 GIT_CONFIG_GLOBAL=/dev/null
work=$(mktemp -d)
tar -C "$work" --no-same-owner -xzf $h/repositories.tar.gz
old() { git -C "$work/repositories/$1.git" "${@:2}"; }
# The tour's repository as it was, beside the house's.
echo "$work/repositories/lichtplan.git/objects" >"$work/repositories/gastspiel.git/objects/info/alternates"
word() { awk -v who="$1" '$1 == who { print $2 }' $h/passwords.txt; }
url() { echo "http://$1:$(word "$1")@127.0.0.1:8080/git/$2.git"; }
refs() { git ls-remote "$(url pult "$1")" 'refs/heads/*' 'refs/tags/*' | tr '\t' ' '; }
for name in lichtplan gastspiel; do
    expect_eq "refs-$name" "$(refs $name)" "$(old $name ls-remote . 'refs/heads/*' 'refs/tags/*' | tr '\t' ' ')" set
done
head_of() { git ls-remote --symref "$(url "$1" "$2")" HEAD | awk '$1 == "ref:" { print $2 }'; }
expect_out branch-lichtplan '^refs/heads/spielzeit$' -- head_of pult lichtplan
expect_out branch-gastspiel '^refs/heads/reise$' -- head_of pult gastspiel
for user in wanda onno pult; do
    for name in lichtplan gastspiel requisite; do
        expect_ok "clone-$user-$name" -- git clone -q "$(url $user $name)" "$work/$user-$name"
    done
done
expect_eq tour "$(git -C "$work/pult-gastspiel" log --format=%H)" "$(old gastspiel log --format=%H reise)" exact
expect_eq season "$(git -C "$work/wanda-lichtplan" rev-parse HEAD)" "$(old lichtplan rev-parse spielzeit)"
expect_fail stranger 'Authentication failed|could not read Username' -- git ls-remote http://127.0.0.1:8080/git/lichtplan.git
expect_fail desk-reads-only 'returned error|Authentication failed' -- git -C "$work/pult-lichtplan" push "$(url pult lichtplan)" HEAD:refs/heads/pult
may_push() { git -C "$work/$1-lichtplan" push --dry-run "$(url "$1" lichtplan)" "HEAD:refs/heads/probe"; }
expect_ok wanda-may-push -- may_push wanda
picture() { git -C "$work/pult-requisite" cat-file -s HEAD:samowar.jpg; }
size=$(picture)
if [[ $size =~ ^[0-9]+$ ]] && ((size >= 5 * 1000 * 1000)); then pass picture; else fail picture "samowar.jpg has '$size' bytes"; fi
expect_out pushed 'onno .*POST.*requisite.*receive-pack' -- cat /var/log/nginx/access.log
for name in lichtplan gastspiel requisite; do
    expect_eq "owner-$name" "$(find /srv/git/$name.git ! -user git | wc -l)" "$(find /srv/git/$name.git -user nobody | wc -l)" int
done
rm -rf "$work"
