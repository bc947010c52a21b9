"""Running plans: here, in parts elsewhere, or on a Dask cluster; and the table of their results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import pandas as pd

from starfish import _native
from starfish.errors import InvalidError
from starfish.progress import Progress, reporting
from starfish.shards import Plan, Plans, Shard, all_of, as_plans, shards_of, texts
from starfish.simulation import arranged, thread_count

if TYPE_CHECKING:
    from distributed import Client

Rows = Literal["cells", "trials"]
"""What a row of a table is: ``"cells"``, a combination, or ``"trials"``, one run of it."""


def run(
    plan: Plans,
    *,
    rows: Rows = "cells",
    journal: str | os.PathLike[str] | None = None,
    client: Client | None = None,
    shards: int | None = None,
    threads: int | None = None,
    progress: Progress = False,
) -> pd.DataFrame:
    """Run all trials of a plan, over all cores or on a Dask cluster, and return the table of the results.

    The same plan gives the same table, wherever and in whatever order its trials are run.

    Args:
        plan: A plan, the path of its TOML file, or several of either; trials they share are run once.
        rows: ``"cells"`` for a row for each combination, ``"trials"`` for one for each run of it.
        journal: A file in which every trial is kept as soon as it is done. Trials that it has already are not run
            again, so a run that was interrupted goes on where it was. One process at a time can use it.
        client: A ``distributed.Client``: the trials are run in shards by the workers of its cluster, which need
            this package in the same version, and machine files that the plan names at the same paths. A shard
            whose worker dies is run by another.
        shards: How many parts to make for a cluster; without this four for each thread of it. A shard that is
            under way cannot be stopped, and what was done of it is lost when its worker dies.
        threads: Trials to run at a time on this computer; without this one for each processor.
        progress: ``True`` for a bar, or a function that is called with how many trials are done and of how many.

    Returns:
        One row for each cell, in the order of the plan. Columns: ``plan``, ``variant``, ``pattern``,
        ``throughput_mib_s`` (mean, in MiB/s), then what else was chosen; ``cv`` (its coefficient of variation, a
        fraction), ``ci95_mib_s`` (half the width of its 95 % confidence interval), ``disk_movements`` (mean, of
        all disks), ``disk_utilisation`` and its like (mean of all of a kind, a fraction of the time) and
        ``disk_utilisation_max`` (the busiest), ``messages``, ``events``, ``virtual_s`` (mean simulated time,
        seconds), ``digest`` (equal for equal runs). What there is none of is missing; a column of whole numbers
        in which something is missing has the type ``Int64``.

        Plans of jobs that share disks have no pattern, and ``elapsed_s`` (mean, until all jobs are done, in seconds)
        instead of ``throughput_mib_s``; with it come the columns of `simulate_merges`.

    Raises:
        InvalidError: A plan makes no sense; nothing has been run then.
        FileError: A file cannot be read or written, or another run is using the journal: one of another process,
            or one that was interrupted in this process and has not come to the end of its trials.
        SimulationError: Trials failed; those that did not are in the journal.
    """
    plans = as_plans(plan)
    rows_are_trials = of_trials(rows)
    path = None if journal is None else os.fspath(journal)
    with reporting(progress, "simulating") as report:
        if client is None:
            parts = [all_of(_native.run_trials(texts(plans), None, path, thread_count(threads), report))]
        else:
            try:
                from starfish import cluster
            except ModuleNotFoundError as error:
                if error.name not in ("dask", "distributed"):
                    raise
                what = "client: Dask is missing here: pip install dask distributed"
                raise InvalidError(what) from error
            parts = cluster.run(client, plans, path, shards, report)
    return _table(plans, parts, rows_are_trials)


def split(plan: Plans, shards: int) -> list[Shard]:
    """Split plans into at most so many shards of about equal length: for other schedulers than Dask's.

    Args:
        plan: As in `run`.
        shards: How many; none of them is empty, so there may be fewer.

    Raises:
        InvalidError: A plan makes no sense.
    """
    plans = as_plans(plan)
    return shards_of(plans, _native.missing_trials(texts(plans), None), shards)


def merge(plan: Plans, parts: Iterable[str], *, rows: Rows = "cells") -> pd.DataFrame:
    """Make the table of `run` from what came of shards, in any order; repetitions do not matter.

    Args:
        plan: The plans that were split.
        parts: What `Shard.run` returned, or the text of a journal.
        rows: As in `run`.

    Raises:
        InvalidError: Trials are missing, or were run by another version of Starfish.
        SimulationError: There are two different outcomes of a trial.
    """
    return _table(as_plans(plan), list(parts), of_trials(rows))


# Text is left to pandas: its type for it depends on its version.
_DTYPES = {"integer": "int64", "number": "float64", "flag": "bool", "text": None}
# Those of either kind of plans.
_FIRST = ("plan", "variant", "pattern")
# What only some of several plans vary, the rows of the others lack.
_DTYPES_WITH_MISSING = {**_DTYPES, "integer": "Int64", "flag": "boolean"}


def _table(plans: tuple[Plan, ...], parts: list[str], rows_are_trials: bool) -> pd.DataFrame:
    return data_frame(_native.table_columns(texts(plans), parts, rows_are_trials), _FIRST)


def data_frame(columns: list[tuple[str, str, list[Any]]], names: Sequence[str]) -> pd.DataFrame:
    """Return the table of columns with their kinds and values; those of these names come first."""
    table: dict[str, Any] = {
        name: pd.Series(values, dtype=cast(Any, _dtype(kind, values))) for name, kind, values in columns
    }
    return arranged(pd.DataFrame(table), names)


def _dtype(kind: str, values: list[Any]) -> str | None:
    return (_DTYPES_WITH_MISSING if None in values else _DTYPES)[kind]


def of_trials(rows: str) -> bool:
    """Return whether the rows of a table are trials."""
    if rows not in ("cells", "trials"):
        raise InvalidError(f"rows: {rows!r} is neither 'cells' nor 'trials'")
    return rows == "trials"
