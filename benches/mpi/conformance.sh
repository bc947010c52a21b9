#!/usr/bin/env bash
# Which of ROMIO's own tests and of mpi4py's tests of files pass, with Starfish and with the MPI's own I/O.
#
#   conformance.sh MPI SHIM DIRECTORY
#
# MPI is mpich or openmpi, as Debian calls its programs. SHIM is the library that `starfish mpi-preload` names, and what it
# needs. DIRECTORY is one in which `starfish mount` shows the agents that STARFISH_AGENTS names: mpi4py's tests make
# their files there. The tests come from the source package of mpich and from mpi4py's; both are fetched by name. Some of
# ROMIO's write tens of gigabytes: WORK and the agents want a disk with room.
set -uo pipefail

[[ $# == 3 ]] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mpi=$1 shim=$(realpath "$2") mounted=$(realpath "$3")
work=${WORK:-$(mktemp -d)}
patience=${PATIENCE:-300}
launch=(timeout "$patience" "mpirun.$mpi")
[[ $mpi == mpich ]] || launch+=(--allow-run-as-root --oversubscribe --mca btl self,vader --mca mpi_yield_when_idle 1)
# mpi4py looks for MPICH's library by the name that others give it.
mkdir -p "$work/names"
ln -sf "$(ldconfig -p | sed -n 's/.*libmpich\.so\.12 .*=> //p' | head -n 1)" "$work/names/libmpi.so.12"
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$work/names

# ROMIO's tests, each with what is put before the name of its file, and the number of its processes.
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

fetch_romio() {
    [[ -d $work/romio ]] && return
    mkdir -p "$work/romio" "$work/lists/partial"
    cat > "$work/source.sources" <<- END
	Types: deb-src
	URIs: http://deb.debian.org/debian
	Suites: ${SUITE:-bookworm}
	Components: main
	Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
	END
    local options=(-qq -o "Dir::Etc::sourcelist=$work/source.sources" -o Dir::Etc::sourceparts=/dev/null
        -o "Dir::State::lists=$work/lists")
    (cd "$work" && apt-get "${options[@]}" update && apt-get "${options[@]}" source --download-only mpich) &&
        tar -xf "$work"/mpich_*.orig.tar.* -C "$work/romio" --strip-components=1 --wildcards '*/src/mpi/romio/test/*'
}

# Runs a test; what it prints has to say nothing of errors, but that there are none.
passes() {
    local output
    output=$("$@" 2>&1 < /dev/null) || return 1
    ! grep -v -i 'no errors\|0 errors\|errors *= *0\|errs *= *0\|yaksa\|found 0' <<< "$output" | grep -qi 'error\|mismatch\|failed\|unexpected'
}

romio() {
    local sources=$work/romio/src/mpi/romio/test programs=$work/programs-$mpi name flag processes file
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
    echo "ROMIO's tests, $mpi, $1: $passed of $all pass; not: ${failed[*]:-none}"
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
        echo "mpi4py's tests, $mpi, $1, $processes processes: $(grep -c '^OK' <<< "$output") of $processes processes: all is OK;" \
            "$(grep -cE '^(ERROR|FAIL):' <<< "$output") failures"
        grep -E '^(ERROR|FAIL):' <<< "$output" | sort | uniq -c | head -n 20
    done
}

fetch_romio && { romio own; romio starfish; }
fetch_mpi4py && { mpi4py own; mpi4py starfish; }
