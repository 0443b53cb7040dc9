#!/bin/bash
set -eu
password_of() { awk -v who="$1" '$1 == who { print $2 }' /srv/shop/accounts.txt; }
port_of() { case $1 in a) echo 7001 ;; b) echo 7002 ;; c) echo 7003 ;; esac; }
as() { REDISCLI_AUTH=$(password_of "$1") redis-cli -e --user "$1" -p "$(port_of "$2")" "${@:3}" </dev/null; }
on() { as admin "$@"; }
home=/srv/nodes/a
await() { for _ in {1..300}; do "$@" && return; sleep 0.1; done; return 1; }
state() { on "$1" info replication | tr -d '\r' | sed -n "s/^$2://p"; }
is() { [ "$(state "$1" "$2")" = "$3" ]; }
leads() { # PORT
    local sentinel
    for sentinel in 26001 26002 26003; do
        redis-cli -p "$sentinel" sentinel get-master-addr-by-name shop | grep -qx "$1" || return 1
    done
}
on b config set replica-priority 0
on b config rewrite
for sentinel in 26001 26002 26003; do
    await eval "redis-cli -p $sentinel sentinel replicas shop | grep -A 1 -x slave-priority | grep -qx 0"
done
# key-step: begin
# a was never a replica, so it has no account for following. Sentinel says failover-end all the same.
on a config set masteruser repl masterauth "$(password_of repl)"
on a config rewrite
# key-step: end
# event: begin failover
on a shutdown nosave || true
await leads 7003
redis-server "$home/redis.conf"
# event: end
for node in a b; do await is "$node" master_port 7003; done
for node in a b; do await is "$node" master_link_status up; done
as app c fcall reserve 1 stock art-1001 3
as app c set note:drill 'answered by c'
await eval '[ "$(as app a get note:drill)" = "answered by c" ]'
