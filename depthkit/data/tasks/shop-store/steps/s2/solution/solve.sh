#!/bin/bash
set -eu
password_of() { awk -v who="$1" '$1 == who { print $2 }' /srv/shop/accounts.txt; }
port_of() { case $1 in a) echo 7001 ;; b) echo 7002 ;; c) echo 7003 ;; esac; }
on() { REDISCLI_AUTH=$(password_of admin) redis-cli --user admin -p "$(port_of "$1")" "${@:2}" </dev/null; }
await() { for _ in {1..150}; do "$@" && return; sleep 0.1; done; return 1; }
answers() { [ "$(on "$1" ping 2>/dev/null)" = PONG ]; }
linked() { on "$1" info replication | tr -d '\r' | grep -qx 'master_link_status:up'; }
users() {
    cat <<END
user app on >$(password_of app) ~* &* +@all -@dangerous
user repl on >$(password_of repl) resetkeys resetchannels -@all +psync +replconf +ping
user admin on >$(password_of admin) ~* &* +@all
END
}
old=$(awk '$1 == "requirepass" { print $2 }' /srv/shop/redis.conf)
for node in a b c; do
    install -d "/srv/nodes/$node"
    users >"/srv/nodes/$node/users.acl"
done
sed -i '/^requirepass /d' /srv/nodes/a/redis.conf
echo 'aclfile /srv/nodes/a/users.acl' >>/srv/nodes/a/redis.conf
# key-step: begin
# CONFIG REWRITE has left a user line, beside which the server takes no file of accounts. A file
# without an account "default" would then let anybody in, whatever requirepass says.
sed -i '/^user /d' /srv/nodes/a/redis.conf
for node in a b c; do echo 'user default off' >>"/srv/nodes/$node/users.acl"; done
# key-step: end
for node in b c; do
    sed "s#7001#$(port_of "$node")#; s#/srv/nodes/a#/srv/nodes/$node#" /srv/nodes/a/redis.conf \
        >"/srv/nodes/$node/redis.conf"
    cat >>"/srv/nodes/$node/redis.conf" <<END
replicaof 127.0.0.1 7001
masteruser repl
masterauth $(password_of repl)
END
done
REDISCLI_AUTH=$old redis-cli -p 7001 shutdown nosave || true
await [ ! -e /srv/nodes/a/redis.pid ]
for node in a b c; do redis-server "/srv/nodes/$node/redis.conf"; done
for node in a b c; do await answers "$node"; done
for node in b c; do await linked "$node"; done
