//! How much there is room for.

use std::collections::BTreeMap;

use machine::NodeId;
use namespace::{TreeAnswer, TreeOperation};

use crate::mounted_tree::{MountedTree, Outcome};

/// The bytes of the blocks in which space is counted.
pub(crate) const SPACE_BLOCK: u32 = 4096;

/// How much there is room for, in blocks of [`SPACE_BLOCK`] bytes.
pub(crate) struct TreeSpace {
    pub(crate) blocks: u64,
    pub(crate) free: u64,
    /// Of these what new files can use: the fullest disk ends those that are striped over all.
    pub(crate) available: u64,
    pub(crate) inodes: u64,
}

impl MountedTree {
    /// The space on all disks of the set whose agents answer. What several agents have on one device counts once.
    pub(crate) async fn space(&self) -> Outcome<TreeSpace> {
        const WHAT: &str = "asking for space";
        let (mut bytes, mut devices, mut disks) = (0, BTreeMap::new(), Vec::new());
        for &node in self.node.client().io_nodes() {
            let examined = self.settle(WHAT, self.node.client().examine(node).await);
            // What is on an agent that is away nobody can use.
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
        // Where no new files can be made, no disk limits them.
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

/// What disks lie on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Device {
    Known {
        computer: u64,
        device: u64,
    },
    /// It is not known what disk `index` of a node lies on.
    Of {
        node: NodeId,
        index: usize,
    },
}

/// The most bytes that files in so many equal stripes, each on a disk of its own, can have on disks with these bytes
/// free. Of a stripe's share no `k` disks, whatever they have, take more than `k`; the others need room for the rest.
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
    fn the_fullest_disk_limits_files_over_all_of_them() {
        assert_eq!(available(vec![100, 7, 50], 3), 21);
        assert_eq!(available(vec![100, 7, 50], 1), 157);
        // Of two stripes each, one is on the largest disk: what the other two have is used up then.
        assert_eq!(available(vec![100, 7, 50], 2), 114);
        assert_eq!(available(vec![10, 10, 10], 2), 30);
        assert_eq!((available(vec![], 4), available(vec![5], 2)), (0, 0));
    }
}
