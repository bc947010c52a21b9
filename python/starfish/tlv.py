"""Recording what the threads of a Python program do, for the Thread Log Viewer.

A program says where its threads begin and end what they do, and gets a trace of it, which ``starfish view`` shows and
``starfish trace`` sums up::

    from starfish import tlv

    SORT = tlv.State("sort", colour=tlv.BLUE)

    with tlv.recording("example"):  # example.tlv, or what the variable TLV_FILE says
        with SORT:
            tlv.tell(items=1000)
            ...

Threads are recorded from their first state on, by their names. Where nothing is recorded, because nobody has begun
or because of ``TLV=off`` in the environment, states, counters and flows do nothing. A process that is forked off, as
those of ``multiprocessing`` may be, does not record until it begins itself, and has a file of its own then.
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
"""Red, green and blue, from 0 to 255 each."""

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
    """Begin to record this process, and this thread of it.

    The recording goes on until ``finish``, or until the process ends. There is one at a time.

    Arguments:
        name: What the recording is called. The file is ``NAME.tlv``, and replaced if it is there.
        file: Another file, instead of that and of what the variable TLV_FILE says.

    Returns:
        The file, or None if nothing is to be recorded.

    Raises:
        InvalidError: There is a recording already, or a variable of the environment makes no sense.
        FileError: The file cannot be made.

    """
    return _native.tlv_start(name, None if file is None else os.fspath(file))


def finish() -> None:
    """End the recording, and write what is left of it.

    Raises:
        InvalidError: There is none.
        FileError: Not all could be written.

    """
    _native.tlv_finish()


@contextmanager
def recording(name: str, file: str | os.PathLike[str] | None = None) -> Iterator[Path | None]:
    """Record while the block is executed: ``start`` and ``finish``.

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
    """What a thread can be in, from a begin to an end.

    It is the context of a block, ``with SORT:``, or decorates a function, ``@SORT``. Several threads may be in it at
    once, and a thread may be in it several times over. Two of the same name and category are the same state.
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
    """A number over time, such as the length of a queue. Two of the same name are the same counter."""

    def __init__(self, name: str, *, unit: str = "") -> None:
        self._id = _native.tlv_counter(name, unit)

    def set(self, value: float) -> None:
        """Say which value it has from now on."""
        _native.tlv_count(self._id, value)


def tell(**arguments: float | str) -> None:
    """Tell numbers and texts of the state that this thread began last and is in: ``tell(items=1000, file="a.txt")``.

    Of a text 500 bytes are kept.
    """
    for name, value in arguments.items():
        number = _arguments.get(name)
        if number is None:
            number = _arguments[name] = _native.tlv_argument(name)
        _native.tlv_tell(number, value)


def name_thread(name: str) -> None:
    """Record this thread from now on, by this name."""
    _native.tlv_thread(name)


def new_flow() -> int:
    """Return the number of a flow that no other has, here or in another process."""
    return _native.tlv_flow()


def flow_out(flow: int) -> None:
    """Say that something leaves this thread: what arrives elsewhere by ``flow_in`` with the same number."""
    _native.tlv_flow_out(flow)


def flow_in(flow: int) -> None:
    """Say that something arrives that has left elsewhere by ``flow_out`` with the same number."""
    _native.tlv_flow_in(flow)
