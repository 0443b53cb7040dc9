#!/bin/bash
set -euo pipefail
main=/etc/postgresql/15/main
standby=/etc/postgresql/15/standby
as_postgres() { runuser -u postgres -- psql -qAtX -v ON_ERROR_STOP=1 "$@"; }
console() { runuser -u postgres -- psql -qAtX -h /var/run/postgresql -p 6432 -U pgbouncer -d pgbouncer "$@"; }
secret=$(od -An -tx1 -N 16 /dev/urandom | tr -d ' \n')

# key-step: begin
# What is unlogged is not shipped: the standby would have the table, and refuse to read it.
as_postgres -d lending -c 'alter table sessions set logged'
# key-step: end
as_postgres -c "create role replicator login replication password '$secret'" \
    -c "select pg_create_physical_replication_slot('standby')" >/dev/null
echo 'host    replication     replicator      127.0.0.1/32            scram-sha-256' >>"$main/pg_hba.conf"
pg_ctlcluster 15 main reload

pg_createcluster 15 standby -p 5433 >/dev/null
data=/var/lib/postgresql/15/standby
rm -rf "$data"
echo "127.0.0.1:*:*:replicator:$secret" >/var/lib/postgresql/.pgpass
chown postgres:postgres /var/lib/postgresql/.pgpass
chmod 600 /var/lib/postgresql/.pgpass
(cd / && runuser -u postgres -- pg_basebackup -h 127.0.0.1 -p 5432 -U replicator -D "$data" -R -S standby -c fast)
# Debian keeps a cluster's configuration outside its data.
cp -p "$main/pg_hba.conf" "$standby/pg_hba.conf"
cp -p "$main/conf.d/db1.conf" "$standby/conf.d/db1.conf"
pg_ctlcluster 15 standby start

# key-step: begin
# A cluster that Debian makes calls itself by version and name, and so does its receiver.
as_postgres -c "alter system set synchronous_standby_names = '\"15/standby\"'" -c 'select pg_reload_conf()' >/dev/null
# key-step: end

sed -i 's/^billing = .*/&\nlending_ro = host=127.0.0.1 port=5433 dbname=lending/' /etc/pgbouncer/pgbouncer.ini
console -c reload
for _ in {1..100}; do
    [ "$(as_postgres -c 'select count(*) from pg_stat_replication where replay_lsn = sent_lsn')" = 1 ] && break
    sleep 0.1
done
