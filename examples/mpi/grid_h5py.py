"""Arrays in an HDF5 file, written collectively by some processes and read by others.

    starfish mpi-run -n 4 python3 grid_h5py.py write starfish:grid.h5
    starfish mpi-run -n 3 python3 grid_h5py.py read starfish:grid.h5
"""

import sys

import h5py
import numpy as np
from mpi4py import MPI

ROWS, COLUMNS = 120, 200


def main() -> int:
    """Write or read the arrays; return 1 if values are wrong."""
    what, name = sys.argv[1:]
    world = MPI.COMM_WORLD
    whole = np.arange(ROWS * COLUMNS, dtype="f8").reshape(ROWS, COLUMNS)
    first, end = (COLUMNS * (world.rank + i) // world.size for i in (0, 1))
    parts = {"rows": np.s_[world.rank :: world.size, :], "tiles": np.s_[:, first:end]}
    chunks = {"rows": None, "tiles": (32, 64)}
    wrong = 0
    with h5py.File(name, "w" if what == "write" else "r", driver="mpio", comm=world) as file:
        for array, part in parts.items():
            if what == "write":
                made = file.create_dataset(array, whole.shape, whole.dtype, chunks=chunks[array])
                with made.collective:
                    made[part] = whole[part]
                made.attrs["processes"] = world.size
            with file[array].collective:
                wrong += np.count_nonzero(file[array][part] != whole[part])
    if wrong:
        print(f"grid_h5py: process {world.rank}: {wrong} values are wrong", file=sys.stderr)
    return int(wrong != 0)


if __name__ == "__main__":
    sys.exit(main())
