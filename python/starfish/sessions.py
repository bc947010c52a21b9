"""Connections to agents: one for each process and set of options, made when it is needed first.

A connection is a thread, so the child of a fork has none: it makes its own. What is handed from process to process,
by pickling or by a fork, are the options.
"""

import asyncio
import atexit
import contextlib
import errno
import os
import threading
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from starfish import _native

P = ParamSpec("P")
T = TypeVar("T")

# How many calls of coroutines may wait at the same time: a thread that waits costs little.
WAITING = 64

SCHEME = "starfish://"


@dataclass(frozen=True)
class SessionOptions:
    """Which agents, and how to talk to them.

    agents: as HOST:PORT or HOST; those that the environment names if there are none here.
    key_file: the file of the cluster key, if it is not the usual one.
    cache_bytes: memory for pages of all files, 256 MiB without it.
    block_bytes: block size of files that are made, 256 KiB without it.
    """

    agents: tuple[str, ...] = ()
    key_file: str | None = None
    cache_bytes: int | None = None
    block_bytes: int | None = None

    def session(self) -> _native.FileSession:
        """Return the connection of this process."""
        while True:
            # Who was connecting for all may have been interrupted.
            with contextlib.suppress(CancelledError):
                return _here.session(self)

    def connect(self) -> _native.FileSession:
        """Return a new connection."""
        try:
            return _native.FileSession(list(self.agents), self.key_file, self.cache_bytes, self.block_bytes)
        except OSError as error:
            if error.errno == errno.EHOSTUNREACH:
                text = (
                    f"{error.strerror}. In a URL without agents the path has three slashes: {SCHEME}/dir/file"
                )
                raise OSError(error.errno, text, error.filename) from None
            raise


def agents_of(agents: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the names of agents, which may be in one text with commas between them."""
    names = agents.split(",") if isinstance(agents, str) else agents or ()
    return tuple(name.strip() for name in names if name.strip())


def split_url(url: str) -> tuple[tuple[str, ...], str]:
    """Return the agents and the path of a URL, or of a path alone: `/dir/f`, without a slash at its end."""
    if "\0" in url:
        raise ValueError(f"{url!r}: a path has no null bytes")
    agents: tuple[str, ...] = ()
    if url.startswith(SCHEME):
        place, _, url = url.removeprefix(SCHEME).partition("/")
        agents = agents_of(place)
    return agents, "/" + url.strip("/")


async def in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a call gives that waits, without keeping the event loop from its work."""
    return await asyncio.get_running_loop().run_in_executor(_here.threads, lambda: call(*args, **kwargs))


class _Here:
    """What this process has."""

    def __init__(self) -> None:
        # Nobody connects, or waits for who does, while holding it.
        self.lock = threading.Lock()
        self.sessions: dict[SessionOptions, Future[_native.FileSession]] = {}
        self.threads = ThreadPoolExecutor(WAITING, "starfish")

    def session(self, options: SessionOptions) -> _native.FileSession:
        """Return the connection of these options: who asks first makes it, and others wait for what comes of that."""
        shared = self.sessions.get(options) or self._connect(options)
        return shared.result()

    def _connect(self, options: SessionOptions) -> "Future[_native.FileSession]":
        mine: Future[_native.FileSession] = Future()
        try:
            with self.lock:
                shared = self.sessions.setdefault(options, mine)
            if shared is mine:
                mine.set_result(options.connect())
        except BaseException as error:
            with self.lock:
                if self.sessions.get(options) is mine:
                    del self.sessions[options]
            if isinstance(error, Exception):
                mine.set_exception(error)
            else:
                mine.cancel()
            raise
        return shared

    def finish(self) -> None:
        """Write out what was written behind, and end each connection, whatever becomes of the others."""
        sessions, self.sessions = self.sessions, {}
        for session in sessions.values():
            try:
                if session.done():
                    session.result().finish()
            except OSError:
                # Nobody is there to catch it.
                traceback.print_exc()


_here = _Here()


def _begin_anew() -> None:
    # What the parent had belongs to it: a lock may be taken for ever here.
    global _here
    _here = _Here()


def _finish() -> None:
    # It may have been born in a fork.
    _here.finish()


os.register_at_fork(after_in_child=_begin_anew)
atexit.register(_finish)
