#!/bin/bash
set -eu
home=/srv/nodes/a
password=$(awk '$1 == "requirepass" { print $2 }' /srv/shop/redis.conf)
db() { REDISCLI_AUTH=$password redis-cli -p 7001 "$@" </dev/null; }
await() { for _ in {1..150}; do "$@" && return; sleep 0.1; done; return 1; }
answers() { [ "$(db ping 2>/dev/null)" = PONG ]; }
loaded() { [ "$(db info persistence | tr -d '\r' | awk -F: '$1 == "loading" { print $2 }')" = 0 ]; }
rewritten() {
    ! db info persistence | tr -d '\r' | grep -Eqx 'aof_rewrite_(in_progress|scheduled):1'
}
start() {
    redis-server "$home/redis.conf"
    await answers
    await loaded
}
install -d "$home"
cp /srv/shop/dump.rdb "$home/dump.rdb"
# Only what the shop relies on is taken from cache1's file.
{
    cat <<END
bind 127.0.0.1
port 7001
daemonize yes
dir $home
pidfile $home/redis.pid
logfile $home/redis.log
dbfilename dump.rdb
save ""
appendonly yes
appendfsync everysec
END
    grep -E '^(requirepass|maxmemory|maxmemory-policy|timeout|tcp-keepalive) ' /srv/shop/redis.conf
    grep -E '^(slowlog-log-slower-than|client-output-buffer-limit|hash-max-ziplist-entries) ' /srv/shop/redis.conf
} >"$home/redis.conf"
# key-step: begin
# With appendonly in its file, this server does not look at a dump: it starts empty, and puts an
# empty dump in its place when it ends. So the dump first, then the append-only file.
sed -i 's/^appendonly yes/appendonly no/' "$home/redis.conf"
start
db config set appendonly yes
await rewritten
db config rewrite
db shutdown nosave || true
await [ ! -e "$home/redis.pid" ]
# key-step: end
start
