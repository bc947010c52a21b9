#!/usr/bin/env python3
"""Compares ways to read and write a large file on the same agents: `starfish get`, a mount, files of Python.

Starts agents on loopback, with their disks below TMPDIR, and measures in rounds, each way once per round. Prints for each way
the median in MiB/s, the ratio to another way (the median of the ratios within rounds), and the processor time in seconds per GiB,
of the program, the mount and the agents together.

    TMPDIR=/dev/shm target/python/venv/bin/python benches/files/doors.py --programs target/release --mib 1024
    target/python/venv/bin/python benches/files/doors.py --disk-model DISK.toml --mib 256       disks slowed down to a model
    TMPDIR=/dev/shm target/python/venv/bin/python benches/files/doors.py --small                small files

The ways in Python need the package (`make python`); `ceiling`, the limit of FUSE without a file system, needs
`cargo build --release -p mount --example ceiling`. Ways with a missing prerequisite are skipped with a note.
"""

import argparse
import contextlib
import importlib.util
import mmap
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from agents import MIB, Agents, drawn_file, processor_s

RANGES, RANGE_BYTES = 1000, 100 << 10


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", default="target/release", help="directory of starfish, with examples/ceiling")
    parser.add_argument("--agents", type=int, default=4, help="agents, each with a disk")
    parser.add_argument("--disk-model", help="slow each disk down to this model")
    parser.add_argument("--disk-rate", type=float, default=0, help="MiB/s of a disk: also print the share of the rate of all disks")
    parser.add_argument("--mib", type=int, default=1024, help="size of the file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ways", help="names of the ways to measure, separated by commas")
    parser.add_argument("--small", action="store_true", help="measure small files instead: create, stat, list, remove")
    parser.add_argument("--files", type=int, default=10_000, help="number of small files")
    return parser.parse_args()


class Bench:
    """The agents with the file, and a directory for mounts."""

    def __init__(self, asked, place):
        self.asked, self.place = asked, place
        self.programs = pathlib.Path(asked.programs).resolve()
        self.starfish = self.programs / "starfish"
        self.directory, self.bytes = place / "mnt", asked.mib * MIB
        self.directory.mkdir()
        self.agents = Agents(self.programs, place, asked.agents)
        self.model = ["--disk-model", asked.disk_model] if asked.disk_model else []

    def run(self, *command, **more):
        return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL, **more)

    def forget(self):
        """Restart the agents if their disks are slowed down, so that their caches are empty."""
        if self.model:
            self.agents.start(*self.model)

    @contextlib.contextmanager
    def mounted(self, *more):
        """Mount while the block runs; yields the process of the mount."""
        process = subprocess.Popen([self.starfish, "mount", self.directory, *more], stdout=subprocess.DEVNULL)
        with unmounted(self, process):
            yield process

    @contextlib.contextmanager
    def ceiling(self):
        program = [self.programs / "examples" / "ceiling", self.directory, str(self.bytes)]
        process = subprocess.Popen(program)
        with unmounted(self, process):
            yield process


@contextlib.contextmanager
def unmounted(bench, process):
    """Wait until the directory is mounted, and unmount it at the end of the block."""
    device = bench.place.stat().st_dev
    while bench.directory.stat().st_dev == device:
        assert process.poll() is None, "the mount failed"
        time.sleep(0.01)
    try:
        yield
    finally:
        subprocess.run(["fusermount3", "-u", bench.directory], check=False)
        process.wait()


def timed(bench, work, mount=None):
    """Return the elapsed time and the processor time of `work`, in seconds."""
    processes = [mount.pid] if mount else []

    def worked():
        own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return (
            sum(usage.ru_utime + usage.ru_stime for usage in own)
            + bench.agents.processor_s()
            + sum(processor_s(process) for process in processes)
        )

    before, begin = worked(), time.monotonic()
    work()
    elapsed = time.monotonic() - begin
    return elapsed, worked() - before


def cat(bench):
    bench.forget()
    return timed(bench, lambda: bench.run(bench.starfish, "cat", "big"))


def get(bench):
    bench.forget()
    target = bench.place / "copy"
    try:
        return timed(bench, lambda: bench.run(bench.starfish, "get", "big", target, "--progress", "never"))
    finally:
        target.unlink()


def put(bench):
    bench.forget()
    source = bench.place / "source"
    try:
        return timed(bench, lambda: bench.run(bench.starfish, "put", source, "written", "--progress", "never"))
    finally:
        bench.run(bench.starfish, "rm", "written")


def read_all(path, direct=False):
    """Read a file in requests of 1 MiB."""
    flags = os.O_RDONLY | (os.O_DIRECT if direct else 0)
    with open(os.open(path, flags), "rb", buffering=0) as file:
        memory = mmap.mmap(-1, MIB)
        while file.readinto(memory):
            pass


def write_all(path, source, size):
    """Write a file in requests of 1 MiB, and flush it to stable storage."""
    block = source[: 1 << 20]
    with open(path, "wb", buffering=0) as file:
        for _ in range(size // MIB):
            file.write(block)
        os.fsync(file.fileno())


def mount_read(bench, *more):
    bench.forget()
    with bench.mounted(*more) as mount:
        return timed(bench, lambda: read_all(bench.directory / "big"), mount)


def mount_write(bench, *more):
    bench.forget()
    block = random.Random(1).randbytes(MIB)
    with bench.mounted(*more) as mount:
        path = bench.directory / "written"
        outcome = timed(bench, lambda: write_all(path, block, bench.bytes), mount)
        path.unlink()
        return outcome


def ceiling_read(bench):
    with bench.ceiling() as mount:
        return timed(bench, lambda: read_all(bench.directory / "zeros"), mount)


def ceiling_write(bench):
    block = random.Random(1).randbytes(MIB)
    with bench.ceiling() as mount:
        return timed(bench, lambda: write_all(bench.directory / "zeros", block, bench.bytes), mount)


PYTHON = """
import sys, time, random, fsspec
way, size, calls = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
fs = fsspec.filesystem("starfish")
fs.info("/big")
draw = random.Random(1)
for _ in range(calls):
    ranges = [draw.randrange(size - {range_bytes}) for _ in range({ranges})]
    begin = time.monotonic()
    if way == "cat_file":
        assert len(fs.cat_file("/big")) == size
    elif way == "cat_ranges":
        read = fs.cat_ranges(["/big"] * len(ranges), ranges, [start + {range_bytes} for start in ranges])
        assert all(len(one) == {range_bytes} for one in read)
    else:
        with fs.open("/big", "rb") as file:
            while file.read(1 << 20):
                pass
    took = time.monotonic() - begin
print(took)
"""


def python(way, calls=1):
    """Return a measurement of the last of `calls` calls in a Python process, after connecting. In the first call, the
    kernel provides new memory for the data page by page; later calls reuse it."""
    program = PYTHON.format(ranges=RANGES, range_bytes=RANGE_BYTES)

    def measure(bench):
        bench.forget()
        seconds = []

        def work():
            words = [way, str(bench.bytes), str(calls)]
            outcome = subprocess.run(
                [sys.executable, "-c", program, *words], check=True, capture_output=True, text=True
            )
            seconds.append(float(outcome.stdout))

        _, worked = timed(bench, work)
        return seconds[0], worked / calls

    return measure


# Each way: its measurement, the bytes that it transfers (None: the whole file), and the way to compare with.
WAYS = {
    "cat": (cat, None, None),
    "get": (get, None, None),
    "put": (put, None, None),
    "mount read": (mount_read, None, "get"),
    "mount read --direct": (lambda bench: mount_read(bench, "--direct"), None, "get"),
    "mount write": (mount_write, None, "put"),
    "fuse ceiling read": (ceiling_read, None, "get"),
    "fuse ceiling write": (ceiling_write, None, "put"),
    "python cat_file": (python("cat_file"), None, "get"),
    "python cat_ranges": (python("cat_ranges"), RANGES * RANGE_BYTES, "get"),
    "python cat_ranges again": (python("cat_ranges", 5), RANGES * RANGE_BYTES, "get"),
    "python read": (python("read"), None, "get"),
}


def possible(bench):
    """Return the ways whose prerequisites exist."""
    ways = dict(WAYS)
    if bench.asked.ways:
        asked = bench.asked.ways.split(",")
        if unknown := [name for name in asked if name not in WAYS]:
            sys.exit(f"--ways {unknown[0]}: not one of {', '.join(WAYS)}")
        ways = {name: way for name, way in ways.items() if name in asked}
    if not (bench.programs / "examples" / "ceiling").exists():
        print("# fuse ceiling: not built", file=sys.stderr)
        ways = {name: way for name, way in ways.items() if not name.startswith("fuse")}
    if importlib.util.find_spec("starfish") is None:
        print("# python: the package is missing in this interpreter", file=sys.stderr)
        ways = {name: way for name, way in ways.items() if not name.startswith("python")}
    return ways


def large(bench):
    """Measure all ways and print them."""
    source = bench.place / "source"
    drawn_file(source, bench.asked.mib)
    bench.agents.start(*bench.model)
    # Create a directory first, because the mount and the file system of Python need the namespace.
    bench.run(bench.starfish, "mkdir", "/begun")
    bench.run(bench.starfish, "put", source, "big", "--progress", "never")
    ways = possible(bench)
    rates, processors = {name: [] for name in ways}, {name: [] for name in ways}
    for _ in range(bench.asked.rounds):
        for name, (measure, moved, _) in ways.items():
            seconds, worked = measure(bench)
            moved = moved or bench.bytes
            rates[name].append(moved / MIB / seconds)
            processors[name].append(worked * 1024 * MIB / moved)
    print("way,mib_s,compared_with,ratio,processor_s_per_gib")
    for name, (_, _, other) in ways.items():
        ratio = ""
        if other in rates:
            ratio = f"{statistics.median(one / two for one, two in zip(rates[name], rates[other], strict=True)):.3f}"
        row = [name, f"{statistics.median(rates[name]):.0f}", other or "", ratio]
        print(*row, f"{statistics.median(processors[name]):.2f}", sep=",")
        if bench.asked.disk_rate:
            share = statistics.median(rates[name]) / bench.asked.disk_rate / bench.asked.agents
            print(f"# {name}: {share:.3f} of the rate of all disks")


def small(bench):
    """Measure small files of 4 KiB through the mount: create, stat, list and remove, in operations per
    second."""
    bench.agents.start(*bench.model)
    bench.run(bench.starfish, "mkdir", "/begun")
    contents, count = os.urandom(4096), bench.asked.files
    print("operation,per_s,seconds")

    def told(what, work, mount_options=()):
        with bench.mounted(*mount_options) as mount:
            seconds, _ = timed(bench, work, mount)
        print(f"{what},{count / seconds:.0f},{seconds:.2f}", flush=True)

    directory = bench.directory / "small"
    names = [directory / f"file{number:06}" for number in range(count)]

    def make():
        directory.mkdir()
        for name in names:
            with open(name, "wb", buffering=0) as file:
                file.write(contents)

    told("create + 4 KiB + close", make)
    told("stat", lambda: [os.stat(name) for name in names])
    told("list", lambda: os.listdir(directory))
    told("ls -l", lambda: bench.run("ls", "-l", directory))
    told("unlink", lambda: [os.unlink(name) for name in names])
    with bench.mounted():
        directory.rmdir()
        make()
    # rm lists the names first, which gives the kernel the attributes that it otherwise requests for each
    # file.
    told("rm -r", lambda: bench.run("rm", "-r", directory))


def main():
    asked = options()
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(asked, pathlib.Path(place))
        try:
            (small if asked.small else large)(bench)
        finally:
            bench.agents.stop()


if __name__ == "__main__":
    main()
