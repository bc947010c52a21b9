#!/usr/bin/env bash
# Installs the MPI-IO library, and a shim compiled for each MPI.
#
#   install-mpi.sh BUILT PREFIX MPICC...
#
# BUILT is the directory with libstarfish_mpi_io.so. Each MPICC is the compiler of an MPI. With DESTDIR set, all
# files are installed below DESTDIR, to be moved to PREFIX later. `starfish mpi-run` and
# `mpi-preload` look for them in PREFIX/lib/starfish.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
built=$1 to=${DESTDIR:-}$2/lib/starfish
shift 2

install -d "$to"
# Cargo puts the library into deps if only tests needed it.
[[ -e $built/libstarfish_mpi_io.so ]] || built=$built/deps
install -m 755 "$built/libstarfish_mpi_io.so" "$to/libstarfish_mpi_io.so.0"
for compiler in "$@"; do
    "$here/../crates/interfaces/mpi-io/shim/build.sh" "$compiler" "$to" "$to"
done
