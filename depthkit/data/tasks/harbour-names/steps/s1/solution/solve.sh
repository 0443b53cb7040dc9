#!/bin/bash
set -euo pipefail
handover=/srv/handover
conf=/etc/bind/named.conf
cp "$handover/bind/named.conf" "$conf"
cp -r "$handover"/lib/* /var/lib/bind/
chown -R bind:bind /var/lib/bind
chmod 600 /var/lib/bind/keys/*.private
install -d -o bind -g bind /var/log/named /run/named

# What is gone since 9.10, and this machine's address.
sed -i -E '/^\s*(dnssec-enable|dnssec-lookaside|acache-enable|max-acache-size|cleaning-interval|additional-from-auth) /d' "$conf"
sed -i -E 's/listen-on \{.*/listen-on { 127.0.0.1; };/; /^\s*filter-aaaa/d' "$conf"
# Debian's rndc has a key by the same name, which is not MD5.
sed '/rndc-key/,/^};/d' "$handover/bind/keys.conf" >/etc/bind/keys.conf
sed -i '1,/^include/s/^include.*/&\ninclude "\/etc\/bind\/rndc.key";/' "$conf"
chown root:bind /etc/bind/keys.conf
chmod 640 /etc/bind/keys.conf
# key-step: begin
# The filter is a plugin now, of the view.
sed -i 's|^\(\s*\)// the office has no IPv6 yet.*|&\n\1plugin query "filter-aaaa.so" {\n\1\tfilter-aaaa-on-v4 yes;\n\1\tfilter-aaaa { office; };\n\1};|' "$conf"
# key-step: end
named -u bind
for _ in {1..50}; do rndc status >/dev/null 2>&1 && break; sleep 0.1; done
# key-step: begin
# The way of denying was a command, not configuration: it stood in the signed zone, which was not copied.
rndc signing -nsec3param 1 0 0 - hafen.example IN external >/dev/null
for _ in {1..50}; do [ -n "$(dig +short @127.0.0.1 hafen.example NSEC3PARAM)" ] && break; sleep 0.1; done
# key-step: end
