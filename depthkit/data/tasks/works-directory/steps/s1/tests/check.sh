set -u
uri=ldap://127.0.0.1:3389
base=dc=works,dc=example
dump=/srv/old/works.ldif
password_of() { awk -v who="$1" '$1 == who { print $2 }' /srv/old/passwords.txt; }
# Somebody of the dump by place, and that person's password by the badge.
somebody() { grep '^uid: ' "$dump" | sed -n "$1{s/^uid: //p}"; }
badge_of() { awk -v uid="$1" '$1 == "uid:" { now = $2 } $1 == "worksBadge:" && now == uid { print $2; exit }' "$dump"; }
as() { # DN PASSWORD COMMAND…
    "$3" -x -H "$uri" -D "$1" -w "$2" "${@:4}"
}
admin() { as "cn=admin,$base" "$(password_of "cn=admin,$base")" "$@"; }
search() { admin ldapsearch -LLL -o ldif-wrap=no "$@"; }
person() { as "uid=$1,ou=people,$base" "Badge-$(badge_of "$1")" "${@:2}"; }
# The values of an attribute, from either side, as one sum.
sum_of() { grep "^$1:" | sort | sha256sum; }
unfolded() { awk '{ if (sub(/^ /, "")) line = line $0; else { if (NR > 1) print line; line = $0 } } END { print line }' "$dump"; }
all=$(mktemp)
search -b "$base" '*' + >"$all"
one=$(somebody 11) two=$(somebody 2100) clerk=$(somebody 704)

expect_port listening 127.0.0.1 3389
expect_eq user "$(ps -o user= -C slapd | sort -u)" openldap
expect_eq entries "$(grep -c '^dn: ' "$all")" "$(grep -c '^dn: ' "$dump")" int
for name in entryUUID userPassword uid member memberOf worksBadge manager createTimestamp homePostalAddress; do
    expect_eq "all-$name" "$(sum_of "$name" <"$all")" "$(unfolded | sum_of "$name")"
done
for uid in "$one" "$two"; do
    expect_out "login-$uid" "uid=$uid" -- person "$uid" ldapwhoami
    expect_out "by-badge-$uid" "^dn: uid=$uid," -- person "$one" ldapsearch -LLL -b "$base" "(worksBadge=$(badge_of "$uid"))" dn
done
expect_fail wrong-password 'Invalid credentials' -- as "uid=$one,ou=people,$base" wrong ldapwhoami
expect_no_out passwords-hidden '^userPassword' -- person "$one" ldapsearch -LLL -b "uid=$two,ou=people,$base" userPassword
expect_no_out addresses-hidden '^homePostalAddress' -- person "$one" ldapsearch -LLL -b "uid=$two,ou=people,$base" homePostalAddress
expect_out personnel '^homePostalAddress' -- person "$clerk" ldapsearch -LLL -b "uid=$two,ou=people,$base" homePostalAddress
expect_no_out anonymous '^(mail|cn):' -- ldapsearch -x -LLL -H "$uri" -b "$base" "(uid=$one)"
twice() { printf '%s\n' "dn: uid=twice,ou=people,$base" 'objectClass: inetOrgPerson' 'uid: twice' "uid: $one" 'cn: T' 'sn: T'; }
add_twice() { twice | admin ldapadd; }
expect_fail unique 'Constraint violation' -- add_twice
# Groups show at their members, for as long as there is the group.
group() { printf '%s\n' "dn: cn=probe,ou=groups,$base" 'objectClass: groupOfNames' 'cn: probe' "member: uid=$two,ou=people,$base"; }
group | admin ldapadd >/dev/null 2>&1
expect_out shown "^memberOf: cn=probe,ou=groups,$base" -- search -b "uid=$two,ou=people,$base" memberOf
admin ldapdelete "cn=probe,ou=groups,$base" >/dev/null 2>&1
expect_no_out shown-no-more 'cn=probe' -- search -b "uid=$two,ou=people,$base" memberOf
expect_out policy "^olcPPolicyDefault: cn=standard,ou=policies,$base" -- search -b cn=config '(objectClass=olcPPolicyConfig)' olcPPolicyDefault
expect_out database "^olcDbDirectory: /srv/dir/main/data" -- search -b cn=config "(olcSuffix=$base)" olcDbDirectory
expect_eq places "$(ps -o args= -C slapd | grep -o -- '-F *[^ ]*' | cut -c 3- | tr -d ' ' | grep main)" /srv/dir/main/slapd.d
rm -f "$all"
