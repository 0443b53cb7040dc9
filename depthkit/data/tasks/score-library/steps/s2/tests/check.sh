set -u
h=/srv/handover
export PGCONNECT_TIMEOUT=5
sql() { runuser -u postgres -- psql -qAtX -p 5432 "$@"; }
value_of() { grep "^$1=" "$h/app.env" | cut -d "'" -f 2 | cut -d = -f 2; }
pool() { PGPASSWORD=$(value_of "$2") psql -qAtX -h 127.0.0.1 -p 6432 -U "$1" "${@:3}"; }
console() { runuser -u postgres -- psql -qAtX -h /var/run/postgresql -p 6432 -U pgbouncer -d pgbouncer "$@"; }
setting() { console -c 'show config' | awk -F '|' -v name="$1" '$1 == name { print $2 }'; }
old() { grep "^$1 = " "$h/pgbouncer.ini.old" | cut -d = -f 2 | cut -c 2-; }
expect_eq lending "$(pool lending_app LENDING_PASSWORD -d lending -c 'select count(*) from loans')" \
    "$(sql -d lending -c 'select count(*) from loans')" int
expect_eq report "$(pool lending_report REPORT_PASSWORD -d lending -c 'select count(*) from reporting.open_loans')" \
    "$(sql -d lending -c 'select count(*) from reporting.open_loans')" int
expect_eq billing "$(pool billing_app BILLING_PASSWORD -d billing -c 'select sum(receipt_no) from receipts')" \
    "$(sql -d billing -c 'select sum(receipt_no) from receipts')" int
expect_fail closed 'pg_hba.conf|no such user|auth' -- pool lending_app LENDING_PASSWORD -d billing -c 'select 1'
expect_fail wrong-password 'authentication failed' -- env PGPASSWORD=fermata \
    psql -X -h 127.0.0.1 -p 6432 -U lending_app -d lending -c 'select 1'
for name in max_client_conn default_pool_size server_lifetime server_idle_timeout ignore_startup_parameters; do
    expect_eq "$name" "$(setting $name)" "$(old $name)"
done
pooling() { console -c 'show pools' | awk -F '|' -v database="$1" -v user="$2" '$1 == database && $2 == user { print $NF }'; }
expect_out pooling-lending '^transaction$' -- pooling lending lending_app
expect_out pooling-billing '^transaction$' -- pooling billing billing_app
expect_eq authentication "$(setting auth_type)" scram-sha-256
expect_eq known "$(cut -d '"' -f 2 /etc/pgbouncer/userlist.txt)" pgb_lookup set
expect_out lookup '^f.f.t$' -- sql -c \
    "select rolsuper, pg_has_role('pgb_lookup', 'pg_read_all_data', 'member'), rolcanlogin from pg_roles where rolname = 'pgb_lookup'"
expect_out no-secrets-itself '^f$' -- sql -d lending -c "select has_table_privilege('pgb_lookup', 'pg_catalog.pg_authid', 'select')
    or has_table_privilege('pgb_lookup', 'pg_catalog.pg_shadow', 'select')"
executable() { # ROLE
    sql -d "$2" -c "select count(*) from pg_proc p join pg_roles r on r.oid = p.proowner
        where r.rolsuper and prosecdef and pronamespace <> 'pg_catalog'::regnamespace
        and has_function_privilege('$1', p.oid, 'execute')"
}
for database in lending billing; do
    expect_eq "nobody-else-$database" "$(executable lending_report $database)" "$(sql -c 'select 0')" int
done
no_secret() { ! grep -rqF -e "$(value_of LENDING_PASSWORD)" -e "$(value_of REPORT_PASSWORD)" \
    -e "$(value_of BILLING_PASSWORD)" /etc/pgbouncer; }
expect_ok no-password-in-files -- no_secret
