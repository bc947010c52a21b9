//! Names: lookup, creation, renaming and removal.

use std::time::Duration;

use fuser::FileAttr;
use namespace::{
    DeviceKind, FileNumber, Inode, InodeKind, Location, NewInode, RemovalTarget, RenameMode, TreeOperation,
};

use crate::file_attributes::attributes_of;
use crate::mounted_tree::{MountedTree, Outcome, about};

/// Owner and permissions of a new inode.
#[derive(Clone, Copy)]
pub(crate) struct InodeOwner {
    pub(crate) mode: u16,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl MountedTree {
    /// Returns the attributes of the file with a name, and the time for which the kernel may cache them.
    pub(crate) async fn look(&self, at: Location) -> Outcome<(FileAttr, Duration)> {
        let (what, believed) = (named(&at), self.settings.attribute_timeout);
        let looked = self.tree().look(at.base, at.path, believed.into()).await;
        let (inode, left) = self.settle(what, looked)?;
        Ok((attributes_of(&self.seen(inode).await), left.into()))
    }

    /// Returns the settings of a new regular file.
    pub(crate) async fn new_file(&self) -> Outcome<NewInode> {
        let disks = self.settle("new file", self.tree().all_disks().await)?;
        let striping = self.node.striping().map_err(|error| self.log_error(&error))?;
        Ok(NewInode::File { striping, disks })
    }

    pub(crate) async fn make(&self, at: Location, new: NewInode, maker: InodeOwner) -> Outcome<FileAttr> {
        let what = named(&at);
        let InodeOwner { mode, uid, gid } = maker;
        let operation = TreeOperation::Make { at, new, mode, uid, gid, exclusive: true };
        let inode: Inode = self.settle(what, self.tree().inode(operation).await)?;
        Ok(attributes_of(&inode))
    }

    /// Creates a file or special file for `mknod`.
    pub(crate) async fn make_node(
        &self,
        at: Location,
        special: Option<(DeviceKind, u32)>,
        maker: InodeOwner,
    ) -> Outcome<FileAttr> {
        let new = match special {
            Some((kind, device)) => NewInode::Special { kind, device },
            None => self.new_file().await?,
        };
        self.make(at, new, maker).await
    }

    pub(crate) async fn link(&self, number: FileNumber, at: Location) -> Outcome<FileAttr> {
        let what = named(&at);
        let inode = self.settle(what, self.tree().inode(TreeOperation::Link { number, at }).await)?;
        Ok(attributes_of(&self.seen(inode).await))
    }

    pub(crate) async fn target(&self, number: FileNumber) -> Outcome<Vec<u8>> {
        let got = self.tree().inode(TreeOperation::Get { number }).await;
        match self.settle(about(number), got)?.kind {
            InodeKind::Link { target } => Ok(target),
            _ => Err(fuser::Errno::EINVAL),
        }
    }

    pub(crate) async fn rename(&self, from: Location, to: Location, mode: RenameMode) -> Outcome<()> {
        let what = named(&from);
        self.settle(what, self.tree().unname(TreeOperation::Rename { from, to, mode }).await)
    }

    pub(crate) async fn remove(&self, at: Location, what: RemovalTarget) -> Outcome<()> {
        let about = named(&at);
        self.settle(about, self.tree().unname(TreeOperation::Remove { at, what }).await)
    }

    pub(crate) async fn flush_names(&self, directory: FileNumber) -> Outcome<()> {
        self.settle("cannot flush the namespace", self.tree().flush_of(directory).await)
    }

    /// Flushes all written and closed files, and all names, to stable storage.
    ///
    /// # Errors
    /// If an agent does not answer, fails with an error number for connections, so that [`sync`](crate::sync) can
    /// distinguish this case from a failing disk.
    pub(crate) async fn sync_all(&self) -> Outcome<()> {
        let synced = self.node.explained("cannot flush written data to the disks", self.tree().sync().await);
        synced.map_err(|error| {
            self.log_error(&error);
            fuser::Errno::from_i32(error.kind().errno())
        })
    }
}

/// Returns the subject of an error about this name.
pub(crate) fn named(at: &Location) -> String {
    String::from_utf8_lossy(&at.path).into_owned()
}
