#!/usr/bin/env python3
"""Measures the cost of recording a real run: `starfish cat` of a file, with and without recording.

Starts agents on loopback, with their disks below TMPDIR. Each round reads the file once without recording, and once while the
program (`--trace`) and the agents (`starfish trace start`) are recorded, in random order; the time to end and write a recording
does not count. Prints the median of each in seconds, and by how many per cent recording increases the time: the median and the
quartiles of the ratios within rounds.

    TMPDIR=/dev/shm python3 benches/traces/real_run.py --mib 1024 --rounds 21                 page caches
    python3 benches/traces/real_run.py --disk-model streaming-20 --cache 16MiB --mib 128      disks slowed down to a model
"""

import argparse
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from agents import Agents, drawn_file


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", default="target/release", help="directory of starfish")
    parser.add_argument("--agents", type=int, default=4, help="agents, each with a disk")
    parser.add_argument("--disk-model", help="slow each disk down to this model")
    parser.add_argument("--cache", help="cache of each agent; if smaller than its part of the file, agents read from their disks")
    parser.add_argument("--mib", type=int, default=1024, help="size of the file")
    parser.add_argument("--rounds", type=int, default=21)
    return parser.parse_args()


class Bench:
    """Agents that store a file."""

    def __init__(self, asked, place):
        self.starfish, self.place = pathlib.Path(asked.programs).resolve() / "starfish", place
        self.agents = Agents(asked.programs, place, asked.agents)
        named = {"--disk-model": asked.disk_model, "--cache": asked.cache}
        self.agents.start(*(word for name, value in named.items() if value for word in (name, value)))
        source = place / "source"
        drawn_file(source, asked.mib)
        self.run("put", source, "big", "--progress", "never")
        source.unlink()

    def run(self, *words):
        subprocess.run([self.starfish, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def seconds(self, is_recorded):
        """Return the time to read the file in seconds."""
        recording = []
        if is_recorded:
            self.run("trace", "start")
            recording = ["--trace", self.place / "program.tlv"]
        begin = time.monotonic()
        self.run("cat", "big", *recording)
        elapsed = time.monotonic() - begin
        if is_recorded:
            self.run("trace", "stop", "-o", self.place / "agents.tlv")
            for trace in self.place.glob("*.tlv"):
                trace.unlink()
        return elapsed


def main():
    asked = options()
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(asked, pathlib.Path(place))
        try:
            bench.seconds(False)
            rounds = []
            for _ in range(asked.rounds):
                ways = [False, True]
                random.shuffle(ways)
                taken = {is_recorded: bench.seconds(is_recorded) for is_recorded in ways}
                rounds.append((taken[False], taken[True]))
        finally:
            bench.agents.stop()
    plain, recorded = (statistics.median(times) for times in zip(*rounds, strict=True))
    low, middle, high = statistics.quantiles([with_it / without for without, with_it in rounds])
    print("plain_s,recorded_s,longer_percent,from_percent,to_percent")
    print(f"{plain:.3f},{recorded:.3f}", *(f"{100 * (ratio - 1):+.1f}" for ratio in (middle, low, high)), sep=",")


if __name__ == "__main__":
    main()
