#!/usr/bin/env python3
"""Make, list, look up and remove many files in one directory: many_entries.py DIRECTORY [COUNT]."""

import os
import sys
import time


def timed(what: str, count: int, work) -> None:
    """Run `work` on `count` files, and print its speed."""
    start = time.monotonic()
    work()
    took = time.monotonic() - start
    print(f"{what:8} {count:9} in {took:8.1f} s, {count / took:9.0f} a second", flush=True)


def main() -> None:
    """Measure each operation once."""
    place = os.path.join(sys.argv[1], f"many.{os.getpid()}")
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    names = [os.path.join(place, f"file{number:07}") for number in range(count)]
    os.mkdir(place)

    def make() -> None:
        for name in names:
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY | os.O_EXCL))

    def read_names() -> None:
        found = sum(1 for _ in os.scandir(place))
        assert found == count, f"{found} of {count}"

    def look() -> None:
        found = sum(entry.stat(follow_symlinks=False).st_nlink for entry in os.scandir(place))
        assert found == count, f"{found} of {count}"

    def remove() -> None:
        for name in names:
            os.unlink(name)

    timed("make", count, make)
    timed("list", count, read_names)
    timed("ls -l", count, look)
    timed("remove", count, remove)
    os.rmdir(place)


main()
