//! The file pointer that all members of a file share.
//!
//! The pointer is the length of a hidden file in the same directory, which the metadata server extends for one member
//! at a time. The first use creates the hidden file. Each view has a separate hidden file, so a new view begins at 0
//! without any request. Hidden files have temporary names: a hidden file left by a killed program is not listed, and
//! `starfish rm --unfinished` removes it.

use std::collections::BTreeMap;

use namespace::{AttributeChanges, FileNumber, Location, NewInode, RemovalTarget, TreeAnswer, TreeOperation};
use node::Tree;
use twox_hash::XxHash3_64;

use crate::failure::{ErrorClass, MpiError, Outcome};

/// Only the user who runs the members may access the hidden files.
const MODE: u16 = 0o600;

/// The shared pointer, in elementary types of the view.
pub(crate) struct SharedPointer {
    tree: Tree,
    /// Directory of the hidden files, with its final slash.
    directory: String,
    /// Name that the members have in common.
    members: String,
    view: u32,
    /// Hidden files that this process has used, by view.
    known: BTreeMap<u32, FileNumber>,
}

impl SharedPointer {
    /// Returns the shared pointer of the file at `path`, for members with this name.
    pub(crate) fn new(tree: &Tree, path: &str, members: &str) -> Self {
        let directory = path.rfind('/').map_or("", |end| &path[..=end]).to_owned();
        let members = members.to_owned();
        SharedPointer { tree: tree.clone(), directory, members, view: 0, known: BTreeMap::new() }
    }

    /// Returns the path of the hidden file of a view.
    fn path(&self, view: u32) -> String {
        let number = XxHash3_64::oneshot_with_seed(view.into(), self.members.as_bytes());
        format!("{}.starfish-{number:016x}", self.directory)
    }

    /// Changes to the next view; its pointer begins at 0.
    pub(crate) fn begin_view(&mut self) {
        self.view += 1;
    }

    /// Moves the pointer forward by `by` elementary types, which reserves them for this call; returns the old position.
    pub(crate) fn advance(&mut self, by: u64) -> Outcome<u64> {
        let number = self.number()?;
        if by == 0 {
            return self.position();
        }
        match self
            .tree
            .perform(&self.path(self.view), TreeOperation::Append { number, bytes: by, after: 0 })
            .wait()?
        {
            TreeAnswer::Appended { offset, .. } => Ok(offset),
            _ => Err(MpiError::new(
                ErrorClass::Io,
                "the shared pointer: the metadata server sent an invalid reply",
            )),
        }
    }

    /// Returns the position of the pointer.
    pub(crate) fn position(&mut self) -> Outcome<u64> {
        let number = self.number()?;
        Ok(self.tree.inode(&self.path(self.view), TreeOperation::Get { number }).wait()?.append_end())
    }

    /// Sets the pointer.
    pub(crate) fn set(&mut self, position: u64) -> Outcome<()> {
        let number = self.number()?;
        // Only truncation releases reserved bytes, so extend the file first.
        for size in [position + 1, position] {
            let changes = AttributeChanges { size: Some(size), ..AttributeChanges::default() };
            self.tree.inode(&self.path(self.view), TreeOperation::Change { number, changes }).wait()?;
        }
        Ok(())
    }

    /// Removes the hidden files that this process has used, unless other members have removed them.
    pub(crate) fn remove(&mut self) {
        for view in std::mem::take(&mut self.known).into_keys() {
            let path = self.path(view);
            let at = Location::of_path(path.as_bytes());
            let removed = self.tree.unname(&path, TreeOperation::Remove { at, what: RemovalTarget::File });
            // Ignore the error: another member may have removed it first.
            let _ = removed.wait();
        }
    }

    fn number(&mut self) -> Outcome<FileNumber> {
        if let Some(&number) = self.known.get(&self.view) {
            return Ok(number);
        }
        let path = self.path(self.view);
        let made = self.tree.run(&path, |node, path| async move {
            let disks = node.explained(&path, node.tree().all_disks().await)?;
            let new = NewInode::UnfinishedFile { striping: node.striping()?, disks };
            let (uid, gid) = (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw());
            let at = Location::of_path(path.as_bytes());
            let make = TreeOperation::Make { at, new, mode: MODE, uid, gid, exclusive: false };
            node.explained(&path, node.tree().inode(make).await)
        });
        let number = made.wait()?.number;
        self.known.insert(self.view, number);
        Ok(number)
    }
}
