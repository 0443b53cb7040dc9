set -u
uri=ldap://127.0.0.1:3890
base=dc=depot,dc=example
look() { ldapsearch -x -LLL -o ldif-wrap=no -H "$uri" "$@"; }
values() { # ATTRIBUTE SEARCH…
    local key value
    look "${@:2}" "$1" | while IFS= read -r key; do
        value=${key#"$1": }
        [[ $key != "$1: "* ]] || printf '%s\n' "${value%%,*}"
    done
}
wanted() { grep '^uid: ' /srv/in/depot.ldif | cut -d ' ' -f 2; }
password_of() { grep -A 6 "^uid: $1\$" /srv/in/depot.ldif | grep -m 1 userPassword | cut -d ' ' -f 2; }
expect_port listening 127.0.0.1 3890
expect_eq people "$(values uid -b "$base" '(uid=*)')" "$(wanted)" set
for uid in $(wanted); do
    person="uid=$uid,ou=people,$base"
    expect_ok "login-$uid" -- ldapwhoami -x -H "$uri" -D "$person" -w "$(password_of "$uid")"
done
expect_no_out hidden userPassword:: -- look -b "$base" '(uid=*)' userPassword
expect_out administrator "cn=admin" -- ldapwhoami -x -H "$uri" -D "cn=admin,$base" -w "$(cat /srv/in/password)"
