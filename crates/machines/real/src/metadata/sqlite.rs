//! Store in a SQLite database: its file, and transactions on it.
//!
//! SQLite appends the changes of a commit to a journal next to the file (`namespace.db-wal`). A checkpoint moves the
//! journal into the file once it has some thousand pages. A hook of ours runs the checkpoints, since SQLite's automatic
//! ones drop their errors. A commit that does not wait for the medium is in the system's memory, and survives if the
//! process is killed. A commit that does wait also persists all commits before it, since the journal is one file. This
//! process locks the file while it is open.

use std::cell::{Cell, OnceCell};
use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use machine::{Error, METADATA_VALUE_BYTES_MAX, MetadataTable, Result};
use nix::sys::statvfs::statvfs;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::hooks::Wal;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use super::database::Database;
use super::entries::{Entries, TABLE};
use super::erased_transaction::ErasedTransaction;
use super::failures::{describe, failure, is_of_a_sync};
use super::reserve::Reserve;
use crate::disk::{Identity, SyncFailure, io_error};

/// Name of the file within the directory.
pub(super) const FILE: &str = "namespace.db";

/// Mark of our databases: "Star" as bytes.
const APPLICATION: i64 = 0x5374_6172;

/// Version of the contents.
const VERSION: i64 = 1;

/// Length of the journal in pages of 4 KiB after which it is moved into the file.
const JOURNAL_PAGES: u32 = 4000;

/// Divisor of the file system's size: limit of the journal.
const JOURNAL_PARTS: u64 = 16;

/// Bytes of a page; below, bytes of the journal's header before each page, and at its start.
const PAGE_BYTES: u64 = 4096;
const PAGE_HEADER: u64 = 24;
const JOURNAL_HEADER: u64 = 32;

/// Memory in KiB for pages of the file.
const CACHE_KIB: i64 = 32 << 10;

/// Number of commits between checks that the file fits into that memory. These commits usually add at most some hundred
/// pages.
const LOOK_AGAIN_AFTER: u64 = 256;

/// Number of pages copied before transactions run.
const PAGES_AT_ONCE: i32 = 256;

/// Mode of a directory that the node creates: writable only by its user.
const MODE: u32 = 0o755;

/// Database in a directory, which may be missing until the first entry is stored.
pub(super) struct Sqlite {
    path: PathBuf,
    /// Parent of the database's directory, and the identity that distinguishes it from another directory at the same
    /// path.
    place: (PathBuf, Identity),
    run: u64,
    open: OnceCell<Connection>,
    reserve: Reserve,
    /// True if all commits are known to be in stable storage.
    is_flushed: Cell<bool>,
    sync_failure: SyncFailure,
    /// Number of commits that have changed anything.
    changes: Cell<u64>,
    /// True if the whole file fits into the memory for pages: then each page is read from the medium at most once.
    fits_memory: Cell<bool>,
    /// Last setting of SQLite: true if each commit waits for the medium.
    waits: Cell<Option<bool>>,
    /// True if one of the last attempted transactions changed something and removed nothing.
    adds: Cell<bool>,
}

impl Sqlite {
    /// Creates the database in `directory`, for this incarnation of the store. Opens it on first use.
    pub(super) fn at(directory: &Path, run: u64) -> Result<Self> {
        let place = directory.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
        let identity = identity(place)?;
        let (path, place) = (directory.join(FILE), (place.to_owned(), identity));
        let (open, reserve) = (OnceCell::new(), Reserve::of(&path));
        let (is_flushed, changes) = (true.into(), 0.into());
        let (fits_memory, waits, adds) = (false.into(), Cell::default(), Cell::default());
        let sync_failure = SyncFailure::default();
        Ok(Sqlite {
            path,
            place,
            run,
            open,
            reserve,
            is_flushed,
            sync_failure,
            changes,
            fits_memory,
            waits,
            adds,
        })
    }

    fn note_size(&self, connection: &Connection) {
        let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        // Free pages are never read.
        let used = number("page_count").and_then(|pages| Ok(pages - number("freelist_count")?));
        let bytes = used.and_then(|pages| Ok(pages * number("page_size")?));
        // A quarter is for SQLite's administration of the pages. On an error here, later operations fail and are
        // reported.
        self.fits_memory.set(bytes.is_ok_and(|bytes| bytes <= (CACHE_KIB << 10) / 4 * 3));
    }

    /// Like [`attempt`](Self::attempt). If the disk is full, moves the journal into the file, to reuse its space. For
    /// transactions that add nothing, also releases the reserve, part by part.
    fn attempt_making_room(
        &self,
        connection: &Connection,
        all: &mut [Box<dyn ErasedTransaction>],
        is_flush: bool,
    ) -> Result<bool> {
        let mut committed = self.attempt(connection, all, is_flush);
        let mut is_moved = lacks_room(&committed) && self.move_journal(connection);
        loop {
            // If the file cannot grow even by the whole reserve, the journal can.
            if is_moved || (lacks_room(&committed) && self.reserve.is_empty()) {
                committed = self.attempt(connection, all, is_flush);
            }
            if !lacks_room(&committed) || self.adds.get() || !self.reserve.give() {
                return committed;
            }
            is_moved = self.move_journal(connection);
        }
    }

    /// Commits, or rolls back all changes. Returns true if anything has changed.
    fn attempt(
        &self,
        connection: &Connection,
        all: &mut [Box<dyn ErasedTransaction>],
        is_flush: bool,
    ) -> Result<bool> {
        if self.waits.get() != Some(is_flush) {
            let mode = if is_flush { "FULL" } else { "NORMAL" };
            let set = connection.pragma_update(None, "synchronous", mode);
            set.map_err(|error| self.failed(&error))?;
            self.waits.set(Some(is_flush));
        }
        let committed = self.commit_on(connection, all, is_flush);
        if committed.is_err() && !connection.is_autocommit() {
            // If the rollback fails, so will the next transaction.
            let _ = connection.execute_batch("ROLLBACK");
        }
        committed
    }

    /// Returns true if none of the transactions changes an empty store; all of them have then run.
    fn changes_nothing(&self, all: &mut [Box<dyn ErasedTransaction>]) -> bool {
        let none = MetadataTable::in_run(self.run);
        all.iter_mut().all(|asked| {
            let attempt = none.attempt(|entries| Ok(asked.carry_out(entries)));
            attempt.is_ok_and(|(is_to_be_kept, changes)| !is_to_be_kept || changes.is_empty())
        })
    }

    /// Commits. Returns true if anything has changed.
    fn commit_on(
        &self,
        connection: &Connection,
        all: &mut [Box<dyn ErasedTransaction>],
        is_flush: bool,
    ) -> Result<bool> {
        let failed = |error| self.failed(&error);
        let perform =
            |sql: &str| connection.prepare_cached(sql).and_then(|mut sql| sql.execute([])).map_err(failed);
        perform("BEGIN")?;
        let mut has_changed = false;
        self.adds.set(false);
        for asked in all {
            perform("SAVEPOINT one")?;
            let mut entries = Entries::new(connection, &self.path, self.run);
            let is_to_be_kept = asked.carry_out(&mut entries);
            self.adds.set(self.adds.get() || (is_to_be_kept && entries.adds()));
            let changes = entries.has_changed()?;
            if is_to_be_kept {
                has_changed |= changes;
            } else {
                perform("ROLLBACK TO one")?;
            }
            perform("RELEASE one")?;
        }
        if is_flush && !has_changed && !self.is_flushed.get() {
            // Only a commit that changes something waits for the medium. Writing the same value counts as a change.
            connection.pragma_update(None, "user_version", VERSION).map_err(failed)?;
        }
        if self.adds.get() {
            self.reserve.fill();
            if self.reserve.is_broken() {
                return Err(Error::NoSpace { what: describe(&self.path) }.into());
            }
        }
        perform("COMMIT")?;
        Ok(has_changed)
    }

    /// Moves the journal into the file and restarts it from its beginning. Returns true on success.
    fn move_journal(&self, connection: &Connection) -> bool {
        let moved = connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()));
        moved.map_err(|error| self.failed(&error)).is_ok()
    }

    /// Converts a failure of the database, and records it if a sync failed.
    fn failed(&self, error: &rusqlite::Error) -> Box<Error> {
        note_failed_sync(&self.sync_failure, error);
        failure(&self.path, error)
    }

    /// Fails if a sync has failed.
    fn check_syncs(&self) -> Result<()> {
        let checked = self.sync_failure.check("earlier changes may be lost: restart the agent");
        checked.map_err(|error| io_error(&describe(&self.path), error))
    }

    /// Returns the opened database, if it exists.
    fn connection(&self) -> Result<Option<&Connection>> {
        match self.open.get() {
            None if self.exists()? => self.open().map(Some),
            open => Ok(open),
        }
    }

    fn open(&self) -> Result<&Connection> {
        let mut connection = open(&self.path)?;
        if !connection.is_readonly("main").unwrap_or(true) {
            let pages = self.journal_pages();
            let moved = move_long_journals(&mut connection, pages, self.sync_failure.clone());
            moved.map_err(|error| self.failed(&error))?;
            self.reserve.fill();
            self.reserve.take_for_journal(JOURNAL_HEADER + u64::from(pages) * (PAGE_HEADER + PAGE_BYTES));
        }
        // Commits of a killed process may still be only in the system's memory.
        self.is_flushed.set(false);
        self.waits.set(None);
        self.note_size(&connection);
        Ok(self.open.get_or_init(|| connection))
    }

    /// Returns the limit of the journal in pages, so that it takes only a small part of a small file system.
    fn journal_pages(&self) -> u32 {
        let parts = u64::from(JOURNAL_PAGES) * JOURNAL_PARTS;
        let pages = statvfs(self.path.parent().expect("a file in a directory"))
            .map_or(parts, |space| space.blocks() * space.fragment_size() / PAGE_BYTES);
        (pages.min(parts) / JOURNAL_PARTS) as u32
    }

    fn exists(&self) -> Result<bool> {
        let (place, known) = &self.place;
        if identity(place)? != *known {
            let why = "it was replaced by another directory after the agent started".to_owned();
            return Err(Error::Io { what: describe(place), why }.into());
        }
        self.path.try_exists().map_err(|error| io_error(&describe(&self.path), error))
    }

    /// Creates the directory, so that it survives a power cut.
    fn make_directory(&self) -> Result<()> {
        let failed = |error| io_error(&describe(&self.path), error);
        let directory = self.path.parent().expect("a file in a directory");
        match DirBuilder::new().mode(MODE).create(directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        File::open(&self.place.0).and_then(|place| place.sync_all()).map_err(failed)
    }
}

impl Database for Sqlite {
    fn described(&self) -> String {
        describe(&self.path)
    }

    /// On a full disk uses the reserve, if each transaction removes something. After a failed sync every flush fails.
    fn commit(&self, all: &mut [Box<dyn ErasedTransaction>], is_flush: bool) -> Result<()> {
        if is_flush {
            self.check_syncs()?;
        }
        let connection = match self.connection()? {
            Some(connection) => connection,
            None if self.changes_nothing(all) => return Ok(()),
            None => {
                self.make_directory()?;
                self.open()?
            }
        };
        let has_changed = self.attempt_making_room(connection, all, is_flush)?;
        if is_flush {
            self.reserve.fill();
        }
        self.is_flushed.set(is_flush || (self.is_flushed.get() && !has_changed));
        self.changes.set(self.changes.get() + u64::from(has_changed));
        if has_changed && self.changes.get().is_multiple_of(LOOK_AGAIN_AFTER) {
            self.note_size(connection);
        }
        Ok(())
    }

    /// Runs only if the file is open and fits completely into memory. Returns false after a failure.
    fn look(&self, asked: &mut dyn ErasedTransaction) -> bool {
        let Some(connection) = self.open.get().filter(|_| self.fits_memory.get()) else { return false };
        // Only this connection uses the file, and only this call uses the connection, so no change can intervene.
        let mut entries = Entries::new(connection, &self.path, self.run);
        asked.carry_out(&mut entries);
        match entries.has_changed() {
            Ok(has_changed) => {
                assert!(!has_changed, "who only looks changes nothing");
                true
            }
            Err(_) => false,
        }
    }

    fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// The copy, of an existing database, includes all commits until its last step. Because the file is unlinked, its
    /// space is freed when it is closed.
    fn copy(&self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<File>> {
        let Some(connection) = self.connection()? else { return Ok(None) };
        let beside = self.path.with_extension("copy");
        let copied = copy(connection, &beside, go_on).and_then(|is_whole| {
            let opened = is_whole.then(|| File::open(&beside)).transpose();
            opened.map_err(|error| io_error(&describe(&beside), error))
        });
        let _ = fs::remove_file(&beside);
        copied
    }

    /// Closes the file, which moves the journal into it.
    fn close(&mut self) {
        self.open = OnceCell::new();
    }
}

fn lacks_room<T>(outcome: &Result<T>) -> bool {
    matches!(outcome, Err(error) if matches!(**error, Error::NoSpace { .. }))
}

fn identity(place: &Path) -> Result<Identity> {
    let metadata = fs::metadata(place).map_err(|error| io_error(&describe(place), error))?;
    Ok(Identity::of(&metadata))
}

/// Copies all pages to a new file. Returns true if the copy is complete.
fn copy(connection: &Connection, to: &Path, go_on: &mut dyn FnMut() -> bool) -> Result<bool> {
    let failed = |error| failure(to, &error);
    match fs::remove_file(to) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(io_error(&describe(to), error)),
        _ => {}
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    // Without locks and syncs: no other process knows the file, and it does not outlive this process.
    let mut target = Connection::open_with_flags_and_vfs(to, flags, "unix-none").map_err(failed)?;
    target.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF").map_err(failed)?;
    let backup = Backup::new(connection, &mut target).map_err(failed)?;
    while backup.step(PAGES_AT_ONCE).map_err(failed)? != StepResult::Done {
        if !go_on() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Opens the database, creates it if missing, and locks it. Opens it read-only if it is not writable.
fn open(path: &Path) -> Result<Connection> {
    let failed = |error| failure(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let for_writing = flags | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut connection = Connection::open_with_flags(path, for_writing).map_err(failed)?;
    let is_read_only = connection.is_readonly("main").map_err(failed)?;
    if is_read_only {
        // A file that is not writable cannot be locked; the lock of its disk protects it.
        let for_reading = flags | OpenFlags::SQLITE_OPEN_READ_ONLY;
        connection = Connection::open_with_flags_and_vfs(path, for_reading, "unix-none").map_err(failed)?;
    }
    set_up(&connection).map_err(failed)?;
    let is_new = check(&connection, path)?;
    if !is_read_only {
        connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    }
    if is_new {
        begin(&connection).map_err(failed)?;
    }
    Ok(connection)
}

/// Moves the journal into the file after each commit that makes the journal long. If this fails, the next commit tries
/// again, except after a failed sync.
fn move_long_journals(
    connection: &mut Connection,
    pages_max: u32,
    sync_failure: SyncFailure,
) -> rusqlite::Result<()> {
    connection.wal_hook(Some(move |journal: &mut Wal, pages| {
        if pages >= pages_max as i32
            && let Err(error) = journal.checkpoint()
        {
            note_failed_sync(&sync_failure, &error);
        }
        // The commit has succeeded even if the checkpoint failed.
        Ok(())
    }))
}

fn note_failed_sync(sync_failure: &SyncFailure, error: &rusqlite::Error) {
    if is_of_a_sync(error) {
        sync_failure.note(error);
    }
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::ZERO)?;
    // A length in a damaged page must not cause a huge allocation.
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, 8 * METADATA_VALUE_BYTES_MAX as i32)?;
    // Before the journal is opened, so that its index is in this process's memory.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)
}

/// Rejects a foreign database before changing anything in it. Returns true for a new database.
fn check(connection: &Connection, path: &Path) -> Result<bool> {
    let number = |name| {
        let number = connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        number.map_err(|error| failure(path, &error))
    };
    let refused = |why: &str| Err(Error::Damaged { what: describe(path), why: why.to_owned() }.into());
    match (number("application_id")?, number("user_version")?) {
        (0, 0) if number("schema_version")? == 0 => Ok(true),
        (APPLICATION, VERSION) => Ok(false),
        (APPLICATION, newer) if newer > VERSION => {
            let why = format!("it has version {newer}, and this program supports {VERSION}: update Starfish");
            Err(Error::Io { what: describe(path), why }.into())
        }
        (APPLICATION, _) => refused("it has an invalid version"),
        _ => refused("it is a database of another program"),
    }
}

/// Creates the table of a new database.
fn begin(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE; {TABLE}; PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT"
    ))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::io::{self, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use machine::{METADATA_KEY_BYTES_MAX, Transaction};
    use nix::unistd::{Uid, geteuid, setfsuid};
    use rusqlite::ffi;

    use super::super::erased_transaction::Body;
    use super::*;

    type Answer = flume::Receiver<Result<std::result::Result<usize, ()>>>;

    /// Creates a transaction that puts values of this size under these keys, and returns the resulting number of
    /// entries.
    fn puts(keys: std::ops::Range<u64>, bytes: usize) -> (Box<dyn ErasedTransaction>, Answer) {
        let (sender, answer) = flume::bounded(1);
        let body = move |entries: &mut dyn Transaction| {
            keys.clone().try_for_each(|key| entries.put(&key.to_be_bytes(), &vec![1; bytes]))?;
            Ok(Ok(entries.range(b"", &[0xff; METADATA_KEY_BYTES_MAX], usize::MAX)?.len()))
        };
        (Box::new(Body::new(body, sender)), answer)
    }

    fn carry_out(database: &Sqlite, keys: std::ops::Range<u64>, bytes: usize) -> Result<usize> {
        let (asked, answer) = puts(keys, bytes);
        commit(database, asked);
        answer.recv().expect("it is answered").map(|entries| entries.expect("kept"))
    }

    /// Commits a transaction, and sends its outcome.
    fn commit(database: &Sqlite, asked: Box<dyn ErasedTransaction>) {
        let mut all = [asked];
        let committed = database.commit(&mut all, false);
        let [asked] = all;
        asked.answer(committed);
    }

    #[test]
    fn a_full_disk_is_reported_and_entries_can_still_be_replaced() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let database = Sqlite::at(&place.path().join("store"), 7).expect("a place");
        assert_eq!(carry_out(&database, 0..10, 1000), Ok(10));
        let connection = database.open.get().expect("it is open");
        connection.pragma_update(None, "max_page_count", 20).expect("a limit");
        let full = *carry_out(&database, 100..200, 1000).expect_err("there is no room");
        assert!(matches!(full, Error::NoSpace { .. }), "{full:?}");
        assert_eq!(carry_out(&database, 0..10, 10), Ok(10));
        assert_eq!(carry_out(&database, 10..20, 100), Ok(20));
    }

    /// File system in memory; mounting it requires root.
    struct SmallDisk(tempfile::TempDir);

    impl SmallDisk {
        fn of(size: &str) -> Option<SmallDisk> {
            let place = tempfile::tempdir().expect("a temporary directory");
            let size = format!("size={size}");
            let mut mount = Command::new("mount");
            let made = mount.args(["-t", "tmpfs", "-o", &size, "none"]).arg(place.path()).output();
            if !made.expect("a mount command").status.success() {
                prerequisites::skip("this user cannot mount a file system in memory");
                return None;
            }
            Some(SmallDisk(place))
        }

        /// Fills the file system.
        fn fill(&self) {
            let mut file =
                File::options().create(true).append(true).open(self.0.path().join("data")).expect("room");
            while file.write(&[1; 4096]).is_ok() {}
        }
    }

    impl Drop for SmallDisk {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
        }
    }

    fn remove(database: &Sqlite, key: u64) -> Result<()> {
        let (sender, answer) = flume::bounded(1);
        let body = move |entries: &mut dyn Transaction| Ok(Ok::<(), ()>(entries.remove(&key.to_be_bytes())?));
        commit(database, Box::new(Body::new(body, sender)));
        answer.recv().expect("it is answered").map(|kept| kept.expect("kept"))
    }

    /// Programs that continue to create files do not use up the space for removing some, not even after a restart.
    #[test]
    fn on_a_full_disk_entries_can_be_removed_after_failed_writes() {
        let Some(disk) = SmallDisk::of("8m") else { return };
        let directory = disk.0.path().join("store");
        let mut database = Sqlite::at(&directory, 7).expect("a place");
        for key in 0..200 {
            carry_out(&database, key..key + 1, 200).expect("room");
        }
        disk.fill();
        let put_until_full = |database: &Sqlite| {
            let full = (1000..9000).find_map(|key| carry_out(database, key..key + 1, 200).err());
            assert!(matches!(*full.expect("there is no room"), Error::NoSpace { .. }));
        };
        for key in 0..100 {
            put_until_full(&database);
            disk.fill();
            assert_eq!(remove(&database, key), Ok(()), "{key}");
            assert_eq!(database.commit(&mut [], true), Ok(()));
            if key == 50 {
                database.close();
                database = Sqlite::at(&directory, 7).expect("a place");
                disk.fill();
            }
        }
        fs::remove_file(disk.0.path().join("data")).expect("it exists");
        carry_out(&database, 500..600, 200).expect("there is room again");
        assert!(!database.reserve.is_broken() && !database.reserve.is_empty());
    }

    #[test]
    fn a_store_fits_into_memory_again_after_removals() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let database = Sqlite::at(&place.path().join("store"), 7).expect("a place");
        carry_out(&database, 0..9000, 3000).expect("room");
        let connection = database.open.get().expect("it is open");
        let fits = || {
            database.note_size(connection);
            database.fits_memory.get()
        };
        assert!(!fits());
        connection.execute("DELETE FROM entries", []).expect("removed");
        assert!(fits());
    }

    #[test]
    fn a_repeated_flush_without_changes_writes_nothing() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let directory = place.path().join("store");
        let database = Sqlite::at(&directory, 7).expect("a place");
        assert_eq!(database.commit(&mut [], true), Ok(()));
        assert!(!directory.exists());
        carry_out(&database, 0..1, 1).expect("room");
        let journal = || fs::metadata(directory.join("namespace.db-wal")).expect("it exists").len();
        let before = journal();
        assert_eq!(database.commit(&mut [], true), Ok(()));
        let after = journal();
        assert!(after > before, "a commit waits for the medium");
        assert_eq!(database.commit(&mut [], true), Ok(()));
        assert_eq!(journal(), after);
    }

    #[test]
    fn after_a_failed_sync_no_flush_succeeds() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let database = Sqlite::at(&place.path().join("store"), 7).expect("a place");
        assert_eq!(carry_out(&database, 0..1, 1), Ok(1));
        let failed = |code| database.failed(&rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        failed(ffi::SQLITE_IOERR_WRITE);
        assert_eq!(database.commit(&mut [], true), Ok(()), "a failed write is repeated");
        failed(ffi::SQLITE_IOERR_FSYNC);
        for _ in 0..2 {
            let refused = database.commit(&mut [], true).expect_err("something may not be there");
            assert!(refused.to_string().contains("restart the agent"), "{refused}");
            assert!(carry_out(&database, 1..2, 1).is_ok(), "names can still be changed");
        }
    }

    #[test]
    fn a_long_journal_is_checkpointed_by_the_store_itself() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let database = Sqlite::at(&place.path().join("store"), 7).expect("a place");
        let bytes = || fs::metadata(place.path().join("store").join(FILE)).expect("it exists").len();
        assert_eq!(carry_out(&database, 0..1, 1), Ok(1));
        let (before, pages) = (bytes(), u64::from(JOURNAL_PAGES));
        carry_out(&database, 1..pages / 2, 3000).expect("room");
        assert_eq!(bytes(), before);
        carry_out(&database, pages / 2..pages + 100, 3000).expect("room");
        assert!(bytes() > pages * 4096);
        let connection = database.open.get().expect("it is open");
        let by_itself = connection.pragma_query_value(None, "wal_autocheckpoint", |row| row.get::<_, i64>(0));
        assert_eq!(by_itself, Ok(0), "SQLite does not report failures of its own checkpoints");
    }

    #[test]
    fn the_journal_reserves_its_space_before_a_disk_is_full() {
        let Some(disk) = SmallDisk::of("8m") else { return };
        let database = Sqlite::at(&disk.0.path().join("store"), 7).expect("a place");
        carry_out(&database, 0..10, 100).expect("room");
        disk.fill();
        for number in 0..100 {
            assert_eq!(carry_out(&database, 0..10, number), Ok(10));
        }
        assert!(!database.reserve.is_broken() && !database.reserve.is_empty(), "nothing was given");
    }

    /// Transactions during the copy are either completely in it or not at all.
    #[test]
    fn a_copy_of_a_store_in_use_is_consistent() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let database = Sqlite::at(&place.path().join("store"), 7).expect("a place");
        carry_out(&database, 0..2000, 3000).expect("room");
        let steps = Cell::new(0);
        let mut put_more = || {
            let number = steps.replace(steps.get() + 1);
            // At the beginning of the copied part, and at its end.
            carry_out(&database, 0..1, number as usize).expect("room");
            carry_out(&database, 3000 + 10 * number..3010 + 10 * number, 3000).expect("room");
            number < 100
        };
        let mut copy = database.copy(&mut put_more).expect("room").expect("it is whole");
        assert!((3..100).contains(&steps.get()), "{} steps", steps.get());
        let directory = place.path().join("copy");
        fs::create_dir(&directory).expect("room");
        io::copy(&mut copy, &mut File::create(directory.join(FILE)).expect("room")).expect("room");
        let copied = Sqlite::at(&directory, 7).expect("a place");
        let entries = carry_out(&copied, 0..0, 0).expect("sound") as u64;
        assert_eq!(entries, 2000 + 10 * steps.get());
        let check = copied
            .open
            .get()
            .expect("it is open")
            .query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
        assert_eq!(check.as_deref(), Ok("ok"));
        assert!(database.copy(&mut || false).expect("room").is_none(), "it was ended");
        // The database, its journal and its reserve.
        assert_eq!(fs::read_dir(place.path().join("store")).expect("ours").count(), 3);
    }

    /// Root may write everywhere, so this thread temporarily becomes an unprivileged user.
    #[test]
    fn a_read_only_store_is_readable_including_its_journal() {
        let place = tempfile::tempdir().expect("a temporary directory");
        fs::set_permissions(place.path(), Permissions::from_mode(0o755)).expect("our directory");
        let (used, copied) = (place.path().join("used"), place.path().join("copied"));
        let database = Sqlite::at(&used, 7).expect("a place");
        carry_out(&database, 0..10, 100).expect("room");
        fs::create_dir(&copied).expect("room");
        for name in [FILE, "namespace.db-wal"] {
            fs::copy(used.join(name), copied.join(name)).expect("it exists");
            fs::set_permissions(copied.join(name), Permissions::from_mode(0o444)).expect("our file");
        }
        fs::set_permissions(&copied, Permissions::from_mode(0o555)).expect("our directory");
        let user = geteuid();
        setfsuid(Uid::from_raw(if user.is_root() { 65534 } else { user.as_raw() }));
        let database = Sqlite::at(&copied, 7).expect("a place");
        let (read, write) = (carry_out(&database, 0..0, 0), carry_out(&database, 0..1, 1));
        setfsuid(user);
        assert_eq!(read, Ok(10));
        assert!(write.expect_err("nothing can be written").to_string().contains("it is read-only"));
    }
}
