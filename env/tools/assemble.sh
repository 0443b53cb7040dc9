#!/bin/sh
# Lay out the tool set under OUT/.dk from Debian packages unpacked under ROOT: assemble.sh ROOT OUT
#
#   bin/      tmux, asciinema and bash: run by name once this folder is on PATH
#   box/      the few other commands that a trial needs, for images that lack even those
#   lib/      the loader and the libraries of the above, Python's library, the locale C.UTF-8
#   libexec/  the programs themselves
#   share/    descriptions of terminals
#
# Nothing of it looks outside /.dk: it runs in images with another C library or with none. The name
# is as long as /usr and /bin, so that a path built into a program can be turned into one here.
set -eu
root=${1%/} out=$2/.dk
mkdir -p "$out/bin" "$out/box" "$out/lib/locale" "$out/libexec"
cd "$out"

cp "$root"/lib/*-linux-gnu/ld-linux-*.so.* lib/ld.so
libraries=$(ls -d "$root"/lib/*-linux-gnu "$root"/usr/lib/*-linux-gnu | tr '\n' :)
python=$(basename "$root"/usr/lib/python3.*)

# --- programs, and the libraries they ask for ---

cp "$root/usr/bin/tmux" "$root/usr/bin/$python" libexec/
mv "libexec/$python" libexec/python3
cp "$root/bin/bash-static" bin/bash
cp "$root/bin/busybox" libexec/
cp -R "$root/usr/lib/$python" lib/
cp -R "$root/usr/lib/python3/dist-packages/asciinema" "lib/$python/"
rm -rf "lib/$python"/*/test "lib/$python"/*/__pycache__
needs() { lib/ld.so --library-path "$libraries" --list "$1" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | grep -v /ld-linux; }
for program in libexec/tmux libexec/python3; do
    needs "$program" | while read -r library; do cp "$library" lib/; done
done
# A recorder needs none of the modules of Python that want more libraries: TLS, databases and such.
for module in "lib/$python"/lib-dynload/*.so; do
    if needs "$module" | grep -qv '/lib[cm]\.so'; then rm "$module"; fi
done
for program in libexec/tmux libexec/python3; do
    lib/ld.so --library-path "$libraries" "$root/usr/bin/patchelf" \
        --set-interpreter /.dk/lib/ld.so --force-rpath --set-rpath /.dk/lib "$program"
done
cp -R "$root/usr/lib/locale/C.utf8" lib/locale/
# Without a description of the terminal bash would show a long command as one line, its end only.
mkdir share && cp -R "$root/lib/terminfo" share/
sed -i 's|/usr/lib/locale|/.dk/lib/locale|g; s|/usr/share/terminfo|/.dk/share/terminfo|g' lib/libc.so.6 bin/bash
sed -i 's|/bin/sh|/.dk/sh|g' libexec/tmux
ln -s bin/bash sh

# --- how they are started ---

# Harbor says that the shell is /bin/bash, which need not be there. bash -p reads no BASH_ENV.
start='#!/.dk/bin/bash -p
[ -x "$SHELL" ] || SHELL=$(type -P bash) || SHELL=/.dk/bin/bash
export SHELL
exec'
printf '%s -a tmux /.dk/libexec/tmux "$@"\n' "$start" >bin/tmux
printf '%s /.dk/libexec/python3 -IS /.dk/libexec/asciinema "$@"\n' "$start" >bin/asciinema
cat >libexec/asciinema <<'END'
import sys

from asciinema import __main__, config

# The recorder would write an identity for uploads into the home of the user, which is the task's.
config.load = lambda: config.Config("/.dk", {"ASCIINEMA_INSTALL_ID": "none"})
sys.exit(__main__.main())
END
ln -s ../bin/bash box/sh
for applet in base64 cat chmod chown find id ls mkdir mkfifo rm sleep; do
    ln -s ../libexec/busybox "box/$applet"
done
chmod 755 bin/* libexec/*

# The tool set is read-only where it is used, so Python cannot keep what it compiles there.
lib/ld.so --library-path lib libexec/python3 -IS -m compileall -q --invalidation-mode unchecked-hash \
    -s "$out" -p /.dk "lib/$python"
