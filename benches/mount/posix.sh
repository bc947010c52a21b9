#!/usr/bin/env bash
# Runs third-party test suites in a mounted directory and in a directory of a local disk, and lists the tests that fail.
#
#   posix.sh DIRECTORY [SUITE...]
#
# DIRECTORY is a mount point of `starfish mount`. SUITE is fsx, fio, stress or pjdfstest; all are run if none is named. fio
# and stress-ng are Debian packages; `cargo install` fetches and builds fsx and pjdfstest in WORK, unless WORK contains them.
# WORK is a new directory below /tmp unless set. LOCAL is the directory to compare with, below WORK unless set. pjdfstest
# needs root, and a mount with --allow-other. WORK/*.log has the output of each test.
set -uo pipefail

[[ $# -ge 1 ]] || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mounted=$(realpath "$1")
suites=("${@:2}")
[[ $# -gt 1 ]] || suites=(fsx fio stress pjdfstest)
work=$(realpath "${WORK:-$(mktemp -d)}")
local=${LOCAL:-$work/local}
mkdir -p "$local"

# Installs a program from crates.io, unless it is installed.
fetch_crate() {
    [[ -x $work/bin/$1 ]] || cargo install --quiet --root "$work" --target-dir "$work/target" "$1@$2"
}

# try SUITE CASE DIRECTORY COMMAND...: runs a test, counts it if it passes, and prints it if it fails.
try() {
    local suite=$1 case=$2 directory=$3
    shift 3
    count=$((count + 1))
    if "$@" > "$work/$suite.$case.log" 2>&1; then
        passed=$((passed + 1))
    else
        printf '  %s fails in %s: %s\n' "$case" "$directory" "$(tail -n 1 "$work/$suite.$case.log")"
    fi
}

# Random operations on one file, compared with a copy in memory: reads, writes and truncations, also mapped and direct.
run_fsx() {
    fetch_crate fsx 0.3.2 || return
    local seed
    for seed in 1 2 3 4 5 6 7 8; do
        try fsx "seed$seed" "$1" "$work/bin/fsx" -S "$seed" -N "${OPERATIONS:-5000}" "$1/fsx"
    done
    printf '[opsize]\nmax = 200000\n[weights]\npunch_hole = 1\nposix_fallocate = 1\nfsync = 1\nfdatasync = 1\n' > "$work/fsx.toml"
    for seed in 9 10 11 12; do
        try fsx "seed$seed" "$1" "$work/bin/fsx" -f "$work/fsx.toml" -S "$seed" -N "${OPERATIONS:-5000}" "$1/fsx"
    done
    rm -f "$1"/fsx*
}

# Jobs that write, read back and verify checksums.
run_fio() {
    local engine direct pattern
    for engine in psync libaio mmap io_uring; do
        for direct in 0 1; do
            [[ $engine$direct != mmap1 ]] || continue
            for pattern in write randwrite randrw; do
                try fio "$engine-$direct-$pattern" "$1" timeout 300 fio --name=job --directory="$1" --size=16m --bsrange=4k-256k \
                    --rw=$pattern --ioengine=$engine --direct=$direct --iodepth=16 --numjobs=2 --verify=crc32c --verify_fatal=1
            done
        done
    done
    rm -f "$1"/job.*
}

# stress-ng's tests of file systems, which verify the data that they read.
run_stress() {
    local stressor known
    # Older releases lack some stressors.
    known=" $(stress-ng --stressors) "
    for stressor in access acl chattr chdir chmod chown copy-file dentry dir dirdeep dirmany dup eventfd fallocate fcntl fiemap \
        file-ioctl filename flock flushcache fpunch fsize fstat getdent handle hdd inode-flags iomix lease link locka lockf \
        lockmix lockofd metamix mknod open readahead rename revio seek sendfile splice symlink sync-file sync-load touch \
        truncate utime verity xattr; do
        [[ $known == *" $stressor "* ]] || continue
        try stress "$stressor" "$1" timeout 60 stress-ng --temp-path "$1" --verify --timeout 3s --oomable "--$stressor" 2
    done
}

# The rules of POSIX for calls on names and attributes. The suite prints its own summary.
run_pjdfstest() {
    fetch_crate pjdfstest 0.2.2 || return
    local log=$work/pjdfstest.$(basename "$1").log
    printf '[features]\nposix_fallocate = {}\nutime_now = {}\nutimensat = {}\nrename_ctime = {}\n[settings]\nnaptime = 1.2\nallow_remount = false\n' \
        > "$work/pjdfstest.toml"
    # Two users that exist on every Debian.
    printf '[dummy_auth]\nentries = [["nobody", "nogroup"], ["games", "games"]]\n' >> "$work/pjdfstest.toml"
    (cd "$1" && "$work/bin/pjdfstest" -c "$work/pjdfstest.toml" -p "$1") > "$log" 2>&1
    grep -a FAILED "$log"
    printf '  %s\n' "$(grep -a Summary: "$log")"
}

for suite in "${suites[@]}"; do
    for directory in "$local" "$mounted"; do
        count=0 passed=0
        place=$directory/$suite.$$
        mkdir "$place"
        printf '%s in %s:\n' "$suite" "$directory"
        "run_$suite" "$place"
        ((count == 0)) || printf '  %d of %d pass\n' "$passed" "$count"
        rm -rf "$place"
    done
done
