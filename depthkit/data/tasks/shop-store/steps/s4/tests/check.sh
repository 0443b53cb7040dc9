set -u
password_of() { awk -v who="$1" '$1 == who { print $2 }' /srv/shop/accounts.txt; }
port_of() { case $1 in a) echo 7001 ;; b) echo 7002 ;; c) echo 7003 ;; esac; }
as() { REDISCLI_AUTH=$(password_of "$1") redis-cli -e --user "$1" -p "$(port_of "$2")" "${@:3}" </dev/null; }
copy=$(mktemp -d)
declare -A served
# A copy of a node as its files would start it, without a port: NODE CONFIG…
serve() {
    mkdir "$copy/$1"
    tar -C "/srv/nodes/$1" -cf - . | tar -C "$copy/$1" -xf -
    redis-server "/srv/nodes/$1/redis.conf" --port 0 --unixsocket "$copy/$1/socket" --daemonize no \
        --logfile '' --dir "$copy/$1" --pidfile "$copy/$1/pid" "${@:2}" \
        >"$copy/$1/log" 2>&1 </dev/null &
    served[$1]=$!
    for _ in {1..200}; do [[ -z $(again "$1" ping) ]] || break; sleep 0.1; done
}
# Ends a server of the check's own, whether it lets anybody in or not.
end() { kill -KILL "${served[$1]}" 2>/dev/null && wait "${served[$1]}" 2>/dev/null; }
again() { REDISCLI_AUTH=$(password_of admin) redis-cli --user admin -s "$copy/$1/socket" "${@:2}" </dev/null 2>/dev/null; }
old() { redis-cli -s "$copy/old/socket" "$@" </dev/null 2>/dev/null; }
info() { as admin "$1" info | tr -d '\r' | sed -n "s/^$2://p"; }
ask() { redis-cli -p "$1" sentinel "${@:2}" </dev/null; }
value() { ask "$1" "$2" shop | awk -v name="$3" 'found { print; exit } $0 == name { found = 1 }'; }
priority() { ask "$1" replicas shop | awk -v p="$2" '$0 == "port" { getline; now = $0 } $0 == "slave-priority" { getline; if (now == p) print }'; }
mkdir "$copy/old"
cat /srv/shop/dump.rdb >"$copy/old/dump.rdb"
redis-server --port 0 --unixsocket "$copy/old/socket" --dir "$copy/old" >"$copy/old/log" 2>&1 </dev/null &
served[old]=$!
for _ in {1..200}; do [[ -z $(old ping) ]] || break; sleep 0.1; done
pieces=$(($(old hget stock art-1001) - 3))

expect_port listening-a 127.0.0.1 7001
expect_port listening-c 127.0.0.1 7003
expect_port listening-s1 127.0.0.1 26001
expect_port listening-s2 127.0.0.1 26002
expect_port listening-s3 127.0.0.1 26003
for port in 26001 26002 26003; do
    expect_out "primary-$port" '^7003$' -- ask "$port" get-master-addr-by-name shop
    # printed by redis-sentinel
    expect_out "quorum-$port" '^OK 3 usable' -- ask "$port" ckquorum shop
    expect_eq "never-b-$port" "$(priority "$port" 7002)" 0 int
    expect_eq "replicas-$port" "$(ask "$port" replicas shop | grep -A 1 -x port | grep '^70')" "7001, 7002" set
    expect_no_out "links-$port" 's_down|disconnected' -- ask "$port" replicas shop
done
# Sentinel counts its failovers in the epoch of the configuration.
if (($(value 26001 master config-epoch) > 0)); then pass failover; else fail failover "Sentinel made none"; fi
if (($(info a uptime_in_seconds) < $(info c uptime_in_seconds))); then
    pass restarted
else
    fail restarted "a was not started later than c"
fi
expect_out role '^role:master' -- as admin c info replication
for node in a b; do
    expect_out "role-$node" '^role:slave' -- as admin "$node" info replication
    expect_eq "follows-$node" "$(info "$node" master_port)" 7003 int
    expect_eq "link-$node" "$(info "$node" master_link_status)" up
    # printed by redis-server
    expect_eq "kept-follows-$node" "$(awk '$1 ~ /^(replicaof|slaveof)$/ { port = $3 } END { print port }' "/srv/nodes/$node/redis.conf")" 7003 int
    serve "$node" --replicaof no one
    expect_eq "kept-account-$node" "$(again "$node" config get masteruser | tail -n 1)" repl
    expect_eq "kept-password-$node" "$(again "$node" config get masterauth | tail -n 1)" "$(password_of repl)" exact
    end "$node"
done
expect_eq never-b "$(as admin b config get replica-priority | tail -n 1)" 0 int
expect_eq "keys-c" "$(as admin c dbsize)" "$(as admin b dbsize)" int
for node in a b c; do
    expect_eq "reserved-$node" "$(as app "$node" hget stock art-1001)" "$pieces" int
    expect_eq "note-$node" "$(as app "$node" get note:drill)" "answered by c"
    expect_fail "nobody-$node" NOAUTH -- redis-cli -e -p "$(port_of "$node")" ping
done
end old
rm -rf "$copy"
