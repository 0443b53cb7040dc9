#!/bin/bash
set -euo pipefail
conf=/etc/bind/named.conf
policy=default
# key-step: begin
# The keys stay only if a policy describes them as they are, and denials only as it says.
policy=as-deposited
cat >/etc/bind/policy.conf <<'END'
dnssec-policy "as-deposited" {
	keys {
		ksk lifetime unlimited algorithm rsasha256 2048;
		zsk lifetime unlimited algorithm rsasha256 1024;
	};
	nsec3param iterations 0 optout no salt-length 0;
};
END
sed -i '1,/^include/s/^include.*/&\ninclude "\/etc\/bind\/policy.conf";/' "$conf"
# key-step: end
sed -i "s/auto-dnssec maintain;/dnssec-policy $policy;/; /nsec3param 1 0 0/d" "$conf"
rndc reconfig
sleep 2
# The registry has the key for years.
ksk=$(awk '$4 == "DS" { print $5 }' /srv/handover/ds-at-registry.txt)
rndc dnssec -checkds -key "$ksk" -when 20190306000000 published hafen.example IN external

# The lock is the harbour's again.
zones=/var/lib/bind
sed -i 's/^;schleuse/schleuse/; s/2022110401/2022113001/' "$zones/external/hafen.example.db"
rndc reload hafen.example IN external >/dev/null
rndc freeze hafen.example IN internal
sed -i 's/2022111803/2022113001/; $a schleuse\tA\t10.20.7.77' "$zones/internal/hafen.example.db"
rndc thaw hafen.example IN internal >/dev/null
for _ in {1..50}; do [ -n "$(dig +short @127.0.0.1 schleuse.hafen.example)" ] && break; sleep 0.1; done
