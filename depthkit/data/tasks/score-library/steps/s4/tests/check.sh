set -u
h=/srv/handover
export PGCONNECT_TIMEOUT=5 PGTZ=Europe/Berlin
sql() { runuser -u postgres -- psql -qAtX -p "$@"; }
value_of() { grep "^$1=" "$h/app.env" | cut -d "'" -f 2 | cut -d = -f 2; }
as_role() { PGPASSWORD=$(value_of "$2") psql -qAtX -h 127.0.0.1 -U "$1" "${@:3}"; }
reporting() { as_role lending_report REPORT_PASSWORD -p 6432 -d lending_ro "$@"; }
old() { grep "^$1 = " "$h/postgresql.conf.old" | cut -d = -f 2 | tr -d "'" | cut -c 2-; }
rows_of() { # PORT DATABASE: rows of each table
    local table
    sql "$1" -d "$2" -c "select tablename from pg_tables where schemaname = 'public' order by 1" | while read -r table; do
        echo "$table: $(sql "$1" -d "$2" -c "select count(*), md5(string_agg(t::text, ',' order by t::text)) from public.$table t")"
    done
}
for database in lending billing; do
    expect_eq "rows-$database" "$(rows_of 5433 $database)" "$(rows_of 5432 $database)" exact
done
expect_out follows '^t$' -- sql 5433 -c 'select pg_is_in_recovery()'
expect_out synchronous '^streaming.(sync|quorum)$' -- sql 5432 -c \
    "select state, sync_state from pg_stat_replication where usename = 'replicator'"
expect_out slot '^t$' -- sql 5432 -c "select active from pg_replication_slots where slot_name = 'standby'"
expect_out clusters '^15 +standby +5433 +online,recovery' -- pg_lsclusters
expect_out replicator '^f.t$' -- sql 5432 -c "select rolsuper, rolreplication from pg_roles where rolname = 'replicator'"
expect_fail closed 'pg_hba.conf' -- as_role lending_app LENDING_PASSWORD -p 5433 -d billing -c 'select 1'
for name in max_connections log_min_duration_statement log_connections; do
    expect_eq "$name" "$(sql 5433 -c "show $name")" "$(old $name)"
done
expect_eq time-zone "$(sql 5433 -c "select reset_val from pg_settings where name = 'TimeZone'")" "$(old timezone)"
expect_eq reports-port "$(reporting -c 'select inet_server_port()')" "$(sql 5433 -c 'show port')" int
expect_eq reports "$(reporting -c 'select count(*) from open_loans')" \
    "$(sql 5432 -d lending -c 'select count(*) from reporting.open_loans')" int
reporting -c "set statement_timeout = '77s'"
expect_out timeout-stays '^5s$' -- reporting -c 'show statement_timeout'
