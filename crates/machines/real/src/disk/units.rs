//! The sums that vouch for the units of an object, and why a unit that was flushed survives what comes after.
//!
//! ```text
//! page of sums | newest 8, previous 8, flushed 8, end 8 | ...     version 3, for each unit of 4 KiB
//!              | newest 8, previous 8 | ...                       version 2
//! ```
//!
//! A sum (XXH3, 64 bits) is of a unit's 4 KiB, with zeros after the object's end, seeded with the object's identity
//! and the unit's number. So a unit that was changed, or lies in another's place or in another object, does not
//! match. A hole has a mark in place of a sum, derived likewise, and must be zeros; the first write to a group marks
//! all that it does not write, so that zeros in the place of sums are never right where a group has been written.
//! `end` is where in the unit the object ended when it was written last, and 0 if it never was the last one; its
//! highest bit says that a flush was begun while this was the last unit.
//!
//! A unit goes through these states; `w` is what is written to it, `f` what was there when it was last flushed:
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
//! **An agent that is killed** leaves what it gave to the system, in that order: whatever is there is the newest or
//! the previous, unless the data are torn. An agent that finds three sums that differ, and did not write them itself,
//! looks which of them matches before it writes to the unit, so that it gives up no sum that is needed.
//!
//! **Power that fails** leaves, of everything that was written since the last sync, any part in any order: pages of
//! sums, data and records, each whole or torn between sectors of 512 bytes. What is certain:
//!
//! - *A unit that was flushed and not written since reads as it was.* Its data have been on the medium since the
//!   sync of that flush, and nothing has been written there but the same bytes (by the system, in its pages). Its sums
//!   lie in one sector, of which the medium has some version since that sync. In each of them one of the three is
//!   `f`: it was in the one that was synced, a write to a neighbour copies it, and it is replaced by a write to this
//!   unit only. That the three become one happens after a sync, when there is nothing else they could be.
//! - *A unit that was written since* reads as one of its writes left it, or as it was flushed, or as damaged: it
//!   matches one of the sums there or it does not. If none of its writes reached the medium, it is as it was flushed,
//!   whichever of its sums got there, since `f` stays the third of them until the next sync.
//! - *The length.* A record is written only after a sync of all that it tells of, and the other one is on the medium by
//!   that sync. So whichever is found whole is true, of this flush or of one before. A file that is longer than it says
//!   is as long as the last unit that has an end, if that unit matches its sums or was last when a flush was begun; a
//!   unit about to grow ends where its file does. All flushed ones have an end, their sums being synced. A cut is
//!   recorded and synced before it is made, so a file that is shorter was cut by others. What stands behind the end in
//!   its page of sums, from writes that did not arrive or cuts that were interrupted, is cleared before the object
//!   grows.
//!
//! What the system wrote to sums before it wrote data, or the reverse, is therefore never decisive. Not told from what
//! is right: a unit that goes back to the very bytes it had at the last flush, if the three sums are still apart, which
//! they are from a write until the end of the next flush; and the whole file as it was some time ago.

use twox_hash::XxHash3_64;

use super::layout::{GROUP_BYTES, GROUP_UNITS, Layout, UNIT_BYTES};

/// An odd number without pattern (the golden ratio), which spreads unit numbers over seeds.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// What vouches for one unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnitSums {
    pub(crate) newest: u64,
    /// What is there until the newest is.
    pub(crate) previous: u64,
    /// What was there when the object was last flushed.
    pub(crate) flushed: u64,
    /// The object's end within the unit when it was written last; 0 of a hole.
    pub(crate) end: u64,
    /// Whether a flush was begun while the object ended in this unit.
    pub(crate) is_end_flushed: bool,
}

/// What `end` has beside the end if a flush was begun.
const END_IS_FLUSHED: u64 = 1 << 63;

impl UnitSums {
    fn hole(mark: u64) -> Self {
        UnitSums { newest: mark, previous: mark, flushed: mark, ..UnitSums::default() }
    }

    /// Notes that the unit is on the medium with this sum.
    pub(crate) fn settle(&mut self, sum: u64) {
        (self.newest, self.previous, self.flushed) = (sum, sum, sum);
    }

    /// Whether there is only one thing that the unit can be.
    pub(crate) fn is_settled(&self) -> bool {
        self.newest == self.previous && self.previous == self.flushed
    }

    fn contains(&self, sum: u64) -> bool {
        [self.newest, self.previous, self.flushed].contains(&sum)
    }
}

/// The object to whose units sums belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seal {
    pub(crate) layout: Layout,
    pub(crate) identity: u64,
}

impl Seal {
    /// The sum of the unit at `offset`. No sum is zero.
    pub(crate) fn sum(&self, offset: u64, unit: &[u8]) -> u64 {
        debug_assert_eq!(unit.len() as u64, UNIT_BYTES);
        XxHash3_64::oneshot_with_seed(self.seed(offset / UNIT_BYTES), unit).max(1)
    }

    /// What the unit at `offset` has for a sum while it is a hole.
    pub(crate) fn hole(&self, offset: u64) -> u64 {
        self.hole_of(offset / UNIT_BYTES)
    }

    /// What the unit with this number has for a sum while it is a hole.
    fn hole_of(&self, unit: u64) -> u64 {
        if self.layout.keeps_flushed { XxHash3_64::oneshot_with_seed(self.seed(unit), &[]).max(1) } else { 0 }
    }

    fn seed(&self, unit: u64) -> u64 {
        self.identity ^ unit.wrapping_mul(SPREAD)
    }

    /// The sum among `sums` that matches the unit at `offset`, if one does.
    pub(crate) fn vouching(&self, sums: UnitSums, offset: u64, unit: &[u8]) -> Option<u64> {
        let hole = self.hole(offset);
        // Also if its first data were about to be written.
        if sums.contains(hole) && is_zeros(unit) {
            return Some(hole);
        }
        let sum = self.sum(offset, unit);
        sums.contains(sum).then_some(sum)
    }

    /// Reads the page of sums of `group` of an object of `bytes`. Of units beyond its end, and of a group that was not
    /// written, there are none: what stands there is left over from before it was cut.
    pub(crate) fn decode(&self, page: &[u8], group: u64, bytes: u64, is_written: bool) -> Sums {
        let width = self.layout.entry_bytes;
        let first = group * GROUP_UNITS;
        let inside = bytes.div_ceil(UNIT_BYTES).saturating_sub(first).min(GROUP_UNITS) as usize;
        let unit = |index: usize| {
            // A page that the file does not reach to has never been written.
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

/// The sums of a group's units.
#[derive(Clone)]
pub(crate) struct Sums {
    /// The bytes of one unit's sums in the file.
    width: usize,
    units: Vec<UnitSums>,
}

impl Sums {
    /// The sums as they are in the file, between two places in the page.
    pub(crate) fn encode(&self, range: std::ops::Range<usize>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(range.len());
        for unit in &self.units[range.start / self.width..range.end / self.width] {
            let end = unit.end | if unit.is_end_flushed { END_IS_FLUSHED } else { 0 };
            let numbers = [unit.newest, unit.previous, unit.flushed, end];
            bytes.extend(numbers[..self.width / 8].iter().flat_map(|number| number.to_le_bytes()));
        }
        bytes
    }

    /// Length of the page in the file.
    pub(crate) fn page_bytes(&self) -> usize {
        self.units.len() * self.width
    }

    /// The sums of the unit of the object's byte at `offset`, which lies in this group.
    pub(crate) fn of(&mut self, offset: u64) -> &mut UnitSums {
        &mut self.units[(offset % GROUP_BYTES / UNIT_BYTES) as usize]
    }

    /// The sums of all units.
    pub(crate) fn units(&self) -> &[UnitSums] {
        &self.units
    }

    /// The units that have an end, by the offset of the object's end in them, the last first.
    pub(crate) fn ends(&self, group: u64) -> impl Iterator<Item = (u64, UnitSums)> {
        let ends = self.units.iter().enumerate().filter(|(_, unit)| (1..=UNIT_BYTES).contains(&unit.end));
        ends.rev().map(move |(at, unit)| (group * GROUP_BYTES + at as u64 * UNIT_BYTES + unit.end, *unit))
    }
}

/// Whether all of these bytes are zeros.
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
    fn a_unit_is_vouched_for_in_its_place_only() {
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
        fn sums_are_read_as_written(numbers in proptest::collection::vec(1..u64::MAX, 4 * 256)) {
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
                // Of an object that ends in the third unit of the group.
                let cut = seal.decode(&page, 3, 3 * GROUP_BYTES + 2 * UNIT_BYTES + 1, true);
                prop_assert_eq!(&cut.units()[..3], &units[..3]);
                let is_hole = |(at, unit): (usize, &UnitSums)| *unit == UnitSums::hole(seal.hole_of(768 + at as u64));
                prop_assert!(cut.units().iter().enumerate().skip(3).all(is_hole));
            }
        }

        #[test]
        fn a_page_of_zeros_is_one_of_holes_if_it_was_not_written(bytes in 1..GROUP_BYTES) {
            let lost = V3.decode(&[0; 8192], 0, bytes, true);
            let holes = V3.decode(&[0; 8192], 0, bytes, false);
            for (at, (lost, hole)) in (0..).step_by(4096).zip(lost.units().iter().zip(holes.units())) {
                prop_assert_eq!(*hole, UnitSums::hole(V3.hole(at)));
                prop_assert_eq!(*lost, if at < bytes { UnitSums::default() } else { *hole });
            }
        }
    }
}
