#!/bin/bash
start_redis() {
    redis-server --port 6390 --bind 127.0.0.1 --dir /srv/data --appendonly yes \
        --daemonize yes --logfile /srv/data/redis.log >/dev/null
    for _ in {1..100}; do redis-cli -p 6390 ping 2>/dev/null | grep -q PONG && break; sleep 0.1; done
}
set -eu
mkdir -p /srv/reports
start_redis
cp /srv/in/catalog.csv /tmp/catalog.csv
# key-step: begin
# The file comes from Windows: each price would end in a carriage return.
tr -d '\r' </srv/in/catalog.csv >/tmp/catalog.csv
# key-step: end
while IFS=, read -r sku name cents; do
    [ "$sku" != sku ] || continue
    redis-cli -p 6390 hset "item:$sku" name "$name" cents "$cents" </dev/null
    redis-cli -p 6390 sadd items "$sku" </dev/null
done </tmp/catalog.csv
awk -F, 'NR > 1 { n++; sum += $3 } END { print "items: " n; print "total_cents: " sum }' \
    /tmp/catalog.csv >/srv/reports/load.txt
