#!/bin/bash
set -eu
main=ldap://127.0.0.1:3389
copy=ldap://127.0.0.1:3390
suffix=dc=works,dc=example
password_of() { awk -v who="$1" '$1 == who { print $2 }' /srv/old/passwords.txt; }
at() { "$2" -x -H "$1" -D "cn=admin,$suffix" -w "$(password_of "cn=admin,$suffix")" "${@:3}"; }
await() { for _ in {1..150}; do "$@" && return; sleep 0.1; done; return 1; }
answers() { ldapwhoami -x -H "$1" >/dev/null 2>&1; }
module() {
    at "$1" ldapmodify <<END
dn: cn=module{0},cn=config
changetype: modify
add: olcModuleLoad
olcModuleLoad: argon2
END
}
state() { at "$1" ldapsearch -LLL -s base -b "$suffix" contextCSN | grep contextCSN; }
in_step() { [ "$(state "$copy")" = "$(state "$main")" ]; }
module "$main"
at "$main" ldapmodify <<END
dn: olcDatabase={-1}frontend,cn=config
changetype: modify
replace: olcPasswordHash
olcPasswordHash: {ARGON2}
END
# key-step: begin
# The copy receives such a password, whole and in step, and cannot tell what it is: each login there
# fails, and counts as a wrong one.
module "$copy"
# key-step: end
grep -v '^#' /srv/old/lost-badges.txt | while IFS=$'\t' read -r uid password; do
    at "$main" ldappasswd -s "$password" "uid=$uid,ou=people,$suffix" </dev/null
done
await in_step
# event: begin restart of both servers
for server in main copy; do
    kill "$(cat "/srv/dir/$server/slapd.pid")"
    await [ ! -e "/srv/dir/$server/slapd.pid" ]
done
slapd -h "$main" -F /srv/dir/main/slapd.d -u openldap -g openldap
await answers "$main"
slapd -h "$copy" -F /srv/dir/copy/slapd.d -u openldap -g openldap
await answers "$copy"
# event: end
await in_step
