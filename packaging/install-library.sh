#!/usr/bin/env bash
# Installs a C library, its header, its pkg-config file and its man pages.
#
#   install-library.sh NAME BUILT PREFIX
#
# NAME is pdiol or tlv, for crates/*/libNAME. BUILT is where Cargo has put liblibNAME.so and liblibNAME.a. With DESTDIR set,
# everything goes below that, and is to be moved to PREFIX later.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
name=$1 built=$2 prefix=$3
library=$(echo "$here"/../crates/*/"lib$name")
to=${DESTDIR:-}$prefix
version=$(sed -n '/^\[workspace.package\]/,/^\[/ s/^version = "\(.*\)"/\1/p' "$here/../Cargo.toml")

install -d "$to"/{include,lib/pkgconfig,share/man/man3,share/man/man7}
install -m 644 "$library/include/$name.h" "$to/include"
install -m 644 "$built/liblib$name.a" "$to/lib/lib$name.a"
# Cargo strips programs and shared libraries only; most of this one is for debuggers.
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
# A page that is about several functions is found under the name of each.
for page in "$library"/man/*.3; do
    file=$(basename "$page")
    for other in $(sed -n 's/^\.Nm \([A-Za-z_]*\).*/\1/p' "$page"); do
        [[ $other.3 == "$file" ]] || printf '.so man3/%s\n' "$file" > "$to/share/man/man3/$other.3"
    done
done
