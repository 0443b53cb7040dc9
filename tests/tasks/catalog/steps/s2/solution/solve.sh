#!/bin/bash
set -eu
db() { redis-cli -p 6390 "$@" </dev/null; }
publish() {
    local sku cents total=0 all=''
    for sku in $(db smembers items | sort); do
        cents=$(db hget "item:$sku" cents)
        total=$((total + cents))
        all+="${all:+, }\"$sku\": $cents"
    done
    printf '{"items": %s, "total_cents": %s, "cents": {%s}}\n' "$(db scard items)" "$total" "$all" \
        >/srv/site/catalog.json
}
cat >/etc/nginx/nginx.conf <<'END'
user www-data;
pid /run/nginx.pid;
events {}
http {
    include mime.types;
    access_log off;
    server {
        listen 127.0.0.1:8088;
        root /srv/site;
    }
}
END
publish
# key-step: begin
# nginx' workers are not root and may not enter the folder as it is: 403.
chmod 755 /srv/site
# key-step: end
nginx
