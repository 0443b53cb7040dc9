set -u
ask() { dig +noall +comments +answer +time=3 +tries=1 -b "$1" -p "$2" @127.0.0.1 "${@:3}"; }
office=127.20.0.7
outside=127.9.0.7
# The list as it was handed over.
listed() { awk '!/^[;@[:space:]]/ && $2 == "CNAME" && $3 == "'"$1"'" { sub(/^\*/, "any", $1); print $1 }' /srv/handover/lib/internal/sperrliste.db; }
for port in 53 5300; do
    for name in $(listed .) www.frachtbrief24.test paketzoll.test www.paketzoll.test; do
        expect_out "blocked-$port-$name" 'status: NXDOMAIN' -- ask $office $port "$name" A
    done
    for name in $(listed intra.hafen.example.); do
        expect_eq "intranet-$port-$name" "$(ask $office $port "$name" A | awk '$4 == "A" { print $5 }')" \
            "$(ask $office 53 intra.hafen.example A | awk '$4 == "A" { print $5 }')"
    done
    expect_no_out "others-$port" 'status: NXDOMAIN|10\.20' -- ask $office $port frachtbrief25.test A
    expect_out "outside-$port" 'status: REFUSED' -- ask $outside $port zoll-portal.test A
    for address in $office $outside; do
        expect_no_out "list-hidden-$port-$address" 'CNAME' -- ask $address $port zoll-portal.test.sperrliste CNAME
    done
    expect_out "lease-$port" '10\.20\.9\.12$' -- ask $office $port waage.lease.hafen.example A
    expect_no_out "no-aaaa-$port" AAAA -- ask $office $port intra.hafen.example AAAA
done
expect_out one-list "transferred serial.*TSIG" -- grep -h 'zone sperrliste/IN.*transferred serial' /var/log/named/ns2.log
text() { named-compilezone -q -f text -k ignore -i none -o - "$1" "$2"; }
expect_out text paketzoll -- text sperrliste /var/lib/ns2/internal/sperrliste.db
