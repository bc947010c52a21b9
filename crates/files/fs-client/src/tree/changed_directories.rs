//! Directories as they were when this client changed them last: the keeper tells with its answers, so that whoever
//! wants to know right after need not ask.
//!
//! It is believed for as long as the caller says. Others may have changed the directory since.

use std::cell::RefCell;
use std::collections::BTreeMap;

use machine::{Duration, Instant, Machine};
use namespace::{FileNumber, Inode};

use super::Tree;

/// The most directories that are remembered: as many as a program works in at a time, and more.
const REMEMBERED: usize = 256;

/// The directories that this client has changed lately, each with when that was asked for.
#[derive(Default)]
pub(super) struct ChangedDirectories(RefCell<BTreeMap<FileNumber, (Instant, Inode)>>);

impl ChangedDirectories {
    /// Notes how directories are after a change that was asked for at this time.
    pub(super) fn note(&self, directories: Vec<Inode>, asked: Instant) {
        let mut known = self.0.borrow_mut();
        for directory in directories {
            // Of answers that have come in another order than they were given, the last one counts.
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
    /// A directory as it was when this client changed it last, and how long ago that was at most; nothing, if this
    /// client has not changed it lately.
    pub fn changed_directory(&self, number: FileNumber) -> Option<(Inode, Duration)> {
        self.inner.changed_directories.get(number, self.machine().now())
    }
}
