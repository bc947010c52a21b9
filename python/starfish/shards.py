"""Plans as values, and shards: parts of plans that can be run on any computer."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypedDict, cast

from starfish import _native
from starfish.errors import FileError, InvalidError, SimulationError
from starfish.progress import Progress, reporting
from starfish.simulation import count, thread_count


class _Facts(TypedDict):
    name: str
    title: str
    trials: int
    seed: int
    cells: int


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """A plan of simulations: a TOML text. Each combination of the listed values is a cell.

    Load a plan with `Plan.load`, or create it from a text: ``Plan('name = "mine" ...')``. A plan is a value,
    like a `Machine`.

    Raises:
        InvalidError: The plan is invalid; the message contains the file, the line and the remedy.
        FileError: A machine file that the plan names cannot be read.
    """

    text: str
    """The plan, in TOML."""

    file: str = "plan.toml"
    """Name of the file in messages. Paths of machine files in the plan are relative to its folder."""

    def __post_init__(self) -> None:
        self._facts()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Load a plan from its file.

        Raises:
            InvalidError: The plan is invalid; the message contains the file, the line and the remedy.
            FileError: The file, or a machine file that the plan names, cannot be read.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise InvalidError(f"{path}: expected text in UTF-8: {error}") from None
        except OSError as error:
            raise FileError(f"{path}: {error.strerror}") from None
        return cls(text, os.fspath(path))

    @property
    def name(self) -> str:
        """Name of the plan."""
        return self._facts()["name"]

    @property
    def title(self) -> str:
        """Title of the plan, one line; can be empty."""
        return self._facts()["title"]

    @property
    def trials(self) -> int:
        """Number of runs of each cell."""
        return self._facts()["trials"]

    @property
    def seed(self) -> int:
        """Seed of all random numbers."""
        return self._facts()["seed"]

    @property
    def cells(self) -> int:
        """Number of combinations."""
        return self._facts()["cells"]

    def __repr__(self) -> str:
        """Return a description in one line."""
        return f"<Plan {self.name}: {self.cells} cells, {self.trials} trials of each>"

    def _facts(self) -> _Facts:
        return _facts(self.text, self.file)


Plans = Plan | str | os.PathLike[str] | Sequence[Plan | str | os.PathLike[str]]
"""One or several plans; each is a `Plan` or the path of its file."""


@dataclass(frozen=True, slots=True, repr=False)
class Shard:
    """A part of plans: some of their trials.

    A shard is a value, which can be pickled and run on any computer, also more than once: the outcome of a
    trial depends only on the plan. `split` creates shards, and `merge` creates a table from their outcomes.
    """

    plans: tuple[Plan, ...]
    """The plans with these trials."""

    trials: tuple[str, ...]
    """The keys of its trials: each key is a hash of everything on which the outcome of the trial depends."""

    def run(self, *, threads: int | None = None, progress: Progress = False) -> str:
        """Run the trials, and return their outcomes as a text for `merge`, with a line for each trial.

        Args:
            threads: Number of concurrent trials. Default: the number of processors.
            progress: As in `run`.

        Raises:
            InvalidError: The plan differs on this computer: another version of Starfish, or of a machine
                file.
            SimulationError: A trial failed.
        """
        with reporting(progress, "simulating") as report:
            keys = list(self.trials)
            return all_of(_native.run_trials(texts(self.plans), keys, None, thread_count(threads), report))

    def __repr__(self) -> str:
        """Return a description in one line."""
        return f"<Shard of {', '.join(plan.name for plan in self.plans)}: {len(self.trials)} trials>"


def as_plans(plan: Plans) -> tuple[Plan, ...]:
    """Return the plans, loading those that are given by their paths."""
    if isinstance(plan, (Plan, str, os.PathLike)):
        plan = [plan]
    plans = tuple(each if isinstance(each, Plan) else Plan.load(each) for each in plan)
    if not plans:
        raise InvalidError("plan: expected at least one")
    return plans


def shards_of(plans: tuple[Plan, ...], trials: Sequence[str], shards: int) -> list[Shard]:
    """Deal trials, sorted by descending run time, to at most `shards` shards."""
    shards = min(count("shards", shards, 1), len(trials))
    return [Shard(plans, tuple(trials[first::shards])) for first in range(shards)]


def all_of(outcome: tuple[str, str | None]) -> str:
    """Return the outcomes of trials. Fails if a trial failed."""
    part, failed = outcome
    if failed is not None:
        raise SimulationError(failed)
    return part


def texts(plans: Iterable[Plan]) -> list[tuple[str, str]]:
    """Return text and file of each plan."""
    return [(plan.text, plan.file) for plan in plans]


@lru_cache(maxsize=64)
def _facts(text: str, file: str) -> _Facts:
    return cast(_Facts, _native.plan_facts(text, file))
