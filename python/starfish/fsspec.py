"""The file system for fsspec: `starfish://HOST:PORT,.../dir/file`, for pandas, pyarrow, Dask and others."""

import asyncio
import contextlib
import errno
import io
import os
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from datetime import UTC, datetime
from glob import has_magic
from pathlib import PurePosixPath
from typing import Any, BinaryIO, NamedTuple, TypeVar, cast

from fsspec.asyn import AsyncFileSystem, _run_coros_in_chunks, get_loop, sync, sync_wrapper
from fsspec.callbacks import DEFAULT_CALLBACK, Callback
from fsspec.compression import compr
from fsspec.core import get_compression
from fsspec.implementations.local import trailing_sep
from fsspec.spec import AbstractBufferedFile
from fsspec.utils import isfilelike, stringify_path

from starfish import _native
from starfish.files import (
    PIECE_BYTES,
    BinaryFile,
    CompressedFile,
    FileReader,
    FileUpdater,
    FileWriter,
    Kinds,
    TextFile,
    binary_mode,
    hidden_name,
    is_hidden,
    open_binary,
)
from starfish.sessions import SCHEME, SessionOptions, agents_of, in_thread, split_url

# Options that every file system of fsspec accepts.
OPTIONS_OF_ALL = {
    "asynchronous",
    "batch_size",
    "listings_expiry_time",
    "loop",
    "max_paths",
    "skip_instance_cache",
    "use_listings_cache",
}

# Errors of a path or symbolic link that does not lead to an existing file.
DANGLING = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}

# Bits of the mode for the type of a path, as in `os.stat`.
FILE_TYPES = {"file": stat.S_IFREG, "directory": stat.S_IFDIR, "link": stat.S_IFLNK}

Facts = dict[str, Any]
Made = TypeVar("Made")


class Block(NamedTuple):
    """A range of a file that is stored on one agent."""

    offset: int
    """Offset of its first byte."""
    length: int
    """Its length in bytes."""
    agent: str
    """The agent, by the name that the user gave."""


class _OfFileSystem:
    """Attributes of fsspec's files that Python's own files lack.

    `AbstractBufferedFile` implements further ones with these. If Python's file classes have a method, too,
    theirs is used.
    """

    fs: "StarfishFileSystem"
    file: Any
    tell: Callable[[], int]
    kwargs: dict[str, Any] = {}  # noqa: RUF012

    __del__ = io.IOBase.__del__
    __enter__ = io.IOBase.__enter__
    __hash__ = object.__hash__
    __eq__ = object.__eq__
    readlines = io.IOBase.readlines

    @property
    def closed(self) -> bool:
        """True if the file is closed. Caches of fsspec set this attribute after closing the file."""
        closed: bool = super().closed  # type: ignore[misc]
        return closed

    @closed.setter
    def closed(self, _: bool) -> None: ...

    @property
    def blocksize(self) -> int:
        """Size of the buffer in bytes."""
        return int(self.file.buffer_bytes)

    @property
    def autocommit(self) -> bool:
        """True if closing the file renames it to its final name."""
        return bool(self.file.autocommit)

    @property
    def loc(self) -> int:
        """The position in the file."""
        return self.tell()

    @property
    def cache(self) -> Any:
        """The cache for reads, if another file system has set one."""
        return self.file.cache

    @cache.setter
    def cache(self, cache: Any) -> None:
        self.file.cache = cache

    def _fetch_range(self, start: int, end: int) -> bytes:
        read: bytes = self.file.fetch(start, end)
        return read


class StarfishReader(_OfFileSystem, FileReader, AbstractBufferedFile):  # type: ignore[misc]
    """A file open for reading."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return _reopen, (self.fs, self.path, self.blocksize, self.tell())


def _reopen(fs: "StarfishFileSystem", path: str, block_size: int, position: int) -> BinaryFile:
    file = fs._open(path, "rb", block_size)
    file.seek(position)
    return file


class StarfishWriter(_OfFileSystem, FileWriter, AbstractBufferedFile):  # type: ignore[misc]
    """A file open for writing or appending."""


class StarfishUpdater(_OfFileSystem, FileUpdater, AbstractBufferedFile):  # type: ignore[misc]
    """A file open for reading and writing."""


KINDS = Kinds(StarfishReader, StarfishWriter, StarfishUpdater)


class StarfishFileSystem(AsyncFileSystem):  # type: ignore[misc]
    """Files striped over agents, by their paths.

    All clients see a file as soon as it is closed. A new file replaces the old one atomically, in a
    transaction at the end of the transaction. Directories exist by themselves and can be empty. Any process
    can use an instance, also after a fork or after unpickling: each process opens its own connections.

    Args:
        agents: the agents, as HOST:PORT or HOST, in a list or separated by commas. Default: the agents that
            the environment names (STARFISH_AGENTS, config.toml, `starfish agents up`).
        key_file: the file of the cluster key, if not the default file.
        cache_bytes: size of the page cache for all files of a process. Default: 256 MiB.
        block_bytes: block size of new files. Default: 256 KiB.
        auto_mkdir: create missing directories for a new file.
        storage_options: options of `fsspec.asyn.AsyncFileSystem`.

    Raises:
        TypeError: A storage option is unknown.
    """

    protocol = "starfish"
    root_marker = "/"
    _pid: int

    def __init__(
        self,
        agents: str | Iterable[str] | None = None,
        key_file: str | None = None,
        cache_bytes: int | None = None,
        block_bytes: int | None = None,
        auto_mkdir: bool = True,
        **storage_options: Any,
    ) -> None:
        if unknown := sorted(storage_options.keys() - OPTIONS_OF_ALL):
            expected = ", ".join(["agents", "key_file", "cache_bytes", "block_bytes", "auto_mkdir"])
            raise TypeError(f"unknown storage option {unknown[0]!r}: expected one of {expected}")
        super().__init__(**storage_options)
        self.auto_mkdir = auto_mkdir
        self._options = SessionOptions(agents_of(agents), key_file, cache_bytes, block_bytes)

    # Paths and URLs.

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        return split_url(stringify_path(path).removeprefix("starfish::"))[1]

    def unstrip_protocol(self, name: str) -> str:
        """Return the URL of a path, with the agents if they were passed to this instance."""
        return f"{SCHEME}{','.join(self._options.agents)}{self._strip_protocol(name)}"

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, str]:
        agents, _ = split_url(path)
        return {"agents": ",".join(agents)} if agents else {}

    # Connections.

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop for synchronous calls; after a fork, a new loop of this process."""
        if self._pid != (here := os.getpid()):
            self._pid = here
            self._loop = None if self.asynchronous else get_loop()
        loop: asyncio.AbstractEventLoop | None = self._loop
        return loop

    @property
    def _session(self) -> _native.FileSession:
        return self._options.session()

    async def _ask(self, call: Callable[[_native.FileSession], Any]) -> Any:
        return await in_thread(lambda: call(self._session))

    async def _with_parents(self, path: str, make: Callable[[], Made]) -> Made:
        """Call `make`; if directories are missing and `auto_mkdir` is true, create them and retry."""
        try:
            return await in_thread(make)
        except FileNotFoundError:
            if not self.auto_mkdir:
                raise
        await self._makedirs(self._parent(path), exist_ok=True)
        return await in_thread(make)

    # Attributes and directories.

    async def _info(self, path: str, **_: Any) -> Facts:
        path = self._strip_protocol(path)
        return await in_thread(self._look, path)

    def _look(self, path: str) -> Facts:
        return self._facts_of(path, self._session.look(path, False))

    def _facts_of(self, path: str, facts: Facts) -> Facts:
        """Return the attributes of a path in the form of fsspec; of a symbolic link, those of its target."""
        destination = facts["target"]
        if facts["kind"] == "link":
            try:
                facts = self._session.look(path, True)
            except OSError as error:
                if error.errno not in DANGLING:
                    raise
                facts = {**facts, "size": 0}
        found = {
            "name": path,
            "type": facts["kind"],
            "size": facts["size"],
            "mode": FILE_TYPES[facts["kind"]] | facts["mode"],
            "uid": facts["uid"],
            "gid": facts["gid"],
            "nlink": facts["links"],
            "ino": facts["number"],
            "version": facts["version"],
            "created": facts["made"] / 1e9,
            "mtime": facts["modified"] / 1e9,
            "islink": destination is not None,
        }
        if destination is not None:
            found["destination"] = destination
        if facts["kind"] == "file":
            found |= {"block_size": facts["block_bytes"], "stripes": facts["stripes"]}
        return found

    async def _exists(self, path: str, **_: Any) -> bool:
        try:
            await self._info(path)
        except OSError as error:
            if error.errno not in DANGLING:
                raise
            return False
        return True

    async def _ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip_protocol(path)
        listed = await in_thread(self._list, path)
        return listed if detail else [facts["name"] for facts in listed]

    def _list(self, path: str) -> list[Facts]:
        try:
            entries = self._session.entries(path)
        except NotADirectoryError:
            return [self._look(path)]
        below = path.rstrip("/")
        found = [(f"{below}/{name}", facts) for name, facts in entries]
        return [self._facts_of(at, facts) for at, facts in found if not self._is_unfinished(at, facts)]

    async def _walk(
        self,
        path: str,
        maxdepth: int | None = None,
        topdown: bool = True,
        on_error: str | Callable[[OSError], object] = "omit",
        detail: bool = False,
        **_: Any,
    ) -> AsyncIterator[tuple[str, Any, Any]]:
        """Walk directories as `os.walk` does: links to directories are listed, but not followed.

        A directory that was removed during the walk counts as empty, unless `on_error` is `raise`. Any other
        failure is raised, so that the result is complete.
        """
        if maxdepth is not None and maxdepth < 1:
            raise ValueError("maxdepth must be at least 1")
        path = self._strip_protocol(path)
        try:
            listed = await self._ls(path)
        except OSError as error:
            if callable(on_error):
                on_error(error)
            elif on_error == "raise" or not isinstance(error, FileNotFoundError | NotADirectoryError):
                raise
            listed = []
        # The listing of a path that is not a directory contains only this path.
        named = {facts["name"].removeprefix(path).lstrip("/"): facts for facts in listed}
        directories = {name: facts for name, facts in named.items() if facts["type"] == "directory"}
        others = {name: facts for name, facts in named.items() if name not in directories}
        found = (path, directories, others) if detail else (path, list(directories), list(others))
        if topdown:
            yield found
        deeper = None if maxdepth is None else maxdepth - 1
        # With `topdown`, the caller may remove directories from the list to skip them.
        for facts in [directories[name] for name in found[1] if deeper != 0]:
            if not facts["islink"]:
                async for below in self._walk(facts["name"], deeper, topdown, on_error, detail):
                    yield below
        if not topdown:
            yield found

    async def _find(
        self, path: str, maxdepth: int | None = None, withdirs: bool = False, **kwargs: Any
    ) -> Any:
        """Return all paths below a path, with a leading slash only if it has one, as pyarrow requires."""
        found = await super()._find(path, maxdepth=maxdepth, withdirs=withdirs, **kwargs)
        if not path or path.startswith(("/", SCHEME)):
            return found
        if isinstance(found, list):
            return [name.removeprefix("/") for name in found]
        named = {name.removeprefix("/"): facts for name, facts in found.items()}
        return {name: {**facts, "name": name} for name, facts in named.items()}

    def _is_unfinished(self, path: str, facts: Facts) -> bool:
        """Return true if a file is being written, or was never completed."""
        return (
            is_hidden(path) and facts["kind"] == "file" and self._session.is_unfinished(path, facts["number"])
        )

    def created(self, path: str) -> datetime:
        """Return the creation time of the file, in UTC."""
        return datetime.fromtimestamp(self.info(path)["created"], UTC)

    def modified(self, path: str) -> datetime:
        """Return the time of the last change of the contents, in UTC."""
        return datetime.fromtimestamp(self.info(path)["mtime"], UTC)

    def ukey(self, path: str) -> str:
        """Return a text that changes with the contents of the path: the number and version of the file."""
        facts = self.info(path)
        return f"{facts['ino']:016x}.{facts['version']}"

    def checksum(self, path: str) -> int:
        """Return a number that changes with the contents of the path."""
        facts = self.info(path)
        return int(facts["ino"]) << 64 | int(facts["version"])

    async def _blocks(self, path: str, offset: int = 0, length: int | None = None) -> list[Block]:
        path = self._strip_protocol(path)
        length = 2**63 - 1 - offset if length is None else length
        found = await self._ask(lambda session: session.blocks(path, offset, length))
        return [Block(*block) for block in found]

    def blocks(self, path: str, offset: int = 0, length: int | None = None) -> list[Block]:
        """Return where a range of a file is stored, so that programs can process data near their disks.

        Args:
            path: the file.
            offset: offset of the first byte of the range.
            length: length of the range in bytes. Default: up to the end of the file.
        """
        blocks: list[Block] = sync(self.loop, self._blocks, path, offset, length)
        return blocks

    # Contents.

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        path = self._strip_protocol(path)
        read: bytes = await self._ask(lambda session: session.read(path, start, end))
        return read

    async def _cat_ranges(
        self,
        paths: list[str],
        starts: int | None | Iterable[int | None],
        ends: int | None | Iterable[int | None],
        max_gap: int | None = None,
        batch_size: int | None = None,
        on_error: str = "return",
        **_: Any,
    ) -> list[Any]:
        """Read ranges of files: all ranges of a file in one call, so that shared pages are fetched once."""
        if not isinstance(paths, list):
            raise TypeError("expected a list of paths")
        firsts = list(starts) if isinstance(starts, Iterable) else [starts] * len(paths)
        lasts = list(ends) if isinstance(ends, Iterable) else [ends] * len(paths)
        if not len(paths) == len(firsts) == len(lasts):
            raise ValueError("expected as many starts and ends as paths")
        wanted: dict[str, list[int]] = {}
        for index, path in enumerate(paths):
            wanted.setdefault(self._strip_protocol(path), []).append(index)

        def read(path: str, places: list[int]) -> Awaitable[list[bytes]]:
            ranges = [(firsts[place], lasts[place]) for place in places]
            return self._ask(lambda session: session.read_ranges(path, ranges))

        files = [read(path, places) for path, places in wanted.items()]
        outcomes = await _run_coros_in_chunks(
            files, batch_size=batch_size or self.batch_size, return_exceptions=True
        )
        found: list[Any] = [None] * len(paths)
        for places, outcome in zip(wanted.values(), outcomes, strict=True):
            if isinstance(outcome, BaseException) and on_error != "return":
                raise outcome
            several = [outcome] * len(places) if isinstance(outcome, BaseException) else outcome
            for place, one in zip(places, several, strict=True):
                found[place] = one
        return found

    async def _pipe_file(self, path: str, value: Any, mode: str = "overwrite", **_: Any) -> None:
        path = self._strip_protocol(path)
        await self._write_anew(path, mode, lambda file: file.write(value))

    async def _write_anew(self, path: str, mode: str, write: Callable[[BinaryFile], object]) -> None:
        """Replace or create a file; in a transaction, rename it to its final name only at the end."""
        transaction = self.transaction if self._intrans else None

        def written() -> BinaryFile:
            kind = "xb" if mode == "create" else "wb"
            with open_binary(self._options, path, kind, autocommit=transaction is None) as file:
                write(file)
            return file

        file = await self._with_parents(path, written)
        if transaction is not None:
            transaction.files.append(file)

    async def _get_file(
        self, rpath: str, lpath: Any, callback: Callback = DEFAULT_CALLBACK, **_: Any
    ) -> None:
        rpath = self._strip_protocol(rpath)
        if isfilelike(lpath):
            await in_thread(self._copy_out, rpath, lpath, callback)
        elif await self._isdir(rpath):
            os.makedirs(lpath, exist_ok=True)
        else:
            await in_thread(self._copy_to, rpath, lpath, callback)

    def _copy_to(self, rpath: str, lpath: str, callback: Callback) -> None:
        with open_binary(self._options, rpath, "rb") as source, replacing(lpath) as target:
            copy(source, target, source.size, callback)

    def _copy_out(self, rpath: str, target: BinaryIO, callback: Callback) -> None:
        with open_binary(self._options, rpath, "rb") as source:
            copy(source, target, source.size, callback)

    async def _put_file(
        self, lpath: str, rpath: str, callback: Callback = DEFAULT_CALLBACK, mode: str = "overwrite", **_: Any
    ) -> None:
        rpath = self._strip_protocol(rpath)
        if os.path.isdir(lpath):
            await self._makedirs(rpath, exist_ok=True)
            return

        def put(target: BinaryFile) -> None:
            with open(lpath, "rb", buffering=0) as source:
                copy(source, target, os.fstat(source.fileno()).st_size, callback)

        await self._write_anew(rpath, mode, put)

    async def _cp_file(self, path1: str, path2: str, **_: Any) -> None:
        path1, path2 = self._strip_protocol(path1), self._strip_protocol(path2)
        if (await self._info(path1))["type"] == "directory":
            await self._makedirs(path2, exist_ok=True)
            return

        def copy_file(target: BinaryFile) -> None:
            with open_binary(self._options, path1, "rb") as source:
                copy(source, target, source.size, DEFAULT_CALLBACK)

        await self._write_anew(path2, "overwrite", copy_file)

    async def _touch(self, path: str, truncate: bool = True, **_: Any) -> None:
        path = self._strip_protocol(path)
        if truncate or not await self._exists(path):
            await self._pipe_file(path, b"")
        else:
            await self._ask(lambda session: session.change(path, None, True))

    touch = sync_wrapper(_touch)

    # Files.

    def open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        cache_options: dict[str, Any] | None = None,
        compression: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Open a file, with the arguments of `AbstractFileSystem.open`.

        Besides `rb`, `wb` and `ab`, the modes are `xb` (create; fails if the file exists) and `r+b` (read and
        change); `+` and text modes are possible, too. A new file replaces the old one when it is closed, or
        at the end of the transaction. If the block of a `with` ends with an exception, the old file stays.
        """
        text = {name: kwargs.pop(name) for name in ("encoding", "errors", "newline") if name in kwargs}
        autocommit = kwargs.pop("autocommit", not self._intrans)
        path, kind = self._strip_protocol(path), binary_mode(mode)
        compression = get_compression(path, compression)
        file: Any = self._open(path, kind, block_size, autocommit)
        if compression is not None:
            file = CompressedFile(file, lambda below: compr[compression](below, mode=kind[0]))
        if "b" not in mode:
            file = TextFile(file, **text)
        if not autocommit and "r" not in mode:
            self.transaction.files.append(file)
        return file

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        **_: Any,
    ) -> BinaryFile:
        path = self._strip_protocol(path)

        def opened() -> BinaryFile:
            file: Any = open_binary(
                self._options, path, mode, autocommit=autocommit, buffer_bytes=block_size, kinds=KINDS
            )
            file.fs = self
            return cast(BinaryFile, file)

        try:
            return opened()
        except FileNotFoundError:
            if not self.auto_mkdir or mode.startswith("r"):
                raise
        self.makedirs(self._parent(path), exist_ok=True)
        return opened()

    # Names.

    async def _mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        path = self._strip_protocol(path)
        try:
            await self._ask(lambda session: session.make_directory(path))
        except FileNotFoundError:
            if not create_parents:
                raise
            await self._makedirs(self._parent(path), exist_ok=True)
            await self._ask(lambda session: session.make_directory(path))

    async def _makedirs(self, path: str, exist_ok: bool = False) -> None:
        path = self._strip_protocol(path)
        try:
            await self._mkdir(path)
        except FileExistsError:
            if not exist_ok or not await self._isdir(path):
                raise

    async def _rmdir(self, path: str) -> None:
        path = self._strip_protocol(path)
        await self._ask(lambda session: session.remove(path, True))

    rmdir = sync_wrapper(_rmdir)

    async def _rm_file(self, path: str, **_: Any) -> None:
        path = self._strip_protocol(path)
        await self._ask(lambda session: session.remove(path, False))

    async def _rm(
        self,
        path: str | list[str],
        recursive: bool = False,
        batch_size: int | None = None,
        maxdepth: int | None = None,
        **_: Any,
    ) -> None:
        if maxdepth is not None:
            raise NotImplementedError("rm with maxdepth: directories with deeper entries cannot be removed")
        paths = await self._expand_path(path)
        if recursive:
            await self._each([self._rm_tree(one) for one in outermost(paths)], batch_size)
        else:
            await self._each([self._rm_file(one) for one in paths], batch_size)

    async def _rm_tree(self, path: str) -> None:
        """Remove a path and everything below it, including hidden files."""
        if (await self._ask(lambda session: session.look(path, False)))["kind"] != "directory":
            await self._rm_file(path)
            return
        entries = await self._ask(lambda session: session.entries(path))
        await self._each([self._rm_tree(f"{path.rstrip('/')}/{name}") for name, _ in entries], None)
        if path != self.root_marker:
            await self._rmdir(path)

    async def _each(self, calls: list[Any], batch_size: int | None) -> None:
        await _run_coros_in_chunks(calls, batch_size=batch_size or self.batch_size)

    async def _glob(self, path: str, maxdepth: int | None = None, **kwargs: Any) -> Any:
        """Find the paths that match a pattern. If a file has exactly this name, return only this file."""
        exact = self._strip_protocol(path)
        if has_magic(path) and await self._exists(exact):
            return {exact: await self._info(exact)} if kwargs.get("detail") else [exact]
        return await super()._glob(path, maxdepth=maxdepth, **kwargs)

    async def _mv_file(self, path1: str, path2: str, **_: Any) -> None:
        path1, path2 = self._strip_protocol(path1), self._strip_protocol(path2)
        if path1 == path2:
            return
        try:
            await self._ask(lambda session: session.rename(path1, path2, True))
        except OSError as error:
            raise OSError(error.errno, error.strerror, path1, None, path2) from None

    async def _mv(
        self, path1: str | list[str], path2: str | list[str], recursive: bool = False, **_: Any
    ) -> None:
        """Move files and directories, each atomically. If `path2` is a directory, move them into it.

        If `path2` ends with a slash and does not exist, it names a directory: a moved directory gets this
        name, and files are moved into a new directory of this name.
        """
        one = self._strip_protocol(path1) if isinstance(path1, str) else None
        sources = [one] if one and not has_magic(one) else await self._expand_path(path1)
        if isinstance(path2, list):
            targets = path2
        else:
            base = self._strip_protocol(path2)
            is_there = await self._isdir(base)
            gets_name = sources == [one] and (not trailing_sep(path2) or await self._isdir(one))
            if gets_name and not is_there:
                targets = [base]
            else:
                targets = [f"{base.rstrip('/')}/{source.rpartition('/')[2]}" for source in sources]
                if not is_there and self.auto_mkdir and trailing_sep(path2):
                    await self._makedirs(base, exist_ok=True)
        for source, target in zip(sources, targets, strict=True):
            await self._mv_file(source, target)

    mv = sync_wrapper(_mv)


def copy(source: Any, target: Any, size: int, callback: Callback) -> None:
    """Copy the contents of a file to another, and report progress to `callback`."""
    callback.set_size(size)
    while piece := source.read(PIECE_BYTES):
        target.write(piece)
        callback.relative_update(len(piece))


def outermost(paths: list[str]) -> list[str]:
    """Return the paths that are not below other paths in the list."""
    given = set(paths)
    return [path for path in paths if given.isdisjoint(map(str, PurePosixPath(path).parents))]


@contextlib.contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """Write a regular local file under a hidden name, and rename it; write to other files directly."""
    place = os.path.realpath(path)
    if os.path.exists(place) and not os.path.isfile(place):
        with open(place, "wb") as file:
            yield file
        return
    hidden = os.path.join(os.path.dirname(place), hidden_name())
    try:
        with open(hidden, "xb") as file:
            yield file
        with contextlib.suppress(FileNotFoundError):
            os.chmod(hidden, os.stat(place).st_mode & 0o7777)
        os.replace(hidden, place)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.remove(hidden)
        if isinstance(error, OSError) and error.filename == hidden:
            error.filename = path
        raise
