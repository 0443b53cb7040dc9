#!/bin/bash
set -euo pipefail
handover=/srv/handover
conf=/etc/dovecot/conf.d
{
    cat "$handover/virtual"
    echo "postmaster@gartenverein.example hinrich"
} >/etc/postfix/virtual
sed 's/^wasser:.*/wasser: hinrich/' "$handover/aliases" >/etc/aliases
postmap /etc/postfix/virtual
postalias /etc/aliases
postconf -e 'myhostname = laube.gartenverein.example' 'mydestination = $myhostname, localhost' \
    'virtual_alias_domains = gartenverein.example' 'virtual_alias_maps = hash:/etc/postfix/virtual' \
    'message_size_limit = 20480000' 'mynetworks =' 'inet_interfaces = loopback-only' \
    'inet_protocols = ipv4' 'maillog_file = /var/log/mail.log' \
    'smtpd_sasl_auth_enable = yes' 'smtpd_sasl_type = dovecot' 'smtpd_sasl_path = private/auth' \
    'smtpd_relay_restrictions = permit_sasl_authenticated, reject_unauth_destination' \
    'mailbox_transport = lmtp:unix:private/dovecot-lmtp' 'defer_transports = smtp'
cat >"$conf/99-postfix.conf" <<'END'
service lmtp {
  unix_listener /var/spool/postfix/private/dovecot-lmtp {
    mode = 0600
    user = postfix
    group = postfix
  }
}
service auth {
  unix_listener /var/spool/postfix/private/auth {
    mode = 0660
    user = postfix
    group = postfix
  }
}
auth_mechanisms = plain login
END
# key-step: begin
# Postfix hands over whole addresses, and nobody here is called by one.
echo 'auth_username_format = %Ln' >>"$conf/99-postfix.conf"
# key-step: end
doveadm reload
postfix start
for _ in {1..50}; do (: <>/dev/tcp/127.0.0.1/25) 2>/dev/null && break; sleep 0.1; done

send() { swaks --silent 2 --server 127.0.0.1 --helo laube.gartenverein.example "$@"; }
# event: begin a message to the treasurer
send --from amt@stadt.example --to kasse@gartenverein.example --header 'Subject: Bescheid 2022' --body 'Anbei.' || true
# event: end
# event: begin a message to all
send --from amt@stadt.example --to alle@gartenverein.example --header 'Subject: Wasser wird abgestellt' --body 'Am Montag.' || true
# event: end
# event: begin a message to the world
send --auth PLAIN --auth-user hinrich --auth-password "$(awk '$1 == "hinrich" { print $2 }' "$handover/passwords.txt")" \
    --from hinrich@gartenverein.example --to gruenamt@stadt.example --header 'Subject: Antrag' --body 'Siehe oben.' || true
# event: end
for _ in {1..100}; do [ "$(postqueue -j | grep -c -v gruenamt)" = 0 ] && break; sleep 0.1; done
