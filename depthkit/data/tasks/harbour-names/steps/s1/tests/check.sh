set -u
h=/srv/handover
office() { dig +noall +answer +time=3 +tries=1 -b 127.20.0.7 @127.0.0.1 "$@"; }
outside() { dig +noall +answer +time=3 +tries=1 -b 127.9.0.7 @127.0.0.1 "$@"; }
records() { awk '$4 != "RRSIG" { $2 = ""; print }' | sort; }
filed() { named-compilezone -q -i none -k ignore -o - "$1" "$2" 2>/dev/null | grep -P "$3" | records; }
served() { # HOW NAMES…: A records
    local name
    for name in "${@:2}"; do "$1" "$name" A; done | grep -P '\sA\s' | records
}
names() { filed "$1" "$2" '\sA\s' | awk '{ print $1 }' | uniq; }
inside=$h/lib/internal/hafen.example.db
out=$h/lib/external/hafen.example.db
# shellcheck disable=SC2046
expect_eq internal "$(served office $(names hafen.example "$inside"))" "$(filed hafen.example "$inside" '\sA\s')" exact
# shellcheck disable=SC2046
expect_eq external "$(served outside $(names hafen.example "$out"))" "$(filed hafen.example "$out" '\sA\s')" exact
expect_eq reverse "$(office -x 10.20.7.13 | records)" "$(filed 20.10.in-addr.arpa "$h/lib/internal/10.20.db" '^13\.7\.')" exact
for name in hafen.example kran_3.hafen.example intra.hafen.example pegel.hafen.example; do
    expect_no_out "no-aaaa-$name" 'AAAA' -- office "$name" AAAA
done
expect_eq aaaa-outside "$(outside pegel.hafen.example AAAA | records)" "$(filed hafen.example "$out" '^pegel.*AAAA')" exact
expect_no_out not-outside '10\.20\.' -- outside kran_1.hafen.example A
# Validation with what the registry has.
anchor=$(mktemp)
awk '$4 == "DS" { printf "trust-anchors { %s static-ds %s %s %s \"%s\"; };\n", $1, $5, $6, $7, $8 }' $h/ds-at-registry.txt >"$anchor"
validate() { delv -b 127.9.0.7 -a "$anchor" +root=hafen.example @127.0.0.1 "$@"; }
expect_out validates 'fully validated' -- validate pegel.hafen.example A
expect_out denies-validated 'negative response, fully validated' -- validate no-such-name.hafen.example A
expect_out nsec3 ' NSEC3 ' -- dig +dnssec -b 127.9.0.7 @127.0.0.1 no-such-name.hafen.example A
expect_no_out no-list 'IN.NSEC ' -- dig +dnssec -b 127.9.0.7 @127.0.0.1 no-such-name.hafen.example A
rm -f "$anchor"
transfer() { ! dig -b "$1" @127.0.0.1 hafen.example AXFR | grep -q 'IN.SOA'; }
expect_ok no-transfer-outside -- transfer 127.9.0.7
expect_ok no-transfer-office -- transfer 127.20.0.7
expect_out rndc 'server is up and running' -- rndc status
expect_no_out not-md5 hmac-md5 -- named-checkconf -px
expect_out log 'running' -- grep -h 'general: running' /var/log/named/named.log
