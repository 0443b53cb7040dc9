set -u
h=/srv/handover
export PGTZ=Europe/Berlin PGDATESTYLE='iso, dmy' PGCONNECT_TIMEOUT=5
sql() { runuser -u postgres -- psql -qAtX -p 5432 "$@"; }
value_of() { grep "^$1=" "$h/app.env" | cut -d "'" -f 2 | cut -d = -f 2; }
login() { PGPASSWORD=$(value_of "$2") psql -qAtX -h 127.0.0.1 -p 5432 -U "$1" "${@:3}"; }
dumped() { # TABLE DUMP
    awk -v start="COPY public.$1 " 'index($0, start) == 1 { on = 1; next } /^\\\.$/ { on = 0 } on' "$h/$2.sql" | sort
}
columns() { grep -m 1 "^COPY public.$1 " "$h/$2.sql" | cut -d '(' -f 2 | cut -d ')' -f 1; }
held() { # TABLE DUMP [COLUMN]
    sql -d "$2" -c "copy (select ${3:+$3, }$(columns "$1" "$2") from public.$1) to stdout" | sort
}
old() { grep "^$1 = " "$h/postgresql.conf.old" | cut -d = -f 2 | tr -d "'" | cut -c 2-; }
for table in loans members sessions works; do
    expect_eq "lending-$table" "$(held $table lending)" "$(dumped $table lending)" exact
done
expect_eq billing-tariffs "$(held tariffs billing)" "$(dumped tariffs billing)" exact
expect_eq billing-receipts "$(held receipts billing receipt_no | grep -v 'paid at the move')" "$(dumped receipts billing)" exact
moved=$(sql -d billing -c "select receipt_no from public.receipts where note = 'paid at the move'")
expect_eq next-receipt "$moved" "$(($(dumped receipts billing | cut -f 1 | sort -n | tail -n 1) + 1))" int
expect_eq open-loans \
    "$(login lending_report REPORT_PASSWORD -d lending -c 'select name, cardinality(titles) from reporting.open_loans order by 1')" \
    "$(sql -d lending -c 'select name, count(*) from loans join members using (member_id) where returned is null group by 1 order by 1')"
expect_out report-reads-only 'permission denied' -- login lending_report REPORT_PASSWORD -d lending -c 'select * from public.loans'
expect_out lending-login '^lending_app$' -- login lending_app LENDING_PASSWORD -d lending -c 'select current_user'
expect_out billing-login '^billing_app$' -- login billing_app BILLING_PASSWORD -d billing -c 'select current_user'
expect_fail billing-closed 'pg_hba.conf' -- login lending_app LENDING_PASSWORD -d billing -c 'select 1'
expect_eq no-md5 "$(sql -c "select count(*) from pg_authid where rolpassword like 'md5%'")" "$(sql -c 'select 0')" int
expect_eq roles-with-password \
    "$(sql -c "select rolname from pg_authid where rolpassword is not null and rolname ~ '^(lending|billing)'")" \
    "$(grep -o '^CREATE ROLE [a-z_]*' $h/globals.sql | cut -d ' ' -f 3 | grep -v postgres)" set
expect_eq owners "$(sql -d lending -c "select distinct tableowner from pg_tables where schemaname = 'public'")" lending_app
expect_eq stock-days "$(sql -d lending -c 'select count(distinct work_id) from public.stock_days')" \
    "$(sql -d lending -c 'select count(*) from public.works')" int
expect_out may-create '^t$' -- sql -d lending -c "select has_schema_privilege('lending_app', 'public', 'create')"
for name in max_connections max_prepared_transactions log_min_duration_statement log_connections; do
    expect_eq "$name" "$(sql -c "show $name")" "$(old $name)"
done
expect_eq time-zone "$(sql -c "select reset_val from pg_settings where name = 'TimeZone'")" "$(old timezone)"
expect_eq date-style "$(sql -c "select reset_val from pg_settings where name = 'DateStyle'")" "$(old datestyle)"
expect_eq wal-kept "$(sql -c "select pg_size_bytes(current_setting('wal_keep_size')) / pg_size_bytes(current_setting('wal_segment_size'))")" \
    "$(old wal_keep_segments)" int
