//! Lists the names in a directory.

use crate::inode::{FileNumber, Inode};
use crate::keys::{self, Space};
use crate::operation::DirectoryEntry;
use crate::refusal::TreeRefusal;
use crate::store::{Records, Step, number_of};

/// Limit of entries per read from the store.
const ENTRIES_AT_ONCE: usize = 256;

/// Upper estimate of the bytes of an inode and its entry in an answer, without names.
const INODE_BYTES: usize = 120;

/// Part of a directory.
pub(crate) struct ListedEntries {
    pub(crate) directory: Inode,
    pub(crate) entries: Vec<DirectoryEntry>,
    pub(crate) more: bool,
}

impl Records<'_> {
    /// Returns entries with names after `after`, of at most `bytes_max` bytes, but at least one if any is left.
    pub(crate) fn list(&mut self, number: FileNumber, after: &[u8], bytes_max: usize) -> Step<ListedEntries> {
        let directory = self.directory(number)?;
        let mut from = keys::after(keys::entry(number, after));
        let to = keys::end_of(Space::Entry, number);
        let (mut entries, mut bytes) = (Vec::new(), 0);
        // Read one entry more than can fit, to learn if others follow.
        let at_once = ENTRIES_AT_ONCE.min(bytes_max / INODE_BYTES + 1);
        loop {
            let found = self.transaction.range(&from, &to, at_once)?;
            let is_end = found.len() < at_once;
            for (key, value) in found {
                let (_, name) = keys::parts(&key).ok_or(TreeRefusal::Damaged)?;
                let inode = self.known(number_of(&value)?)?;
                bytes += INODE_BYTES + name.len() + size_of_link(&inode);
                if bytes > bytes_max && !entries.is_empty() {
                    return Ok(ListedEntries { directory, entries, more: true });
                }
                entries.push(DirectoryEntry { name: name.to_vec(), inode });
                from = keys::after(key);
            }
            if is_end {
                return Ok(ListedEntries { directory, entries, more: false });
            }
        }
    }
}

/// Returns the length in bytes of a link's target; 0 for other inodes.
fn size_of_link(inode: &Inode) -> usize {
    match &inode.kind {
        crate::inode::InodeKind::Link { target } => target.len(),
        _ => 0,
    }
}
