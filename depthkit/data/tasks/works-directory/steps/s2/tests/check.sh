set -u
base=dc=works,dc=example
password_of() { awk -v who="$1" '$1 == who { print $2 }' /srv/old/passwords.txt; }
somebody() { grep '^uid: ' /srv/old/works.ldif | sed -n "$1{s/^uid: //p}"; }
badge_of() { awk -v uid="$1" '$1 == "uid:" { now = $2 } $1 == "worksBadge:" && now == uid { print $2; exit }' /srv/old/works.ldif; }
uri() { case $1 in main) echo ldap://127.0.0.1:3389 ;; copy) echo ldap://127.0.0.1:3390 ;; esac; }
as() { "$4" -x -H "$(uri "$1")" -D "$2" -w "$3" "${@:5}"; }
admin() { as "$1" "cn=admin,$base" "$(password_of "cn=admin,$base")" "${@:2}"; }
search() { admin "$1" ldapsearch -LLL -o ldif-wrap=no "${@:2}"; }
person() { as "$1" "uid=$2,ou=people,$base" "Badge-$(badge_of "$2")" "${@:3}"; }
count() { search "$1" -b "$base" dn | grep -c '^dn: '; }
sum_of() { search "$1" -b "$base" "$2" | grep "^$2:" | sort | sha256sum; }
csn() { search "$1" -s base -b "$base" contextCSN | grep '^contextCSN' | sort; }
one=$(somebody 17) two=$(somebody 2450) clerk=$(somebody 704)
expect_port listening-main 127.0.0.1 3389
expect_port listening-copy 127.0.0.1 3390
expect_eq user "$(ps -o user= -C slapd | sort -u)" openldap
expect_eq places "$(ps -o args= -C slapd | grep -o -- '-F *[^ ]*' | cut -c 3- | tr -d ' ' | grep copy)" /srv/dir/copy/slapd.d
expect_eq entries "$(count copy)" "$(count main)" int
expect_eq whole "$(count main)" "$(grep -c '^dn: ' /srv/old/works.ldif)" int
expect_eq in-step "$(csn copy)" "$(csn main)"
for name in entryUUID userPassword member worksBadge homePostalAddress createTimestamp pwdLockout; do
    expect_eq "all-$name" "$(sum_of copy "$name")" "$(sum_of main "$name")"
done
expect_out login "uid=$two" -- person copy "$two" ldapwhoami
expect_no_out hidden '^(userPassword|homePostalAddress)' -- person copy "$one" ldapsearch -LLL -b "uid=$two,ou=people,$base"
expect_out personnel '^homePostalAddress' -- person copy "$clerk" ldapsearch -LLL -b "uid=$two,ou=people,$base" homePostalAddress
expect_eq groups-shown "$(search copy -b "$base" "(memberOf=cn=personnel,ou=groups,$base)" uid | grep -c '^uid:')" \
    "$(search main -s base -b "cn=personnel,ou=groups,$base" member | grep -c '^member:')" int
# A change follows within moments, one way only.
note() { printf '%s\n' "dn: uid=$two,ou=people,$base" 'changetype: modify' "$1: description" ${2:+"description: $2"}; }
seen() { search copy -s base -b "uid=$two,ou=people,$base" description | grep -c "$1"; }
note add "probe $$" | admin main ldapmodify >/dev/null
for _ in {1..50}; do (($(seen "probe $$"))) && break; sleep 0.1; done
expect_out follows "^description: probe $$" -- search copy -s base -b "uid=$two,ou=people,$base" description
note delete | admin main ldapmodify >/dev/null
for _ in {1..50}; do (($(seen probe))) || break; sleep 0.1; done
expect_no_out follows-back '^description' -- search copy -s base -b "uid=$two,ou=people,$base" description
write_copy() { note add nothing | admin copy ldapmodify; }
expect_fail read-only 'Referral' -- write_copy
expect_out referral '3389' -- write_copy
# Others are bound to the usual limit, the replica account is the only exception.
expect_out limit 'Size limit exceeded' -- person main "$one" ldapsearch -LLL -b "$base" dn
expect_out limit-copy 'Size limit exceeded' -- person copy "$one" ldapsearch -LLL -b "$base" dn
