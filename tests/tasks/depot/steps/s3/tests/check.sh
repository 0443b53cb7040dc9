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
group=cn=keepers,ou=groups,$base
listed() { grep '^member: ' /srv/in/depot.ldif | cut -d ' ' -f 2 | cut -d , -f 1; }
expect_out renamed "^dn: ou=staff,$base" -- look -b "$base" '(ou=staff)' dn
expect_no_out gone ou=people -- look -b "$base" '(objectClass=*)' dn member
expect_eq members "$(values member -s base -b "$group")" "$(listed)" set
expect_eq shown "uid=$(values uid -b "ou=staff,$base" "(memberOf=$group)" | paste -sd , | sed 's/,/,uid=/g')" "$(listed)" set
