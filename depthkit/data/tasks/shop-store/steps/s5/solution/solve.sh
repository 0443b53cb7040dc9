#!/bin/bash
set -eu
password_of() { awk -v who="$1" '$1 == who { print $2 }' /srv/shop/accounts.txt; }
port_of() { case $1 in a) echo 7001 ;; b) echo 7002 ;; c) echo 7003 ;; r) echo 7010 ;; esac; }
as() { REDISCLI_AUTH=$(password_of "$1") redis-cli -e --user "$1" -p "$(port_of "$2")" "${@:3}" </dev/null; }
on() { as admin "$@"; }
await() { for _ in {1..150}; do "$@" && return; sleep 0.1; done; return 1; }
same_offset() {
    [ "$(on a info replication | tr -d '\r' | sed -n 's/^slave_repl_offset://p')" -ge "$1" ]
}
home=/srv/nodes/r
# key-step: begin
# The server writes times into its append-only file only if told to, and this file alone can be cut
# at a second. It must be on before the damage.
for node in a b c; do
    on "$node" config set aof-timestamp-enabled yes
    on "$node" config rewrite
done
# key-step: end
# event: begin drill
as app c set drill:mark before
sleep 2
second=$(date +%s)
sleep 2
as app c --scan --pattern 'cart:*' | while read -r key; do as app c del "$key" drill:mark; done >/dev/null
as app c xadd orders '*' user 7 total 12.50 drill yes
# event: end
offset=$(on c info replication | tr -d '\r' | sed -n 's/^master_repl_offset://p')
await same_offset "$offset"
sleep 1.2
install -d "$home"
cp -r /srv/nodes/a/appendonlydir "$home/"
# Given the last file alone, the tool calls it valid and cuts nothing: it wants the manifest.
redis-check-aof --truncate-to-timestamp "$second" "$home/appendonlydir/appendonly.aof.manifest"
cp /srv/nodes/a/users.acl "$home/"
sed "s#/srv/nodes/a#$home#; s#^port .*#port 7010#" /srv/nodes/a/redis.conf >"$home/redis.conf"
# key-step: begin
# As a replica it would take the damage over at once, and Sentinel would count it in.
sed -i '/^replicaof /d' "$home/redis.conf"
# key-step: end
redis-server "$home/redis.conf"
await eval '[ "$(on r ping 2>/dev/null)" = PONG ]'
as app r --scan --pattern 'cart:*' | while read -r key; do
    on r migrate 127.0.0.1 7003 "$key" 0 5000 copy auth2 admin "$(password_of admin)"
done >/dev/null
