#!/bin/bash
set -euo pipefail
etc=/etc/postgresql/15/main
as_postgres() { runuser -u postgres -- psql -qAtX -v ON_ERROR_STOP=1 "$@"; }
secret=$(od -An -tx1 -N 16 /dev/urandom | tr -d ' \n')

# Whom the pool looks up passwords as.
as_postgres -c "create role pgb_lookup login password '$secret'"
lookup() { # DATABASE
    as_postgres -d "$1" <<'END'
create schema pool_lookup;
create function pool_lookup.secret(name text) returns table (usename name, passwd text)
    language sql stable security definer set search_path = pg_catalog
    as $$ select rolname, rolpassword from pg_authid
          where rolname = name and rolcanlogin and not rolsuper $$;
revoke all on function pool_lookup.secret(text) from public;
grant usage on schema pool_lookup to pgb_lookup;
grant execute on function pool_lookup.secret(text) to pgb_lookup;
END
}
lookup lending
# key-step: begin
# This release asks in the database that the client wants, so each needs the function and lets the role in.
lookup billing
sed -i 's/^host *billing *all /host    billing         pgb_lookup      127.0.0.1\/32            scram-sha-256\n&/' "$etc/pg_hba.conf"
pg_ctlcluster 15 main reload
# key-step: end

echo "\"pgb_lookup\" \"$secret\"" >/etc/pgbouncer/userlist.txt
cat >/etc/pgbouncer/pgbouncer.ini <<'END'
[databases]
lending = host=127.0.0.1 port=5432 dbname=lending
billing = host=127.0.0.1 port=5432 dbname=billing

[pgbouncer]
logfile = /var/log/postgresql/pgbouncer.log
pidfile = /var/run/postgresql/pgbouncer.pid
listen_addr = 127.0.0.1
listen_port = 6432
unix_socket_dir = /var/run/postgresql
auth_type = scram-sha-256
auth_file = /etc/pgbouncer/userlist.txt
auth_user = pgb_lookup
auth_query = select usename, passwd from pool_lookup.secret($1)
pool_mode = transaction
max_client_conn = 400
default_pool_size = 8
server_lifetime = 86400
server_idle_timeout = 86400
ignore_startup_parameters = extra_float_digits
END
chown postgres:postgres /etc/pgbouncer/*
chmod 640 /etc/pgbouncer/*
runuser -u postgres -- pgbouncer -q -d /etc/pgbouncer/pgbouncer.ini
for _ in {1..50}; do (: <>/dev/tcp/127.0.0.1/6432) 2>/dev/null && break; sleep 0.1; done
