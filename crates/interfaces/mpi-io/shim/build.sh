#!/usr/bin/env bash
# Compiles the shim for one MPI.
#
#   build.sh MPICC CORE INTO
#
# MPICC is the compiler of that MPI. CORE is a directory with libstarfish_mpi_io.so.0. The shim is put into the directory
# INTO, called after the library of the MPI that it is for: starfish-libmpi.so.40, for example. Its name is printed.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
compiler=$1 core=$2 into=$3

mkdir -p "$into"
made=$(mktemp "$into/starfish-shim-XXXXXX")
trap 'rm -f "$made"' EXIT
"$compiler" -std=c11 -O2 -Wall -Wextra -Werror -fPIC -shared -I "$here/../include" "$here"/*.c -o "$made" \
    -L "$core" -l:libstarfish_mpi_io.so.0 -ldl -pthread -Wl,-rpath,'$ORIGIN'
# Which library of an MPI it needs: libmpi.so.40, libmpich.so.12, libmpi_abi.so.0 ...
library=$(readelf -d "$made" | sed -n 's/.*(NEEDED).*\[\(libmpi\(ch\|_abi\)\{0,1\}\.so\.[0-9]*\)\].*/\1/p' | head -n 1)
[[ -n $library ]] || { echo "$compiler: what it links with is no libmpi.so, libmpich.so or libmpi_abi.so" >&2; exit 1; }
chmod 755 "$made"
mv "$made" "$into/starfish-$library"
trap - EXIT
echo "$into/starfish-$library"
