#!/bin/bash
set -euo pipefail
main=/etc/postgresql/15/main
data=/var/lib/postgresql/15/main
as_postgres() { runuser -u postgres -- psql -qAtX -v ON_ERROR_STOP=1 "$@"; }
console() { runuser -u postgres -- psql -qAtX -h /var/run/postgresql -p 6432 -U pgbouncer -d pgbouncer "$@"; }
value_of() { grep "^$1=" /srv/handover/app.env | cut -d "'" -f 2 | cut -d = -f 2; }

# main ended cleanly with everything shipped, so it can follow as it is.
as_postgres -p 5433 -c "select pg_create_physical_replication_slot('main')" >/dev/null
cat >"$main/conf.d/follow.conf" <<'END'
primary_conninfo = 'host=127.0.0.1 port=5433 user=replicator passfile=/var/lib/postgresql/.pgpass'
primary_slot_name = 'main'
END
runuser -u postgres -- touch "$data/standby.signal"
pg_ctlcluster 15 main start
for _ in {1..100}; do
    [ "$(as_postgres -p 5433 -c 'select count(*) from pg_stat_replication where replay_lsn = sent_lsn')" = 1 ] && break
    sleep 0.1
done
# key-step: begin
# main still has the slot of the standby that it fed, and would keep all WAL for it.
as_postgres -p 5432 -c "select pg_drop_replication_slot('standby')" >/dev/null
# Settings are copied neither by following nor by promoting: the leader must be told whom to wait for.
as_postgres -p 5433 -c "alter system set synchronous_standby_names = '\"15/main\"'" -c 'select pg_reload_conf()' >/dev/null
# key-step: end

sed -i '/^lending_ro/s/port=5433/port=5432/' /etc/pgbouncer/pgbouncer.ini
console -c reload
PGPASSWORD=$(value_of BILLING_PASSWORD) psql -qX -h 127.0.0.1 -p 6432 -U billing_app -d billing -c \
    "insert into receipts (member_id, amount, paid_on, note) values (58, 6, current_date, 'with both')"
