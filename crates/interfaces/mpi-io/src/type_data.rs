//! The data of a type of a file, in the order that they have in memory.
//!
//! Mostly they are a selection: bytes in ascending order, none of them twice, in closed form whatever their number. A
//! file that is only read may be seen by types that overlap, too, as long as no run begins before the one before it:
//! these are listed run by run.

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

/// Runs of a file, some of which overlap, in the order that they have in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OverlappingRuns {
    runs: Arc<[Chunk]>,
    /// The bytes that are in any of them.
    selection: Selection,
}

fn wrong(why: &str) -> MpiError {
    MpiError::new(ErrorClass::Type, format!("a type of the file: {why}"))
}

impl TypeData {
    pub(crate) const EMPTY: TypeData = TypeData::Once(Selection::empty());

    /// How many bytes they are in memory.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            TypeData::Once(selection) => selection.bytes(),
            TypeData::Overlapping(overlapping) => overlapping.bytes(),
        }
    }

    /// Whether they are each byte once.
    pub(crate) fn is_once(&self) -> bool {
        matches!(self, TypeData::Once(_))
    }

    /// The bytes of the file that they are.
    pub(crate) fn selection(&self) -> &Selection {
        match self {
            TypeData::Once(selection) => selection,
            TypeData::Overlapping(overlapping) => &overlapping.selection,
        }
    }

    /// Puts what was read of that where it belongs in memory; how many bytes there are before the first that was not
    /// read.
    pub(crate) fn put(&self, read: &[u8], into: &mut [u8]) -> u64 {
        match self {
            TypeData::Once(_) => {
                into[..read.len()].copy_from_slice(read);
                read.len() as u64
            }
            TypeData::Overlapping(overlapping) => overlapping.put(read, into),
        }
    }

    /// The run that begins with the byte at this position in memory, if there is one.
    pub(crate) fn run_at(&self, position: u64) -> Outcome<Option<Extent>> {
        match self {
            TypeData::Once(selection) => {
                let rest = selection.slice(position, u64::MAX)?;
                Ok(rest.chunks().next().map(|run| run.file_extent()))
            }
            TypeData::Overlapping(overlapping) => Ok(overlapping.within(position, u64::MAX).next()),
        }
    }

    /// Where they are in the file and in memory, run by run.
    pub(crate) fn chunks(&self) -> Box<dyn Iterator<Item = Chunk> + '_> {
        match self {
            TypeData::Once(selection) => Box::new(selection.chunks()),
            TypeData::Overlapping(overlapping) => Box::new(overlapping.runs.iter().copied()),
        }
    }

    /// The same, so many bytes further on in the file.
    pub(crate) fn shifted(&self, bytes: u64) -> Outcome<TypeData> {
        match self {
            TypeData::Once(selection) => Ok(TypeData::Once(selection.shifted(bytes)?)),
            TypeData::Overlapping(_) => TypeData::listed(self.extents_at(bytes)),
        }
    }

    /// The same `count` times, each `stride` bytes of the file after the one before.
    pub(crate) fn repeated(&self, count: u64, stride: u64) -> Outcome<TypeData> {
        if let TypeData::Once(selection) = self {
            match selection.repeated(count, stride) {
                Err(SelectionError::RepetitionOverlaps { .. }) => {}
                repeated => return Ok(TypeData::Once(repeated?)),
            }
        }
        TypeData::listed((0..count).flat_map(|times| self.extents_at(times.saturating_mul(stride))))
    }

    /// These data, each moved on by the offset beside them.
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

    /// Their runs in the file, so many bytes further on.
    fn extents_at(&self, bytes: u64) -> impl Iterator<Item = Extent> + '_ {
        self.chunks().map(move |run| Extent::new(run.file_offset.saturating_add(bytes), run.bytes))
    }

    /// Runs of a file, which may overlap. They are in the order of their first bytes.
    fn listed(extents: impl Iterator<Item = Extent>) -> Outcome<TypeData> {
        let mut last = 0;
        let checked = extents.map(|extent| {
            if extent.offset < last {
                return Err(wrong("its data are not in ascending order"));
            }
            last = extent.offset;
            match extent.offset.checked_add(extent.bytes) {
                Some(end) if end <= FILE_BYTES_MAX => Ok(extent),
                _ => Err(wrong("it reaches beyond any file")),
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
                let why =
                    format!("data that overlap have more than {SELECTION_NODES_MAX} runs: read less at once");
                return Err(MpiError::new(ErrorClass::Unsupported, why).logged());
            }
            runs.push(Chunk { file_offset, memory_offset, bytes });
            memory_offset += bytes;
        }
        let selection = union(&runs)?;
        Ok(OverlappingRuns { runs: runs.into(), selection })
    }

    /// How many bytes they are in memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.runs.last().map_or(0, |last| last.memory_offset + last.bytes)
    }

    /// Where the first of them begins in the file.
    pub(crate) fn first(&self) -> u64 {
        self.selection.span().offset
    }

    /// How many bytes of the file there are from the first to the last of them.
    pub(crate) fn reach(&self) -> u64 {
        self.selection.span().bytes
    }

    /// Of these runs, there once or again after every `stride` bytes as long as any file can be, the bytes from
    /// `position` in memory on, so many of them or as many as there are.
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

    /// What the bytes from one position in memory to another are in the file.
    fn within(&self, start: u64, end: u64) -> impl Iterator<Item = Extent> + '_ {
        let first = self.runs.partition_point(|run| run.memory_offset + run.bytes <= start);
        let runs = self.runs[first..].iter().take_while(move |run| run.memory_offset < end);
        runs.map(move |run| {
            let skipped = start.saturating_sub(run.memory_offset);
            let bytes = run.bytes.min(end - run.memory_offset) - skipped;
            Extent::new(run.file_offset + skipped, bytes)
        })
    }

    /// How many bytes of memory are before this offset of the file.
    pub(crate) fn bytes_before(&self, offset: u64) -> u64 {
        self.runs.iter().map(|run| run.bytes.min(offset.saturating_sub(run.file_offset))).sum()
    }

    /// Puts what was read of the selection where it belongs in memory; how many bytes there are before the first that
    /// was not read.
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

/// The bytes that are in any of these runs.
fn union(runs: &[Chunk]) -> Outcome<Selection> {
    let all: RangeSet = runs.iter().map(|run| run.file_offset..run.file_extent().end()).collect();
    let extents = all.ranges().map(|run| Extent::new(run.start, run.end - run.start));
    Ok(Selection::list(&extents.collect::<Vec<_>>())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four bytes, again two bytes further on, and two at byte 10.
    fn overlapping() -> OverlappingRuns {
        let runs = [Extent::new(0, 4), Extent::new(2, 4), Extent::new(10, 2)];
        OverlappingRuns::new(runs.into_iter().map(Ok)).expect("a few runs")
    }

    #[test]
    fn what_overlaps_is_read_once_and_put_where_it_belongs() {
        let found = overlapping();
        assert_eq!((found.bytes(), found.selection.bytes(), found.selection.runs()), (10, 8, 2));
        let mut memory = [b'.'; 10];
        assert_eq!(found.put(b"abcdefkl", &mut memory), 10);
        assert_eq!(&memory, b"abcdcdefkl");
        // A file that ends after 5 bytes, and one that ends before the last two.
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
