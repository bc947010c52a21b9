//! Renames files and directories.

use crate::inode::{FileNumber, Inode, InodeKind};
use crate::keys;
use crate::operation::{Location, RenameMode, UNFINISHED};
use crate::refusal::TreeRefusal;
use crate::store::{Records, Step};
use crate::walk::ResolvedPath;

/// A name that is moved or replaced.
struct RenamedEntry {
    directory: FileNumber,
    name: Vec<u8>,
    inode: Inode,
}

impl RenamedEntry {
    fn of(walked: ResolvedPath) -> Step<RenamedEntry> {
        let (directory, name) = (walked.directory.number, walked.name.clone());
        Ok(RenamedEntry { directory, name, inode: walked.there()? })
    }
}

impl Records<'_> {
    /// Renames a file or directory. Returns the number of a replaced file if the file is now an orphan.
    pub(crate) fn rename(
        &mut self,
        from: &Location,
        to: &Location,
        mode: RenameMode,
    ) -> Step<Option<FileNumber>> {
        let (moved, target) = (self.walk(from, false)?, self.walk(to, false)?);
        if moved.name.is_empty() || target.name.is_empty() {
            return Err(TreeRefusal::Busy.into());
        }
        let moved = RenamedEntry::of(moved)?;
        if target.found.is_none() {
            if mode == RenameMode::Exchange {
                return Err(TreeRefusal::NotFound.into());
            }
            if target.as_directory && !moved.inode.is_directory() {
                return Err(TreeRefusal::NotDirectory.into());
            }
            self.check_can_grow(&target.directory, &target.name)?;
            self.check_not_within(&moved.inode, target.directory.number, TreeRefusal::Invalid)?;
            self.move_name(&moved, target.directory.number, &target.name)?;
            return Ok(None);
        }
        let other = RenamedEntry::of(target)?;
        if mode == RenameMode::Keep {
            return Err(TreeRefusal::Exists.into());
        }
        if other.inode.number == moved.inode.number {
            return Ok(None);
        }
        self.check_not_within(&moved.inode, other.directory, TreeRefusal::Invalid)?;
        let within_other =
            if mode == RenameMode::Exchange { TreeRefusal::Invalid } else { TreeRefusal::NotEmpty };
        self.check_not_within(&other.inode, moved.directory, within_other)?;
        if mode == RenameMode::Exchange {
            self.exchange(&moved, &other)?;
            return Ok(None);
        }
        self.replace(&moved, other)
    }

    /// Moves a name over an existing name, which is removed.
    fn replace(&mut self, moved: &RenamedEntry, mut other: RenamedEntry) -> Step<Option<FileNumber>> {
        match (moved.inode.is_directory(), other.inode.is_directory()) {
            (false, true) => return Err(TreeRefusal::IsDirectory.into()),
            (true, false) => return Err(TreeRefusal::NotDirectory.into()),
            (true, true) if !self.is_empty(other.inode.number)? => return Err(TreeRefusal::NotEmpty.into()),
            _ => {}
        }
        let mut directory = self.known(other.directory)?;
        directory.links -= u32::from(other.inode.is_directory());
        self.touch_directory(&mut directory, -1)?;
        let is_gone = self.unlink_inode(&mut other.inode)?;
        self.move_name(moved, other.directory, &other.name)?;
        Ok(Some(other.inode.number).filter(|_| is_gone && other.inode.layout().is_some()))
    }

    /// Moves a name to an unused name.
    fn move_name(&mut self, moved: &RenamedEntry, directory: FileNumber, name: &[u8]) -> Step<()> {
        let is_directory = u32::from(moved.inode.is_directory());
        self.remove_entry(moved.directory, &moved.name)?;
        let mut from = self.known(moved.directory)?;
        from.links -= is_directory;
        self.touch_directory(&mut from, -1)?;
        self.put_entry(directory, name, moved.inode.number)?;
        let mut to = self.known(directory)?;
        to.links += is_directory;
        self.touch_directory(&mut to, 1)?;
        self.note_parent(moved, directory)
    }

    fn exchange(&mut self, one: &RenamedEntry, other: &RenamedEntry) -> Step<()> {
        self.put_entry(one.directory, &one.name, other.inode.number)?;
        self.put_entry(other.directory, &other.name, one.inode.number)?;
        let change = i64::from(other.inode.is_directory()) - i64::from(one.inode.is_directory());
        for (number, change) in [(one.directory, change), (other.directory, -change)] {
            let mut directory = self.known(number)?;
            directory.links = directory.links.saturating_add_signed(change as i32);
            self.touch_directory(&mut directory, 0)?;
        }
        self.note_parent(one, other.directory)?;
        self.note_parent(other, one.directory)
    }

    /// Records the new directory of a moved inode, and removes its mark as unfinished under the old name.
    fn note_parent(&mut self, moved: &RenamedEntry, directory: FileNumber) -> Step<()> {
        let mark = keys::extended(moved.inode.number, UNFINISHED);
        if self.transaction.get(&mark)?.is_some_and(|name| name == moved.name) {
            self.transaction.remove(&mark)?;
        }
        let mut inode = moved.inode.clone();
        // This copy of the inode is up to date: only parent directories were changed above, and a moved directory is
        // never one of them.
        if let InodeKind::Directory { parent } = &mut inode.kind {
            *parent = directory;
        }
        inode.changed = self.now;
        self.put_inode(&inode)
    }

    /// Fails with `refusal` if a directory would be moved into itself.
    fn check_not_within(
        &mut self,
        moved: &Inode,
        mut directory: FileNumber,
        refusal: TreeRefusal,
    ) -> Step<()> {
        if !moved.is_directory() {
            return Ok(());
        }
        loop {
            if directory == moved.number {
                return Err(refusal.into());
            }
            match self.known(directory)?.kind {
                InodeKind::Directory { parent } if parent != directory => directory = parent,
                _ => return Ok(()),
            }
        }
    }
}
