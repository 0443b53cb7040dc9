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
everybody() { grep '^uid: ' /srv/in/depot.ldif | cut -d ' ' -f 2; }
listed() { grep '^member: ' /srv/in/depot.ldif | cut -d ' ' -f 2 | cut -d , -f 1; }
names() { look -s base -b "$group" member | sed -n 's/^member: //p' | sort; }
wanted() { listed | sort | sed "s/$/,ou=staff,$base/"; }
shown() { values uid -b "ou=staff,$base" "(memberOf=$group)" | sed 's/^/uid=/'; }
expect_eq moved "$(values uid -b "ou=staff,$base" '(uid=*)' | sed 's/^/uid=/')" "$(listed)" set
expect_eq stayed "$(values uid -b "$base" '(uid=*)')" "$(everybody)" set
expect_eq rest "$(values uid -b "ou=people,$base" '(uid=*)' | sed 's/^/uid=/')" "$(everybody | sed 's/^/uid=/' | grep -vxF "$(listed)")" set
expect_eq members "$(names)" "$(wanted)"
expect_eq shown "$(shown)" "$(listed)" set
