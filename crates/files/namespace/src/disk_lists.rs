//! Lists of disks, which the layouts of files refer to. A list is never changed or removed.

use layout::DISKS_MAX;

use machine::NO_DISK;

use crate::keys;
use crate::refusal::TreeRefusal;
use crate::store::{Records, Step, TreeHeader, decoded, encoded};

/// Maximum number of lists. A new list is needed only if disks were added or removed, or a user selects disks.
const LISTS_MAX: u32 = 1 << 16;

impl Records<'_> {
    /// Adds a list unless it exists. Returns the number of the list. A list can contain several unknown disks, but no
    /// other disk twice.
    pub(crate) fn enter_disks(&mut self, disks: &[u64]) -> Step<u32> {
        let mut known: Vec<u64> = disks.iter().copied().filter(|&disk| disk != NO_DISK).collect();
        known.sort_unstable();
        let is_twice = known.windows(2).any(|two| two[0] == two[1]);
        if disks.is_empty() || is_twice || disks.len() > DISKS_MAX as usize {
            return Err(TreeRefusal::Invalid.into());
        }
        let header = self.header()?;
        // The latest list is the most likely match.
        for list in (0..header.disk_lists).rev() {
            if self.disks(list)? == disks {
                return Ok(list);
            }
        }
        if header.disk_lists >= LISTS_MAX {
            return Err(TreeRefusal::TooLarge.into());
        }
        self.transaction.put(&keys::disks(header.disk_lists), &encoded(&disks.to_vec()))?;
        self.put_header(TreeHeader { disk_lists: header.disk_lists + 1, ..header })?;
        Ok(header.disk_lists)
    }

    pub(crate) fn disks(&mut self, list: u32) -> Step<Vec<u64>> {
        match self.transaction.get(&keys::disks(list))? {
            Some(bytes) => decoded(&bytes),
            None => Err(TreeRefusal::Invalid.into()),
        }
    }
}
