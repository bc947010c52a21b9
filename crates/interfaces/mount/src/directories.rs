//! Open directories: their entries, in the order of their names.
//!
//! Each returned entry has a number, by which the kernel continues after it. The number is the index of the returned
//! name, and the listing continues after this name. So an entry that exists during the whole listing is returned
//! exactly once, even if other entries are added or removed.

use std::rc::Rc;

use fs::SomeEntries;
use fuser::Errno;
use namespace::{FileNumber, Inode, InodeKind};

use crate::mounted_tree::{MountedTree, Outcome, about};
use crate::open_directory::OpenDirectory;

/// The first two entries of each directory: itself and its parent.
const FIRST: [&[u8]; 2] = [b".", b".."];

/// An entry for the kernel.
pub(crate) struct ListedEntry {
    pub(crate) name: Vec<u8>,
    pub(crate) number: FileNumber,
    /// Inode of the entry; `None` for the entries `.` and `..`, whose inodes are known.
    pub(crate) inode: Option<Inode>,
    /// Number by which the kernel continues after this entry.
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

    /// Lists entries after a position; none at the end. `give` puts an entry into the answer, or returns false if the
    /// answer is full.
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

    /// Returns entries after a position; `None` if the directory has been removed.
    async fn entries(&self, open: &OpenDirectory, position: u64) -> Outcome<Option<SomeEntries>> {
        let after = match position.checked_sub(FIRST.len() as u64 + 1) {
            Some(place) => open.given(place as usize).ok_or(Errno::EINVAL)?,
            None => Vec::new(),
        };
        let listed = self.tree().some_entries(open.number, after, open.asked_bytes()).await;
        self.settle(about(open.number), listed)
    }
}
