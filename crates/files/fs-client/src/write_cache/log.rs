//! The log of a write cache: data in the order of writing, and an entry for each write.
//!
//! ```text
//!  directory   | file, offset, bytes, place, time | ...   an entry for each write, in order
//!  data        | bytes of the first write | of the second | ...
//! ```
//!
//! A write needs no lookup and overwrites no data, because the flush sorts the entries.

use layout::Striping;

use crate::directory::Entry;

/// Memory of an entry in bytes. It is for the file, time, offset and length, and for a word used for lookups (ENWRICH
/// report, section 5.1).
pub const ENTRY_BYTES: u64 = 24;

/// Division of a write cache's memory between the data and the directory that describes them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Division {
    /// The directory has a fixed fraction of the memory, and the data have the rest. The cache is full when one of the
    /// two is full.
    Fixed {
        /// Fraction of the memory that the directory has, more than 0 and less than 1.
        directory: f64,
    },
    /// The data grow from one end of the memory, and the directory from the other end. The cache is full when they
    /// meet.
    Shared,
}

/// The section of a write cache that is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The written bytes.
    Data,
    /// The entries that describe them.
    Directory,
}

/// Maximum number of entries in a log. It is limited because one I/O node may receive all entries of all members.
const ENTRIES_MAX: u64 = 1 << 18;

/// The writes since the last flush.
pub(super) struct Log {
    division: Division,
    /// Offset of the log's data in the cache's memory.
    base: u64,
    /// Memory for the data and the directory together, in bytes.
    bytes: u64,
    data_bytes: u64,
    count: u64,
    /// Entries by file index.
    entries: Vec<Vec<Entry>>,
}

impl Log {
    pub(super) fn new(base: u64, bytes: u64, division: Division) -> Self {
        Log { division, base, bytes, data_bytes: 0, count: 0, entries: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the used fraction of the fuller section, from 0 to 1.
    pub(super) fn fullness(&self) -> f64 {
        let of_entries = self.count as f64 / self.entries_capacity().max(1) as f64;
        let of_data = match self.division {
            Division::Fixed { .. } => self.data_bytes as f64 / self.data_capacity() as f64,
            Division::Shared => (self.data_bytes + self.count * ENTRY_BYTES) as f64 / self.bytes as f64,
        };
        of_entries.max(of_data)
    }

    /// Returns the maximum memory for data, in bytes.
    pub(super) fn data_capacity(&self) -> u64 {
        match self.division {
            Division::Fixed { directory } => self.bytes - (self.bytes as f64 * directory) as u64,
            Division::Shared => self.bytes.saturating_sub(ENTRY_BYTES),
        }
    }

    fn entries_capacity(&self) -> u64 {
        let room = match self.division {
            Division::Fixed { directory } => (self.bytes as f64 * directory) as u64 / ENTRY_BYTES,
            Division::Shared => (self.bytes - self.data_bytes) / ENTRY_BYTES,
        };
        room.min(ENTRIES_MAX)
    }

    /// Returns the full section, if another entry with one byte would not fit.
    pub(super) fn full(&self) -> Option<Section> {
        if self.count + 1 > self.entries_capacity() {
            Some(Section::Directory)
        } else if self.free() == 0 {
            Some(Section::Data)
        } else {
            None
        }
    }

    /// Returns the free space for the data of one more entry, in bytes.
    fn free(&self) -> u64 {
        match self.division {
            Division::Fixed { .. } => self.data_capacity() - self.data_bytes,
            Division::Shared => self.bytes.saturating_sub(self.data_bytes + (self.count + 1) * ENTRY_BYTES),
        }
    }

    /// Returns the number of bytes to write next, out of `bytes` bytes at `offset` of a file. If not all of them fit,
    /// these are the bytes up to the last block boundary that fits, so that no block is written twice. If even an empty
    /// log could not hold the first block, these are as many bytes as fit.
    ///
    /// # Errors
    /// Fails with the section that is full.
    pub(super) fn room_for(&self, striping: Striping, offset: u64, bytes: u64) -> Result<u64, Section> {
        if let Some(full) = self.full() {
            return Err(full);
        }
        let (free, block) = (self.free(), striping.block_bytes());
        if bytes <= free {
            return Ok(bytes);
        }
        let whole_blocks = ((offset + free) / block * block).saturating_sub(offset);
        match whole_blocks {
            0 if bytes.min(block) > self.data_capacity() => Ok(free),
            0 => Err(Section::Data),
            bytes => Ok(bytes),
        }
    }

    /// Appends an entry for a write that fits, to the file of this index, at a time in nanoseconds. Returns the offset
    /// of its data in the cache's memory.
    pub(super) fn append(&mut self, file: usize, offset: u64, bytes: u64, time: u64) -> u64 {
        let at = self.base + self.data_bytes;
        self.data_bytes += bytes;
        self.count += 1;
        if self.entries.len() <= file {
            self.entries.resize_with(file + 1, Vec::new);
        }
        self.entries[file].push(Entry { offset, bytes, at, time });
        at
    }

    /// Returns the entries of the file of this index, in the order of writing.
    pub(super) fn entries_of(&self, file: usize) -> &[Entry] {
        self.entries.get(file).map_or(&[], |entries| entries)
    }

    /// Returns the number of bytes written.
    #[cfg(test)]
    pub(super) fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Drops the entries of the file of this index. The space of their data is not reused until the log is empty.
    pub(super) fn forget(&mut self, file: usize) {
        if let Some(entries) = self.entries.get_mut(file) {
            self.count -= entries.len() as u64;
            entries.clear();
        }
        if self.is_empty() {
            self.data_bytes = 0;
        }
    }

    /// Drops all entries.
    pub(super) fn clear(&mut self) {
        self.data_bytes = 0;
        self.count = 0;
        self.entries.iter_mut().for_each(Vec::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIXED: Division = Division::Fixed { directory: 0.1 };

    fn striping() -> Striping {
        Striping::new(8192, 16).unwrap()
    }

    /// Returns the number of flushes for a program that writes `count` records of `bytes` bytes in sequence, including
    /// the last flush.
    fn flushes(log: &mut Log, count: u64, bytes: u64) -> u64 {
        let mut flushes = 0;
        for record in 0..count {
            let mut left = bytes;
            while left > 0 {
                let offset = record * bytes + (bytes - left);
                match log.room_for(striping(), offset, left) {
                    Ok(taken) => {
                        log.append(0, offset, taken, record);
                        left -= taken;
                    }
                    Err(_) => {
                        flushes += 1;
                        log.clear();
                    }
                }
            }
        }
        flushes + 1
    }

    /// The expected values are from the ENWRICH report, section 5.1, or follow from the sizes in its figure 6.
    #[test]
    fn the_number_of_flushes_agrees_with_the_report() {
        let mib = 1 << 20;
        for (bytes, written, record, expected) in [
            (mib, 64 * mib, 8192, 72),
            (mib, 4 * mib, 8192, 5),
            (mib, 4 * mib, 512, 5),
            (mib, 4 * mib, 4 * mib, 5),
            (mib / 2, 4 * mib, 8192, 9),
            (2 * mib, 4 * mib, 8192, 3),
            (mib, mib / 2, 8, 16),
        ] {
            let mut log = Log::new(0, bytes, FIXED);
            assert_eq!(flushes(&mut log, written / record, record), expected, "{written} by {record}");
        }
    }

    #[test]
    fn small_writes_fill_the_directory_and_large_ones_the_data() {
        for (bytes, section) in [(8, Section::Directory), (215, Section::Directory), (512, Section::Data)] {
            let mut log = Log::new(0, 1 << 20, FIXED);
            let mut offset = 0;
            while log.room_for(striping(), offset, bytes).is_ok() {
                log.append(0, offset, bytes, 0);
                offset += bytes;
            }
            assert_eq!(log.room_for(striping(), offset, bytes), Err(section), "{bytes}");
        }
    }

    proptest! {
        /// The data and the directory together stay within the memory, the data of each entry follow those of the entry
        /// before it, and an empty log always has space for some bytes.
        #[test]
        fn a_log_stays_within_its_memory(
            writes in prop::collection::vec((0u64..5000, 1u64..3000), 1..60),
            shared: bool,
        ) {
            let division = if shared { Division::Shared } else { Division::Fixed { directory: 0.3 } };
            let striping = Striping::new(512, 3).unwrap();
            let mut log = Log::new(0, 2000, division);
            for (time, (offset, bytes)) in (0..).zip(writes) {
                let mut done = 0;
                while done < bytes {
                    match log.room_for(striping, offset + done, bytes - done) {
                        Ok(taken) => {
                            prop_assert!(taken > 0 && taken <= bytes - done);
                            let before = log.data_bytes();
                            prop_assert_eq!(log.append(0, offset + done, taken, time), before);
                            prop_assert!(log.data_bytes() <= log.data_capacity());
                            prop_assert!(log.data_bytes() + log.count * ENTRY_BYTES <= 2000);
                            done += taken;
                        }
                        Err(_) => {
                            prop_assert!(log.count > 0);
                            log.clear();
                        }
                    }
                }
            }
        }
    }
}
