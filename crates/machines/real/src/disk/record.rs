//! Flushed state of an object: its length, its written groups, and a note of the file system.
//!
//! ```text
//! | sequence 8 | bytes 8 | sum of these 8 | note length 2 | runs 2 | note ...
//! | first, end of each run 8 + 8 ... | sum of all 8 |
//! ```
//!
//! A file has two records, written alternately. An incompletely written record is ignored, and the other one has the
//! previous state. A record is written only after all the state it describes is in stable storage, and describes a
//! single state: a note never comes with the length of another state. The first 24 bytes are the complete record of
//! earlier programs.
//!
//! A new file has a record in both positions, and a disk writes a sector atomically. So if the first 24 bytes of a
//! record do not match their checksum, no power cut interrupted it: the record is lost, and may have been the later
//! one.
//!
//! The runs list the groups that have a page of checksums. They distinguish a page that was lost with its data, and
//! reads as zeros, from a hole.

use machine::RangeSet;
use twox_hash::XxHash3_64;

use super::layout::Layout;

/// Limit of the runs of groups in a record. If an object has more holes, the record omits the other runs.
const RUNS_MAX: usize = 96;

const PLAIN_BYTES: usize = 24;
const RUN_BYTES: usize = 16;

/// Limit of an object's note in bytes.
const NOTE_BYTES_MAX: usize = 256;

/// Limit of a record in bytes.
pub(crate) const BYTES_MAX: usize = PLAIN_BYTES + 4 + NOTE_BYTES_MAX + RUNS_MAX * RUN_BYTES + 8;

// Records of version 2 have half a page each.
const _: () = assert!(BYTES_MAX <= 2048);

/// Flushed state of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// Sequence number; grows with each written record.
    pub(crate) sequence: u64,
    /// Length of the object in bytes.
    pub(crate) bytes: u64,
    /// Groups that had been written.
    pub(crate) written: RangeSet,
    /// Note of a file system of an older version; empty for objects created by this version.
    pub(crate) note: Vec<u8>,
}

impl Record {
    /// Encodes the record, and returns the bytes and their offset in the file.
    pub(crate) fn encode(&self, layout: &Layout, identity: u64) -> (Vec<u8>, u64) {
        let runs = self.written.len().min(RUNS_MAX);
        let mut bytes = Vec::with_capacity(BYTES_MAX);
        bytes.extend_from_slice(&self.sequence.to_le_bytes());
        bytes.extend_from_slice(&self.bytes.to_le_bytes());
        push_sum(&mut bytes, identity);
        bytes.extend_from_slice(&(self.note.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&(runs as u16).to_le_bytes());
        bytes.extend_from_slice(&self.note);
        for run in self.written.ranges().take(runs) {
            bytes.extend_from_slice(&run.start.to_le_bytes());
            bytes.extend_from_slice(&run.end.to_le_bytes());
        }
        push_sum(&mut bytes, identity);
        (bytes, layout.records[(self.sequence % 2) as usize])
    }

    /// Decodes a record, if it was written completely.
    fn decode(bytes: &[u8], layout: &Layout, identity: u64) -> Option<Record> {
        let sequence = checked(bytes, PLAIN_BYTES, identity).map(|plain| number(&plain[..8]))?;
        let object_bytes = number(&bytes[8..16]);
        let lengths = bytes.get(PLAIN_BYTES..PLAIN_BYTES + 4)?;
        let length = |at: usize| usize::from(u16::from_le_bytes([lengths[at], lengths[at + 1]]));
        let (note_bytes, runs) = (length(0), length(2));
        let end = PLAIN_BYTES + 4 + note_bytes + runs * RUN_BYTES + 8;
        let Some(whole) = checked(bytes, end, identity) else {
            // Format of earlier programs.
            let is_plain = !layout.keeps_flushed && bytes.get(PLAIN_BYTES..PLAIN_BYTES + 12)? == [0; 12];
            return is_plain.then(|| Record { sequence, bytes: object_bytes, ..Record::default() });
        };
        let (note, runs) = whole[PLAIN_BYTES + 4..].split_at(note_bytes);
        let runs = runs.chunks_exact(RUN_BYTES).map(|run| number(&run[..8])..number(&run[8..])).collect();
        Some(Record { sequence, bytes: object_bytes, written: runs, note: note.to_vec() })
    }

    /// Returns the records of a newly created object, the latest last.
    pub(crate) fn first() -> [Record; 2] {
        [0, 1].map(|sequence| Record { sequence, ..Record::default() })
    }

    /// Returns the latest record in the first bytes of a file.
    pub(crate) fn latest(begin_of_file: &[u8], layout: &Layout, identity: u64) -> Option<Record> {
        let decode = |at| Record::decode(bytes_at(begin_of_file, at), layout, identity);
        layout.records.into_iter().filter_map(decode).max_by_key(|record| record.sequence)
    }

    /// Returns true if a record is missing from the first bytes of a file for another reason than a power cut.
    pub(crate) fn is_one_lost(begin_of_file: &[u8], layout: &Layout, identity: u64) -> bool {
        let is_lost = |at| checked(bytes_at(begin_of_file, at), PLAIN_BYTES, identity).is_none();
        layout.records.into_iter().any(is_lost)
    }
}

/// Returns the bytes that a record at `at` may have.
fn bytes_at(begin_of_file: &[u8], at: u64) -> &[u8] {
    let bytes = begin_of_file.get(at as usize..).unwrap_or_default();
    &bytes[..bytes.len().min(BYTES_MAX)]
}

/// Returns the first `end` bytes without their checksum, if they match it.
fn checked(bytes: &[u8], end: usize, identity: u64) -> Option<&[u8]> {
    let (checked, sum) = bytes.get(..end)?.split_at(end - 8);
    (XxHash3_64::oneshot_with_seed(identity, checked) == number(sum)).then_some(checked)
}

fn push_sum(bytes: &mut Vec<u8>, identity: u64) {
    let sum = XxHash3_64::oneshot_with_seed(identity, bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: u64 = 77;

    fn record(sequence: u64) -> Record {
        let written = [0..sequence, 100..101].into_iter().collect();
        Record { sequence, bytes: sequence * 1000, written, note: vec![sequence as u8; sequence as usize] }
    }

    #[test]
    fn the_latest_complete_record_is_valid() {
        for layout in [Layout::V2, Layout::V3] {
            let mut file = vec![0; layout.groups as usize];
            assert_eq!(Record::latest(&file, &layout, IDENTITY), None);
            for sequence in 1..6 {
                let (bytes, at) = record(sequence).encode(&layout, IDENTITY);
                file[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
                assert_eq!(Record::latest(&file, &layout, IDENTITY), Some(record(sequence)));
            }
            for at in [0, 9, 24, 28, 40] {
                let mut torn = file.clone();
                torn[layout.records[1] as usize + at] ^= 1;
                assert_eq!(Record::latest(&torn, &layout, IDENTITY), Some(record(4)), "byte {at}");
            }
            assert_eq!(Record::latest(&file, &layout, IDENTITY + 1), None, "another object's");
        }
    }

    #[test]
    fn records_of_earlier_releases_are_decoded() {
        let mut file = vec![0; Layout::V2.groups as usize];
        let (bytes, at) =
            Record { sequence: 3, bytes: 5000, ..Record::default() }.encode(&Layout::V2, IDENTITY);
        file[at as usize..at as usize + PLAIN_BYTES].copy_from_slice(&bytes[..PLAIN_BYTES]);
        let read = Record::latest(&file, &Layout::V2, IDENTITY);
        assert_eq!(read, Some(Record { sequence: 3, bytes: 5000, ..Record::default() }));
    }

    #[test]
    fn the_longest_record_fits_into_its_space() {
        let written = (0..1000).map(|run| 3 * run..3 * run + 1).collect();
        let record = Record { sequence: 2, bytes: u64::MAX, written, note: vec![7; NOTE_BYTES_MAX] };
        let (bytes, at) = record.encode(&Layout::V3, IDENTITY);
        assert_eq!(bytes.len(), BYTES_MAX);
        let mut file = vec![0; Layout::V3.groups as usize];
        file[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
        let read = Record::latest(&file, &Layout::V3, IDENTITY).expect("whole");
        let expected: RangeSet = record.written.ranges().take(RUNS_MAX).collect();
        assert_eq!((read.note, read.written), (record.note, expected));
    }
}
