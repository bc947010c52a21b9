//! Metadata of a file system: values by keys, in the order of the keys, that change by transactions.
//!
//! The file system says what the keys and values mean; a machine keeps them: in memory, in a database beside the disks,
//! or in one that others replicate.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::Result;

/// The longest key, in bytes.
pub const METADATA_KEY_BYTES_MAX: usize = 512;

/// The longest value, in bytes.
pub const METADATA_VALUE_BYTES_MAX: usize = 128 * 1024;

/// A key and its value.
pub type MetadataEntry = (Vec<u8>, Vec<u8>);

/// What a transaction sees and changes: all that was committed before, and its own changes; nobody else's.
pub trait Transaction {
    /// The value of a key, if it has one.
    ///
    /// # Errors
    /// If the store fails; the transaction is to end with that error.
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Gives a key this value, in place of the one it had.
    ///
    /// # Errors
    /// As [`get`](Self::get); or if key or value are longer than [`METADATA_KEY_BYTES_MAX`] or
    /// [`METADATA_VALUE_BYTES_MAX`].
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Takes the value of a key away, if it has one.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn remove(&mut self, key: &[u8]) -> Result<()>;

    /// The first `most` entries with keys from `from` on and below `to`, in the order of their keys as bytes.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn range(&mut self, from: &[u8], to: &[u8], most: usize) -> Result<Vec<MetadataEntry>>;

    /// The [run](MetadataStore::run) of the store that it is carried out in.
    fn run(&self) -> u64;
}

/// Where a node keeps metadata. Cloning gives another handle on the same.
///
/// - Transactions are serializable: each sees the changes of those before it, whole, and of no other.
/// - After a crash the store has the changes of all transactions up to some point, and of none after it; all that were
///   committed before the last completed [`flush`](Self::flush) are among them.
pub trait MetadataStore: Clone + 'static {
    /// Carries out `body` as one transaction, and answers with what it returns. Its changes are kept if that is
    /// `Ok(Ok(..))`; otherwise there are none.
    ///
    /// `body` may be called again, from the beginning, if other transactions have come between; it runs wherever the
    /// machine likes, and neither waits nor has any effect but through the transaction. If the future is dropped, the
    /// transaction may still be carried out.
    fn transact<T: Send + 'static, E: Send + 'static>(
        &self,
        body: impl FnMut(&mut dyn Transaction) -> Result<std::result::Result<T, E>> + Send + 'static,
    ) -> impl Future<Output = Result<std::result::Result<T, E>>>;

    /// Carries out a `body` that reads some entries and changes none, as [`transact`](Self::transact) does, but where
    /// that is sooner done.
    fn look<T: Send + 'static, E: Send + 'static>(
        &self,
        body: impl FnMut(&mut dyn Transaction) -> Result<std::result::Result<T, E>> + Send + 'static,
    ) -> impl Future<Output = Result<std::result::Result<T, E>>> {
        self.transact(body)
    }

    /// Waits until all transactions that were committed before are on the medium.
    fn flush(&self) -> impl Future<Output = Result<()>>;

    /// Which run of the store it is: another number, but for an accident, after a crash that may have taken
    /// transactions. A store that other computers keep may have one while the node goes on.
    fn run(&self) -> u64;
}

/// Entries in memory, for machines and tests that keep metadata there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataTable {
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The run that transactions on it are told to be carried out in.
    pub run: u64,
}

/// What a transaction has changed: each key with its new value, or with none.
pub type MetadataChanges = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

impl MetadataTable {
    /// One without entries, in this run.
    pub fn in_run(run: u64) -> Self {
        MetadataTable { run, ..MetadataTable::default() }
    }

    /// Carries out `body` as a transaction, without keeping its changes; they come with its answer.
    ///
    /// # Errors
    /// As those of `body`.
    pub fn attempt<T>(
        &self,
        body: impl FnOnce(&mut dyn Transaction) -> Result<T>,
    ) -> Result<(T, MetadataChanges)> {
        let mut attempt = MetadataAttempt::over(self);
        let answer = body(&mut attempt)?;
        Ok((answer, attempt.into_changes()))
    }

    /// Makes changes; the ones that undo them.
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

    /// All entries, in the order of their keys.
    pub fn entries(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|(key, value)| (key.as_slice(), value.as_slice()))
    }
}

/// Entries as they are before a transaction.
pub trait MetadataEntries {
    /// As [`Transaction::get`].
    ///
    /// # Errors
    /// If the store fails.
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// As [`Transaction::range`].
    ///
    /// # Errors
    /// If the store fails.
    fn range(&mut self, from: &[u8], to: &[u8], most: usize) -> Result<Vec<MetadataEntry>>;

    /// As [`Transaction::run`].
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

/// A transaction under way: what it has changed, over entries that stay as they are. Another can lie over it, whose
/// changes are taken in or not.
pub struct MetadataAttempt<E> {
    entries: E,
    changes: MetadataChanges,
}

impl<E> MetadataAttempt<E> {
    /// One that has changed nothing yet.
    pub const fn over(entries: E) -> Self {
        MetadataAttempt { entries, changes: MetadataChanges::new() }
    }

    /// Makes the changes of one that was over this.
    pub fn take_in(&mut self, changes: MetadataChanges) {
        self.changes.extend(changes);
    }

    /// What it has changed.
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
        // Of those that are there before, as many may be removed.
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

/// Refuses keys and values that no store takes.
///
/// # Errors
/// If one of them is too long.
pub fn check_metadata_bytes(key: &[u8], value: &[u8]) -> Result<()> {
    if key.len() <= METADATA_KEY_BYTES_MAX && value.len() <= METADATA_VALUE_BYTES_MAX {
        return Ok(());
    }
    let what = format!("metadata with a key of {} and a value of {} bytes", key.len(), value.len());
    let why = format!("at most {METADATA_KEY_BYTES_MAX} and {METADATA_VALUE_BYTES_MAX} are possible");
    Err(crate::Error::Io { what, why }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, value: &str) -> MetadataEntry {
        (key.into(), value.into())
    }

    #[test]
    fn a_transaction_sees_what_is_kept_and_its_own_changes_in_order() {
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
    fn what_is_too_long_is_refused() {
        let table = MetadataTable::default();
        let key = [0; METADATA_KEY_BYTES_MAX + 1];
        let error = table.attempt(|t| t.put(&key, b"")).unwrap_err();
        assert!(error.to_string().contains("513"), "{error}");
    }
}
