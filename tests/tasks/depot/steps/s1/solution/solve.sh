#!/bin/bash
set -eu
uri=ldap://127.0.0.1:3890
base=dc=depot,dc=example
as_admin() { "$1" -x -H "$uri" -D "cn=admin,$base" -w "$(cat /srv/in/password)" "${@:2}"; }
start_slapd() {
    slapd -f /srv/ldap/slapd.conf -h "$uri"
    for _ in {1..100}; do ldapsearch -x -H "$uri" -s base -b '' >/dev/null 2>&1 && break; sleep 0.1; done
}
cat >/srv/ldap/slapd.conf <<END
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
pidfile /srv/ldap/slapd.pid
modulepath /usr/lib/ldap
moduleload back_mdb
database mdb
suffix "$base"
rootdn "cn=admin,$base"
rootpw $(slappasswd -s "$(cat /srv/in/password)")
directory /srv/ldap/db
END
# key-step: begin
# slapd lets everybody read everything unless it is told otherwise.
cat >>/srv/ldap/slapd.conf <<'END'
access to attrs=userPassword by anonymous auth by * none
access to * by * read
END
# key-step: end
start_slapd
as_admin ldapadd -f /srv/in/depot.ldif
