//! A failed sync of a file or a directory.
//!
//! The system reports it once, and takes what it could not write for written: the next sync succeeds without it. So
//! after the first failure no sync of the same thing is tried any more in this run of the node, also after a file was
//! closed and opened again.

use std::fmt::Display;
use std::io;
use std::sync::{Arc, OnceLock};

/// Whether a sync of something has failed in this run of the node. Cloning gives another handle.
#[derive(Clone, Default)]
pub(crate) struct SyncFailure(Arc<OnceLock<String>>);

impl SyncFailure {
    /// Notes that a sync has failed.
    pub(crate) fn note(&self, error: &impl Display) {
        self.0.get_or_init(|| error.to_string());
    }

    /// Whether one has.
    pub(crate) fn is_noted(&self) -> bool {
        self.0.get().is_some()
    }

    /// Fails if one has; `consequence` says what may be lost, and what to do.
    pub(crate) fn check(&self, consequence: &str) -> io::Result<()> {
        let Some(why) = self.0.get() else { return Ok(()) };
        Err(io::Error::other(format!("a flush of it has failed ({why}), and {consequence}")))
    }
}
