//! What a process sees of a file: the bytes that its view selects, as one stream.

use layout::Selection;

use crate::failure::{ErrorClass, MpiError, Outcome};
use crate::file_type::FileType;

/// A view: a type, repeated from a displacement on to the end of the largest file, and the unit in which is counted.
#[derive(Clone, Debug)]
pub(crate) struct FileView {
    displacement: u64,
    /// Bytes of data of the elementary type.
    unit: u64,
    selected: Selection,
}

fn wrong(class: ErrorClass, why: &str) -> MpiError {
    MpiError::new(class, format!("a view: {why}"))
}

impl FileView {
    /// The view that a file is opened with: all its bytes.
    pub(crate) fn of_bytes() -> FileView {
        let byte = FileType::bytes(1).expect("a byte");
        FileView::new(0, 1, &byte).expect("all bytes of a file")
    }

    /// A view of this type, which has a multiple of `unit` bytes.
    pub(crate) fn new(displacement: i64, unit: i64, of: &FileType) -> Outcome<FileView> {
        let displacement = u64::try_from(displacement)
            .map_err(|_| wrong(ErrorClass::Argument, "its displacement is negative"))?;
        let unit = u64::try_from(unit).ok().filter(|&unit| unit > 0);
        let unit = unit.ok_or_else(|| wrong(ErrorClass::Argument, "its elementary type has no bytes"))?;
        if !of.size().is_multiple_of(unit) {
            return Err(wrong(ErrorClass::Argument, "its type does not consist of elementary types"));
        }
        let tile = of.placed(displacement)?;
        let selected = match of.size() {
            0 => tile,
            _ => {
                let extent = u64::try_from(of.extent()?).ok().filter(|&extent| extent > 0);
                tile.tiled(extent.ok_or_else(|| wrong(ErrorClass::Type, "its type has no extent"))?)?
            }
        };
        Ok(FileView { displacement, unit, selected })
    }

    /// Bytes of an elementary type.
    pub(crate) fn unit(&self) -> u64 {
        self.unit
    }

    /// The bytes of the file from this position of the stream on, so many of them.
    pub(crate) fn select(&self, position: u64, bytes: u64) -> Outcome<Selection> {
        let found = self.selected.slice(position, bytes)?;
        match found.bytes() == bytes {
            true => Ok(found),
            false => Err(wrong(ErrorClass::Argument, "no file is long enough for what is wanted of it")),
        }
    }

    /// The offset in the file of the byte at this position of the stream.
    pub(crate) fn offset_of(&self, position: u64) -> Outcome<u64> {
        if self.selected.is_empty() {
            return Ok(self.displacement);
        }
        Ok(self.select(position, 1)?.span().offset)
    }

    /// The position of the first elementary type that does not begin before this offset of the file.
    pub(crate) fn position_of(&self, offset: u64) -> u64 {
        self.selected.bytes_before(offset).div_ceil(self.unit) * self.unit
    }
}

#[cfg(test)]
mod tests {
    use layout::Extent;

    use super::*;

    /// Every second pair of bytes, from byte 5 on.
    fn pairs() -> FileView {
        let pair = FileType::bytes(2).and_then(|pair| pair.resized(0, 4)).expect("a type");
        FileView::new(5, 2, &pair).expect("a view")
    }

    #[test]
    fn a_stream_is_what_the_view_selects() {
        let found = pairs().select(2, 4).expect("two pairs");
        assert_eq!(found.span(), Extent::new(9, 6));
        assert_eq!((found.bytes(), found.runs()), (4, 2));
        assert_eq!(pairs().offset_of(4), Ok(13));
        assert_eq!([0, 6, 7, 13, 14].map(|offset| pairs().position_of(offset)), [0, 2, 2, 4, 6]);
        let all = FileView::of_bytes();
        assert_eq!((all.unit(), all.position_of(77)), (1, 77));
        assert_eq!(all.select(3, 9).expect("bytes").span(), Extent::new(3, 9));
    }

    #[test]
    fn views_that_make_no_sense_are_refused() {
        let four = FileType::bytes(4).expect("a type");
        let class = |view: Outcome<FileView>| view.expect_err("wrong").class;
        assert_eq!(class(FileView::new(-1, 1, &four)), ErrorClass::Argument);
        assert_eq!(class(FileView::new(0, 0, &four)), ErrorClass::Argument);
        assert_eq!(class(FileView::new(0, 3, &four)), ErrorClass::Argument);
        assert_eq!(class(FileView::new(0, 4, &four.resized(0, 0).expect("a type"))), ErrorClass::Type);
        assert_eq!(class(FileView::new(0, 4, &four.resized(0, 3).expect("a type"))), ErrorClass::Type);
        assert_eq!(
            FileView::of_bytes().select(u64::MAX, 1).expect_err("too far").class,
            ErrorClass::Argument
        );
    }
}
