"""Converts recordings of Darshan with extended tracing (DXT) to request logs.

``python -m starfish.darshan job.darshan job.log`` writes a request log for ``starfish replay``; so does
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
"""The beginning of a line that states which part of the requests is in a request log."""

# Modules with requests, and for each the module with counters of the same requests. MPI-IO requests transfer
# the same bytes as the POSIX requests below them, so they are read only if the log has no POSIX requests.
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

# Characters besides letters and digits that are not encoded in the name of a file: all visible ones except
# the percent sign.
_VISIBLE = "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"


def requests(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the requests that Darshan has recorded, sorted by time.

    Args:
        path: A log of Darshan, of a program that ran with ``DXT_ENABLE_IO_TRACE=1``.

    Returns:
        One row for each request, with the columns ``time`` (begin, in seconds after the begin of the
        program), ``node`` (the rank), ``file``, ``operation`` (read or write), ``offset``, ``bytes`` and
        ``took`` (seconds). Its ``attrs`` are ``processes`` (number of processes of the job), ``counted``
        (number of requests that Darshan counted), ``is_partial`` (true if Darshan ran out of memory for
        requests) and ``collective`` (number of collective MPI-IO calls, if the requests are POSIX requests).

    Raises:
        InvalidError: Darshan's package is not installed, or the log has no requests.
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
            f"{name}: the log has no requests; Darshan records them with DXT_ENABLE_IO_TRACE=1{counters}"
        )
    if part := incomplete(table):
        warnings.warn(f"{name}: {part}", IncompleteWarning, stacklevel=2)
    return table


def _requests(report: Any) -> pd.DataFrame | None:
    """Return the requests of a report, with Darshan's totals as attributes; None without requests."""
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
    """Return the sum of counters of a module over all files and processes; 0 if the log lacks the module."""
    if module not in report.modules:
        return 0
    if module not in report.records:
        report.mod_read_all_records(module)
    table = report.records[module].to_df()["counters"]
    # Counters that this version of the log lacks are -1.
    return int(table[list(counters)].clip(lower=0).to_numpy().sum())


def _summary(report: Any) -> str:
    """Return a sentence about the counters of a report; an empty text if it has none."""
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
    """Return a sentence with both counts if Darshan recorded only a part of the requests; else an empty text.

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
    """Return the requests in Darshan's records. Each record is about one rank and one file."""
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
        table: Requests with the columns that `requests` returns; ``took`` is optional.
        output: Text file to write to.
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
    """Convert a log of Darshan to a request log, and return the number of requests.

    Args:
        path: A log of Darshan.
        output: The request log.

    Raises:
        InvalidError: Darshan's package is not installed, or the log has no requests.
        FileError: One of the files cannot be read or written.

    Warns:
        IncompleteWarning: Darshan has recorded only a part of the requests.
    """
    return len(_convert(path, output))


def _convert(path: str | os.PathLike[str], output: str | os.PathLike[str] | None) -> pd.DataFrame:
    """Write a request log to `output`, or to standard output if it is None, and return the requests."""
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
    """Convert the log that the arguments name, and return the exit code."""
    description = "Convert a log of Darshan with extended tracing to a request log."
    parser = argparse.ArgumentParser(prog="python -m starfish.darshan", description=description)
    parser.add_argument("log", metavar="LOG", help="a log of Darshan")
    parser.add_argument(
        "output", metavar="OUTPUT", nargs="?", help="the request log [default: standard output]"
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
    """Return remarks about properties of the job that a replay of the requests does not show."""
    processes, nodes = table.attrs["processes"], table["node"].nunique()
    if processes > nodes:
        yield f"{name}: the job had {processes} processes, {nodes} of which made these requests"
    if collective := table.attrs["collective"]:
        yield (
            f"{name}: the job made {collective} collective calls of MPI-IO; these requests are the POSIX requests "
            "below them, which each process made independently"
        )


if __name__ == "__main__":
    sys.exit(main())
