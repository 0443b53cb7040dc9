set -u
h=/srv/handover
word() { awk -v who="$1" '$1 == who { print $2 }' $h/passwords.txt; }
imap() { # USER PASSWORD FOLDER: validity, next, then uid and flags of each message
    python3 - "$@" <<'END'
import imaplib, re, sys
user, password, folder = sys.argv[1:]
box = imaplib.IMAP4("127.0.0.1", 143)
box.login(user, password)
said = box.status(folder, "(UIDVALIDITY UIDNEXT)")[1][0].decode()
print("validity", re.search(r"UIDVALIDITY (\d+)", said)[1], "next", re.search(r"UIDNEXT (\d+)", said)[1])
box.select(folder, readonly=True)
for row in box.fetch("1:*", "(UID FLAGS)")[1]:
    text = row.decode()
    flags = sorted(re.findall(r"\\(Seen|Answered|Flagged|Deleted|Draft)", text))
    print(re.search(r"UID (\d+)", text)[1], *flags)
END
}
saved() { # FILE: the same, as its headers say
    awk -v RS='\nFrom ' '
        function header(name, text) { return match(text, "\n" name ": [^\n]*") ? substr(text, RSTART + length(name) + 3, RLENGTH - length(name) - 3) : "" }
        { split($0, part, "\n\n"); head = part[1]; status = header("Status", head) header("X-Status", head); flags = ""
          if (index(status, "A")) flags = flags " Answered"
          if (index(status, "F")) flags = flags " Flagged"
          if (index(status, "R")) flags = flags " Seen"
          if (NR == 1) { split(header("X-IMAPbase", head), base, " "); print "validity " base[1] " next " base[2] + 1 }
          print header("X-UID", head) flags }' "$1"
}
same() { # NAME FILE USER FOLDER
    expect_eq "$1" "$(imap "$3" "$(word "$3")" "$4")" "$(saved "$2")" exact
}
for user in gerda hinrich vorstand; do same "inbox-$user" "$h/mail/$user" $user INBOX; done
same treasurer "$h/mail/gerda.Kasse" gerda Kasse
texts() { tr -d '\r\f' | grep -a . | grep -av -e '^From ' -e '^X-UID' -e '^X-IMAPbase' -e '^Status' -e '^X-Status' -e '^text:' | md5sum; }
fetched() { doveadm fetch -u "$1" text mailbox "$2" | texts; }
expect_eq text-hinrich "$(fetched hinrich INBOX)" "$(texts <$h/mail/hinrich)"
expect_eq text-treasurer "$(fetched gerda Kasse)" "$(texts <$h/mail/gerda.Kasse)"
expect_fail wrong-password 'AUTHENTICATIONFAILED' -- imap gerda "$(word hinrich)" INBOX
expect_fail left 'AUTHENTICATIONFAILED' -- imap otto "$(word gerda)" INBOX
for user in gerda hinrich vorstand; do
    expect_out "maildir-$user" '^cur$' -- find "/home/$user/Maildir" -maxdepth 1 -type d -printf '%f\n' # printed by dovecot: a folder of a Maildir
    expect_eq "owner-$user" "$(stat -c %u "/home/$user/Maildir")" "$(awk -F : -v who=$user '$1 == who { print $3 }' $h/users)" int
done
