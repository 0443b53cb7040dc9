#!/bin/bash
set -eu
home=/srv/mon
url=http://127.0.0.1:9090
await() { for _ in {1..300}; do "$@" && return; sleep 0.1; done; return 1; }
gone() { ! pgrep -x prometheus >/dev/null; }
restart() { pkill -x prometheus && await gone && "$home/start.sh" "$@"; }
from=$(date -u -d '2024-01-17 07:30:00' +%s)
to=$(date -u -d '2024-01-18 19:15:00' +%s)
remove() { # SELECTOR FROM TO
    curl -fsS -G -X POST "$url/api/v1/admin/tsdb/delete_series" --data-urlencode "match[]=$1" \
        --data-urlencode "start=$2" --data-urlencode "end=$3"
}
clean() { curl -fsS -X POST "$url/api/v1/admin/tsdb/clean_tombstones"; }
sed -n '/^  - name: heat-alerts/q;p' "$home/heat.rules.yml" >/tmp/records.yml
restart --web.enable-admin-api
remove 'heat_return_celsius{station="lido"}' "$from" "$to"
# key-step: begin
# Recorded series do not follow. They go as well, and the mean of the plant is made again.
remove 'station:heat_spread:celsius{station="lido"}' "$from" "$((to + 899))"
remove 'plant:heat_spread:celsius' "$from" "$((to + 899))"
# key-step: end
# Removed values are only marked until they are cleaned out of their blocks.
clean
rm -rf /tmp/history
promtool tsdb create-blocks-from rules --url "$url" --start "$from" --end "$((to + 899))" \
    --eval-interval 15m --output-dir /tmp/history /tmp/records.yml >/tmp/history.log 2>&1
find /tmp/history -mindepth 1 -maxdepth 1 -type d -exec mv -t "$home/data" {} +
restart
