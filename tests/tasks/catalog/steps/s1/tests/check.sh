set -u
report=/srv/reports/load.txt
db() { redis-cli -p 6390 "$@" </dev/null; }
wanted() { tail -n +2 /srv/in/catalog.csv | tr -d '\r' | sort | cut -d, -f "$1"; }
stored() { for sku in $(wanted 1); do db hget "item:$sku" "$1"; done; }
sum() {
    local sum=0 cents
    for cents in $(wanted 3); do sum=$((sum + cents)); done
    echo "$sum"
}
expect_port listening 127.0.0.1 6390
expect_out persistent '^yes$' -- db config get appendonly
expect_eq folder "$(db config get dir | tail -n 1)" /srv/data
expect_eq skus "$(db smembers items)" "$(wanted 1)" set
expect_eq names "$(stored name)" "$(wanted 2)" seq
# To the byte: a carriage return is no part of a price.
expect_eq cents "$(stored cents)" "$(wanted 3)" exact
expect_eq reported "$(field "$report" items)" "$(db scard items)" int
expect_eq total "$(field "$report" total_cents)" "$(sum)" int
