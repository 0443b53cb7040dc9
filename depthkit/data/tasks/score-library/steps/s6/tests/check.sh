set -u
h=/srv/handover
export PGCONNECT_TIMEOUT=5
sql() { runuser -u postgres -- psql -qAtX -p "$@"; }
value_of() { grep "^$1=" "$h/app.env" | cut -d "'" -f 2 | cut -d = -f 2; }
as_role() { PGPASSWORD=$(value_of "$2") psql -qAtX -h 127.0.0.1 -U "$1" "${@:3}"; }
receipt() { sql "$1" -d billing -c "select receipt_no from public.receipts where note = '$2'"; }
rows_of() { # PORT DATABASE
    local table
    sql "$1" -d "$2" -c "select tablename from pg_tables where schemaname = 'public' order by 1" | while read -r table; do
        echo "$table: $(sql "$1" -d "$2" -c "select count(*), md5(string_agg(t::text, ',' order by t::text)) from public.$table t")"
    done
}
expect_out clusters-main '^15 +main +5432 +online,recovery' -- pg_lsclusters
expect_out clusters-standby '^15 +standby +5433 +online ' -- pg_lsclusters
expect_out synchronous '^streaming.(sync|quorum)$' -- sql 5433 -c \
    "select state, sync_state from pg_stat_replication where usename = 'replicator'"
for database in lending billing; do
    expect_eq "rows-$database" "$(rows_of 5432 $database)" "$(rows_of 5433 $database)" exact
done
expect_eq consecutive "$(receipt 5432 'with both')" "$(($(receipt 5433 'before the switch') + 2))" int
expect_out slot '^t$' -- sql 5433 -c "select active from pg_replication_slots where slot_name = 'main'"
for port in 5432 5433; do
    expect_eq "slots-unused-$port" "$(sql $port -c 'select count(*) from pg_replication_slots where not active')" \
        "$(sql $port -c 'select 0')" int
    expect_fail "closed-$port" 'pg_hba.conf' -- as_role lending_app LENDING_PASSWORD -p $port -d billing -c 'select 1'
done
expect_eq reports "$(as_role lending_report REPORT_PASSWORD -p 6432 -d lending_ro -c 'select inet_server_port()')" \
    "$(sql 5432 -c 'show port')" int
expect_eq leader "$(as_role billing_app BILLING_PASSWORD -p 6432 -d billing -c 'select inet_server_port()')" \
    "$(sql 5433 -c 'show port')" int
