#!/bin/bash
set -eu
main=ldap://127.0.0.1:3389
copy=ldap://127.0.0.1:3390
suffix=dc=works,dc=example
policy=cn=standard,ou=policies,$suffix
password_of() { awk -v who="$1" '$1 == who { print $2 }' /srv/old/passwords.txt; }
at() { "$2" -x -H "$1" -D "cn=admin,$suffix" -w "$(password_of "cn=admin,$suffix")" "${@:3}"; }
await() { for _ in {1..150}; do "$@" && return; sleep 0.1; done; return 1; }
arrived() { at "$copy" ldapsearch -LLL -s base -b "$policy" pwdMaxFailure | grep -q '^pwdMaxFailure: 4'; }
at "$main" ldapmodify <<END
dn: $policy
changetype: modify
replace: pwdLockout
pwdLockout: TRUE
-
replace: pwdMaxFailure
pwdMaxFailure: 4
-
replace: pwdLockoutDuration
pwdLockoutDuration: 0
-
replace: pwdFailureCountInterval
pwdFailureCountInterval: 600
END
# key-step: begin
# A failed login at the second server would be counted there alone, and forgotten with the next
# change that arrives. It has to write to the first, in its own name for the other's person.
at "$copy" ldapmodify <<END
dn: cn=module{0},cn=config
changetype: modify
add: olcModuleLoad
olcModuleLoad: back_ldap
END
at "$copy" ldapadd <<END
dn: olcOverlay=chain,olcDatabase={-1}frontend,cn=config
objectClass: olcChainConfig
olcOverlay: chain
olcChainReturnError: TRUE

dn: olcDatabase=ldap,olcOverlay={0}chain,olcDatabase={-1}frontend,cn=config
objectClass: olcLDAPConfig
objectClass: olcChainDatabase
olcDatabase: ldap
olcDbURI: $main
olcDbIDAssertBind: bindmethod=simple binddn="cn=admin,$suffix" credentials="$(password_of "cn=admin,$suffix")" mode=self
END
overlay=$(at "$copy" ldapsearch -LLL -o ldif-wrap=no -b cn=config '(objectClass=olcPPolicyConfig)' dn | sed -n 's/^dn: //p')
at "$copy" ldapmodify <<END
dn: $overlay
changetype: modify
replace: olcPPolicyForwardUpdates
olcPPolicyForwardUpdates: TRUE
END
# key-step: end
await arrived
