#!/bin/bash
set -euo pipefail
repository=/srv/git/lichtplan.git
as_git() { (cd / && runuser -u git -- git -C "$repository" "$@"); }

# Who signs, and what the server gives out to be signed.
awk '{ print $3, "namespaces=\"git\"", $1, $2 }' /srv/handover/keys/*.pub >/srv/git/signers
chown git:git /srv/git/signers
as_git config gpg.format ssh
as_git config gpg.ssh.allowedSignersFile /srv/git/signers
as_git config receive.certNonceSeed "$(od -An -tx1 -N 20 /dev/urandom | tr -d ' \n')"
# key-step: begin
# Over HTTP the nonce comes from another request than the push: it is older, by as long as signing takes.
as_git config receive.certNonceSlop 120
# key-step: end

cat >"$repository/hooks/pre-receive" <<'END'
#!/bin/bash
# Branches and tags change by signed pushes alone, each in one's own name.
refuse() { echo "refused: $*" >&2; exit 1; }
[ -n "${GIT_PUSH_CERT-}" ] || refuse 'the push is not signed'
[ "$GIT_PUSH_CERT_STATUS" = G ] || refuse 'nobody here knows the signature'
[ "$GIT_PUSH_CERT_NONCE_STATUS" = OK ] || refuse 'the signature is not made for this push'
[ "${GIT_PUSH_CERT_SIGNER%%@*}" = "${REMOTE_USER-}" ] || refuse "$REMOTE_USER signs as $GIT_PUSH_CERT_SIGNER"
END
hook=$repository/hooks/post-receive
mv "$hook" "$repository/hooks/board"
cat >"$hook" <<'END'
#!/bin/bash
# Keep the certificate with what it brought, then see to the notice board.
END
# key-step: begin
# Where nobody is at home, Git does not know who notes something.
cat >>"$hook" <<'END'
export GIT_COMMITTER_NAME="$REMOTE_USER" GIT_COMMITTER_EMAIL="$GIT_PUSH_CERT_SIGNER"
export GIT_AUTHOR_NAME="$REMOTE_USER" GIT_AUTHOR_EMAIL="$GIT_PUSH_CERT_SIGNER"
END
# key-step: end
cat >>"$hook" <<'END'
lines=$(cat)
while read -r _ new ref; do
    case $ref in refs/heads/*) ;; *) continue ;; esac
    [ "${new//0/}" ] || continue
    git notes --ref certs add -f -C "$GIT_PUSH_CERT" "$new"
done <<<"$lines"
exec "${0%/*}/board" <<<"$lines"
END
chown git:git "$repository"/hooks/*
chmod 755 "$repository"/hooks/*

work=$(mktemp -d)
git clone -q http://wanda:Souffleuse@127.0.0.1:8080/git/lichtplan.git "$work/lichtplan"
cd "$work/lichtplan"
git config user.name 'Wanda Kuhlmann'
git config user.email wanda@stadttheater.example
git config gpg.format ssh
git config user.signingKey /srv/handover/keys/wanda
printf '  3;Fluter;L230;60\n' >>plaene/hamlet.csv
git commit -q -a -m 'Hamlet: Fluter am Rundhorizont'
# event: begin signed push
git push -q --signed origin spielzeit
# event: end
rm -rf "$work"
