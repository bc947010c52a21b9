//! Directories: lists of the extents that the members of a group move together.
//!
//! A dense [view](layout::View) defines in closed form which member has each byte of a file. A *directory*
//! serves all other accesses: it is one client's list of file extents, each with its place in the client's
//! memory. Every I/O node receives the entries that concern it. Once it has the entries of all members, it
//! distributes them to the blocks of its stripes:
//!
//! ```text
//!  member 0   | file A: 0..6 at 0, time 1 | file A: 12..20 at 6, time 4 |
//!  member 1   | file A: 4..10 at 0, time 3 |
//!
//!  block 0 of A (8 bytes)   0..4 of member 0, 4..8 of member 1       the later of two writes wins
//!  block 1 of A             8..10 of member 1, 12..16 of member 0    10..12 stays as it is on the disk
//! ```

use std::iter;
use std::ops::Range;

use layout::{Extent, Striping};
use serde::{Deserialize, Serialize};

/// An extent of a file and its place in a client's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Offset in bytes within the file.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Offset in bytes within the client's memory.
    pub at: u64,
    /// Time of the write, in nanoseconds of the client's clock. Where entries overlap, the latest wins. Among
    /// entries of equal time the later one in the same client's directory wins, or that of the last member.
    pub time: u64,
}

impl Entry {
    /// Returns the entry's extent of the file.
    pub fn extent(&self) -> Extent {
        Extent::new(self.offset, self.bytes)
    }

    /// Returns the indices of the blocks of the file that the entry touches.
    fn blocks(&self, striping: Striping) -> Range<u64> {
        if self.bytes == 0 {
            return 0..0;
        }
        striping.block_at(self.offset)..striping.block_at(self.extent().end() - 1) + 1
    }

    /// Returns the number of blocks of the file that the entry touches.
    pub fn block_count(&self, striping: Striping) -> u64 {
        let blocks = self.blocks(striping);
        blocks.end - blocks.start
    }

    /// Returns the stripes of the file that the entry touches.
    pub fn stripes(&self, striping: Striping) -> impl Iterator<Item = u32> {
        let blocks = self.blocks(striping);
        let stripes = u64::from(striping.stripe_count());
        let some = blocks.start..blocks.end.min(blocks.start.saturating_add(stripes));
        some.map(move |block| striping.place_of_block(block).stripe)
    }
}

/// A regular run of entries: of equal length, at equal distances in the file, and contiguous in memory.
///
/// Each entry has its own time, stored as the difference from the previous entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryRun {
    /// First entry of the run.
    pub first: Entry,
    /// Distance in bytes of the file from the start of one entry to the start of the next.
    pub stride: u64,
    /// Time from each entry to the next, in nanoseconds.
    pub later: Vec<u32>,
}

impl EntryRun {
    /// Returns the number of entries.
    pub fn count(&self) -> u64 {
        self.later.len() as u64 + 1
    }
}

/// An item of a member's list of extents: one entry, or a run of several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListedStretch {
    /// One entry.
    One(Entry),
    /// A regular run of several entries.
    Run(EntryRun),
}

impl ListedStretch {
    /// Returns the number of entries that the item stands for.
    pub fn count(&self) -> u64 {
        match self {
            ListedStretch::One(_) => 1,
            ListedStretch::Run(run) => run.count(),
        }
    }

    /// Returns the entries one by one. The item must have been [checked](Self::check).
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

    /// Fails if an entry reaches beyond the largest file or the largest memory.
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
    /// Returns the last entry, without its time, or `None` if its position overflows.
    fn last(&self) -> Option<Entry> {
        let (first, before) = (self.first, self.count() - 1);
        let offset = first.offset.checked_add(self.stride.checked_mul(before)?)?;
        let at = first.at.checked_add(first.bytes.checked_mul(before)?)?;
        Some(Entry { offset, at, ..first })
    }
}

/// Returns the length of a directory, or of a part of it: the number of files plus the number of entries.
pub fn length<Id>(stretches: &[(Id, Vec<ListedStretch>)]) -> u64 {
    stretches.iter().map(|(_, of_file)| of_file.iter().map(ListedStretch::count).sum::<u64>() + 1).sum()
}

/// Returns the number of bytes of memory that a directory, or a part of it, takes.
pub fn bytes_of<Id>(stretches: &[(Id, Vec<ListedStretch>)]) -> u64 {
    let later = |stretch: &ListedStretch| (stretch.count() - 1) as usize * size_of::<u32>();
    let of_file = |of_file: &[ListedStretch]| size_of_val(of_file) + of_file.iter().map(later).sum::<usize>();
    let files: usize = stretches.iter().map(|(_, stretches)| of_file(stretches)).sum();
    (size_of_val(stretches) + files) as u64
}

/// Limit of pieces into which an I/O node cuts one member's entries of an operation, whatever the other
/// members list. The logs of a write cache have half as many entries, and each entry may cross the end of a
/// block.
const PIECES_OF_MEMBER_MAX: u64 = 1 << 20;

/// Limit of additional pieces for all members together: an entry may span many blocks.
const PIECES_IN_COMMON_MAX: u64 = 1 << 22;

/// The number of pieces into which an I/O node may still cut the directories of an operation.
pub struct PieceBudget {
    of_members: Vec<u64>,
    in_common: u64,
}

impl PieceBudget {
    /// Returns the limits for an operation of `members` members.
    pub fn of(members: usize) -> Self {
        PieceBudget { of_members: vec![PIECES_OF_MEMBER_MAX; members], in_common: PIECES_IN_COMMON_MAX }
    }

    /// Takes `count` pieces for the entries of a member: first from its own share, then from the common one.
    /// Fails if both together have fewer left.
    pub fn take(&mut self, member: u32, count: u64) -> Result<(), DirectoryError> {
        let own = &mut self.of_members[member as usize];
        let of_own = count.min(*own);
        let in_common = self.in_common.checked_sub(count - of_own);
        self.in_common = in_common.ok_or(DirectoryError::TooManyPieces)?;
        *own -= of_own;
        Ok(())
    }
}

/// Reason why a directory is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryError {
    /// The directories have too many pieces together.
    #[error(
        "directories of more than {PIECES_IN_COMMON_MAX} pieces of blocks, in addition to \
         {PIECES_OF_MEMBER_MAX} of each member"
    )]
    TooManyPieces,
    /// An entry reaches beyond the largest file, or beyond all addresses of a memory.
    #[error(
        "an entry of {bytes} bytes at offset {offset}, {at} of its memory: no file and no memory has them"
    )]
    Beyond {
        /// Offset in bytes within the file.
        offset: u64,
        /// Length in bytes.
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
    fn a_run_beyond_the_largest_file_is_rejected() {
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
    fn all_members_can_fill_their_logs_with_small_entries_of_one_file() {
        let mut pieces = PieceBudget::of(4096);
        assert!((0..4096).all(|member| pieces.take(member, 2 * 2 * (1 << 18)).is_ok()));
        // One member may use the whole common share, but not the unused shares of other members.
        let mut pieces = PieceBudget::of(4096);
        assert_eq!(pieces.take(7, (1 << 22) + (1 << 20)), Ok(()));
        assert_eq!(pieces.take(7, 1), Err(DirectoryError::TooManyPieces));
        assert_eq!(pieces.take(8, 1), Ok(()));
    }

    proptest! {
        #[test]
        fn an_entry_returns_the_stripes_of_its_bytes(offset in 0u64..200, bytes in 0u64..200, stripes in 1u32..5) {
            let striping = Striping::new(16, stripes).unwrap();
            let found: BTreeSet<u32> = entry(offset, bytes, 0, 0).stripes(striping).collect();
            let expected = (offset..offset + bytes).map(|byte| striping.place_of(byte).stripe).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
