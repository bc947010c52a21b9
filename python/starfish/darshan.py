"""Request logs of what Darshan has recorded with extended tracing (DXT).

``python -m starfish.darshan job.darshan job.log`` writes a request log, which ``starfish replay`` takes; so does
`convert`. Both need Darshan's own package: ``pip install 'starfish-io[darshan]'``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TextIO
from urllib.parse import quote

import pandas as pd

from starfish.errors import FileError, InvalidError

HEADER = "# starfish requests 1"
"""The first line of a request log."""

_COLUMNS = ["time", "node", "file", "operation", "offset", "bytes", "took"]

# What MPI-IO was asked for are the same bytes once more, so it is taken only if there is nothing else.
_MODULES = ("DXT_POSIX", "DXT_MPIIO")

# What stays as it is in the name of a file, besides letters and digits: all that can be seen but the percent sign.
_VISIBLE = "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"


def requests(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the requests that Darshan has recorded, in the order of time.

    Args:
        path: A log of Darshan, of a program that ran with ``DXT_ENABLE_IO_TRACE=1``.

    Returns:
        One row for each request, with the columns ``time`` (when it began, in seconds since the program began),
        ``node`` (the rank), ``file``, ``operation`` (read or write), ``offset``, ``bytes`` and ``took`` (seconds).

    Raises:
        InvalidError: Darshan's package is not installed, or there are no requests in the log.
        FileError: The log cannot be read.
    """
    try:
        import darshan  # noqa: PLC0415
    except ImportError as error:
        raise InvalidError(
            "reading logs of Darshan needs its package: pip install 'starfish-io[darshan]', or let "
            "darshan-dxt-parser print the log as text, which starfish replay reads"
        ) from error
    name = os.fspath(path)
    try:
        with darshan.DarshanReport(name, read_all=False) as report:
            for module in _MODULES:
                if module in report.modules:
                    report.mod_read_all_dxt_records(module)
                    table = pd.DataFrame(
                        _rows(report.records[module].to_df(), report.name_records), columns=_COLUMNS
                    )
                    if len(table):
                        return table.sort_values("time", kind="stable", ignore_index=True)
    except (OSError, RuntimeError) as error:
        raise FileError(f"{name}: {error}") from error
    raise InvalidError(
        f"{name}: no requests are recorded in it; Darshan does that with DXT_ENABLE_IO_TRACE=1"
    )


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
    output.write(f"{HEADER}\n# time node file operation offset bytes took\n")
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
    """
    table = requests(path)
    try:
        with open(output, "w", encoding="utf-8") as file:
            write(table, file)
    except OSError as error:
        raise FileError(f"{os.fspath(output)}: {error.strerror}") from error
    return len(table)


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
        if given.output is None:
            write(requests(given.log), sys.stdout)
        else:
            convert(given.log, given.output)
    except (InvalidError, FileError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
