"""Files striped over agents, as Python's own: buffered, binary or text, to be read, replaced, appended to, changed.

A file that is opened to be written anew (`w`, `x`) is written under a hidden name in the same directory, which
becomes its own when it is closed. So whoever reads the name sees the old file or the new one, and never half of it;
if the block of a `with` ends with an exception, or nobody closes the file, the old one stays.
"""

import contextlib
import errno
import io
import os
import re
import secrets
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from starfish import _native
from starfish.sessions import SessionOptions, agents_of, split_url

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

# What is read and written at least, if the caller does not say.
BUFFER_BYTES = 256 << 10

# More is written in pieces, so that the memory for their copies is small.
PIECE_BYTES = 4 << 20

# What is said of a file of which a change was interrupted, as by Ctrl-C.
INTERRUPTED = (errno.EIO, "a change was interrupted")

HIDDEN = re.compile(r"\.starfish-[0-9a-f]{16}\Z")
HIDDEN_IN_TEXT = re.compile(r"/\.starfish-[0-9a-f]{16}\b")

TextMode = Literal["r", "r+", "w", "w+", "x", "x+", "a", "a+"]

# What each mode asks for; those that write anew do so under another name.
MODES = {
    "rb": ["read"],
    "r+b": ["read", "write"],
    "wb": ["write"],
    "w+b": ["read", "write"],
    "xb": ["write"],
    "x+b": ["read", "write"],
    "ab": ["append", "create"],
    "a+b": ["read", "append", "create"],
}


def hidden_name() -> str:
    """Return a new name for a file that is not whole yet."""
    return f".starfish-{secrets.token_hex(8)}"


def is_hidden(path: str) -> bool:
    """Say whether this is such a name as files have while they are written; users may give them, too."""
    return HIDDEN.match(path.rpartition("/")[2]) is not None


class _RawFile(io.RawIOBase):
    """A file without a buffer: each call goes to the page cache of this process."""

    def __init__(self, options: SessionOptions, path: str, mode: str, *, autocommit: bool = True) -> None:
        if mode not in MODES:
            raise ValueError(f"mode {mode!r}: expected one of {', '.join(MODES)}")
        self.name = path
        self.mode = mode
        self.options = options
        self.autocommit = autocommit
        # A cache of another file system in front of this one, as fsspec's blockcache; reads go through it.
        self.cache: Any = None
        self.buffer_bytes = BUFFER_BYTES
        self._position = 0
        # The name under which it is written, until it has its own.
        self._hidden: str | None = None
        # Number and text of the first error of a change: what is there is not what was to be there.
        self._failure: tuple[int, str] | None = None
        self._is_abandoned = False
        self._process = os.getpid()
        self._file = self._open()
        if mode.startswith("a"):
            self._position = self._file.size()

    def _open(self) -> _native.FileHandle:
        session = self.options.session()
        if self.mode[0] not in "wx":
            return session.open(self.name, MODES[self.mode])
        before = self._before(session)
        directory = self.name.rpartition("/")[0]
        hidden = f"{directory}/{hidden_name()}"
        try:
            file = session.open(hidden, [*MODES[self.mode], "create_new", "unfinished"])
        except FileNotFoundError:
            remedy = "`starfish mkdir -p`, or makedirs of fsspec's file system, creates it"
            text = f"the directory {directory} does not exist: {remedy}"
            raise FileNotFoundError(errno.ENOENT, text, self.name) from None
        except OSError as error:
            raise self._own(error) from None
        self._hidden = hidden
        if before is not None:
            session.change(hidden, before["mode"])
        return file

    def _own(self, error: OSError) -> OSError:
        """Return an error about the hidden name as one about that which the caller knows."""
        if error.filename is None or not HIDDEN_IN_TEXT.search(os.fsdecode(error.filename)):
            return error
        return OSError(error.errno, error.strerror, self.name)

    @contextlib.contextmanager
    def _about_own(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._own(error) from None

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Change the file; if that fails or is interrupted, it is not whole, whatever is done after that."""
        before, self._failure = self._failure, self._failure or INTERRUPTED
        try:
            with self._about_own():
                yield
        except OSError as error:
            self._failure = before or (error.errno or errno.EIO, error.strerror or str(error))
            raise
        self._failure = before

    def _before(self, session: _native.FileSession) -> dict[str, Any] | None:
        """Return what is known of the file that will be replaced, if there is one that may be."""
        try:
            before = session.look(self.name, True)
        except FileNotFoundError:
            return None
        if self.mode.startswith("x"):
            raise FileExistsError(errno.EEXIST, "already exists", self.name)
        if before["kind"] == "directory":
            raise IsADirectoryError(errno.EISDIR, "it is a directory", self.name)
        return before

    def file(self) -> _native.FileHandle:
        """Return the file as this process has it: after a fork, one that is only read is opened again."""
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        if self._is_of_parent() and self.mode == "rb":
            self._file = self._open()
            self._process = os.getpid()
        return self._file

    def readable(self) -> bool:
        return "read" in MODES[self.mode]

    def writable(self) -> bool:
        return self.mode != "rb"

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        """Return the size in bytes, with what was written through this file."""
        return self.file().size()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence not in (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END):
            raise ValueError(f"whence {whence}: expected 0, 1 or 2")
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position}.get(whence)
        position = (self.size() if base is None else base) + offset
        if position < 0:
            raise OSError(errno.EINVAL, "a position before the beginning", self.name)
        self._position = position
        return position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: "WriteableBuffer") -> int:
        target = memoryview(buffer).cast("B")
        if self.cache is None:
            read = self.file().read_into(self._position, target)
        else:
            found = self.cache._fetch(self._position, min(self._position + len(target), self.size()))
            read = len(found)
            target[:read] = found
        self._position += read
        return read

    def readall(self) -> bytes:
        count = max(0, self.size() - self._position)
        fetch = self.fetch if self.cache is None else self.cache._fetch
        read: bytes = fetch(self._position, self._position + count)
        self._position += len(read)
        return read

    def fetch(self, start: int, end: int) -> bytes:
        """Return the bytes between two offsets, past any cache in front of this file system."""
        return self.file().read_at(start, end - start)

    def write(self, data: "ReadableBuffer") -> int:
        """Write the first piece of the data; the number of bytes, so that an interrupt repeats none of them."""
        piece = memoryview(data).cast("B")[:PIECE_BYTES]
        file = self.file()
        with self._changing():
            if self.mode.startswith("a"):
                self._position = file.append(piece)
            else:
                file.write_at(self._position, piece)
            self._position += len(piece)
        return len(piece)

    def truncate(self, size: int | None = None) -> int:
        size = self._position if size is None else size
        file = self.file()
        with self._changing():
            file.set_size(size)
        return size

    def sync(self) -> None:
        """Bring everything written to the disks."""
        file = self.file()
        with self._changing():
            file.flush()

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        if self._is_of_parent():
            return
        if self._hidden is None:
            self._file.close()
        elif self._is_abandoned:
            self.discard()
        elif self.autocommit:
            self.commit()
        else:
            # It stays open until it gets its name: `starfish rm --unfinished` takes what nobody has open.
            with self._changing():
                self._file.send()

    def _is_of_parent(self) -> bool:
        """Say whether the file belongs to the process before a fork."""
        return self._process != os.getpid()

    def _dealloc_warn(self, source: object) -> None:
        """Hear that nobody has closed the file: a buffer and a file of text say so to what they are above of.

        They do so of Python's own files, too, before they write what they have and close it when they are collected.
        """
        if self._is_of_parent():
            return
        # What is there of it may be half of what it was to be.
        self._is_abandoned = True
        warnings.warn(f"unclosed file {source!r}", ResourceWarning, stacklevel=2, source=source)

    def __del__(self) -> None:
        # In a cycle it may be collected before its buffer. Without a file, it was not opened.
        if not self.closed and hasattr(self, "_file"):
            self._dealloc_warn(self)
        super().__del__()

    def commit(self) -> None:
        """Give the closed file its name, if it has it not yet: what had it before is replaced in the same step.

        Raises:
            OSError: as the first change of it that has failed, if one has, or because it cannot have the name. It is
                discarded then.
        """
        if self._hidden is None or self._is_of_parent():
            return
        try:
            if self._failure is not None:
                number, text = self._failure
                raise OSError(number, f"it is discarded, since not all of it was written: {text}", self.name)
            with self._about_own():
                self._file.close()
                self.options.session().rename(self._hidden, self.name, self.mode.startswith("w"))
        except BaseException:
            self.discard()
            raise
        self._hidden = None

    def discard(self) -> None:
        """Remove the closed file, if it has not got its name yet; what has the name stays."""
        if self._hidden is None or self._is_of_parent():
            return
        hidden, self._hidden = self._hidden, None
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            self.options.session().remove(hidden, False)


# The classes of Python's files come before their abstract base, wherever a file is of another class, too.
if TYPE_CHECKING:
    _Base = io.IOBase
else:
    _Base = object


class _Striped(_Base):
    """What files have that Python's own have not."""

    # The file without its buffer.
    file: _RawFile

    @property
    def path(self) -> str:
        """The path, beginning with a slash."""
        return self.file.name

    @property
    def size(self) -> int:
        """The size in bytes, with what has left the buffer."""
        return self.file.size()

    def sync(self) -> None:
        """Bring everything written to the disks; `flush` brings it to the page cache of this process only."""
        self.flush()
        self.file.sync()

    def commit(self) -> None:
        """Close the file, and give it its name."""
        self.close()
        self.file.commit()

    def discard(self) -> None:
        """Close the file; if it is written anew, what was there under its name before stays."""
        self.file.autocommit = False
        try:
            self.close()
        finally:
            self.file.discard()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


class FileReader(_Striped, io.BufferedReader):
    """A file that is read."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return _reopen, (self.file.options, self.path, self.tell())


class FileWriter(_Striped, io.BufferedWriter):
    """A file that is written, or appended to."""


class FileUpdater(_Striped, io.BufferedRandom):
    """A file that is read and written."""


class CompressedFile(_Striped, io.BufferedIOBase):
    """A file that is compressed when it is written and decompressed when it is read: closed, so is the file below."""

    def __init__(self, below: "BinaryFile", compress: "Callable[[BinaryFile], Any]") -> None:
        self.file = below.file
        self._below = below
        try:
            self._coder = compress(below)
        except BaseException:
            below.discard()
            raise

    @property
    def name(self) -> str:
        """The path, as other files have it."""
        return self.path

    def readable(self) -> bool:
        """Say whether it can be read."""
        return bool(self._coder.readable())

    def writable(self) -> bool:
        """Say whether it can be written."""
        return bool(self._coder.writable())

    def seekable(self) -> bool:
        """Say whether it has a position that can be set."""
        return bool(self._coder.seekable())

    def read(self, size: int | None = -1) -> bytes:
        """Return so many of the next bytes, or all: fewer at the end."""
        read: bytes = self._coder.read(-1 if size is None else size)
        return read

    read1 = read

    def readline(self, size: int | None = -1) -> bytes:
        """Return the next line, or so many bytes of it."""
        line: bytes = self._coder.readline(-1 if size is None else size)
        return line

    def write(self, data: "ReadableBuffer") -> int:
        """Write these bytes; their number."""
        return int(self._coder.write(data))

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position in what was compressed."""
        return int(self._coder.seek(offset, whence))

    def tell(self) -> int:
        """Return the position in what was compressed."""
        return int(self._coder.tell())

    def flush(self) -> None:
        """Bring what can be compressed by now to the page cache of this process."""
        if not self._coder.closed:
            self._coder.flush()
            self._below.flush()

    def close(self) -> None:
        """Write the end, and close the file below: it gets its name if it was written anew."""
        if self.closed:
            return
        try:
            # If the coder cannot write its end, the file is not whole.
            with self._below:
                self._coder.close()
        finally:
            super().close()

    def _dealloc_warn(self, source: object) -> None:
        self.file._dealloc_warn(source)

    def __del__(self) -> None:
        # Without a coder, it was not opened.
        if hasattr(self, "_coder") and not self.closed:
            self._dealloc_warn(self)
            super().__del__()


class TextFile(_Striped, io.TextIOWrapper):
    """A file of text."""

    def __init__(
        self,
        binary: "BinaryFile | CompressedFile",
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> None:
        super().__init__(binary, encoding, errors, newline)
        self.file = binary.file


BinaryFile = FileReader | FileWriter | FileUpdater


class Kinds(NamedTuple):
    """The classes of files that are opened, by what can be done with them."""

    reader: type[FileReader] = FileReader
    writer: type[FileWriter] = FileWriter
    updater: type[FileUpdater] = FileUpdater


def open_binary(
    options: SessionOptions,
    path: str,
    mode: str,
    *,
    autocommit: bool = True,
    buffer_bytes: int | None = None,
    kinds: Kinds = Kinds(),  # noqa: B008
) -> BinaryFile:
    """Open a file by its path, with a buffer of `buffer_bytes` bytes."""
    raw = _RawFile(options, path, mode, autocommit=autocommit)
    kind: type[BinaryFile] = kinds.writer
    if raw.readable():
        kind = kinds.updater if raw.writable() else kinds.reader
    raw.buffer_bytes = buffer_bytes or BUFFER_BYTES
    opened: BinaryFile = kind(raw, raw.buffer_bytes)
    opened.file = raw
    return opened


def _reopen(options: SessionOptions, path: str, position: int) -> BinaryFile:
    file = open_binary(options, path, "rb")
    file.seek(position)
    return file


@overload
def open(
    path: str | os.PathLike[str],
    mode: Literal["rb"],
    *,
    agents: str | Iterable[str] | None = None,
    key_file: str | None = None,
) -> FileReader: ...


@overload
def open(
    path: str | os.PathLike[str],
    mode: Literal["wb", "xb", "ab"],
    *,
    agents: str | Iterable[str] | None = None,
    key_file: str | None = None,
) -> FileWriter: ...


@overload
def open(
    path: str | os.PathLike[str],
    mode: Literal["r+b", "w+b", "x+b", "a+b"],
    *,
    agents: str | Iterable[str] | None = None,
    key_file: str | None = None,
) -> FileUpdater: ...


@overload
def open(
    path: str | os.PathLike[str],
    mode: TextMode = "r",
    *,
    agents: str | Iterable[str] | None = None,
    key_file: str | None = None,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
) -> TextFile: ...


@overload
def open(
    path: str | os.PathLike[str],
    mode: str,
    *,
    agents: str | Iterable[str] | None = None,
    key_file: str | None = None,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
) -> Any: ...


def open(
    path: str | os.PathLike[str],
    mode: str = "r",
    *,
    agents: str | Iterable[str] | None = None,
    key_file: str | None = None,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
) -> BinaryFile | TextFile:
    """Open a file that is striped over agents.

    A file that is written anew replaces the one before when it is closed, in one step, and not at all if the block
    of a `with` ends with an exception.

    Args:
        path: the path, as `/dir/file` or `starfish://HOST:PORT,.../dir/file`.
        mode: `r`, `r+` (to be read and changed), `w` (written anew), `x` (made) or `a` (appended to), the last three
            also with `+` to be read too; with `b` for bytes.
        agents: the agents, as HOST:PORT or HOST; else those of the path, or that the environment names.
        key_file: the file of the cluster key, if it is not the usual one.
        encoding: that of a text, UTF-8 if it is not said.
        errors: what is done with what is no text, as for Python's own `open`.
        newline: how lines end, as for Python's own `open`.

    Raises:
        OSError: or the kind of it that says why it cannot be opened, as FileNotFoundError.
    """
    of_path, inside = split_url(os.fspath(path))
    options = SessionOptions(agents_of(agents) or of_path, key_file)
    if "b" in mode:
        if encoding is not None or errors is not None or newline is not None:
            raise ValueError("encoding, errors and newline are for text, and the mode is binary")
        return open_binary(options, inside, binary_mode(mode))
    binary = open_binary(options, inside, binary_mode(mode))
    return TextFile(binary, encoding or "utf-8", errors, newline)


def binary_mode(mode: str) -> str:
    """Return a mode as it is written here: `r+b` for `rb+`, `rb` for `r` and `rt`."""
    if {"b", "t"} <= set(mode) or len(set(mode)) < len(mode):
        raise ValueError(f"mode {mode!r}: a file is either binary or text, and each letter stands there once")
    kind = mode.replace("b", "").replace("t", "")
    return f"{kind[:1]}+b" if kind.endswith("+") else f"{kind}b"
