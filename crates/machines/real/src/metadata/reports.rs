//! What a store reports: failures that whoever copies or flushes later cannot tell, and changes that came about
//! without it.

use machine::{Error, NodeId};

use crate::report::{Report, Reporter};

/// Where a store reports.
#[derive(Clone)]
pub(super) struct Reports {
    pub(super) node: NodeId,
    pub(super) reporter: Reporter,
}

impl Reports {
    /// The store, or a copy of it, could not do what it was asked for.
    pub(super) fn failed(&self, error: &Error) {
        self.reporter.report(&Report::DiskFailed { node: self.node, error: error.clone() });
    }

    /// A body of a transaction panicked.
    pub(super) fn defect(&self, error: Error) {
        self.reporter.report(&Report::Defect { node: self.node, part: "a transaction", error });
    }

    /// What had been done may be lost.
    #[cfg(feature = "postgres")]
    pub(super) fn changed_by_others(&self, text: String) {
        self.reporter.report(&Report::MetadataChanged { node: self.node, text });
    }
}
