//! Directories that are open: their entries, in the order of their names.
//!
//! The kernel goes on after an entry by a number that it was given with it. These number the names that were given, and
//! the next ones are those after that name: whatever comes and goes meanwhile, what stays is given once.

use std::rc::Rc;

use fs::SomeEntries;
use fuser::Errno;
use namespace::{FileNumber, Inode, InodeKind};

use crate::mounted_tree::{MountedTree, Outcome, about};
use crate::open_directory::OpenDirectory;

/// The entries that come first in each directory: itself, and the one it is in.
const FIRST: [&[u8]; 2] = [b".", b".."];

/// An entry for the kernel.
pub(crate) struct ListedEntry {
    pub(crate) name: Vec<u8>,
    pub(crate) number: FileNumber,
    /// What it leads to, but for the first entries of a directory, which are known.
    pub(crate) inode: Option<Inode>,
    /// The number after which the kernel goes on.
    pub(crate) position: u64,
}

impl MountedTree {
    pub(crate) fn open_directory(&self, number: FileNumber) -> u64 {
        let handle = self.new_handle();
        let open = OpenDirectory::new(number);
        self.directories.borrow_mut().insert(handle, Rc::new(open));
        handle
    }

    pub(crate) fn close_directory(&self, handle: u64) -> Outcome<()> {
        self.directories.borrow_mut().remove(&handle).map(drop).ok_or(Errno::EBADF)
    }

    /// Entries after a position; none at the end. `give` takes one, unless there is no room for it.
    pub(crate) async fn list(
        &self,
        handle: u64,
        position: u64,
        mut give: impl FnMut(&ListedEntry) -> bool,
    ) -> Outcome<()> {
        let open = self.directories.borrow().get(&handle).cloned().ok_or(Errno::EBADF)?;
        if position == 0 {
            open.begin();
        }
        let Some(SomeEntries { directory, entries, .. }) = self.entries(&open, position).await? else {
            return Ok(());
        };
        let InodeKind::Directory { parent } = directory.kind else { return Err(Errno::ENOTDIR) };
        for (place, number) in [(0, open.number), (1, parent)] {
            let entry =
                ListedEntry { name: FIRST[place].to_vec(), number, inode: None, position: place as u64 + 1 };
            if position <= place as u64 && !give(&entry) {
                return Ok(());
            }
        }
        let (offered, mut taken) = (entries.len(), 0);
        let mut place = (position as usize).saturating_sub(FIRST.len());
        for entry in entries {
            let inode = self.seen(entry.inode).await;
            place = open.place_of(place, &entry.name);
            let position = (FIRST.len() + place) as u64 + 1;
            let entry = ListedEntry { name: entry.name, number: inode.number, inode: Some(inode), position };
            if !give(&entry) {
                break;
            }
            open.note_given(place, entry.name);
            place += 1;
            taken += 1;
        }
        open.note_taken(taken, offered);
        Ok(())
    }

    /// Entries after a position; nothing if the directory has been removed.
    async fn entries(&self, open: &OpenDirectory, position: u64) -> Outcome<Option<SomeEntries>> {
        let after = match position.checked_sub(FIRST.len() as u64 + 1) {
            Some(place) => open.given(place as usize).ok_or(Errno::EINVAL)?,
            None => Vec::new(),
        };
        let listed = self.tree().some_entries(open.number, after, open.asked_bytes()).await;
        self.settle(about(open.number), listed)
    }
}
