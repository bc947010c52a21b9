//! Queries and changes attributes.

use std::time::Duration;

use fuser::{Errno, FileAttr};
use namespace::{AttributeChanges, FileNumber, Inode, TreeOperation};

use crate::file_attributes::attributes_of;
use crate::mounted_tree::{MountedTree, Outcome, about};

/// Mode bits with which a program runs as the owner of its file, or as the group.
const SET_USER: u16 = 0o4000;
const SET_GROUP: u16 = 0o2000;
/// Mode bit that permits the group to run the file.
const GROUP_RUNS: u16 = 0o0010;

impl MountedTree {
    /// Returns the attributes of a file and the time for which the kernel may cache them. Fails with `ESTALE` if the
    /// file has neither a name nor an open handle here.
    pub(crate) async fn attributes(&self, number: FileNumber) -> Outcome<(FileAttr, Duration)> {
        let believed = self.settings.attribute_timeout;
        // After each change of a name the kernel drops its cached attributes of the directory, and before the next
        // change it requests them again to check permissions. The reply to the change contained these attributes, so
        // answer the request from this reply.
        if let Some((directory, age)) = self.tree().changed_directory(number)
            && let Some(left) = believed.checked_sub(Duration::from_nanos(age.as_nanos()))
            && !left.is_zero()
        {
            return Ok((attributes_of(&directory), left));
        }
        let got = match self.open_file(number) {
            Some(open) => self.ask_for_attributes(&open).await,
            None => {
                let got = self.tree().inode(TreeOperation::Get { number }).await;
                match got {
                    // The kernel has an outdated name of the file; ESTALE makes the kernel look the name up again.
                    Ok(inode) if inode.links == 0 && !inode.is_directory() => return Err(Errno::ESTALE),
                    got => got.map(|inode| self.tree().seen(inode)),
                }
            }
        };
        Ok((attributes_of(&self.settle(about(number), got)?), believed))
    }

    /// Changes attributes, through the open file of this handle if given. If `may_keep_rights` is false, a change of
    /// the contents clears the set-user-ID and set-group-ID bits.
    pub(crate) async fn change(
        &self,
        number: FileNumber,
        handle: Option<u64>,
        mut changes: AttributeChanges,
        may_keep_rights: bool,
    ) -> Outcome<FileAttr> {
        let has_new_owner = changes.uid.is_some() || changes.gid.is_some();
        if changes.mode.is_none() && (has_new_owner || changes.size.is_some() && !may_keep_rights) {
            let got = self.tree().inode(TreeOperation::Get { number }).await;
            changes.mode = without_rights(&self.settle(about(number), got)?);
        }
        let used = match handle.and_then(|handle| self.file(handle).ok()) {
            Some(used) => Some(used),
            None => self.open_file(number),
        };
        let changed = match used {
            Some(used) => used.file.change(changes).await,
            None if changes.size.is_some() => self.change_closed(number, changes).await,
            None => self.tree().inode(TreeOperation::Change { number, changes }).await,
        };
        Ok(attributes_of(&self.settle(about(number), changed)?))
    }

    /// Changes the length of a file that has no open handle here.
    async fn change_closed(&self, number: FileNumber, changes: AttributeChanges) -> fs::Result<Inode> {
        let file = self.tree().open(TreeOperation::Get { number }).await?;
        let changed = file.change(changes).await;
        let closed = file.close().await;
        closed.and(changed)
    }
}

/// Returns the mode without the set-user-ID and set-group-ID bits; `None` if neither is set.
pub(crate) fn without_rights(inode: &Inode) -> Option<u16> {
    // Without group execution the set-group-ID bit has another meaning.
    let taken = if inode.mode & GROUP_RUNS != 0 { SET_USER | SET_GROUP } else { SET_USER };
    (!inode.is_directory() && inode.mode & taken != 0).then_some(inode.mode & !taken)
}
