"""Recording activities of the threads of a Python program, for the Thread Log Viewer.

A program calls functions of this module where its threads begin and end activities. The trace contains the
times; ``starfish view`` shows it, and ``starfish trace`` summarises it::

    from starfish import tlv

    SORT = tlv.State("sort", colour=tlv.BLUE)

    with tlv.recording("example"): # example.tlv, or the file that TLV_FILE names with SORT:
        tlv.tell(items=1000) ...

Threads are recorded from their first state on, under their names. Without a recording, or with ``TLV=off`` in
the environment, states, counters and flows have no effect. A forked process, for example of
``multiprocessing``, does not record until it starts a separate recording, in another file.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ContextDecorator, contextmanager
from pathlib import Path
from types import TracebackType

from starfish import _native

__all__ = [
    "BLACK",
    "BLUE",
    "CYAN",
    "GREEN",
    "GREY",
    "MAGENTA",
    "ORANGE",
    "RED",
    "YELLOW",
    "Counter",
    "State",
    "finish",
    "flow_in",
    "flow_out",
    "name_thread",
    "new_flow",
    "recording",
    "start",
    "tell",
]

Colour = tuple[int, int, int]
"""Red, green and blue, each from 0 to 255."""

RED: Colour = (0xD5, 0x5E, 0x00)
ORANGE: Colour = (0xE6, 0x9F, 0x00)
YELLOW: Colour = (0xF0, 0xE4, 0x42)
GREEN: Colour = (0x00, 0x9E, 0x73)
CYAN: Colour = (0x56, 0xB4, 0xE9)
BLUE: Colour = (0x00, 0x72, 0xB2)
MAGENTA: Colour = (0xCC, 0x79, 0xA7)
BLACK: Colour = (0x00, 0x00, 0x00)
GREY: Colour = (0x99, 0x99, 0x99)

_arguments: dict[str, int] = {}


def start(name: str, file: str | os.PathLike[str] | None = None) -> Path | None:
    """Start to record this process, and add this thread to the recording.

    The recording continues until ``finish``, or until the process ends. A process has one recording at a
    time.

    Arguments:
        name: Name of the recording. The file is ``NAME.tlv``; an existing trace is replaced.
        file: Path of the file, which overrides ``NAME.tlv`` and the variable TLV_FILE.

    Returns:
        The file, or None if recording is off.

    Raises:
        InvalidError: A recording is already in progress, or an environment variable is invalid.
        FileError: The file cannot be created.

    """
    return _native.tlv_start(name, None if file is None else os.fspath(file))


def finish() -> None:
    """End the recording, and write the remaining records.

    Raises:
        InvalidError: No recording is in progress.
        FileError: Not all records could be written.

    """
    _native.tlv_finish()


@contextmanager
def recording(name: str, file: str | os.PathLike[str] | None = None) -> Iterator[Path | None]:
    """Record while the block runs: calls ``start`` and ``finish``.

    Arguments:
        name: As for ``start``.
        file: As for ``start``.

    """
    path = start(name, file)
    try:
        yield path
    finally:
        finish()


class State(ContextDecorator):
    """A state of threads, such as an activity.

    A state is the context of a block, ``with SORT:``, or decorates a function, ``@SORT``. Several threads can
    be in a state concurrently, and a thread can enter a state again while it is in it. States with the same
    name and category are the same state.
    """

    def __init__(self, name: str, *, category: str = "", colour: Colour | None = None) -> None:
        self._id = _native.tlv_state(name, category, colour)

    def __enter__(self) -> State:
        if _native.tlv_is_nameless():
            name_thread(threading.current_thread().name)
        _native.tlv_begin(self._id)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _native.tlv_end(self._id)


class Counter:
    """A number over time, such as the length of a queue. Counters with the same name are the same counter."""

    def __init__(self, name: str, *, unit: str = "") -> None:
        self._id = _native.tlv_counter(name, unit)

    def set(self, value: float) -> None:
        """Set the value of the counter."""
        _native.tlv_count(self._id, value)


def tell(**arguments: float | str) -> None:
    """Add numbers and texts to the current state of this thread: ``tell(items=1000, file="a.txt")``.

    The current state is the one that the thread began last and has not ended. Texts are truncated to 500
    bytes.
    """
    for name, value in arguments.items():
        number = _arguments.get(name)
        if number is None:
            number = _arguments[name] = _native.tlv_argument(name)
        _native.tlv_tell(number, value)


def name_thread(name: str) -> None:
    """Record this thread from now on, under this name."""
    _native.tlv_thread(name)


def new_flow() -> int:
    """Return the number of a new flow, which is unique across processes."""
    return _native.tlv_flow()


def flow_out(flow: int) -> None:
    """Record that a flow departs from this thread. Its arrival is a ``flow_in`` with the same number."""
    _native.tlv_flow_out(flow)


def flow_in(flow: int) -> None:
    """Record that a flow arrives at this thread. Its departure is a ``flow_out`` with the same number."""
    _native.tlv_flow_in(flow)
