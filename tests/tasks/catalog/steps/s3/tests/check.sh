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
updated() {
    local sku cents
    while IFS=';' read -r sku cents; do
        [[ $sku == sku ]] || echo "$sku=$cents"
    done < <(iconv -f UTF-16 -t UTF-8 /srv/in/update.csv | tr -d '\r')
}
expect_ok get -- curl -fsS -o "$served" http://127.0.0.1:8090/catalog.json
expect_eq served "$(field "$served" total_cents)" "$(total)" int
expect_fail moved "connect" -- curl -sS http://127.0.0.1:8088/catalog.json
for line in $(updated); do
    expect_eq "cents-${line%%=*}" "$(field "$site" "cents.${line%%=*}")" "${line#*=}" int
    expect_eq "db-${line%%=*}" "$(db hget "item:${line%%=*}" cents)" "${line#*=}" exact
done
if [[ $(proc_start redis-server) > $(proc_start nginx) ]]; then
    pass restarted
else
    fail restarted "Redis was not started after nginx' newest process"
fi
rm -f "$served"
