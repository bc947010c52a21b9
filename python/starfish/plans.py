"""Running plans on this computer, on a Dask cluster, or in parts; and the table of their results."""

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
"""Contents of a row of a table: ``"cells"`` for a combination, ``"trials"`` for one run of it."""


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
    """Run all trials of a plan, on all cores or on a Dask cluster, and return the table of the results.

    Equal plans return equal tables, wherever and in whatever order their trials are run.

    Args:
        plan: A plan, the path of its TOML file, or several of either. Trials that plans share are run once.
        rows: ``"cells"`` for a row for each combination, ``"trials"`` for a row for each run.
        journal: A file to which each trial is written as soon as it is done. Trials in the journal are not
            run again, so an interrupted run can be resumed. Only one process at a time can use a journal.
        client: A ``distributed.Client``: the workers of its cluster run the trials in shards. They need the
            same version of this package, and the machine files of the plan at the same paths. If a worker
            dies, another worker runs its shard.
        shards: Number of shards for a cluster. Default: four for each thread of the cluster. A running shard
            cannot be stopped, and its results are lost if its worker dies.
        threads: Number of concurrent trials on this computer. Default: the number of processors.
        progress: ``True`` for a progress bar, or a function that is called with the numbers of completed and
            of all trials.

    Returns:
        One row for each cell, in the order of the plan. Columns: ``plan``, ``variant``, ``pattern``,
        ``throughput_mib_s`` (mean, in MiB/s), then the other choices; ``cv`` (its coefficient of variation, a
        fraction), ``ci95_mib_s`` (half the width of its 95 % confidence interval), ``disk_movements`` (mean,
        of all disks), ``disk_utilisation`` and other utilisations (mean of all devices of a kind, a fraction
        of the time), ``disk_utilisation_max`` (of the busiest disk) and others, ``messages``, ``events``,
        ``virtual_s`` (mean simulated time, seconds), ``digest`` (equal for equal runs). Values that do not
        exist are missing; a column of integers with missing values has the type ``Int64``.

        Tables of jobs that share disks have no ``pattern``. Instead of ``throughput_mib_s`` they have
        ``elapsed_s`` (mean time until all jobs are done, in seconds) and the other columns of
        `simulate_merges`.

    Raises:
        InvalidError: A plan is invalid; nothing was run.
        FileError: A file cannot be read or written, or another run uses the journal: a run of another
            process, or an interrupted run of this process whose trials have not ended yet.
        SimulationError: Trials failed; the journal contains the other trials.
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
                what = "client: Dask is not installed: pip install dask distributed"
                raise InvalidError(what) from error
            parts = cluster.run(client, plans, path, shards, report)
    return _table(plans, parts, rows_are_trials)


def split(plan: Plans, shards: int) -> list[Shard]:
    """Split plans into at most `shards` shards of about equal run time, for schedulers other than Dask's.

    Args:
        plan: As in `run`.
        shards: Maximum number of shards. No shard is empty, so the number can be smaller.

    Raises:
        InvalidError: A plan is invalid.
    """
    plans = as_plans(plan)
    return shards_of(plans, _native.missing_trials(texts(plans), None), shards)


def merge(plan: Plans, parts: Iterable[str], *, rows: Rows = "cells") -> pd.DataFrame:
    """Return the table of `run` from the outcomes of shards, in any order; repeated outcomes are ignored.

    Args:
        plan: The plans that were split.
        parts: Results of `Shard.run`, or texts of journals.
        rows: As in `run`.

    Raises:
        InvalidError: Trials are missing, or were run by another version of Starfish.
        SimulationError: Two outcomes of the same trial differ.
    """
    return _table(as_plans(plan), list(parts), of_trials(rows))


# pandas chooses the type for text, which depends on its version.
_DTYPES = {"integer": "int64", "number": "float64", "flag": "bool", "text": None}
# First columns of tables of both kinds of plans.
_FIRST = ("plan", "variant", "pattern")
# If only some plans vary a value, rows of the other plans lack it.
_DTYPES_WITH_MISSING = {**_DTYPES, "integer": "Int64", "flag": "boolean"}


def _table(plans: tuple[Plan, ...], parts: list[str], rows_are_trials: bool) -> pd.DataFrame:
    return data_frame(_native.table_columns(texts(plans), parts, rows_are_trials), _FIRST)


def data_frame(columns: list[tuple[str, str, list[Any]]], names: Sequence[str]) -> pd.DataFrame:
    """Return a table of columns (name, kind and values); the columns in `names` come first."""
    table: dict[str, Any] = {
        name: pd.Series(values, dtype=cast(Any, _dtype(kind, values))) for name, kind, values in columns
    }
    return arranged(pd.DataFrame(table), names)


def _dtype(kind: str, values: list[Any]) -> str | None:
    return (_DTYPES_WITH_MISSING if None in values else _DTYPES)[kind]


def of_trials(rows: str) -> bool:
    """Return true if each row of a table is a trial."""
    if rows not in ("cells", "trials"):
        raise InvalidError(f"rows: {rows!r} is neither 'cells' nor 'trials'")
    return rows == "trials"
