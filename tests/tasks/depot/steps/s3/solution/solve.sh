#!/bin/bash
set -eu
uri=ldap://127.0.0.1:3890
base=dc=depot,dc=example
as_admin() { "$1" -x -H "$uri" -D "cn=admin,$base" -w "$(cat /srv/in/password)" "${@:2}"; }
group=cn=keepers,ou=groups,$base
as_admin ldapadd <<END
dn: ou=staff,$base
objectClass: organizationalUnit
ou: staff
END
keepers=$(ldapsearch -x -LLL -H "$uri" -b "ou=people,$base" "(memberOf=$group)" uid | sed -n 's/^uid: //p')
for uid in $keepers; do
    as_admin ldapmodrdn -s "ou=staff,$base" "uid=$uid,ou=people,$base" "uid=$uid"
done
# key-step: begin
# Names within a group do not follow when an entry is moved.
for uid in $keepers; do
    as_admin ldapmodify <<END
dn: $group
changetype: modify
delete: member
member: uid=$uid,ou=people,$base
-
add: member
member: uid=$uid,ou=staff,$base
END
done
# key-step: end
