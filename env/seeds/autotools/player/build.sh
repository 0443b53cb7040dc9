#!/bin/sh
# build both (id3tag is the package), 2005-02-11 jan
set -e
cd /usr/src
for p in libmad-0.15.1b madplay-0.15.2b; do
	tar xzf $p.tar.gz
	cd $p
	case $p in
	libmad*) ./configure --enable-fpm=intel --disable-debugging ;;
	*) CPPFLAGS=-I/usr/local/include LDFLAGS=-L/usr/local/lib ./configure --disable-nls ;;
	esac
	make
	make install
	cd ..
done
ldconfig
