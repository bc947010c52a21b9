//! Total and free space of a namespace.

use std::collections::BTreeMap;

use machine::NodeId;
use namespace::{TreeAnswer, TreeOperation};

use crate::mounted_tree::{MountedTree, Outcome};

/// Unit of space, in bytes.
pub(crate) const SPACE_BLOCK: u32 = 4096;

/// Space of a namespace, in blocks of [`SPACE_BLOCK`] bytes.
pub(crate) struct TreeSpace {
    pub(crate) blocks: u64,
    pub(crate) free: u64,
    /// Free blocks that new files can use: the fullest disk limits files that are striped over all disks.
    pub(crate) available: u64,
    pub(crate) inodes: u64,
}

impl MountedTree {
    /// Returns the space on the disks of all agents that answer. Counts a device once, even if several agents use it.
    pub(crate) async fn space(&self) -> Outcome<TreeSpace> {
        const WHAT: &str = "cannot get the free space";
        let (mut bytes, mut devices, mut disks) = (0, BTreeMap::new(), Vec::new());
        for &node in self.node.client().io_nodes() {
            let examined = self.settle(WHAT, self.node.client().examine(node).await);
            // Space on an unreachable agent is unusable.
            let Ok(examined) = examined else { continue };
            let computer = examined.computer.map(|computer| computer.id);
            for (index, disk) in examined.disks.into_iter().enumerate() {
                let Some(space) = disk.space else { continue };
                let device = match (computer, disk.device) {
                    (Some(computer), Some(device)) => Device::Known { computer, device },
                    _ => Device::Of { node, index },
                };
                let sharers = devices.entry(device).or_insert_with(|| {
                    bytes += space.bytes;
                    0
                });
                *sharers += 1;
                disks.push((device, space.free));
            }
        }
        let free = disks.iter().map(|(device, free)| free / devices[device]).collect::<Vec<_>>();
        // If the settings permit no new files, count each block as available.
        let stripes = self.node.striping().map_or(1, |striping| u64::from(striping.stripe_count()));
        let inodes = match self.settle(WHAT, self.tree().perform(TreeOperation::Describe).await)? {
            TreeAnswer::Used(used) => used.inodes,
            _ => 0,
        };
        let block = u64::from(SPACE_BLOCK);
        Ok(TreeSpace {
            blocks: bytes / block,
            free: free.iter().sum::<u64>() / block,
            available: available(free, stripes) / block,
            inodes,
        })
    }
}

/// The device under a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Device {
    Known {
        computer: u64,
        device: u64,
    },
    /// The unknown device of disk `index` of a node.
    Of {
        node: NodeId,
        index: usize,
    },
}

/// Returns the maximum bytes of files with `stripes` equal stripes, each on a different disk, for disks with these free
/// bytes. Any `k` disks hold at most `k` stripes of a file; the other disks must have space for the other stripes.
fn available(mut free: Vec<u64>, stripes: u64) -> u64 {
    free.sort_unstable();
    let others = (0..stripes).map(|largest| {
        let rest = free.len().saturating_sub(largest as usize);
        let share = free[..rest].iter().sum::<u64>() / (stripes - largest);
        share.saturating_mul(stripes)
    });
    others.min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_disk_limits_files_striped_over_all_disks() {
        assert_eq!(available(vec![100, 7, 50], 3), 21);
        assert_eq!(available(vec![100, 7, 50], 1), 157);
        // Each file has one of its two stripes on the largest disk, so the other two disks are full first.
        assert_eq!(available(vec![100, 7, 50], 2), 114);
        assert_eq!(available(vec![10, 10, 10], 2), 30);
        assert_eq!((available(vec![], 4), available(vec![5], 2)), (0, 0));
    }
}
