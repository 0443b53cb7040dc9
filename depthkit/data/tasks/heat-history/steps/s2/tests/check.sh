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
rules() { ask rules | jq -r '.data.groups[].rules[] | .name + " " + .type + " " + .health'; }
alert() { ask rules | jq -r --arg n "$1" '.data.groups[].rules[] | select(.name == $n) | "\(.duration) \(.labels.severity)"'; }
file() { ask rules | jq -r '.data.groups[].file' | sort -u; }
for name in 'station:heat_spread:celsius' 'plant:heat_spread:celsius'; do
    expect_out "rule-${name%%:*}" "^$name recording (ok|unknown)" -- rules
done
for name in ReturnTooHot StationSilent; do expect_out "alert-$name" "^$name alerting (ok|unknown)" -- rules; done
expect_out hot '^120 ticket' -- alert ReturnTooHot # printed by prometheus: seconds
expect_out silent '^0 page' -- alert StationSilent
expect_eq file "$(file)" /srv/mon/heat.rules.yml
station=$(mktemp) plant=$(mktemp)
samples 'station:heat_spread:celsius[30d]' "$((${last%.*} + 900))" >"$station"
samples 'plant:heat_spread:celsius[30d]' "$((${last%.*} + 900))" >"$plant"
quarters=$(((${last%.*} - ${first%.*}) / 900))
# Values, except for missing readings.
for name in $(cut -d '"' -f 2 "$readings" | grep -v '^#' | sort -u); do
    found=$(grep -c "^$name " "$station")
    if ((found >= quarters * 95 / 100)); then pass "history-$name"; else fail "history-$name" "$found values for $quarters quarters"; fi
done
found=$(grep -c . "$plant")
if ((found >= quarters * 95 / 100)); then pass history-plant; else fail history-plant "$found values for $quarters quarters"; fi
# Some of them, compared with what the readings of that quarter give.
near() { awk -v a="$1" -v b="$2" 'BEGIN { print (a != "" && b != "" && (a - b) ^ 2 < 0.0001) ? "yes" : "no" }'; }
# 15 minutes reach back to the quarter before: with what it has or without, both are right.
spread() { echo "(last_over_time(heat_supply_celsius$2[$1]) - last_over_time(heat_return_celsius$2[$1]))"; }
# The first sample of the n-th interval: FILE NUMBER [STATION]
at() { awk -v t="$((${first%.*} + $2 * 900))" -v who="${3--}" '$1 == who && $2 >= t && $2 < t + 900 { print $2, $3; exit }' "$1"; }
wrong=0 seen=0 tried=0
for place in 20 97 180 251 333 404 470 555; do
    for name in - hospital lido school townhall; do
        file=$station tried=$((tried + 1))
        [[ $name != - ]] || file=$plant
        when='' what=''
        read -r when what < <(at "$file" "$place" "$name")
        [[ -n $what ]] || continue
        seen=$((seen + 1))
        same=no
        for span in 15m 14m; do
            wanted=$(value "$(spread $span "{station=\"$name\"}")" "$when")
            [[ $name != - ]] || wanted=$(value "avg($(spread $span ''))" "$when")
            [[ $(near "$what" "$wanted") != yes ]] || same=yes
        done
        [[ $same == yes ]] || wrong=$((wrong + 1))
    done
done
if ((seen * 4 >= tried * 3)); then pass found; else fail found "only $seen of the values looked for are there"; fi
expect_eq values "$wrong" 0 int
for name in heat_supply_celsius heat_return_celsius heat_energy_kwh; do
    expect_eq "kept-$name" "$(samples "$name[30d]" "$last" | grep -c .)" "$(grep -c "^$name{" "$readings")" int
done
retention() { status flags '"storage.tsdb.retention.time"'; }
expect_no_out still-long '^(15d|0s|[0-9]+h)$' -- retention
rm -f "$station" "$plant"
