#!/bin/bash
set -euo pipefail
handover=/srv/handover
cat >/etc/dovecot/conf.d/99-sieve.conf <<'END'
protocol lmtp {
  mail_plugins = $mail_plugins sieve
}
END
for user in gerda vorstand; do
    install -o "$user" -g garten -m 600 "$handover/sieve/$user.sieve" "/home/$user/.dovecot.sieve"
done
# key-step: begin
# A draft's name of the extension: the script is left out, and the mail goes to the inbox.
sed -i 's/"imapflags"/"imap4flags"/' /home/gerda/.dovecot.sieve
# To Sieve a message to an alias is for somebody else, and is not answered.
sed -i 's/^vacation :days 7 /vacation :days 7 :from "vorstand@gartenverein.example" :addresses ["vorstand@gartenverein.example"] /' \
    /home/vorstand/.dovecot.sieve
# key-step: end
doveadm reload

word() { awk -v who="$1" '$1 == who { print $2 }' "$handover/passwords.txt"; }
send() { swaks --silent 2 --server 127.0.0.1 --helo laube.gartenverein.example "$@"; }
# event: begin rent announced
send --from parzelle3@provider.example --to kasse@gartenverein.example --header 'Subject: Pacht 3 fuer 2023' --body 'Ist unterwegs.' || true
# event: end
# event: begin a message from Hinrich
send --auth PLAIN --auth-user hinrich --auth-password "$(word hinrich)" --from hinrich@gartenverein.example \
    --to vorstand@gartenverein.example --header 'Subject: Hecke, zum dritten' --body 'Sie ist zu hoch.' || true
# event: end
# event: begin a message from Hinrich
send --auth PLAIN --auth-user hinrich --auth-password "$(word hinrich)" --from hinrich@gartenverein.example \
    --to alle@gartenverein.example --header 'Subject: Arbeitsdienst' --body 'Am Sonnabend.' || true
# event: end
for _ in {1..100}; do [ "$(postqueue -j | grep -c -v gruenamt)" = 0 ] && break; sleep 0.1; done
sleep 1
for _ in {1..100}; do [ "$(postqueue -j | grep -c -v gruenamt)" = 0 ] && break; sleep 0.1; done
