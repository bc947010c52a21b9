#!/usr/bin/env bash
# Compiles the shim for one MPI.
#
#   build.sh MPICC CORE INTO
# MPICC is the compiler of that MPI. CORE is a directory with libstarfish_mpi_io.so.0. The script puts the shim into the
# directory INTO and names it after the MPI library: starfish-libmpi.so.40, for example. It prints the path of the shim.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
compiler=$1 core=$2 into=$3

mkdir -p "$into"
made=$(mktemp "$into/starfish-shim-XXXXXX")
trap 'rm -f "$made"' EXIT
"$compiler" -std=c11 -O2 -Wall -Wextra -Werror -fPIC -shared -I "$here/../include" "$here"/*.c -o "$made" \
    -L "$core" -l:libstarfish_mpi_io.so.0 -ldl -pthread -Wl,-rpath,'$ORIGIN'
# The MPI library that the shim is linked with: libmpi.so.40, libmpich.so.12, libmpi_abi.so.0 ...
library=$(readelf -d "$made" | sed -n 's/.*(NEEDED).*\[\(libmpi\(ch\|_abi\)\{0,1\}\.so\.[0-9]*\)\].*/\1/p' | head -n 1)
[[ -n $library ]] || { echo "$compiler links with none of libmpi.so, libmpich.so, libmpi_abi.so" >&2; exit 1; }
chmod 755 "$made"
mv "$made" "$into/starfish-$library"
trap - EXIT
echo "$into/starfish-$library"
