//! The file of a store, and transactions on it.
//!
//! SQLite appends what a commit changes to a journal beside the file (`namespace.db-wal`), and moves it into the file
//! some thousand pages later. A commit that does not wait for the medium is in the system's memory, which a killed
//! process leaves behind; one that does has everything there before it, since the journal is one file. The file is
//! locked for this process as long as it is open.

use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use machine::{Error, METADATA_VALUE_BYTES_MAX, MetadataTable, Result};
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use super::asked::Asked;
use super::entries::{Entries, TABLE};
use super::failures::{describe, failure};
use crate::disk::{Identity, io_error};

/// The file within the directory.
const FILE: &str = "namespace.db";

/// What says of a database that it is ours: "Star" as bytes.
const APPLICATION: i64 = 0x5374_6172;

/// The version of what is in it.
const VERSION: i64 = 1;

/// Pages of the journal, of 4 KiB, after which they are moved into the file.
const JOURNAL_PAGES: i64 = 4000;

/// Memory for pages of the file.
const CACHE_KIB: i64 = 32 << 10;

/// A directory that the node makes is for its user to write to.
const MODE: u32 = 0o755;

/// The database in a directory, which need not be there before anything is in it.
pub(super) struct Database {
    path: PathBuf,
    /// The directory that its directory is in, and what tells it from another one that takes its place.
    place: (PathBuf, Identity),
    open: Option<Connection>,
    /// Whether all that was committed is known to be on the medium.
    is_flushed: bool,
}

impl Database {
    /// The database in `directory`, which is opened when it is needed.
    pub(super) fn at(directory: &Path) -> Result<Self> {
        let place = directory.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
        let identity = identity(place)?;
        let (path, place) = (directory.join(FILE), (place.to_owned(), identity));
        Ok(Database { path, place, open: None, is_flushed: true })
    }

    /// Carries out transactions as one commit of SQLite; if it is to be a flush, one that waits until they are on the
    /// medium, with all before them. If it fails, none of them has changed anything.
    pub(super) fn commit(&mut self, all: &mut [Box<dyn Asked>], is_flush: bool) -> Result<()> {
        if self.open.is_none() {
            if !self.exists()? {
                if changes_nothing(all) {
                    return Ok(());
                }
                self.make_directory()?;
            }
            self.open = Some(open(&self.path)?);
            // What a killed process has committed may still be in the system's memory.
            self.is_flushed = false;
        }
        let connection = self.open.as_ref().expect("just opened");
        let committed = commit(connection, &self.path, all, is_flush, self.is_flushed);
        if committed.is_err() && !connection.is_autocommit() {
            // If that fails, too, so will the next transaction.
            let _ = connection.execute_batch("ROLLBACK");
        }
        let has_changed = committed?;
        self.is_flushed = is_flush || (self.is_flushed && !has_changed);
        Ok(())
    }

    /// Closes the file, which moves the journal into it.
    pub(super) fn close(&mut self) {
        self.open = None;
    }

    fn exists(&self) -> Result<bool> {
        let (place, known) = &self.place;
        if identity(place)? != *known {
            let why = "another directory has taken its place since the agent was started".to_owned();
            return Err(Error::Io { what: describe(place), why }.into());
        }
        self.path.try_exists().map_err(|error| io_error(&describe(&self.path), error))
    }

    /// Makes the directory, so that it is there after a power cut, too.
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

fn identity(place: &Path) -> Result<Identity> {
    let metadata = fs::metadata(place).map_err(|error| io_error(&describe(place), error))?;
    Ok(Identity::of(&metadata))
}

/// Whether none of the transactions changes a store without entries; then all of them have been carried out.
fn changes_nothing(all: &mut [Box<dyn Asked>]) -> bool {
    let none = MetadataTable::default();
    all.iter_mut().all(|asked| {
        let attempt = none.attempt(|entries| Ok(asked.carry_out(entries)));
        attempt.is_ok_and(|(is_to_be_kept, changes)| !is_to_be_kept || changes.is_empty())
    })
}

/// Commits; says whether anything has changed.
fn commit(
    connection: &Connection,
    path: &Path,
    all: &mut [Box<dyn Asked>],
    is_flush: bool,
    is_flushed: bool,
) -> Result<bool> {
    let failed = |error| failure(path, &error);
    let perform =
        |sql: &str| connection.prepare_cached(sql).and_then(|mut sql| sql.execute([])).map_err(failed);
    connection
        .pragma_update(None, "synchronous", if is_flush { "FULL" } else { "NORMAL" })
        .map_err(failed)?;
    perform("BEGIN")?;
    let mut has_changed = false;
    for asked in all {
        perform("SAVEPOINT one")?;
        let mut entries = Entries::new(connection, path);
        let is_to_be_kept = asked.carry_out(&mut entries);
        let changes = entries.has_changed()?;
        if is_to_be_kept {
            has_changed |= changes;
        } else {
            perform("ROLLBACK TO one")?;
        }
        perform("RELEASE one")?;
    }
    if is_flush && !has_changed && !is_flushed {
        // Only a commit that changes something waits for the medium: this does, though it puts what was there.
        connection.pragma_update(None, "user_version", VERSION).map_err(failed)?;
    }
    perform("COMMIT")?;
    Ok(has_changed)
}

/// Opens the database, makes it if it is not there, and locks it. Where nothing may be written it is opened to be read.
fn open(path: &Path) -> Result<Connection> {
    let failed = |error| failure(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let for_writing = flags | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut connection = Connection::open_with_flags(path, for_writing).map_err(failed)?;
    let is_read_only = connection.is_readonly("main").map_err(failed)?;
    if is_read_only {
        // A file that cannot be written to cannot be locked either; its disk is locked.
        let for_reading = flags | OpenFlags::SQLITE_OPEN_READ_ONLY;
        connection = Connection::open_with_flags_and_vfs(path, for_reading, "unix-none").map_err(failed)?;
    }
    set_up(&connection, is_read_only).map_err(failed)?;
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(failed);
    let refused = |why: String| Err(Error::Damaged { what: describe(path), why }.into());
    match (number("application_id")?, number("user_version")?) {
        (0, 0) if number("schema_version")? == 0 && !is_read_only => begin(&connection).map_err(failed)?,
        (APPLICATION, VERSION) => {}
        (APPLICATION, newer) if newer > VERSION => {
            let why = format!("it has version {newer}, and this program knows {VERSION}: update Starfish");
            return Err(Error::Io { what: describe(path), why }.into());
        }
        (APPLICATION, other) => return refused(format!("it has version {other}, which there never was")),
        _ => return refused("it is a database of another program".to_owned()),
    }
    Ok(connection)
}

fn set_up(connection: &Connection, is_read_only: bool) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::ZERO)?;
    // A length in a damaged page is not to be believed.
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, 8 * METADATA_VALUE_BYTES_MAX as i32)?;
    // Before the journal is looked at: so its index is in this process's memory.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    if !is_read_only {
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "wal_autocheckpoint", JOURNAL_PAGES)?;
    }
    Ok(())
}

/// Makes the table of a new database.
fn begin(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE; {TABLE}; PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT"
    ))
}
