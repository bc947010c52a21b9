#!/usr/bin/env python3
"""Run the golden micro-workload in Starfish and in its peers, interleaved, and print the ratios.

See README.md in this folder. The script needs only the standard library. It skips a peer whose tools are
missing, and prints a note.
"""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "target" / "peers"

FULL = 20_000
EVENTS_PER_N = 16 * 4
EXPECTED = (170290.895022, 2244525.631076)
TOLERANCE = 1e-6

LINE = re.compile(
    r"last_reply=(?P<last>[0-9.]+)\s+response_sum=(?P<sum>[0-9.]+)\s+"
    r"events=(?P<events>[0-9]+)\s+.*?ns_per_event=(?P<ns>[0-9.]+)"
)

# The example of Starfish prints the same values in nanoseconds; a unit of the workload is a millisecond.
STARFISH_LINE = re.compile(
    r"last reply (?P<last>[0-9]+) ns, responses (?P<sum>[0-9]+) ns, .*?"
    r"(?P<events>[0-9]+) events, (?P<ns>[0-9.]+) ns each"
)


class Unavailable(Exception):
    """A peer cannot be built; the message contains the remedy."""


class Wrong(Exception):
    """A file of this repository is missing or does not build, or the results of a simulator are wrong."""


class Peer:
    def __init__(self, name, version, command, n):
        self.name = name
        self.version = version
        self.command = command
        self.n = n
        self.samples = []

    def run(self, n):
        """Run the simulator once; return the digests and the nanoseconds per event."""
        # The last argument makes Starfish's example run the workload once; the peers ignore it.
        done = subprocess.run(self.command + [str(n), "1"], capture_output=True, text=True)
        unit = 1.0
        found = LINE.search(done.stdout)
        if not found:
            unit = 1e6
            found = STARFISH_LINE.search(done.stdout)
        if done.returncode != 0 or not found:
            output = done.stdout + done.stderr
            raise Wrong(f"{self.name} printed no result (exit {done.returncode}):\n{output}")
        if int(found["events"]) != EVENTS_PER_N * n:
            raise Wrong(f"{self.name} counts {found['events']} events instead of {EVENTS_PER_N * n}")
        return (float(found["last"]) / unit, float(found["sum"]) / unit), float(found["ns"])


def check(peer, digests, expected):
    for what, got, want in zip(("last reply", "response sum"), digests, expected):
        if abs(got - want) > TOLERANCE * want:
            raise Wrong(f"{peer.name}: {what} is {got:.6f} instead of {want:.6f}")


def command(arguments, remedy):
    """Run a build step; if it fails, the peer is unavailable."""
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        raise Unavailable(f"{remedy}\n{(done.stderr or done.stdout).strip()[-1500:]}")
    return done.stdout


def source(path):
    """Return the path of a file of this repository. A missing file is an error, not a missing prerequisite."""
    if not path.exists():
        raise Wrong(f"{path.relative_to(ROOT)} is missing")
    return path


def tool(name, remedy):
    found = shutil.which(name)
    if not found:
        raise Unavailable(f"{name} is not installed: {remedy}")
    return found


def version_of(arguments):
    return command(arguments, f"{arguments[0]} does not run").splitlines()[0].strip()


RUST = "install Rust (https://rustup.rs)"


def bare(_options):
    rustc = tool("rustc", RUST)
    binary = BUILD / "golden_bare"
    program = source(HERE / "golden_bare.rs")
    command(
        [rustc, "--edition", "2024", "-C", "opt-level=3", "-o", str(binary), str(program)],
        "golden_bare.rs does not compile:",
    )
    version = " ".join(version_of([rustc, "--version"]).split()[:2])
    return [Peer("bare event loop", version, [str(binary)], FULL)]


def starfish(_options):
    cargo = tool("cargo", RUST)
    source(ROOT / "crates" / "machines" / "sim" / "examples" / "golden.rs")
    arguments = ["build", "--release", "-q", "-p", "sim", "--example", "golden"]
    messages = command(
        [cargo, *arguments, "--message-format=json-render-diagnostics"], "the golden example does not build:"
    )
    for line in messages.splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("target", {}).get("name") == "golden" and message.get("executable"):
            commit = subprocess.run(
                ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=ROOT
            ).stdout.strip()
            return [Peer("Starfish", commit or "", [message["executable"]], FULL)]
    raise Wrong("cargo built no executable for the golden example")


def simgrid(options):
    program = source(HERE / "golden_simgrid.cpp")
    compiler = tool(options.cxx, "apt-get install g++, or name another compiler with --cxx")
    probe = subprocess.run(
        [compiler, "-E", "-dM", "-include", "simgrid/version.h", "-x", "c++", os.devnull],
        capture_output=True,
        text=True,
    )
    found = re.search(r'SIMGRID_VERSION_STRING "SimGrid version ([^"]+)"', probe.stdout)
    if probe.returncode != 0 or not found:
        raise Unavailable("the headers of SimGrid are not installed: apt-get install libsimgrid-dev")
    binary = BUILD / "golden_simgrid"
    command(
        [compiler, "-O2", "-std=c++17", "-o", str(binary), str(program), "-lsimgrid"],
        f"golden_simgrid.cpp does not compile with SimGrid {found[1]} (it was written for 3.32):",
    )
    return [
        Peer(f"SimGrid, {idiom}", found[1], [str(binary), idiom], options.simgrid_n)
        for idiom in ("messages", "lean")
    ]


def simpy(options):
    script = source(HERE / "golden_simpy.py")
    interpreter = tool(options.python, "name another Python with --python")
    venv = BUILD / "venv"
    python = str(venv / "bin" / "python")
    requirements = (HERE / "requirements.txt").read_text()
    stamp = venv / "made-for.txt"
    wanted = f"{os.path.realpath(interpreter)}\n{requirements}"
    if not stamp.exists() or stamp.read_text() != wanted:
        command(
            [interpreter, "-m", "venv", "--clear", str(venv)],
            "no virtual environment can be made: apt-get install python3-venv",
        )
        command(
            [python, "-m", "pip", "install", "-q", "-r", str(HERE / "requirements.txt")],
            "SimPy cannot be installed; is the Python package index reachable?",
        )
        stamp.write_text(wanted)
    program = "import platform, simpy; print(simpy.__version__, '/ Python', platform.python_version())"
    version = version_of([python, "-c", program])
    return [
        Peer(f"SimPy, {idiom}", version, [python, str(script), idiom], options.simpy_n)
        for idiom in ("messages", "lean")
    ]


def processor():
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def note(text):
    print(text, file=sys.stderr, flush=True)


def table(peers, reference):
    rows = [("simulator", "version", "events", "ns per event: median (min..max)", "ratio to Starfish")]
    for peer in peers:
        median = statistics.median(peer.samples)
        spread = f"{median:.1f} ({min(peer.samples):.1f}..{max(peer.samples):.1f})"
        ratio = f"{median / reference:.2f}" if reference else "-"
        rows.append((peer.name, peer.version, f"{EVENTS_PER_N * peer.n:,}", spread, ratio))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    rows.insert(1, tuple("-" * width for width in widths))
    for row in rows:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="timed runs of each simulator (default 5)")
    parser.add_argument(
        "--simpy-n",
        type=int,
        default=5_000,
        help="requests of each client in a timed run of SimPy (default 5000)",
    )
    parser.add_argument(
        "--simgrid-n",
        type=int,
        default=FULL,
        help="requests of each client in a timed run of SimGrid (default 20000, the whole workload)",
    )
    parser.add_argument("--python", default=sys.executable, help="the Python for SimPy (default: this one)")
    parser.add_argument("--cxx", default="g++", help="the C++ compiler for SimGrid (default g++)")
    options = parser.parse_args()
    if min(options.rounds, options.simpy_n, options.simgrid_n) < 1:
        parser.error("rounds and numbers of requests must be at least 1")

    BUILD.mkdir(parents=True, exist_ok=True)
    try:
        peers = []
        for label, prepare in (
            ("bare event loop", bare),
            ("Starfish", starfish),
            ("SimGrid", simgrid),
            ("SimPy", simpy),
        ):
            try:
                peers += prepare(options)
            except Unavailable as reason:
                note(f"note: {label} is skipped: {reason}")
        if not peers:
            sys.exit("no simulator can be built")

        # Each simulator computes the whole workload once before the timed rounds. The digests of shorter runs
        # are compared with those of the first simulator, whose complete run has been checked before.
        for peer in peers:
            note(f"checking {peer.name}")
            digests, _ = peer.run(FULL)
            check(peer, digests, EXPECTED)
        expected = {FULL: EXPECTED}
        for number in range(options.rounds):
            note(f"round {number + 1} of {options.rounds}")
            for peer in peers:
                if peer.n not in expected:
                    expected[peer.n] = peers[0].run(peer.n)[0]
                digests, ns = peer.run(peer.n)
                check(peer, digests, expected[peer.n])
                peer.samples.append(ns)
    except Wrong as reason:
        sys.exit(f"error: {reason}")

    load = f", load average {os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else ""
    print(f"{processor()}, {os.cpu_count()} cores{load}; {options.rounds} interleaved rounds")
    last_reply, response_sum = EXPECTED
    print(f"Verified on the whole workload: last reply {last_reply:.6f}, response sum {response_sum:.6f}\n")
    ours = [peer for peer in peers if peer.name == "Starfish"]
    table(peers, statistics.median(ours[0].samples) if ours else None)


if __name__ == "__main__":
    main()
