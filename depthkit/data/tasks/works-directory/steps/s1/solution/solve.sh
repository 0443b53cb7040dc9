#!/bin/bash
set -eu
home=/srv/dir/main
uri=ldap://127.0.0.1:3389
suffix=dc=works,dc=example
await() { for _ in {1..150}; do "$@" && return; sleep 0.1; done; return 1; }
answers() { ldapwhoami -x -H "$uri" >/dev/null 2>&1; }
install -d "$home" "$home/slapd.d" "$home/data"
# Directives of the old version and of its database are left out or replaced; schemas that are built
# in by now as well.
{
    echo "include /etc/ldap/schema/core.schema"
    echo "include /etc/ldap/schema/cosine.schema"
    echo "include /etc/ldap/schema/nis.schema"
    echo "include /etc/ldap/schema/inetorgperson.schema"
    echo "include /srv/old/schema/works.schema"
    cat <<END
pidfile $home/slapd.pid
argsfile $home/slapd.args
loglevel stats
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
moduleload refint
moduleload unique
moduleload ppolicy
idletimeout 900
database config
rootdn "cn=admin,$suffix"
database mdb
END
    sed -n '/^suffix/,/^ppolicy_hash_cleartext/p' /srv/old/slapd.conf |
        grep -vE '^(directory|dbconfig|cachesize|idlcachesize|checkpoint)'
} >"$home/slapd.conf"
sed -i "s#^suffix.*#&\ndirectory $home/data#" "$home/slapd.conf"
# key-step: begin
# Without it the database of this version ends at 10 MB, and the dump stops about half-way.
sed -i "s#^directory.*#&\nmaxsize 1073741824#" "$home/slapd.conf"
# key-step: end
slaptest -u -f "$home/slapd.conf"
slaptest -f "$home/slapd.conf" -F "$home/slapd.d" -n 0
slapadd -F "$home/slapd.d" -n 1 -q -w -l /srv/old/works.ldif || true
rm "$home/slapd.conf"
chown -R openldap:openldap "$home"
slapd -h "$uri" -F "$home/slapd.d" -u openldap -g openldap
await answers
