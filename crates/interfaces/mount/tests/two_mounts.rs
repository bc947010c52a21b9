//! Programs on two mounts of the same files: locks hold between the mounts, and names remain a tree.

mod common;

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use common::Mount;
use mount::MountSettings;
use prerequisites::has;

/// Two mounts of the same two agents.
struct Mounts {
    one: Mount,
    other: Mount,
}

impl Mounts {
    fn new() -> Option<Mounts> {
        let one = Mount::of_new_agents()?;
        let other = Mount::of(one.agents(), "other", MountSettings::default())?;
        Some(Mounts { one, other })
    }

    fn end(self) {
        self.other.end();
        self.one.end();
    }
}

fn open(mount: &Mount, name: &str) -> File {
    File::options().read(true).write(true).create(true).truncate(false).open(mount.at(name)).expect("a file")
}

fn is_held(tried: Result<(), TryLockError>) -> bool {
    match tried {
        Ok(()) => false,
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(error)) => panic!("{error}"),
    }
}

#[test]
fn flock_holds_between_mounts() {
    let Some(mounts) = Mounts::new() else { return };
    let (here, there) = (open(&mounts.one, "file"), open(&mounts.other, "file"));
    here.lock().expect("the file is unlocked");
    assert!(is_held(there.try_lock()) && is_held(there.try_lock_shared()));
    here.lock_shared().expect("it has more");
    assert!(is_held(there.try_lock()));
    assert!(!is_held(there.try_lock_shared()));
    assert!(is_held(here.try_lock()), "there are two");
    there.unlock().expect("it has one");
    here.unlock().expect("it has one");
    assert!(!is_held(there.try_lock()));
    // Locks also hold between handles of one mount, and closing a handle releases its locks.
    let again = open(&mounts.other, "file");
    assert!(is_held(again.try_lock()));
    drop(there);
    again.lock().expect("it is free when the other is closed");
    drop((again, here));
    mounts.end();
}

#[test]
fn a_lock_holder_sees_earlier_writes_under_the_lock() {
    let Some(mounts) = Mounts::new() else { return };
    const TIMES: u32 = 50;
    fs::write(mounts.one.at("number"), 0_u32.to_be_bytes()).expect("a file");
    let adders = [&mounts.one, &mounts.other, &mounts.one].map(|mount| {
        let file = open(mount, "number");
        thread::spawn(move || {
            for _ in 0..TIMES {
                file.lock().expect("it comes");
                let mut number = [0; 4];
                file.read_exact_at(&mut number, 0).expect("a number");
                file.write_all_at(&(u32::from_be_bytes(number) + 1).to_be_bytes(), 0).expect("room");
                file.unlock().expect("it has it");
            }
        })
    });
    adders.into_iter().for_each(|adder| adder.join().expect("no error"));
    assert_eq!(fs::read(mounts.other.at("number")).expect("a number"), (3 * TIMES).to_be_bytes());
    mounts.end();
}

/// The length of an open file may be known only from other clients.
#[test]
fn allocation_keeps_data_of_another_mount() {
    use nix::fcntl::{FallocateFlags, fallocate};
    const PART: usize = 4096;
    let Some(mounts) = Mounts::new() else { return };
    let (zero, punch, keep) = (
        FallocateFlags::FALLOC_FL_ZERO_RANGE,
        FallocateFlags::FALLOC_FL_PUNCH_HOLE,
        FallocateFlags::FALLOC_FL_KEEP_SIZE,
    );
    for (number, flags) in [FallocateFlags::empty(), zero, punch | keep].into_iter().enumerate() {
        let name = format!("file {number}");
        let here = open(&mounts.one, &name);
        let mut expected = vec![7; 100_000];
        fs::write(mounts.other.at(&name), &expected).expect("room");
        fallocate(&here, flags, 0, PART as i64).expect("allocated");
        if !flags.is_empty() {
            expected[..PART].fill(0);
        }
        here.sync_all().expect("flushed");
        assert!(fs::read(mounts.other.at(&name)).expect("a file") == expected, "{flags:?}");
        fallocate(&here, FallocateFlags::empty(), 100_000, PART as i64).expect("allocated");
        expected.resize(100_000 + PART, 0);
        assert!(fs::read(mounts.other.at(&name)).expect("a file") == expected, "{flags:?} and longer");
    }
    mounts.end();
}

#[test]
fn fcntl_locks_of_ranges_hold_between_mounts() {
    let Some(mounts) = Mounts::new().filter(|_| has("python3")) else { return };
    let program = "
import errno, fcntl, os, struct, subprocess, sys, time
LAYOUT = 'hhqqi4x'
def lock(file, kind, first, count, command=fcntl.F_SETLK):
    fcntl.fcntl(file, command, struct.pack(LAYOUT, kind, os.SEEK_SET, first, count, 0))
def refused(*arguments):
    try:
        lock(*arguments)
    except OSError as error:
        assert error.errno in (errno.EAGAIN, errno.EACCES), error
        return True
    return False
def who(file, first, count):
    asked = struct.pack(LAYOUT, fcntl.F_WRLCK, os.SEEK_SET, first, count, 0)
    kind, _, first, count, process = struct.unpack(LAYOUT, fcntl.fcntl(file, fcntl.F_GETLK, asked))
    return None if kind == fcntl.F_UNLCK else (kind, first, count, process)
here = open('file', 'w+b')
there = open('../other/file', 'r+b')
lock(here, fcntl.F_WRLCK, 0, 10)
lock(here, fcntl.F_RDLCK, 10, 0)
assert refused(there, fcntl.F_RDLCK, 9, 5)
assert refused(there, fcntl.F_WRLCK, 1000, 1)
lock(there, fcntl.F_RDLCK, 10, 0)
assert refused(here, fcntl.F_WRLCK, 1 << 40, 1)
assert who(there, 3, 1) == (fcntl.F_WRLCK, 0, 10, 0), who(there, 3, 1)
assert who(here, 10, 1) == (fcntl.F_RDLCK, 10, 0, 0), who(here, 10, 1)
# Closing another file releases no lock and keeps the owners.
open('another', 'w').close()
child = 'import fcntl, struct, os; f = open(\"file\", \"r+b\"); a = struct.pack(\"hhqqi4x\", 1, 0, 0, 1, 0); \
print(struct.unpack(\"hhqqi4x\", fcntl.fcntl(f, fcntl.F_GETLK, a))[4])'
process = int(subprocess.run([sys.executable, '-c', child], stdout=subprocess.PIPE, check=True).stdout)
assert process == os.getpid(), process
lock(there, fcntl.F_UNLCK, 0, 0)
lock(here, fcntl.F_UNLCK, 0, 5)
lock(there, fcntl.F_WRLCK, 0, 5)
assert refused(there, fcntl.F_WRLCK, 0, 6)
# POSIX: closing any of its files releases all locks of the process.
open('file', 'rb').close()
lock(there, fcntl.F_WRLCK, 0, 0)
# A child waits until its parent releases the lock.
waiter = 'import fcntl; f = open(\"file\", \"r+b\"); fcntl.lockf(f, fcntl.LOCK_EX); print(f.read())'
waiting = subprocess.Popen([sys.executable, '-c', waiter], stdout=subprocess.PIPE)
time.sleep(0.5)
assert waiting.poll() is None
there.write(b'written under the lock')
there.flush()
there.close()
out, _ = waiting.communicate(timeout=20)
assert out == b\"b'written under the lock'\\n\", out
";
    mounts.one.run("python3", &["-c", program]);
    mounts.end();
}

/// Open file description locks belong to no process: they end with the last descriptor.
#[test]
fn open_file_locks_end_with_close_or_kill() {
    let Some(mounts) = Mounts::new().filter(|_| has("python3")) else { return };
    let program = "
import errno, fcntl, os, struct, subprocess, sys, time
def lock(file):
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack('hhqqi4x', fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
def is_held():
    try:
        lock(there)
    except OSError as error:
        assert error.errno == errno.EAGAIN, error
        return True
    return False
def lock_when_free():
    end = time.monotonic() + 10
    while is_held():
        assert time.monotonic() < end, 'it is held for ever'
        time.sleep(0.01)
    fcntl.fcntl(there, fcntl.F_OFD_SETLK, struct.pack('hhqqi4x', fcntl.F_UNLCK, os.SEEK_SET, 0, 0, 0))
here = open('file', 'w+b')
there = open('../other/file', 'r+b')
lock(here)
os.close(os.dup(here.fileno()))
assert is_held()
here.close()
lock_when_free()
here = open('file', 'r+b')
program = 'import fcntl, os, struct, sys; \
fcntl.fcntl(int(sys.argv[1]), fcntl.F_OFD_SETLK, struct.pack(\"hhqqi4x\", 1, 0, 0, 0, 0)); os.kill(os.getpid(), 9)'
subprocess.run([sys.executable, '-c', program, str(here.fileno())], pass_fds=[here.fileno()])
assert is_held(), 'this process has the file open, too'
here.close()
lock_when_free()
program = 'import fcntl, os, struct, sys; file = open(\"file\", \"r+b\"); \
fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack(\"hhqqi4x\", 1, 0, 0, 0, 0)); os.kill(os.getpid(), 9)'
subprocess.run([sys.executable, '-c', program])
lock_when_free()
";
    mounts.one.run("python3", &["-c", program]);
    mounts.end();
}

/// The kernel checks permissions and follows links only when it finds an existing file, not when it has one created.
#[test]
fn a_concurrently_created_name_is_opened_like_an_existing_one() {
    let Some(mounts) = Mounts::new() else { return };
    const ROUNDS: usize = 100;
    fs::write(mounts.one.at("victim"), b"text").expect("a file");
    let victim = fs::metadata(mounts.one.at("victim")).expect("there").ino();
    let together = Arc::new(Barrier::new(2));
    let maker = {
        let (together, directory) = (together.clone(), mounts.other.path.clone());
        thread::spawn(move || {
            for round in 0..ROUNDS {
                together.wait();
                // Either of the two mounts may come first.
                let _ = symlink("victim", directory.join(format!("link {round}")));
                let file = directory.join(format!("file {round}"));
                let _ = File::options().write(true).create_new(true).mode(0o600).open(file);
            }
        })
    };
    for round in 0..ROUNDS {
        let open = |name: &str, flags| {
            let path = mounts.one.at(format!("{name} {round}"));
            File::options().read(true).write(true).create(true).truncate(true).custom_flags(flags).open(path)
        };
        together.wait();
        match open("link", nix::libc::O_NOFOLLOW) {
            Ok(file) => assert_ne!(file.metadata().expect("open").ino(), victim, "a link was followed"),
            Err(error) => assert_eq!(error.raw_os_error(), Some(nix::libc::ELOOP), "{error}"),
        }
        open("file", 0).expect("opened or created");
    }
    maker.join().expect("no surprise");
    assert_eq!(fs::read(mounts.one.at("victim")).expect("a file"), b"text");
    mounts.end();
}

#[test]
fn two_mounts_write_one_database() {
    let Some(mounts) = Mounts::new() else { return };
    const ROWS: i64 = 15;
    let paths = [&mounts.one, &mounts.other].map(|mount| mount.at("numbers.db"));
    let open = |path: &Path| {
        let database = rusqlite::Connection::open(path).expect("a database");
        database.busy_timeout(Duration::from_secs(50)).expect("patience");
        database
    };
    open(&paths[0]).execute_batch("CREATE TABLE numbers (number INTEGER)").expect("a table");
    let writers = paths.clone().map(|path| {
        thread::spawn(move || {
            let database = open(&path);
            for _ in 0..ROWS {
                // The transaction keeps the read value valid until the write.
                let next = "BEGIN IMMEDIATE; INSERT INTO numbers SELECT count(*) FROM numbers; COMMIT";
                database.execute_batch(next).expect("it waits for the other");
            }
        })
    });
    writers.into_iter().for_each(|writer| writer.join().expect("no error"));
    for path in &paths {
        let database = open(path);
        let distinct = "SELECT count(DISTINCT number), max(number) FROM numbers";
        let found = database.query_row(distinct, [], |row| Ok((row.get(0)?, row.get(1)?)));
        assert_eq!(found.expect("rows"), (2 * ROWS, 2 * ROWS - 1));
        let check: String =
            database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("an answer");
        assert_eq!(check, "ok");
    }
    mounts.end();
}

#[test]
fn a_shared_mapping_is_refused_while_another_mount_has_one() {
    let Some(mounts) = Mounts::new().filter(|_| has("python3")) else { return };
    let program = "
import errno, mmap, os, time
SIZE = 8 << 20
with open('file', 'wb') as file:
    file.write(bytes(SIZE))
def mapped(path, flags=os.O_RDWR):
    access = mmap.ACCESS_READ if flags == os.O_RDONLY else mmap.ACCESS_WRITE
    file = os.open(path, flags)
    try:
        return mmap.mmap(file, SIZE, access=access)
    finally:
        os.close(file)
here = mapped('file')
here[100:104] = b'here'
try:
    mapped('../other/file')
    assert False, 'it is mapped twice'
except OSError as error:
    assert error.errno == errno.ENODEV, error
# Other accesses stay: reading, also by a mapping, and writing.
assert mapped('../other/file', os.O_RDONLY)[:4] == bytes(4)
there = os.open('../other/file', os.O_RDWR)
os.pwrite(there, b'there', SIZE - 5)
os.fsync(there)
here.flush()
here.close()
os.close(there)
# The kernel reports the end of a mapping to the mount after the call has returned.
for _ in range(1000):
    try:
        there = mapped('../other/file')
        break
    except OSError as error:
        assert error.errno == errno.ENODEV, error
        time.sleep(0.01)
assert there[100:104] == b'here' and there[-5:] == b'there'
there[200:205] = b'again'
there.close()
assert open('file', 'rb').read(205)[200:] == b'again'
";
    mounts.one.run("python3", &["-c", program]);
    mounts.end();
}

#[test]
fn a_process_that_waits_for_a_lock_can_be_interrupted_and_killed() {
    let Some(mounts) = Mounts::new().filter(|_| has("flock")) else { return };
    let held = open(&mounts.one, "file");
    held.lock().expect("the file is unlocked");
    for signal in ["INT", "KILL"] {
        let start = Instant::now();
        let (is_well, text) = mounts.other.try_run("timeout", &["-s", signal, "1", "flock", "file", "true"]);
        assert!(!is_well, "{signal}: {text}");
        assert!(start.elapsed() < Duration::from_secs(10), "{signal}: {:?}", start.elapsed());
    }
    drop(held);
    mounts.other.run("flock", &["file", "true"]);
    mounts.end();
}

#[test]
fn all_of_many_waiting_threads_get_the_lock() {
    let Some(mounts) = Mounts::new().filter(|_| has("flock")) else { return };
    let waiting = (0..12).map(|number| {
        let mount = if number % 2 == 0 { &mounts.one } else { &mounts.other };
        let (file, log) = (open(mount, "lock"), mount.at("log"));
        thread::spawn(move || {
            file.lock().expect("it comes");
            let mut text = String::new();
            if let Ok(mut log) = File::open(&log) {
                log.read_to_string(&mut text).expect("text");
            }
            text.push('x');
            File::create(&log).and_then(|mut log| log.write_all(text.as_bytes())).expect("room");
            drop(file);
        })
    });
    waiting.collect::<Vec<_>>().into_iter().for_each(|one| one.join().expect("no error"));
    assert_eq!(fs::read_to_string(mounts.one.at("log")).expect("a log").len(), 12);
    mounts.end();
}

/// Counts the directories in a tree, including its root.
fn count_directories(path: &Path, depth: usize) -> usize {
    assert!(depth < 100, "{} is within itself", path.display());
    let entries = fs::read_dir(path).expect("a directory").map(|entry| entry.expect("one"));
    let directories = entries.filter(|entry| entry.file_type().expect("a kind").is_dir());
    1 + directories.map(|entry| count_directories(&entry.path(), depth + 1)).sum::<usize>()
}

#[test]
fn directories_moved_into_each_other_by_two_mounts_stay_a_tree() {
    let Some(mounts) = Mounts::new() else { return };
    const ROUNDS: usize = 40;
    for name in ["a", "b", "c"] {
        fs::create_dir(mounts.one.at(name)).expect("a directory");
        fs::write(mounts.one.at(name).join("file"), name).expect("a file");
    }
    let movers = [(&mounts.one, "a", "b"), (&mounts.other, "b", "a"), (&mounts.other, "c", "a")];
    let movers = movers.map(|(mount, from, into)| {
        let (from, into) = (mount.at(from), mount.at(into).join(from));
        thread::spawn(move || {
            let moved = |from: &Path, to: &Path| {
                fs::rename(from, to).map_or_else(|error| error.raw_os_error(), |()| None)
            };
            for _ in 0..ROUNDS {
                for outcome in [moved(&from, &into), moved(&into, &from)].into_iter().flatten() {
                    let expected =
                        [nix::libc::ENOENT, nix::libc::EINVAL, nix::libc::ENOTEMPTY, nix::libc::ESTALE];
                    assert!(expected.contains(&outcome), "errno {outcome}");
                }
            }
        })
    });
    movers.into_iter().for_each(|mover| mover.join().expect("no surprise"));
    // The kernel caches names for a second.
    thread::sleep(Duration::from_millis(1100));
    for mount in [&mounts.one, &mounts.other] {
        assert_eq!(count_directories(&mount.path, 0), 4, "no directory is lost, and none appears twice");
    }
    mounts.end();
}

/// Waits for a condition; panics after ten seconds.
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A program that follows a file, until it is dropped.
struct Follower(Child);

impl Follower {
    /// Starts `tail -f` on a file of a mount. Its output goes to a file in the directory of the test.
    fn start(mount: &Mount, name: &str, output: &Path) -> Follower {
        let output = File::create(output).expect("a file");
        let mut tail = Command::new("tail");
        tail.args(["-c", "+1", "-f", "-s", "0.1"]).arg(mount.at(name)).stdout(output);
        Follower(tail.spawn().expect("there is tail"))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// No program starts while the log is open: starting one would flush the log.
#[test]
fn followers_on_both_mounts_read_exactly_the_appended_lines() {
    let Some(mounts) = Mounts::new() else { return };
    File::create(mounts.one.at("log")).expect("a file");
    let followed = [mounts.one.home.join("followed here"), mounts.one.home.join("followed there")];
    let followers = [(&mounts.one, &followed[0]), (&mounts.other, &followed[1])]
        .map(|(m, to)| Follower::start(m, "log", to));
    let log = |mount: &Mount| File::options().append(true).open(mount.at("log")).expect("there");
    let (mut here, mut there) = (log(&mounts.one), log(&mounts.other));
    let mut expected = String::new();
    let whole = |mount: &Mount| fs::read_to_string(mount.at("log")).expect("text");
    for step in 0..20 {
        let line = format!("step {step}\n");
        let appender = if step < 8 || step % 3 == 0 { &mut here } else { &mut there };
        appender.write_all(line.as_bytes()).expect("room");
        expected.push_str(&line);
        for mount in [&mounts.one, &mounts.other] {
            let seen = whole(mount);
            assert!(expected.starts_with(&seen), "{seen:?} of {expected:?}");
        }
        thread::sleep(Duration::from_millis(100));
    }
    wait_until("all of it is read", || whole(&mounts.other) == expected && whole(&mounts.one) == expected);
    let has_all = |path: &PathBuf| fs::read_to_string(path).expect("text") == expected;
    wait_until("all of it is followed", || followed.iter().all(has_all));
    drop((followers, here, there));
    mounts.end();
}

#[test]
fn unflushed_writes_become_visible_on_another_mount() {
    let Some(mounts) = Mounts::new() else { return };
    let mut writer = File::create(mounts.one.at("output")).expect("a file");
    let mut expected = Vec::new();
    for bytes in [10, 300_000, 20] {
        let piece = vec![b'a' + expected.len() as u8 % 7; bytes];
        writer.write_all(&piece).expect("room");
        expected.extend(piece);
        wait_until("it is seen", || {
            let seen = fs::read(mounts.other.at("output")).expect("there");
            assert!(
                expected.starts_with(&seen),
                "the first {} bytes differ from the written ones",
                seen.len()
            );
            seen.len() == expected.len()
        });
    }
    drop(writer);
    mounts.end();
}

/// A program that has a file open or mapped reads others' overwrites after it has fetched the attributes, even if the
/// length did not change.
#[test]
fn an_open_reader_sees_an_overwrite_of_equal_length() {
    let Some(mounts) = Mounts::new().filter(|_| has("python3")) else { return };
    fs::write(mounts.one.at("file"), [0; 10_000]).expect("room");
    let reader = File::open(mounts.other.at("file")).expect("there");
    let writer = File::options().write(true).open(mounts.one.at("file")).expect("there");
    let byte_read = || {
        let mut byte = [0];
        reader.metadata().expect("open");
        reader.read_exact_at(&mut byte, 5000).expect("a byte");
        byte[0]
    };
    for (value, syncs) in [(1, true), (2, true), (3, false)] {
        writer.write_all_at(&[value; 10], 5000).expect("room");
        if syncs {
            writer.sync_all().expect("flushed");
        }
        wait_until("the new byte is read", || byte_read() == value);
    }
    let program = "
import mmap, os, time
reader = open('../other/file', 'rb')
mapped = mmap.mmap(reader.fileno(), 0, access=mmap.ACCESS_READ)
writer = os.open('file', os.O_WRONLY)
for value in b'xyz':
    old = mapped[9000]
    os.pwrite(writer, bytes([value]) * 3, 9000)
    os.fsync(writer)
    end = time.monotonic() + 10
    while mapped[9000] == old:
        assert time.monotonic() < end, 'the old page stays'
        time.sleep(0.1)
        os.fstat(reader.fileno())
    assert mapped[9000] == value
";
    drop((reader, writer));
    mounts.one.run("python3", &["-c", program]);
    mounts.end();
}
