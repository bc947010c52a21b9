#!/usr/bin/env bash
# Installs a C library, its header, its pkg-config file and its man pages.
#
#   install-library.sh NAME BUILT PREFIX
#
# NAME is pdiol or tlv, for crates/*/libNAME. BUILT is the directory where Cargo has put liblibNAME.so and liblibNAME.a. With
# DESTDIR set, all files are installed below DESTDIR, to be moved to PREFIX later.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
name=$1 built=$2 prefix=$3
library=$(echo "$here"/../crates/*/"lib$name")
to=${DESTDIR:-}$prefix
version=$(sed -n '/^\[workspace.package\]/,/^\[/ s/^version = "\(.*\)"/\1/p' "$here/../Cargo.toml")

install -d "$to"/{include,lib/pkgconfig,share/man/man3,share/man/man7}
install -m 644 "$library/include/$name.h" "$to/include"
install -m 644 "$built/liblib$name.a" "$to/lib/lib$name.a"
# Cargo does not strip static libraries, and most of this one is debug information.
if command -v strip > /dev/null; then
    strip --strip-debug "$to/lib/lib$name.a"
fi
# Programs look for libNAME.so.0 (build.rs), the linker for libNAME.so.
install -m 755 "$built/liblib$name.so" "$to/lib/lib$name.so.$version"
ln -sf "lib$name.so.$version" "$to/lib/lib$name.so.0"
ln -sf "lib$name.so.0" "$to/lib/lib$name.so"
sed "s|@PREFIX@|$prefix|; s|@VERSION@|$version|" "$library/$name.pc.in" > "$to/lib/pkgconfig/$name.pc"

install -m 644 "$library"/man/*.3 "$to/share/man/man3"
install -m 644 "$library"/man/*.7 "$to/share/man/man7"
# A page about several functions is installed under the name of each function.
for page in "$library"/man/*.3; do
    file=$(basename "$page")
    for other in $(sed -n 's/^\.Nm \([A-Za-z_]*\).*/\1/p' "$page"); do
        [[ $other.3 == "$file" ]] || printf '.so man3/%s\n' "$file" > "$to/share/man/man3/$other.3"
    done
done
