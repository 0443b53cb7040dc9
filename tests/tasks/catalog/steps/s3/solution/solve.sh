#!/bin/bash
set -eu
start_redis() {
    redis-server --port 6390 --bind 127.0.0.1 --dir /srv/data --appendonly yes \
        --daemonize yes --logfile /srv/data/redis.log >/dev/null
    for _ in {1..100}; do redis-cli -p 6390 ping 2>/dev/null | grep -q PONG && break; sleep 0.1; done
}
db() { redis-cli -p 6390 "$@" </dev/null; }
publish() {
    local sku cents total=0 all=''
    for sku in $(db smembers items | sort); do
        cents=$(db hget "item:$sku" cents)
        total=$((total + cents))
        all+="${all:+, }\"$sku\": $cents"
    done
    printf '{"items": %s, "total_cents": %s, "cents": {%s}}\n' "$(db scard items)" "$total" "$all" \
        >/srv/site/catalog.json
}
cp /srv/in/update.csv /tmp/update.csv
# key-step: begin
# The file is in UTF-16.
iconv -f UTF-16 -t UTF-8 /srv/in/update.csv | tr -d '\r' >/tmp/update.csv
# key-step: end
while IFS=';' read -r sku cents; do
    [ "$sku" != sku ] || continue
    db hset "item:$sku" cents "$cents"
done < <(tr -d '\000' </tmp/update.csv)
publish
sed -i 's/8088/8090/' /etc/nginx/nginx.conf
nginx -s reload
for _ in {1..100}; do curl -fsS -o /dev/null http://127.0.0.1:8090/catalog.json && break; sleep 0.1; done
sleep 0.1
# event: begin restart of the database
redis-cli -p 6390 shutdown save || true
for _ in {1..100}; do pgrep -x redis-server >/dev/null || break; sleep 0.1; done
start_redis
# event: end
