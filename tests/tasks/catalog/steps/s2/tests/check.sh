set -u
site=/srv/site/catalog.json
db() { redis-cli -p 6390 "$@" </dev/null; }
stored() { for sku in $(db smembers items | sort); do db hget "item:$sku" cents; done; }
total() {
    local sum=0 cents
    for cents in $(stored); do sum=$((sum + ${cents//[!0-9]/})); done
    echo "$sum"
}
served=$(mktemp)
expect_ok get -- curl -fsS -o "$served" http://127.0.0.1:8088/catalog.json
expect_out type 'content-type: application/json' -- curl -sSI http://127.0.0.1:8088/catalog.json
expect_eq served "$(field "$served" total_cents)" "$(total)" int
expect_eq items "$(field "$site" items)" "$(db scard items)" int
for sku in $(db smembers items); do
    expect_eq "cents-$sku" "$(field "$site" "cents.$sku")" "$(db hget "item:$sku" cents)" int
done
rm -f "$served"
