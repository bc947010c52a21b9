//! The data of a file type, in memory order.
//!
//! Usually the data are a selection: bytes in ascending order, each once, in a compact form for any number of bytes.
//! The type of a file that is only read may overlap itself, as long as no run begins before the previous one. Such runs
//! are listed one by one.

use std::sync::Arc;

use layout::{Chunk, Extent, FILE_BYTES_MAX, SELECTION_NODES_MAX, Selection, SelectionError};
use machine::RangeSet;

use crate::failure::{ErrorClass, MpiError, Outcome};

/// The data of a type, or of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TypeData {
    /// Each byte once.
    Once(Selection),
    /// Some bytes more than once.
    Overlapping(OverlappingRuns),
}

/// Runs of a file in memory order, some of which overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OverlappingRuns {
    runs: Arc<[Chunk]>,
    /// The union of the runs.
    selection: Selection,
}

fn wrong(why: &str) -> MpiError {
    MpiError::new(ErrorClass::Type, format!("a type of the file: {why}"))
}

impl TypeData {
    pub(crate) const EMPTY: TypeData = TypeData::Once(Selection::empty());

    /// Returns the number of bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            TypeData::Once(selection) => selection.bytes(),
            TypeData::Overlapping(overlapping) => overlapping.bytes(),
        }
    }

    /// True if each byte occurs once.
    pub(crate) fn is_once(&self) -> bool {
        matches!(self, TypeData::Once(_))
    }

    /// Returns the bytes of the file that the data contain.
    pub(crate) fn selection(&self) -> &Selection {
        match self {
            TypeData::Once(selection) => selection,
            TypeData::Overlapping(overlapping) => &overlapping.selection,
        }
    }

    /// Copies the bytes read of the selection to their places in memory. Returns the number of bytes before the first
    /// missing one.
    pub(crate) fn put(&self, read: &[u8], into: &mut [u8]) -> u64 {
        match self {
            TypeData::Once(_) => {
                into[..read.len()].copy_from_slice(read);
                read.len() as u64
            }
            TypeData::Overlapping(overlapping) => overlapping.put(read, into),
        }
    }

    /// Returns the run that begins at this position in memory; `None` behind the end.
    pub(crate) fn run_at(&self, position: u64) -> Outcome<Option<Extent>> {
        match self {
            TypeData::Once(selection) => {
                let rest = selection.slice(position, u64::MAX)?;
                Ok(rest.chunks().next().map(|run| run.file_extent()))
            }
            TypeData::Overlapping(overlapping) => Ok(overlapping.within(position, u64::MAX).next()),
        }
    }

    /// Returns the offsets of the data in the file and in memory, run by run.
    pub(crate) fn chunks(&self) -> Box<dyn Iterator<Item = Chunk> + '_> {
        match self {
            TypeData::Once(selection) => Box::new(selection.chunks()),
            TypeData::Overlapping(overlapping) => Box::new(overlapping.runs.iter().copied()),
        }
    }

    /// Returns the data moved by `bytes` bytes in the file.
    pub(crate) fn shifted(&self, bytes: u64) -> Outcome<TypeData> {
        match self {
            TypeData::Once(selection) => Ok(TypeData::Once(selection.shifted(bytes)?)),
            TypeData::Overlapping(_) => TypeData::listed(self.extents_at(bytes)),
        }
    }

    /// Returns `count` copies of the data, each `stride` bytes of the file after the previous one.
    pub(crate) fn repeated(&self, count: u64, stride: u64) -> Outcome<TypeData> {
        if let TypeData::Once(selection) = self {
            match selection.repeated(count, stride) {
                Err(SelectionError::RepetitionOverlaps { .. }) => {}
                repeated => return Ok(TypeData::Once(repeated?)),
            }
        }
        TypeData::listed((0..count).flat_map(|times| self.extents_at(times.saturating_mul(stride))))
    }

    /// Joins data, each moved by its offset.
    pub(crate) fn joined(parts: &[(u64, TypeData)]) -> Outcome<TypeData> {
        let once = parts.iter().map(|(offset, part)| match part {
            TypeData::Once(selection) => Some((*offset, selection.clone())),
            TypeData::Overlapping(_) => None,
        });
        if let Some(once) = once.collect::<Option<Vec<_>>>() {
            match Selection::joined(&once) {
                Err(SelectionError::PartOverlaps { .. }) => {}
                joined => return Ok(TypeData::Once(joined?)),
            }
        }
        TypeData::listed(parts.iter().flat_map(|(offset, part)| part.extents_at(*offset)))
    }

    /// Returns the runs in the file, moved by `bytes` bytes.
    fn extents_at(&self, bytes: u64) -> impl Iterator<Item = Extent> + '_ {
        self.chunks().map(move |run| Extent::new(run.file_offset.saturating_add(bytes), run.bytes))
    }

    /// Returns data for runs that may overlap. Fails unless they are ordered by their first bytes.
    fn listed(extents: impl Iterator<Item = Extent>) -> Outcome<TypeData> {
        let mut last = 0;
        let checked = extents.map(|extent| {
            if extent.offset < last {
                return Err(wrong("its data are not in ascending order"));
            }
            last = extent.offset;
            match extent.offset.checked_add(extent.bytes) {
                Some(end) if end <= FILE_BYTES_MAX => Ok(extent),
                _ => Err(wrong("it extends beyond the largest possible file")),
            }
        });
        OverlappingRuns::new(checked).map(TypeData::Overlapping)
    }
}

impl OverlappingRuns {
    fn new(extents: impl Iterator<Item = Outcome<Extent>>) -> Outcome<Self> {
        let (mut runs, mut memory_offset) = (Vec::new(), 0);
        for extent in extents {
            let Extent { offset: file_offset, bytes } = extent?;
            if runs.len() == SELECTION_NODES_MAX {
                let why = format!(
                    "overlapping data have more than {SELECTION_NODES_MAX} runs: read fewer bytes in one call"
                );
                return Err(MpiError::new(ErrorClass::Unsupported, why).logged());
            }
            runs.push(Chunk { file_offset, memory_offset, bytes });
            memory_offset += bytes;
        }
        let selection = union(&runs)?;
        Ok(OverlappingRuns { runs: runs.into(), selection })
    }

    /// Returns the number of bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.runs.last().map_or(0, |last| last.memory_offset + last.bytes)
    }

    /// Returns the file offset of the first run.
    pub(crate) fn first(&self) -> u64 {
        self.selection.span().offset
    }

    /// Returns the number of bytes in the file from the first to the last byte.
    pub(crate) fn reach(&self) -> u64 {
        self.selection.span().bytes
    }

    /// Returns the runs for `bytes` bytes in memory from `position` on, or up to the end. With `stride`, the runs
    /// repeat every `stride` bytes, up to the largest file offset; without it, they occur once.
    pub(crate) fn slice(&self, stride: Option<u64>, position: u64, bytes: u64) -> Outcome<Self> {
        let (all, end) = (self.bytes(), position.saturating_add(bytes));
        let times = match stride {
            Some(_) => position / all..end.div_ceil(all),
            None => 0..1,
        };
        let found = times.flat_map(|times| {
            let (before, moved) = (times.saturating_mul(all), times.saturating_mul(stride.unwrap_or(0)));
            let within = self.within(position.saturating_sub(before), end.saturating_sub(before));
            within.map(move |run| Extent::new(run.offset.saturating_add(moved), run.bytes))
        });
        let is_in_file =
            |run: &Extent| run.offset.checked_add(run.bytes).is_some_and(|end| end <= FILE_BYTES_MAX);
        OverlappingRuns::new(found.take_while(is_in_file).map(Ok))
    }

    /// Returns the file extents of the bytes from one position in memory to another.
    fn within(&self, start: u64, end: u64) -> impl Iterator<Item = Extent> + '_ {
        let first = self.runs.partition_point(|run| run.memory_offset + run.bytes <= start);
        let runs = self.runs[first..].iter().take_while(move |run| run.memory_offset < end);
        runs.map(move |run| {
            let skipped = start.saturating_sub(run.memory_offset);
            let bytes = run.bytes.min(end - run.memory_offset) - skipped;
            Extent::new(run.file_offset + skipped, bytes)
        })
    }

    /// Returns the number of bytes in memory whose file offset is below `offset`.
    pub(crate) fn bytes_before(&self, offset: u64) -> u64 {
        self.runs.iter().map(|run| run.bytes.min(offset.saturating_sub(run.file_offset))).sum()
    }

    /// Copies the bytes read of the selection to their places in memory. Returns the number of bytes before the first
    /// missing one.
    fn put(&self, read: &[u8], into: &mut [u8]) -> u64 {
        for &Chunk { file_offset, memory_offset, bytes } in self.runs.iter() {
            let from = self.selection.bytes_before(file_offset) as usize;
            let found = read.get(from..).unwrap_or_default();
            let found = &found[..found.len().min(bytes as usize)];
            into[memory_offset as usize..][..found.len()].copy_from_slice(found);
            if (found.len() as u64) < bytes {
                return memory_offset + found.len() as u64;
            }
        }
        self.bytes()
    }
}

/// Returns the union of these runs.
fn union(runs: &[Chunk]) -> Outcome<Selection> {
    let all: RangeSet = runs.iter().map(|run| run.file_offset..run.file_extent().end()).collect();
    let extents = all.ranges().map(Extent::from);
    Ok(Selection::list(&extents.collect::<Vec<_>>())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns three runs: bytes 0 to 3, bytes 2 to 5 (overlapping), and bytes 10 and 11.
    fn overlapping() -> OverlappingRuns {
        let runs = [Extent::new(0, 4), Extent::new(2, 4), Extent::new(10, 2)];
        OverlappingRuns::new(runs.into_iter().map(Ok)).expect("a few runs")
    }

    #[test]
    fn overlapping_runs_are_read_once_and_copied_to_each_place() {
        let found = overlapping();
        assert_eq!((found.bytes(), found.selection.bytes(), found.selection.runs()), (10, 8, 2));
        let mut memory = [b'.'; 10];
        assert_eq!(found.put(b"abcdefkl", &mut memory), 10);
        assert_eq!(&memory, b"abcdcdefkl");
        // The file ends after 5 bytes, or before the last run.
        for (read, there, expected) in [(&b"abcde"[..], 7, b"abcdcde..."), (b"abcdef", 8, b"abcdcdef..")] {
            let mut memory = [b'.'; 10];
            assert_eq!((found.put(read, &mut memory), &memory), (there, expected));
        }
    }

    #[test]
    fn a_slice_may_begin_and_end_within_any_repetition() {
        let tiles: Vec<u64> =
            (0..3).flat_map(|tile| [0, 1, 2, 3, 2, 3, 4, 5, 10, 11].map(|byte| byte + 20 * tile)).collect();
        for (position, bytes) in
            (0..30).flat_map(|position| (1..=30 - position).map(move |bytes| (position, bytes)))
        {
            let found = overlapping().slice(Some(20), position, bytes).expect("a few runs");
            let map: Vec<u64> =
                found.runs.iter().flat_map(|run| run.file_offset..run.file_offset + run.bytes).collect();
            assert_eq!(map, tiles[position as usize..][..bytes as usize]);
            let is_in = |byte: &u64| found.selection.pieces_in(Extent::new(*byte, 1)).next().is_some();
            assert!(map.iter().all(is_in));
        }
        let once = overlapping().slice(None, 8, 100).expect("a few runs");
        assert_eq!((once.first(), once.bytes()), (10, 2));
        assert_eq!(overlapping().slice(Some(20), u64::MAX - 9, 5).expect("none").bytes(), 0);
    }
}
