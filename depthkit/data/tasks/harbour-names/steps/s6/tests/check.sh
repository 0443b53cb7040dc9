set -u
h=/srv/handover
ask() { dig +noall +comments +answer +time=3 +tries=1 -b "$1" -p 5300 @127.0.0.1 "${@:2}"; }
office=127.20.0.7
outside=127.9.0.7
old_primary() { dig +time=1 +tries=1 +noall +answer @127.0.0.1 -p 53 hafen.example SOA; }
expect_fail old-stopped 'refused|timed out|no servers' -- old_primary
gone() { ! [ -e /var/lib/bind ]; }
expect_ok old-disk-gone -- gone
records() { grep '^[^;]' | awk '$4 != "RRSIG" { $2 = ""; print }' | sort; }
filed() { named-compilezone -q -i none -k ignore -o - "$1" "$2" 2>/dev/null | grep -P "$3" | records; }
served() { local name; for name in "${@:2}"; do ask "$1" "$name" A; done | grep -P '\sA\s' | records | uniq; }
names() { filed "$1" "$2" '\sA\s' | awk '{ print $1 }' | uniq; }
inside=$h/lib/internal/hafen.example.db
out=$h/lib/external/hafen.example.db
# shellcheck disable=SC2046
expect_eq internal "$(served $office $(names hafen.example "$inside"))" "$(filed hafen.example "$inside" '\sA\s')" exact
# shellcheck disable=SC2046
expect_eq external "$(served $outside $(names hafen.example "$out"))" "$(filed hafen.example "$out" '\sA\s')" exact
expect_eq reverse "$(ask $office -x 10.20.7.13 | records)" "$(filed 20.10.in-addr.arpa $h/lib/internal/10.20.db '^13\.7\.')" exact
expect_out pilot-office '10\.20\.2\.41' -- ask $office pilot.hafen.example A
expect_out pilot-outside '203\.0\.113\.91' -- ask $outside pilot.hafen.example A
expect_out lock-office '10\.20\.7\.77' -- ask $office schleuse.hafen.example A
expect_out lease '10\.20\.9\.7$' -- ask $office lager-07.lease.hafen.example A
expect_out lease-back 'waage\.lease' -- ask $office -x 10.20.9.12
expect_out new-outside '203\.0\.113\.92' -- ask $outside waerter.hafen.example A
expect_out new-lease '10\.20\.9\.33' -- ask $office bagger.lease.hafen.example A
entered() { grep -h 'key dhcp-hafen.*adding an RR' /var/log/named/ns2.log; }
expect_out entered "bagger\.lease\.hafen\.example" -- entered
# Outside: the same keys and denials, and a serial above all that ns2 ever fetched.
anchor=$(mktemp)
awk '$4 == "DS" { printf "trust-anchors { %s static-ds %s %s %s \"%s\"; };\n", $1, $5, $6, $7, $8 }' $h/ds-at-registry.txt >"$anchor"
validate() { delv -b $outside -p 5300 -a "$anchor" +root=hafen.example @127.0.0.1 "$@"; }
for name in waerter pilot pegel; do expect_out "validates-$name" 'fully validated' -- validate $name.hafen.example A; done
expect_out denies-validated 'negative response, fully validated' -- validate no-such-name.hafen.example A
rm -f "$anchor"
expect_no_out no-list 'IN.NSEC ' -- dig +dnssec -b $outside -p 5300 @127.0.0.1 no-such-name.hafen.example A
in_use() { local key; for key in "$h"/lib/keys/*.key; do grep -q '^; Delete:' "$key" || grep -v '^;' "$key" | cut -d ' ' -f 4- | tr -d ' '; done; }
expect_eq keys "$(ask $outside hafen.example DNSKEY | awk '$4 == "DNSKEY" { $1 = $2 = $3 = $4 = ""; print }' | tr -d ' ')" "$(in_use)" set
fetched=$(grep -h 'hafen.example/IN/external: transferred serial' /var/log/named/ns2.log* | sed 's/.*transferred serial \([0-9]*\).*/\1/' | sort -n | tail -n 1)
serial=$(ask $outside hafen.example SOA | awk '$4 == "SOA" { print $7 }')
if [[ -n $fetched && -n $serial ]] && ((serial > fetched)); then pass serial; else fail serial "'$serial' after '$fetched'"; fi
for name in zoll-portal.test www.paketzoll.test; do expect_out "blocked-$name" NXDOMAIN -- ask $office "$name" A; done
expect_no_out no-aaaa AAAA -- ask $office pegel.hafen.example AAAA
key=$(mktemp)
grep -A 3 'key \"dhcp-hafen\"' $h/bind/keys.conf >"$key"
change() { printf 'server 127.0.0.1 5300\nlocal 127.20.0.67\nzone hafen.example\nupdate add %s\nsend\n' "$1" | nsupdate -k "$key"; }
expect_fail refused REFUSED -- change 'www2.hafen.example 300 A 10.20.9.66'
printf 'server 127.0.0.1 5300\nlocal 127.20.0.67\nzone hafen.example\nupdate delete www2.hafen.example\nsend\n' | nsupdate -k "$key" 2>/dev/null
rm -f "$key"
for address in 127.0.0.1 $office $outside; do
    expect_no_out "no-transfer-$address" 'IN.SOA' -- dig -b $address -p 5300 @127.0.0.1 hafen.example AXFR
done
