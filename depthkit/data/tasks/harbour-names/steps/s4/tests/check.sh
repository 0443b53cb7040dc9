set -u
ask() { dig +noall +answer +time=3 +tries=1 -b "$1" -p "$2" @127.0.0.1 "${@:3}"; }
office=127.20.0.7
outside=127.9.0.7
for port in 53 5300; do
    expect_out "lease-a-$port" '10\.20\.9\.7$' -- ask $office $port lager-07.lease.hafen.example A
    expect_out "lease-b-$port" '10\.20\.9\.12$' -- ask $office $port waage.lease.hafen.example A
    expect_out "back-a-$port" 'lager-07\.lease\.hafen\.example' -- ask $office $port -x 10.20.9.7
    expect_out "back-b-$port" 'waage\.lease\.hafen\.example' -- ask $office $port -x 10.20.9.12
    expect_no_out "not-outside-$port" '10\.20\.' -- ask $outside $port waage.lease.hafen.example A
done
expect_eq serial "$(ask $office 5300 hafen.example SOA)" "$(ask $office 53 hafen.example SOA)" exact
# The way that they came: to ns2, and from there.
passed_on() { grep -h 'key dhcp-hafen.*forwarding update' /var/log/named/ns2.log; }
entered() { grep -h 'key dhcp-hafen.*adding an RR' /var/log/named/named.log; }
expect_out passed-on 'view internal: forwarding update' -- passed_on
expect_out entered-lager 'lager-07\.lease\.hafen\.example' -- entered
expect_out entered-waage 'waage\.lease\.hafen\.example' -- entered
# What is refused changes nothing.
key=$(mktemp)
grep -A 3 'key \"dhcp-hafen\"' /srv/handover/bind/keys.conf >"$key"
change() { # PORT ZONE UPDATE [no key]
    printf 'server 127.0.0.1 %s\nlocal 127.20.0.67\nzone %s\nupdate add %s\nsend\n' "$1" "$2" "$3" |
        if [ -n "${4-}" ]; then nsupdate; else nsupdate -k "$key"; fi
}
for port in 53 5300; do
    expect_fail "name-refused-$port" REFUSED -- change $port hafen.example 'www2.hafen.example 300 A 10.20.9.66'
    expect_fail "type-refused-$port" REFUSED -- change $port hafen.example 'x.lease.hafen.example 300 MX 5 mx.hafen.example.'
    expect_fail "keyless-refused-$port" REFUSED -- change $port hafen.example 'x.lease.hafen.example 300 A 10.20.9.66' keyless
done
# Where it was not refused, it goes again.
for name in www2 x.lease; do
    printf 'server 127.0.0.1\nlocal 127.20.0.67\nzone hafen.example\nupdate delete %s.hafen.example\nsend\n' $name | nsupdate -k "$key" 2>/dev/null
done
rm -f "$key"
expect_out still-there '10\.20\.7\.77' -- ask $office 5300 schleuse.hafen.example A
expect_out still-outside '203\.0\.113\.91' -- ask $outside 5300 pilot.hafen.example A
expect_no_out no-aaaa AAAA -- ask $office 5300 pegel.hafen.example AAAA
