"""Connections to agents: one for each process and set of options, opened at the first use.

A connection has a thread, so a forked process cannot use the connections of its parent, and opens its own.
Processes pass only options to others, by pickling or by a fork.
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

# Maximum number of coroutine calls that wait concurrently, each in a thread: a waiting thread costs little.
WAITING = 64

SCHEME = "starfish://"


@dataclass(frozen=True)
class SessionOptions:
    """Agents, and settings of the connection to them.

    agents: agents as HOST:PORT or HOST; if empty, the agents that the environment names.
    key_file: file of the cluster key, if not the default file.
    cache_bytes: size of the page cache for all files. Default: 256 MiB.
    block_bytes: block size of new files. Default: 256 KiB.
    """

    agents: tuple[str, ...] = ()
    key_file: str | None = None
    cache_bytes: int | None = None
    block_bytes: int | None = None

    def session(self) -> _native.FileSession:
        """Return the connection of this process, opening it at the first use."""
        while True:
            # Retry if the thread that was connecting for all callers was interrupted.
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
    """Return the names of agents, from a list or from a text with commas between the names."""
    names = agents.split(",") if isinstance(agents, str) else agents or ()
    return tuple(name.strip() for name in names if name.strip())


def split_url(url: str) -> tuple[tuple[str, ...], str]:
    """Return the agents and the path of a URL or path; the path is `/dir/f`, without a trailing slash."""
    if "\0" in url:
        raise ValueError(f"{url!r}: a path has no null bytes")
    agents: tuple[str, ...] = ()
    if url.startswith(SCHEME):
        place, _, url = url.removeprefix(SCHEME).partition("/")
        agents = agents_of(place)
    return agents, "/" + url.strip("/")


async def in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking call in a thread and return its result, without blocking the event loop."""
    return await asyncio.get_running_loop().run_in_executor(_here.threads, lambda: call(*args, **kwargs))


class _Here:
    """Connections and threads of this process."""

    def __init__(self) -> None:
        # No thread connects, or waits for a connection, while it holds the lock.
        self.lock = threading.Lock()
        self.sessions: dict[SessionOptions, Future[_native.FileSession]] = {}
        self.threads = ThreadPoolExecutor(WAITING, "starfish")

    def session(self, options: SessionOptions) -> _native.FileSession:
        """Return the connection with these options: the first caller opens it, and others wait."""
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
        """Write out buffered writes and close each connection, even if others fail."""
        sessions, self.sessions = self.sessions, {}
        for session in sessions.values():
            try:
                if session.done():
                    session.result().finish()
            except OSError:
                # At exit, no code can catch the exception, so print it.
                traceback.print_exc()


_here = _Here()


def _begin_anew() -> None:
    # Connections and locks belong to the parent: a lock held at the fork would never be released in the
    # child.
    global _here
    _here = _Here()


def _finish() -> None:
    # Use the current `_here`: a fork may have replaced it.
    _here.finish()


os.register_at_fork(after_in_child=_begin_anew)
atexit.register(_finish)
