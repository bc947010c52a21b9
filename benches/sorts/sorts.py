#!/usr/bin/env python3
"""Compares several pfssorts on the same agents with slowed disks: concurrently and one after the other.

Starts agents on loopback, uploads a file of lines for each sort, and restarts the agents before each measurement, so that their
caches are empty. Runs and outputs are striped files; memory is so small that they are written to the disks. Prints a row for each
placement and way: the time of each sort and of all sorts, in seconds.

    benches/sorts/sorts.py --programs target/release --placements striped,3
"""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from agents import Agents


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", default="target/release", help="directory of starfish")
    parser.add_argument("--agents", type=int, default=4, help="agents, each with a disk")
    parser.add_argument("--disk-model", default="streaming-20")
    parser.add_argument("--scheduling", default="cyclic-scan", help="disk scheduling")
    parser.add_argument("--sorts", type=int, default=2)
    parser.add_argument("--mib", type=int, default=48, help="size of the file of each sort")
    parser.add_argument("--memory", default="6MiB", help="memory of each sort for lines")
    parser.add_argument("--cache", default="16MiB", help="page cache of each sort, and cache of each agent")
    parser.add_argument("--placements", default="striped", help="values of --placement, or `none` to omit the option")
    parser.add_argument("--rounds", type=int, default=1)
    return parser.parse_args()


def lines(path, mib, seed):
    """Make a file of random lines."""
    draw = random.Random(seed)
    with open(path, "wb") as file:
        for _ in range(mib):
            file.write(b"".join(b"%031d\n" % draw.getrandbits(96) for _ in range((1 << 20) // 32)))


def sort(asked, placement, number, job):
    command = ["pfssort", f"pfs:input{number}", "-o", f"pfs:output{number}"]
    command += ["-S", asked.memory, "--cache", asked.cache, "-T", "pfs:"]
    if placement != "none":
        command += ["--placement", placement]
        if placement != "striped":
            command += ["--job", job]
    # Called under this name, starfish runs as pfssort.
    return subprocess.Popen(command, executable=asked.programs / "starfish")


def finished(sorts, begin):
    """Return the time at which each sort was done, in seconds after `begin`."""
    times = {}
    while len(times) < len(sorts):
        for number, one in enumerate(sorts):
            if number not in times and one.poll() is not None:
                assert one.returncode == 0, f"sort {number} failed"
                times[number] = time.monotonic() - begin
        time.sleep(0.005)
    return [times[number] for number in range(len(sorts))]


def measured(asked, placement, groups):
    """Return the seconds of each sort and of all; sorts of a group run concurrently, groups one after the
    other."""
    begin, ends = time.monotonic(), []
    for group in groups:
        started = time.monotonic()
        jobs = [f"{place}/{len(group)}" for place in range(1, len(group) + 1)]
        ends += finished([sort(asked, placement, *sort_and_job) for sort_and_job in zip(group, jobs)], started)
    return ends, time.monotonic() - begin


def main():
    asked = options()
    asked.programs = pathlib.Path(asked.programs).resolve()
    with tempfile.TemporaryDirectory() as place:
        agents = Agents(asked.programs, pathlib.Path(place), asked.agents)
        try:
            agents.start()
            expected = []
            for number in range(asked.sorts):
                path = pathlib.Path(place) / f"input{number}"
                lines(path, asked.mib, number)
                subprocess.run([asked.programs / "starfish", "put", path, f"input{number}"], check=True)
                expected.append(hash(b"".join(sorted(path.read_bytes().splitlines(True)))))
            slowed = ["--disk-model", asked.disk_model, "--cache", asked.cache, "--scheduling", asked.scheduling]
            all_sorts = list(range(asked.sorts))
            ways = {"alone": [[0]], "in turn": [[number] for number in all_sorts], "at once": [all_sorts]}
            print("placement,scheduling,way,round,all_s,each_s")
            for placement in asked.placements.split(","):
                for way, groups in ways.items():
                    for turn in range(asked.rounds):
                        agents.start(*slowed)
                        ends, whole = measured(asked, placement, groups)
                        each = " ".join(f"{end:.2f}" for end in ends)
                        print(f"{placement},{asked.scheduling},{way},{turn},{whole:.2f},{each}", flush=True)
                agents.start()
                for number, right in enumerate(expected):
                    output = subprocess.run([asked.programs / "starfish", "cat", f"output{number}"], check=True, capture_output=True)
                    assert hash(output.stdout) == right, f"output {number} is wrong"
                    subprocess.run([asked.programs / "starfish", "rm", f"output{number}"], check=True)
        finally:
            agents.stop()


if __name__ == "__main__":
    main()
