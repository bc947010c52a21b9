#!/usr/bin/env bash
# Makes a Debian package of what has been built, and prints its name.
#
#   deb.sh BUILT OUTPUT [OPTION...]
#
# BUILT is as in install.sh, OUTPUT a directory, and options are those of `cargo deb`, which is looked for in PATH.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
built=$1 output=$2
shift 2

# crates/cli/Cargo.toml says what is taken from here, and what the package is.
stage=$here/../target/package
rm -rf "$stage"
DESTDIR=$stage "$here/install.sh" "$built" /usr

# Debian's zsh looks elsewhere for what packages bring, and its manual pages are compressed.
mv "$stage/usr/share/zsh/site-functions" "$stage/usr/share/zsh/vendor-completions"
find "$stage/usr/share/man" -type f -exec gzip -9n {} +
# What is not optimised comes with symbols.
strip "$stage"/usr/bin/*
strip --strip-unneeded "$stage"/usr/lib/lib{pdiol,tlv}.so.*.*

put() {
    install -D -m 644 "$here/debian/$1" "$stage/$2"
}
put default etc/default/starfish
put starfish-agent.service usr/lib/systemd/system/starfish-agent.service
put starfish.sysusers usr/lib/sysusers.d/starfish.conf
put README.Debian usr/share/doc/starfish/README.Debian

put starfish-mount@.service usr/lib/systemd/user/starfish-mount@.service
# mount(8) looks for it there, for lines of /etc/fstab.
install -d "$stage/usr/sbin"
ln -sf ../bin/starfish "$stage/usr/sbin/mount.fuse.starfish"

install -D -m 644 "$here/grafana/starfish.json" "$stage/usr/share/starfish/grafana/starfish.json"

mkdir -p "$output"
cd "$here/.."
cargo-deb deb --quiet --no-build --no-strip --compress-system -p starfish --output "$output" "$@"
