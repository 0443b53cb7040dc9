#!/bin/bash
set -euo pipefail
conf=/etc/ns2/named.conf
zones=/var/lib/ns2
rndc2() { rndc -k /etc/ns2/rndc.key -p 954 "$@"; }
tell() { dig +short -p 5300 "$@" @127.0.0.1; }

serial=$(tell hafen.example SOA | cut -d ' ' -f 3)
# event: begin the old primary is stopped
pid=$(rndc stop -p | grep -o '[0-9]*$')
for _ in {1..100}; do [ -e "/proc/$pid" ] || break; sleep 0.1; done
# event: end
rm -rf /var/lib/bind

# What ns2 has got, with the changes that are only in its journals.
install -d -o bind -g bind "$zones/keys" "$zones/primary"
for each in internal/hafen.example.db:hafen.example internal/10.20.db:20.10.in-addr.arpa \
    internal/sperrliste.db:sperrliste external/hafen.example.db:hafen.example; do
    from=${each%%:*}
    named-compilezone -q -j -k ignore -i none -s full -o "$zones/primary/${from//\//-}" "${each#*:}" "$zones/$from"
done
cp /srv/handover/lib/keys/* "$zones/keys/"
plain=$zones/primary/external-hafen.example.db
# key-step: begin
# Signed once, a zone cannot be signed again from the same file: its CDS have no keys there.
sed -i -E '/\sIN\s+(RRSIG|NSEC|NSEC3|NSEC3PARAM|DNSKEY|CDS|CDNSKEY|TYPE65534)\s/d' "$plain"
# key-step: end
# Above all that has been seen outside.
sed -i -E "s/(SOA\s+\S+ \S+) [0-9]+/\1 $((serial + 100))/" "$plain"
printf 'waerter.hafen.example.\t3600\tIN\tA\t203.0.113.92\n' >>"$plain"
chown -R bind:bind "$zones"

sed -i -e '1s/^/include "\/etc\/bind\/policy.conf";\n/' -e 's/type secondary/type primary/' \
    -e '/primaries {/d; /masterfile-format/d; /transfer-source/d' \
    -e 's|"/var/lib/ns2/internal/\(.*\)"|"/var/lib/ns2/primary/internal-\1"|' \
    -e 's|"/var/lib/ns2/external/\(.*\)";|"/var/lib/ns2/primary/external-\1";\n\t\tkey-directory "/var/lib/ns2/keys";\n\t\tdnssec-policy as-deposited;\n\t\tinline-signing yes;|' \
    -e '/internal-hafen/,/};/s/allow-update-forwarding.*/update-policy { grant dhcp-hafen subdomain lease.hafen.example. A TXT DHCID; };/' \
    -e '/internal-10.20/,/};/s/allow-update-forwarding.*/update-policy { grant dhcp-hafen zonesub PTR; };/' "$conf"
# key-step: begin
# A primary is stricter about names than a secondary.
sed -i 's/^\tversion "none";/&\n\tcheck-names primary ignore;/' "$conf"
# key-step: end
rndc2 reconfig
for _ in {1..100}; do [ -n "$(tell waerter.hafen.example)" ] && [ -n "$(tell hafen.example NSEC3PARAM)" ] && break; sleep 0.1; done
ksk=$(awk '$4 == "DS" { print $5 }' /srv/handover/ds-at-registry.txt)
rndc2 dnssec -checkds -key "$ksk" -when 20190306000000 published hafen.example IN external || true

key=$(mktemp)
sed -n '/dhcp-hafen/,/^};/p' /etc/bind/keys.conf >"$key"
# event: begin a lease registered at the new primary
nsupdate -k "$key" <<'END' || true
server 127.0.0.1 5300
local 127.20.0.67
zone hafen.example
update add bagger.lease.hafen.example 300 A 10.20.9.33
send
END
# event: end
rm -f "$key"
