//! Where everything lies in the file of an object, by the version of the file: arithmetic, without files.
//!
//! ```text
//! version 3 | header 4 KiB | record 4 KiB | record 4 KiB | sums 8 KiB | data 1 MiB | sums 8 KiB | data 1 MiB | ...
//! version 2 | header 4 KiB | record 2 KiB, record 2 KiB | sums 4 KiB | data 1 MiB | sums 4 KiB | data 1 MiB | ...
//!                                                        '-------- group 0 -------' '-------- group 1 -------'
//! ```
//!
//! The header is drawn in `header.rs`, the records of what was flushed in `record.rs`, the sums in `units.rs`.
//! Data begin at multiples of 4 KiB, the page of the system. The records of version 3 are in pages of their own, so
//! that a disk that fails in writing one of them, in sectors of 4 KiB, leaves the other. New files are of version 3.

use std::ops::Range;

/// Length of the header.
pub(crate) const HEADER_BYTES: usize = 4096;

/// What one sum vouches for.
pub(crate) const UNIT_BYTES: u64 = 4096;

/// Units in a group.
pub(crate) const GROUP_UNITS: u64 = 256;

/// What one page of sums is for.
pub(crate) const GROUP_BYTES: u64 = GROUP_UNITS * UNIT_BYTES;

/// What a disk writes whole or not at all.
pub(crate) const SECTOR_BYTES: usize = 512;

/// Places in a file, and what its sums tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The version that the header gives.
    pub(crate) version: u32,
    /// Offsets of the two records.
    pub(super) records: [u64; 2],
    /// Where the groups begin.
    pub(crate) groups: u64,
    /// Length of what is kept for one unit in the page of sums.
    pub(super) entry_bytes: usize,
    /// Whether the sums tell what was flushed, and a hole from a sum that was lost.
    pub(crate) keeps_flushed: bool,
}

impl Layout {
    pub(crate) const V2: Layout = Layout {
        version: 2,
        records: [HEADER_BYTES as u64, HEADER_BYTES as u64 + 2048],
        groups: HEADER_BYTES as u64 + 4096,
        entry_bytes: 16,
        keeps_flushed: false,
    };

    pub(crate) const V3: Layout = Layout {
        version: 3,
        records: [HEADER_BYTES as u64, HEADER_BYTES as u64 + 4096],
        groups: HEADER_BYTES as u64 + 2 * 4096,
        entry_bytes: 32,
        keeps_flushed: true,
    };

    /// Length of a page of sums.
    pub(crate) fn sums_bytes(&self) -> usize {
        GROUP_UNITS as usize * self.entry_bytes
    }

    /// Where in its page of sums those of the units between two offsets of one group lie: whole sectors.
    pub(crate) fn sectors_of(&self, first: u64, end: u64) -> Range<usize> {
        let entry = |offset: u64| (offset % GROUP_BYTES / UNIT_BYTES) as usize * self.entry_bytes;
        let last = entry(end - 1);
        entry(first) / SECTOR_BYTES * SECTOR_BYTES..(last / SECTOR_BYTES + 1) * SECTOR_BYTES
    }

    /// Where the sums of a group lie in the file. Groups no file can have stay such.
    pub(crate) fn sums_in_file(&self, group: u64) -> u64 {
        group.saturating_mul(self.sums_bytes() as u64 + GROUP_BYTES).saturating_add(self.groups)
    }

    /// Where the byte of an object at `offset` lies in its file. Offsets no file can have stay such.
    pub(crate) fn in_file(&self, offset: u64) -> u64 {
        let within = self.sums_bytes() as u64 + offset % GROUP_BYTES;
        self.sums_in_file(group_of(offset)).saturating_add(within)
    }

    /// The bytes of an object that lie in a part of its file. Of sums alone there are none.
    pub(crate) fn in_object(&self, part: Range<u64>) -> Range<u64> {
        let sums_bytes = self.sums_bytes() as u64;
        let offset = |position: u64| {
            let position = position.saturating_sub(self.groups);
            let (group, within) =
                (position / (sums_bytes + GROUP_BYTES), position % (sums_bytes + GROUP_BYTES));
            group * GROUP_BYTES + within.saturating_sub(sums_bytes)
        };
        offset(part.start)..offset(part.end)
    }

    /// How long the file of an object of `bytes` is.
    pub(crate) fn file_bytes(&self, bytes: u64) -> u64 {
        bytes.checked_sub(1).map_or(self.groups, |last| self.in_file(last).saturating_add(1))
    }

    /// How long the object in a file of `file_bytes` can be; `None` if that is too short to be one.
    pub(crate) fn object_bytes(&self, file_bytes: u64) -> Option<u64> {
        let groups = file_bytes.checked_sub(self.groups)?;
        let sums_bytes = self.sums_bytes() as u64;
        let rest = groups % (sums_bytes + GROUP_BYTES);
        Some(groups / (sums_bytes + GROUP_BYTES) * GROUP_BYTES + rest.saturating_sub(sums_bytes))
    }
}

/// The group that `offset` lies in: the part of an object that one page of sums is for.
pub(crate) fn group_of(offset: u64) -> u64 {
    offset / GROUP_BYTES
}

/// The end of the group that `offset` lies in.
pub(crate) fn group_end(offset: u64) -> u64 {
    (group_of(offset) + 1).saturating_mul(GROUP_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lengths_of_objects_and_files_belong_together(bytes in 0..1_u64 << 50, near in 0..3_u64) {
            for layout in [Layout::V2, Layout::V3] {
                let all = layout.in_object(0..layout.file_bytes(bytes));
                prop_assert_eq!(all, 0..bytes);
                let (begin, end) = (layout.in_file(bytes), layout.in_file(bytes + near) + 1);
                prop_assert_eq!(layout.in_object(begin..end), bytes..bytes + near + 1);
                let sums = layout.sums_in_file(near);
                prop_assert!(layout.in_object(sums..sums + layout.sums_bytes() as u64).is_empty());
                for bytes in [bytes, bytes / GROUP_BYTES * GROUP_BYTES + near] {
                    prop_assert_eq!(layout.object_bytes(layout.file_bytes(bytes)), Some(bytes));
                    prop_assert!(layout.in_file(bytes) >= layout.file_bytes(bytes));
                    prop_assert_eq!(layout.in_file(bytes) % UNIT_BYTES, bytes % UNIT_BYTES);
                }
            }
        }
    }

    #[test]
    fn sums_are_written_in_the_sectors_that_have_them() {
        assert_eq!(Layout::V3.sectors_of(0, 1), 0..512);
        assert_eq!(Layout::V3.sectors_of(15 * 4096, 17 * 4096), 0..1024);
        assert_eq!(Layout::V3.sectors_of(GROUP_BYTES - 1, GROUP_BYTES), 7680..8192);
        assert_eq!(Layout::V2.sectors_of(GROUP_BYTES, GROUP_BYTES + 33 * 4096), 0..1024);
        assert_eq!(Layout::V3.sectors_of(0, GROUP_BYTES), 0..Layout::V3.sums_bytes());
    }
}
