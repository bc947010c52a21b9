//! Reports of a store: failures that are returned to no caller, and changes by other programs.

use machine::{Error, NodeId};

use crate::report::{Report, Reporter};

/// Receiver of a store's reports.
#[derive(Clone)]
pub(super) struct Reports {
    pub(super) node: NodeId,
    pub(super) reporter: Reporter,
}

impl Reports {
    /// Reports a failed operation of the store, or of a copy.
    pub(super) fn failed(&self, error: &Error) {
        self.reporter.report(&Report::DiskFailed { node: self.node, error: error.clone() });
    }

    /// Reports a panic in the body of a transaction.
    pub(super) fn defect(&self, error: Error) {
        self.reporter.report(&Report::Defect { node: self.node, part: "a transaction", error });
    }

    /// Reports that earlier operations on names may be lost.
    #[cfg(feature = "postgres")]
    pub(super) fn changed_by_others(&self, text: String) {
        self.reporter.report(&Report::MetadataChanged { node: self.node, text });
    }
}
