#!/usr/bin/env bash
# Measures writes and reads of an array of records distributed cyclically over MPI processes: with Starfish, and with the
# MPI's own methods on a mount of the same agents.
#
#   dealt.sh MPI DIRECTORY [ROUNDS]
#
# MPI is mpich or openmpi, the suffix of its programs in Debian; `make install-mpi` must have made its library. DIRECTORY is
# a mount point of `starfish mount` with the agents that STARFISH_AGENTS names. Prints millions of bytes per second: writing,
# writing with MPI_File_sync, reading. MIB=64 sets the size of all arrays, PATIENCE=20 the time limit of a run in seconds.
set -euo pipefail

[[ $# -ge 2 ]] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mpi=$1 mounted=$(realpath "$2") rounds=${3:-3}
here=$(dirname "$(realpath "$0")")
program=$(mktemp -d)/dealt
trap 'rm -rf "$(dirname "$program")"' EXIT
"mpicc.$mpi" -O2 -o "$program" "$here/dealt.c" -lm
processes=(-n "${PROCESSES:-4}")
[[ $mpi == mpich ]] || processes+=(--allow-run-as-root --oversubscribe --mca btl self,vader --mca mpi_yield_when_idle 1)

# ROMIO's methods, selected by hints. Open MPI's own I/O has no such hints.
methods=(
    "two-phase romio_cb_write=enable romio_cb_read=enable"
    "independent romio_cb_write=disable romio_cb_read=disable romio_ds_write=disable romio_ds_read=disable"
    "sieving romio_cb_write=disable romio_cb_read=disable romio_ds_write=enable romio_ds_read=enable"
)
[[ $mpi == mpich ]] || methods=("its-own")

printf '%-8s %-16s %10s %10s %10s\n' record method written +sync read
measure() {
    local record=$1 mib=$2 method=$3 name=$4 result launch=("mpirun.$mpi")
    [[ $name != starfish:* ]] || launch=(starfish mpi-run --launcher "mpirun.$mpi")
    shift 4
    rm -f "$mounted/dealt"
    if result=$(timeout "${PATIENCE:-120}" "${launch[@]}" "${processes[@]}" "$program" "$name" "$record" "$mib" "$rounds" "$@" 2> "$program.log"); then
        # shellcheck disable=SC2086 # three numbers
        printf '%-8s %-16s %10s %10s %10s\n' "$record" "$method" $result
    else
        printf '%-8s %-16s %s\n' "$record" "$method" "failed, or took longer than ${PATIENCE:-120} s"
        tail -n 1 "$program.log" >&2
    fi
}
# Arrays of smaller records are smaller, because the compared methods take longer for them.
for each in "8 2" "64 8" "512 16" "8192 32"; do
    read -r record mib <<< "$each"
    mib=${MIB:-$mib}
    measure "$record" "$mib" starfish starfish:dealt
    for method in "${methods[@]}"; do
        # shellcheck disable=SC2086 # words
        measure "$record" "$mib" ${method%% *} "$mounted/dealt" $([[ $method == *' '* ]] && echo "${method#* }")
    done
done
