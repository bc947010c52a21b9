//! What a store asks of its database.

use std::fs::File;

use machine::Result;

use super::asked::Asked;

/// The database of a store, which is opened when it is needed.
pub(super) trait Database: Send {
    /// The store as error messages call it.
    fn described(&self) -> String;

    /// Carries out transactions as one commit; if it is to be a flush, one that waits until they are on the medium,
    /// with all before them. If it fails, none of them has changed anything.
    fn commit(&self, all: &mut [Box<dyn Asked>], is_flush: bool) -> Result<()>;

    /// Carries out a transaction that changes nothing, if no medium has to be waited for; returns whether it has.
    fn look(&self, _asked: &mut dyn Asked) -> bool {
        false
    }

    /// True if the database is away, so that nothing can be carried out for now.
    fn is_away(&self) -> bool {
        false
    }

    /// A number that is another one after each change of a file.
    fn changes(&self) -> u64 {
        0
    }

    /// Copies a file to one beside it, which has no name any more. Every now and then it calls `go_on`, which may
    /// commit; if that returns false, there is no copy.
    fn copy(&self, _go_on: &mut dyn FnMut() -> bool) -> Result<Option<File>> {
        Ok(None)
    }

    /// Closes the database: another node can use it then.
    fn close(&mut self);
}
