"""A task of two segments on the seed ``redis-sentinel``, and scripts that write it as a model."""

from __future__ import annotations

from pathlib import Path

from scripted_author import Message, Written

SEED = Path(__file__).resolve().parents[1] / "env" / "seeds" / "redis-sentinel"

BY_HAND = "install -d /srv/store && cp /srv/shop/dump.rdb /srv/store/"

SOLVE_1 = """\
#!/bin/bash
set -eu
db() { redis-cli -p 6401 "$@" </dev/null; }
await() { for _ in {1..150}; do "$@" && return; sleep 0.1; done; return 1; }
answers() { [ "$(db ping 2>/dev/null)" = PONG ]; }
is() { db info persistence | tr -d '\\r' | grep -qx "$1"; }
rewritten() { is aof_rewrite_in_progress:0 && is aof_rewrite_scheduled:0; }
install -d /srv/store && cp /srv/shop/dump.rdb /srv/store/
cat >/srv/store/redis.conf <<END
bind 127.0.0.1
port 6401
daemonize yes
dir /srv/store
pidfile /srv/store/redis.pid
logfile /srv/store/redis.log
save ""
appendonly yes
END
# key-step: begin
# A first start with appendonly reads no dump: the server answers, and holds nothing.
sed -i 's/^appendonly yes/appendonly no/' /srv/store/redis.conf
redis-server /srv/store/redis.conf
await answers
await is loading:0
db config set appendonly yes
await rewritten
db config rewrite
db shutdown nosave || true
await [ ! -e /srv/store/redis.pid ]
# key-step: end
redis-server /srv/store/redis.conf
await answers
await is loading:0
echo "carts: $(db --scan --pattern 'cart:*' | wc -l)" >/srv/store/moved.txt
"""

SOLVE_1_BY_HAND = SOLVE_1.replace(f"{BY_HAND}\n", "")
"""Relies on a folder and a copy of the dump that the author made by hand."""

SERVERS = """\
set -u
db() { redis-cli -p 6401 "$@"; }
copy=$(mktemp -d)
served=()
# A server of the check's own, without a port: DIR ARGUMENT…
serve() {
    redis-server "${@:2}" --port 0 --unixsocket "$1/socket" --dir "$1" --pidfile "$1/pid" \\
        --daemonize no --logfile '' >"$1/log" 2>&1 </dev/null &
    served+=($!)
    for _ in {1..100}; do
        [[ -z $(ask "$1" ping) ]] || return
        kill -0 $! 2>/dev/null || return
        sleep 0.05
    done
}
ask() { redis-cli -s "$1/socket" "${@:2}" 2>/dev/null; }
mkdir "$copy/dump" "$copy/store"
cat /srv/shop/dump.rdb >"$copy/dump/dump.rdb"
serve "$copy/dump"
old() { ask "$copy/dump" "$@"; }
[ ! -d /srv/store ] || tar -C /srv/store -cf - . | tar -C "$copy/store" -xf -
serve "$copy/store" /srv/store/redis.conf
again() { ask "$copy/store" "$@"; }
all() { "$1" --scan --pattern "$2:*" | sort; }
"""
"""What both check scripts begin with: the dump as it was, and the store as it would start again."""

END = """\
kill -KILL "${served[@]}" 2>/dev/null
wait "${served[@]}" 2>/dev/null
rm -rf "$copy"
"""

TASK = Written(
    goal="Move the store of a shop to this machine, and reserve what lies in the carts.",
    asks=(
        "Bring the old host's dump up on a Redis that loses no write",
        "Reserve what lies in the carts, as far as the stock goes",
    ),
    key_steps=(
        "With appendonly in its configuration Redis ignores the dump at the first start, and "
        "answers with an empty store.",
        "redis-cli ends with status 0 whatever SOLDOUT errors it was answered, so that lines count "
        "as reserved which are not.",
    ),
    segments=(
        {
            "instruction.md": """\
The store of a web shop moves from its old host to this machine. Its last dump is
/srv/shop/dump.rdb, and /srv/shop/README says what the keys are.

Bring the store up on a Redis server on 127.0.0.1, port 6401, that needs no password. Its home is
/srv/store, and it is always started by `redis-server /srv/store/redis.conf`; whatever it writes
stays in its home. It holds all that the dump holds and that has not run out, the function library
too, and goes on running.

The store is durable by Redis' append-only mode. Whoever starts the server again by the command
above, with nothing but what is in its home, must find the same data.

Then say in /srv/store/moved.txt how many carts the store holds.
""",
            "names.toml": """\
names = [
    "/srv/shop/dump.rdb", "/srv/shop/README", "127.0.0.1", "6401", "/srv/store",
    "/srv/store/redis.conf", "redis-server /srv/store/redis.conf",
]
""",
            "reports.toml": """\
[[reports]]
path = "/srv/store/moved.txt"
kind = "fields"
[reports.fields]
carts = "number of carts in the store"
""",
            "solve.sh": SOLVE_1,
            "check.sh": SERVERS
            + """\
expect_out answers '^PONG$' -- db ping
expect_eq stock "$(db hgetall stock | sort)" "$(old hgetall stock | sort)"
expect_eq carts "$(all db cart)" "$(all old cart)"
expect_eq orders "$(db xrange orders - +)" "$(old xrange orders - +)"
expect_eq logins "$(all db remember)" "$(all old remember)"
expect_eq functions "$(db function list withcode)" "$(old function list withcode)"
expect_out append-only 'aof_enabled:1' -- db info persistence
expect_out again-append-only 'aof_enabled:1' -- again info persistence
expect_eq again-carts "$(all again cart)" "$(all old cart)"
expect_eq again-functions "$(again function list withcode)" "$(old function list withcode)"
expect_eq reported "$(field /srv/store/moved.txt carts)" "$(all old cart | wc -l)" int
"""
            + END,
        },
        {
            "instruction.md": """\
Reserve what lies in the carts. Go through the keys `cart:N` of the store on port 6401 in the order
of their numbers N, and ask for the pieces of each article in a cart by the function `reserve` of
the library `stock`, which takes them from the hash `stock`: all that the cart has of an article at
once. What is reserved moves from `cart:N` to the hash `held:N` of the same form; where the stock
does not suffice, the article stays in its cart and the stock stays as it is. Nothing else in the
store changes.

List what could not be reserved in /srv/store/short.tsv. The store still has all of it after
another start from its home.
""",
            "names.toml": """\
names = ["6401", "cart:N", "held:N", "reserve", "stock", "/srv/store/short.tsv"]
""",
            "reports.toml": """\
[[reports]]
path = "/srv/store/short.tsv"
kind = "table"
about = "one row for each article of a cart that stays in it"
[reports.columns]
cart = "number of the cart"
article = "the article"
pieces = "how many pieces the cart has of it"
""",
            "solve.sh": """\
#!/bin/bash
set -eu
db() { redis-cli -p 6401 "$@"; }
db --scan --pattern 'cart:*' | sort -t : -k 2n >/tmp/carts
# number, article, pieces
sed 's/.*/echo &\\nhgetall &/' /tmp/carts | db |
    awk -F : '/^cart:/ { n = $2; next } { a = $0; getline; print n, a, $0 }' >/tmp/asked
awk '{ print "fcall reserve 1 stock", $2, $3 }' /tmp/asked | db >/tmp/answers
sed 's/$/ 0/' /tmp/asked >/tmp/told
# key-step: begin
# Every fcall has its answer, and redis-cli ends with 0: which ones were refused is in the answers,
# with an empty line after each error.
sed '/^$/d' /tmp/answers | paste -d ' ' /tmp/asked - >/tmp/told
# key-step: end
awk '$4 ~ /^[0-9]/ { print "hset held:" $1, $2, $3; print "hdel cart:" $1, $2 }' /tmp/told |
    db >/dev/null
{
    printf 'cart\\tarticle\\tpieces\\n'
    awk -v OFS='\\t' '$4 !~ /^[0-9]/ { print $1, $2, $3 }' /tmp/told
} >/srv/store/short.tsv
""",
            "check.sh": SERVERS
            + """\
# Number, article and pieces of the hashes KEY:N, by number.
lines() { # KEY CLIENT
    "$2" --scan --pattern "$1:*" | sort -t : -k 2n | sed 's/.*/echo &\\nhgetall &/' | "$2" |
        awk -F : -v key="$1" '$1 == key { n = $2; next } $0 { a = $0; getline; print n, a, $0 }'
}
pieces() { "$1" hgetall stock | paste -d ' ' - -; }
# What the dump comes to, line by line: held, short, or left in the stock.
wanted=$({ pieces old | sed 's/^/stock /'; lines cart old; } | awk '
    $1 == "stock" { left[$2] = $3; next }
    left[$2] + 0 >= $3 + 0 { left[$2] -= $3; print "held", $0; next }
    { print "short", $0 }
    END { for (article in left) print "stock", article, left[article] }' | sort)
of() { sed -n "s/^$1 //p" <<<"$wanted"; }
list=/srv/store/short.tsv
expect_eq held "$(lines held db | sort)" "$(of held)"
expect_eq carts "$(lines cart db | sort)" "$(of short)"
expect_eq stock "$(pieces db | sort)" "$(of stock)"
expect_eq orders "$(db xrange orders - +)" "$(old xrange orders - +)"
expect_eq users "$(all db user)" "$(all old user)"
expect_eq again-held "$(lines held again | sort)" "$(of held)"
expect_eq again-stock "$(pieces again | sort)" "$(of stock)"
listed() { column "$list" "$1"; }
expect_eq listed "$(paste -d ' ' <(listed cart:1) <(listed article:2) <(listed pieces:3) | sort)" \\
    "$(of short)"
"""
            + END,
        },
    ),
)

LOOKS: list[Message] = [
    {"do": "run", "command": "cat /srv/shop/README; ls -l /srv/shop; redis-server --version"}
]

USUAL_WAY = f"""\
{BY_HAND}
redis-server --port 6401 --dir /srv/store --appendonly yes --daemonize yes >/dev/null
until redis-cli -p 6401 ping | grep -q PONG; do sleep 0.1; done
redis-cli -p 6401 dbsize"""

MENDS = {
    1: [
        LOOKS,
        [TASK.plan(), {"do": "run", "command": USUAL_WAY}],
        [*TASK.writes(1, solve=SOLVE_1_BY_HAND, reports=None), {"do": "replay"}],
        [
            {"do": "write", "file": "reports.toml", "text": TASK.segments[0]["reports.toml"]},
            {"do": "replay"},
        ],
        [{"do": "write", "file": "solve.sh", "text": SOLVE_1}, *TASK.done(1)],
    ],
    2: [
        [{"do": "run", "command": "redis-cli -p 6401 fcall reserve 1 stock art-1000 1; echo $?"}],
        [*TASK.writes(2), *TASK.done(2)],
    ],
}
"""Mends an error of format (a report that is not declared), then a replay that fails."""

BY_HAND_ALONE = {
    1: [
        [TASK.plan(), {"do": "run", "command": BY_HAND}],
        [*TASK.writes(1, solve=SOLVE_1_BY_HAND), {"do": "replay"}],
        [{"do": "replay"}],
    ]
}
"""Never writes down what it did by hand."""
