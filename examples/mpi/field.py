"""A two-dimensional field, distributed over processes by columns, written and read with mpi4py.

    starfish mpi-run -n 4 python3 field.py write starfish:field
    starfish mpi-run -n 3 python3 field.py read starfish:field
"""

import sys

import numpy as np
from mpi4py import MPI

ROWS, COLUMNS = 300, 200


def main() -> int:
    """Write or read the field; return 1 if values are wrong."""
    what, name = sys.argv[1:]
    world = MPI.COMM_WORLD
    whole = np.arange(ROWS * COLUMNS, dtype="f8").reshape(ROWS, COLUMNS)
    first, end = (COLUMNS * (world.rank + i) // world.size for i in (0, 1))
    mine = np.ascontiguousarray(whole[:, first:end])
    part = MPI.DOUBLE.Create_subarray([ROWS, COLUMNS], [ROWS, end - first], [0, first]).Commit()
    mode = MPI.MODE_CREATE | MPI.MODE_RDWR if what == "write" else MPI.MODE_RDONLY
    file = MPI.File.Open(world, name, mode)
    file.Set_view(0, MPI.DOUBLE, part)
    if what == "write":
        file.Write_all(mine)
        file.Sync()
    back = np.empty_like(mine)
    # Independent reads of two parts, by their positions in the view.
    request = file.Iread_at(0, back[: ROWS // 2])
    file.Read_at(ROWS // 2 * (end - first), back[ROWS // 2 :])
    request.Wait()
    file.Close()
    part.Free()
    wrong = np.count_nonzero(back != mine)
    if wrong:
        print(f"field: process {world.rank}: {wrong} values are wrong", file=sys.stderr)
    return int(wrong != 0)


if __name__ == "__main__":
    sys.exit(main())
