"""Starfish: parallel disk I/O, on simulated machines and on agents.

`open` opens a file that is striped over agents; fsspec, and so pandas, pyarrow, Dask and others, knows such files
by URLs as `starfish://HOST:PORT,.../dir/file`.

For simulations there are four calls: `Machine.load` gives a machine, `simulate` says what a file would take on it,
`simulate_merges` what jobs take that share its disks, and `run` executes a whole plan of experiments, over all cores
or on a Dask cluster. Tables are pandas data frames, and every column's name ends in its unit, if it has one.
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
