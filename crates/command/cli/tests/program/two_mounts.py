"""Programs that use the same files on two mounts at the same time: two_mounts.py PROGRAM STEP MOUNT.

The current directory is a mount. Each program works in a directory in it that has the program's name. Its steps are
`prepare`, on the first mount; `work`, on both mounts at the same time; and `check`, on one mount after the other.
"""

import array
import fcntl
import itertools
import mmap
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

MOUNTS = ("first", "second")

# Seconds that a program waits for another one: enough on a busy computer.
PATIENCE = 40


def wait(what: str, condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"not in {PATIENCE} s: {what}"
        time.sleep(0.05)


def wait_for(name: str) -> None:
    """Wait until the program on the other mount has created a file."""
    wait(f"the file {name}", Path(name).exists)


def equal(found: object, expected: object) -> None:
    """Check that a result is as expected."""
    assert found == expected, f"{found!r} instead of {expected!r}"


def run(*command: str) -> str:
    """Run a command that must succeed, and return its output."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{command}: {done.returncode}: {done.stdout}"
    return done.stdout


class Log:
    """On both mounts, append lines to the same log and follow it with `tail -f`."""

    LINES = 60

    def prepare(self) -> None:
        """Create the log."""
        Path("log").touch()

    def lines(self, mount: str) -> list[str]:
        """Return the lines of the program on one mount, of various lengths."""
        return [f"{mount} {number} {'x' * (number * 97 % 900)}\n" for number in range(self.LINES)]

    def work(self, mount: str) -> None:
        """Append lines without a flush, while `tail` follows the log."""
        # Start `tail` before opening the log: a process that starts another one flushes its open files.
        tail = subprocess.Popen(["tail", "-c", "+1", "-f", "-s", "0.1", "log"], stdout=subprocess.PIPE, text=True)
        log = os.open("log", os.O_WRONLY | os.O_APPEND)
        for line in self.lines(mount):
            os.write(log, line.encode())
            time.sleep(0.05)
        followed = "".join(itertools.islice(tail.stdout, len(MOUNTS) * self.LINES))
        equal(followed, Path("log").read_text())
        os.close(log)
        tail.kill()
        equal(tail.communicate(), ("", None))

    def check(self, mount: str) -> None:
        """Check that each line is complete, occurs once, and is in the order of its writer."""
        found = Path("log").read_text().splitlines(keepends=True)
        for writer in MOUNTS:
            equal([line for line in found if line.startswith(writer)], self.lines(writer))
        equal(len(found), len(MOUNTS) * self.LINES)


class Versions:
    """A file of several blocks. A program overwrites the whole file with one version after another.

    The upper bits of a word are its version, the lower bits its place in the file. A version is not written all at
    once, so a reader may find words of several versions.
    """

    WORDS = 75_000
    LAST = 15
    PLACE_BITS = 20

    def prepare(self) -> None:
        """Write version 1."""
        Path("file").write_bytes(self.version(1))

    def version(self, number: int) -> bytes:
        """Return all bytes of a version."""
        return array.array("I", (number << self.PLACE_BITS | place for place in range(self.WORDS))).tobytes()

    def overwrite(self) -> None:
        """Write all versions, some without a flush. Keep the file open until the last one has been read."""
        file = os.open("file", os.O_WRONLY)
        for number in range(2, self.LAST + 1):
            os.pwrite(file, self.version(number), 0)
            if number % 2 == 0:
                os.fsync(file)
            time.sleep(0.1)
        wait_for("seen")
        os.close(file)

    def follow(self, read: Callable[[], bytes]) -> None:
        """Read until the last version appears. Every word read must belong to a version."""
        last = self.version(self.LAST)

        def is_last() -> bool:
            found = read()
            equal(len(found), len(last))
            for place, word in enumerate(array.array("I", found)):
                version, found_place = word >> self.PLACE_BITS, word & ((1 << self.PLACE_BITS) - 1)
                assert found_place == place and 1 <= version <= self.LAST, f"word {place} is {word:#x}"
            return found == last

        wait("the last version", is_last)
        Path("seen").touch()

    def check(self, mount: str) -> None:
        """Check that the file has the last version."""
        assert Path("file").read_bytes() == self.version(self.LAST)


class Overwritten(Versions):
    """On the first mount, overwrite a file that a program on the second mount has open."""

    def work(self, mount: str) -> None:
        """Write, or read after requesting the attributes."""
        if mount == "first":
            return self.overwrite()
        file = os.open("file", os.O_RDONLY)

        def read() -> bytes:
            return os.pread(file, os.fstat(file).st_size, 0)

        return self.follow(read)


class Mapped(Versions):
    """On the second mount, overwrite a file that a program on the first mount has mapped for reading."""

    def work(self, mount: str) -> None:
        """Write, or read mapped pages after requesting the attributes."""
        if mount == "second":
            return self.overwrite()
        file = os.open("file", os.O_RDONLY)
        mapped = mmap.mmap(file, 0, access=mmap.ACCESS_READ)

        def read() -> bytes:
            os.fstat(file)
            return mapped[:]

        return self.follow(read)


class Database:
    """Insert rows into an SQLite database that is shared by both mounts."""

    INSERTS = 15
    INSERT = "INSERT INTO numbers SELECT count(*), ? FROM numbers"

    def prepare(self, mode: str = "delete") -> None:
        """Create a table in a database with this journal mode."""
        database = self.open()
        equal(database.execute(f"PRAGMA journal_mode={mode}").fetchone(), (mode,))
        database.execute("CREATE TABLE numbers (number INTEGER, mount TEXT)")
        database.close()

    def open(self) -> sqlite3.Connection:
        """Open the database without implicit transactions."""
        return sqlite3.connect("numbers.db", timeout=PATIENCE, isolation_level=None)

    def insert(self, database: sqlite3.Connection, mount: str) -> None:
        """Insert the number of rows as the next row, in a transaction."""
        database.execute("BEGIN IMMEDIATE")
        database.execute(self.INSERT, (mount,))
        database.execute("COMMIT")

    def check_rows(self, writers: tuple[str, ...]) -> None:
        """Check that the database has the committed rows of these writers, and no others."""
        database = self.open()
        equal(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        rows = database.execute("SELECT number, mount FROM numbers ORDER BY number").fetchall()
        equal([number for number, _ in rows], list(range(len(writers) * self.INSERTS)))
        equal(sorted(mount for _, mount in rows), sorted(writers * self.INSERTS))
        database.close()


class Journal(Database):
    """On both mounts, insert rows into a database with a rollback journal."""

    def work(self, mount: str) -> None:
        """Insert rows while the program on the other mount also inserts rows."""
        database = self.open()
        for _ in range(self.INSERTS):
            self.insert(database, mount)
            time.sleep(0.05)
        database.close()

    def check(self, mount: str) -> None:
        """Check that the database has the rows of both programs."""
        self.check_rows(MOUNTS)


class WriteAheadLog(Database):
    """On the first mount, insert rows into a database in WAL mode; on the second mount, try to."""

    def prepare(self) -> None:
        """Create a table in a database with a write-ahead log."""
        super().prepare("wal")

    def work(self, mount: str) -> None:
        """Insert rows, or check that SQLite rejects the database."""
        if mount == "first":
            return self.hold()
        wait_for("held")
        for _ in range(self.INSERTS):
            self.rejected(self.INSERT.replace("?", "'second'"))
            self.rejected("SELECT count(*) FROM numbers")
        return Path("rejected").touch()

    def hold(self) -> None:
        """Insert rows, and keep the database open until the program on the second mount has tried to use it."""
        database = self.open()
        for _ in range(self.INSERTS):
            self.insert(database, "first")
            Path("held").touch()
            time.sleep(0.05)
        wait_for("rejected")
        equal(database.execute("SELECT count(*) FROM numbers").fetchone(), (self.INSERTS,))
        database.close()

    def rejected(self, statement: str) -> None:
        """Check that a statement fails."""
        database = self.open()
        try:
            found = database.execute(statement).fetchall()
        except sqlite3.OperationalError as error:
            equal(str(error), "disk I/O error")
        else:
            raise AssertionError(f"{statement} returns {found}")
        finally:
            database.close()

    def check(self, mount: str) -> None:
        """Check the rows of the first mount. No other mount has the database open now."""
        self.check_rows(("first",))


class Repository:
    """On the first mount, commit to a git repository; on the second mount, clone it and pull from it."""

    COMMITS = 8

    def git(self, *arguments: str) -> str:
        """Run git with a user name and address."""
        return run("git", "-c", "user.name=name", "-c", "user.email=name@example.org", *arguments)

    def commit(self, number: int) -> None:
        """Commit a new file and a change of an existing file."""
        Path("repository/changed").write_text(f"{number}\n")
        Path(f"repository/file {number}").write_text("text\n" * number)
        self.git("-C", "repository", "add", ".")
        self.git("-C", "repository", "commit", "-q", "-m", f"commit {number}")

    def subjects(self, repository: str) -> list[str]:
        """Return the subjects of all commits, from the first to the last."""
        return self.git("-C", repository, "log", "--reverse", "--format=%s").splitlines()

    def prepare(self) -> None:
        """Create the repository, with a commit."""
        self.git("init", "-q", "-b", "main", "repository")
        self.commit(1)

    def work(self, mount: str) -> None:
        """Commit, or clone the repository and pull until the clone has all commits."""
        if mount == "first":
            for number in range(2, self.COMMITS + 1):
                self.commit(number)
                time.sleep(0.1)
            return
        # On any file system, copying the files of a repository is unsafe while the repository changes.
        self.git("clone", "-q", "--no-local", "repository", "clone")
        wait("all commits", self.pull)

    def pull(self) -> bool:
        """Pull, and return true if the clone has all commits."""
        self.git("-C", "clone", "pull", "-q", "--ff-only")
        return len(self.subjects("clone")) == self.COMMITS

    def check(self, mount: str) -> None:
        """Check that both repositories have all commits, undamaged and checked out."""
        for repository in ("repository", "clone"):
            equal(self.subjects(repository), [f"commit {number}" for number in range(1, self.COMMITS + 1)])
            self.git("-C", repository, "fsck", "--strict", "--full", "--no-progress")
            equal(self.git("-C", repository, "status", "--porcelain"), "")


class Build:
    """On the first mount, write source files; on the second mount, run `make` on them."""

    SOURCES = 30
    MAKEFILE = """\
results := $(patsubst %.source,%.result,$(sort $(wildcard *.source)))
total: $(results)
\tcat $^ > $@
%.result: %.source
\ttr a-z A-Z < $< > $@
"""

    def write(self, number: int) -> None:
        """Write a source file, which appears under its name when it is complete."""
        Path("part").write_text(f"source {number} {'x' * (number * 397)}\n")
        Path("part").rename(f"{number:03}.source")

    def prepare(self) -> None:
        """Write the makefile and a source file."""
        Path("Makefile").write_text(self.MAKEFILE)
        self.write(0)

    def work(self, mount: str) -> None:
        """Write source files, or run `make` until the result has a line of each source file."""
        if mount == "second":
            return wait("all sources", self.make)
        for number in range(1, self.SOURCES):
            self.write(number)
            time.sleep(0.1)
        return None

    def make(self) -> bool:
        """Run `make`, and return true if it found all source files."""
        run("make", "-s", "-j2")
        return len(Path("total").read_text().splitlines()) == self.SOURCES

    def expected(self) -> Iterator[str]:
        """Return the lines that `make` must produce."""
        return (f"SOURCE {number} {'X' * (number * 397)}\n" for number in range(self.SOURCES))

    def check(self, mount: str) -> None:
        """Check the lines, and that `make` has nothing left to do."""
        equal(Path("total").read_text(), "".join(self.expected()))
        equal([Path(f"{number:03}.result").read_text() for number in range(self.SOURCES)], list(self.expected()))
        run("make", "-q")


class Counter:
    """On both mounts, add to a number in a file under a lock."""

    ROUNDS = 25

    def prepare(self) -> None:
        """Write zero as the first number."""
        Path("number").write_text("0\n")
        Path("lock").touch()

    def check(self, mount: str) -> None:
        """Check that no addition is missing."""
        equal(int(Path("number").read_text()), len(MOUNTS) * self.ROUNDS)


class Flock(Counter):
    """Add with commands that `flock` runs under the lock of another file."""

    def work(self, mount: str) -> None:
        """Add while the program on the other mount also adds."""
        for _ in range(self.ROUNDS):
            run("flock", "lock", "sh", "-c", "read number < number && echo $((number + 1)) > number")


class Fcntl(Counter):
    """Add under a lock of `fcntl` on the bytes that contain the number."""

    BYTES = 4

    def prepare(self) -> None:
        """Write zero as the first number, with all its digits."""
        Path("number").write_text("0" * self.BYTES)

    def work(self, mount: str) -> None:
        """Add through one open file while the program on the other mount also adds."""
        file = os.open("number", os.O_RDWR)
        for _ in range(self.ROUNDS):
            fcntl.lockf(file, fcntl.LOCK_EX, self.BYTES)
            number = int(os.pread(file, self.BYTES, 0)) + 1
            os.pwrite(file, f"{number:0{self.BYTES}}".encode(), 0)
            fcntl.lockf(file, fcntl.LOCK_UN, self.BYTES)
        os.close(file)


PROGRAMS = {
    "log": Log,
    "overwritten": Overwritten,
    "mapped": Mapped,
    "journal": Journal,
    "wal": WriteAheadLog,
    "git": Repository,
    "make": Build,
    "flock": Flock,
    "fcntl": Fcntl,
}


def main() -> None:
    """Run one step of a program."""
    name, step, mount = sys.argv[1:]
    program = PROGRAMS[name]()
    if step == "prepare":
        Path(name).mkdir()
    os.chdir(name)
    if step == "prepare":
        program.prepare()
    else:
        getattr(program, step)(mount)


if __name__ == "__main__":
    main()
