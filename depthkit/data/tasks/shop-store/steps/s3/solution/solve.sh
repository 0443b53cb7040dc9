#!/bin/bash
set -eu
password_of() { awk -v who="$1" '$1 == who { print $2 }' /srv/shop/accounts.txt; }
port_of() { case $1 in a) echo 7001 ;; b) echo 7002 ;; c) echo 7003 ;; esac; }
on() { REDISCLI_AUTH=$(password_of admin) redis-cli -e --user admin -p "$(port_of "$1")" "${@:2}" </dev/null; }
await() { for _ in {1..150}; do "$@" && return; sleep 0.1; done; return 1; }
agreed() { redis-cli -p "$1" sentinel ckquorum shop 2>&1 | grep -q '^OK 3 '; }
for node in a b c; do
    on "$node" acl setuser sentinel on ">$(password_of sentinel)" resetkeys resetchannels -@all \
        +ping +info +role +multi +exec +slaveof +config\|rewrite +client\|setname +client\|kill \
        +script\|kill +subscribe +publish
done
# key-step: begin
# Since 7.0 a new account has no channels. Sentinels find each other through one, so without it each
# of them watches the primary and stays alone.
for node in a b c; do on "$node" acl setuser sentinel '&__sentinel__:hello'; done
# key-step: end
for node in a b c; do on "$node" acl save; done
for number in 1 2 3; do
    home=/srv/nodes/s$number
    install -d "$home"
    cat >"$home/sentinel.conf" <<END
bind 127.0.0.1
port 2600$number
daemonize yes
dir $home
logfile $home/sentinel.log
pidfile $home/sentinel.pid
sentinel monitor shop 127.0.0.1 7001 2
sentinel auth-user shop sentinel
sentinel auth-pass shop $(password_of sentinel)
sentinel down-after-milliseconds shop 2000
sentinel failover-timeout shop 20000
sentinel parallel-syncs shop 1
END
    redis-sentinel "$home/sentinel.conf"
done
for number in 1 2 3; do await agreed "2600$number"; done
