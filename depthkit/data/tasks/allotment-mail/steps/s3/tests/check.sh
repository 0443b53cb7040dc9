set -u
search() { doveadm fetch -u "$1" "flags hdr.subject" mailbox "$2" "${@:3}" | tr -d '\f'; }
count() { doveadm search -u "$1" mailbox "$2" "${@:3}" | grep -c .; }
expect_out rent-filed 'Pacht 3 fuer 2023' -- search gerda Kasse header Subject 'Pacht 3 fuer 2023'
expect_out rent-flagged 'Flagged' -- search gerda Kasse header Subject 'Pacht 3 fuer 2023'
none=$(count gerda Trash header Subject 'Pacht 3 fuer 2023')
expect_eq rent-not-in-inbox "$(count gerda INBOX header Subject 'Pacht 3 fuer 2023')" "$none" int
oldest=$(grep -a '^Subject:' /srv/handover/mail/gerda.Kasse | head -n 1 | cut -d ' ' -f 2-)
expect_out earlier-kept "$oldest" -- search gerda Kasse all
expect_out board-got 'Hecke, zum dritten' -- search vorstand INBOX header From hinrich@gartenverein.example
answer() { doveadm fetch -u hinrich hdr mailbox INBOX header From vorstand@gartenverein.example header Subject Hecke | tr -d '\f'; }
expect_out answered 'Auto-Submitted: auto-replied' -- answer
expect_out answer-from '^From: .*vorstand@gartenverein.example' -- answer
for user in gerda hinrich vorstand; do
    expect_out "duty-$user" 'Arbeitsdienst' -- search $user INBOX header Subject Arbeitsdienst header From hinrich@gartenverein.example
done
expect_eq not-answered "$(count hinrich INBOX header From vorstand@gartenverein.example header Subject Arbeitsdienst)" "$none" int
expect_no_out nothing-bounced 'gartenverein.example.*status=bounced' -- cat /var/log/mail.log
# By number, as Dovecot knows its users: they need not be accounts of the system.
for user in gerda vorstand; do
    expect_eq own-$user "$(stat -c %u "$(doveadm user -f home $user)/.dovecot.sieve")" "$(doveadm user -f uid $user)" int
done
