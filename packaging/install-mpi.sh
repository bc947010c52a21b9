#!/usr/bin/env bash
# Installs what goes in front of an MPI: the core, and a shim compiled for each MPI.
#
#   install-mpi.sh BUILT PREFIX MPICC...
#
# BUILT is where Cargo has put libstarfish_mpi_io.so. Each MPICC is the compiler of an MPI. With DESTDIR set, everything goes
# below that, and is to be moved to PREFIX later. `starfish mpi-run` and `mpi-preload` look for it in PREFIX/lib/starfish.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
built=$1 to=${DESTDIR:-}$2/lib/starfish
shift 2

install -d "$to"
# Cargo leaves it elsewhere if only tests have asked for it.
[[ -e $built/libstarfish_mpi_io.so ]] || built=$built/deps
install -m 755 "$built/libstarfish_mpi_io.so" "$to/libstarfish_mpi_io.so.0"
for compiler in "$@"; do
    "$here/../crates/interfaces/mpi-io/shim/build.sh" "$compiler" "$to" "$to"
done
