"""Plans as values, and shards: the parts of them that are run elsewhere."""

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
    """What is to be simulated: a TOML text, in which every combination of what is listed is a cell.

    Load one with `Plan.load`, or write it: ``Plan('name = "mine" ...')``. A plan is a value, like a `Machine`.

    Raises:
        InvalidError: It makes no sense; the message names file, line and remedy.
        FileError: A machine's file that it names cannot be read.
    """

    text: str
    """The plan, in TOML."""

    file: str = "plan.toml"
    """What messages call it; paths of machines in it are relative to its folder."""

    def __post_init__(self) -> None:
        self._facts()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Load a plan from its file.

        Raises:
            InvalidError: It makes no sense; the message names file, line and remedy.
            FileError: The file, or one that it names, cannot be read.
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
        """What it is called."""
        return self._facts()["name"]

    @property
    def title(self) -> str:
        """What it is about, in a line; may be empty."""
        return self._facts()["title"]

    @property
    def trials(self) -> int:
        """Number of runs of each cell."""
        return self._facts()["trials"]

    @property
    def seed(self) -> int:
        """Where all randomness comes from."""
        return self._facts()["seed"]

    @property
    def cells(self) -> int:
        """Number of combinations."""
        return self._facts()["cells"]

    def __repr__(self) -> str:
        """Say what it is in a line."""
        return f"<Plan {self.name}: {self.cells} cells, {self.trials} trials of each>"

    def _facts(self) -> _Facts:
        return _facts(self.text, self.file)


Plans = Plan | str | os.PathLike[str] | Sequence[Plan | str | os.PathLike[str]]
"""One plan or several, each itself or the path of its file."""


@dataclass(frozen=True, slots=True, repr=False)
class Shard:
    """A part of what plans ask for: some of their trials.

    A shard is a value, which can be pickled and run anywhere, also twice: a trial's outcome depends on nothing but
    the plan. `split` makes shards, and `merge` makes a table of what comes of them.
    """

    plans: tuple[Plan, ...]
    """The plans it is a part of."""

    trials: tuple[str, ...]
    """The keys of its trials: a hash of all that each depends on."""

    def run(self, *, threads: int | None = None, progress: Progress = False) -> str:
        """Run the trials, and return what came of them: text for `merge`, a line for each trial.

        Args:
            threads: Trials to run at a time; without this one for each processor.
            progress: As in `run`.

        Raises:
            InvalidError: The plan means something else here: another version of Starfish, or of a machine's file.
            SimulationError: A trial failed.
        """
        with reporting(progress, "simulating") as report:
            keys = list(self.trials)
            return all_of(_native.run_trials(texts(self.plans), keys, None, thread_count(threads), report))

    def __repr__(self) -> str:
        """Say what it is in a line."""
        return f"<Shard of {', '.join(plan.name for plan in self.plans)}: {len(self.trials)} trials>"


def as_plans(plan: Plans) -> tuple[Plan, ...]:
    """Load those plans that are given by their paths."""
    if isinstance(plan, (Plan, str, os.PathLike)):
        plan = [plan]
    plans = tuple(each if isinstance(each, Plan) else Plan.load(each) for each in plan)
    if not plans:
        raise InvalidError("plan: expected at least one")
    return plans


def shards_of(plans: tuple[Plan, ...], trials: Sequence[str], shards: int) -> list[Shard]:
    """Deal trials, the long ones first, to so many shards."""
    shards = min(count("shards", shards, 1), len(trials))
    return [Shard(plans, tuple(trials[first::shards])) for first in range(shards)]


def all_of(outcome: tuple[str, str | None]) -> str:
    """Return what came of trials, none of which may have failed."""
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
