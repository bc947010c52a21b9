"""Files on agents: every mode, atomic replacement, other processes and forks."""

import bz2
import errno
import gc
import gzip
import io
import lzma
import multiprocessing
import os
import pickle
import random
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import IO, Any

import fsspec
import pytest

import starfish
from starfish.files import BUFFER_BYTES, PIECE_BYTES
from starfish.fsspec import StarfishFileSystem

SEED = 1


@pytest.fixture
def url(agents: str, folder: str) -> str:
    return f"starfish://{agents}{folder}"


def test_every_mode_behaves_as_in_python(url: str, tmp_path: Path) -> None:
    dice = random.Random(SEED)
    local, striped = str(tmp_path / "file"), f"{url}/file"
    for _ in range(40):
        mode = dice.choice(["rb", "r+b", "wb", "w+b", "xb", "x+b", "ab", "a+b"])
        outcomes = []
        calls = [(dice.random(), dice.randrange(3_000_000), dice.randbytes(20_000)) for _ in range(12)]
        openers: list[Callable[[], Any]] = [
            partial(open, local, mode, BUFFER_BYTES),
            partial(starfish.open, striped, mode),
        ]
        for opener in openers:
            said: list[object] = []
            try:
                with opener() as file:
                    for kind, number, data in calls:
                        try:
                            said.append(change(file, kind, number, data))
                        except io.UnsupportedOperation:
                            said.append("unsupported")
            except OSError as error:
                said.append(type(error))
            outcomes.append(said)
        assert outcomes[0] == outcomes[1], mode
        if os.path.exists(local):
            with open(local, "rb") as left, starfish.open(striped, "rb") as right:
                assert left.read() == right.read(), mode
            if dice.random() < 0.2:
                os.remove(local)
                StarfishFileSystem(url.split("/")[2]).rm(striped)


def change(file: IO[bytes], kind: float, number: int, data: bytes) -> object:
    """Make a random call on an open file, and return its result."""
    if kind < 0.25:
        return file.read(number % 5000 if number % 2 else number)
    if kind < 0.6:
        return file.write(data * (number % 30))
    if kind < 0.8:
        return file.seek(number)
    if kind < 0.85:
        return file.truncate(number)
    if kind < 0.9:
        file.flush()
    return file.tell() if kind < 0.95 else file.seek(-min(number, file.seek(0, 2)), 2)


def test_text_files_have_lines_and_encodings(url: str) -> None:
    with starfish.open(f"{url}/text", "w") as file:
        file.write("erste Zeile\nzweite, länger\n")
    with starfish.open(f"{url}/text") as file:
        assert list(file) == ["erste Zeile\n", "zweite, länger\n"]
    with starfish.open(f"{url}/text", "a") as file:
        file.write("dritte")
    with starfish.open(f"{url}/text", encoding="latin-1") as file:
        assert "lÃ¤nger" in file.read()


@pytest.mark.parametrize(
    ("name", "mode"), [("file", "rbt"), ("file", "rbb"), ("file", "rr"), ("fi\0le", "r"), ("fi\0le", "wb")]
)
def test_invalid_modes_and_names_raise_the_same_error_as_in_python(
    url: str, tmp_path: Path, name: str, mode: str
) -> None:
    for path, opens in ((f"{url}/{name}", starfish.open), (f"{tmp_path}/{name}", open)):
        with pytest.raises(ValueError, match=r"binary|null|mode"):
            opens(path, mode)


def test_readers_see_either_the_old_file_or_the_new_one(
    url: str, striped: StarfishFileSystem, folder: str
) -> None:
    path = f"{url}/file"
    with starfish.open(path, "wb") as file:
        file.write(b"old")
    with starfish.open(path, "rb") as early:
        with starfish.open(path, "wb") as file:
            file.write(b"new" * 1_000_000)
            file.sync()
            assert striped.cat_file(path) == b"old"
            assert striped.ls(folder, detail=False) == [f"{folder}/file"]
        assert striped.cat_file(path) == b"new" * 1_000_000
        assert early.read() == b"old", "open files keep the old contents"
    for mode, half in (("wb", b"half"), ("w", "half")):
        with pytest.raises(ZeroDivisionError), starfish.open(path, mode) as file:
            file.write(half)
            _ = 1 / 0
        assert striped.size(path) == 3_000_000
    assert len(striped._session.entries(folder)) == 1, "no hidden file is left"


def forget(files: list[Any]) -> None:
    files.clear()
    gc.collect()


@pytest.mark.parametrize("mode", ["w", "wb", "w+b"])
@pytest.mark.parametrize("how", ["starfish", "files", "fsspec"])
def test_an_unclosed_new_file_is_discarded(
    url: str, striped: StarfishFileSystem, folder: str, how: str, mode: str
) -> None:
    striped.pipe_file(f"{folder}/file", b"old")
    path = f"{url}/file"

    def opened() -> Any:
        if how == "files":
            return striped.open(path, mode)
        return starfish.open(path, mode) if how == "starfish" else fsspec.open(path, mode).open()

    for in_cycle in (False, True):
        files = [opened()]
        files[0].write("ha" if mode == "w" else b"ha")
        if in_cycle:
            files[0].itself = files[0]
        with pytest.warns(ResourceWarning, match="unclosed file"):
            forget(files)
        assert striped.cat_file(path) == b"old"
        assert len(striped._session.entries(folder)) == 1, "no hidden file is left"
    files = [starfish.open(path, "ab")]
    files[0].write(b"er")
    with pytest.warns(ResourceWarning, match="unclosed file"):
        forget(files)
    assert striped.cat_file(path) == b"older", "changes in place are kept, as with Python's own files"


def unzipped(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read("file")


@pytest.mark.parametrize("mode", ["wb", "w"])
@pytest.mark.parametrize(
    ("compression", "decompress"),
    [("gzip", gzip.decompress), ("bz2", bz2.decompress), ("xz", lzma.decompress), ("zip", unzipped)],
)
@pytest.mark.filterwarnings("error::ResourceWarning")
def test_compressed_files_are_replaced_atomically(
    striped: StarfishFileSystem,
    folder: str,
    mode: str,
    compression: str,
    decompress: Callable[[bytes], bytes],
) -> None:
    path = f"{folder}/file.{compression}"
    old, new = (text if mode == "w" else text.encode() for text in ("old\nlines", "new\n" * 100_000))

    def opened(mode: str) -> Any:
        return striped.open(path, mode, compression=compression)

    with opened(mode) as file:
        file.write(old)
    assert decompress(striped.cat_file(path)) == b"old\nlines"
    with pytest.raises(ZeroDivisionError), opened(mode) as file:
        file.write(new)
        _ = 1 / 0
    files = [opened(mode)]
    files[0].write(new)
    with pytest.warns(ResourceWarning, match="unclosed file"):
        forget(files)
    with opened(mode.replace("w", "r")) as file:
        assert list(file) == old.splitlines(keepends=True)
    with striped.transaction:
        file = opened(mode)
        file.write(new)
        assert decompress(striped.cat_file(path)) == b"old\nlines"
    assert decompress(striped.cat_file(path)) == b"new\n" * 100_000
    file = opened(mode)
    file.write(old)
    file.close()
    assert decompress(striped.cat_file(path)) == b"old\nlines"
    assert len(striped._session.entries(folder)) == 1, "no hidden file is left"


def test_opening_an_invalid_archive_raises_an_error(striped: StarfishFileSystem, folder: str) -> None:
    striped.pipe_file(f"{folder}/file.zip", b"none")
    with pytest.raises(zipfile.BadZipFile):
        striped.open(f"{folder}/file.zip", "rb", compression="infer")
    with pytest.raises(ValueError, match="not supported"):
        striped.open(f"{folder}/file.zip", "wb", compression="none")
    assert striped.cat_file(f"{folder}/file.zip") == b"none"


class Stumbling:
    """An open file, of which call number `at` of the method `name` raises `error`."""

    def __init__(self, file: Any, name: str, at: int, error: BaseException) -> None:
        self.file, self.name, self.at, self.error = file, name, at, error

    def __getattr__(self, name: str) -> Any:
        if name == self.name:
            self.at -= 1
            if self.at == 0:
                raise self.error
        return getattr(self.file, name)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("flush", methodcaller("sync")),
        ("set_size", methodcaller("truncate", 1)),
        ("write_at", methodcaller("flush")),
    ],
)
@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_file_with_lost_writes_replaces_no_file(
    striped: StarfishFileSystem,
    folder: str,
    name: str,
    change: Callable[[Any], object],
    in_transaction: bool,
) -> None:
    path = f"{folder}/file"
    striped.pipe_file(path, b"old")

    def write() -> None:
        file = striped.open(path, "wb")
        file.write(b"lost")
        lost = OSError(errno.ENOSPC, "no room")
        file.file._file = Stumbling(file.file._file, name, 1, lost)
        with pytest.raises(OSError, match="no room"):
            change(file)
        file.write(b"written later")
        file.flush()
        file.close()

    with pytest.raises(OSError, match="not all of it was written: no room") as caught:
        if in_transaction:
            with striped.transaction:
                striped.pipe_file(f"{folder}/other", b"other")
                write()
        else:
            write()
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, path)
    assert striped.cat_file(path) == b"old"
    # In a transaction, the other file, which was written first, has its final name.
    assert len(striped._session.entries(folder)) == 1 + in_transaction, "no hidden file is left"


def test_an_interrupt_between_pieces_repeats_no_piece(striped: StarfishFileSystem, folder: str) -> None:
    pieces = [bytes([number]) * PIECE_BYTES for number in range(3)]
    file = striped.open(f"{folder}/log", "ab", block_size=4 * PIECE_BYTES)
    file.write(b"".join(pieces))
    file.file._file = Stumbling(file.file._file, "append", 2, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        file.flush()
    file.close()
    assert striped.cat_file(f"{folder}/log") == b"".join(pieces)


def test_others_do_not_remove_files_of_an_open_transaction(
    striped: StarfishFileSystem, folder: str, agents: str, program: str
) -> None:
    with striped.transaction:
        striped.pipe_file(f"{folder}/file", b"whole")
        command = [program, "rm", "--agents", agents, "--unfinished", "--older-than", "0s", folder]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""
    assert striped.cat_file(f"{folder}/file") == b"whole"


def test_a_program_that_ends_early_leaves_the_old_file(
    url: str, striped: StarfishFileSystem, folder: str
) -> None:
    striped.pipe_file(f"{folder}/file", b"old")
    program = (
        f"import starfish; f = starfish.open({url + '/file'!r}, 'w'); f.write('ha'); raise SystemError('no')"
    )
    ended = subprocess.run([sys.executable, "-W", "default", "-c", program], capture_output=True, text=True)
    assert ended.returncode == 1
    assert "SystemError: no" in ended.stderr
    assert "ResourceWarning: unclosed file" in ended.stderr
    assert striped.cat_file(f"{folder}/file") == b"old"
    assert len(striped._session.entries(folder)) == 1, "no hidden file is left"


def test_errors_name_the_file_that_the_caller_named(
    url: str, striped: StarfishFileSystem, folder: str
) -> None:
    path = f"{folder}/newdir/x"
    with pytest.raises(FileNotFoundError, match=f"directory {folder}/newdir does not exist.*mkdir") as caught:
        starfish.open(f"{url}/newdir/x", "w")
    assert caught.value.filename == path
    striped.makedirs(f"{folder}/gone")
    with pytest.raises(FileNotFoundError) as caught, striped.transaction:
        with striped.open(f"{folder}/gone/x", "wb"):
            pass
        striped.rm(f"{folder}/gone", recursive=True)
    assert caught.value.filename == f"{folder}/gone/x"
    assert ".starfish-" not in str(caught.value)


def test_blocks_that_agents_reject_leave_no_file(
    agents: str, striped: StarfishFileSystem, folder: str
) -> None:
    large = StarfishFileSystem(agents, block_bytes=1 << 22)
    with pytest.raises(OSError, match="blocks of 4194304 bytes are too large.*`block_bytes`") as caught:
        large.pipe_file(f"{folder}/x", b"x")
    assert caught.value.filename == f"{folder}/x"
    assert striped._session.entries(folder) == []


def test_of_two_exclusive_creations_one_succeeds(url: str, striped: StarfishFileSystem) -> None:
    first, second = (starfish.open(f"{url}/file", "xb") for _ in range(2))
    first.write(b"first")
    second.write(b"second")
    first.close()
    with pytest.raises(FileExistsError):
        second.close()
    assert striped.cat_file(f"{url}/file") == b"first"


def test_a_file_keeps_its_mode(url: str, striped: StarfishFileSystem) -> None:
    striped.pipe_file(f"{url}/file", b"1")
    striped._session.change(striped._strip_protocol(f"{url}/file"), 0o600)
    striped.pipe_file(f"{url}/file", b"2")
    assert striped.info(f"{url}/file")["mode"] == stat.S_IFREG | 0o600


def test_invalid_arguments_and_closed_files_raise_value_errors(url: str) -> None:
    with pytest.raises(ValueError, match="expected one of"):
        starfish.open(f"{url}/file", "rw")
    with pytest.raises(ValueError, match="for text"):
        starfish.open(f"{url}/file", "rb", encoding="utf-8")
    with starfish.open(f"{url}/file", "wb") as file:
        pass
    with pytest.raises(ValueError, match="closed"):
        file.write(b"x")


def test_an_archive_is_changed_in_place(url: str) -> None:
    with starfish.open(f"{url}/zip", "w+b") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("one", b"1" * 100_000)
    with starfish.open(f"{url}/zip", "r+b") as file, zipfile.ZipFile(file, "a") as archive:
        archive.writestr("two", b"2")
    with starfish.open(f"{url}/zip", "rb") as whole, zipfile.ZipFile(whole) as archive:
        assert archive.namelist() == ["one", "two"]
        assert archive.testzip() is None


def test_threads_share_a_connection(url: str, striped: StarfishFileSystem) -> None:
    def turn(number: int) -> bytes:
        striped.pipe_file(f"{url}/{number}", bytes([number]) * 300_000)
        last: bytes = striped.cat_file(f"{url}/{number}", 299_999)
        return last

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(turn, range(30))) == [bytes([number]) for number in range(30)]


APPENDING = """
import sys, starfish
for record in range(50):
    with starfish.open(sys.argv[1], "ab") as file:
        file.write(f"{sys.argv[2]}:{record:03};".encode())
"""


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
def test_other_processes_open_separate_connections(
    start: str, url: str, striped: StarfishFileSystem, folder: str
) -> None:
    striped.pipe_file(f"{folder}/file", b"contents")
    with (
        striped.open(f"{folder}/file") as file,
        ProcessPoolExecutor(2, multiprocessing.get_context(start)) as processes,
    ):
        assert processes.submit(methodcaller("cat_file", f"{folder}/file"), striped).result(60) == b"contents"
        file.seek(3)
        assert processes.submit(methodcaller("read"), file).result(60) == b"tents"
        with processes.submit(starfish.open, f"{url}/file", "rb").result(60) as theirs:
            assert theirs.read() == b"contents"
        assert striped.cat_file(f"{folder}/file") == b"contents", "the connection of this process still works"


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
def test_data_written_before_a_fork_belong_to_the_parent(striped: StarfishFileSystem, folder: str) -> None:
    with striped.open(f"{folder}/new", "wb") as writer:
        writer.write(b"of the parent")
        if (child := os.fork()) == 0:
            try:
                writer.discard()
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert striped.cat_file(f"{folder}/new") == b"of the parent"


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
def test_a_forked_process_reads_open_files_and_cannot_write_them(
    striped: StarfishFileSystem, folder: str
) -> None:
    striped.pipe_file(f"{folder}/file", b"contents")
    with striped.open(f"{folder}/file") as reader, striped.open(f"{folder}/new", "wb") as writer:
        writer.write(b"of the parent")
        ask, answer = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")

        def born() -> None:
            said: list[object] = [reader.read(), striped.cat_file(f"{folder}/file")]
            try:
                writer.write(b"x" * 1_000_000)
            except OSError as error:
                said.append(str(error))
            striped.pipe_file(f"{folder}/of-child", b"1")
            answer.send(said)

        child = context.Process(target=born)
        child.start()
        assert ask.poll(60)
        contents, again, refused = ask.recv()
        child.join(30)
        assert child.exitcode == 0
        assert contents == again == b"contents"
        assert "fork" in refused
    assert striped.cat(striped.find(folder)) == {
        f"{folder}/file": b"contents",
        f"{folder}/new": b"of the parent",
        f"{folder}/of-child": b"1",
    }


def test_processes_that_append_lose_nothing(url: str) -> None:
    command = [sys.executable, "-P", "-c", APPENDING, f"{url}/log"]
    writers = [subprocess.Popen([*command, str(writer)]) for writer in range(2)]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    with starfish.open(f"{url}/log") as file:
        records = sorted(file.read().split(";")[:-1])
    assert records == [f"{writer}:{record:03}" for writer in range(2) for record in range(50)]


def test_a_pickled_file_system_is_small_and_unpickles_to_itself(striped: StarfishFileSystem) -> None:
    pickled = pickle.dumps(striped)
    assert len(pickled) < 1000
    assert pickle.loads(pickled) is striped
