set -u
base=dc=works,dc=example
password_of() { awk -v who="$1" '$1 == who { print $2 }' /srv/old/passwords.txt; }
somebody() { grep '^uid: ' /srv/old/works.ldif | sed -n "$1{s/^uid: //p}"; }
badge_of() { awk -v uid="$1" '$1 == "uid:" { now = $2 } $1 == "worksBadge:" && now == uid { print $2; exit }' /srv/old/works.ldif; }
uri() { case $1 in main) echo ldap://127.0.0.1:3389 ;; copy) echo ldap://127.0.0.1:3390 ;; esac; }
as() { "$4" -x -H "$(uri "$1")" -D "$2" -w "$3" "${@:5}"; }
admin() { as "$1" "cn=admin,$base" "$(password_of "cn=admin,$base")" "${@:2}"; }
search() { admin "$1" ldapsearch -LLL -o ldif-wrap=no "${@:2}"; }
login() { as "$1" "uid=$2,ou=people,$base" "${3-Badge-$(badge_of "$2")}" ldapwhoami; }
failures() { search "$1" -s base -b "uid=$2,ou=people,$base" pwdFailureTime | grep -c '^pwdFailureTime'; }
# Waits until a server counts so many failures of somebody.
counted() { for _ in {1..50}; do (($(failures "$1" "$2") == $3)) && return; sleep 0.1; done; return 1; }
both() { counted main "$@" && counted copy "$@"; }
# Fails to log in at the servers named, letting each failure arrive everywhere.
fail_at() { # UID SERVER…
    local number=0 server
    for server in "${@:2}"; do
        number=$((number + 1))
        login "$server" "$1" "no-$number" >/dev/null 2>&1
        both "$1" "$number"
    done
}
unlock() {
    printf '%s\n' "dn: uid=$1,ou=people,$base" 'changetype: modify' 'delete: pwdAccountLockedTime' | admin main ldapmodify
    printf '%s\n' "dn: uid=$1,ou=people,$base" 'changetype: modify' 'delete: pwdFailureTime' | admin main ldapmodify
    both "$1" 0
}
locked() { search "$1" -s base -b "uid=$2,ou=people,$base" pwdAccountLockedTime; }
three=$(somebody 31) mixed=$(somebody 1207) far=$(somebody 2291) other=$(somebody 40)
for uid in "$three" "$mixed" "$far"; do unlock "$uid" >/dev/null 2>&1; done

fail_at "$three" main copy copy
expect_out "three-main" "uid=$three" -- login main "$three"
expect_ok "forgotten" -- both "$three" 0
expect_out "three-copy" "uid=$three" -- login copy "$three"
# Wherever the four failures were, both servers are closed.
fail_at "$mixed" copy main copy main
fail_at "$far" copy copy copy copy
for uid in "$mixed" "$far"; do
    for server in main copy; do
        expect_fail "locked-$uid-$server" 'Invalid credentials' -- login "$server" "$uid"
        expect_out "lock-kept-$uid-$server" '^pwdAccountLockedTime' -- locked "$server" "$uid"
    done
    unlock "$uid" >/dev/null 2>&1
    for server in main copy; do
        expect_out "unlocked-$uid-$server" "uid=$uid" -- login "$server" "$uid"
    done
done
# Nobody has more rights at the second server than at the first.
steal() {
    printf '%s\n' "dn: uid=$other,ou=people,$base" 'changetype: modify' 'replace: description' 'description: taken' |
        as copy "uid=$three,ou=people,$base" "Badge-$(badge_of "$three")" ldapmodify
}
expect_fail no-more-rights 'Insufficient access|Referral|unwilling|Strong' -- steal
expect_no_out untouched '^description' -- search main -s base -b "uid=$other,ou=people,$base" description
for server in main copy; do
    expect_eq "lockout-$server" "$(search "$server" -s base -b "cn=standard,ou=policies,$base" pwdLockout | sed -n 's/^pwdLockout: //p')" TRUE bool
    expect_eq "failures-$server" "$(search "$server" -s base -b "cn=standard,ou=policies,$base" pwdMaxFailure | sed -n 's/^pwdMaxFailure: //p')" 4 int
    expect_eq "interval-$server" "$(search "$server" -s base -b "cn=standard,ou=policies,$base" pwdFailureCountInterval | sed -n 's/^pwdFailureCountInterval: //p')" 600 int
    expect_eq "until-$server" "$(search "$server" -s base -b "cn=standard,ou=policies,$base" pwdLockoutDuration | sed -n 's/^pwdLockoutDuration: //p')" 0 int
done
