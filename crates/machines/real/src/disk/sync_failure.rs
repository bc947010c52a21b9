//! Failed sync of a file or a directory.
//!
//! The system reports the failure once, and then considers the unwritten data as written: the next sync would succeed
//! without them. So after the first failure, this incarnation of the node never syncs the same file again, even if it
//! was closed and reopened.

use std::fmt::Display;
use std::io;
use std::sync::{Arc, OnceLock};

/// Record of a failed sync in this incarnation of the node. A clone is another handle.
#[derive(Clone, Default)]
pub(crate) struct SyncFailure(Arc<OnceLock<String>>);

impl SyncFailure {
    /// Records that a sync has failed.
    pub(crate) fn note(&self, error: &impl Display) {
        self.0.get_or_init(|| error.to_string());
    }

    /// Returns true if a sync has failed.
    pub(crate) fn is_noted(&self) -> bool {
        self.0.get().is_some()
    }

    /// Fails if a sync has failed; `consequence` names the possible loss, and the remedy.
    pub(crate) fn check(&self, consequence: &str) -> io::Result<()> {
        let Some(why) = self.0.get() else { return Ok(()) };
        Err(io::Error::other(format!("a flush of it failed ({why}), and {consequence}")))
    }
}
