"""Files striped over agents, used like Python's own files: buffered, binary or text, for all modes.

A file that is opened with mode `w` or `x` is written under a hidden name in the same directory, and renamed
to its own name when it is closed. So readers see either the old or the new contents, never a part of the new
ones. If the block of a `with` ends with an exception, or the program never closes the file, the old file
stays.
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

# Default size of the buffer of a file, in bytes.
BUFFER_BYTES = 256 << 10

# Maximum number of bytes in one call of the native half: larger writes are split, so that copies take little
# memory.
PIECE_BYTES = 4 << 20

# Error number and text for a file after an interrupted change, for example by Ctrl-C.
INTERRUPTED = (errno.EIO, "a change was interrupted")

HIDDEN = re.compile(r"\.starfish-[0-9a-f]{16}\Z")
HIDDEN_IN_TEXT = re.compile(r"/\.starfish-[0-9a-f]{16}\b")

TextMode = Literal["r", "r+", "w", "w+", "x", "x+", "a", "a+"]

# Options of the native half for each mode. Modes `w` and `x` also create a hidden file: see `_open`.
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
    """Return a new hidden name for a file that is being written."""
    return f".starfish-{secrets.token_hex(8)}"


def is_hidden(path: str) -> bool:
    """Return true if a path has the form of a hidden name. Files of users can also have such names."""
    return HIDDEN.match(path.rpartition("/")[2]) is not None


class _RawFile(io.RawIOBase):
    """A file without a buffer: each call accesses the page cache of this process."""

    def __init__(self, options: SessionOptions, path: str, mode: str, *, autocommit: bool = True) -> None:
        if mode not in MODES:
            raise ValueError(f"mode {mode!r}: expected one of {', '.join(MODES)}")
        self.name = path
        self.mode = mode
        self.options = options
        self.autocommit = autocommit
        # Cache of another file system in front of this one, such as fsspec's blockcache; reads use it.
        self.cache: Any = None
        self.buffer_bytes = BUFFER_BYTES
        self._position = 0
        # Hidden name of a file that is being written; None once it has its final name.
        self._hidden: str | None = None
        # Number and text of the first failed change. After a failure, the contents are incomplete.
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
        """Replace the hidden name in an error by the name that the caller passed."""
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
        """Run a change of the file; a failure or interrupt marks the file as incomplete for good."""
        before, self._failure = self._failure, self._failure or INTERRUPTED
        try:
            with self._about_own():
                yield
        except OSError as error:
            self._failure = before or (error.errno or errno.EIO, error.strerror or str(error))
            raise
        self._failure = before

    def _before(self, session: _native.FileSession) -> dict[str, Any] | None:
        """Return the attributes of the file to be replaced, or None; fail if it must not be replaced."""
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
        """Return the native handle in this process. After a fork, opens a read-only file again."""
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
        """Return the size in bytes, including writes through this file."""
        return self.file().size()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence not in (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END):
            raise ValueError(f"whence {whence}: expected 0, 1 or 2")
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position}.get(whence)
        position = (self.size() if base is None else base) + offset
        if position < 0:
            raise OSError(errno.EINVAL, "the position is before the beginning of the file", self.name)
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
        """Return the bytes between two offsets, bypassing any cache in front of this file system."""
        return self.file().read_at(start, end - start)

    def write(self, data: "ReadableBuffer") -> int:
        """Write the first piece of the data, and return its length: an interrupt then repeats no piece."""
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
        """Flush all writes to stable storage."""
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
            # Keep the handle open until the commit: `starfish rm --unfinished` removes unfinished files that
            # no client has open.
            with self._changing():
                self._file.send()

    def _is_of_parent(self) -> bool:
        """Return true if this process was forked after the open, so that the parent owns the file."""
        return self._process != os.getpid()

    def _dealloc_warn(self, source: object) -> None:
        """Mark a file as abandoned that the program never closed, and warn. Buffers and text files call this.

        Python's classes of buffers and text files call this before they flush and close a file in the garbage
        collector.
        """
        if self._is_of_parent():
            return
        # The contents may be incomplete.
        self._is_abandoned = True
        warnings.warn(f"unclosed file {source!r}", ResourceWarning, stacklevel=2, source=source)

    def __del__(self) -> None:
        # In a reference cycle, this object may be collected before its buffer. It has no `_file` if the open
        # failed.
        if not self.closed and hasattr(self, "_file"):
            self._dealloc_warn(self)
        super().__del__()

    def commit(self) -> None:
        """Rename the closed file to its final name, if not done yet. An existing file is replaced atomically.

        Raises:
            OSError: An earlier change failed (with the error number of the first failure), or the rename
                failed. The file is then discarded.
        """
        if self._hidden is None or self._is_of_parent():
            return
        try:
            if self._failure is not None:
                number, text = self._failure
                raise OSError(
                    number, f"the file is discarded, because not all of it was written: {text}", self.name
                )
            with self._about_own():
                self._file.close()
                self.options.session().rename(self._hidden, self.name, self.mode.startswith("w"))
        except BaseException:
            self.discard()
            raise
        self._hidden = None

    def discard(self) -> None:
        """Remove the closed file, unless it has its final name. An existing file of that name stays."""
        if self._hidden is None or self._is_of_parent():
            return
        hidden, self._hidden = self._hidden, None
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            self.options.session().remove(hidden, False)


# At run time the base is `object`, so that the concrete classes of `io` precede `io.IOBase` in the method
# resolution order.
if TYPE_CHECKING:
    _Base = io.IOBase
else:
    _Base = object


class _Striped(_Base):
    """Attributes of files that Python's own files lack."""

    # The file without its buffer.
    file: _RawFile

    @property
    def path(self) -> str:
        """The path, with a leading slash."""
        return self.file.name

    @property
    def size(self) -> int:
        """The size in bytes, including writes that have left the buffer."""
        return self.file.size()

    def sync(self) -> None:
        """Flush all writes to stable storage; `flush` only moves them to the page cache of this process."""
        self.flush()
        self.file.sync()

    def commit(self) -> None:
        """Close the file, and rename it to its final name."""
        self.close()
        self.file.commit()

    def discard(self) -> None:
        """Close the file; with mode `w` or `x`, remove it, so that an existing file of its name stays."""
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
    """A file open for reading."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return _reopen, (self.file.options, self.path, self.tell())


class FileWriter(_Striped, io.BufferedWriter):
    """A file open for writing or appending."""


class FileUpdater(_Striped, io.BufferedRandom):
    """A file open for reading and writing."""


class CompressedFile(_Striped, io.BufferedIOBase):
    """A file that compresses writes and decompresses reads. Closing it also closes the file below."""

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
        """The path; Python's own files have this attribute, too."""
        return self.path

    def readable(self) -> bool:
        """Return true if the file is open for reading."""
        return bool(self._coder.readable())

    def writable(self) -> bool:
        """Return true if the file is open for writing."""
        return bool(self._coder.writable())

    def seekable(self) -> bool:
        """Return true if the position can be set."""
        return bool(self._coder.seekable())

    def read(self, size: int | None = -1) -> bytes:
        """Return the next `size` bytes, or all remaining bytes; fewer at the end of the file."""
        read: bytes = self._coder.read(-1 if size is None else size)
        return read

    read1 = read

    def readline(self, size: int | None = -1) -> bytes:
        """Return the next line, or at most `size` bytes of it."""
        line: bytes = self._coder.readline(-1 if size is None else size)
        return line

    def write(self, data: "ReadableBuffer") -> int:
        """Write these bytes, and return their number."""
        return int(self._coder.write(data))

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position in the uncompressed contents."""
        return int(self._coder.seek(offset, whence))

    def tell(self) -> int:
        """Return the position in the uncompressed contents."""
        return int(self._coder.tell())

    def flush(self) -> None:
        """Move all data that the coder can compress now to the page cache of this process."""
        if not self._coder.closed:
            self._coder.flush()
            self._below.flush()

    def close(self) -> None:
        """Write the end of the compressed data, and close the file below, which renames it."""
        if self.closed:
            return
        try:
            # If the coder fails to write its end, the file below is discarded.
            with self._below:
                self._coder.close()
        finally:
            super().close()

    def _dealloc_warn(self, source: object) -> None:
        self.file._dealloc_warn(source)

    def __del__(self) -> None:
        # The object has no `_coder` if the open failed.
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
    """The classes for opened files, by access mode."""

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
    """Open a binary file by its path, with a buffer of `buffer_bytes` bytes."""
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

    With mode `w`, the new file replaces the old one atomically when it is closed. If the block of a `with`
    ends with an exception, the old file stays.

    Args:
        path: the path, as `/dir/file` or `starfish://HOST:PORT,.../dir/file`.
        mode: `r` (read), `r+` (read and change), `w` (replace), `x` (create) or `a` (append), the last three
            also with `+` to read, too; with `b` for bytes.
        agents: the agents, as HOST:PORT or HOST. Default: the agents in the path, or those that the
            environment names.
        key_file: the file of the cluster key, if not the default file.
        encoding: the encoding of a text file. Default: UTF-8.
        errors: the handling of encoding errors, as for Python's own `open`.
        newline: the handling of line ends, as for Python's own `open`.

    Raises:
        OSError: The file cannot be opened; a subclass such as FileNotFoundError gives the reason.
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
    """Return a mode in the form of `MODES`: `r+b` for `rb+`, `rb` for `r` and `rt`."""
    if {"b", "t"} <= set(mode) or len(set(mode)) < len(mode):
        raise ValueError(
            f"mode {mode!r}: a file is either binary or text, and each letter may occur only once"
        )
    kind = mode.replace("b", "").replace("t", "")
    return f"{kind[:1]}+b" if kind.endswith("+") else f"{kind}b"
