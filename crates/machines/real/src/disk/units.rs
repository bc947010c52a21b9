//! Checksums ("sums") of the units of an object, and the reasons why a flushed unit survives later failures.
//!
//! ```text
//! page of sums | newest 8, previous 8, flushed 8, end 8 | ...     version 3, for each unit of 4 KiB
//!              | newest 8, previous 8 | ...                       version 2
//! ```
//!
//! A sum (XXH3, 64 bits) covers a unit's 4 KiB, with zeros after the object's end, seeded with the object's identity
//! and the unit's number. So a changed unit, or one in the place of another unit or object, does not match. A hole has
//! a mark in place of a sum, derived in the same way, and must be zeros. The first write to a group marks all other
//! units as holes, so zeros in the place of sums are never valid in a written group. `end` is the offset in the unit at
//! which the object ended at the last write, and 0 if the unit never was the last one. Its highest bit is set if a
//! flush began while this was the last unit.
//!
//! A unit goes through these states; `w` are the written contents, `f` the contents at the last flush:
//!
//! ```text
//!                         sums             data
//! after a flush           f f f            f
//! a write, first          w f f            f           sums before data
//! then                    w f f            w
//! with the next sums      w w f            w           w w w, if f was a hole
//! next write              v w f            w, then v
//! a flush, first          v v f            v           all that was written is synced
//! then                    v v v            v           and then the record is written
//! ```
//!
//! **An agent that is killed** leaves its writes to the system, in that order: the contents are the newest or the
//! previous ones, unless the data are torn. An agent that finds three differing sums, and did not write them itself,
//! determines the matching one before it writes to the unit, so that it drops no sum that is needed.
//!
//! **A power failure** leaves any part, in any order, of everything written since the last sync: pages of sums, data
//! and records, each complete or torn between sectors of 512 bytes. The following holds:
//!
//! - *A unit that was flushed and not written since reads as it was.* Its data have been on the medium since the sync
//!   of that flush. Since then only the same bytes have been written there (by the system, in its pages). Its sums are
//!   in one sector, of which the medium has some version since that sync. In each version one of the three sums is `f`.
//!   It was in the synced version, a write to a neighbour copies it, and only a write to this unit replaces it. The
//!   three sums become equal only after a sync, when no other contents are possible.
//! - *A unit that was written since* reads as one of its writes left it, or as it was flushed, or as damaged: it
//!   matches one of its sums or it does not. If none of its writes reached the medium, it is as it was flushed, no
//!   matter which of its sums got there, since `f` stays the third of them until the next sync.
//! - *The length.* A record is written only after a sync of the state it describes, and by that sync the other record
//!   is on the medium. So any complete record is true, of this flush or of an earlier one. If a file is longer than its
//!   record says, the object ends at the last unit with an end, provided that this unit matches its sums or was last
//!   when a flush began. A unit about to grow ends where its file does. All flushed last units have an end, since their
//!   sums are synced. A cut is recorded and synced before it is made, so if the file is shorter, another program cut
//!   it. Sums behind the end in their page, from writes that did not arrive or interrupted cuts, are cleared before the
//!   object grows.
//!
//! Therefore it never matters if the system wrote sums before data, or the reverse. Two errors are not detected. The
//! first is a unit that returns to exactly the bytes of the last flush, while its three sums differ, which is from a
//! write until the end of the next flush. The second is a whole file that returns to an earlier state.

use twox_hash::XxHash3_64;

use super::layout::{GROUP_BYTES, GROUP_UNITS, Layout, UNIT_BYTES};

/// Odd number without pattern (the golden ratio), which spreads unit numbers over seeds.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Sums of one unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnitSums {
    pub(crate) newest: u64,
    /// Sum of the contents that are valid until the newest arrive.
    pub(crate) previous: u64,
    /// Sum of the contents when the object was last flushed.
    pub(crate) flushed: u64,
    /// Offset of the object's end within the unit at the last write; 0 for a hole.
    pub(crate) end: u64,
    /// True if a flush began while the object ended in this unit.
    pub(crate) is_end_flushed: bool,
}

/// Bit of `end` that is set if a flush began.
const END_IS_FLUSHED: u64 = 1 << 63;

impl UnitSums {
    fn hole(mark: u64) -> Self {
        UnitSums { newest: mark, previous: mark, flushed: mark, ..UnitSums::default() }
    }

    /// Records that the unit is in stable storage with this sum.
    pub(crate) fn settle(&mut self, sum: u64) {
        (self.newest, self.previous, self.flushed) = (sum, sum, sum);
    }

    /// Returns true if the unit has only one possible contents.
    pub(crate) fn is_settled(&self) -> bool {
        self.newest == self.previous && self.previous == self.flushed
    }

    fn contains(&self, sum: u64) -> bool {
        [self.newest, self.previous, self.flushed].contains(&sum)
    }
}

/// Object that the sums belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seal {
    pub(crate) layout: Layout,
    pub(crate) identity: u64,
}

impl Seal {
    /// Returns the sum of the unit at `offset`. No sum is zero.
    pub(crate) fn sum(&self, offset: u64, unit: &[u8]) -> u64 {
        debug_assert_eq!(unit.len() as u64, UNIT_BYTES);
        XxHash3_64::oneshot_with_seed(self.seed(offset / UNIT_BYTES), unit).max(1)
    }

    /// Returns the mark of the unit at `offset` while it is a hole.
    pub(crate) fn hole(&self, offset: u64) -> u64 {
        self.hole_of(offset / UNIT_BYTES)
    }

    /// Returns the mark of the unit with this number while it is a hole.
    fn hole_of(&self, unit: u64) -> u64 {
        if self.layout.keeps_flushed { XxHash3_64::oneshot_with_seed(self.seed(unit), &[]).max(1) } else { 0 }
    }

    fn seed(&self, unit: u64) -> u64 {
        self.identity ^ unit.wrapping_mul(SPREAD)
    }

    /// Returns the sum among `sums` that matches the unit at `offset`, if any.
    pub(crate) fn vouching(&self, sums: UnitSums, offset: u64, unit: &[u8]) -> Option<u64> {
        let hole = self.hole(offset);
        // Zeros are valid even if the first data were about to be written.
        if sums.contains(hole) && is_zeros(unit) {
            return Some(hole);
        }
        let sum = self.sum(offset, unit);
        sums.contains(sum).then_some(sum)
    }

    /// Decodes the page of sums of `group` of an object of `bytes`. Units beyond its end are holes: sums found there
    /// remain from before a cut. Units with zeros for sums are holes too, unless the whole group `is_written`.
    pub(crate) fn decode(&self, page: &[u8], group: u64, bytes: u64, is_written: bool) -> Sums {
        let width = self.layout.entry_bytes;
        let first = group * GROUP_UNITS;
        let inside = bytes.div_ceil(UNIT_BYTES).saturating_sub(first).min(GROUP_UNITS) as usize;
        let unit = |index: usize| {
            // A page beyond the end of the file has never been written.
            let stored = page.get(index * width..(index + 1) * width).filter(|_| index < inside);
            let read = stored.map(decode).unwrap_or_default();
            let is_hole = index >= inside || (read.newest == 0 && !is_written);
            if is_hole { UnitSums::hole(self.hole_of(first + index as u64)) } else { read }
        };
        let sums = (0..GROUP_UNITS as usize).map(unit).collect();
        Sums { width, units: sums }
    }
}

fn decode(entry: &[u8]) -> UnitSums {
    let number = |at: usize| {
        entry.get(at..at + 8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    };
    let previous = number(8).unwrap_or_default();
    let end = number(24).unwrap_or_default();
    UnitSums {
        newest: number(0).unwrap_or_default(),
        previous,
        flushed: number(16).unwrap_or(previous),
        end: end & !END_IS_FLUSHED,
        is_end_flushed: end & END_IS_FLUSHED > 0,
    }
}

/// Sums of a group's units.
#[derive(Clone)]
pub(crate) struct Sums {
    /// Bytes of one unit's sums in the file.
    width: usize,
    units: Vec<UnitSums>,
}

impl Sums {
    /// Encodes the sums in a range of the page as stored in the file.
    pub(crate) fn encode(&self, range: std::ops::Range<usize>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(range.len());
        for unit in &self.units[range.start / self.width..range.end / self.width] {
            let end = unit.end | if unit.is_end_flushed { END_IS_FLUSHED } else { 0 };
            let numbers = [unit.newest, unit.previous, unit.flushed, end];
            bytes.extend(numbers[..self.width / 8].iter().flat_map(|number| number.to_le_bytes()));
        }
        bytes
    }

    /// Returns the length in bytes of the page in the file.
    pub(crate) fn page_bytes(&self) -> usize {
        self.units.len() * self.width
    }

    /// Returns the sums of the unit with the object's byte at `offset`, which must be in this group.
    pub(crate) fn of(&mut self, offset: u64) -> &mut UnitSums {
        &mut self.units[(offset % GROUP_BYTES / UNIT_BYTES) as usize]
    }

    /// Returns the sums of all units.
    pub(crate) fn units(&self) -> &[UnitSums] {
        &self.units
    }

    /// Returns the units with an end, the last first, each with the offset of this end in the object.
    pub(crate) fn ends(&self, group: u64) -> impl Iterator<Item = (u64, UnitSums)> {
        let ends = self.units.iter().enumerate().filter(|(_, unit)| (1..=UNIT_BYTES).contains(&unit.end));
        ends.rev().map(move |(at, unit)| (group * GROUP_BYTES + at as u64 * UNIT_BYTES + unit.end, *unit))
    }
}

/// Returns true if all of these bytes are zeros.
pub(crate) fn is_zeros(bytes: &[u8]) -> bool {
    bytes.chunks(64).all(|chunk| chunk.iter().fold(0, |seen, byte| seen | byte) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const V2: Seal = Seal { layout: Layout::V2, identity: 77 };
    const V3: Seal = Seal { layout: Layout::V3, identity: 77 };

    fn sums(newest: u64, previous: u64, flushed: u64) -> UnitSums {
        UnitSums { newest, previous, flushed, ..UnitSums::default() }
    }

    #[test]
    fn a_checksum_verifies_a_unit_at_its_position_only() {
        for seal in [V2, V3] {
            let unit = vec![5; UNIT_BYTES as usize];
            let (here, hole) = (seal.sum(8192, &unit), seal.hole(8192));
            let settled = sums(here, here, here);
            assert_eq!(seal.vouching(settled, 8192, &unit), Some(here));
            for sums in [sums(here, 1, 2), sums(1, here, 2), sums(1, 2, here)] {
                assert_eq!(seal.vouching(sums, 8192, &unit), Some(here));
            }
            assert_eq!(seal.vouching(settled, 4096, &unit), None, "misplaced");
            let foreign = Seal { identity: 78, ..seal };
            assert_eq!(foreign.vouching(settled, 8192, &unit), None, "foreign");
            assert_eq!(seal.vouching(UnitSums::hole(hole), 8192, &unit), None, "where nothing was written");
            let mut torn = unit;
            torn[4095] ^= 1;
            assert_eq!(seal.vouching(settled, 8192, &torn), None, "changed");
            let zeros = vec![0; UNIT_BYTES as usize];
            assert_eq!(seal.vouching(UnitSums::hole(hole), 8192, &zeros), Some(hole), "a hole");
            assert_eq!(
                seal.vouching(sums(here, hole, hole), 8192, &zeros),
                Some(hole),
                "about to be written"
            );
            assert_eq!(seal.vouching(settled, 8192, &zeros), None, "lost");
        }
        let (zeros, elsewhere) = (vec![0; UNIT_BYTES as usize], UnitSums::hole(V3.hole(4096)));
        assert_eq!(V3.vouching(elsewhere, 8192, &zeros), None, "the mark of another hole");
        assert_eq!(V3.vouching(UnitSums::default(), 8192, &zeros), None, "lost with its sums");
    }

    proptest! {
        #[test]
        fn encoded_checksums_are_decoded(numbers in proptest::collection::vec(1..u64::MAX, 4 * 256)) {
            for (seal, width) in [(V2, 2), (V3, 4)] {
                let unit = |unit: &[u64]| UnitSums {
                    newest: unit[0],
                    previous: unit[1],
                    flushed: if width == 4 { unit[2] } else { unit[1] },
                    end: if width == 4 { unit[3] / 2 } else { 0 },
                    is_end_flushed: width == 4 && unit[3] % 2 == 1,
                };
                let units: Vec<UnitSums> = numbers.chunks(4).map(unit).collect();
                let sums = Sums { width: width * 8, units: units.clone() };
                let page = sums.encode(0..sums.page_bytes());
                prop_assert_eq!(page.len(), seal.layout.sums_bytes());
                prop_assert_eq!(&sums.encode(512..1024), &page[512..1024]);
                let read = seal.decode(&page, 3, u64::MAX, true);
                prop_assert_eq!(read.units(), &units);
                // The sums of an object that ends in the third unit of the group.
                let cut = seal.decode(&page, 3, 3 * GROUP_BYTES + 2 * UNIT_BYTES + 1, true);
                prop_assert_eq!(&cut.units()[..3], &units[..3]);
                let is_hole = |(at, unit): (usize, &UnitSums)| *unit == UnitSums::hole(seal.hole_of(768 + at as u64));
                prop_assert!(cut.units().iter().enumerate().skip(3).all(is_hole));
            }
        }

        #[test]
        fn a_page_of_zero_checksums_means_holes_only_if_it_was_never_written(bytes in 1..GROUP_BYTES) {
            let lost = V3.decode(&[0; 8192], 0, bytes, true);
            let holes = V3.decode(&[0; 8192], 0, bytes, false);
            for (at, (lost, hole)) in (0..).step_by(4096).zip(lost.units().iter().zip(holes.units())) {
                prop_assert_eq!(*hole, UnitSums::hole(V3.hole(at)));
                prop_assert_eq!(*lost, if at < bytes { UnitSums::default() } else { *hole });
            }
        }
    }
}
