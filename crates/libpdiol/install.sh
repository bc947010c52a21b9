#!/usr/bin/env bash
# Installs the C library, its header, its pkg-config file and its man pages.
#
#   install.sh BUILT PREFIX
#
# BUILT is where Cargo has put liblibpdiol.so and liblibpdiol.a. With DESTDIR set, everything goes below that, and is to
# be moved to PREFIX later.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
built=$1 prefix=$2
to=${DESTDIR:-}$prefix
version=$(sed -n '/^\[workspace.package\]/,/^\[/ s/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml")

install -d "$to"/{include,lib/pkgconfig,share/man/man3,share/man/man7}
install -m 644 "$here/include/pdiol.h" "$to/include"
install -m 644 "$built/liblibpdiol.a" "$to/lib/libpdiol.a"
# Cargo strips programs and shared libraries only; most of this one is for debuggers.
if command -v strip > /dev/null; then
    strip --strip-debug "$to/lib/libpdiol.a"
fi
# Programs look for libpdiol.so.0 (build.rs), the linker for libpdiol.so.
install -m 755 "$built/liblibpdiol.so" "$to/lib/libpdiol.so.$version"
ln -sf "libpdiol.so.$version" "$to/lib/libpdiol.so.0"
ln -sf libpdiol.so.0 "$to/lib/libpdiol.so"
sed "s|@PREFIX@|$prefix|; s|@VERSION@|$version|" "$here/pdiol.pc.in" > "$to/lib/pkgconfig/pdiol.pc"

install -m 644 "$here"/man/*.3 "$to/share/man/man3"
install -m 644 "$here"/man/*.7 "$to/share/man/man7"
# A page that is about several functions is found under the name of each.
for page in "$here"/man/*.3; do
    name=$(basename "$page")
    for other in $(sed -n 's/^\.Nm \([a-z_]*\).*/\1/p' "$page"); do
        [[ $other.3 == "$name" ]] || printf '.so man3/%s\n' "$name" > "$to/share/man/man3/$other.3"
    done
done
