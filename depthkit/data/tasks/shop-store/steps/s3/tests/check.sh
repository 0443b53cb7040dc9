set -u
password_of() { awk -v who="$1" '$1 == who { print $2 }' /srv/shop/accounts.txt; }
port_of() { case $1 in a) echo 7001 ;; b) echo 7002 ;; c) echo 7003 ;; esac; }
as() { REDISCLI_AUTH=$(password_of "$1") redis-cli -e --user "$1" -p "$(port_of "$2")" "${@:3}" </dev/null; }
ask() { redis-cli -p "$1" sentinel "${@:2}" </dev/null; }
value() { ask "$1" "$2" shop | awk -v name="$3" 'found { print; exit } $0 == name { found = 1 }'; }
# Whether the account would be there after a restart: in the file of accounts or in the configuration.
stored() { cat "$(as admin "$1" config get aclfile | tail -n 1)" "/srv/nodes/$1/redis.conf" 2>/dev/null; }
nodes=(a b c)
expect_port listening-a 127.0.0.1 7001
expect_port listening-b 127.0.0.1 7002
expect_port listening-c 127.0.0.1 7003
expect_port listening-s1 127.0.0.1 26001
expect_port listening-s2 127.0.0.1 26002
expect_port listening-s3 127.0.0.1 26003
others() { printf '%s\n' 26001 26002 26003 | grep -vx "$1"; }
for port in 26001 26002 26003; do
    expect_out "watches-$port" '^7001$' -- ask "$port" get-master-addr-by-name shop
    # printed by redis-sentinel
    expect_out "quorum-$port" '^OK 3 usable' -- ask "$port" ckquorum shop
    expect_eq "others-$port" "$(ask "$port" sentinels shop | grep -A 1 -x port | grep '^2600')" "$(others "$port")" set
    expect_eq "replicas-$port" "$(ask "$port" replicas shop | grep -A 1 -x port | grep '^700')" "7002, 7003" set
    expect_eq "down-after-$port" "$(value "$port" master down-after-milliseconds)" 2000 int
    expect_eq "timeout-$port" "$(value "$port" master failover-timeout)" 20000 int
    expect_eq "votes-$port" "$(value "$port" master quorum)" 2 int
    expect_out "healthy-$port" '^master$' -- value "$port" master flags
    expect_no_out "reachable-$port" 'down|disconnected' -- value "$port" replicas flags
done
for node in "${nodes[@]}"; do
    expect_out "account-$node" PONG -- as sentinel "$node" ping
    for not in 'get cart:2' 'set cart:2 1' flushall 'config get maxmemory' 'config set maxmemory 1' \
        'publish news x' 'acl list' 'shutdown nosave'; do
        name=${not// /-}
        expect_no_out "sentinel-not-${name//:/.}-$node" '^OK$' -- as admin "$node" acl dryrun sentinel $not
    done
    # What Sentinel does to a server when it makes it primary or replica.
    for may in 'slaveof no one' 'config rewrite' 'client kill type normal' multi exec \
        'publish __sentinel__:hello x' 'script kill'; do
        name=${may// /-}
        expect_out "sentinel-${name//[: ]/.}-$node" '^OK$' -- as admin "$node" acl dryrun sentinel $may
    done
    # printed by redis-server
    expect_out "kept-$node" '^user sentinel on' -- stored "$node"
done
