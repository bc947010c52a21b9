//! Removes names, and inodes without names.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use machine::NO_DISK;

use crate::inode::{FileLayout, FileNumber, Inode};
use crate::keys::{self, Space};
use crate::operation::{Location, RemovalTarget};
use crate::refusal::TreeRefusal;
use crate::store::{Records, Step, TransactionEnd, TreeHeader};

impl Records<'_> {
    /// Removes a name. Returns the number of its file if the file is now an orphan.
    pub(crate) fn remove(&mut self, at: &Location, what: RemovalTarget) -> Step<Option<FileNumber>> {
        let walked = self.walk(at, false)?;
        if walked.name.is_empty() {
            return Err(no_name(&at.path, what).into());
        }
        let (mut directory, name) = (walked.directory.clone(), walked.name.clone());
        let mut inode = walked.there()?;
        match (what, inode.is_directory()) {
            (RemovalTarget::File | RemovalTarget::AbandonedFile, true) => {
                return Err(TreeRefusal::IsDirectory.into());
            }
            (RemovalTarget::Directory, false) => return Err(TreeRefusal::NotDirectory.into()),
            (RemovalTarget::Directory, true) if !self.is_empty(inode.number)? => {
                return Err(TreeRefusal::NotEmpty.into());
            }
            _ => {}
        }
        self.remove_entry(directory.number, &name)?;
        directory.links -= u32::from(inode.is_directory());
        self.touch_directory(&mut directory, -1)?;
        let is_gone = self.unlink_inode(&mut inode)?;
        Ok(Some(inode.number).filter(|_| is_gone && inode.layout().is_some()))
    }

    /// Returns orphans, each with the location of its contents.
    pub(crate) fn list_orphans(
        &mut self,
        after: FileNumber,
        most: u32,
    ) -> Step<Vec<(FileNumber, Option<FileLayout>)>> {
        let (mut from, to) = (keys::after(keys::orphan(after)), keys::end_of_space(Space::Orphan));
        let mut orphans = Vec::new();
        loop {
            let asked = most as usize - orphans.len();
            let found = self.transaction.range(&from, &to, asked)?;
            let is_end = found.len() < asked;
            for (key, _) in found {
                let (number, _) = keys::parts(&key).ok_or(TreeRefusal::Damaged)?;
                let inode = self.inode(number)?;
                // An orphan whose inode has a name is a defect, which a check repairs.
                orphans.extend((inode.links == 0).then(|| (number, inode.layout())));
                from = keys::after(key);
            }
            if is_end || orphans.len() == most as usize {
                return Ok(orphans);
            }
        }
    }

    /// Forgets orphans that can have contents only on these disks. Returns their numbers. Files that have a name again,
    /// or are already forgotten, are not changed. A file that may have contents on an unreachable disk stays an orphan:
    /// its contents are removed when the disk is reachable again.
    pub(crate) fn forget(&mut self, numbers: &[FileNumber], disks: &[u64]) -> Step<Vec<FileNumber>> {
        let reached: BTreeSet<u64> = disks.iter().copied().chain([NO_DISK]).collect();
        let mut lists: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        let mut forgotten = Vec::new();
        for &number in &numbers.iter().copied().collect::<BTreeSet<_>>() {
            if self.transaction.get(&keys::orphan(number))?.is_none() {
                machine::sometimes!("another client has removed the orphan");
                continue;
            }
            let inode = self.inode(number)?;
            if inode.links > 0 {
                continue;
            }
            if let Some(layout) = inode.layout() {
                let list = match lists.entry(layout.disks) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert(match self.disks(layout.disks) {
                        // The disks of a damaged list are unknown, so the contents of its files cannot be removed.
                        Err(TransactionEnd::Refused(_)) => Vec::new(),
                        list => list?,
                    }),
                };
                if !layout.disks_in(list).all(|disk| reached.contains(&disk)) {
                    continue;
                }
            }
            forgotten.push(number);
        }
        self.erase(&forgotten)?;
        Ok(forgotten)
    }

    /// Removes a link from an inode. Returns true if this was the last link. The caller must remove the entry.
    pub(crate) fn unlink_inode(&mut self, inode: &mut Inode) -> Step<bool> {
        inode.links = if inode.is_directory() { 0 } else { inode.links.saturating_sub(1) };
        inode.changed = self.now;
        if inode.links > 0 {
            self.put_inode(inode)?;
            return Ok(false);
        }
        if inode.layout().is_some() {
            // Clients can still have the file open, and agents still store its contents.
            self.put_inode(inode)?;
            self.transaction.put(&keys::orphan(inode.number), b"")?;
            return Ok(true);
        }
        self.note_directory(inode);
        self.erase(&[inode.number])?;
        Ok(true)
    }

    /// Removes inodes and their records; `numbers` must not contain duplicates.
    fn erase(&mut self, numbers: &[FileNumber]) -> Step<()> {
        for &number in numbers {
            self.transaction.remove(&keys::inode(number))?;
            self.transaction.remove(&keys::orphan(number))?;
            self.remove_extended_of(number)?;
        }
        let header = self.header()?;
        self.put_header(TreeHeader { inodes: header.inodes.saturating_sub(numbers.len() as u64), ..header })
    }
}

/// Returns the reason why a path that does not end in the name of an entry cannot be removed.
fn no_name(path: &[u8], what: RemovalTarget) -> TreeRefusal {
    let last = path.split(|&byte| byte == b'/').rfind(|name| !name.is_empty());
    match (what, last) {
        (RemovalTarget::File | RemovalTarget::AbandonedFile, _) => TreeRefusal::IsDirectory,
        (RemovalTarget::Directory, Some(b".")) => TreeRefusal::Invalid,
        (RemovalTarget::Directory, Some(b"..")) => TreeRefusal::NotEmpty,
        (RemovalTarget::Directory, _) => TreeRefusal::Busy,
    }
}
