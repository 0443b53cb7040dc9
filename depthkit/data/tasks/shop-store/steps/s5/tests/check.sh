set -u
password_of() { awk -v who="$1" '$1 == who { print $2 }' /srv/shop/accounts.txt; }
port_of() { case $1 in a) echo 7001 ;; b) echo 7002 ;; c) echo 7003 ;; r) echo 7010 ;; esac; }
as() { REDISCLI_AUTH=$(password_of "$1") redis-cli -e --user "$1" -p "$(port_of "$2")" "${@:3}" </dev/null; }
copy=$(mktemp -d)
declare -A served
serve() { # COPY CONFIG…
    redis-server "${@:2}" --port 0 --unixsocket "$copy/$1/socket" --daemonize no --logfile '' \
        --dir "$copy/$1" --pidfile "$copy/$1/pid" --replicaof no one >"$copy/$1/log" 2>&1 </dev/null &
    served[$1]=$!
    for _ in {1..200}; do [[ -z $(again "$1" ping) ]] || break; sleep 0.1; done
}
# Ends a server of the check's own, whether it lets anybody in or not.
end() { kill -KILL "${served[$1]}" 2>/dev/null && wait "${served[$1]}" 2>/dev/null; }
again() { REDISCLI_AUTH=$(password_of admin) redis-cli --user admin -s "$copy/$1/socket" "${@:2}" </dev/null 2>/dev/null; }
old() { redis-cli -s "$copy/old/socket" "$@" </dev/null 2>/dev/null; }
info() { as admin "$1" info | tr -d '\r' | sed -n "s/^$2://p"; }
# All carts of a server, as text.
carts() { "$@" eval 'local all = {} for _, key in ipairs(redis.call("KEYS", "cart:*")) do
    local flat = redis.call("HGETALL", key) table.sort(flat) all[#all + 1] = key .. "=" .. table.concat(flat, "/") end
    table.sort(all) return all' 0; }
marked() { "$@" xrange orders - + | grep -c -x drill; }
mkdir "$copy/old"
cat /srv/shop/dump.rdb >"$copy/old/dump.rdb"
redis-server --port 0 --unixsocket "$copy/old/socket" --dir "$copy/old" >"$copy/old/log" 2>&1 </dev/null &
served[old]=$!
for _ in {1..200}; do [[ -z $(old ping) ]] || break; sleep 0.1; done
wanted=$(carts old)

expect_port listening-a 127.0.0.1 7001
expect_port listening-c 127.0.0.1 7003
expect_port listening-s1 127.0.0.1 26001
expect_port listening-s2 127.0.0.1 26002
expect_port listening-s3 127.0.0.1 26003
for node in a b c; do
    mkdir "$copy/$node"
    tar -C "/srv/nodes/$node" -cf - . | tar -C "$copy/$node" -xf -
    serve "$node" "/srv/nodes/$node/redis.conf"
    expect_eq "carts-$node" "$(carts as admin "$node")" "$wanted"
    expect_eq "order-$node" "$(marked as app "$node")" 1 int
    expect_eq "mark-$node" "$(as app "$node" exists drill:mark)" 0 int
    expect_eq "orders-$node" "$(as app "$node" xlen orders)" "$(($(old xlen orders) + 1))" int
    expect_eq "keys-$node" "$(as admin "$node" dbsize)" "$(as admin c dbsize)" int
    expect_eq "kept-keys-$node" "$(again "$node" dbsize)" "$(as admin c dbsize)" int
    end "$node"
done
# Node r: after the mark, before the damage.
expect_eq restored-carts "$(carts as admin r)" "$wanted"
expect_eq restored-mark "$(as app r get drill:mark)" before
expect_eq restored-orders "$(as app r xlen orders)" "$(old xlen orders)" int
expect_eq restored-stock "$(as app r hgetall stock | sort)" "$(as app c hgetall stock | sort)"
expect_eq restored-note "$(as app r get note:drill)" "$(as app c get note:drill)"
expect_eq restored-expiry "$(as app r expiretime "$(old --scan --pattern 'remember:*' | sort | tail -n 1)")" \
    "$(old expiretime "$(old --scan --pattern 'remember:*' | sort | tail -n 1)")" int
expect_port listening-r 127.0.0.1 7010
expect_out restored-role '^role:master' -- as admin r info replication
expect_fail restored-closed NOAUTH -- redis-cli -e -p 7010 ping
expect_eq restored-who "$(as admin r acl users)" "$(as admin a acl users)" set
# The files of a alone are enough to do it again.
mkdir "$copy/back"
tar -C /srv/nodes/a -cf - . | tar -C "$copy/back" -xf -
manifest=$(find "$copy/back" -name '*.manifest' | head -n 1)
last=${manifest%/*}/$(awk '$NF == "i" { name = $2 } END { print name }' "$manifest")
second=$(tr -d '\r' <"$last" | awk '/^#TS:/ { now = substr($0, 5) } $0 == "drill:mark" { print now; exit }')
expect_ok back-cut -- redis-check-aof --truncate-to-timestamp "$second" "$manifest"
serve back /srv/nodes/a/redis.conf
expect_eq back-carts "$(carts again back)" "$wanted"
expect_eq back-orders "$(again back xlen orders)" "$(old xlen orders)" int
end back
for port in 26001 26002 26003; do
    expect_eq "replicas-$port" "$(redis-cli -p "$port" sentinel replicas shop | grep -A 1 -x port | grep '^70')" "7001, 7002" set
    expect_out "primary-$port" '^7003$' -- redis-cli -p "$port" sentinel get-master-addr-by-name shop
done
for node in a b; do expect_eq "link-$node" "$(info "$node" master_link_status)" up; done
end old
rm -rf "$copy"
