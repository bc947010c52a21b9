//! Directories as of this client's last change. The metadata server returns them with its answers, so that a caller
//! that needs them right after the change sends no request.
//!
//! The caller limits the age of such an entry, because others may have changed the directory since.

use std::cell::RefCell;
use std::collections::BTreeMap;

use machine::{Duration, Instant, Machine};
use namespace::{FileNumber, Inode};

use super::Tree;

/// Limit of remembered directories: more than a program usually works in at a time.
const REMEMBERED: usize = 256;

/// Directories that this client has changed lately, each with the time of the request.
#[derive(Default)]
pub(super) struct ChangedDirectories(RefCell<BTreeMap<FileNumber, (Instant, Inode)>>);

impl ChangedDirectories {
    /// Records the state of directories after a change requested at time `asked`.
    pub(super) fn note(&self, directories: Vec<Inode>, asked: Instant) {
        let mut known = self.0.borrow_mut();
        for directory in directories {
            // Answers may arrive out of order: keep the newest version.
            let is_newer = |(_, other): &(Instant, Inode)| other.version > directory.version;
            if directory.links == 0 {
                known.remove(&directory.number);
            } else if !known.get(&directory.number).is_some_and(is_newer) {
                known.insert(directory.number, (asked, directory));
            }
        }
        while known.len() > REMEMBERED {
            let oldest = known.iter().min_by_key(|(_, (asked, _))| *asked).map(|(number, _)| *number);
            oldest.and_then(|oldest| known.remove(&oldest));
        }
    }

    fn get(&self, number: FileNumber, now: Instant) -> Option<(Inode, Duration)> {
        self.0.borrow().get(&number).map(|(asked, directory)| (directory.clone(), now.since(*asked)))
    }
}

impl<M: Machine> Tree<M> {
    /// Returns a directory as of this client's last change, and an upper bound of its age; `None` if this client has
    /// not changed it lately.
    pub fn changed_directory(&self, number: FileNumber) -> Option<(Inode, Duration)> {
        self.inner.changed_directories.get(number, self.machine().now())
    }
}
