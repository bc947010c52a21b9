"""Progress of a run."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Report = Callable[[int, int], object]
"""Called with the numbers of completed and of all trials. If it raises an exception, the run ends."""

Progress = bool | Report
"""``True`` shows a progress bar (with tqdm, if installed), ``False`` shows nothing; a function is called
instead."""


@contextmanager
def reporting(progress: Progress, what: str) -> Iterator[Report | None]:
    """Yield the function that reports progress, and close the progress bar after the run."""
    if callable(progress):
        yield progress
    elif not progress:
        yield None
    else:
        bar = _Bar(what)
        try:
            yield bar.show
        finally:
            bar.close()


class _Bar:
    """A progress bar of tqdm, or otherwise a line on standard error that is overwritten."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._tqdm: Any = None
        self._shown = False

    def show(self, done: int, total: int) -> None:
        if not self._shown:
            self._tqdm = _tqdm_bar(self._what, total)
            self._shown = True
        if self._tqdm is not None:
            self._tqdm.update(done - self._tqdm.n)
        else:
            print(f"\r{self._what}: {done} of {total} trials", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._tqdm is not None:
            self._tqdm.close()
        elif self._shown:
            print(file=sys.stderr)


def _tqdm_bar(what: str, total: int) -> Any:
    try:
        auto = importlib.import_module("tqdm.auto")
    except ImportError:
        return None
    return auto.tqdm(desc=what, total=total, unit="trial")
