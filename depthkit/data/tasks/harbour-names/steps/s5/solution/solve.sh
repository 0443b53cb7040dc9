#!/bin/bash
set -euo pipefail
conf=/etc/bind/named.conf
second=/etc/ns2/named.conf
rndc2() { rndc -k /etc/ns2/rndc.key -p 954 "$@"; }

list=/var/lib/bind/internal/sperrliste.db
sed -i 's/2022090701/2022113001/' "$list"
cat >>"$list" <<'END'
*.frachtbrief24.test		CNAME	.
paketzoll.test			CNAME	.
*.paketzoll.test		CNAME	.
END

way=
# key-step: begin
# The policy waits for what the name would resolve to, unless told otherwise: without uplink it is never applied.
way=' qname-wait-recurse no'
# key-step: end
sed -i -e "s|^\(\s*\)//response-policy.*|\1response-policy { zone \"sperrliste\"; }$way;|" \
    -e 's|^\(\s*\)//zone "sperrliste".*|\1zone "sperrliste" { type master; file "/var/lib/bind/internal/sperrliste.db"; allow-query { key ns2-internal; }; };|' \
    -e '/ready, never switched on/d' "$conf"
rndc reconfig

at=$(grep -n '^view "external"' "$second" | cut -d : -f 1)
{
    head -n "$((at - 2))" "$second"
    cat <<END
	response-policy { zone "sperrliste"; }$way;
	zone "sperrliste" {
		type secondary;
		file "/var/lib/ns2/internal/sperrliste.db";
		primaries { 127.0.0.1 key ns2-internal; };
		masterfile-format text;
		allow-query { none; };
	};
END
    tail -n "+$((at - 1))" "$second"
} >"$second.new"
cat "$second.new" >"$second"
rm "$second.new"
rndc2 reconfig
for _ in {1..100}; do [ -s /var/lib/ns2/internal/sperrliste.db ] && break; sleep 0.1; done
