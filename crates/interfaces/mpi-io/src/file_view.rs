//! View of a process on a file: the bytes that the view selects, as one stream.
//!
//! The type of a view is repeated, each copy one extent after the previous one. Some libraries build types whose data
//! extend beyond their bounds, and use only the first copy. Copies of such a type would overlap, so the view has a
//! single copy. If the file is only read, a type may overlap itself (`type_data.rs`).

use layout::SelectionError;

use crate::failure::{ErrorClass, MpiError, Outcome};
use crate::file_type::FileType;
use crate::type_data::TypeData;

/// A view: a type that is repeated from a displacement to the end of the largest file, and its elementary type.
#[derive(Clone, Debug)]
pub(crate) struct FileView {
    displacement: u64,
    /// Bytes from one copy of the type to the next; `None` if the type cannot be repeated and occurs once.
    extent: Option<u64>,
    /// Data bytes of the elementary type.
    unit: u64,
    /// The whole selection; only the first copy if the type overlaps itself.
    selected: TypeData,
}

fn wrong(class: ErrorClass, why: &str) -> MpiError {
    MpiError::new(class, format!("a view: {why}"))
}

impl FileView {
    /// Returns the view of a newly opened file: all its bytes.
    pub(crate) fn of_bytes() -> FileView {
        let byte = FileType::bytes(1).expect("a byte");
        FileView::new(0, 1, &byte).expect("all bytes of a file")
    }

    /// Returns a view of type `of`, whose size must be a multiple of `unit` bytes.
    pub(crate) fn new(displacement: i64, unit: i64, of: &FileType) -> Outcome<FileView> {
        let displacement = u64::try_from(displacement).map_err(|_| {
            wrong(ErrorClass::Argument, &format!("its displacement is negative: {displacement}"))
        })?;
        let unit = u64::try_from(unit).ok().filter(|&unit| unit > 0);
        let unit = unit.ok_or_else(|| wrong(ErrorClass::Argument, "its elementary type has no bytes"))?;
        if !of.size().is_multiple_of(unit) {
            let why = format!(
                "its type has {} bytes, not a multiple of the {unit} bytes of its elementary type",
                of.size()
            );
            return Err(wrong(ErrorClass::Argument, &why));
        }
        let tile = of.placed(displacement)?;
        let (selected, extent) = match of.size() {
            0 => (tile, Some(0)),
            _ => {
                let extent = u64::try_from(of.extent()?).ok().filter(|&extent| extent > 0);
                let extent = extent.ok_or_else(|| wrong(ErrorClass::Type, "its type has no extent"))?;
                repeated(tile, extent)?
            }
        };
        Ok(FileView { displacement, extent, unit, selected })
    }

    /// True if the view contains some bytes of the file more than once.
    pub(crate) fn overlaps(&self) -> bool {
        !self.selected.is_once()
    }

    /// Returns the number of bytes of an elementary type.
    pub(crate) fn unit(&self) -> u64 {
        self.unit
    }

    /// Returns the `bytes` bytes of the view from position `position` of the stream on.
    pub(crate) fn select(&self, position: u64, bytes: u64) -> Outcome<TypeData> {
        if bytes == 0 {
            return Ok(TypeData::EMPTY);
        }
        let found = match &self.selected {
            TypeData::Once(selection) => TypeData::Once(selection.slice(position, bytes)?),
            TypeData::Overlapping(type_) => {
                TypeData::Overlapping(type_.slice(self.extent, position, bytes)?)
            }
        };
        match (found.bytes() == bytes, self.extent) {
            (true, _) => Ok(found),
            (false, None) => {
                let why = "copies of its type would overlap, so the view ends after the first copy";
                Err(wrong(ErrorClass::Type, why))
            }
            (false, Some(_)) => {
                Err(wrong(ErrorClass::Argument, "the access extends beyond the largest possible file"))
            }
        }
    }

    /// Returns the file offset of the byte at this position of the stream.
    pub(crate) fn offset_of(&self, position: u64) -> Outcome<u64> {
        if self.selected.bytes() == 0 {
            return Ok(self.displacement);
        }
        Ok(self.select(position, 1)?.selection().span().offset)
    }

    /// Returns the position of the first elementary type that begins at or after this file offset. If data overlap,
    /// returns the number of elementary types with bytes before the offset instead.
    pub(crate) fn position_of(&self, offset: u64) -> u64 {
        let before = match &self.selected {
            TypeData::Once(selection) => selection.bytes_before(offset),
            TypeData::Overlapping(type_) => {
                let extent = self.extent.unwrap_or(u64::MAX);
                let times = offset.saturating_sub(type_.first()) / extent;
                times * type_.bytes() + type_.bytes_before(offset - times * extent)
            }
        };
        before.div_ceil(self.unit) * self.unit
    }
}

/// Repeats `tile` every `extent` bytes, and returns the extent with it. Returns a single copy if copies would overlap.
fn repeated(tile: TypeData, extent: u64) -> Outcome<(TypeData, Option<u64>)> {
    match &tile {
        TypeData::Once(selection) => match selection.tiled(extent) {
            Err(SelectionError::RepetitionOverlaps { .. }) => Ok((tile, None)),
            tiled => Ok((TypeData::Once(tiled?), Some(extent))),
        },
        TypeData::Overlapping(type_) => {
            let fits = type_.reach() <= extent;
            Ok((tile, fits.then_some(extent)))
        }
    }
}

#[cfg(test)]
mod tests {
    use layout::{Extent, Selection};

    use super::*;

    /// Returns a view of every second pair of bytes, from byte 5 on.
    fn pairs() -> FileView {
        let pair = FileType::bytes(2).and_then(|pair| pair.resized(0, 4)).expect("a type");
        FileView::new(5, 2, &pair).expect("a view")
    }

    fn selected(view: &FileView, position: u64, bytes: u64) -> Selection {
        view.select(position, bytes).expect("they are there").selection().clone()
    }

    #[test]
    fn a_view_maps_stream_positions_to_file_offsets() {
        let found = selected(&pairs(), 2, 4);
        assert_eq!(found.span(), Extent::new(9, 6));
        assert_eq!((found.bytes(), found.runs()), (4, 2));
        assert_eq!(pairs().offset_of(4), Ok(13));
        assert_eq!([0, 6, 7, 13, 14].map(|offset| pairs().position_of(offset)), [0, 2, 2, 4, 6]);
        let all = FileView::of_bytes();
        assert_eq!((all.unit(), all.position_of(77)), (1, 77));
        assert_eq!(selected(&all, 3, 9).span(), Extent::new(3, 9));
    }

    /// HDF5 and PnetCDF make such types: a component of a struct has explicit bounds, which become the bounds of the
    /// struct.
    #[test]
    fn a_type_with_data_outside_its_bounds_is_not_repeated() {
        let two = FileType::bytes(2).expect("a type");
        let wide =
            two.indexed([(1, 0), (1, 10)].into_iter()).and_then(|wide| wide.resized(8, 4)).expect("a type");
        let view = FileView::new(3, 1, &wide).expect("a view");
        assert_eq!(selected(&view, 1, 3).span(), Extent::new(4, 11));
        assert_eq!(view.offset_of(3), Ok(14));
        assert_eq!(view.select(3, 2).expect_err("it is there once").class, ErrorClass::Type);
        assert_eq!(view.position_of(100), 4);
    }

    #[test]
    fn a_self_overlapping_type_repeats_if_its_copies_do_not_overlap() {
        let two = FileType::bytes(2).expect("a type");
        let twice = two.indexed([(2, 0), (2, 2)].into_iter()).expect("bytes 2 and 3 twice");
        let view = FileView::new(10, 2, &twice.resized(0, 8).expect("a type")).expect("a view");
        assert!(view.overlaps() && !pairs().overlaps());
        assert_eq!(
            (0..6).map(|unit| view.offset_of(2 * unit)).collect::<Outcome<Vec<u64>>>(),
            Ok(vec![10, 12, 12, 14, 18, 20])
        );
        let found = view.select(4, 8).expect("of two types");
        assert_eq!(
            (found.bytes(), found.selection().span(), found.selection().runs()),
            (8, Extent::new(12, 10), 2)
        );
        assert_eq!([0, 10, 12, 14, 18, 21].map(|offset| view.position_of(offset)), [0, 0, 2, 6, 8, 12]);
        let once = FileView::new(10, 2, &twice.resized(0, 4).expect("a type")).expect("a view");
        assert_eq!(once.select(2, 8).expect_err("it is there once").class, ErrorClass::Type);
        assert_eq!(selected(&once, 0, 8).span(), Extent::new(10, 6));
    }

    #[test]
    fn invalid_views_are_rejected() {
        let four = FileType::bytes(4).expect("a type");
        let class = |view: Outcome<FileView>| view.expect_err("wrong").class;
        assert_eq!(class(FileView::new(-1, 1, &four)), ErrorClass::Argument);
        let negative = FileView::new(-1, 1, &four).expect_err("no offset");
        assert_eq!(negative.words(false), Some("a view: its displacement is negative: -1"));
        assert_eq!(class(FileView::new(0, 0, &four)), ErrorClass::Argument);
        assert_eq!(class(FileView::new(0, 3, &four)), ErrorClass::Argument);
        assert_eq!(class(FileView::new(0, 4, &four.resized(0, 0).expect("a type"))), ErrorClass::Type);
        assert_eq!(
            FileView::of_bytes().select(u64::MAX, 1).expect_err("too far").class,
            ErrorClass::Argument
        );
    }
}
