#!/bin/bash
set -euo pipefail
useradd --system --home-dir /srv/git --shell /usr/sbin/nologin git
tar -C /srv -xzf /srv/handover/repositories.tar.gz
mv /srv/repositories /srv/git
chown -R git:git /srv/git
install -o root -g www-data -m 640 /srv/handover/htpasswd /etc/nginx/git.htpasswd
grep -E '^(wanda|onno):' /srv/handover/htpasswd >/etc/nginx/git-write.htpasswd

# key-step: begin
# The house's repository points to a branch that it does not have.
runuser -u git -- git -C /srv/git/lichtplan.git symbolic-ref HEAD refs/heads/spielzeit
# The tour's borrows objects from where the house's was on the old machine.
echo /srv/git/lichtplan.git/objects >/srv/git/gastspiel.git/objects/info/alternates
# key-step: end

body=
# key-step: begin
body='client_max_body_size 0;'
# key-step: end
backend="include fastcgi_params;
        fastcgi_param SCRIPT_FILENAME /usr/lib/git-core/git-http-backend;
        fastcgi_param GIT_PROJECT_ROOT /srv/git;
        fastcgi_param GIT_HTTP_EXPORT_ALL 1;
        fastcgi_param PATH_INFO \$1;
        fastcgi_pass unix:/run/git-http.sock;"
cat >/etc/nginx/sites-available/git <<END
server {
    listen 127.0.0.1:8080;
    auth_basic "Beleuchtung";
    $body
    location ~ ^/git(/.*/git-receive-pack)\$ {
        auth_basic_user_file /etc/nginx/git-write.htpasswd;
        $backend
    }
    location ~ ^/git(/.*)\$ {
        auth_basic_user_file /etc/nginx/git.htpasswd;
        $backend
    }
}
END
ln -sf /etc/nginx/sites-available/git /etc/nginx/sites-enabled/git
rm -f /etc/nginx/sites-enabled/default
env -i HOME=/srv/git PATH="$PATH" spawn-fcgi -s /run/git-http.sock -u git -g git -U www-data -G www-data -M 600 -F 2 -- /usr/sbin/fcgiwrap
nginx

work=$(mktemp -d)
git clone -q http://onno:Schnuerboden@127.0.0.1:8080/git/requisite.git "$work/requisite"
cd "$work/requisite"
git config user.name 'Onno Reints'
git config user.email onno@stadttheater.example
head -c 5M /dev/urandom >samowar.jpg
git add samowar.jpg
git commit -q -m 'Bild des Samowars'
git push -q origin HEAD || true
rm -rf "$work"
