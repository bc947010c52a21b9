"""Jobs that share disks on a simulated machine, as `starfish merge` does them."""

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
    """Merge runs on disks that several jobs share, simulated, and see whether one of them races ahead.

    Any option may have several values, and there is a row for each combination: ``simulate_merges(policy=[2, 3],
    jobs=range(1, 6))`` has ten. The last option varies fastest. The same arguments give the same table, always and
    everywhere.

    Args:
        machine: A machine, or the name or path of one, as in `Machine.load`. It gets a compute node for each
            job, and the shared disks.
        overrides: Values of the machine to replace, as in `Machine.load`.
        trials: Runs of each combination, which differ in all that is random.
        seed: Where all randomness comes from.
        rows: ``"cells"`` for a row for each combination, ``"trials"`` for one for each run.
        threads: Trials to run at a time; without this one for each processor.
        progress: ``True`` for a bar, or a function that is called with how many trials are done and of how many.
        options: What is chosen of the jobs, by the names in `MergeOptions`, which are those of plans: ``kind``,
            ``policy``, ``jobs``, ``disks``, ``scheduling``, ``buffer_blocks`` and others, each a value or several.

    Returns:
        What was chosen comes first, and ``elapsed_s`` (mean, until all jobs are done, in seconds) last. Between
        them are ``cv`` (its coefficient of variation, a fraction), ``ci95_s`` (half the width of its 95 %
        confidence interval),
        ``first_s`` (when the first job is done), ``read_ms`` and ``write_ms`` (what a block takes to read and to
        write), ``ratio`` (of the latter to the former), ``pending_writes_most`` and ``pending_blocks_most`` (the
        longest queue of writes at a disk), ``disk_movements``, utilisations, ``messages``, ``events`` and ``digest``
        as `run` has them. Unlimited buffers are missing.

    Raises:
        InvalidError: Something makes no sense; nothing has been run then.
        FileError: A description cannot be read.
        SimulationError: A run failed, or moved a wrong byte.
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
