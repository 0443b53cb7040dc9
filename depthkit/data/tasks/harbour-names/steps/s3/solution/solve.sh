#!/bin/bash
set -euo pipefail
conf=/etc/bind/named.conf
install -d -o root -g bind -m 2750 /etc/ns2
install -d -o bind -g bind /var/lib/ns2 /var/cache/ns2

# key-step: begin
# Both views are fetched from one address by another: a key says which one is meant, also in a notify.
for view in internal external; do tsig-keygen -a hmac-sha256 "ns2-$view"; done >/etc/bind/ns2-keys.conf
chown root:bind /etc/bind/ns2-keys.conf
chmod 640 /etc/bind/ns2-keys.conf
sed -i '1,/^include/s/^include.*/&\ninclude "\/etc\/bind\/ns2-keys.conf";/' "$conf"
sed -i -e 's/match-clients { office; };/match-clients { !key ns2-external; key ns2-internal; office; };\n\tallow-transfer { key ns2-internal; };\n\talso-notify { 127.0.0.1 port 5300 key ns2-internal; };/' \
    -e 's/match-clients { any; };/match-clients { !key ns2-internal; any; };\n\talso-notify { 127.0.0.1 port 5300 key ns2-external; };/' \
    -e 's/allow-transfer { seconds; };/allow-transfer { key ns2-external; };/' "$conf"
# key-step: end
rndc reconfig

zone() { # NAME FILE VIEW
    cat <<END
	zone "$1" {
		type secondary;
		file "/var/lib/ns2/$3/$2.db";
		primaries { 127.0.0.1${keyed:+ key ns2-$3}; };
		masterfile-format text;
	};
END
}
keyed=
# key-step: begin
keyed=yes
# key-step: end
install -d -o bind -g bind /var/lib/ns2/internal /var/lib/ns2/external
tsig-keygen -a hmac-sha256 rndc-key >/etc/ns2/rndc.key
{
    [ -z "$keyed" ] || echo 'include "/etc/bind/ns2-keys.conf";'
    cat <<'END'
include "/etc/ns2/rndc.key";
acl office { 10.20.0.0/16; 127.20.0.0/16; };
options {
	directory "/var/cache/ns2";
	pid-file "/run/named/ns2.pid";
	session-keyfile "/run/named/ns2-session.key";
	listen-on port 5300 { 127.0.0.1; };
	listen-on-v6 { none; };
	transfer-source 127.0.0.2;
	notify no;
	allow-transfer { none; };
	dnssec-validation no;
	version "none";
};
controls { inet 127.0.0.1 port 954 allow { localhost; } keys { "rndc-key"; }; };
logging {
	channel log { file "/var/log/named/ns2.log" versions 3 size 5m; print-time yes; print-category yes; severity info; };
	category default { log; };
	category lame-servers { null; };
};
view "internal" {
END
    echo "	match-clients { ${keyed:+!key ns2-external; key ns2-internal; }office; };"
    cat <<'END'
	recursion yes;
	plugin query "filter-aaaa.so" {
		filter-aaaa-on-v4 yes;
		filter-aaaa { office; };
	};
END
    zone hafen.example hafen.example internal
    zone 20.10.in-addr.arpa 10.20 internal
    echo '};'
    echo 'view "external" {'
    echo "	match-clients { ${keyed:+!key ns2-internal; }any; };"
    echo '	recursion no;'
    zone hafen.example hafen.example external
    echo '};'
} >/etc/ns2/named.conf
chown root:bind /etc/ns2/*
chmod 640 /etc/ns2/*
named -u bind -c /etc/ns2/named.conf
for _ in {1..100}; do [ -s /var/lib/ns2/external/hafen.example.db ] && [ -s /var/lib/ns2/internal/10.20.db ] && break; sleep 0.1; done

# A change, to see it arrive.
zones=/var/lib/bind
sed -i 's/2022113001/2022113002/; $a pilot\tA\t203.0.113.91' "$zones/external/hafen.example.db"
rndc reload hafen.example IN external >/dev/null
rndc freeze hafen.example IN internal
sed -i 's/2022113001/2022113002/; $a pilot\tA\t10.20.2.41' "$zones/internal/hafen.example.db"
rndc thaw hafen.example IN internal >/dev/null
pilot() { dig +short -b "$1" -p 5300 @127.0.0.1 pilot.hafen.example; }
for _ in {1..100}; do [ -n "$(pilot 127.20.0.7)" ] && [ -n "$(pilot 127.9.0.7)" ] && break; sleep 0.1; done
