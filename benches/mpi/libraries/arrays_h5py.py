"""Measures collective writes and reads of an array in an HDF5 file with h5py.

arrays_h5py.py NAME MIB ROUNDS
"""

import sys
import time

import h5py
import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD


def wait_asleep(request):
    """Wait until a request is complete, without occupying a processor: as in `timed.h`."""
    while not request.Test():
        time.sleep(0.001)


def timed(work):
    """Return the time of the slowest process in seconds."""
    wait_asleep(WORLD.Ibarrier())
    start = MPI.Wtime()
    work()
    own, longest = np.array([MPI.Wtime() - start]), np.empty(1)
    wait_asleep(WORLD.Iallreduce(own, longest, MPI.MAX))
    return longest[0]


def main():
    """Write and read, and print the best rates in millions of bytes per second."""
    name, mib, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rows = int((mib * 2**20 / 8) ** 0.5)
    columns = rows - rows % WORLD.size
    own = np.s_[:, columns // WORLD.size * WORLD.rank : columns // WORLD.size * (WORLD.rank + 1)]
    back = np.empty((rows, columns // WORLD.size))

    def write(values):
        with h5py.File(name, "w", driver="mpio", comm=WORLD) as file:
            array = file.create_dataset("array", (rows, columns), "f8")
            with array.collective:
                array[own] = values
            file.flush()

    def read():
        with h5py.File(name, "r", driver="mpio", comm=WORLD) as file:
            array = file["array"]
            with array.collective:
                array.read_direct(back, own)

    times = []
    for number in range(rounds):
        values = np.random.default_rng([number, WORLD.rank]).random(back.shape)
        times.append((timed(lambda: write(values)), timed(read)))
        if not np.array_equal(back, values):
            print("a value that was read is wrong", file=sys.stderr)
            WORLD.Abort(1)
    if WORLD.rank == 0:
        print(*(round(rows * columns * 8 / 1e6 / min(took)) for took in zip(*times)))


if __name__ == "__main__":
    main()
