set -u
ask() { dig +noall +answer +time=3 +tries=1 -b "$1" -p "$2" @127.0.0.1 "${@:3}"; }
office=127.20.0.7
outside=127.9.0.7
both() { # HOW NAME TYPE: the same from ports 53 and 5300
    expect_eq "$1-$2-$3" "$(ask "${!1}" 5300 "$2" "$3" | sort)" "$(ask "${!1}" 53 "$2" "$3" | sort)" exact
}
for name in kran_2 intra drucker-og schleuse kasse23 pilot; do both office $name.hafen.example A; done
both office 11.7.20.10.in-addr.arpa PTR
for name in mx pegel cam3 schleuse pilot; do both outside $name.hafen.example A; done
both outside hafen.example DNSKEY
both outside hafen.example SOA
both office hafen.example SOA
expect_out pilot-outside '203\.0\.113\.91' -- ask $outside 5300 pilot.hafen.example A
expect_out pilot-office '10\.20\.2\.41' -- ask $office 5300 pilot.hafen.example A
expect_no_out kept-inside '10\.20\.' -- ask $outside 5300 intra.hafen.example A
expect_no_out no-aaaa AAAA -- ask $office 5300 pegel.hafen.example AAAA
expect_out aaaa-outside AAAA -- ask $outside 5300 pegel.hafen.example AAAA
anchor=$(mktemp)
awk '$4 == "DS" { printf "trust-anchors { %s static-ds %s %s %s \"%s\"; };\n", $1, $5, $6, $7, $8 }' \
    /srv/handover/ds-at-registry.txt >"$anchor"
validate() { delv -b $outside -p 5300 -a "$anchor" +root=hafen.example @127.0.0.1 "$@"; }
expect_out validates 'fully validated' -- validate pilot.hafen.example A
expect_out denies-validated 'negative response, fully validated' -- validate no-such-name.hafen.example A
rm -f "$anchor"
refused() { ! dig -b "$1" -p "$2" @127.0.0.1 "$3" AXFR | grep -q 'IN.SOA'; }
for port in 53 5300; do
    for address in 127.0.0.1 127.0.0.2 $office $outside; do
        expect_ok "no-transfer-$port-$address" -- refused $address $port hafen.example
    done
done
text() { named-compilezone -q -f text -k ignore -i none -o - "$1" "$2"; }
expect_out text-internal 'kran_2' -- text hafen.example /var/lib/ns2/internal/hafen.example.db
expect_out text-reverse 'lotse' -- text 20.10.in-addr.arpa /var/lib/ns2/internal/10.20.db
expect_out text-external 'RRSIG' -- text hafen.example /var/lib/ns2/external/hafen.example.db
# Each view is told of changes, and fetches with a key.
expect_out told-internal "received notify for zone 'hafen.example'" -- grep -h 'view internal: received notify' /var/log/named/ns2.log
expect_out told-external "received notify for zone 'hafen.example'" -- grep -h 'view external: received notify' /var/log/named/ns2.log
expect_out fetched-internal 'TSIG' -- grep -h 'hafen.example/IN/internal: transferred serial' /var/log/named/ns2.log
expect_out fetched-external 'TSIG' -- grep -h 'hafen.example/IN/external: transferred serial' /var/log/named/ns2.log
