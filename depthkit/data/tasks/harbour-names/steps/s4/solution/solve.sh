#!/bin/bash
set -euo pipefail
conf=/etc/bind/named.conf
second=/etc/ns2/named.conf
rndc2() { rndc -k /etc/ns2/rndc.key -p 954 "$@"; }

# What the DHCP server may enter.
sed -i -e '/"\/var\/lib\/bind\/internal\/hafen.example.db"/,/allow-update/s/allow-update .*/update-policy { grant dhcp-hafen subdomain lease.hafen.example. A TXT DHCID; };/' \
    -e '/"\/var\/lib\/bind\/internal\/10.20.db"/,/allow-update/s/allow-update .*/update-policy { grant dhcp-hafen zonesub PTR; };/' "$conf"
# key-step: begin
# A forwarded update comes from ns2, not from the office: its own key must lead into the view.
sed -i 's/key ns2-internal; office; };/key ns2-internal; key dhcp-hafen; office; };/' "$conf"
# key-step: end
rndc reconfig

# ns2 passes on what it gets.
sed -i -e '1s/^/include "\/etc\/bind\/keys.conf";\n/' \
    -e '/view "internal"/,/^};/s/\(\t*\)primaries .*/&\n\1allow-update-forwarding { key dhcp-hafen; };/' "$second"
rndc2 reconfig

key=$(mktemp)
sed -n '/dhcp-hafen/,/^};/p' /etc/bind/keys.conf >"$key"
# event: begin leases registered by the DHCP server's way
nsupdate -k "$key" <<'END' || true
server 127.0.0.1 5300
local 127.20.0.67
zone hafen.example
update add lager-07.lease.hafen.example 300 A 10.20.9.7
update add waage.lease.hafen.example 300 A 10.20.9.12
send
zone 20.10.in-addr.arpa
update add 7.9.20.10.in-addr.arpa 300 PTR lager-07.lease.hafen.example.
update add 12.9.20.10.in-addr.arpa 300 PTR waage.lease.hafen.example.
send
END
# event: end
rm -f "$key"
arrived() { dig +short -b 127.20.0.7 -p 5300 @127.0.0.1 "$@"; }
for _ in {1..100}; do [ -n "$(arrived waage.lease.hafen.example)" ] && [ -n "$(arrived -x 10.20.9.12)" ] && break; sleep 0.1; done
