#!/usr/bin/env bash
# Measures writes and reads of arrays by HDF5, h5py and PnetCDF: with Starfish's MPI-IO, and with the MPI's own I/O on a mount
# of the same agents.
#
#   run.sh MPI DIRECTORY [ROUNDS]
#
# MPI is mpich or openmpi, the suffix of its programs in Debian; `make install-mpi` must have made its library. DIRECTORY is
# a mount point of `starfish mount` with the agents that STARFISH_AGENTS names. Prints for each library and way the rates of
# writing (until all data are on the disks) and reading, in millions of bytes per second. MIB=64 sets the size of the array,
# PROCESSES=4 the number of processes. Debian packages: libhdf5-mpich-dev libhdf5-openmpi-dev libpnetcdf-dev
# python3-h5py-mpi python3-mpi4py; PnetCDF and h5py are built for Open MPI.
set -euo pipefail

[[ $# -ge 2 ]] || { sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mpi=$1 mounted=$(realpath "$2") rounds=${3:-5} mib=${MIB:-64}
here=$(dirname "$(realpath "$0")")
programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
"h5pcc.$mpi" -O2 -o "$programs/arrays_hdf5" "$here/arrays_hdf5.c" -lm
[[ $mpi != openmpi ]] || mpicc.openmpi -O2 -o "$programs/arrays_pnetcdf" "$here/arrays_pnetcdf.c" -lpnetcdf -lm
processes=(-n "${PROCESSES:-4}")
[[ $mpi == mpich ]] || processes+=(--allow-run-as-root --oversubscribe --mca btl self,vader --mca mpi_yield_when_idle 1)

measure() {
    local library=$1 way=$2 result launch=("mpirun.$mpi" "${processes[@]}")
    [[ $way != door ]] || launch=(starfish mpi-run --launcher "mpirun.$mpi" "${processes[@]}")
    shift 2
    rm -f "$mounted/arrays"
    if result=$(timeout "${PATIENCE:-300}" "${launch[@]}" "$@" 2> "$programs/log"); then
        # shellcheck disable=SC2086 # two numbers
        printf '%-16s %-6s %10s %10s\n' "$library" "$way" $result
    else
        printf '%-16s %-6s %s\n' "$library" "$way" "failed"
        tail -n 2 "$programs/log" >&2
    fi
}
printf '%-16s %-6s %10s %10s\n' library way written read
for way in door mount; do
    measure "HDF5 contiguous" $way "$programs/arrays_hdf5" "$mounted/arrays" "$mib" "$rounds" contiguous
    measure "HDF5 chunked" $way "$programs/arrays_hdf5" "$mounted/arrays" "$mib" "$rounds" chunked
    [[ $mpi == openmpi ]] || continue
    measure h5py $way /usr/bin/python3 "$here/arrays_h5py.py" "$mounted/arrays" "$mib" "$rounds"
    measure PnetCDF $way "$programs/arrays_pnetcdf" "$mounted/arrays" "$mib" "$rounds"
done
