set -u
password_of() { awk -v who="$1" '$1 == who { print $2 }' /srv/shop/accounts.txt; }
port_of() { case $1 in a) echo 7001 ;; b) echo 7002 ;; c) echo 7003 ;; esac; }
as() { REDISCLI_AUTH=$(password_of "$1") redis-cli -e --user "$1" -p "$(port_of "$2")" "${@:3}" </dev/null; }
copy=$(mktemp -d)
declare -A served
# A copy of a node as its files would start it, without a port and by itself.
serve() {
    mkdir "$copy/$1"
    tar -C "/srv/nodes/$1" -cf - . | tar -C "$copy/$1" -xf -
    redis-server "/srv/nodes/$1/redis.conf" --port 0 --unixsocket "$copy/$1/socket" --daemonize no \
        --logfile '' --dir "$copy/$1" --pidfile "$copy/$1/pid" --replicaof no one \
        >"$copy/$1/log" 2>&1 </dev/null &
    served[$1]=$!
    for _ in {1..200}; do [[ -z $(again "$1" ping) ]] || break; sleep 0.1; done
}
# Ends a server of the check's own, whether it lets anybody in or not.
end() { kill -KILL "${served[$1]}" 2>/dev/null && wait "${served[$1]}" 2>/dev/null; }
again() { REDISCLI_AUTH=$(password_of admin) redis-cli --user admin -s "$copy/$1/socket" "${@:2}" </dev/null 2>/dev/null; }
old() { redis-cli -s "$copy/old/socket" "$@" </dev/null 2>/dev/null; }
state() { as admin "$1" info replication | tr -d '\r' | sed -n "s/^$2://p"; }
keys() { as admin "$1" dbsize; }
mkdir "$copy/old"
cat /srv/shop/dump.rdb >"$copy/old/dump.rdb"
redis-server --port 0 --unixsocket "$copy/old/socket" --dir "$copy/old" >"$copy/old/log" 2>&1 </dev/null &
served[old]=$!
for _ in {1..200}; do [[ -z $(old ping) ]] || break; sleep 0.1; done
number=$(old info keyspace | sed -n 's/^db0:keys=\([0-9]*\),.*/\1/p')
secret=$(awk '$1 == "requirepass" { print $2 }' /srv/shop/redis.conf)
everybody=(default app repl admin)
expect_port listening-a 127.0.0.1 7001
expect_port listening-b 127.0.0.1 7002
expect_port listening-c 127.0.0.1 7003
for node in a b c; do
    for who in app repl admin; do
        expect_no_out "$who-$node" 'WRONGPASS|NOAUTH' -- as "$who" "$node" ping
    done
    expect_fail "nobody-$node" NOAUTH -- redis-cli -e -p "$(port_of "$node")" ping
    expect_fail "old-$node" 'WRONGPASS|NOAUTH' -- redis-cli -e -p "$(port_of "$node")" auth "$secret"
    expect_eq "who-$node" "$(as admin "$node" acl users)" "${everybody[*]}" set
    # What Redis itself says that the accounts may do.
    for may in 'set cart:9 1' 'xreadgroup group picking me streams orders >' 'hgetall stock' \
        'fcall reserve 1 stock art-1001 1' 'subscribe news'; do
        expect_out "app-${may%% *}-$node" '^OK$' -- as admin "$node" acl dryrun app $may
    done
    for not in 'config get maxmemory' flushall 'shutdown nosave' 'acl list'; do
        expect_no_out "app-not-${not%% *}-$node" '^OK$' -- as admin "$node" acl dryrun app $not
    done
    expect_out "repl-psync-$node" '^OK$' -- as admin "$node" acl dryrun repl psync x 1
    for not in 'get cart:2' 'publish news x' 'info' 'flushall'; do
        expect_no_out "repl-not-${not%% *}-$node" '^OK$' -- as admin "$node" acl dryrun repl $not
    done
    serve "$node"
    expect_eq "kept-who-$node" "$(again "$node" acl users)" "${everybody[*]}" set
    expect_out "kept-closed-$node" '^off$' -- again "$node" acl getuser default
    expect_eq "kept-keys-$node" "$(again "$node" dbsize)" "$number" int
    end "$node"
done
expect_out primary '^role:master' -- as admin a info replication
expect_out replicas '^connected_slaves:2' -- as admin a info replication # b and c
for node in b c; do
    expect_eq "follows-$node" "$(state "$node" master_port)" 7001 int
    expect_eq "link-$node" "$(state "$node" master_link_status)" up
    expect_eq "account-$node" "$(as admin "$node" config get masteruser | tail -n 1)" repl
    expect_eq "keys-$node" "$(keys "$node")" "$number" int
    expect_eq "orders-$node" "$(as app "$node" xrange orders - +)" "$(old xrange orders - +)"
    expect_eq "functions-$node" "$(as admin "$node" function list)" "$(old function list)"
    expect_out "append-only-$node" '^yes$' -- as admin "$node" config get appendonly
done
end old
rm -rf "$copy"
