//! Directories: what the members of a group have to move together, told entry by entry.
//!
//! A dense [view](layout::View) says in closed form which member has each byte of a file. A *directory* is for all
//! other accesses: one client's list of stretches of files, each with its place in the client's memory. Every I/O node
//! gets the entries that concern it; once it has those of all members, it deals them to the blocks of its stripes:
//!
//! ```text
//!  member 0   | file A: 0..6 at 0, time 1 | file A: 12..20 at 6, time 4 |
//!  member 1   | file A: 4..10 at 0, time 3 |
//!
//!  block 0 of A (8 bytes)   0..4 of member 0, 4..8 of member 1       the later of two writes is the one that stays
//!  block 1 of A             8..10 of member 1, 12..16 of member 0    10..12 stays as it is on the disk
//! ```

use std::iter;
use std::ops::Range;

use layout::{Extent, Striping};
use serde::{Deserialize, Serialize};

/// A stretch of a file and where a client has it in its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Offset in bytes within the file.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Offset in bytes within the client's memory.
    pub at: u64,
    /// When it was written, in nanoseconds of the client's clock. Where entries overlap, the latest is written; of one
    /// client's entries of the same time the later in its directory, of several clients' that of the last member.
    pub time: u64,
}

impl Entry {
    /// The stretch of the file.
    pub fn extent(&self) -> Extent {
        Extent::new(self.offset, self.bytes)
    }

    /// The blocks of a file that the entry has bytes of, by their indices.
    fn blocks(&self, striping: Striping) -> Range<u64> {
        if self.bytes == 0 {
            return 0..0;
        }
        striping.block_at(self.offset)..striping.block_at(self.extent().end() - 1) + 1
    }

    /// How many blocks of a file it has bytes of.
    pub fn block_count(&self, striping: Striping) -> u64 {
        let blocks = self.blocks(striping);
        blocks.end - blocks.start
    }

    /// The stripes of a file that the entry has bytes of.
    pub fn stripes(&self, striping: Striping) -> impl Iterator<Item = u32> {
        let blocks = self.blocks(striping);
        let stripes = u64::from(striping.stripe_count());
        let some = blocks.start..blocks.end.min(blocks.start.saturating_add(stripes));
        some.map(move |block| striping.place_of_block(block).stripe)
    }
}

/// Entries that go on regularly: of equal length, at equal distances in the file, one behind the other in memory.
///
/// Each has its own time, told by how much later it was written than the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryRun {
    /// The first of them.
    pub first: Entry,
    /// Bytes of the file from the beginning of one to that of the next.
    pub stride: u64,
    /// How much later each of the others was written than the one before it, in nanoseconds.
    pub later: Vec<u32>,
}

impl EntryRun {
    /// How many entries.
    pub fn count(&self) -> u64 {
        self.later.len() as u64 + 1
    }
}

/// What a member tells of stretches: one, or several at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListedStretch {
    /// One entry.
    One(Entry),
    /// Several entries that go on regularly.
    Run(EntryRun),
}

impl ListedStretch {
    /// How many entries it stands for.
    pub fn count(&self) -> u64 {
        match self {
            ListedStretch::One(_) => 1,
            ListedStretch::Run(run) => run.count(),
        }
    }

    /// The entries, one by one. It has been [checked](Self::check).
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        let (first, stride, later) = match self {
            ListedStretch::One(entry) => (*entry, 0, &[][..]),
            ListedStretch::Run(run) => (run.first, run.stride, &*run.later),
        };
        let mut later = later.iter();
        iter::successors(Some(first), move |before| {
            let time = before.time.saturating_add(u64::from(*later.next()?));
            let (offset, at) = (before.offset + stride, before.at + before.bytes);
            Some(Entry { offset, at, time, ..*before })
        })
    }

    /// Refuses what reaches beyond any file or any memory.
    pub fn check(&self) -> Result<(), DirectoryError> {
        let (last, first) = match self {
            ListedStretch::One(entry) => (Some(*entry), entry),
            ListedStretch::Run(run) => (run.last(), &run.first),
        };
        let is_somewhere =
            |entry: Entry| entry.extent().is_of_a_file() && entry.at.checked_add(entry.bytes).is_some();
        if last.is_some_and(is_somewhere) {
            return Ok(());
        }
        let Entry { offset, bytes, at, .. } = *first;
        Err(DirectoryError::Beyond { offset, bytes, at })
    }
}

impl EntryRun {
    /// The last entry, without its time, if there are numbers for where it is.
    fn last(&self) -> Option<Entry> {
        let (first, before) = (self.first, self.count() - 1);
        let offset = first.offset.checked_add(self.stride.checked_mul(before)?)?;
        let at = first.at.checked_add(first.bytes.checked_mul(before)?)?;
        Some(Entry { offset, at, ..first })
    }
}

/// The length of a directory, or of a part of it: how many files and entries it names.
pub fn length<Id>(stretches: &[(Id, Vec<ListedStretch>)]) -> u64 {
    stretches.iter().map(|(_, of_file)| of_file.iter().map(ListedStretch::count).sum::<u64>() + 1).sum()
}

/// The bytes of memory that a directory takes, or a part of it.
pub fn bytes_of<Id>(stretches: &[(Id, Vec<ListedStretch>)]) -> u64 {
    let later = |stretch: &ListedStretch| (stretch.count() - 1) as usize * size_of::<u32>();
    let of_file = |of_file: &[ListedStretch]| size_of_val(of_file) + of_file.iter().map(later).sum::<usize>();
    let files: usize = stretches.iter().map(|(_, stretches)| of_file(stretches)).sum();
    (size_of_val(stretches) + files) as u64
}

/// The most pieces that an I/O node cuts what one member tells for an operation into, whatever the others tell. The
/// logs of a write cache have half as many entries, and each may lie across the end of a block.
const PIECES_OF_MEMBER_MAX: u64 = 1 << 20;

/// The most pieces of all members together beside those: entries may be of many blocks.
const PIECES_IN_COMMON_MAX: u64 = 1 << 22;

/// The number of pieces that an I/O node may still cut the directories of an operation into.
pub struct PiecesLeft {
    of_members: Vec<u64>,
    in_common: u64,
}

impl PiecesLeft {
    /// For an operation of so many members.
    pub fn of(members: usize) -> Self {
        PiecesLeft { of_members: vec![PIECES_OF_MEMBER_MAX; members], in_common: PIECES_IN_COMMON_MAX }
    }

    /// Takes some for what a member has told, if there are so many left.
    pub fn take(&mut self, member: u32, count: u64) -> Result<(), DirectoryError> {
        let own = &mut self.of_members[member as usize];
        let of_own = count.min(*own);
        let in_common = self.in_common.checked_sub(count - of_own);
        self.in_common = in_common.ok_or(DirectoryError::TooManyPieces)?;
        *own -= of_own;
        Ok(())
    }
}

/// Why directories are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryError {
    /// Together they have too many pieces.
    #[error(
        "directories of more than {PIECES_IN_COMMON_MAX} pieces of blocks, beside {PIECES_OF_MEMBER_MAX} of each member"
    )]
    TooManyPieces,
    /// An entry reaches beyond the largest file, or beyond all addresses of a memory.
    #[error(
        "an entry of {bytes} bytes at offset {offset}, {at} of its memory: no file and no memory has them"
    )]
    Beyond {
        /// Offset in bytes within the file.
        offset: u64,
        /// How many bytes.
        bytes: u64,
        /// Offset in bytes within the memory.
        at: u64,
    },
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    fn entry(offset: u64, bytes: u64, at: u64, time: u64) -> Entry {
        Entry { offset, bytes, at, time }
    }

    #[test]
    fn a_run_beyond_all_files_is_refused() {
        let run = |first, stride, count| {
            ListedStretch::Run(EntryRun { first, stride, later: vec![1; count] }).check()
        };
        assert_eq!(run(entry(0, 8, 0, 0), 16, 1000), Ok(()));
        let beyond = |first: Entry| {
            Err(DirectoryError::Beyond { offset: first.offset, bytes: first.bytes, at: first.at })
        };
        for (first, stride) in [
            (entry(0, 8, 0, 0), u64::MAX / 4),
            (entry(0, 8, 0, 0), u64::MAX),
            (entry(u64::MAX - 8, 8, 0, 0), 1),
            (entry(0, 8, u64::MAX - 16, 0), 8),
            (entry(0, u64::MAX / 2, 0, 0), 0),
        ] {
            assert_eq!(run(first, stride, 5), beyond(first), "{first:?}");
        }
    }

    #[test]
    fn many_members_may_fill_their_logs_with_small_entries_of_one_file() {
        let mut pieces = PiecesLeft::of(4096);
        assert!((0..4096).all(|member| pieces.take(member, 2 * 2 * (1 << 18)).is_ok()));
        // One of them may not have what others leave.
        let mut pieces = PiecesLeft::of(4096);
        assert_eq!(pieces.take(7, (1 << 22) + (1 << 20)), Ok(()));
        assert_eq!(pieces.take(7, 1), Err(DirectoryError::TooManyPieces));
        assert_eq!(pieces.take(8, 1), Ok(()));
    }

    proptest! {
        #[test]
        fn an_entry_knows_its_stripes(offset in 0u64..200, bytes in 0u64..200, stripes in 1u32..5) {
            let striping = Striping::new(16, stripes).unwrap();
            let found: BTreeSet<u32> = entry(offset, bytes, 0, 0).stripes(striping).collect();
            let expected = (offset..offset + bytes).map(|byte| striping.place_of(byte).stripe).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
