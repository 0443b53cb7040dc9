#!/bin/bash
set -euo pipefail
shared=/var/lib/dovecot/shared
install -d -m 2770 -o root -g garten "$shared"
cat >/etc/dovecot/conf.d/99-shared.conf <<'END'
mail_plugins = $mail_plugins acl
protocol imap {
  mail_plugins = $mail_plugins imap_acl
}
namespace shared {
  type = shared
  separator = /
  prefix = shared/%%u/
  location = maildir:%%h/Maildir:INDEXPVT=~/Maildir/shared/%%u
  subscriptions = no
  list = children
}
plugin {
  acl = vfile
}
END
# key-step: begin
# Rights alone do not show a folder to anybody: whose folders there are to see is kept elsewhere.
cat >>/etc/dovecot/conf.d/99-shared.conf <<END
plugin {
  acl_shared_dict = file:$shared/folders.db
}
# And each is told of nobody's mailbox but his own.
service auth {
  unix_listener auth-userdb {
    mode = 0777
  }
}
END
# key-step: end
doveadm reload
sleep 1
doveadm acl set -u vorstand INBOX user=gerda lookup read write write-seen
doveadm acl set -u vorstand INBOX user=hinrich lookup read write write-seen
doveadm acl set -u gerda Kasse user=hinrich lookup read write-seen
# key-step: begin
# Each works as himself on the disk, where the mailboxes are closed to the others.
for user in gerda vorstand; do
    chmod 710 "/home/$user"
    chmod -R g+rwX "/home/$user/Maildir"
    find "/home/$user/Maildir" -type d -exec chmod g+s {} +
done
chmod -R g+rw "$shared"
# key-step: end

word() { awk -v who="$1" '$1 == who { print $2 }' /srv/handover/passwords.txt; }
# event: begin the minutes sent
swaks --silent 2 --server 127.0.0.1 --helo laube.gartenverein.example --auth PLAIN --auth-user gerda \
    --auth-password "$(word gerda)" --from gerda@gartenverein.example --to vorstand@gartenverein.example \
    --header 'Subject: Protokoll' --body 'Zum Unterschreiben.' || true
# event: end
for _ in {1..100}; do [ "$(postqueue -j | grep -c -v gruenamt)" = 0 ] && break; sleep 0.1; done
python3 - "$(word gerda)" <<'END' || true
import imaplib, sys
box = imaplib.IMAP4("127.0.0.1", 143)
box.login("gerda", sys.argv[1])
box.select("shared/vorstand")
box.store("1:*", "+FLAGS", "(\\Seen)")
box.logout()
END
