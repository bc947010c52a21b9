#!/usr/bin/env bash
# Installs all build results: the programs, their manual pages and completions, and the C libraries.
#
#   install.sh BUILT PREFIX
#
# BUILT is the directory where Cargo has put the program and the libraries. With DESTDIR set, all files are installed below
# DESTDIR, to be moved to PREFIX later.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
built=$1 prefix=$2
to=${DESTDIR:-}$prefix

install -d "$to/bin"
install -m 755 "$built/starfish" "$to/bin"
# All programs are the same binary under different names.
for program in mycat fs2pfs pfs2fs pfsgrep pfssort pfsbzip2; do
    ln -sf starfish "$to/bin/$program"
done
"$built/starfish" generate "$to"
# Cargo puts the libraries into deps if only tests needed them.
[[ -e $built/liblibpdiol.so && -e $built/liblibtlv.so ]] || built=$built/deps
for library in pdiol tlv; do
    DESTDIR=${DESTDIR:-} "$here/install-library.sh" "$library" "$built" "$prefix"
done
