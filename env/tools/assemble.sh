#!/bin/sh
# Lay out the tool set under OUT/.dk from Debian packages unpacked under ROOT: assemble.sh ROOT OUT
#
#   bin/      tmux and bash: run by name once this folder is on PATH
#   box/      the few other commands that a trial needs, for images that lack even those
#   lib/      the loader and the libraries of the above, the locale C.UTF-8
#   libexec/  the programs themselves, and getfattr, which tells what a snapshot cannot hold
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

# --- programs, and the libraries they ask for ---

cp "$root/bin/bash-static" bin/bash
cp "$root/usr/bin/tmux" "$root/usr/bin/getfattr" "$root/bin/busybox" libexec/
for program in tmux getfattr; do
    lib/ld.so --library-path "$libraries" --list libexec/$program |
        sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | grep -v /ld-linux | while read -r library; do cp "$library" lib/; done
    lib/ld.so --library-path "$libraries" "$root/usr/bin/patchelf" \
        --set-interpreter /.dk/lib/ld.so --force-rpath --set-rpath /.dk/lib libexec/$program
done
cp -R "$root/usr/lib/locale/C.utf8" lib/locale/
# Without a description of the terminal bash would show a long command as one line, its end only.
mkdir share && cp -R "$root/lib/terminfo" share/
sed -i 's|/usr/lib/locale|/.dk/lib/locale|g; s|/usr/share/terminfo|/.dk/share/terminfo|g' lib/libc.so.6 bin/bash
sed -i 's|/bin/sh|/.dk/sh|g' libexec/tmux
# What an agent puts before every program of the container is none of these.
sed -i 's|/etc/ld.so.preload|/.dk/ld.so.preload|g' lib/ld.so
ln -s bin/bash sh

# --- how they are started ---

# Harbor says that the shell is /bin/bash, which need not be there. bash -p reads no BASH_ENV.
cat >bin/tmux <<'END'
#!/.dk/bin/bash -p
[ -x "$SHELL" ] || SHELL=$(type -P bash) || SHELL=/.dk/bin/bash
export SHELL
exec -a tmux /.dk/libexec/tmux "$@"
END
ln -s ../bin/bash box/sh
for applet in base64 cat chmod chown dd find id ls mkdir mkfifo rm sleep; do
    ln -s ../libexec/busybox "box/$applet"
done
chmod 755 bin/* libexec/*
