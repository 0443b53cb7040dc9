set -u
h=/srv/handover
word() { awk -v who="$1" '$1 == who { print $2 }' $h/passwords.txt; }
try() { swaks --server 127.0.0.1 --helo there.example --quit-after RCPT "$@"; }
got() { doveadm fetch -u "$1" "uid hdr.subject" mailbox "$2" header From "$3" | tr -d '\f'; }
next_of() { awk '/^X-IMAPbase:/ { print $3 + 1; exit }' "$1"; }
# What came after the move has the numbers after those that the clients know.
for user in gerda hinrich vorstand; do
    first=$(doveadm fetch -u $user uid mailbox INBOX header From amt@stadt.example header Subject Wasser | awk '/^uid/ { print $2 }')
    next=$(next_of $h/mail/$user)
    if [[ $first =~ ^[0-9]+$ ]] && ((first >= next)); then pass "number-$user"; else fail "number-$user" "has '$first' after '$next'"; fi
    expect_out "all-$user" 'Wasser wird abgestellt' -- got $user INBOX amt@stadt.example
done
expect_out treasurer 'Bescheid 2022' -- got gerda INBOX amt@stadt.example
expect_out kept 'Schluessel' -- got gerda INBOX hinrich@gartenverein.example
waiting() { postqueue -p; }
expect_out waits 'gruenamt@stadt.example' -- waiting
expect_out from-hinrich 'hinrich@gartenverein.example' -- waiting
expect_eq nothing-else-waits "$(postqueue -j | grep -v gruenamt@stadt.example)" "$(grep wasserzettel $h/virtual)" set
# Of what Hinrich sent: others may have been refused that address, as they are to be.
hinrichs() { sed -n 's/^.* \([0-9A-Za-z]*\): from=<hinrich@gartenverein.example>.*/\1/p' /var/log/mail.log | sort -u; }
logged() { hinrichs | while read -r id; do grep -h "$id: to=<gruenamt@stadt.example>" /var/log/mail.log || true; done; }
expect_no_out not-bounced 'status=(bounced|sent|expired)' -- logged
for address in postmaster vorstand gerda kasse alle hinrich+laube; do
    expect_ok "takes-${address/+/.}" -- try --from amt@stadt.example --to "$address@gartenverein.example"
done
for address in nobody otto; do
    expect_fail "refuses-$address" 'User unknown|rejected' -- try --from amt@stadt.example --to "$address@gartenverein.example"
done
expect_fail no-relay 'denied|rejected' -- try --from gerda@gartenverein.example --to somebody@provider.example
expect_ok relay-for-gerda -- try --from gerda@gartenverein.example --to somebody@provider.example \
    --auth LOGIN --auth-user gerda --auth-password "$(word gerda)"
expect_fail wrong-password 'authentication failed|No authentication type succeeded' -- try --from gerda@gartenverein.example \
    --to somebody@provider.example --auth PLAIN --auth-user gerda --auth-password "$(word hinrich)"
size() { postconf -h message_size_limit; }
expect_eq size "$(size)" "$(awk '/^message_size_limit/ { print $3 }' $h/main.cf.old)" int
