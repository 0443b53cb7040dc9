set -u
base=dc=works,dc=example
password_of() { awk -v who="$1" '$1 == who { print $2 }' /srv/old/passwords.txt; }
badge_of() { awk -v uid="$1" '$1 == "uid:" { now = $2 } $1 == "worksBadge:" && now == uid { print $2; exit }' /srv/old/works.ldif; }
uri() { case $1 in main) echo ldap://127.0.0.1:3389 ;; copy) echo ldap://127.0.0.1:3390 ;; esac; }
admin() { "$2" -x -H "$(uri "$1")" -D "cn=admin,$base" -w "$(password_of "cn=admin,$base")" "${@:3}"; }
search() { admin "$1" ldapsearch -LLL -o ldif-wrap=no "${@:2}"; }
members() { search main -s base -b "cn=wiki,ou=groups,$base" member | sed -n 's/^member: uid=\([^,]*\),.*/\1/p'; }
people() { search main -b "ou=people,$base" '(uid=*)' uid | sed -n 's/^uid: //p'; }
# The status that a page has for somebody, with the password of the badge or another.
page() { curl -s -o /dev/null -w '%{http_code}\n' ${2:+-u "$2:${3-Badge-$(badge_of "$2")}"} "http://127.0.0.1:8080$1"; }
# printed by curl
refused='^401$' good='^200$'
change() { printf '%s\n' "dn: $1" 'changetype: modify' "${@:2}" | admin main ldapmodify >/dev/null 2>&1; }
has() { search copy -s base -b "$1" "$2" | grep -c "^$2: $3"; }
await() { for _ in {1..50}; do "$@" && return; sleep 0.1; done; return 1; }
is() { (($(has "${@:1:3}") == $4)); }
unlock() { change "uid=$1,ou=people,$base" 'delete: pwdAccountLockedTime' && is "uid=$1,ou=people,$base" pwdAccountLockedTime '' 0; }
inside=$(members | sed -n 7p) writer=$(members | sed -n 400p)
outside=$(comm -23 <(people | sort) <(members | sort) | sed -n 90p)

expect_out open "$good" -- page /
expect_out wiki-nobody "$refused" -- page /wiki/
expect_out staff-nobody "$refused" -- page /staff/
expect_out wiki-inside "$good" -- page /wiki/ "$inside"
expect_out wiki-outside "$refused" -- page /wiki/ "$outside"
expect_out staff-outside "$good" -- page /staff/ "$outside"
expect_out staff-service "$refused" -- page /staff/ web "$(password_of "cn=web,ou=services,$base")"
# Somebody who has just been let in is out of the group: the next page is closed, the others are not.
expect_out member "$good" -- page /wiki/ "$writer"
change "cn=wiki,ou=groups,$base" 'delete: member' "member: uid=$writer,ou=people,$base"
await is "cn=wiki,ou=groups,$base" member "uid=$writer," 0
expect_out member-no-more "$refused" -- page /wiki/ "$writer"
expect_out still-staff "$good" -- page /staff/ "$writer"
change "cn=wiki,ou=groups,$base" 'add: member' "member: uid=$writer,ou=people,$base"
await is "cn=wiki,ou=groups,$base" member "uid=$writer," 1
expect_out member-again "$good" -- page /wiki/ "$writer"
# Wrong passwords on the web lock the account everywhere, and at once.
expect_out before-lock "$good" -- page /staff/ "$inside"
for number in 1 2 3 4; do
    page /staff/ "$inside" "no-$number" >/dev/null
    for _ in {1..50}; do (($(search copy -s base -b "uid=$inside,ou=people,$base" pwdFailureTime | grep -c '^pwdFailureTime') >= number)) && break; sleep 0.1; done
done
await is "uid=$inside,ou=people,$base" pwdAccountLockedTime '' 1
expect_out locked-main '^pwdAccountLockedTime' -- search main -s base -b "uid=$inside,ou=people,$base" pwdAccountLockedTime
expect_out locked-web "$refused" -- page /wiki/ "$inside"
expect_out locked-staff "$refused" -- page /staff/ "$inside"
await unlock "$inside"
expect_out unlocked "$good" -- page /wiki/ "$inside"
# The account of the web server is an ordinary one.
expect_out web-account 'cn=web,ou=services' -- ldapwhoami -x -H "$(uri copy)" -D "cn=web,ou=services,$base" -w "$(password_of "cn=web,ou=services,$base")"
