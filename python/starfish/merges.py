"""Simulation of jobs that share disks, as by the command `starfish merge`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

import pandas as pd

from starfish import _native
from starfish.errors import InvalidError
from starfish.machine import Machine, pairs
from starfish.options import MergeOptions
from starfish.plans import Rows, data_frame, of_trials
from starfish.progress import Progress, reporting
from starfish.simulation import count, thread_count

_FIRST = ("kind", "policy", "jobs", "scheduling", "trial")


def simulate_merges(
    *,
    machine: Machine | str = "shared-disks-1996",
    overrides: Mapping[str, object] | None = None,
    trials: int = 5,
    seed: int = 1,
    rows: Rows = "cells",
    threads: int | None = None,
    progress: Progress = False,
    **options: Unpack[MergeOptions],
) -> pd.DataFrame:
    """Simulate jobs that merge runs on shared disks, and measure whether one job races ahead.

    Any option can have several values, and the table has a row for each combination: ten rows for
    ``simulate_merges(policy=[2, 3], jobs=range(1, 6))``. The last option varies fastest. Equal arguments
    return equal tables on every computer.

    Args:
        machine: A machine, or the name or path of one, as in `Machine.load`. The simulated machine has a
            compute node for each job, and the shared disks.
        overrides: Values of the machine to replace, as in `Machine.load`.
        trials: Number of runs of each combination, with different random numbers.
        seed: Seed of all random numbers.
        rows: ``"cells"`` for a row for each combination, ``"trials"`` for a row for each run.
        threads: Number of concurrent trials. Default: the number of processors.
        progress: ``True`` for a progress bar, or a function that is called with the numbers of completed and
            of all trials.
        options: Options of the jobs, by their names in `MergeOptions` and in plans: ``kind``, ``policy``,
            ``jobs``, ``disks``, ``scheduling``, ``buffer_blocks`` and others, each with one or several
            values.

    Returns:
        The options come first, and ``elapsed_s`` (mean time until all jobs are done, in seconds) last.
        Between them are ``cv`` (its coefficient of variation, a fraction), ``ci95_s`` (half the width of its
        95 % confidence interval), ``first_s`` (time until the first job is done), ``read_ms`` and
        ``write_ms`` (time to read and to write a block), ``ratio`` (of ``write_ms`` to ``read_ms``),
        ``pending_writes_most`` and ``pending_blocks_most`` (the longest queue of writes at a disk),
        ``disk_movements``, utilisations, ``messages``, ``events`` and ``digest`` as in `run`. For unlimited
        buffers, ``buffer_blocks`` is missing.

    Raises:
        InvalidError: An argument is invalid; nothing was run.
        FileError: A description cannot be read.
        SimulationError: A run failed, or transferred wrong data.
    """
    machine = Machine.load(machine) if isinstance(machine, str) else machine
    ask = {
        "machine_name": machine.name,
        "machine_text": machine.text,
        "overrides": dict(pairs(overrides)),
        "trials": count("trials", trials, 1),
        "seed": count("seed", seed, 0),
        "of_trials": of_trials(rows),
        "options": [(name, _listed(name, value)) for name, value in options.items() if value is not None],
    }
    with reporting(progress, "simulating") as report:
        return data_frame(_native.simulate_merges(ask, thread_count(threads), report), _FIRST)


def _listed(name: str, value: Any) -> list[Any]:
    listed = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    if not listed:
        raise InvalidError(f"{name}: expected at least one value")
    return listed
