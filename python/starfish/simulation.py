"""Experiments of the reports on a simulated machine, as by the command `starfish simulate`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Unpack

import pandas as pd

from starfish import _native
from starfish.errors import InvalidError
from starfish.machine import Machine
from starfish.options import Options, Size
from starfish.progress import Progress, reporting

Names = str | Sequence[str]
"""One name or several; ``"all"`` stands for all names."""

_FIRST = ("pattern", "method", "record_bytes")


def simulate(
    pattern: Names = "rb",
    *,
    machine: Machine | str = "starfish-1996",
    overrides: Mapping[str, object] | None = None,
    method: Names = "all",
    record: Size | Sequence[Size] = 8192,
    layout: Names = "contiguous",
    trials: int = 5,
    seed: int = 1,
    threads: int | None = None,
    progress: Progress = False,
    **options: Unpack[Options],
) -> pd.DataFrame:
    """Simulate reading or writing a file on a machine, and return the throughput.

    If arguments have several values, the table has a row for each combination. Equal arguments return equal
    tables on every computer, except for the column ``wall_s``. The simulation uses all cores, without the
    interpreter lock.

    Args:
        pattern: Access patterns: r or w for reading or writing, then the distribution of the file over the
            compute nodes: a (all data to each node), n (all data to one node), b (blocks) or c (cyclic), with
            two letters for the rows and columns of a matrix. ``"rb"``, ``["rbb", "wcc"]``, ``"all"``.
        machine: A machine, or the name or path of one, as in `Machine.load`.
        overrides: Values of the machine to replace, as in `Machine.load`.
        method: Access methods: ``"traditional"``, ``"disk-directed"``, ``"two-phase"``.
        record: Bytes in a record of the file.
        layout: Order of the blocks of the file on each disk: ``"contiguous"`` or ``"random"``.
        trials: Number of runs of each combination, with different random numbers.
        seed: Seed of all random numbers.
        threads: Number of concurrent trials. Default: the number of processors.
        progress: ``True`` for a progress bar, or a function that is called with the numbers of completed and
            of all trials.
        options: Other options, by their names in `Options` and in plans: ``file_size``, ``block``,
            ``outstanding``, ``scheduling``, ``page_cache`` and others. An option of one method does not
            affect other methods.

    Returns:
        One row for each combination of layout, record, pattern and method, in this order. The columns for
        pattern, method and record come first, and the throughput comes last: ``throughput_mib_s`` (mean, in
        MiB/s), ``cv`` (its coefficient of variation, a fraction), ``disk_movements`` (mean, of all disks),
        ``events`` (of all trials), ``virtual_s`` (mean simulated time, seconds), ``wall_s`` (run time on this
        computer, seconds), ``digest`` (equal for equal runs), and the choices: ``machine``, ``method``,
        ``layout``, ``pattern``, ``record_bytes``, ``trials``, ``seed``, ``file_bytes``, ``shape``, ``grid``,
        ``block_bytes`` and the options.

    Raises:
        InvalidError: An argument is invalid; nothing was run.
        FileError: A description cannot be read.
        SimulationError: A run failed, or transferred wrong data.
    """
    if "set" in options:
        raise InvalidError(
            "set: this is a key of plans; pass overrides={...} to replace values of the machine"
        )
    machine = as_machine(machine, overrides)
    ask = {
        "machine_name": machine.name,
        "machine_text": machine.text,
        "method": _listed("method", method),
        "pattern": _listed("pattern", pattern),
        "record_bytes": [_bytes("record", size) for size in _listed("record", record)],
        "layout": _listed("layout", layout),
        "trials": count("trials", trials, 1),
        "seed": count("seed", seed, 0),
        "options": [(name, _plain(value)) for name, value in options.items() if value is not None],
    }
    with reporting(progress, "simulating") as report:
        return arranged(pd.DataFrame(_native.simulate(ask, thread_count(threads), report)), _FIRST)


def arranged(table: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return the table with these columns first and the main result last, where pandas shows them."""
    names = [name for name in names if name in table]
    result = next(name for name in ("throughput_mib_s", "elapsed_s") if name in table)
    between = (name for name in table.columns if name not in names and name != result)
    return table[[*names, *between, result]]


def as_machine(machine: Machine | str, overrides: Mapping[str, object] | None) -> Machine:
    """Return the machine, loading it if it is given by name or path, with the overrides applied."""
    if isinstance(machine, str):
        return Machine.load(machine, overrides)
    return machine.replace(overrides) if overrides else machine


def thread_count(threads: int | None) -> int:
    """Return the number of concurrent trials: `threads`, or by default the number of processors."""
    return (os.cpu_count() or 1) if threads is None else count("threads", threads, 1)


def _listed(what: str, values: int | str | Sequence[int | str]) -> list[int | str]:
    listed = [values] if isinstance(values, (int, str)) else list(values)
    if not listed:
        raise InvalidError(f"{what}: expected at least one")
    return listed


def _bytes(what: str, size: Size) -> int:
    if isinstance(size, int):
        return count(what, size, 1)
    try:
        return _native.bytes_of(size)
    except InvalidError as error:
        raise InvalidError(f"{what}: {error}") from None


def count(what: str, number: int, least: int) -> int:
    """Return the number if it is an integer of at least `least` and at most 64 bits."""
    most = 2**64 - 1
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
        raise InvalidError(f"{what}: expected a whole number of at least {least}, not {number!r}")
    return number


def _plain(value: object) -> object:
    return "x".join(map(str, value)) if isinstance(value, tuple) else value
