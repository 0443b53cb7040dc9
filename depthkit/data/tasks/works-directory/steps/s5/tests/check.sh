set -u
base=dc=works,dc=example
lost=/srv/old/lost-badges.txt
password_of() { awk -v who="$1" '$1 == who { print $2 }' /srv/old/passwords.txt; }
badge_of() { awk -v uid="$1" '$1 == "uid:" { now = $2 } $1 == "worksBadge:" && now == uid { print $2; exit }' /srv/old/works.ldif; }
uri() { case $1 in main) echo ldap://127.0.0.1:3389 ;; copy) echo ldap://127.0.0.1:3390 ;; esac; }
as() { "$4" -x -H "$(uri "$1")" -D "$2" -w "$3" "${@:5}"; }
admin() { as "$1" "cn=admin,$base" "$(password_of "cn=admin,$base")" "${@:2}"; }
search() { admin "$1" ldapsearch -LLL -o ldif-wrap=no "${@:2}"; }
login() { as "$1" "uid=$2,ou=people,$base" "$3" ldapwhoami; }
scheme() { search "$1" -s base -b "uid=$2,ou=people,$base" userPassword | sed -n 's/^userPassword:: //p' | base64 -d | LC_ALL=C sed 's/}.*/}/'; }
stored() { search "$1" -b "ou=people,$base" userPassword | grep -c '^userPassword'; }
# The stored passwords of everybody else, as one sum.
others() { awk -v RS= -v ORS='\n\n' -v lost="$all_lost" '$0 !~ "^dn: uid=(" lost "),"' | grep '^userPassword' | sort | sha256sum; }
csn() { search "$1" -s base -b "$base" contextCSN | grep '^contextCSN' | sort; }
await() { for _ in {1..100}; do "$@" && return; sleep 0.1; done; return 1; }
in_step() { [[ $(csn copy) == "$(csn main)" ]]; }
page() { curl -s -o /dev/null -w '%{http_code}\n' -u "$1:$2" http://127.0.0.1:8080/staff/; }
work=$(mktemp -d)
all_lost=$(grep -v '^#' "$lost" | cut -f 1 | paste -sd '|')
await in_step
while IFS=$'\t' read -r -u 7 uid password; do
    for server in main copy; do
        expect_out "login-$uid-$server" "uid=$uid" -- login "$server" "$uid" "$password"
        expect_eq "stored-$uid-$server" "$(scheme "$server" "$uid")" '{ARGON2}'
    done
    # printed by curl
    expect_out "web-$uid" '^200$' -- page "$uid" "$password"
    expect_fail "old-$uid" 'Invalid credentials' -- login main "$uid" "Badge-$(badge_of "$uid")"
    last=$uid new=$password
done 7< <(grep -v '^#' "$lost")
# Somebody who changes his own password, at the second server, has it everywhere in the same form.
own() { as copy "uid=$last,ou=people,$base" "$1" ldappasswd -s "$2"; }
await login copy "$last" "$new" >/dev/null
expect_ok own -- own "$new" "$new-once"
arrived() { login copy "$last" "$new-once" >/dev/null 2>&1; }
await arrived
expect_out own-main "uid=$last" -- login main "$last" "$new-once"
expect_out own-copy "uid=$last" -- login copy "$last" "$new-once"
expect_out own-web-no-more '^401$' -- page "$last" "$new"
expect_out own-web '^200$' -- page "$last" "$new-once"
expect_eq own-stored "$(scheme copy "$last")" '{ARGON2}'
printf '%s\n' "dn: uid=$last,ou=people,$base" 'changetype: modify' 'replace: userPassword' "userPassword: $new" | admin main ldapmodify >/dev/null 2>&1
await in_step
expect_eq plain-stored "$(scheme copy "$last")" '{ARGON2}'
expect_out plain-login "uid=$last" -- login copy "$last" "$new"
search main -b "ou=people,$base" userPassword >"$work/main"
search copy -b "ou=people,$base" userPassword >"$work/copy"
unfolded() { awk '{ if (sub(/^ /, "")) line = line $0; else { if (NR > 1) print line; line = $0 } } END { print line }' /srv/old/works.ldif; }
unfolded | awk -v RS= -v ORS='\n\n' '/^dn: uid=/' >"$work/dump"
expect_eq others-main "$(others <"$work/main")" "$(others <"$work/dump")"
expect_eq others-copy "$(others <"$work/copy")" "$(others <"$work/dump")"
# Both servers have been started after Apache.
ticks() { cut -d ' ' -f 22 "/proc/$1/stat"; }
web=$(ticks "$(pgrep -o -x apache2)")
for server in main copy; do
    pid=$(ps -o pid=,args= -C slapd | awk -v place="/srv/dir/$server/slapd.d" 'index($0, place) { print $1; exit }')
    if [[ -n $pid && $(ticks "$pid") -gt $web ]]; then pass "restarted-$server"; else fail "restarted-$server" "was not started after Apache"; fi
done
expect_eq user "$(ps -o user= -C slapd | sort -u)" openldap
rm -rf "$work"
