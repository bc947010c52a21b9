"""Request logs of what Darshan has recorded with extended tracing (DXT).

``python -m starfish.darshan job.darshan job.log`` writes a request log, which ``starfish replay`` takes; so does
`convert`. Both need Darshan's own package: ``pip install darshan``.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, TextIO
from urllib.parse import quote

import pandas as pd

from starfish.errors import FileError, IncompleteWarning, InvalidError

HEADER = "# starfish requests 1"
"""The first line of a request log."""

_COLUMNS = ["time", "node", "file", "operation", "offset", "bytes", "took"]

INCOMPLETE = "# incomplete: "
"""The beginning of a line that says which part of the requests a request log has."""

# Requests of MPI-IO are the same bytes as those of POSIX, so they are read only if the log has none of POSIX. Each
# module with the module that counts the same requests.
_MODULES = {"DXT_POSIX": "POSIX", "DXT_MPIIO": "MPI-IO"}

# Counters of requests, by module.
_COUNTED = {
    "POSIX": ("POSIX_READS", "POSIX_WRITES"),
    "MPI-IO": tuple(
        f"MPIIO_{kind}_{operation}"
        for kind in ("INDEP", "COLL", "SPLIT", "NB")
        for operation in ("READS", "WRITES")
    ),
}
_COLLECTIVE = ("MPIIO_COLL_READS", "MPIIO_COLL_WRITES")

# What stays as it is in the name of a file, besides letters and digits: all that can be seen but the percent sign.
_VISIBLE = "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"


def requests(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the requests that Darshan has recorded, in the order of time.

    Args:
        path: A log of Darshan, of a program that ran with ``DXT_ENABLE_IO_TRACE=1``.

    Returns:
        One row for each request, with the columns ``time`` (when it began, in seconds since the program began),
        ``node`` (the rank), ``file``, ``operation`` (read or write), ``offset``, ``bytes`` and ``took`` (seconds).
        Its ``attrs`` are ``processes`` (those of the job), ``counted`` (the number of requests that Darshan counted),
        ``is_partial`` (whether Darshan ran out of memory for requests) and ``collective`` (the number of collective
        calls of MPI-IO, if the requests are those of POSIX).

    Raises:
        InvalidError: Darshan's package is not installed, or there are no requests in the log.
        FileError: The log cannot be read.

    Warns:
        IncompleteWarning: Darshan has recorded only a part of the requests.
    """
    try:
        import darshan  # noqa: PLC0415
    except ImportError as error:
        raise InvalidError(
            "reading logs of Darshan needs its package: pip install darshan, or let "
            "darshan-dxt-parser print the log as text, which starfish replay reads"
        ) from error
    name = os.fspath(path)
    try:
        with darshan.DarshanReport(name, read_all=False) as report:
            table = _requests(report)
            counters = "" if table is not None else _summary(report)
    except (OSError, RuntimeError) as error:
        raise FileError(f"{name}: {error}") from error
    if table is None:
        raise InvalidError(
            f"{name}: no requests are recorded in it; Darshan does that with DXT_ENABLE_IO_TRACE=1{counters}"
        )
    if part := incomplete(table):
        warnings.warn(f"{name}: {part}", IncompleteWarning, stacklevel=2)
    return table


def _requests(report: Any) -> pd.DataFrame | None:
    """Return the requests of a report with what Darshan says of them all; None if it has none."""
    for module, counting in _MODULES.items():
        if module not in report.modules:
            continue
        report.mod_read_all_dxt_records(module)
        rows = _rows(report.records[module].to_df(), report.name_records)
        table = pd.DataFrame(rows, columns=_COLUMNS)
        if len(table):
            table = table.sort_values("time", kind="stable", ignore_index=True)
            table.attrs = {
                "processes": int(report.metadata["job"]["nprocs"]),
                "counted": _counted(report, counting, _COUNTED[counting]),
                "is_partial": bool(report.modules[module]["partial_flag"]),
                "collective": _counted(report, "MPI-IO", _COLLECTIVE) if counting == "POSIX" else 0,
            }
            return table
    return None


def _counted(report: Any, module: str, counters: Sequence[str]) -> int:
    """Return the sum of counters of a module over all files and processes, 0 if the log does not have it."""
    if module not in report.modules:
        return 0
    if module not in report.records:
        report.mod_read_all_records(module)
    table = report.records[module].to_df()["counters"]
    # Counters that the version of the log does not have are -1.
    return int(table[list(counters)].clip(lower=0).to_numpy().sum())


def _summary(report: Any) -> str:
    """Return a sentence on the requests that a report without requests has counted; nothing if it has no counters."""
    if "POSIX" not in report.modules:
        return ""
    names = ["POSIX_READS", "POSIX_BYTES_READ", "POSIX_WRITES", "POSIX_BYTES_WRITTEN", "POSIX_OPENS"]
    reads, read, writes, written, opens = (_counted(report, "POSIX", [name]) for name in names)
    ordered = _counted(report, "POSIX", ["POSIX_SEQ_READS", "POSIX_SEQ_WRITES"])
    percent = 100 * ordered // max(reads + writes, 1)
    return (
        f". It counts {reads} reads of {read} bytes in all and {writes} writes of {written} bytes, {percent} % of "
        f"them in ascending order, and {opens} opens, by {report.metadata['job']['nprocs']} processes"
    )


def incomplete(table: pd.DataFrame) -> str:
    """Return a sentence with both counts if Darshan has recorded only a part of the requests, else an empty text.

    Args:
        table: Requests as `requests` returns them.
    """
    counted, recorded = table.attrs.get("counted", 0), len(table)
    if counted > recorded:
        which = f"{recorded} of {counted} requests are recorded"
    elif table.attrs.get("is_partial"):
        which = f"{recorded} requests are recorded, and Darshan ran out of memory for more"
    else:
        return ""
    return f"{which}; DARSHAN_MODMEM=MIB gives Darshan more memory"


def _rows(records: Any, names: dict[int, str]) -> Iterator[tuple[Any, ...]]:
    """Return the requests of Darshan's records, each of a rank and a file."""
    for record in records:
        file, node = names.get(record["id"], str(record["id"])), int(record["rank"])
        for operation in ("write", "read"):
            segments = record[f"{operation}_segments"]
            if len(segments) == 0:
                continue
            columns = [segments[name] for name in ("start_time", "end_time", "offset", "length")]
            for start, end, offset, length in zip(*columns, strict=True):
                yield start, node, file, operation, offset, length, max(end - start, 0.0)


def write(table: pd.DataFrame, output: TextIO) -> None:
    """Write requests as a request log.

    Args:
        table: Requests with the columns that `requests` gives; ``took`` may be missing.
        output: Where to.
    """
    output.write(f"{HEADER}\n")
    if part := incomplete(table):
        output.write(f"{INCOMPLETE}{part}\n")
    output.write("# time node file operation offset bytes took\n")
    tooks = table["took"] if "took" in table else [0.0] * len(table)
    columns = [table[name] for name in _COLUMNS[:-1]]
    for time, node, file, operation, offset, size, took in zip(*columns, tooks, strict=True):
        word = "%2D" if file == "-" else quote(file, safe=_VISIBLE)
        output.write(f"{time:.9f} {node} {word} {operation} {offset} {size} {took:.9f}\n")


def convert(path: str | os.PathLike[str], output: str | os.PathLike[str]) -> int:
    """Write a request log of what Darshan has recorded, and return how many requests there are.

    Args:
        path: A log of Darshan.
        output: The request log.

    Raises:
        InvalidError: Darshan's package is not installed, or there are no requests in the log.
        FileError: One of the files cannot be read or written.

    Warns:
        IncompleteWarning: Darshan has recorded only a part of the requests.
    """
    return len(_convert(path, output))


def _convert(path: str | os.PathLike[str], output: str | os.PathLike[str] | None) -> pd.DataFrame:
    """Write a request log, without a name to standard output, and return the requests."""
    table = requests(path)
    if output is None:
        write(table, sys.stdout)
        return table
    try:
        with open(output, "w", encoding="utf-8") as file:
            write(table, file)
    except OSError as error:
        raise FileError(f"{os.fspath(output)}: {error.strerror}") from error
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert the log that is named, and return the exit code."""
    description = "Write a request log of what Darshan has recorded with extended tracing."
    parser = argparse.ArgumentParser(prog="python -m starfish.darshan", description=description)
    parser.add_argument("log", metavar="LOG", help="a log of Darshan")
    parser.add_argument(
        "output", metavar="OUTPUT", nargs="?", help="the request log; without this standard output"
    )
    given = parser.parse_args(arguments)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", IncompleteWarning)
            table = _convert(given.log, given.output)
    except (InvalidError, FileError) as error:
        print(error, file=sys.stderr)
        return 1
    for note in [*(str(warning.message) for warning in caught), *_remarks(given.log, table)]:
        print(note, file=sys.stderr)
    return 0


def _remarks(name: str, table: pd.DataFrame) -> Iterator[str]:
    """Return what a replay of the requests does not show of the job."""
    processes, nodes = table.attrs["processes"], table["node"].nunique()
    if processes > nodes:
        yield f"{name}: the job had {processes} processes, {nodes} of which made these requests"
    if collective := table.attrs["collective"]:
        yield (
            f"{name}: the job made {collective} collective calls of MPI-IO; these are the requests of POSIX below "
            "them, which each process made alone"
        )


if __name__ == "__main__":
    sys.exit(main())
