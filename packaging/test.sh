#!/usr/bin/env bash
# Makes the Debian package from the build results, installs it in a temporary root directory, tests its files, and removes
# the package again. Changes nothing outside of the temporary directory.
#
#   test.sh BUILT
#
# BUILT is as in install.sh.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
built=$1

skip() {
    echo "skipped: $1"
    [[ -z ${STARFISH_SKIPPED:-} ]] || printf '%s\tpackaging/test.sh\n' "$1" >> "$STARFISH_SKIPPED"
}

fail() {
    echo "packaging/test.sh: $1" >&2
    exit 1
}

# expect WHAT TEXT COMMAND...: fails unless the output of the command contains the text.
expect() {
    local what=$1 text=$2 printed
    shift 2
    printed=$("$@" 2>&1) || fail "$what: $* failed: $printed"
    [[ $printed == *"$text"* ]] || fail "$what: the output of $* lacks \"$text\": $printed"
}

for tool in dpkg dpkg-deb dpkg-shlibdeps strip nm; do
    if ! command -v "$tool" > /dev/null; then
        skip "the Debian package is not tested: $tool is missing"
        exit 0
    fi
done

if ((EUID != 0)); then
    skip "the Debian package is not tested: only root can install packages"
    exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers}
touch "$root/var/lib/dpkg/status"

# Compress little: the package is unpacked at once, so its size does not matter.
"$here/deb.sh" "$built" "$work" -Zgzip -z1 > /dev/null
deb=$(ls "$work"/starfish_*.deb)
echo "made: $(basename "$deb"), $(($(stat -c %s "$deb") >> 20)) MiB"

# Runs dpkg on the temporary root directory; the scripts of the package also change only this directory.
in_root() {
    PATH=$PATH:/usr/sbin:/sbin dpkg --root="$root" --force-script-chrootless --force-not-root --force-depends \
        --log=/dev/null "$@" > "$work/dpkg.log" 2>&1 || fail "dpkg $*: $(cat "$work/dpkg.log")"
}
in_root --install "$deb"
dpkg --root="$root" --listfiles starfish > "$work/files"
bin=$root/usr/bin

# Hide the configuration of the user.
export HOME=$work/home XDG_CONFIG_HOME=$work/home/config XDG_STATE_HOME=$work/home/state
unset STARFISH_AGENTS STARFISH_KEY_FILE
mkdir "$HOME"

# Programs: all run, and are stripped.
for program in starfish mycat fs2pfs pfs2fs pfsgrep pfssort pfsbzip2; do
    expect "programs" "$program 0" "$bin/$program" --version
    [[ -z $(nm "$bin/$program" 2> /dev/null) ]] || fail "$program has symbols"
    grep -qx "/usr/share/man/man1/$program.1.gz" "$work/files" || fail "$program has no manual page"
    for file in bash-completion/completions/$program fish/vendor_completions.d/$program.fish \
        zsh/vendor-completions/_$program; do
        grep -qx "/usr/share/$file" "$work/files" || fail "$program has no completions $file"
    done
done
export PATH=$bin:$PATH

grep -qx "/usr/share/starfish/grafana/starfish.json" "$work/files" || fail "the dashboard is missing"

# Manual pages: each command has one, and groff formats each page without warnings.
for command in $(starfish help | sed -n '/^Commands:/,/^$/ s/^  \([a-z]\+\) .*/\1/p'); do
    [[ $command == help || -e $root/usr/share/man/man1/starfish-$command.1.gz ]] ||
        fail "starfish $command has no manual page"
done
if command -v groff > /dev/null; then
    for page in "$root"/usr/share/man/man1/*; do
        complaints=$(zcat "$page" | groff -man -Tutf8 -ww -rLL=80n 2>&1 > "$work/page")
        [[ -z $complaints && $(wc -l < "$work/page") -gt 10 ]] || fail "$page: $complaints"
    done
else
    skip "manual pages are not formatted: groff is missing"
fi
for page in "$root"/usr/share/man/man3/*; do
    target=$(zcat "$page" | sed -n 's/^\.so \(.*\)/\1/p')
    [[ -z $target || -e $root/usr/share/man/$target.gz ]] || fail "$page refers to a missing page"
done

# Completions: bash loads them, and they offer values, including names of files on an agent.
mkdir "$work/disk"
# The agent ends with this script.
coproc AGENT { starfish agent --root "$work/disk" --create --listen 127.0.0.1:0 --until-input-ends 2> /dev/null; }
agent=$AGENT_PID
read -r -t 10 listening <&"${AGENT[0]}" || fail "an agent does not start"
STARFISH_AGENTS=$(sed -n 's/^listening on \([^,]*\),.*/\1/p' <<< "$listening")
export STARFISH_AGENTS
starfish put "$work/files" stored.txt
offered() {
    local program=$1 words=("$@")
    source "$root/usr/share/bash-completion/completions/$program"
    COMP_LINE="${words[*]}" COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1))
    "_starfish_complete_$program" 2> /dev/null
    echo "${COMPREPLY[@]}"
}
expect "completions" "disk-directed" offered starfish simulate --method disk
expect "completions" "starfish-1996" offered starfish simulate --machine starf
expect "completions" "stored.txt" offered starfish get sto
COMP_WORDBREAKS=$' \t' expect "completions" "pfs:stored.txt" offered pfsgrep x pfs:
expect "programs" "/usr/bin/pfsgrep" pfsgrep pfsgrep pfs:stored.txt

# MPI: starfish finds the library for each MPI, and a program writes a file on the agent with it.
cat > "$work/writes.c" <<'END'
#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_File file;
    MPI_Init(&argc, &argv);
    int failed = MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) ||
                 MPI_File_write(file, "by MPI", 6, MPI_CHAR, MPI_STATUS_IGNORE) || MPI_File_close(&file);
    MPI_Finalize();
    return failed;
}
END
for mpi in mpich:libmpich.so.12 openmpi:libmpi.so.40; do
    kind=${mpi%:*} library=/usr/lib/starfish/starfish-${mpi#*:}
    if ! "mpicc.$kind" "$work/writes.c" -o "$work/$kind" 2> /dev/null; then
        skip "the library for $kind is not tested: its compiler or headers are missing"
        continue
    fi
    grep -qx "$library" "$work/files" || fail "the package lacks $library"
    found=$(starfish mpi-preload "$work/$kind")
    [[ $found == "$root$library" ]] || fail "starfish mpi-preload finds $found, not $library"
    LD_PRELOAD=$found "$work/$kind" "starfish:$kind" || fail "a program of $kind cannot write"
    expect "programs of MPI" "by MPI" starfish cat "$kind"
done
kill "$agent"
wait "$agent" || true
if command -v zsh > /dev/null; then
    for file in "$root"/usr/share/zsh/vendor-completions/_*; do zsh -n "$file"; done
else
    skip "completions for zsh are not tested: zsh is missing"
fi
if command -v fish > /dev/null; then
    for file in "$root"/usr/share/fish/vendor_completions.d/*; do fish --no-execute "$file"; done
else
    skip "completions for fish are not tested: fish is missing"
fi

# mount(8) calls the program under this name, with the options in /etc/fstab.
helper=$root/usr/sbin/mount.fuse.starfish
[[ -L $helper ]] || fail "mount.fuse.starfish is missing"
refused=$("$helper" node1:7117 "$work" -o colour=green 2>&1) && fail "mount.fuse.starfish accepts an unknown option"
[[ $refused == *--colour* ]] || fail "the error of mount.fuse.starfish does not name the unknown option: $refused"

# The C libraries: programs can be linked with them, and run.
printf '#include <pdiol.h>\nint main(void) { return pdiol_strerror() == 0; }\n' > "$work/program.c"
cc -I"$root/usr/include" "$work/program.c" -L"$root/usr/lib" -lpdiol -o "$work/program"
LD_LIBRARY_PATH=$root/usr/lib "$work/program" || fail "a program with the C library does not run"
expect "pkg-config file" "prefix=/usr" cat "$root/usr/lib/pkgconfig/pdiol.pc"
printf '#include <tlv.h>\nint main(void) { return TLV_Initialize("program") || TLV_Finalize(); }\n' > "$work/recorded.c"
cc -I"$root/usr/include" "$work/recorded.c" -L"$root/usr/lib" -ltlv -o "$work/recorded"
(cd "$work" && LD_LIBRARY_PATH=$root/usr/lib "$work/recorded") || fail "a program with libtlv does not run"
[[ -s $work/program.tlv ]] || fail "a program with libtlv writes no trace"
expect "pkg-config file" "prefix=/usr" cat "$root/usr/lib/pkgconfig/tlv.pc"

# The service: systemd accepts its unit file, installation does not enable it, and it is sandboxed.
unit=$root/usr/lib/systemd/system/starfish-agent.service
[[ -z $(find "$root/etc/systemd" -name 'starfish*' 2> /dev/null) ]] || fail "the installation enables the service"
# remote-fs.target includes a mount of Starfish on the same computer, which waits for the agent.
! grep -q '^After=.*remote-fs' "$unit" || fail "the service and a mount on its computer wait for each other"
# Mounts belong to users: each directory has a service instance.
mount_unit=$root/usr/lib/systemd/user/starfish-mount@.service
grep -q '^ExecStart=/usr/bin/starfish mount --wait 300 %f$' "$mount_unit" || fail "the service for mounts is missing"
# verify OPTION UNIT NAME: checks a unit file, with the path of the installed program.
verify() {
    sed "s|/usr/bin/starfish|$bin/starfish|" "$2" > "$work/$3"
    local complaints
    complaints=$(systemd-analyze verify "$1" --man=no "$work/$3" 2>&1 | grep starfish || true)
    [[ -z $complaints ]] || fail "systemd-analyze verify $1 $3: $complaints"
}
if command -v systemd-analyze > /dev/null; then
    verify --system "$unit" starfish-agent.service
    verify --user "$mount_unit" starfish-mount@tmp-files.service
    if systemd-analyze security --offline=true --threshold=30 "$work/starfish-agent.service" > "$work/security" 2>&1; then
        tail -1 "$work/security"
    else
        fail "the service is not sandboxed enough: $(tail -1 "$work/security")"
    fi
else
    skip "the services are not verified: systemd-analyze is missing"
fi

# After removing and purging, only the user of the agent remains.
in_root --remove starfish
[[ -e $root/etc/default/starfish ]] || fail "removing the package removed the configuration"
in_root --purge starfish
left=$(cd "$root" && find . -not -type d -not -path './var/lib/dpkg/*' | grep -vE '^\./etc/(passwd|group|shadow|gshadow)-?$|^\./etc/\.pwd\.lock$' || true)
[[ -z $left ]] || fail "purging the package left files: $left"
echo "the package was made, installed, tested and removed"
