//! Entries that a transaction reads and changes: rows of a table. Each row has a checksum, since SQLite detects a
//! changed byte only if it damages SQLite's own structures.

use std::path::Path;

use machine::{Error, MetadataEntry, Result, Transaction, check_metadata_bytes};
use rusqlite::{Connection, OptionalExtension, Row, params};
use twox_hash::XxHash3_64;

use super::failures::{describe, failure};

/// Definition of the table of entries.
pub(super) const TABLE: &str = "CREATE TABLE entries (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL, \
                                sum INTEGER NOT NULL) STRICT, WITHOUT ROWID";

const GET: &str = "SELECT value, sum FROM entries WHERE key = ?1";
const PUT: &str = "INSERT OR REPLACE INTO entries (key, value, sum) VALUES (?1, ?2, ?3)";
const REMOVE: &str = "DELETE FROM entries WHERE key = ?1";
const RANGE: &str = "SELECT value, sum, key FROM entries WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT ?3";

/// Entries of a store, as seen in a SQLite transaction.
pub(super) struct Entries<'a> {
    connection: &'a Connection,
    path: &'a Path,
    run: u64,
    /// First failure of the store. After this failure every operation fails, since SQLite may have ended the
    /// transaction.
    failed: Option<Box<Error>>,
    has_changed: bool,
    has_removed: bool,
}

impl<'a> Entries<'a> {
    pub(super) fn new(connection: &'a Connection, path: &'a Path, run: u64) -> Self {
        Entries { connection, path, run, failed: None, has_changed: false, has_removed: false }
    }

    /// Returns true if an entry was put or removed. Fails with the first failure of the store.
    pub(super) fn has_changed(self) -> Result<bool> {
        self.failed.map_or(Ok(self.has_changed), Err)
    }

    /// Returns true if the transaction changed something and removed nothing, so that the store may have become larger.
    pub(super) fn adds(&self) -> bool {
        self.has_changed && !self.has_removed
    }

    fn perform<T>(&mut self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let done = work(self.connection).map_err(|error| failure(self.path, &error));
        done.inspect_err(|error| self.failed = Some(error.clone()))
    }

    fn check(&mut self, key: &[u8], value: &[u8], sum: i64) -> Result<()> {
        if sum == sum_of(key, value) {
            return Ok(());
        }
        let why = format!("the entry of the key {} does not match its checksum", key.escape_ascii());
        let error: Box<Error> = Error::Damaged { what: describe(self.path), why }.into();
        self.failed = Some(error.clone());
        Err(error)
    }
}

impl Transaction for Entries<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let found = self.perform(|connection| {
            connection.prepare_cached(GET)?.query_row([key], value_and_sum).optional()
        })?;
        let Some((value, sum)) = found else { return Ok(None) };
        self.check(key, &value, sum)?;
        Ok(Some(value))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_metadata_bytes(key, value)?;
        self.has_changed = true;
        self.perform(|connection| {
            connection.prepare_cached(PUT)?.execute(params![key, value, sum_of(key, value)])
        })?;
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        self.has_changed = true;
        let removed = self.perform(|connection| connection.prepare_cached(REMOVE)?.execute([key]))?;
        self.has_removed |= removed > 0;
        Ok(())
    }

    fn range(&mut self, from: &[u8], to: &[u8], most: usize) -> Result<Vec<MetadataEntry>> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let found = self.perform(|connection| {
            let mut select = connection.prepare_cached(RANGE)?;
            let rows =
                select.query_map(params![from, to, most], |row| Ok((row.get(2)?, value_and_sum(row)?)))?;
            rows.collect::<rusqlite::Result<Vec<(Vec<u8>, _)>>>()
        })?;
        let checked = found.into_iter().map(|(key, (value, sum))| {
            self.check(&key, &value, sum)?;
            Ok((key, value))
        });
        checked.collect()
    }

    fn run(&self) -> u64 {
        self.run
    }
}

fn value_and_sum(row: &Row<'_>) -> rusqlite::Result<(Vec<u8>, i64)> {
    Ok((row.get(0)?, row.get(1)?))
}

/// Returns the checksum of an entry, as a signed integer as SQLite stores it.
fn sum_of(key: &[u8], value: &[u8]) -> i64 {
    XxHash3_64::oneshot_with_seed(XxHash3_64::oneshot(key), value).cast_signed()
}
