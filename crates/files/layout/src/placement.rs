//! Assigns each stripe of a file to a disk.
//!
//! Consecutive stripes are on different nodes as long as several nodes have unused disks. So even a few consecutive
//! blocks use as many links and processors as possible.
//!
//! ```text
//!   disks per node: 2, 1, 3          node 0    node 1    node 2
//!                      round 0          0         1         2
//!                      round 1          3                   4
//!                      round 2                              5      <- stripe
//! ```

use serde::{Deserialize, Serialize};

use crate::error::LayoutError;
use crate::limits::DISKS_MAX;

/// One disk of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DiskPlace {
    /// Index of the node in the given list.
    pub node: u32,
    /// Index of the disk within its node.
    pub disk: u32,
}

/// Returns all disks of all nodes in the order of the stripes: stripe `i` is on the disk at index `i`.
///
/// A node may have no disk. The total must be at least one disk and at most [`DISKS_MAX`].
pub fn stripe_disks(disks_per_node: &[u32]) -> Result<Vec<DiskPlace>, LayoutError> {
    let nodes = disks_per_node.len();
    let disks = disks_per_node.iter().copied().map(u64::from).sum();
    if !(1..=DISKS_MAX).contains(&disks) || u32::try_from(nodes).is_err() {
        return Err(LayoutError::DiskCount { disks, nodes });
    }
    let disks_of = |(node, &count): (u32, &u32)| (0..count).map(move |disk| DiskPlace { node, disk });
    let mut places: Vec<_> = (0..).zip(disks_per_node).flat_map(disks_of).collect();
    places.sort_unstable_by_key(|place| (place.disk, place.node));
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(disks_per_node: &[u32]) -> Vec<(u32, u32)> {
        let places = stripe_disks(disks_per_node).unwrap();
        places.iter().map(|place| (place.node, place.disk)).collect()
    }

    #[test]
    fn consecutive_stripes_lie_on_different_nodes() {
        assert_eq!(pairs(&[2, 1, 3]), [(0, 0), (1, 0), (2, 0), (0, 1), (2, 1), (2, 2)]);
    }

    #[test]
    fn with_one_disk_per_node_stripe_n_lies_on_node_n() {
        let identity: Vec<_> = (0..16).map(|node| (node, 0)).collect();
        assert_eq!(pairs(&[1; 16]), identity);
    }

    #[test]
    fn a_node_without_disks_gets_no_stripe() {
        assert_eq!(pairs(&[0, 2]), [(1, 0), (1, 1)]);
    }

    #[test]
    fn no_disks_or_too_many_disks_are_errors() {
        assert!(stripe_disks(&[]).is_err());
        assert!(stripe_disks(&[0, 0]).is_err());
        assert!(stripe_disks(&[u32::MAX, u32::MAX]).is_err());
    }
}
