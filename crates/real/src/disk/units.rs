//! Where the data of an object lie in its file, and the checksums that vouch for them: arithmetic, without files.
//!
//! ```text
//! file    | header 4 KiB | length 4 KiB | sums 4 KiB | data 1 MiB | sums 4 KiB | data 1 MiB | ...
//!                                       '-------- group 0 -------' '-------- group 1 -------'
//! sums    | newest 8, previous 8 | newest, previous | ...     one pair for each unit of 4 KiB
//! length  | sequence 8, bytes 8, sum 8 | ... | sequence, bytes, sum |     at 0 and at 2048
//! ```
//!
//! A unit's sum (XXH3, 64 bits) is of its 4 KiB, with zeros after the object's end, seeded with the object's
//! identity and the unit's number. So a unit that was changed, or lies in another's place or in another object,
//! does not match. A unit never written has no sum and must be zeros: holes stay holes.
//!
//! A write puts its new sum beside that of what is there before it puts the data. So whenever an agent is killed,
//! one of the two matches, unless the data are torn. Once the data are there both sums are the new one, in
//! memory first and in the file with the next write of that page. The length page keeps how long the object was
//! when it was flushed: so a file that was cut is noticed. Its two records are written in turn.

use twox_hash::XxHash3_64;

use super::header;

/// What one sum vouches for.
pub(crate) const UNIT_BYTES: u64 = 4096;

const GROUP_UNITS: u64 = 256;
const GROUP_BYTES: u64 = GROUP_UNITS * UNIT_BYTES;
const SUMS_BYTES: u64 = GROUP_UNITS * 16;

/// Offset in the file, and length, of the page with the object's length.
pub(crate) const LENGTH_AT: u64 = header::BYTES as u64;
pub(crate) const LENGTH_BYTES: usize = 4096;

/// Where the groups begin.
pub(crate) const GROUPS_AT: u64 = LENGTH_AT + LENGTH_BYTES as u64;

/// Where the second record of the length lies in its page: in another sector of any disk.
const RECORD_BYTES: usize = LENGTH_BYTES / 2;

/// An odd number without pattern (the golden ratio), which spreads unit numbers over seeds.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// A group of an object: the part of it that one page of sums is for.
pub(crate) fn group_of(offset: u64) -> u64 {
    offset / GROUP_BYTES
}

/// The end of the group that `offset` lies in.
pub(crate) fn group_end(offset: u64) -> u64 {
    (group_of(offset) + 1).saturating_mul(GROUP_BYTES)
}

/// Where the sums of a group lie in the file. Groups no file can have stay such.
pub(crate) fn sums_in_file(group: u64) -> u64 {
    group.saturating_mul(SUMS_BYTES + GROUP_BYTES).saturating_add(GROUPS_AT)
}

/// Where the byte of an object at `offset` lies in its file. Offsets no file can have stay such.
pub(crate) fn in_file(offset: u64) -> u64 {
    sums_in_file(group_of(offset)).saturating_add(SUMS_BYTES + offset % GROUP_BYTES)
}

/// How long the file of an object of `bytes` is.
pub(crate) fn file_bytes(bytes: u64) -> u64 {
    bytes.checked_sub(1).map_or(GROUPS_AT, |last| in_file(last).saturating_add(1))
}

/// How long the object in a file of `file_bytes` is; `None` if that is too short to be one.
pub(crate) fn object_bytes(file_bytes: u64) -> Option<u64> {
    let groups = file_bytes.checked_sub(GROUPS_AT)?;
    let rest = groups % (SUMS_BYTES + GROUP_BYTES);
    Some(groups / (SUMS_BYTES + GROUP_BYTES) * GROUP_BYTES + rest.saturating_sub(SUMS_BYTES))
}

/// The sums of a group's units.
#[derive(Clone)]
pub(crate) struct Sums(Vec<[u64; 2]>);

impl Sums {
    pub(crate) const BYTES: usize = SUMS_BYTES as usize;

    /// Reads the sums of `group` of an object of `bytes`. Of units beyond its end there are none: they are left
    /// over from before it was cut.
    pub(crate) fn decode(page: &[u8], group: u64, bytes: u64) -> Sums {
        let units = bytes.div_ceil(UNIT_BYTES).saturating_sub(group * GROUP_UNITS).min(GROUP_UNITS) as usize;
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let mut sums = vec![[0; 2]; GROUP_UNITS as usize];
        // A page that the file does not reach to has never been written.
        for (sum, pair) in sums.iter_mut().zip(page.chunks_exact(16)).take(units) {
            *sum = [number(&pair[..8]), number(&pair[8..])];
        }
        Sums(sums)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        self.0.iter().flatten().flat_map(|sum| sum.to_le_bytes()).collect()
    }

    /// The sums of the unit of the object's byte at `offset`, which lies in this group.
    pub(crate) fn of(&mut self, offset: u64) -> &mut [u64; 2] {
        &mut self.0[(offset % GROUP_BYTES / UNIT_BYTES) as usize]
    }

    /// Notes that units from that of `offset` on have never been written.
    pub(crate) fn clear_from(&mut self, offset: u64) {
        self.0[(offset % GROUP_BYTES / UNIT_BYTES) as usize..].fill([0; 2]);
    }
}

/// The sum of the unit at `offset` of the object with this identity. No sum is zero.
pub(crate) fn sum(identity: u64, offset: u64, unit: &[u8]) -> u64 {
    debug_assert_eq!(unit.len() as u64, UNIT_BYTES);
    let seed = identity ^ (offset / UNIT_BYTES).wrapping_mul(SPREAD);
    XxHash3_64::oneshot_with_seed(seed, unit).max(1)
}

/// Which of its sums vouches for a unit that lies at `offset`: 0 for a unit that was never written.
pub(crate) fn vouching(sums: [u64; 2], identity: u64, offset: u64, unit: &[u8]) -> Option<u64> {
    if sums != [0; 2] {
        let sum = sum(identity, offset, unit);
        if sums.contains(&sum) {
            return Some(sum);
        }
    }
    // Also if its first data were about to be written.
    (sums[1] == 0 && is_zeros(unit)).then_some(0)
}

fn is_zeros(bytes: &[u8]) -> bool {
    bytes.chunks(64).all(|chunk| chunk.iter().fold(0, |seen, byte| seen | byte) == 0)
}

/// How long an object was when it was flushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Length {
    /// Grows with each record that is written.
    pub(crate) sequence: u64,
    pub(crate) bytes: u64,
}

impl Length {
    /// The record, and where in the file it is to be written.
    pub(crate) fn encode(self, identity: u64) -> (Vec<u8>, u64) {
        let numbers = [self.sequence, self.bytes];
        let mut record: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        record.extend_from_slice(&XxHash3_64::oneshot_with_seed(identity, &record).to_le_bytes());
        (record, LENGTH_AT + self.sequence % 2 * RECORD_BYTES as u64)
    }

    /// The latest of the records in a page. One that was not written to its end does not count.
    pub(crate) fn decode(page: &[u8; LENGTH_BYTES], identity: u64) -> Length {
        let record = |at: usize| {
            let number = |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().expect("eight bytes"));
            let is_whole = XxHash3_64::oneshot_with_seed(identity, &page[at..at + 16]) == number(at + 16);
            is_whole.then_some(Length { sequence: number(at), bytes: number(at + 8) })
        };
        record(0).max(record(RECORD_BYTES)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IDENTITY: u64 = 77;

    #[test]
    fn a_unit_is_vouched_for_in_its_place_only() {
        let unit = vec![5; UNIT_BYTES as usize];
        let here = sum(IDENTITY, 8192, &unit);
        assert_eq!(vouching([here, here], IDENTITY, 8192, &unit), Some(here));
        assert_eq!(vouching([1, here], IDENTITY, 8192, &unit), Some(here));
        assert_eq!(vouching([here, here], IDENTITY, 4096, &unit), None, "misplaced");
        assert_eq!(vouching([here, here], IDENTITY + 1, 8192, &unit), None, "foreign");
        assert_eq!(vouching([0, 0], IDENTITY, 8192, &unit), None, "where nothing was written");
        let mut torn = unit;
        torn[4095] ^= 1;
        assert_eq!(vouching([here, here], IDENTITY, 8192, &torn), None, "changed");
        let zeros = vec![0; UNIT_BYTES as usize];
        assert_eq!(vouching([0, 0], IDENTITY, 8192, &zeros), Some(0), "a hole");
        assert_eq!(vouching([here, 0], IDENTITY, 8192, &zeros), Some(0), "about to be written");
        assert_eq!(vouching([here, here], IDENTITY, 8192, &zeros), None, "lost");
    }

    #[test]
    fn the_latest_whole_record_of_the_length_counts() {
        let mut page = [0; LENGTH_BYTES];
        assert_eq!(Length::decode(&page, IDENTITY), Length::default());
        for sequence in 1..6 {
            let (record, at) = Length { sequence, bytes: sequence * 1000 }.encode(IDENTITY);
            let at = (at - LENGTH_AT) as usize;
            page[at..at + record.len()].copy_from_slice(&record);
            assert_eq!(Length::decode(&page, IDENTITY).bytes, sequence * 1000);
        }
        page[RECORD_BYTES + 9] ^= 1;
        assert_eq!(Length::decode(&page, IDENTITY), Length { sequence: 4, bytes: 4000 });
    }

    proptest! {
        #[test]
        fn lengths_of_objects_and_files_belong_together(bytes in 0..1_u64 << 50, near in 0..3_u64) {
            for bytes in [bytes, bytes / GROUP_BYTES * GROUP_BYTES + near] {
                prop_assert_eq!(object_bytes(file_bytes(bytes)), Some(bytes));
                prop_assert!(in_file(bytes) >= file_bytes(bytes));
                prop_assert_eq!(in_file(bytes) % UNIT_BYTES, bytes % UNIT_BYTES);
            }
        }

        #[test]
        fn sums_are_read_as_written(numbers in proptest::collection::vec(any::<[u64; 2]>(), 256)) {
            let sums = Sums(numbers.clone());
            prop_assert_eq!(Sums::decode(&sums.encode(), 3, u64::MAX).0, numbers.clone());
            // Of an object that ends in the third unit of the group.
            let cut = Sums::decode(&sums.encode(), 3, 3 * GROUP_BYTES + 2 * UNIT_BYTES + 1).0;
            prop_assert_eq!(&cut[..3], &numbers[..3]);
            prop_assert!(cut[3..].iter().all(|pair| *pair == [0; 2]));
        }
    }
}
