#!/usr/bin/env bash
# Makes a Debian package of the built programs and libraries, and prints its name.
#
#   deb.sh BUILT OUTPUT [OPTION...]
#
# BUILT is as in install.sh, OUTPUT a directory, and options are those of `dpkg-deb`.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
built=$1 output=$2
shift 2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/starfish
install -d "$stage"
DESTDIR=$stage "$here/install.sh" "$built" /usr

# Compile the MPI-IO shim for each of Debian's MPI libraries whose headers are installed.
compilers=()
echo '#include <mpi.h>' > "$work/header.c"
for compiler in mpicc.mpich mpicc.openmpi; do
    if "$compiler" -E "$work/header.c" > /dev/null 2>&1; then
        compilers+=("$compiler")
    else
        echo "The package has no shim for the MPI of $compiler, because its headers are not installed." >&2
    fi
done
[[ ${#compilers[@]} == 0 ]] || DESTDIR=$stage "$here/install-mpi.sh" "$built" /usr "${compilers[@]}" > /dev/null

# Debian's zsh looks for completions of packages in another directory, and Debian's manual pages are compressed.
mv "$stage/usr/share/zsh/site-functions" "$stage/usr/share/zsh/vendor-completions"
find "$stage/usr/share/man" -type f -exec gzip -9n {} +
# Builds without optimisation contain symbols.
strip "$stage/usr/bin/starfish"
find "$stage"/usr/lib -name '*.so.*' -type f -exec strip --strip-unneeded {} +

put() {
    install -D -m 644 "$here/debian/$1" "$stage/$2"
}
put default etc/default/starfish
put starfish-agent.service usr/lib/systemd/system/starfish-agent.service
put starfish.sysusers usr/lib/sysusers.d/starfish.conf
put README.Debian usr/share/doc/starfish/README.Debian

put starfish-mount@.service usr/lib/systemd/user/starfish-mount@.service
# mount(8) looks for this helper here, for lines of /etc/fstab.
install -d "$stage/usr/sbin"
ln -sf ../bin/starfish "$stage/usr/sbin/mount.fuse.starfish"

install -D -m 644 "$here/grafana/starfish.json" "$stage/usr/share/starfish/grafana/starfish.json"

install -D -m 644 "$here/debian/copyright" "$stage/usr/share/doc/starfish/copyright"

# The control files. dpkg-shlibdeps determines the packages of the linked libraries. It requires the control file of a
# source package, and looks for libraries of this package in `DEBIAN`. The MPI shims are not passed to it, because they
# are needed only where their MPI is installed.
install -d "$stage/DEBIAN" "$work/debian"
install -m 755 "$here"/debian/{postinst,prerm,postrm} "$stage/DEBIAN"
install -m 644 "$here"/debian/triggers "$stage/DEBIAN"
(cd "$stage" && find etc -type f -printf '/%p\n' > DEBIAN/conffiles && find usr -type f -exec md5sum {} + | sort -k 2 > DEBIAN/md5sums)
printf 'Source: starfish\n\nPackage: starfish\nArchitecture: any\n' > "$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O "$stage/usr/bin/starfish" "$stage"/usr/lib/*.so.*.* | sed -n 's/^shlibs:Depends=//p')
version=$("$built/starfish" --version | cut -d ' ' -f 2)-1
architecture=$(dpkg --print-architecture)
cat > "$stage/DEBIAN/control" <<END
Package: starfish
Version: $version
Architecture: $architecture
Installed-Size: $(du --summarize --apparent-size --block-size=1K --exclude=DEBIAN "$stage" | cut -f 1)
Depends: $depends
$(cat "$here/debian/control")
END

mkdir -p "$output"
dpkg-deb --root-owner-group "$@" --build "$stage" "$output/starfish_${version}_$architecture.deb"
