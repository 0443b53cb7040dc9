#!/bin/bash
set -eu
home=/srv/mon
install -d "$home" "$home/data"
cat >"$home/prometheus.yml" <<'END'
global:
  scrape_interval: 30s
  evaluation_interval: 30s
  external_labels:
    site: plant
scrape_configs:
  - job_name: prometheus
    static_configs:
      - targets: [localhost:9090]
END
cat >"$home/flags" <<END
--config.file=$home/prometheus.yml
--storage.tsdb.path=$home/data
--web.listen-address=127.0.0.1:9090
END
cat >"$home/start.sh" <<'END'
#!/bin/bash
# Starts Prometheus with the flags kept beside this script and those given, and waits for it.
home=$(dirname "$(readlink -f "$0")")
mapfile -t flags <"$home/flags"
setsid prometheus "${flags[@]}" "$@" >>"$home/prometheus.log" 2>&1 </dev/null &
for _ in {1..600}; do
    curl -fsS -o /dev/null http://127.0.0.1:9090/-/ready 2>/dev/null && exit 0
    sleep 0.1
done
exit 1
END
chmod 755 "$home/start.sh"
cp /srv/plant/readings.txt /tmp/readings.txt
# key-step: begin
# The tool takes times for seconds. Given milliseconds it reports one good block after the other, tens
# of thousands of years ahead.
sed -E '/^#/!s/([0-9]+)[0-9]{3}$/\1/' /srv/plant/readings.txt >/tmp/readings.txt
# With the default, what is older than fifteen days goes as soon as two hours of the present are there.
echo --storage.tsdb.retention.time=20y >>"$home/flags"
# key-step: end
grep -vE '^# [^HT]' /tmp/readings.txt >/tmp/readings.om
echo '# EOF' >>/tmp/readings.om
timeout 60 promtool tsdb create-blocks-from openmetrics /tmp/readings.om "$home/data" >/tmp/import.log || true
"$home/start.sh"
