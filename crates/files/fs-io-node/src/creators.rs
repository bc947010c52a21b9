//! Which client is writing which unfinished file. While this client is connected, no other may discard the file.

use std::cell::RefCell;
use std::collections::BTreeMap;

use machine::NodeId;

use crate::error::{Failure, FailureKind};
use crate::protocol::FileId;

/// The clients that are writing the unfinished files that were begun since this I/O node was started.
#[derive(Default)]
pub(super) struct Creators(RefCell<BTreeMap<FileId, NodeId>>);

impl Creators {
    pub(super) fn note(&self, file: FileId, creator: NodeId) {
        self.0.borrow_mut().insert(file, creator);
    }

    pub(super) fn forget(&self, file: FileId) {
        self.0.borrow_mut().remove(&file);
    }

    /// Notes that a client is gone: it writes no file any more.
    pub(super) fn gone(&self, client: NodeId) {
        self.0.borrow_mut().retain(|_, creator| *creator != client);
    }

    /// Whether a client other than this one is writing the file.
    pub(super) fn has_other(&self, file: FileId, client: NodeId) -> bool {
        self.0.borrow().get(&file).is_some_and(|&creator| creator != client)
    }
}

pub(super) fn being_written(name: &str) -> Box<Failure> {
    let text = format!("{name}: another client is writing a file of that name");
    Failure::new(FailureKind::BeingWritten, text).into()
}
