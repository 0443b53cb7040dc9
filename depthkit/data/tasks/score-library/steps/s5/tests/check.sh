set -u
h=/srv/handover
export PGCONNECT_TIMEOUT=5 PGTZ=Europe/Berlin PGDATESTYLE='iso, dmy'
sql() { runuser -u postgres -- psql -qAtX -p "$@"; }
value_of() { grep "^$1=" "$h/app.env" | cut -d "'" -f 2 | cut -d = -f 2; }
as_role() { PGPASSWORD=$(value_of "$2") psql -qAtX -h 127.0.0.1 -U "$1" "${@:3}"; }
dumped() { awk -v start="COPY public.$1 " 'index($0, start) == 1 { on = 1; next } /^\\\.$/ { on = 0 } on' "$h/lending.sql" | sort; }
held() { sql 5433 -d lending -c "copy public.$1 to stdout" | sort; }
receipt() { sql 5433 -d billing -c "select receipt_no from public.receipts where note = '$1'"; }
expect_out leads '^f$' -- sql 5433 -c 'select pg_is_in_recovery()'
expect_fail main-stopped 'refused|no such file' -- runuser -u postgres -- psql -X -p 5432 -c 'select 1'
for table in loans members sessions works; do
    expect_eq "$table" "$(held $table)" "$(dumped $table)" exact
done
expect_eq before "$(receipt 'before the switch')" "$(($(receipt 'paid at the move') + 1))" int
expect_eq after "$(receipt 'after the switch')" "$(($(receipt 'before the switch') + 1))" int
port() { as_role "$1" "$2" -p 6432 -d "$3" -c 'select inet_server_port()'; }
server=$(sql 5433 -c 'show port')
expect_eq pool-lending "$(port lending_app LENDING_PASSWORD lending)" "$server" int
expect_eq pool-billing "$(port billing_app BILLING_PASSWORD billing)" "$server" int
expect_eq pool-reports "$(port lending_report REPORT_PASSWORD lending_ro)" "$server" int
expect_fail closed 'pg_hba.conf' -- as_role lending_app LENDING_PASSWORD -p 5433 -d billing -c 'select 1'
# The pool is older than the new server's leading.
promoted=$(stat -c %Y "$(sql 5433 -c 'show data_directory')"/pg_wal/*.history | sort -n | tail -n 1)
started=$(proc_start pgbouncer)
if [[ -n $promoted && -n $started ]] && ((${started%.*} <= promoted)); then pass pool-kept; else
    fail pool-kept "pgbouncer was started at '$started', the switch was at '$promoted'"
fi
