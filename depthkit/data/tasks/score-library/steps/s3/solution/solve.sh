#!/bin/bash
set -euo pipefail
as_postgres() { runuser -u postgres -- psql -qAtX -v ON_ERROR_STOP=1 "$@"; }
console() { runuser -u postgres -- psql -qAtX -h /var/run/postgresql -p 6432 -U pgbouncer -d pgbouncer "$@"; }

as_postgres <<'END'
alter role lending_report set default_transaction_read_only = on;
alter role lending_report set statement_timeout = '5s';
alter role lending_report in database lending set search_path = reporting;
alter role billing_app in database billing set datestyle = 'German';
alter role lending_app in database lending set idle_in_transaction_session_timeout = '60s';
END
# key-step: begin
# The pool resets a server connection between clients in session mode alone.
cat >>/etc/pgbouncer/pgbouncer.ini <<'END'
server_reset_query = DISCARD ALL
server_reset_query_always = 1
END
# key-step: end
console -c reload
# key-step: begin
# Settings of roles are for new sessions, and the pool keeps those it has for a day.
console -c reconnect
# key-step: end
