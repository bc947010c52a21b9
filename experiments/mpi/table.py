"""Prints what the plans of this folder say of `auto` as a table: disk-directed against the best of all methods.

    python3 experiments/mpi/table.py results

Each entry is the least and the greatest share of the best method's throughput that disk-directed has, over machines, numbers of I/O
nodes and sizes of records, and below 0.9 what was best. `--full` prints a row for each machine, disk and pattern with all methods.
"""

import collections
import csv
import pathlib
import sys

PATTERNS = ["ra", "rb", "rbb", "rcc", "wb", "wbb", "wcc"]
DISKS = ["hp97560", "streaming-20", "flash-qlc", "memory"]
METHODS = ["independent", "two-phase", "disk-directed", "write-cached"]


def cells(results):
    """The throughput by method of each cell: machine, I/O nodes, disks, pattern and bytes of a record."""
    found = collections.defaultdict(dict)
    for plan in sorted(pathlib.Path(__file__).parent.glob("*.toml")):
        for row in csv.DictReader((pathlib.Path(results) / plan.stem / "results.csv").open()):
            key = row["machine"], int(row["io_nodes"]), row["disks_model"], row["pattern"], int(row["record_bytes"])
            found[key][row["variant"].split(",")[0]] = float(row["throughput_mib_s"])
    return found


def span(shares):
    """The least and the greatest of some shares."""
    least, greatest = f"{min(shares):.2f}", f"{max(shares):.2f}"
    return least if least == greatest else f"{least} - {greatest}"


def short(found):
    """Disk-directed, by pattern and disk."""
    print("| pattern | " + " | ".join(DISKS) + " |")
    print("|---|" + "---|" * len(DISKS))
    for pattern in PATTERNS:
        row = []
        for disk in DISKS:
            of_disk = [cell for key, cell in found.items() if key[2:4] == (disk, pattern)]
            shares = [cell["disk-directed"] / max(cell.values()) for cell in of_disk]
            others = {max(cell, key=cell.get) for cell, share in zip(of_disk, shares) if share < 0.9}
            row.append(span(shares) + "".join(f", {other}" for other in sorted(others)))
        print(f"| `{pattern}` | " + " | ".join(row) + " |")
    good = [cell["disk-directed"] >= 0.9 * max(cell.values()) for cell in found.values()]
    print(f"\n{sum(good)} of {len(good)} cells within 10 %")


def full(found):
    """All methods, by machine, disk and pattern."""
    print("| machine | disks | pattern | " + " | ".join(METHODS) + " |")
    print("|---|---|---|" + "---|" * len(METHODS))
    for machine in sorted({key[0] for key in found}):
        for disk in DISKS:
            for pattern in PATTERNS:
                of_row = [cell for key, cell in found.items() if (key[0], *key[2:4]) == (machine, disk, pattern)]
                if of_row:
                    shares = {name: [cell[name] / max(cell.values()) for cell in of_row if name in cell] for name in METHODS}
                    columns = [span(shares[name]) if shares[name] else "" for name in METHODS]
                    print(f"| {machine} | {disk} | `{pattern}` | " + " | ".join(columns) + " |")


if __name__ == "__main__":
    (full if "--full" in sys.argv else short)(cells(sys.argv[1]))
