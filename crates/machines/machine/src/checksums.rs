//! Checksums that accompany data from the client to the disk and back, through the memory of every node on the path.
//!
//! ```text
//! client: memory --sums--> message --> agent: message, block of the cache --check--> disk
//! client: memory <--check-- message <-- agent: block of the cache <--sums-- disk
//! ```
//!
//! Memory shared by payloads has a checksum for each unit of 4 KiB. Checksums are computed where data are known to be
//! correct: by the sender of a message whose bytes have no checksums, and by a disk after it has verified the data.
//! They move with the memory and are updated when it changes. If a unit does not match its checksum when part of it is
//! copied or sent, the copy gets a checksum that never matches. So damaged data never get a matching checksum again.
//! Records gathered from a block or scattered into it are not checked at that step, since the checksums of the message
//! cover them.

use std::ops::Range;

use twox_hash::XxHash3_64;

/// Length in bytes of a checksum unit: equal to the unit of a disk, so that whole units need no second checksum.
pub const CHECKSUM_UNIT_BYTES: u64 = 4096;

const UNIT: usize = CHECKSUM_UNIT_BYTES as usize;

/// Marks a unit without a known checksum.
const UNKNOWN: u64 = 0;

/// Checksum that matches no contents.
const DAMAGED: u64 = 1;

/// Checksums of consecutive units of a range of bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checksums {
    /// Length in bytes of the first unit if this unit is shorter than [`CHECKSUM_UNIT_BYTES`], otherwise 0. The last
    /// unit can be short, too.
    lead: usize,
    /// Checksum of each unit; empty if no unit has a checksum.
    sums: Vec<u64>,
}

/// Mismatch of bytes in memory and their checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {bytes} bytes at {offset} do not match their checksum")]
pub struct ChecksumMismatch {
    /// Offset of the unit in the payload, in bytes.
    pub offset: u64,
    /// Length of the unit, in bytes.
    pub bytes: u64,
}

impl Checksums {
    /// Returns the checksums of `bytes`, in units that begin with the first byte.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Checksums { lead: 0, sums: bytes.chunks(UNIT).map(sum).collect() }
    }

    /// Returns checksums computed by the sender of a payload. The first unit has `lead` bytes, or the full length if
    /// `lead` is 0.
    pub fn received(lead: usize, sums: Vec<u64>) -> Self {
        Checksums { lead, sums }
    }

    /// Returns the number of units in `bytes` bytes. The first unit has `lead` bytes, or the full length if `lead` is
    /// 0.
    pub fn count(lead: usize, bytes: u64) -> u64 {
        let rest = bytes.saturating_sub(lead as u64).div_ceil(CHECKSUM_UNIT_BYTES);
        rest + u64::from(lead > 0 && bytes > 0)
    }

    /// Returns the length in bytes of the first unit if it is short, otherwise 0.
    pub fn lead(&self) -> usize {
        self.lead
    }

    /// Returns the checksum of each unit.
    pub fn sums(&self) -> &[u64] {
        &self.sums
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// Returns checksums for `bytes` bytes that match no contents.
    pub(crate) fn damaged(bytes: usize) -> Self {
        Checksums { lead: 0, sums: vec![DAMAGED; bytes.div_ceil(UNIT)] }
    }

    /// Returns the index of the unit with the byte at `offset`.
    fn unit_of(&self, offset: usize) -> usize {
        offset.checked_sub(self.lead).map_or(0, |rest| rest / UNIT + usize::from(self.lead > 0))
    }

    /// Returns the byte range of a unit, if all units together have `bytes` bytes.
    fn range_of(&self, unit: usize, bytes: usize) -> Range<usize> {
        let start_of = |unit: usize| match self.lead {
            0 => unit * UNIT,
            lead => unit.checked_sub(1).map_or(0, |whole| lead + whole * UNIT),
        };
        start_of(unit)..start_of(unit + 1).min(bytes)
    }

    /// Returns the units that overlap `range`.
    fn units_in(&self, range: &Range<usize>) -> Range<usize> {
        if range.is_empty() || self.is_empty() {
            return 0..0;
        }
        self.unit_of(range.start)..self.unit_of(range.end - 1) + 1
    }

    fn matches(&self, unit: usize, memory: &[u8]) -> bool {
        let expected = self.sums.get(unit).copied().unwrap_or(UNKNOWN);
        expected == UNKNOWN
            || (expected != DAMAGED && expected == sum(&memory[self.range_of(unit, memory.len())]))
    }

    /// Checks the units of `memory` that overlap `range`. Fails with the range of the first unit that does not match.
    pub(crate) fn check(&self, memory: &[u8], range: &Range<usize>) -> Result<(), Range<usize>> {
        match self.units_in(range).find(|&unit| !self.matches(unit, memory)) {
            None => Ok(()),
            Some(unit) => Err(self.range_of(unit, memory.len())),
        }
    }

    /// Returns the checksums of the part `range` of `memory`: copies the checksums of whole units, and computes the
    /// others.
    pub(crate) fn of_part(&self, memory: &[u8], range: &Range<usize>) -> Checksums {
        if self.is_empty() {
            return Checksums::of(&memory[range.clone()]);
        }
        let units = self.units_in(range);
        let first_end = self.range_of(units.start, memory.len()).end.min(range.end);
        let is_short = first_end - range.start < UNIT && first_end < range.end;
        let lead = if is_short { first_end - range.start } else { 0 };
        let of_unit = |unit| {
            let whole = self.range_of(unit, memory.len());
            let here = whole.start.max(range.start)..whole.end.min(range.end);
            match self.sums[unit] {
                expected if here == whole && expected != UNKNOWN => expected,
                _ if self.matches(unit, memory) => sum(&memory[here]),
                _ => DAMAGED,
            }
        };
        Checksums { lead, sums: units.map(of_unit).collect() }
    }

    /// Updates the checksums for a change of `memory`. Units that are only partly replaced are checked before the
    /// change. Units that are changed in many small parts have no checksum afterwards: computing one after each of many
    /// small writes would take longer than the writes.
    pub(crate) fn follow(&mut self, memory: &mut [u8], change: &MemoryChange, make: impl FnOnce(&mut [u8])) {
        let MemoryChange { range, is_whole, source } = change;
        if self.is_empty()
            && (*source == ChangeSource::Unknown || (!is_whole && *source == ChangeSource::Right))
        {
            return make(memory);
        }
        if self.is_empty() {
            *self = Checksums { lead: 0, sums: vec![UNKNOWN; memory.len().div_ceil(UNIT)] };
        }
        let units = self.units_in(range);
        let is_inside =
            |whole: &Range<usize>| *is_whole && range.start <= whole.start && whole.end <= range.end;
        let rights: Vec<bool> = units
            .clone()
            .map(|unit| is_inside(&self.range_of(unit, memory.len())) || self.matches(unit, memory))
            .collect();
        make(memory);
        for ((number, unit), was_right) in units.enumerate().zip(rights) {
            let whole = self.range_of(unit, memory.len());
            self.sums[unit] = match source {
                ChangeSource::Units(sums) if is_inside(&whole) => sums[number],
                source if !was_right || !source.is_right(number) => DAMAGED,
                _ if *is_whole => sum(&memory[whole]),
                _ => UNKNOWN,
            };
        }
    }

    /// Returns true if a unit was found damaged when it was copied.
    pub(crate) fn is_damaged(&self) -> bool {
        self.sums.contains(&DAMAGED)
    }
}

/// Change of memory with checksums, or of memory that gets checksums.
pub(crate) struct MemoryChange {
    /// Range from the first changed byte to the last.
    pub(crate) range: Range<usize>,
    /// True if every byte of the range is replaced.
    pub(crate) is_whole: bool,
    pub(crate) source: ChangeSource,
}

/// State of the checksums of the replacing bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChangeSource {
    /// The bytes have no checksums.
    Unknown,
    /// All checksums match.
    Right,
    /// Some checksums do not match.
    Damaged,
    /// The units have these checksums and are aligned with the replaced units.
    Units(Vec<u64>),
}

impl ChangeSource {
    fn is_right(&self, unit: usize) -> bool {
        match self {
            ChangeSource::Unknown | ChangeSource::Right => true,
            ChangeSource::Damaged => false,
            ChangeSource::Units(sums) => sums[unit] != DAMAGED,
        }
    }
}

/// Returns the checksum of a unit: never [`UNKNOWN`] or [`DAMAGED`].
fn sum(unit: &[u8]) -> u64 {
    XxHash3_64::oneshot(unit).max(DAMAGED + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * 7 + at / 251) as u8).collect()
    }

    #[test]
    fn units_begin_after_a_short_first_unit() {
        let sums = Checksums { lead: 10, sums: vec![5; 3] };
        assert_eq!(Checksums::count(10, 10 + 4096 + 1), 3);
        assert_eq!(
            (Checksums::count(0, 4096), Checksums::count(0, 4097), Checksums::count(10, 3)),
            (1, 2, 1)
        );
        let ranges = [0, 1, 2].map(|unit| sums.range_of(unit, 4107));
        assert_eq!(ranges, [0..10, 10..4106, 4106..4107]);
        assert_eq!([0, 9, 10, 4105, 4106].map(|at| sums.unit_of(at)), [0, 0, 1, 1, 2]);
        assert_eq!(sums.units_in(&(9..11)), 0..2);
    }

    #[test]
    fn checksums_of_whole_units_are_reused() {
        let mut memory = bytes(5 * UNIT);
        let sums = Checksums::of(&memory);
        memory[2 * UNIT + 5] ^= 1;
        let part = sums.of_part(&memory, &(100..4 * UNIT + 50));
        assert_eq!(part.lead, UNIT - 100);
        assert_eq!(part.sums[1..4], sums.sums[1..4]);
        assert!(part.check(&memory[100..4 * UNIT + 50], &(0..2 * UNIT - 100)).is_ok());
        let damaged = part.check(&memory[100..4 * UNIT + 50], &(0..4 * UNIT));
        assert_eq!(damaged, Err(2 * UNIT - 100..3 * UNIT - 100));
        let inside = sums.of_part(&memory, &(2 * UNIT + 50..2 * UNIT + 60));
        assert_eq!(inside, Checksums { lead: 0, sums: vec![DAMAGED] }, "another byte of its unit is damaged");
    }

    proptest! {
        /// The checksums of a part of a part match, unless a bit of their units was flipped before.
        #[test]
        fn parts_of_parts_match_until_a_bit_flips(
            length in 1usize..20_000,
            cuts in proptest::collection::vec((any::<proptest::sample::Index>(), any::<proptest::sample::Index>()), 1..4),
            flip in any::<proptest::sample::Index>(),
        ) {
            let mut memory = bytes(length);
            let mut sums = Checksums::of(&memory);
            for (start, end) in cuts {
                let (start, end) = (start.index(memory.len()), end.index(memory.len()) + 1);
                let range = start.min(end - 1)..end.max(start + 1);
                sums = sums.of_part(&memory, &range);
                memory = memory[range].to_vec();
                prop_assert_eq!(sums.sums.len() as u64, Checksums::count(sums.lead, memory.len() as u64));
                prop_assert_eq!(sums.check(&memory, &(0..memory.len())), Ok(()));
            }
            let at = flip.index(memory.len());
            memory[at] ^= 0x10;
            let unit = sums.check(&memory, &(0..memory.len())).expect_err("a bit was flipped");
            prop_assert!(unit.contains(&at));
            let again = sums.of_part(&memory, &(at..at + 1));
            prop_assert!(again.check(&memory[at..at + 1], &(0..1)).is_err(), "it stays damaged");
        }

        /// After changes of any kind the checksums match, except those of damaged data, which never match. Units
        /// changed in parts have no checksums.
        #[test]
        fn checksums_follow_changes_and_detect_damage(
            length in 1usize..20_000,
            changes in proptest::collection::vec(
                (any::<proptest::sample::Index>(), any::<proptest::sample::Index>(), any::<bool>()), 1..6),
            flip in any::<proptest::sample::Index>(),
        ) {
            let mut memory = bytes(length);
            let mut sums = Checksums::of(&memory);
            let are_whole = changes.iter().all(|&(_, _, is_whole)| is_whole);
            for (start, end, is_whole) in changes {
                let (start, end) = (start.index(length), end.index(length) + 1);
                let range = start.min(end - 1)..end.max(start + 1);
                let step = if is_whole { 1 } else { 3 };
                let change = MemoryChange { range: range.clone(), is_whole, source: ChangeSource::Right };
                sums.follow(&mut memory, &change, |memory| {
                    memory[range].iter_mut().step_by(step).for_each(|byte| *byte = byte.wrapping_add(1));
                });
                prop_assert_eq!(sums.check(&memory, &(0..length)), Ok(()));
            }
            let at = flip.index(length);
            memory[at] ^= 1;
            let change = MemoryChange { range: at..at + 1, is_whole: false, source: ChangeSource::Right };
            sums.follow(&mut memory, &change, |_| {});
            prop_assert!(!are_whole || sums.check(&memory, &(at..at + 1)).is_err());
        }
    }
}
