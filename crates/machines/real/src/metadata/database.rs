//! Interface between a store and its database.

use std::fs::File;

use machine::Result;

use super::erased_transaction::ErasedTransaction;

/// Database of a store, opened on first use.
pub(super) trait Database: Send {
    /// Returns the name of the store for error messages.
    fn described(&self) -> String;

    /// Runs transactions as one commit. With `is_flush`, waits until this commit and all earlier ones are in stable
    /// storage. If the commit fails, no transaction has changed anything.
    fn commit(&self, all: &mut [Box<dyn ErasedTransaction>], is_flush: bool) -> Result<()>;

    /// Runs a read-only transaction if it needs no I/O. Returns true if the transaction has run.
    fn look(&self, _asked: &mut dyn ErasedTransaction) -> bool {
        false
    }

    /// True if the database is unreachable, so that no transaction can run for now.
    fn is_away(&self) -> bool {
        false
    }

    /// Returns a number that differs after each change of a file.
    fn changes(&self) -> u64 {
        0
    }

    /// Copies a database file to an unlinked file next to it. Calls the callback regularly. The callback can commit; if
    /// it returns false, the copy is cancelled.
    fn copy(&self, _go_on: &mut dyn FnMut() -> bool) -> Result<Option<File>> {
        Ok(None)
    }

    /// Closes the database, so that another node can use it.
    fn close(&mut self);
}
