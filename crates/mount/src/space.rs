//! How much there is room for.

use std::collections::BTreeSet;

use namespace::{TreeAnswer, TreeOperation};

use crate::mounted_tree::{MountedTree, Outcome};

/// The bytes of the blocks in which space is counted.
pub(crate) const SPACE_BLOCK: u32 = 4096;

/// How much there is room for, in blocks of [`SPACE_BLOCK`] bytes.
pub(crate) struct TreeSpace {
    pub(crate) blocks: u64,
    pub(crate) free: u64,
    pub(crate) inodes: u64,
}

impl MountedTree {
    /// The space on all disks of the set. What several agents have on one device counts once.
    pub(crate) async fn space(&self) -> Outcome<TreeSpace> {
        const WHAT: &str = "asking for space";
        let (mut bytes, mut free, mut counted) = (0, 0, BTreeSet::new());
        for &node in self.node.client().io_nodes() {
            let examined = self.settle(WHAT, self.node.client().examine(node).await)?;
            let computer = examined.computer.map(|computer| computer.id);
            for disk in examined.disks {
                let is_new = match (&computer, disk.device) {
                    (Some(computer), Some(device)) => counted.insert((*computer, device)),
                    _ => true,
                };
                if let Some(space) = disk.space.filter(|_| is_new) {
                    bytes += space.bytes;
                    free += space.free;
                }
            }
        }
        let inodes = match self.settle(WHAT, self.tree().perform(TreeOperation::Describe).await)? {
            TreeAnswer::Used(used) => used.inodes,
            _ => 0,
        };
        let block = u64::from(SPACE_BLOCK);
        Ok(TreeSpace { blocks: bytes / block, free: free / block, inodes })
    }
}
