//! Layout of an object's file, by its version: arithmetic only, no I/O.
//!
//! ```text
//! version 3 | header 4 KiB | record 4 KiB | record 4 KiB | sums 8 KiB | data 1 MiB | sums 8 KiB | data 1 MiB | ...
//! version 2 | header 4 KiB | record 2 KiB, record 2 KiB | sums 4 KiB | data 1 MiB | sums 4 KiB | data 1 MiB | ...
//!                                                        '-------- group 0 -------' '-------- group 1 -------'
//! ```
//!
//! The header is drawn in `header.rs`, the records of the flushed state in `record.rs`, the checksums ("sums") in
//! `units.rs`. Data begin at multiples of 4 KiB, the page size. The records of version 3 are in separate pages, so that
//! a disk that fails while writing a sector of 4 KiB damages only one record. New files have version 3.

use std::ops::Range;

/// Length of the header in bytes.
pub(crate) const HEADER_BYTES: usize = 4096;

/// Length in bytes of a unit, the data covered by one checksum.
pub(crate) const UNIT_BYTES: u64 = 4096;

/// Number of units in a group.
pub(crate) const GROUP_UNITS: u64 = 256;

/// Length in bytes of a group, the data covered by one page of checksums.
pub(crate) const GROUP_BYTES: u64 = GROUP_UNITS * UNIT_BYTES;

/// Number of bytes that a disk writes atomically.
pub(crate) const SECTOR_BYTES: usize = 512;

/// Offsets in a file, and the meaning of its checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Version in the header.
    pub(crate) version: u32,
    /// Offsets of the two records.
    pub(super) records: [u64; 2],
    /// Offset of the first group.
    pub(crate) groups: u64,
    /// Bytes per unit in the page of checksums.
    pub(super) entry_bytes: usize,
    /// True if the checksums record the flushed state, and distinguish a hole from a lost checksum.
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

    /// Returns the length of a page of checksums in bytes.
    pub(crate) fn sums_bytes(&self) -> usize {
        GROUP_UNITS as usize * self.entry_bytes
    }

    /// Returns the range of whole sectors, within a page of checksums, for the units between two offsets of one group.
    pub(crate) fn sectors_of(&self, first: u64, end: u64) -> Range<usize> {
        let entry = |offset: u64| (offset % GROUP_BYTES / UNIT_BYTES) as usize * self.entry_bytes;
        let last = entry(end - 1);
        entry(first) / SECTOR_BYTES * SECTOR_BYTES..(last / SECTOR_BYTES + 1) * SECTOR_BYTES
    }

    /// Returns the offset of a group's checksums in the file. Saturates, so that the offset of an impossible group is
    /// also impossible.
    pub(crate) fn sums_in_file(&self, group: u64) -> u64 {
        group.saturating_mul(self.sums_bytes() as u64 + GROUP_BYTES).saturating_add(self.groups)
    }

    /// Returns the offset in the file of the object's byte at `offset`. Saturates, so that an impossible offset stays
    /// impossible.
    pub(crate) fn in_file(&self, offset: u64) -> u64 {
        let within = self.sums_bytes() as u64 + offset % GROUP_BYTES;
        self.sums_in_file(group_of(offset)).saturating_add(within)
    }

    /// Returns the range of an object's bytes that a part of its file stores. Empty if the part has only checksums.
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

    /// Returns the length of the file of an object with `bytes` bytes.
    pub(crate) fn file_bytes(&self, bytes: u64) -> u64 {
        bytes.checked_sub(1).map_or(self.groups, |last| self.in_file(last).saturating_add(1))
    }

    /// Returns the largest possible length of the object in a file of `file_bytes` bytes; `None` if the file is too
    /// short.
    pub(crate) fn object_bytes(&self, file_bytes: u64) -> Option<u64> {
        let groups = file_bytes.checked_sub(self.groups)?;
        let sums_bytes = self.sums_bytes() as u64;
        let rest = groups % (sums_bytes + GROUP_BYTES);
        Some(groups / (sums_bytes + GROUP_BYTES) * GROUP_BYTES + rest.saturating_sub(sums_bytes))
    }
}

/// Returns the group of `offset`: the part of an object covered by one page of checksums.
pub(crate) fn group_of(offset: u64) -> u64 {
    offset / GROUP_BYTES
}

/// Returns the end of the group of `offset`.
pub(crate) fn group_end(offset: u64) -> u64 {
    (group_of(offset) + 1).saturating_mul(GROUP_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn offsets_of_objects_and_files_convert_both_ways(bytes in 0..1_u64 << 50, near in 0..3_u64) {
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
    fn checksums_are_written_in_whole_sectors() {
        assert_eq!(Layout::V3.sectors_of(0, 1), 0..512);
        assert_eq!(Layout::V3.sectors_of(15 * 4096, 17 * 4096), 0..1024);
        assert_eq!(Layout::V3.sectors_of(GROUP_BYTES - 1, GROUP_BYTES), 7680..8192);
        assert_eq!(Layout::V2.sectors_of(GROUP_BYTES, GROUP_BYTES + 33 * 4096), 0..1024);
        assert_eq!(Layout::V3.sectors_of(0, GROUP_BYTES), 0..Layout::V3.sums_bytes());
    }
}
