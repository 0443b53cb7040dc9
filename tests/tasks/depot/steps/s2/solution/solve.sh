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
sed -i 's/^moduleload back_mdb/&\nmoduleload memberof/' /srv/ldap/slapd.conf
echo 'overlay memberof' >>/srv/ldap/slapd.conf
# event: begin restart of the directory service
kill "$(cat /srv/ldap/slapd.pid)"
for _ in {1..100}; do pgrep -x slapd >/dev/null || break; sleep 0.1; done
start_slapd
# event: end
# key-step: begin
# The overlay sees only what changes from now on, so the group is made again.
ldapsearch -x -LLL -H "$uri" -s base -b "$group" >/tmp/group.ldif
as_admin ldapdelete "$group"
as_admin ldapadd -f /tmp/group.ldif
# key-step: end
