//! Metadata of a file system: an ordered key-value store with transactions.
//!
//! The file system defines the keys and values. A machine stores them: in memory, in a database on the node, or in a
//! replicated database on other computers.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::Result;

/// Maximum length in bytes of a key.
pub const METADATA_KEY_BYTES_MAX: usize = 512;

/// Maximum length in bytes of a value.
pub const METADATA_VALUE_BYTES_MAX: usize = 128 * 1024;

/// Key and value.
pub type MetadataEntry = (Vec<u8>, Vec<u8>);

/// View of a transaction: all earlier commits and its own changes, but no uncommitted changes of others.
pub trait Transaction {
    /// Returns the value of a key, if it has one.
    ///
    /// # Errors
    /// If the store fails; the transaction must end with that error.
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Sets the value of a key.
    ///
    /// # Errors
    /// As [`get`](Self::get); or if key or value are longer than [`METADATA_KEY_BYTES_MAX`] or
    /// [`METADATA_VALUE_BYTES_MAX`].
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes a key, if present.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn remove(&mut self, key: &[u8]) -> Result<()>;

    /// Returns the first entries with keys from `from` to below `to`, at most `most`, in byte order of the keys.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn range(&mut self, from: &[u8], to: &[u8], most: usize) -> Result<Vec<MetadataEntry>>;

    /// Returns the [incarnation](MetadataStore::run) of the store that executes the transaction.
    fn run(&self) -> u64;
}

/// Metadata store of a node. Cloning returns another handle to the same store.
///
/// - Transactions are serializable: each sees all changes of its predecessors and no others.
/// - After a crash the store has the changes of all transactions up to some point, and no later changes. No transaction
///   committed before the last completed [`flush`](Self::flush) is lost.
pub trait MetadataStore: Clone + 'static {
    /// Executes `body` as one transaction and returns its result. Commits the changes if the result is `Ok(Ok(..))`,
    /// and discards them otherwise.
    ///
    /// `body` may be called again from the start after a conflict with other transactions. It runs on any thread, must
    /// not block, and must have no effect outside the transaction. If the future is dropped, the transaction may still
    /// be executed.
    fn transact<T: Send + 'static, E: Send + 'static>(
        &self,
        body: impl FnMut(&mut dyn Transaction) -> Result<std::result::Result<T, E>> + Send + 'static,
    ) -> impl Future<Output = Result<std::result::Result<T, E>>>;

    /// Executes a read-only `body`, as [`transact`](Self::transact) does. Some stores do this faster.
    fn look<T: Send + 'static, E: Send + 'static>(
        &self,
        body: impl FnMut(&mut dyn Transaction) -> Result<std::result::Result<T, E>> + Send + 'static,
    ) -> impl Future<Output = Result<std::result::Result<T, E>>> {
        self.transact(body)
    }

    /// Waits until all transactions committed so far are on stable storage.
    fn flush(&self) -> impl Future<Output = Result<()>>;

    /// Returns the incarnation of the store: a random number that changes after each crash that could have lost
    /// transactions. The incarnation of a store on other computers can change while the node runs.
    fn run(&self) -> u64;
}

/// Metadata store in memory, for machines and tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataTable {
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Incarnation reported to transactions.
    pub run: u64,
}

/// Changes of a transaction: each key with its new value, or `None` if removed.
pub type MetadataChanges = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

impl MetadataTable {
    /// Returns an empty table of this incarnation.
    pub fn in_run(run: u64) -> Self {
        MetadataTable { run, ..MetadataTable::default() }
    }

    /// Executes `body` as a transaction. Returns its result and its changes, without applying the changes.
    ///
    /// # Errors
    /// The errors of `body`.
    pub fn attempt<T>(
        &self,
        body: impl FnOnce(&mut dyn Transaction) -> Result<T>,
    ) -> Result<(T, MetadataChanges)> {
        let mut attempt = MetadataAttempt::over(self);
        let answer = body(&mut attempt)?;
        Ok((answer, attempt.into_changes()))
    }

    /// Applies changes and returns the changes that undo them.
    pub fn apply(&mut self, changes: MetadataChanges) -> MetadataChanges {
        let mut undo = MetadataChanges::new();
        for (key, value) in changes {
            let before = match value {
                Some(value) => self.entries.insert(key.clone(), value),
                None => self.entries.remove(&key),
            };
            undo.insert(key, before);
        }
        undo
    }

    /// Returns all entries, in order of their keys.
    pub fn entries(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|(key, value)| (key.as_slice(), value.as_slice()))
    }
}

/// Read access to the entries before a transaction.
pub trait MetadataEntries {
    /// Returns the value of a key, as [`Transaction::get`].
    ///
    /// # Errors
    /// If the store fails.
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Returns entries, as [`Transaction::range`].
    ///
    /// # Errors
    /// If the store fails.
    fn range(&mut self, from: &[u8], to: &[u8], most: usize) -> Result<Vec<MetadataEntry>>;

    /// Returns the incarnation, as [`Transaction::run`].
    fn run(&self) -> u64;
}

impl MetadataEntries for &MetadataTable {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.entries.get(key).cloned())
    }

    fn range(&mut self, from: &[u8], to: &[u8], most: usize) -> Result<Vec<MetadataEntry>> {
        let within = self.entries.range::<[u8], _>((Bound::Included(from), Bound::Excluded(to)));
        Ok(within.take(most).map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn run(&self) -> u64 {
        self.run
    }
}

impl<E: MetadataEntries> MetadataEntries for &mut E {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        (**self).get(key)
    }

    fn range(&mut self, from: &[u8], to: &[u8], most: usize) -> Result<Vec<MetadataEntry>> {
        (**self).range(from, to, most)
    }

    fn run(&self) -> u64 {
        (**self).run()
    }
}

/// Transaction in flight: its changes, and the unchanged entries below them. Transactions nest: the changes of an inner
/// transaction are either applied to the outer one or discarded.
pub struct MetadataAttempt<E> {
    entries: E,
    changes: MetadataChanges,
}

impl<E> MetadataAttempt<E> {
    /// Returns a transaction without changes.
    pub const fn over(entries: E) -> Self {
        MetadataAttempt { entries, changes: MetadataChanges::new() }
    }

    /// Applies the changes of an inner transaction.
    pub fn take_in(&mut self, changes: MetadataChanges) {
        self.changes.extend(changes);
    }

    /// Returns the changes of the transaction.
    pub fn into_changes(self) -> MetadataChanges {
        self.changes
    }
}

impl<E: MetadataEntries> MetadataEntries for MetadataAttempt<E> {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.changes.get(key) {
            Some(value) => Ok(value.clone()),
            None => self.entries.get(key),
        }
    }

    fn range(&mut self, from: &[u8], to: &[u8], most: usize) -> Result<Vec<MetadataEntry>> {
        if from >= to {
            return Ok(Vec::new());
        }
        let changed = self.changes.range::<[u8], _>((Bound::Included(from), Bound::Excluded(to)));
        // All changes in the range can be removals of stored entries, so read one more entry for each change.
        let read = self.entries.range(from, to, most.saturating_add(changed.clone().count()))?;
        let mut kept = read.into_iter().peekable();
        let mut changed = changed.peekable();
        let mut found = Vec::new();
        while found.len() < most {
            let is_changed = match (kept.peek(), changed.peek()) {
                (None, None) => break,
                (Some((key, _)), Some((other, _))) => *other <= key,
                (kept, _) => kept.is_none(),
            };
            if !is_changed {
                found.extend(kept.next());
                continue;
            }
            let Some((key, value)) = changed.next() else { break };
            kept.next_if(|(other, _)| other == key);
            found.extend(value.as_ref().map(|value| (key.clone(), value.clone())));
        }
        Ok(found)
    }

    fn run(&self) -> u64 {
        self.entries.run()
    }
}

impl<E: MetadataEntries> Transaction for MetadataAttempt<E> {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        MetadataEntries::get(self, key)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_metadata_bytes(key, value)?;
        self.changes.insert(key.to_vec(), Some(value.to_vec()));
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        self.changes.insert(key.to_vec(), None);
        Ok(())
    }

    fn range(&mut self, from: &[u8], to: &[u8], most: usize) -> Result<Vec<MetadataEntry>> {
        MetadataEntries::range(self, from, to, most)
    }

    fn run(&self) -> u64 {
        MetadataEntries::run(self)
    }
}

/// Rejects keys and values that exceed the limits of every store.
///
/// # Errors
/// If one of them is too long.
pub fn check_metadata_bytes(key: &[u8], value: &[u8]) -> Result<()> {
    if key.len() <= METADATA_KEY_BYTES_MAX && value.len() <= METADATA_VALUE_BYTES_MAX {
        return Ok(());
    }
    let what =
        format!("metadata entry with a key of {} bytes and a value of {} bytes", key.len(), value.len());
    let why =
        format!("keys have at most {METADATA_KEY_BYTES_MAX} bytes, and values {METADATA_VALUE_BYTES_MAX}");
    Err(crate::Error::Io { what, why }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, value: &str) -> MetadataEntry {
        (key.into(), value.into())
    }

    #[test]
    fn a_transaction_sees_stored_entries_and_its_own_changes_in_order() {
        let mut table = MetadataTable::default();
        let fill = |t: &mut dyn Transaction| {
            ["a", "b", "d", "e"].iter().try_for_each(|key| t.put(key.as_bytes(), b"old"))
        };
        let ((), changes) = table.attempt(fill).expect("an attempt");
        table.apply(changes);
        let change = |t: &mut dyn Transaction| {
            t.put(b"b", b"new")?;
            t.put(b"c", b"new")?;
            t.remove(b"d")?;
            Ok((t.range(b"b", b"f", 2)?, t.range(b"b", b"f", 9)?, t.get(b"d")?))
        };
        let ((first, all, removed), changes) = table.attempt(change).expect("an attempt");
        assert_eq!(first, [entry("b", "new"), entry("c", "new")]);
        assert_eq!(all, [entry("b", "new"), entry("c", "new"), entry("e", "old")]);
        assert_eq!(removed, None);
        let before = table.clone();
        let undo = table.apply(changes);
        assert_eq!(table.entries().count(), 4);
        table.apply(undo);
        assert_eq!(table, before);
    }

    #[test]
    fn a_too_long_key_is_rejected() {
        let table = MetadataTable::default();
        let key = [0; METADATA_KEY_BYTES_MAX + 1];
        let error = table.attempt(|t| t.put(&key, b"")).unwrap_err();
        assert!(error.to_string().contains("513"), "{error}");
    }
}
