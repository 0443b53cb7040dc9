#!/bin/bash
set -eu
main=ldap://127.0.0.1:3389
copy=ldap://127.0.0.1:3390
home=/srv/dir/copy
suffix=dc=works,dc=example
replica=cn=replica,ou=services,$suffix
password_of() { awk -v who="$1" '$1 == who { print $2 }' /srv/old/passwords.txt; }
as_admin() { "$1" -x -H "$main" -D "cn=admin,$suffix" -w "$(password_of "cn=admin,$suffix")" "${@:2}"; }
await() { for _ in {1..600}; do "$@" && return; sleep 0.1; done; return 1; }
state() {
    ldapsearch -x -LLL -H "$1" -D "cn=admin,$suffix" -w "$(password_of "cn=admin,$suffix")" \
        -s base -b "$suffix" contextCSN 2>/dev/null | grep contextCSN
}
in_step() { [ -n "$(state "$copy")" ] && [ "$(state "$copy")" = "$(state "$main")" ]; }
as_admin ldapmodify <<END
dn: cn=module{0},cn=config
changetype: modify
add: olcModuleLoad
olcModuleLoad: syncprov

dn: olcOverlay=syncprov,olcDatabase={1}mdb,cn=config
changetype: add
objectClass: olcSyncProvConfig
olcOverlay: syncprov
olcSpCheckpoint: 100 10
olcSpSessionlog: 1000
END
# key-step: begin
# A search ends after 500 entries for everybody but the administrator, and the rules hide passwords
# and addresses; the copy would be without them and say nothing.
as_admin ldapmodify <<END
dn: olcDatabase={1}mdb,cn=config
changetype: modify
add: olcLimits
olcLimits: dn.exact="$replica" size=unlimited time=unlimited
-
add: olcAccess
olcAccess: {0}to * by dn.exact="$replica" read by * break
END
# key-step: end
install -d "$home" "$home/slapd.d" "$home/data"
# The second server has the configuration of the first, with its own places, and receives.
slapcat -F /srv/dir/main/slapd.d -n 0 -o ldif-wrap=no |
    sed -E -e "s#/srv/dir/main#$home#" -e '/^(entryCSN|contextCSN|entryUUID|creatorsName|createTimestamp|modifiersName|modifyTimestamp|structuralObjectClass):/d' \
        -e "s#^olcRootDN: cn=admin,$suffix\$#&#" |
    awk -v RS= -v ORS='\n\n' -v replica="$replica" -v secret="$(password_of "$replica")" '
        /^dn: olcOverlay=.*syncprov/ { next }
        /^dn: olcDatabase=\{1\}mdb/ {
            sub(/\nolcLimits:[^\n]*/, "")
            $0 = $0 "\nolcSyncrepl: {0}rid=001 provider=ldap://127.0.0.1:3389 type=refreshAndPersist" \
                " retry=\"2 +\" searchbase=\"dc=works,dc=example\" bindmethod=simple binddn=\"" replica \
                "\" credentials=" secret "\nolcUpdateRef: ldap://127.0.0.1:3389"
        }
        { print }' >"$home/config.ldif"
slapadd -F "$home/slapd.d" -n 0 -l "$home/config.ldif"
rm "$home/config.ldif"
chown -R openldap:openldap "$home"
slapd -h "$copy" -F "$home/slapd.d" -u openldap -g openldap
await in_step
