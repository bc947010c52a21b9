//! A failed sync of an object's file.
//!
//! The system reports it once, and takes what it could not write for written: the next sync succeeds without it. So
//! after the first failure no sync of the object is tried any more, also after its file was closed and opened again.

use std::cell::OnceCell;
use std::io;
use std::rc::Rc;

/// Whether a sync of an object has failed in this run of the node. Cloning gives another handle.
#[derive(Clone, Default)]
pub(crate) struct SyncFailure(Rc<OnceCell<String>>);

impl SyncFailure {
    /// Notes that a sync has failed.
    pub(crate) fn note(&self, error: &io::Error) {
        self.0.get_or_init(|| error.to_string());
    }

    /// Whether one has.
    pub(crate) fn is_noted(&self) -> bool {
        self.0.get().is_some()
    }

    /// Fails if one has.
    pub(crate) fn check(&self) -> io::Result<()> {
        let Some(why) = self.0.get() else { return Ok(()) };
        Err(io::Error::other(format!(
            "a flush of it has failed ({why}), and what was written to it may be lost: remove the file or restart the \
             agent, and write it again"
        )))
    }
}
