#!/usr/bin/env bash
# Runs third-party test suites with Starfish and with the MPI's own I/O, and lists the tests that fail: those of ROMIO,
# mpi4py (files), HDF5 (parallel files) and PnetCDF.
#
#   conformance.sh MPI SHIM DIRECTORY [SUITE...]
#
# MPI is mpich or openmpi, the suffix of its programs in Debian. SHIM is the library that `starfish mpi-preload` prints.
# DIRECTORY is a mount point of `starfish mount` with the agents that STARFISH_AGENTS names: libraries create their files
# there. SUITE is romio, mpi4py, hdf5 or pnetcdf; all are run if none is named. The script fetches the tests from Debian's
# source packages and from mpi4py's. The tests of HDF5 and PnetCDF are linked with Debian's libraries (libhdf5-mpich-dev,
# libhdf5-openmpi-dev, libpnetcdf-dev, which is for Open MPI). Some ROMIO tests write tens of gigabytes, so WORK and the
# agents need disks with enough free space.
set -uo pipefail

[[ $# -ge 3 ]] || { sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mpi=$1 shim=$(realpath "$2") mounted=$(realpath "$3")
suites=("${@:4}")
[[ $# -gt 3 ]] || suites=(romio mpi4py hdf5 pnetcdf)
work=${WORK:-$(mktemp -d)}
patience=${PATIENCE:-300}
launch=(timeout "$patience" "mpirun.$mpi")
[[ $mpi == mpich ]] || launch+=(--allow-run-as-root --oversubscribe --mca btl self,vader --mca mpi_yield_when_idle 1)
# mpi4py looks for the library of MPICH under another name than Debian's.
mkdir -p "$work/names"
ln -sf "$(ldconfig -p | sed -n 's/.*libmpich\.so\.12 .*=> //p' | head -n 1)" "$work/names/libmpi.so.12"
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$work/names

# ROMIO's tests: program, option before the name of the file (- for none), and number of processes.
tests="
simple -fname 4
psimple -fname 4
async -fname 4
async-multiple -fname 4
atomicity -fname 4
coll_test -fname 4
coll_perf -fname 4
creat_excl -fname 4
error -fname 1
excl -fname 4
file_info -fname 4
i_noncontig -fname 2
noncontig -fname 2
noncontig_coll -fname 2
noncontig_coll2 -fname 4
ordered_fp -fname 4
shared_fp -fname 4
perf -fname 4
split_coll -fname 4
status -fname 1
misc -fname 4
large_array -fname 4
hindexed - 4
types_with_zeros - 2
aggregation1 -f 4
aggregation2 - 4
big_extents -fname 4
external32 -fname 1
darray_read -fname 4
"

# Fetches the original sources of a Debian source package, and unpacks them in a directory of this name.
fetch_source() {
    local package=$1
    [[ -d $work/$package ]] && return
    mkdir -p "$work/lists/partial"
    cat > "$work/source.sources" <<- END
	Types: deb-src
	URIs: http://deb.debian.org/debian
	Suites: ${SUITE:-bookworm}
	Components: main
	Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
	END
    local options=(-qq -o "Dir::Etc::sourcelist=$work/source.sources" -o Dir::Etc::sourceparts=/dev/null
        -o "Dir::State::lists=$work/lists")
    (cd "$work" && apt-get "${options[@]}" update && apt-get "${options[@]}" source --download-only "$package") &&
        mkdir "$work/$package" && tar -xf "$work/$package"_*.orig.tar.* -C "$work/$package" --strip-components=1
}

# Runs a test. Succeeds if the test succeeds and its output reports no errors.
passes() {
    local output
    output=$("$@" 2>&1 < /dev/null) || return 1
    ! grep -v -i 'no errors\|0 errors\|errors *= *0\|errs *= *0\|yaksa\|found 0' <<< "$output" | grep -qi 'error\|mismatch\|failed\|unexpected'
}

romio() {
    local sources=$work/mpich/src/mpi/romio/test programs=$work/programs-$mpi name flag processes file
    mkdir -p "$programs"
    for name in misc large_file; do
        sed 's/@[A-Z0-9_]*@//g' "$sources/$name.c.in" > "$sources/$name.c"
    done
    local passed=0 failed=() all=0
    while read -r name flag processes; do
        [[ -n $name ]] || continue
        [[ -x $programs/$name ]] ||
            "mpicc.$mpi" -w -O1 "$sources/$name.c" -o "$programs/$name" > "$programs/$name.log" 2>&1 || continue
        all=$((all + 1))
        if [[ $1 == starfish ]]; then file=starfish:romio-$mpi-$name; else file=$work/local-$mpi-$name; fi
        local words=("$programs/$name" "$flag" "$file")
        [[ $flag != - ]] || words=("$programs/$name" "$file")
        [[ $1 == starfish ]] && words=(env "LD_PRELOAD=$shim" "${words[@]}")
        if passes "${launch[@]}" -n "$processes" "${words[@]}"; then
            passed=$((passed + 1))
        else
            failed+=("$name")
        fi
    done <<< "$tests"
    echo "ROMIO's tests, $mpi, $1: $passed of $all pass; failed: ${failed[*]:-none}"
}

fetch_mpi4py() {
    [[ -d $work/mpi4py ]] && return
    python3 -m venv "$work/venv" && "$work/venv/bin/pip" -q install mpi4py numpy &&
        "$work/venv/bin/pip" -q download --no-deps --no-binary mpi4py -d "$work" mpi4py && mkdir -p "$work/mpi4py" &&
        tar -xf "$work"/mpi4py-*.tar.gz -C "$work/mpi4py" --strip-components=1
}

mpi4py() {
    local where=$work/local-python processes output environment=()
    mkdir -p "$where"
    [[ $1 == starfish ]] && where=$mounted && environment=(env "LD_PRELOAD=$shim")
    for processes in 1 3; do
        output=$(cd "$work/mpi4py/test" && MPI4PY_MPIABI=$mpi TMPDIR=$where "${launch[@]}" -n "$processes" \
            "${environment[@]}" "$work/venv/bin/python" main.py -q -i test_file -i test_io 2>&1 < /dev/null)
        echo "mpi4py's tests, $mpi, $1, $processes processes: $(grep -c '^OK' <<< "$output") of $processes processes report OK;" \
            "$(grep -cE '^(ERROR|FAIL):' <<< "$output") failures"
        grep -E '^(ERROR|FAIL):' <<< "$output" | sort | uniq -c | head -n 20
    done
}

# Runs test programs of a library, each with a file on the mount or on a local disk, and prints those that fail.
#   run_library NAME WITH PROCESSES PROGRAM...
run_library() {
    local name=$1 with=$2 processes=$3 where=$work/local-$mpi-$1 program failed=() words started
    shift 3
    [[ $with == starfish ]] && where=$mounted/$name-$mpi
    mkdir -p "$where"
    for program in "$@"; do
        words=("$program")
        [[ $name != pnetcdf ]] || words+=("$where/$(basename "$program").nc")
        [[ $with == starfish ]] && words=(env "LD_PRELOAD=$shim" "${words[@]}")
        started=$SECONDS
        (cd "$work/programs-$name-$mpi" && HDF5_PARAPREFIX=$where "${launch[@]}" -n "$processes" "${words[@]}") \
            > "$program.$with.log" 2>&1 < /dev/null || failed+=("$(basename "$program") ($((SECONDS - started)) s)")
    done
    echo "$name, $mpi, $with: $(($# - ${#failed[@]})) of $# pass; failed: ${failed[*]:-none}"
}

# build_library NAME COMPILER SOURCE... [-- OPTION...]: compiles tests of a library, and prints the paths of the programs.
build_library() {
    local programs=$work/programs-$1-$mpi compiler=$2 sources=() source program
    shift 2
    while [[ $# -gt 0 && $1 != -- ]]; do sources+=("$1") && shift; done
    shift
    mkdir -p "$programs"
    for source in "${sources[@]}"; do
        program=$programs/$(basename "$source" .c)
        (cd "$programs" && { [[ -x $program ]] || "$compiler" -w -O1 "$source" "$@" -o "$program" > "$program.log" 2>&1; }) &&
            echo "$program"
    done
}

hdf5() {
    local sources=$work/hdf5 programs
    echo 'const char *config_srcdir = ".";' > "$sources/test/H5srcdir_str.h"
    local options=(-shlib -I "$sources/test" -I "$sources/src" -I "$sources/testpar" "$sources"/test/{h5test,testframe}.c)
    # Several programs of one source file each, and one program of many source files.
    readarray -t programs < <(
        build_library hdf5 "h5pcc.$mpi" "$sources"/testpar/t_{mpi,pread,pshutdown,prestart,init_term,shapesame,filters_parallel}.c \
            -- "${options[@]}"
        build_library hdf5 "h5pcc.$mpi" "$sources/testpar/testphdf5.c" -- "${options[@]}" \
            "$sources"/testpar/t_{dset,file,file_image,mdset,ph5basic,coll_chunk,span_tree,chunk_alloc,filter_read,prop,coll_md_read}.c
    )
    run_library hdf5 "$1" 3 "${programs[@]}"
}

pnetcdf() {
    local sources=$work/pnetcdf/test programs
    readarray -t programs < <(
        build_library pnetcdf "mpicc.$mpi" $(grep -l 'int main' "$sources"/{testcases,nonblocking,header}/*.c) \
            -- -I "$sources/common" "$sources/common/testutils.c" -lpnetcdf -lm
    )
    run_library pnetcdf "$1" 4 "${programs[@]}"
}

for suite in "${suites[@]}"; do
    case $suite in
        romio) fetch_source mpich ;;
        mpi4py) fetch_mpi4py ;;
        hdf5) fetch_source hdf5 ;;
        pnetcdf) [[ $mpi == openmpi ]] && fetch_source pnetcdf ;;
        *) echo "unknown suite $suite: expected romio, mpi4py, hdf5 or pnetcdf" >&2 && exit 2 ;;
    esac && { "$suite" own; "$suite" starfish; }
done
