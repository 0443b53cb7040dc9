#!/bin/bash
set -eu
uri=ldap://127.0.0.1:3890
base=dc=depot,dc=example
as_admin() { "$1" -x -H "$uri" -D "cn=admin,$base" -w "$(cat /srv/in/password)" "${@:2}"; }
start_slapd() {
    slapd -f /srv/ldap/slapd.conf -h "$uri"
    for _ in {1..100}; do ldapsearch -x -H "$uri" -s base -b '' >/dev/null 2>&1 && break; sleep 0.1; done
}
group=cn=keepers,ou=groups,$base
# key-step: begin
# Names within a group do not follow when a folder of people is renamed.
ldapsearch -x -LLL -o ldif-wrap=no -H "$uri" -s base -b "$group" | sed 's/ou=people/ou=staff/' >/tmp/group.ldif
as_admin ldapdelete "$group"
# key-step: end
as_admin ldapmodrdn -r "ou=people,$base" ou=staff
# key-step: begin
as_admin ldapadd -f /tmp/group.ldif
# key-step: end
