set -u
readings=/srv/plant/readings.txt
server=http://127.0.0.1:9090
ask() { curl -fsS -G "$server/api/v1/$1" "${@:2}"; }
# The samples of a selector at a time, as lines of labels, time and value: SELECTOR SECOND
samples() {
    ask query --data-urlencode "query=$1" --data-urlencode "time=$2" |
        jq -r '.data.result[] | (.metric.station // "-") as $s | .values[]? | "\($s) \(.[0]) \(.[1])"'
}
value() { ask query --data-urlencode "query=$1" --data-urlencode "time=$2" | jq -r '.data.result[].value[1]'; }
status() { ask "status/$1" | jq -r ".data.$2"; }
last=$(awk '!/^#/ && $NF > now { now = $NF } END { print now / 1000 }' "$readings")
first=$(awk '!/^#/ && (now == "" || $NF < now) { now = $NF } END { print now / 1000 }' "$readings")
# The readings of one name as the export has them, in the same form.
exported() { awk -v name="$1" 'index($0, name "{") == 1 { split($1, part, "\""); print part[2], $3 / 1000, $2 + 0 }' "$readings" | sort | sha256sum; }
stored() { samples "$1[30d]" "$last" | awk '{ print $1, $2 + 0, $3 + 0 }' | sort | sha256sum; }
expect_port listening 127.0.0.1 9090
expect_ok ready -- ask status/runtimeinfo
for name in heat_supply_celsius heat_return_celsius heat_energy_kwh; do
    expect_eq "all-$name" "$(stored "$name")" "$(exported "$name")"
done
names() { ask series --data-urlencode 'match[]={station!=""}' --data-urlencode "start=$1" --data-urlencode "end=$2" | jq -r '.data[] | .__name__ + " " + (keys - ["__name__"] | join(","))' | sort -u; }
expect_eq names "$(names "$first" "$last" | cut -d ' ' -f 1)" 'heat_supply_celsius, heat_return_celsius, heat_energy_kwh' set
expect_eq labels "$(names "$first" "$last" | cut -d ' ' -f 2 | sort -u)" station
expect_no_out nothing-later '^heat' -- names "$((${last%.*} + 1))" 99999999999
newest() { find /srv/mon/data -mindepth 2 -name meta.json -exec jq -r '.maxTime / 1000 | floor' {} + | sort -n | tail -n 1; }
if (($(newest) <= $(date -d '+2 hours' +%s))); then pass blocks; else fail blocks "a block is later than now"; fi
# How long data are kept, in years of 365 days.
years() {
    status flags '"storage.tsdb.retention.time"' |
        awk '{ if ($0 == "0s" || $0 == "") { print 0; exit } while (match($0, /^[0-9]+(ms|[ywdhms])/)) { u = substr($0, RSTART, RLENGTH); $0 = substr($0, RLENGTH + 1); n = u + 0; sub(/[0-9]+/, "", u); t += n * (u == "y" ? 365 : u == "w" ? 7 : u == "d" ? 1 : u == "h" ? 1 / 24 : 0) } print int(t / 365) }'
}
if (($(years) >= 10)); then pass kept-long; else fail kept-long "data are kept for $(years) years only"; fi
expect_eq place "$(status flags '"storage.tsdb.path"' | sed 's#/$##')" /srv/mon/data
expect_eq configuration "$(status flags '"config.file"')" /srv/mon/prometheus.yml
targets() { ask targets | jq -r '.data.activeTargets[] | .labels.job + " " + .scrapeUrl'; }
for _ in {1..150}; do [[ -z $(targets) ]] || break; sleep 0.1; done
expect_out itself '^prometheus http://[^ ]*:9090/metrics$' -- targets
