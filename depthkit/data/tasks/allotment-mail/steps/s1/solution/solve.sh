#!/bin/bash
set -euo pipefail
handover=/srv/handover
conf=/etc/dovecot/conf.d
groupadd -g 2001 garten
grep -v '^#' "$handover/users" | while IFS=: read -r name hash uid gid gecos home _; do
    useradd -M -u "$uid" -g "$gid" -c "$gecos" -d "$home" -s /usr/sbin/nologin "$name"
    install -d -m 700 -o "$uid" -g "$gid" "$home"
    echo "$name:{MD5-CRYPT}$hash:$uid:$gid:$gecos:$home::"
done >/etc/dovecot/users
chown root:dovecot /etc/dovecot/users
chmod 640 /etc/dovecot/users
sed -i 's/^!include auth-system/#&/; s/^#\(!include auth-passwdfile\)/\1/' "$conf/10-auth.conf"
sed -i 's|^mail_location = .*|mail_location = maildir:~/Maildir|' "$conf/10-mail.conf"
# key-step: begin
# What is mirrored needs one separator on both sides, and mbox has another than Maildir.
sed -i 's|^  #separator = *$|  separator = /|' "$conf/10-mail.conf"
# key-step: end
sed -i 's|^#log_path = .*|log_path = /var/log/dovecot.log|' "$conf/10-logging.conf"
dovecot
for _ in {1..50}; do [ -S /run/dovecot/auth-userdb ] && break; sleep 0.1; done
# Not an import, which would number anew: the clients' copies stay good.
work=$(mktemp -d)
for name in gerda hinrich vorstand; do
    mkdir -p "$work/$name"
    cp "$handover/mail/$name" "$work/$name/inbox"
    for each in "$handover/mail/$name".*; do
        [ ! -e "$each" ] || cp "$each" "$work/$name/${each##*.}"
    done
    chown -R "$name" "$work"
    doveadm backup -u "$name" -R "mbox:$work/$name:INBOX=$work/$name/inbox"
done
rm -rf "$work"
