set -u
h=/srv/handover
export PGCONNECT_TIMEOUT=5
value_of() { grep "^$1=" "$h/app.env" | cut -d "'" -f 2 | cut -d = -f 2; }
pool() { PGPASSWORD=$(value_of "$2") psql -qAtX -h 127.0.0.1 -p 6432 -U "$1" "${@:3}"; }
reporting() { pool lending_report REPORT_PASSWORD -d lending "$@"; }
billing() { pool billing_app BILLING_PASSWORD -d billing "$@"; }
lending() { pool lending_app LENDING_PASSWORD -d lending "$@"; }
sql() { runuser -u postgres -- psql -qAtX -p 5432 "$@"; }
expect_out report-timeout '^5s$' -- reporting -c 'show statement_timeout'
expect_eq report-schema "$(reporting -c 'select count(*) from open_loans')" \
    "$(sql -d lending -c 'select count(*) from reporting.open_loans')" int
expect_fail report-reads-only 'read-only transaction' -- reporting -c 'create temporary table x as select 1'
expect_out lending-idle '^1min$' -- lending -c 'show idle_in_transaction_session_timeout'
expect_eq billing-dates "$(billing -c 'select max(paid_on) from receipts')" \
    "$(sql -d billing -c "select to_char(max(paid_on), 'DD.MM.YYYY') from receipts")"
# What a client sets is gone with it.
reporting -c "set statement_timeout = '77s'" -c 'set search_path = public' -c 'set default_transaction_read_only = off'
expect_out timeout-stays '^5s$' -- reporting -c 'show statement_timeout'
expect_out schema-stays '^reporting$' -- reporting -c 'show search_path'
expect_out reading-stays '^on$' -- reporting -c 'show default_transaction_read_only'
lending -c "prepare left_over as select 1" -c "set application_name = 'left'"
expect_eq nothing-prepared "$(lending -c 'select count(*) from pg_prepared_statements')" "$(sql -c 'select 0')" int
lending -c "select pg_advisory_lock(1904)" >/dev/null
expect_eq no-lock-left "$(sql -c "select count(*) from pg_locks where locktype = 'advisory'")" "$(sql -c 'select 0')" int
