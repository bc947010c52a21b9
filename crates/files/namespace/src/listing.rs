//! The names there are in a directory.

use crate::inode::{FileNumber, Inode};
use crate::keys::{self, Space};
use crate::operation::DirectoryEntry;
use crate::refusal::TreeRefusal;
use crate::store::{Records, Step, number_of};

/// The most entries that are read from the store at a time.
const ENTRIES_AT_ONCE: usize = 256;

/// The bytes that an inode takes in an answer, with its entry and without its names: rather too many.
const INODE_BYTES: usize = 120;

/// Part of a directory.
pub(crate) struct ListedEntries {
    pub(crate) directory: Inode,
    pub(crate) entries: Vec<DirectoryEntry>,
    pub(crate) more: bool,
}

impl Records<'_> {
    /// Entries with names after this one, until they have so many bytes.
    pub(crate) fn list(&mut self, number: FileNumber, after: &[u8], bytes_max: usize) -> Step<ListedEntries> {
        let directory = self.directory(number)?;
        let mut from = keys::after(keys::entry(number, after));
        let to = keys::end_of(Space::Entry, number);
        let (mut entries, mut bytes) = (Vec::new(), 0);
        // As many as there can be room for, and one by which it is known that there are others.
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

/// The bytes of a link's target; of others, none.
fn size_of_link(inode: &Inode) -> usize {
    match &inode.kind {
        crate::inode::InodeKind::Link { target } => target.len(),
        _ => 0,
    }
}
