#!/usr/bin/env bash
# Arrays of HDF5, h5py and PnetCDF, written and read by processes of an MPI: through Starfish's MPI-IO, and through the MPI's
# own on a mount of the same agents.
#
#   run.sh MPI DIRECTORY [ROUNDS]
#
# MPI is mpich or openmpi, as Debian calls its programs, whose library `make install-mpi` has made. DIRECTORY is one in
# which `starfish mount` shows the agents that STARFISH_AGENTS names. Prints millions of bytes a second, written with all of
# it on the disks, and read: by each library in one way and the other. MIB=64 is the size of the array, PROCESSES=4 how
# many write it. Debian's packages: libhdf5-mpich-dev libhdf5-openmpi-dev libpnetcdf-dev python3-h5py-mpi
# python3-mpi4py; PnetCDF and h5py are those of Open MPI.
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
