"""The tests of fsspec for file systems, and further tests."""

import asyncio
import errno
import gc
import os
import pickle
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from fsspec.callbacks import Callback
from fsspec.spec import AbstractBufferedFile
from fsspec.tests.abstract import (
    AbstractCopyTests,
    AbstractFixtures,
    AbstractGetTests,
    AbstractOpenTests,
    AbstractPipeTests,
    AbstractPutTests,
)

from starfish.fsspec import StarfishFileSystem


class OnAgents(AbstractFixtures):  # type: ignore[misc]
    """Fixtures that the tests of fsspec require."""

    @pytest.fixture
    def fs(self, striped: StarfishFileSystem) -> StarfishFileSystem:
        """Return the file system."""
        return striped

    @pytest.fixture
    def fs_path(self, striped: StarfishFileSystem) -> Iterator[str]:
        """Make a directory for a test."""
        striped.makedirs("/abstract")
        yield "/abstract"
        striped.rm("/abstract", recursive=True)


class TestCopy(OnAgents, AbstractCopyTests):  # type: ignore[misc]
    """Copies from agents to agents."""


class TestGet(OnAgents, AbstractGetTests):  # type: ignore[misc]
    """Copies to this computer."""


class TestPut(OnAgents, AbstractPutTests):  # type: ignore[misc]
    """Copies from this computer."""


class TestPipe(OnAgents, AbstractPipeTests):  # type: ignore[misc]
    """Reads and writes of whole files."""


class TestOpen(OnAgents, AbstractOpenTests):  # type: ignore[misc]
    """Operations on open files."""


def test_a_url_names_agents_and_path(agents: str, striped: StarfishFileSystem) -> None:
    striped.pipe_file("/urls/file", b"contents")
    url = f"starfish://{agents}/urls/file"
    with fsspec.open(url) as file:
        assert file.read() == b"contents"
    assert striped.unstrip_protocol("/urls/file") == url
    assert striped._strip_protocol(url) == "/urls/file"
    assert striped._strip_protocol("/urls/file") == "/urls/file"
    for root in (f"starfish://{agents}", "starfish://", "/", ""):
        assert striped._strip_protocol(root) == "/"
    assert fsspec.filesystem("starfish", agents=agents) is StarfishFileSystem(agents=agents)


def test_the_environment_names_agents(agents: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STARFISH_AGENTS", agents)
    with fsspec.open("starfish:///of-environment", "wb") as file:
        file.write(b"x")
    assert StarfishFileSystem(agents).cat_file("/of-environment") == b"x"


def test_mv_is_a_rename_and_replaces(striped: StarfishFileSystem, folder: str) -> None:
    striped.pipe({f"{folder}/one": b"1", f"{folder}/two": b"2", f"{folder}/sub/three": b"3"})
    number = striped.info(f"{folder}/one")["ino"]
    striped.mv(f"{folder}/one", f"{folder}/two")
    assert striped.cat_file(f"{folder}/two") == b"1"
    assert striped.info(f"{folder}/two")["ino"] == number, "it is the same file"
    striped.mv(f"{folder}/two", f"{folder}/sub")
    assert striped.find(folder) == [f"{folder}/sub/three", f"{folder}/sub/two"]
    striped.mv(f"{folder}/sub", f"{folder}/moved")
    assert striped.find(folder) == [f"{folder}/moved/three", f"{folder}/moved/two"]
    striped.mkdir(f"{folder}/all")
    striped.mv(f"{folder}/moved/t*", f"{folder}/all")
    assert striped.ls(f"{folder}/moved") == []
    assert len(striped.ls(f"{folder}/all")) == 2
    with pytest.raises(FileNotFoundError):
        striped.mv(f"{folder}/none", f"{folder}/all")


def test_a_missing_target_with_a_slash_is_a_directory(striped: StarfishFileSystem, folder: str) -> None:
    striped.pipe({f"{folder}/src/one": b"1", f"{folder}/file": b"2", f"{folder}/other": b"3"})
    striped.mv(f"{folder}/src/", f"{folder}/new/", recursive=True)
    assert striped.find(f"{folder}/new") == [f"{folder}/new/one"]
    striped.mkdir(f"{folder}/is")
    striped.mv(f"{folder}/new/", f"{folder}/is/", recursive=True)
    assert striped.find(f"{folder}/is") == [f"{folder}/is/new/one"]
    striped.mv(f"{folder}/file", f"{folder}/files/")
    assert striped.cat_file(f"{folder}/files/file") == b"2"
    arrow = pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(striped))
    arrow.move(f"{folder}/is/", f"{folder}/was/")
    assert striped.find(f"{folder}/was") == [f"{folder}/was/new/one"]
    with pytest.raises(FileNotFoundError) as missing:
        striped.mv(f"{folder}/none", f"{folder}/some")
    assert (missing.value.filename, missing.value.filename2) == (f"{folder}/none", f"{folder}/some")


def test_info_returns_the_mode_of_stat(striped: StarfishFileSystem, folder: str) -> None:
    striped.pipe_file(f"{folder}/file", b"1")
    assert stat.S_ISDIR(striped.info(folder)["mode"])
    mode = striped.info(f"{folder}/file")["mode"]
    assert stat.S_ISREG(mode)
    assert stat.filemode(mode) == "-rw-r--r--"


def test_found_names_have_the_form_of_the_requested_path(striped: StarfishFileSystem, folder: str) -> None:
    table = pa.table({"number": [1, 2, 3]})
    for part in ["one", "two"]:
        with striped.open(f"{folder}/table/{part}.parquet", "wb") as file:
            pq.write_table(table, file)
    relative = folder.removeprefix("/")
    for path in [folder, relative, f"{relative}/table", f"{folder}/table/"]:
        assert ds.dataset(path, filesystem=striped).count_rows() == 6, path
    assert f"{relative}/table" in striped.find(relative, withdirs=True)
    found = striped.find(relative, detail=True)
    assert {name: facts["name"] for name, facts in found.items()} == {name: name for name in found}
    assert set(found) == {f"{relative}/table/one.parquet", f"{relative}/table/two.parquet"}


def test_open_files_have_the_attributes_of_fsspec_files(
    striped: StarfishFileSystem, folder: str, tmp_path: Path
) -> None:
    path, data = f"{folder}/bc", b"0123456789\n" * 1000
    with striped.open(path, "wb", block_size=1 << 16) as file:
        assert isinstance(file, AbstractBufferedFile)
        file.write(data)
        assert (file.blocksize, file.loc, file.autocommit) == (1 << 16, len(data), True)
    with striped.open(path, "rb") as file:
        assert file.readuntil(b"5") == b"012345"
        assert (file.loc, file.fs, file.size, file.closed) == (6, striped, len(data), False)
        assert file.details["size"] == file.info()["size"] == len(data)
        assert file.full_name == striped.unstrip_protocol(path)
        assert file.readlines(1) == [b"6789\n"]
        again = pickle.loads(pickle.dumps(file))
        assert (again.fs, again.tell(), again.read(3)) == (striped, 11, b"012")
        again.close()
    assert file.closed
    with striped.open(path, "r+b") as file:
        file.write(b"x")
        assert file.details["ino"] == striped.info(path)["ino"]
    file = striped.open(path, "wb")
    file.write(b"half")
    with pytest.warns(ResourceWarning, match="unclosed file"):
        del file
    gc.collect()
    assert striped.size(path) == len(data), "a file that was not closed is incomplete"


# fsspec does not close the file of its cache.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_block_cache_of_fsspec_works(striped: StarfishFileSystem, folder: str, tmp_path: Path) -> None:
    path, data = f"{folder}/bc", os.urandom(3_000_000)
    striped.pipe_file(path, data)
    cache = fsspec.filesystem("blockcache", fs=striped, cache_storage=str(tmp_path))
    with cache.open(path, "rb") as file:
        file.seek(1_500_000)
        assert file.read(100) == data[1_500_000:1_500_100]
        blocks = set(file.cache.blocks)
        assert blocks
    with cache.open(path, "rb") as file:
        assert file.cache.blocks == blocks, "the cached blocks still exist"
        assert file.read() == data
    with fsspec.open(
        f"blockcache::{striped.unstrip_protocol(path)}", blockcache={"cache_storage": str(tmp_path / "b")}
    ) as file:
        assert file.read(3) == data[:3]


def test_empty_directories_are_listed_and_removed(striped: StarfishFileSystem, folder: str) -> None:
    striped.makedirs(f"{folder}/a/b/c")
    assert striped.isdir(f"{folder}/a/b/c")
    assert striped.ls(f"{folder}/a/b/c") == []
    walked = [(path, dirs, files) for path, dirs, files in striped.walk(f"{folder}/a")]
    assert walked == [(f"{folder}/a", ["b"], []), (f"{folder}/a/b", ["c"], []), (f"{folder}/a/b/c", [], [])]
    assert striped.find(folder, withdirs=True)[-1] == f"{folder}/a/b/c"
    with pytest.raises(FileExistsError):
        striped.makedirs(f"{folder}/a/b")
    striped.makedirs(f"{folder}/a/b", exist_ok=True)
    striped.rmdir(f"{folder}/a/b/c")
    assert not striped.exists(f"{folder}/a/b/c")
    striped.rm(f"{folder}/a", recursive=True)
    assert striped.ls(folder) == []


def test_errors_have_the_types_and_errnos_of_python(striped: StarfishFileSystem, folder: str) -> None:
    striped.pipe_file(f"{folder}/sub/file", b"1")
    cases: list[tuple[type[OSError], int, Callable[[], Any]]] = [
        (FileNotFoundError, errno.ENOENT, lambda: striped.info(f"{folder}/none")),
        (FileNotFoundError, errno.ENOENT, lambda: striped.open(f"{folder}/none")),
        (FileNotFoundError, errno.ENOENT, lambda: striped.rm_file(f"{folder}/none")),
        (FileExistsError, errno.EEXIST, lambda: striped.mkdir(f"{folder}/sub")),
        (FileExistsError, errno.EEXIST, lambda: striped.open(f"{folder}/sub/file", "xb")),
        (IsADirectoryError, errno.EISDIR, lambda: striped.cat_file(f"{folder}/sub")),
        (IsADirectoryError, errno.EISDIR, lambda: striped.open(f"{folder}/sub", "wb")),
        (IsADirectoryError, errno.EISDIR, lambda: striped.rm(f"{folder}/sub")),
        (NotADirectoryError, errno.ENOTDIR, lambda: striped.info(f"{folder}/sub/file/below")),
        (NotADirectoryError, errno.ENOTDIR, lambda: striped.rmdir(f"{folder}/sub/file")),
        (OSError, errno.ENOTEMPTY, lambda: striped.rmdir(f"{folder}/sub")),
        (OSError, errno.ENAMETOOLONG, lambda: striped.pipe_file(f"{folder}/{'x' * 300}", b"")),
    ]
    for kind, number, call in cases:
        with pytest.raises(kind) as caught:
            call()
        assert caught.value.errno == number
        assert caught.value.filename, caught.value
    assert not striped.exists(f"{folder}/sub/file/below")
    assert striped.ls(f"{folder}/sub", detail=False) == [f"{folder}/sub/file"], "no hidden file is left"


def test_a_new_set_is_an_empty_directory(own_agent: tuple[subprocess.Popen[str], str], program: str) -> None:
    _, address = own_agent
    new = StarfishFileSystem(address)
    assert new.ls("/") == []
    assert not new.exists("/put")
    subprocess.run([program, "put", "--agents", address, "-", "put"], input=b"put", check=True)
    assert new.cat_file("/put") == b"put"
    new.pipe_file("/piped", b"piped")
    cat = [program, "cat", "--agents", address, "piped"]
    assert subprocess.run(cat, capture_output=True, check=True).stdout == b"piped"


def test_unknown_options_are_rejected(agents: str) -> None:
    with pytest.raises(TypeError, match="'agnts': expected one of agents"):
        fsspec.filesystem("starfish", agnts=agents)
    assert fsspec.filesystem("starfish", agents=agents, skip_instance_cache=True, batch_size=4).exists("/")


def test_errors_name_unreachable_agents() -> None:
    nobody = StarfishFileSystem("127.0.0.1:1")
    with pytest.raises(ConnectionRefusedError, match="127.0.0.1:1"):
        nobody.ls("/")
    with pytest.raises(OSError, match=r"nobody.invalid.*cannot be resolved") as caught:
        StarfishFileSystem("nobody.invalid").ls("/")
    assert caught.value.errno == errno.EHOSTUNREACH
    with pytest.raises(OSError, match="three slashes: starfish:///dir/file"):
        fsspec.open("starfish://dir.invalid/file").open()


def test_a_failed_listing_fails_every_recursive_operation(
    striped: StarfishFileSystem, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    striped.pipe({f"{folder}/{path}": b"1" for path in ("a/one", "b/two", "c/d/three")})
    listed = StarfishFileSystem._list
    failure: OSError = ConnectionResetError(errno.ECONNRESET, "gone")

    def listing(self: StarfishFileSystem, path: str) -> Any:
        if path.endswith("/d"):
            raise failure
        return listed(self, path)

    monkeypatch.setattr(StarfishFileSystem, "_list", listing)
    calls: list[Callable[[], Any]] = [
        lambda: striped.find(folder),
        lambda: striped.glob(f"{folder}/**"),
        lambda: list(striped.walk(folder)),
        lambda: striped.du(folder),
        lambda: striped.get(folder, str(tmp_path / "got"), recursive=True),
        lambda: striped.cp(folder, f"{folder}-copy", recursive=True),
    ]
    for call in calls:
        with pytest.raises(ConnectionResetError):
            call()
    told: list[OSError] = []
    assert len(list(striped.walk(folder, on_error=told.append))) == 5
    assert told == [failure]
    failure = FileNotFoundError(errno.ENOENT, "removed by another process")
    assert striped.find(folder) == [f"{folder}/a/one", f"{folder}/b/two"]
    with pytest.raises(FileNotFoundError):
        list(striped.walk(folder, on_error="raise"))
    nobody = StarfishFileSystem("127.0.0.1:1")
    for unreachable in (nobody.find, nobody.du, nobody.glob, lambda path: list(nobody.walk(path))):
        with pytest.raises(ConnectionRefusedError):
            unreachable("/*" if unreachable == nobody.glob else "/")


def test_walk_agrees_with_os_walk(
    agents: str, program: str, striped: StarfishFileSystem, folder: str, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    (tree / "sub" / "deep").mkdir(parents=True)
    (tree / "file").write_bytes(b"12345")
    (tree / "sub" / "deep" / "file").write_bytes(b"1")
    links = {
        "loop": ".",
        "itself": "itself",
        "through": "file/below",
        "nowhere": "none",
        "to-file": "file",
        "to-sub": "sub",
    }
    for name, target in links.items():
        (tree / name).symlink_to(target)
    put = [program, "put", "--agents", agents, "-r", str(tree), f"{folder}/tree"]
    subprocess.run(put, capture_output=True, check=True)
    there = f"{folder}/tree"
    kinds = {facts["name"].removeprefix(f"{there}/"): facts["type"] for facts in striped.ls(there)}
    assert kinds == {
        **{name: "link" for name in ("itself", "through", "nowhere")},
        **{name: "directory" for name in ("loop", "sub", "to-sub")},
        **{name: "file" for name in ("file", "to-file")},
    }

    def walked(found: Any, root: str) -> list[Any]:
        return sorted((path.removeprefix(root), sorted(dirs), sorted(files)) for path, dirs, files in found)

    for topdown in (True, False):
        here = walked(os.walk(tree, topdown=topdown), str(tree))
        assert walked(striped.walk(there, topdown=topdown), there) == here
    assert walked(striped.walk(there, maxdepth=1), there) == here[:1]
    pruned = []
    for path, dirs, _ in striped.walk(there):
        pruned.append(path)
        dirs.remove("sub")
    assert pruned == [there]
    files = ["file", "itself", "nowhere", "sub/deep/file", "through", "to-file"]
    assert striped.find(there) == [f"{there}/{name}" for name in files]
    assert striped.find(f"{there}/to-sub") == [f"{there}/to-sub/deep/file"]
    assert striped.find(f"{there}/file") == [f"{there}/file"]
    assert striped.du(there) == 11
    striped.rm(f"{there}/**", recursive=True)
    assert striped.ls(folder) == []


def test_rm_accepts_a_directory_and_paths_below_it(striped: StarfishFileSystem, folder: str) -> None:
    for _ in range(5):
        striped.pipe({f"{folder}/d/{name}/{name}/file": b"1" for name in "abcdefgh"})
        striped.rm([f"{folder}/d", f"{folder}/d/a", f"{folder}/d/b/b"], recursive=True)
        striped.pipe({f"{folder}/d/{name}/{name}/file": b"1" for name in "abcdefgh"})
        striped.rm(f"{folder}/d/**", recursive=True)
    assert striped.ls(folder) == []


def test_an_existing_name_with_wildcards_is_no_pattern(striped: StarfishFileSystem, folder: str) -> None:
    for name in ("[x]1", "x1", "*"):
        striped.pipe_file(f"{folder}/{name}", name.encode())
    assert striped.cat(f"{folder}/[x]1") == b"[x]1"
    striped.mv(f"{folder}/[x]1", f"{folder}/[y]")
    striped.rm(f"{folder}/*")
    assert striped.ls(folder, detail=False) == [f"{folder}/[y]", f"{folder}/x1"]
    assert striped.glob(f"{folder}/[xy]1") == [f"{folder}/x1"]


def test_a_failed_get_leaves_the_old_local_file(
    striped: StarfishFileSystem, folder: str, tmp_path: Path
) -> None:
    class Full(Callback):  # type: ignore[misc]
        """Callback that fails after the first piece is copied."""

        def relative_update(self, inc: int = 1) -> None:
            raise OSError(errno.ENOSPC, f"no room for more than {inc}")

    striped.pipe_file(f"{folder}/file", b"new")
    there, link = tmp_path / "file", tmp_path / "link"
    there.write_bytes(b"old")
    there.chmod(0o640)
    link.symlink_to("file")
    with pytest.raises(OSError, match="no room"):
        striped.get_file(f"{folder}/file", str(there), callback=Full())
    assert there.read_bytes() == b"old"
    striped.get_file(f"{folder}/file", str(link))
    assert there.read_bytes() == b"new"
    assert there.stat().st_mode & 0o777 == 0o640
    with pytest.raises(FileNotFoundError) as caught:
        striped.get_file(f"{folder}/file", str(tmp_path / "none" / "file"))
    assert caught.value.filename == str(tmp_path / "none" / "file")
    striped.get_file(f"{folder}/file", os.devnull)
    striped.get_file(f"{folder}/file", str(tmp_path / "fresh"))
    (tmp_path / "usual").touch()
    assert (tmp_path / "fresh").stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "fresh", "link", "usual"]


def test_cat_ranges_has_the_semantics_of_slices(striped: StarfishFileSystem, folder: str) -> None:
    data = bytes(range(256)) * 5000
    striped.pipe({f"{folder}/a": data, f"{folder}/b": data[::-1]})
    ranges = [(0, 10), (None, 5), (-7, None), (-10, -3), (1_000_000, 1_300_000), (5, 5), (9, 3), (None, None)]
    paths = [f"{folder}/a", f"{folder}/b"] * len(ranges)
    asked = [one for one in ranges for _ in range(2)]
    found = striped.cat_ranges(paths, [start for start, _ in asked], [end for _, end in asked])
    assert found[::2] == [data[start:end] for start, end in ranges]
    assert found[1::2] == [data[::-1][start:end] for start, end in ranges]
    assert striped.cat_file(f"{folder}/a", -4, -1) == data[-4:-1]
    found = striped.cat_ranges([f"{folder}/a", f"{folder}/none"], 0, 3)
    assert found[0] == data[:3]
    assert isinstance(found[1], FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        striped.cat_ranges([f"{folder}/a", f"{folder}/none"], 0, 3, on_error="raise")


def test_coroutines_run_at_the_same_time(agents: str, striped: StarfishFileSystem, folder: str) -> None:
    async def both() -> list[bytes]:
        mine = StarfishFileSystem(agents, asynchronous=True, skip_instance_cache=True)
        paths = [f"{folder}/{number}" for number in range(50)]
        await asyncio.gather(*(mine._pipe_file(path, path.encode()) for path in paths))
        return await asyncio.gather(*(mine._cat_file(path) for path in paths))

    assert asyncio.run(both()) == [f"{folder}/{number}".encode() for number in range(50)]


def test_times_keys_and_blocks_of_a_file_are_reported(striped: StarfishFileSystem, folder: str) -> None:
    path = f"{folder}/file"
    striped.pipe_file(path, bytes(2_000_000))
    made, key, sum_ = striped.created(path), striped.ukey(path), striped.checksum(path)
    assert made <= striped.modified(path)
    with striped.open(path, "r+b") as file:
        file.write(b"x")
    assert striped.created(path) == made
    assert striped.modified(path) > made
    assert striped.ukey(path) != key
    assert striped.checksum(path) != sum_
    facts = striped.info(path)
    assert (facts["size"], facts["stripes"], facts["type"]) == (2_000_000, 3, "file")
    before = facts["mtime"]
    striped.touch(path, truncate=False)
    assert striped.info(path)["mtime"] > before
    assert striped.size(path) == 2_000_000
    blocks = striped.blocks(path)
    assert {block.agent for block in blocks} == set(striped._options.agents)
    assert [block.offset for block in blocks] == list(range(0, 2_000_000, 256 << 10))
    assert sum(block.length for block in blocks) == 2_000_000
    assert striped.blocks(path, 300_000, 10) == [(300_000, 10, blocks[1].agent)]


class Progress(Callback):  # type: ignore[misc]
    """Records the progress that is reported to it."""

    def call(self, *_: Any, **__: Any) -> None:
        """Remember the greatest."""


def test_copies_report_their_progress(striped: StarfishFileSystem, folder: str, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(bytes(10_000_000))
    put, got = Progress(), Progress()
    striped.put_file(str(tmp_path / "here"), f"{folder}/there", callback=put)
    striped.get_file(f"{folder}/there", str(tmp_path / "back"), callback=got)
    assert (tmp_path / "back").read_bytes() == bytes(10_000_000)
    assert (put.size, put.value, got.size, got.value) == (10_000_000,) * 4


def test_transactions_publish_all_files_or_none(striped: StarfishFileSystem, folder: str) -> None:
    striped.pipe_file(f"{folder}/one", b"old")
    with striped.transaction:
        for name in ("one", "two"):
            with striped.open(f"{folder}/{name}", "wb") as file:
                file.write(b"new")
        assert striped.cat_file(f"{folder}/one") == b"old"
        assert striped.find(folder) == [f"{folder}/one"]
    assert striped.cat(striped.find(folder)) == {f"{folder}/one": b"new", f"{folder}/two": b"new"}
    with pytest.raises(ZeroDivisionError), striped.transaction, striped.open(f"{folder}/one", "wb") as file:
        file.write(b"newer")
        _ = 1 / 0
    assert striped.cat_file(f"{folder}/one") == b"new"
    assert len(striped._session.entries(folder)) == 2, "no hidden file is left"


def test_only_files_being_written_are_not_listed(striped: StarfishFileSystem, folder: str) -> None:
    own = f"{folder}/.starfish-0123456789abcdef"
    striped.pipe_file(own, b"mine")
    striped.mkdir(f"{folder}/.starfish-fedcba9876543210")
    listed = [own, f"{folder}/.starfish-fedcba9876543210"]
    with striped.open(f"{folder}/new", "wb") as file:
        file.write(b"new")
        assert len(striped._session.entries(folder)) == 3, "the unfinished file has a hidden name"
        assert striped.ls(folder, detail=False) == listed
        assert striped.find(folder) == [own]
    assert striped.ls(folder, detail=False) == [*listed, f"{folder}/new"]


def test_all_operations_of_a_transaction_take_effect_at_its_end(
    striped: StarfishFileSystem, folder: str, tmp_path: Path
) -> None:
    striped.pipe_file(f"{folder}/old", b"old")
    (tmp_path / "local").write_bytes(b"put")
    names = {
        "old": b"piped",
        "some": b"piped",
        "put": b"put",
        "more/put": b"put",
        "copy": b"old",
        "touched": b"",
    }

    def write() -> None:
        striped.pipe_file(f"{folder}/old", b"piped")
        striped.pipe({f"{folder}/some": b"piped"})
        striped.put_file(str(tmp_path / "local"), f"{folder}/put")
        striped.put(str(tmp_path / "local"), f"{folder}/more/put")
        striped.cp_file(f"{folder}/old", f"{folder}/copy")
        striped.touch(f"{folder}/touched")
        assert striped.cat(striped.find(folder)) == {f"{folder}/old": b"old"}

    with pytest.raises(ZeroDivisionError), striped.transaction:
        write()
        _ = 1 / 0
    assert striped.cat(striped.find(folder)) == {f"{folder}/old": b"old"}
    hidden = [name for at in (folder, f"{folder}/more") for name, _ in striped._session.entries(at)]
    assert sorted(hidden) == ["more", "old"], "no hidden file is left"
    with striped.transaction:
        write()
    expected = {f"{folder}/{name}": value for name, value in names.items()}
    assert striped.cat(striped.find(folder)) == expected
    striped.pipe_file(f"{folder}/after", b"at once")
    assert striped.cat_file(f"{folder}/after") == b"at once"


def test_a_failed_call_in_a_transaction_does_not_affect_the_others(
    striped: StarfishFileSystem, folder: str
) -> None:
    striped.pipe_file(f"{folder}/there", b"old")
    with striped.transaction:
        striped.pipe_file(f"{folder}/new", b"new")
        with pytest.raises(FileExistsError):
            striped.pipe_file(f"{folder}/there", b"new", mode="create")
    assert striped.cat(striped.find(folder)) == {f"{folder}/there": b"old", f"{folder}/new": b"new"}


def test_names_that_are_not_utf8_work_in_all_operations(
    striped: StarfishFileSystem, folder: str, tmp_path: Path
) -> None:
    name = os.fsdecode(b"not\xfftext")
    path = f"{folder}/{name}"
    striped.pipe_file(path, b"odd")
    assert striped.ls(folder, detail=False) == [path]
    assert striped.cat_file(path, 1) == b"dd"
    with striped.open(path, "ab") as file:
        file.write(b"er")
    striped.get(folder, str(tmp_path / "got"), recursive=True)
    assert (tmp_path / "got" / name).read_bytes() == b"odder"
    striped.put(str(tmp_path / "got"), f"{folder}/put", recursive=True)
    assert striped.cat(f"{folder}/put/{name}") == b"odder"
    striped.mv(path, f"{folder}/text")
    striped.rm(f"{folder}/put", recursive=True)
    assert striped.ls(folder, detail=False) == [f"{folder}/text"]
