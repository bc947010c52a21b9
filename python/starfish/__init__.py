"""Starfish: parallel disk I/O, on simulated machines and on agents.

`open` opens a file that is striped over agents. fsspec, and so pandas, pyarrow, Dask and others, can open
such files by URLs such as `starfish://HOST:PORT,.../dir/file`.

Four calls are for simulations: `Machine.load` loads a machine, `simulate` predicts the throughput of a file
on it, `simulate_merges` predicts the time of jobs that share its disks, and `run` runs a whole plan of
experiments, on all cores or on a Dask cluster. Tables are pandas data frames, and the name of a column ends
in its unit, if the column has one.
"""

from importlib.metadata import version as _version

from starfish.errors import FileError, IncompleteWarning, InvalidError, SimulationError, StarfishError
from starfish.files import open
from starfish.machine import Machine
from starfish.merges import simulate_merges
from starfish.options import MergeOptions, Options
from starfish.plans import merge, run, split
from starfish.shards import Plan, Shard
from starfish.simulation import simulate

__all__ = [
    "FileError",
    "IncompleteWarning",
    "InvalidError",
    "Machine",
    "MergeOptions",
    "Options",
    "Plan",
    "Shard",
    "SimulationError",
    "StarfishError",
    "merge",
    "open",
    "run",
    "simulate",
    "simulate_merges",
    "split",
]

__version__ = _version("starfish-io")
