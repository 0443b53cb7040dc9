set -u
h=/srv/handover
office() { dig +noall +answer +time=3 +tries=1 -b 127.20.0.7 @127.0.0.1 "$@"; }
outside() { dig +noall +answer +time=3 +tries=1 -b 127.9.0.7 @127.0.0.1 "$@"; }
status_of_zone() { rndc dnssec -status hafen.example IN external; }
in_use() { # public keys of the handover that were not taken out
    local key
    for key in "$h"/lib/keys/*.key; do
        grep -q '^; Delete:' "$key" || grep -v '^;' "$key" | cut -d ' ' -f 4- | tr -d ' '
    done
}
expect_out policy 'dnssec-policy: [a-z]' -- status_of_zone
expect_no_out nothing-deprecated 'auto-dnssec|deprecated' -- named-checkconf
expect_eq keys "$(outside hafen.example DNSKEY | awk '{ $1 = $2 = $3 = $4 = ""; print }' | tr -d ' ')" "$(in_use)" set
expect_eq signed-by "$(outside +dnssec hafen.example SOA | awk '$4 == "RRSIG" { print $11 }')" \
    "$(cd $h/lib/keys && grep -L '^; Delete:' ./*.key | xargs grep -l 'zone-signing' | sed 's/.*+0*//; s/\.key//')" int
registered() { awk '$4 == "DS" { print $5 }' $h/ds-at-registry.txt; }
ds_state() { status_of_zone | awk -v id="$1" '$1 == "key:" { on = $2 == id } on && $2 == "ds:" { print $3 }'; }
expect_eq ds-known "$(ds_state "$(registered)")" omnipresent
anchor=$(mktemp)
awk '$4 == "DS" { printf "trust-anchors { %s static-ds %s %s %s \"%s\"; };\n", $1, $5, $6, $7, $8 }' $h/ds-at-registry.txt >"$anchor"
validate() { delv -b 127.9.0.7 -a "$anchor" +root=hafen.example @127.0.0.1 "$@"; }
for name in pegel mx ns1 cam4 schleuse; do
    expect_out "validates-$name" 'fully validated' -- validate "$name.hafen.example" A
done
expect_out denies-validated 'negative response, fully validated' -- validate no-such-name.hafen.example A
rm -f "$anchor"
expect_out nsec3 ' NSEC3 ' -- dig +dnssec -b 127.9.0.7 @127.0.0.1 no-such-name.hafen.example A
expect_no_out no-list 'IN.NSEC ' -- dig +dnssec -b 127.9.0.7 @127.0.0.1 no-such-name.hafen.example A
expect_out lock-outside '203\.0\.113\.77' -- outside schleuse.hafen.example A
expect_out lock-inside '10\.20\.7\.77' -- office schleuse.hafen.example A
expect_no_out not-signed-inside RRSIG -- office +dnssec schleuse.hafen.example A
expect_no_out filtered AAAA -- office kran_3.hafen.example AAAA
