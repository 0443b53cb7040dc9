set -u
password=$(awk '$1 == "requirepass" { print $2 }' /srv/shop/redis.conf)
db() { REDISCLI_AUTH=$password redis-cli -p 7001 "$@" </dev/null; }
copy=$(mktemp -d)
declare -A served
# A server of the check's own, without a port: DIR CONFIG… ; it answers on DIR/socket.
serve() {
    redis-server "${@:2}" --port 0 --unixsocket "$1/socket" --daemonize no --logfile '' --dir "$1" \
        --pidfile "$1/pid" >"$1/log" 2>&1 </dev/null &
    served[$1]=$!
    for _ in {1..200}; do ask "$1" ping 2>/dev/null | grep -q PONG && break; sleep 0.1; done
}
ask() { REDISCLI_AUTH=$password redis-cli -s "$1/socket" "${@:2}" </dev/null 2>/dev/null; }
# Ends a server of the check's own, whether it lets anybody in or not.
end() { kill -KILL "${served[$1]}" 2>/dev/null && wait "${served[$1]}" 2>/dev/null; }
number() { "$@" info keyspace | tr -d '\r' | sed -n 's/^db0:keys=\([0-9]*\),.*/\1/p'; }
lasting() { "$@" info keyspace | tr -d '\r' | sed -n 's/^db0:.*expires=\([0-9]*\),.*/\1/p'; }
mkdir "$copy/dump" "$copy/node"
cat /srv/shop/dump.rdb >"$copy/dump/dump.rdb"
serve "$copy/dump" --requirepass "$password"
old() { ask "$copy/dump" "$@"; }
tar -C /srv/nodes/a -cf - . | tar -C "$copy/node" -xf -
serve "$copy/node" /srv/nodes/a/redis.conf
again() { ask "$copy/node" "$@"; }

expect_port listening 127.0.0.1 7001
expect_out answers '^PONG$' -- db ping
expect_fail password NOAUTH -- redis-cli -e -p 7001 dbsize
expect_eq keys "$(number db)" "$(number old)" int
expect_eq expiries "$(lasting db)" "$(lasting old)" int
expect_eq stock "$(db hgetall stock | sort)" "$(old hgetall stock | sort)"
expect_eq orders "$(db xrange orders - +)" "$(old xrange orders - +)"
expect_eq group "$(db xinfo groups orders | sed -n 2p)" picking
expect_eq function "$(db function list | grep -A 1 library_name | tail -n 1)" "$(old function list | grep -A 1 library_name | tail -n 1)"
for key in $(old --scan --pattern 'remember:*' | sort | head -n 5); do
    expect_eq "expires-${key#*:}" "$(db expiretime "$key")" "$(old expiretime "$key")" int
done
for name in maxmemory maxmemory-policy; do
    expect_eq "$name" "$(db config get "$name" | tail -n 1)" \
        "$(old config set "$name" "$(awk -v n="$name" '$1 == n { print $2 }' /srv/shop/redis.conf)" >/dev/null; old config get "$name" | tail -n 1)"
done
expect_out append-only '^yes$' -- db config get appendonly
expect_eq folder "$(db config get dir | tail -n 1)" /srv/nodes/a
expect_out kept-append-only '^yes$' -- again config get appendonly
expect_eq kept-keys "$(number again)" "$(number old)" int
expect_eq kept-stock "$(again hgetall stock | sort)" "$(old hgetall stock | sort)"
expect_out kept-source 'aof_enabled:1' -- again info persistence
end "$copy/dump"
end "$copy/node"
rm -rf "$copy"
