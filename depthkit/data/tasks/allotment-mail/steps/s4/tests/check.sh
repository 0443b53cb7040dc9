set -u
h=/srv/handover
word() { awk -v who="$1" '$1 == who { print $2 }' $h/passwords.txt; }
imap() { # USER DO [FOLDER]
    python3 - "$1" "$(word "$1")" "${@:2}" <<'END'
import imaplib, re, sys
user, password, do, *rest = sys.argv[1:]
box = imaplib.IMAP4("127.0.0.1", 143)
box.login(user, password)
folder = rest[0] if rest else ""
if do == "list":
    print("\n".join(row.decode().split('"/" ')[-1].strip('"') for row in box.list()[1] if b"Noselect" not in row))
elif do == "status":
    print(re.sub(r".*\(|\)", "", box.status(folder, "(MESSAGES UNSEEN)")[1][0].decode()))
elif do == "subjects":
    print(box.select(folder, readonly=True))
    for part in box.fetch("1:*", "(FLAGS BODY.PEEK[HEADER.FIELDS (SUBJECT)] BODY.PEEK[TEXT])")[1]:
        print(*(each.decode("latin-1").replace("\r\n", " ") for each in part) if isinstance(part, tuple) else "")
elif do == "delete":
    try:
        box.select(folder)
    except imaplib.IMAP4.readonly:
        sys.exit() # the folder as a whole cannot be written to
    box.store("1", "+FLAGS", "(\\Deleted)")
    print(box.fetch("1", "(FLAGS)")[1][0].decode())
    box.store("1", "-FLAGS", "(\\Deleted)")
    box.unselect()
elif do == "add":
    print(box.append(folder, None, None, b"Subject: probe\r\n\r\nprobe\r\n"))
END
}
expect_eq gerda-sees "$(imap gerda list | grep '^shared')" shared/vorstand set
expect_eq hinrich-sees "$(imap hinrich list | grep '^shared')" shared/vorstand,shared/gerda/Kasse set
for user in gerda hinrich; do
    expect_out "reads-protocol-$user" 'Protokoll' -- imap $user subjects shared/vorstand
    expect_out "reads-text-$user" 'Zum Unterschreiben|quoted-printable|Protokoll' -- imap $user subjects shared/vorstand
    expect_out "reads-old-$user" 'Hecke, zum dritten' -- imap $user subjects shared/vorstand
    expect_no_out "deletes-nothing-$user" 'Deleted' -- imap $user delete shared/vorstand
    expect_out "adds-nothing-$user" 'NO' -- imap $user add shared/vorstand
done
filed() { imap hinrich subjects shared/gerda/Kasse | grep -A 1 'Flagged'; }
expect_out treasurer-flagged 'Pacht 3 fuer 2023' -- filed
oldest=$(grep -a '^Subject:' $h/mail/gerda.Kasse | head -n 1 | cut -d ' ' -f 2-)
expect_out treasurer-old "$oldest" -- imap hinrich subjects shared/gerda/Kasse
expect_no_out treasurer-no-delete 'Deleted' -- imap hinrich delete shared/gerda/Kasse
expect_fail no-inbox "Mailbox doesn't exist|No permission|illegal in state|Permission denied" -- imap hinrich subjects shared/gerda
# Read by one is not read by another.
unseen() { imap "$1" status "$2" | sed 's/.*UNSEEN //'; }
all() { imap "$1" status "$2" | sed 's/MESSAGES \([0-9]*\).*/\1/'; }
expect_eq same-number "$(all gerda shared/vorstand)" "$(all vorstand INBOX)" int
expect_eq gerda-has-read "$(unseen gerda shared/vorstand)" "$(doveadm search -u vorstand mailbox Trash all 2>/dev/null | grep -c .)" int
left=$(unseen vorstand INBOX)
if [[ $left =~ ^[0-9]+$ ]] && ((left > 0)); then pass board-has-not; else fail board-has-not "'$left' are unread for vorstand"; fi
expect_out answered 'Auto-Submitted: auto-replied' -- doveadm fetch -u hinrich hdr mailbox INBOX header From vorstand@gartenverein.example header Subject Hecke
for user in gerda hinrich vorstand; do
    closed() { ! runuser -u nobody -- ls "/home/$1/Maildir/cur"; }
    expect_ok "closed-$user" -- closed $user
done
