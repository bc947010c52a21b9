//! Creates inodes with their names, and additional names of files.

use crate::file_name::{PATH_BYTES_MAX, check_name};
use crate::inode::{FileLayout, FileNumber, Inode, InodeKind, next_in_run};
use crate::keys;
use crate::operation::{Location, NewInode, UNFINISHED};
use crate::refusal::TreeRefusal;
use crate::store::{Records, Step, TreeHeader};

/// Mode bit of a directory: new entries get the group of the directory, and new subdirectories also get the bit.
const SET_GROUP: u16 = 0o2000;

/// Maximum number of names of a file. Also limits the subdirectories of a directory, which count as links.
const LINKS_MAX: u32 = u32::MAX / 2;

/// A new inode, before it has a number and a name.
pub(crate) struct NewEntry {
    pub(crate) new: NewInode,
    pub(crate) mode: u16,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) exclusive: bool,
}

impl Records<'_> {
    pub(crate) fn make(&mut self, at: &Location, file: NewEntry) -> Step<Inode> {
        let is_directory = matches!(file.new, NewInode::Directory);
        let walked = self.walk(at, !file.exclusive && !is_directory)?;
        if walked.as_directory && !is_directory {
            return Err(TreeRefusal::IsDirectory.into());
        }
        if let Some(found) = walked.found {
            let is_file = matches!(file.new, NewInode::File { .. } | NewInode::UnfinishedFile { .. });
            let may_be_there = !file.exclusive && is_file;
            return match found.kind {
                InodeKind::File(_) if may_be_there => Ok(found),
                InodeKind::Directory { .. } if may_be_there => Err(TreeRefusal::IsDirectory.into()),
                _ => Err(TreeRefusal::Exists.into()),
            };
        }
        self.make_in(walked.directory, &walked.name, file)
    }

    pub(crate) fn make_in(&mut self, mut directory: Inode, name: &[u8], file: NewEntry) -> Step<Inode> {
        self.check_can_grow(&directory, name)?;
        let header = self.header()?;
        // The store may have lost, in a crash, that it assigned a number whose stripes still exist. The new number
        // depends on the incarnation, so that it differs from such a number.
        let last = next_in_run(header.last, self.run);
        self.put_header(TreeHeader { last, inodes: header.inodes + 1, ..header })?;
        let number = FileNumber(header.origin.wrapping_add(last));
        let kind = self.kind_of(&file.new, number, directory.number)?;
        let is_directory = matches!(kind, InodeKind::Directory { .. });
        let inherits = directory.mode & SET_GROUP != 0;
        let size = if let InodeKind::Link { target } = &kind { target.len() as u64 } else { 0 };
        let inode = Inode {
            number,
            kind,
            mode: file.mode & 0o7777 | if inherits && is_directory { SET_GROUP } else { 0 },
            uid: file.uid,
            gid: if inherits { directory.gid } else { file.gid },
            links: if is_directory { 2 } else { 1 },
            size,
            accessed: self.now,
            modified: self.now,
            changed: self.now,
            made: self.now,
            version: next_in_run(0, self.run),
            stored_stripes: 0,
            unwritten: 0,
            reserved: 0,
        };
        self.put_inode(&inode)?;
        self.put_entry(directory.number, name, number)?;
        if matches!(file.new, NewInode::UnfinishedFile { .. }) {
            self.transaction.put(&keys::extended(number, UNFINISHED), name)?;
        }
        directory.links += u32::from(is_directory);
        self.touch_directory(&mut directory, 1)?;
        Ok(inode)
    }

    fn kind_of(&mut self, new: &NewInode, number: FileNumber, parent: FileNumber) -> Step<InodeKind> {
        let list = match new {
            NewInode::File { disks, .. }
            | NewInode::UnfinishedFile { disks, .. }
            | NewInode::PlacedFile(FileLayout { disks, .. }) => Some(*disks),
            NewInode::Link { target } => {
                let is_target = !target.is_empty() && target.len() <= PATH_BYTES_MAX && !target.contains(&0);
                if !is_target {
                    let is_empty = target.is_empty();
                    return Err(
                        if is_empty { TreeRefusal::NotFound } else { TreeRefusal::NameTooLong }.into()
                    );
                }
                None
            }
            NewInode::Directory | NewInode::Special { .. } => None,
        };
        let disks = match list {
            Some(list) => self.disks(list)?.len() as u32,
            None => 0,
        };
        let kind = new.kind(number, parent, disks);
        match &kind {
            InodeKind::File(layout) if layout.striping.stripe_count() > disks || layout.first >= disks => {
                Err(TreeRefusal::Invalid.into())
            }
            _ => Ok(kind),
        }
    }

    /// Gives a file an additional name.
    pub(crate) fn link(&mut self, number: FileNumber, at: &Location) -> Step<Inode> {
        let mut inode = self.inode(number)?;
        let walked = self.walk(at, false)?;
        if walked.found.is_some() {
            return Err(TreeRefusal::Exists.into());
        }
        if inode.is_directory() {
            return Err(TreeRefusal::NotPermitted.into());
        }
        if walked.as_directory || inode.links == 0 {
            return Err(TreeRefusal::NotFound.into());
        }
        if inode.links >= LINKS_MAX {
            return Err(TreeRefusal::TooManyLinks.into());
        }
        let mut directory = walked.directory;
        self.check_can_grow(&directory, &walked.name)?;
        inode.links += 1;
        inode.changed = self.now;
        self.put_inode(&inode)?;
        self.put_entry(directory.number, &walked.name, number)?;
        self.touch_directory(&mut directory, 1)?;
        Ok(inode)
    }

    /// Fails if the directory cannot have another entry.
    pub(crate) fn check_can_grow(&self, directory: &Inode, name: &[u8]) -> Step<()> {
        check_name(name)?;
        if directory.links == 0 {
            return Err(TreeRefusal::NotFound.into());
        }
        if directory.links >= LINKS_MAX {
            return Err(TreeRefusal::TooManyLinks.into());
        }
        Ok(())
    }
}
