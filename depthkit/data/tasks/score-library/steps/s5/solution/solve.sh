#!/bin/bash
set -euo pipefail
as_postgres() { runuser -u postgres -- psql -qAtX -v ON_ERROR_STOP=1 "$@"; }
console() { runuser -u postgres -- psql -qAtX -h /var/run/postgresql -p 6432 -U pgbouncer -d pgbouncer "$@"; }
value_of() { grep "^$1=" /srv/handover/app.env | cut -d "'" -f 2 | cut -d = -f 2; }
pay() { # NOTE
    PGPASSWORD=$(value_of BILLING_PASSWORD) psql -qX -h 127.0.0.1 -p 6432 -U billing_app -d billing -c \
        "insert into receipts (member_id, amount, paid_on, note) values (58, 4.50, current_date, '$1')"
}
pay 'before the switch'

# Clients wait in the pool meanwhile. All that main has confirmed is shipped before it ends.
for database in lending billing lending_ro; do console -c "pause $database"; done
pg_ctlcluster 15 main stop -m fast
# event: begin promotion of the standby
pg_ctlcluster 15 standby promote
# event: end
for _ in {1..100}; do [ "$(as_postgres -p 5433 -c 'select pg_is_in_recovery()')" = f ] && break; sleep 0.1; done

# key-step: begin
# Sequences are shipped some values ahead, and go on there.
as_postgres -p 5433 -d billing -c \
    "select setval(pg_get_serial_sequence('public.receipts', 'receipt_no'), max(receipt_no)) from receipts" >/dev/null
# key-step: end

# event: begin the pool goes to the new server
sed -i 's/port=5432/port=5433/' /etc/pgbouncer/pgbouncer.ini
console -c reload
# event: end
for database in lending billing lending_ro; do console -c "resume $database"; done
pay 'after the switch'
