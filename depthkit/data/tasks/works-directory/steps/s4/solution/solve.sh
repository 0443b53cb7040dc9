#!/bin/bash
set -eu
suffix=dc=works,dc=example
web=cn=web,ou=services,$suffix
password_of() { awk -v who="$1" '$1 == who { print $2 }' /srv/old/passwords.txt; }
await() { for _ in {1..150}; do "$@" && return; sleep 0.1; done; return 1; }
answers() { curl -s -o /dev/null http://127.0.0.1:8080/; }
install -d /srv/web/wiki /srv/web/staff
echo 'Works department' >/srv/web/index.html
echo 'Wiki of the works department' >/srv/web/wiki/index.html
echo 'Pages for everybody who works here' >/srv/web/staff/index.html
cat >/etc/apache2/ports.conf <<'END'
Listen 127.0.0.1:8080
END
cat >/etc/apache2/sites-available/works.conf <<END
<VirtualHost 127.0.0.1:8080>
    ServerName 127.0.0.1
    DocumentRoot /srv/web
    <Directory /srv/web>
        Require all granted
    </Directory>
    <LocationMatch "^/(wiki|staff)(/|\$)">
        AuthType Basic
        AuthName "Works department"
        AuthBasicProvider ldap
        AuthLDAPURL "ldap://127.0.0.1:3390/ou=people,$suffix?uid?sub?(objectClass=worksPerson)"
        AuthLDAPBindDN "$web"
        AuthLDAPBindPassword "$(password_of "$web")"
        AuthLDAPBindAuthoritative on
    </LocationMatch>
    <Location "/staff">
        Require valid-user
    </Location>
    <Location "/wiki">
        Require ldap-group cn=wiki,ou=groups,$suffix
    </Location>
</VirtualHost>
END
chmod 640 /etc/apache2/sites-available/works.conf
# key-step: begin
# Apache keeps logins and groups it has looked up for ten minutes, whatever the directory says since.
cat >/etc/apache2/conf-available/ldap-cache.conf <<'END'
LDAPCacheEntries 0
LDAPOpCacheEntries 0
LDAPSharedCacheSize 0
END
a2enconf -q ldap-cache
# key-step: end
a2enmod -q authnz_ldap
a2dissite -q 000-default
a2ensite -q works
apachectl start
await answers
